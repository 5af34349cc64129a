"""What the result has to suit, read from a TOML file: rules ask its fields, and never compare its name."""

from __future__ import annotations

import dataclasses
import tomllib
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from padfix.errors import UsageError, suggestion
from padfix.targets.fact import RENAMED, Fact, read_fact

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
        empty_batch: Whether a batch without rows is to be run as well, by amounts that are worked out at run time.
        folds_lengths: Whether its converter is told all lengths, and works out what is computed of these alone.
        title: The runtime's own name, for people.
        versions: The versions that the facts were found on.
        joins: Targets whose facts and bounds are this one's as well: what suits it suits them all.
        facts: What the runtime refuses, and what it computes wrongly; tables called ``fact`` in the file.
    """

    name: str
    description: str = ""
    minimum_opset: int = 1
    maximum_opset: int | None = None
    pads: str = "attribute"
    empty_batch: bool = False
    folds_lengths: bool = False
    title: str = ""
    versions: tuple[str, ...] = ()
    joins: tuple[str, ...] = ()
    facts: tuple[Fact, ...] = ()

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

    def knows_of(self, *operators: str) -> bool:
        """Whether a fact is about one of these operators, in whatever version."""
        return not self._operators.isdisjoint(operators)

    def facts_about(self, op_type: str, opset: int) -> list[Fact]:
        """Return the facts that are about operators of this type and version, in their order."""
        return [fact for fact in self._facts_by_operator.get(op_type, ()) if fact.is_about(op_type, opset)]

    @cached_property
    def asked(self) -> frozenset[str]:
        """The traits that its facts name."""
        return frozenset(trait for fact in self.facts for trait in fact.where)

    @cached_property
    def _operators(self) -> frozenset[str]:
        return frozenset(operator for fact in self.facts for operator in fact.operators)

    @cached_property
    def _facts_by_operator(self) -> dict[str, list[Fact]]:
        found: dict[str, list[Fact]] = {}
        for fact in self.facts:
            others = (old for old, new in RENAMED.items() if new in fact.operators)
            for operator in {*fact.operators, *others}:
                found.setdefault(operator, []).append(fact)
        return found

    def settings(self) -> dict[str, object]:
        """Return what the target asks for, by the keys of its file, without its facts and what it leaves free."""
        asked = {each.name: getattr(self, each.name) for each in dataclasses.fields(self) if each.name in _TYPES}
        return {
            _key(name): ", ".join(value) if isinstance(value, tuple) else value
            for name, value in asked.items()
            if value != _DEFAULTS[name]
        }

    def seen_on(self, fact: Fact) -> str:
        """Return the runtime's name and the versions on which ``fact`` was found, for people."""
        if fact.seen_on:
            return fact.seen_on
        title, versions = self.title or self.name, fact.versions or self.versions
        if len(versions) > 1:
            return f"{title} ({' and '.join(versions)})"
        return f"{title} {''.join(versions)}".rstrip()


_TYPES: dict[str, type] = {
    "title": str,
    "description": str,
    "versions": list,
    "joins": list,
    "minimum_opset": int,
    "maximum_opset": int,
    "pads": str,
    "empty_batch": bool,
    "folds_lengths": bool,
}
_DEFAULTS = {each.name: each.default for each in dataclasses.fields(Target)}


def _key(field: str) -> str:
    return field.replace("_", "-")


def names() -> tuple[str, ...]:
    """Return the names of all targets, the default first."""
    found = sorted(path.stem for path in _FOLDER.glob("*.toml"))
    return ("onnx", *(name for name in found if name != "onnx"))


@cache
def named(name: str) -> Target:
    """Return the target called ``name``, for one of its versions in ``"opencv@4.14"``, for all of them in ``"opencv"``.

    Raises:
        UsageError: There is none, or nothing is known of that version.
    """
    base, at, version = name.partition("@")
    if "," in name:
        raise UsageError(f"{name!r} is more than one target.", "A conversion is for one; padfix check takes several.")
    if base not in names():
        raise UsageError(f"There is no target {base!r}.", suggestion(base, names(), "Targets"))
    target = load(_FOLDER / f"{base}.toml")
    return _of_version(target, version) if at else target


def _of_version(target: Target, version: str) -> Target:
    """Return the target with the facts that were found on ``version``, or on versions that it is the beginning of."""
    meant = tuple(each for each in target.versions if each == version or each.startswith(f"{version}."))
    if not meant:
        known = f"Known: {', '.join(target.versions)}." if target.versions else "Leave the version out."
        raise UsageError(f"Nothing is known of {target.title or target.name} {version!r}.", known)
    facts = tuple(
        dataclasses.replace(fact, versions=tuple(each for each in fact.versions or target.versions if each in meant))
        for fact in target.facts
        if not fact.versions or set(fact.versions) & set(meant)
    )
    return dataclasses.replace(target, name=f"{target.name}@{version}", versions=meant, facts=facts)


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
    facts = document.pop("fact", [])
    settings = {key: _checked(path, key, value) for key, value in document.items()}
    versions = settings.get("versions", ())
    if not isinstance(facts, list):
        raise UsageError(f"{path}: fact should be a list of tables, [[fact]], not {facts!r}.")
    read = tuple(read_fact(each, f"{path}: fact {number}", versions) for number, each in enumerate(facts, 1))
    try:
        return _joined(Target(path.stem, **{_fields()[key]: value for key, value in settings.items()}, facts=read))
    except UsageError as error:
        raise UsageError(f"{path}: {error.message}", error.hint) from error


def _joined(target: Target) -> Target:
    """Return the target with what the targets that it joins say: facts, but for those alone, and bounds."""
    others = [named(name) for name in target.joins]
    ceilings = [each.maximum_opset for each in (target, *others) if each.maximum_opset is not None]
    facts = [
        dataclasses.replace(fact, seen_on=each.seen_on(fact))
        for each in others
        for fact in each.facts
        if not fact.alone
    ]
    return dataclasses.replace(
        target,
        minimum_opset=max(each.minimum_opset for each in (target, *others)),
        maximum_opset=min(ceilings, default=None),
        facts=(*target.facts, *facts),
    )


def _fields() -> dict[str, str]:
    return {_key(field): field for field in _TYPES}


def _checked(path: Path, key: str, value: object) -> Any:
    """Return a setting as a target holds it."""
    fields = _fields()
    if key not in fields:
        raise UsageError(f"{path}: a target has no setting {key!r}.", suggestion(key, list(fields)))
    wanted = _TYPES[fields[key]]
    listed = isinstance(value, list) and all(isinstance(each, str) for each in value)
    if type(value) is not wanted or (wanted is list and not listed):
        kind = {str: "a string", int: "a whole number", list: "a list of strings", bool: "true or false"}[wanted]
        raise UsageError(f"{path}: {key} should be {kind}, not {value!r}.")
    return tuple(value) if isinstance(value, list) else value
