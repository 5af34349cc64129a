"""What a target's facts say of a node: whether the runtime refuses it, or gives other numbers without a word."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from padfix.results import Severity
from padfix.targets import Fact, Outcome, Target
from padfix.targets.traits import Traits

Operators = tuple[tuple[str, Traits], ...]
"""The (type, traits) of operators that a target may object to."""

_SEVERITIES = {Outcome.REFUSED: Severity.ERROR, Outcome.SILENT: Severity.SILENT}


@dataclass(frozen=True)
class Objection:
    """A fact that fits a node.

    Attributes:
        fact: The fact.
        unknown: Traits on which it depends and which the model does not tell; empty where it is sure.
    """

    fact: Fact
    unknown: tuple[str, ...] = ()

    @property
    def severity(self) -> Severity:
        """How bad it is; what depends on lengths that are not known is as bad, or a gate would let it pass."""
        return _SEVERITIES[self.fact.outcome]

    def sentence(self, target: Target, op_type: str) -> str:
        """Return the objection as one sentence with its evidence."""
        runtime = target.seen_on(self.fact)
        if self.fact.outcome is Outcome.SILENT:
            verb = f"runs this {op_type} and can give other numbers" if self.unknown else f"gets this {op_type} wrong"
            verb += ", without a word"
        else:
            verb = f"may refuse this {op_type}" if self.unknown else f"refuses this {op_type}"
        unknown = f", which depends on what the model leaves open ({', '.join(self.unknown)})" if self.unknown else ""
        return f"{runtime} {verb}: it {self.fact.says}{unknown} ({self.fact.evidence}; {self.fact.date})."


def objections(target: Target, op_type: str, opset: int, traits: Traits) -> Iterator[Objection]:
    """Yield what ``target`` has against an operator that is like ``traits``."""
    for fact in target.facts_about(op_type, opset):
        unknown = fact.open_traits(traits)
        if unknown is not None:
            yield Objection(fact, unknown)


def worst_objection(target: Target, op_type: str, opset: int, traits: Traits) -> Objection | None:
    """Return the worst thing that ``target`` has against an operator, a sure one before an unsure one; or None."""
    found = list(objections(target, op_type, opset, traits))
    return max(found, key=lambda each: (not each.unknown, each.severity.rank), default=None)
