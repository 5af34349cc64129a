"""Equal forms of a node, and the first of them that a target gets right."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from padfix.operators.refusal import Refusal
from padfix.rules.base import Rewrite, Site
from padfix.rules.build.objections import Objection, Operators, worst_objection
from padfix.targets import Target
from padfix.targets.traits import Traits

SHAPE_AS_INPUT_SINCE = 5
"""The opset from which on a Reshape is told its shape by an input."""

_RESHAPES = {"Squeeze": -1, "Unsqueeze": 1}
"""Operators that are written as a Reshape where the target gets them wrong, and how many axes more there are behind."""


@dataclass(frozen=True)
class Form:
    """One way to write a node.

    Attributes:
        name: What is special of it, for people.
        operators: Every operator in it that a target may object to.
        write: Builds it.
        why_not: Why it is not equal here, or can't be written; None where it is.
        opset: The version of the default domain that it is written in, where that is above the model's.
    """

    name: str
    operators: Operators
    write: Callable[[], Rewrite | Refusal]
    why_not: Refusal | None = None
    opset: int = 1


def by_another_rule() -> Rewrite | Refusal:
    """Return that a rule that comes earlier writes the form."""
    return Refusal("Another rule writes this form.")


def objection_to(site: Site, operators: Operators, opset: int = 1) -> Objection | None:
    """Return the first thing that the site's target has against operators that are written at ``opset`` or later."""
    at = max(site.opset, opset)
    found = (_objection(site.target, op_type, at, traits) for op_type, traits in operators)
    return next((each for each in found if each is not None), None)


def _objection(target: Target, op_type: str, opset: int, traits: Traits) -> Objection | None:
    """Return the worst thing against an operator, none against one that becomes a Reshape when it stands there."""
    found = worst_objection(target, op_type, opset, traits)
    rank = traits.get("rank")
    if found is None or op_type not in _RESHAPES or not isinstance(rank, int):
        return found
    return worst_objection(target, "Reshape", opset, {"rank": rank + _RESHAPES[op_type]}) and found


def first_right(site: Site, forms: Iterable[Form]) -> Form | Refusal:
    """Return the first form to which the site's target has no objection; or why each is none."""
    reasons = []
    for form in forms:
        if form.why_not is not None:
            reasons.append(f"{form.name}: {form.why_not.reason.rstrip('.')}")
            continue
        objection = objection_to(site, form.operators, form.opset)
        if objection is None:
            return form
        reasons.append(f"{form.name}: it {objection.fact.says}")
    runtime = site.target.title or site.target.name
    tried = f" ({'; '.join(dict.fromkeys(reasons))})" if reasons else ""
    return Refusal(f"No equal form is known to be right on {runtime}{tried}.")
