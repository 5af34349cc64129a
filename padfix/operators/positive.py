"""Which computed numbers are above zero for certain."""

from __future__ import annotations

from padfix.graph.scopes import Scope
from padfix.operators.clip import clip_bounds

_MOST_STEPS = 32
"""Operators that are looked through, one behind the other."""


def is_positive_for_certain(scope: Scope, name: str, *, or_zero: bool = False) -> bool:
    """Whether computed numbers are above zero, or zero at the least, by the operators that give them.

    Of what is added up in more steps than a few that is not asked.
    """
    return _is_positive(scope, name, or_zero, {}, _MOST_STEPS)


def _is_positive(scope: Scope, name: str, or_zero: bool, found: dict[tuple[str, bool], bool], steps: int) -> bool:
    key = (name, or_zero)
    if key not in found:
        found[key] = steps > 0 and _is_given_positive(scope, name, or_zero, found, steps - 1)
    return found[key]


def _is_given_positive(scope: Scope, name: str, or_zero: bool, found: dict[tuple[str, bool], bool], steps: int) -> bool:
    constant, producer = scope.constant(name), scope.producer(name)
    if constant is not None:
        return bool((constant >= 0 if or_zero else constant > 0).all())
    if producer is None:
        return False
    if producer.op_type in ("Abs", "Relu", "Shape", "Size", "Sqrt", "ReduceL1", "ReduceL2", "ReduceSumSquare"):
        return or_zero
    if producer.op_type in ("Gather", "Slice", "Squeeze", "Unsqueeze"):
        return _is_positive(scope, producer.input[0], or_zero, found, steps)
    if producer.op_type == "Clip":
        least = clip_bounds(scope, producer)[0]
        return least >= 0 if or_zero else least > 0
    if producer.op_type in ("Add", "Max"):
        is_any = any(_is_positive(scope, each, False, found, steps) for each in producer.input)
        if producer.op_type == "Max" or not is_any:
            return is_any
        return all(_is_positive(scope, each, True, found, steps) for each in producer.input)
    return or_zero and producer.op_type in ("Exp", "Sigmoid", "Softmax", "Softplus")  # they round to zero
