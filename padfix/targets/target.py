"""What the result has to suit, read from a TOML file: rules ask its fields, and never compare its name."""

from __future__ import annotations

import dataclasses
import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from padfix.errors import UsageError, suggestion

PADS_STYLES = ("attribute", "node")
"""Where pads may go: the operator's attribute, or a Pad (a Slice behind ConvTranspose) beside an operator without."""

_FOLDER = Path(__file__).parent


@dataclass(frozen=True)
class Target:
    """What a model has to suit. A field is a key of the TOML file, with ``-`` for ``_``; a default leaves it free.

    Attributes:
        name: What ``--target`` says; the file's name.
        description: One line for people.
        minimum_opset: The lowest version of the default domain that may be imported.
        maximum_opset: The highest; None for no bound.
        pads: ``"attribute"`` writes pads into the operators; ``"node"`` writes those that differ between the two sides
            of an axis beside them; one of :data:`PADS_STYLES`.
    """

    name: str
    description: str = ""
    minimum_opset: int = 1
    maximum_opset: int | None = None
    pads: str = "attribute"

    def __post_init__(self) -> None:
        """Raise :class:`UsageError` for values that no target can have."""
        if self.pads not in PADS_STYLES:
            raise UsageError(f"There is no way {self.pads!r} to write pads.", f"Ways: {', '.join(PADS_STYLES)}.")
        highest = self.minimum_opset if self.maximum_opset is None else self.maximum_opset
        if not 1 <= self.minimum_opset <= highest:
            raise UsageError(
                f"The target {self.name!r} allows no opset at all: from {self.minimum_opset} to {highest}.",
                "Both are versions of the default domain, counted from 1.",
            )

    def settings(self) -> dict[str, object]:
        """Return what the target asks for, by the keys of its file; what it leaves free is left out."""
        asked = {each.name: getattr(self, each.name) for each in dataclasses.fields(self) if each.name in _TYPES}
        return {_key(name): value for name, value in asked.items() if value != _DEFAULTS[name]}


_TYPES: dict[str, type] = {"description": str, "minimum_opset": int, "maximum_opset": int, "pads": str}
_DEFAULTS = {each.name: each.default for each in dataclasses.fields(Target)}


def _key(field: str) -> str:
    return field.replace("_", "-")


def names() -> tuple[str, ...]:
    """Return the names of all targets, the default first."""
    found = sorted(path.stem for path in _FOLDER.glob("*.toml"))
    return ("onnx", *(name for name in found if name != "onnx"))


@cache
def named(name: str) -> Target:
    """Return the target called ``name``.

    Raises:
        UsageError: There is none.
    """
    if name not in names():
        raise UsageError(f"There is no target {name!r}.", suggestion(name, names(), "Targets"))
    return load(_FOLDER / f"{name}.toml")


def load(path: Path) -> Target:
    """Return the target that a TOML file describes; its name is the file's.

    Raises:
        UsageError: The file can't be read, is not TOML, has an unknown key or a value of the wrong type or size.
    """
    try:
        document: dict[str, Any] = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(f"{path} can't be read: {error.strerror or error}.") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} is not valid TOML: {error}.", "Correct it.") from error
    fields = {_key(field): field for field in _TYPES}
    for key, value in document.items():
        if key not in fields:
            raise UsageError(f"{path}: a target has no setting {key!r}.", suggestion(key, list(fields)))
        wanted = _TYPES[fields[key]]
        if type(value) is not wanted:
            kind = {str: "a string", int: "a whole number"}[wanted]
            raise UsageError(f"{path}: {key} should be {kind}, not {value!r}.")
    try:
        return Target(path.stem, **{fields[key]: value for key, value in document.items()})
    except UsageError as error:
        raise UsageError(f"{path}: {error.message}", error.hint) from error
