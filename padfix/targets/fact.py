"""What a runtime does with an operator of a certain kind: one entry of a target's file, with its evidence."""

from __future__ import annotations

import datetime
import enum
from collections.abc import Mapping
from dataclasses import dataclass, field

from padfix.errors import UsageError, suggestion
from padfix.targets.traits import TRAITS, UNSAID, Trait, Traits

DECLARED = "value_info"
"""In place of an operator: what a model declares of inner values (sizes) and of its outputs (shape-given)."""

RENAMED = {"Scatter": "ScatterElements"}
"""Operators that mean what others do that have their place: what is known of these is said of both."""

FUNCTION = "function"
"""In place of an operator: a function that a model defines itself."""

PRODUCER = "producer"
"""In place of an operator: who a model says wrote it, and whether its average pools have pads."""

SPARSE = "sparse_initializer"
"""In place of an operator: a constant of which the elements that are not 0 are listed, and their places."""


class Outcome(enum.StrEnum):
    """What becomes of the operator: it is turned away, or it runs and gives other numbers without a word."""

    REFUSED = "refused"
    SILENT = "silent"


@dataclass(frozen=True)
class Fact:
    """One thing that is known of a runtime. In the file, a key has ``-`` where a field has ``_``.

    Attributes:
        operators: Types of ONNX's own domains (no two of which share one), those of others behind their domain
            (``com.microsoft.Gelu``), :data:`DECLARED`, :data:`FUNCTION`, :data:`PRODUCER` or :data:`SPARSE`.
        outcome: What becomes of such an operator.
        says: What the runtime does, as the end of "The runtime ...".
        evidence: Where that was seen, in words: an experiment with its count, a place in the source, a document.
        date: When.
        where: By trait (a key of :data:`TRAITS`) the values that are meant; a trait that is not named plays no part.
        versions: Those versions of the target that it was seen on; all of them where empty.
        from_opset: The first version of the default domain that it is about.
        to_opset: The last; None for no bound.
        alone: Whether it is for the target by itself: a guess of an importer, for which most models would be declined.
            Targets that join this one leave it out.
        seen_on: The runtime and its versions, for people, where the fact came with a target that is joined.
    """

    operators: tuple[str, ...]
    outcome: Outcome
    says: str
    evidence: str
    date: datetime.date
    where: Mapping[str, tuple[Trait, ...]] = field(default_factory=dict)
    versions: tuple[str, ...] = ()
    from_opset: int = 1
    to_opset: int | None = None
    alone: bool = False
    seen_on: str = ""

    def is_about(self, op_type: str, opset: int) -> bool:
        """Whether it is about operators of this type and version."""
        is_named = op_type in self.operators or RENAMED.get(op_type) in self.operators
        return is_named and self.from_opset <= opset <= (self.to_opset or opset)

    def open_traits(self, traits: Traits) -> tuple[str, ...] | None:
        """Return which traits are not known where all others fit; None where one does not fit."""
        open_ones = []
        for name, values in self.where.items():
            known = traits.get(name, UNSAID.get(name))
            possible = known if isinstance(known, frozenset) else frozenset((known,))
            if known is not None and possible.isdisjoint(values):
                return None
            if known is None or not possible.issubset(values):
                open_ones.append(name)
        return tuple(open_ones)


def read_fact(content: object, place: str, versions: tuple[str, ...]) -> Fact:
    """Return the fact that a table of a target's file states; ``place`` names it, ``versions`` are the target's.

    Raises:
        UsageError: A key is missing or unknown, or a value can't be.
    """
    if not isinstance(content, dict):
        raise UsageError(f"{place} should be a table, not {content!r}.")
    for key in content:
        if key not in _KEYS:
            raise UsageError(f"{place}: a fact has no {key!r}.", suggestion(key, sorted(_KEYS)))
    for key in ("operators", "outcome", "says", "evidence", "date"):
        if key not in content:
            raise UsageError(f"{place} lacks {key}.", "What has no evidence and no date stays out of a target.")
    for key, value in content.items():
        if type(value) is not _KEYS[key]:
            raise UsageError(f"{place}: {key} should be {_NAMES[_KEYS[key]]}, not {value!r}.")
    for key in ("operators", "versions"):
        if not all(isinstance(each, str) for each in content.get(key, ())):
            raise UsageError(f"{place}: {key} should list strings, not {content[key]!r}.")
    if not content["operators"]:
        raise UsageError(f"{place} names no operator.")
    if content["outcome"] not in list(Outcome):
        raise UsageError(f"{place}: outcome should be {' or '.join(Outcome)}, not {content['outcome']!r}.")
    unknown = [each for each in content.get("versions", ()) if each not in versions]
    if unknown:
        raise UsageError(f"{place}: {unknown[0]!r} is none of the target's versions.", f"Versions: {list(versions)}.")
    return Fact(
        tuple(content["operators"]),
        Outcome(content["outcome"]),
        content["says"],
        content["evidence"],
        content["date"],
        {name: _values(name, given, place) for name, given in content.get("where", {}).items()},
        tuple(content.get("versions", ())),
        content.get("from-opset", 1),
        content.get("to-opset"),
        content.get("alone", False),
    )


def _values(name: str, given: object, place: str) -> tuple[Trait, ...]:
    if name not in TRAITS:
        raise UsageError(f"{place}: an operator has no {name!r}.", suggestion(name, list(TRAITS)))
    listed = given if isinstance(given, list) else [given]
    for each in listed:
        if not any(type(each) is type(value) and each == value for value in TRAITS[name]):
            allowed = ", ".join(str(value).lower() if isinstance(value, bool) else str(value) for value in TRAITS[name])
            raise UsageError(f"{place}: {name} can't be {each!r}.", f"Values: {allowed}.")
    return tuple(listed)


_KEYS: Mapping[str, type] = {
    "operators": list,
    "outcome": str,
    "says": str,
    "evidence": str,
    "date": datetime.date,
    "where": dict,
    "versions": list,
    "alone": bool,
    "from-opset": int,
    "to-opset": int,
}
_NAMES: Mapping[type, str] = {
    list: "a list",
    str: "a string",
    dict: "a table",
    int: "a whole number",
    bool: "true or false",
    datetime.date: "a date",
}
