"""What a Slice takes: attributes before opset 10, inputs since then."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from onnx import NodeProto

from padfix.graph import attributes
from padfix.graph.scopes import Dimension, Scope, normal_domain

SLICE_AS_INPUTS_SINCE = 10
"""The first version whose starts, ends, axes and steps are inputs."""

_POSITIONS = {"starts": 1, "ends": 2, "steps": 4}


def sliced_axes(scope: Scope, node: NodeProto, rank: int) -> list[int] | None:
    """Return the axes of a Slice of so many axes, in the order in which they are listed; None where not known."""
    listed: Sequence[int] | None
    count: Dimension
    if scope.opset < SLICE_AS_INPUTS_SINCE:
        listed = attributes.integers(node, "axes")
        count = len(attributes.integers(node, "starts") or ())
    elif len(node.input) > 3 and node.input[3]:
        constant = scope.constant(node.input[3])
        if constant is None:
            return None
        listed, count = [int(each) for each in constant], 0
    else:
        starts = scope.type_of(node.input[1])
        listed, count = None, None if starts is None or not starts.shape else starts.shape[0]
    if not isinstance(count, int) or not rank:
        return None
    return [axis % rank for axis in (range(count) if listed is None else listed)]


ValueOf = Callable[[str], np.ndarray | None]
"""What tells the value of a tensor, None where it is not known beforehand."""


def _told(scope: Scope, node: NodeProto, name: str, value_of: ValueOf | None = None) -> list[int] | None:
    """Return the starts, ends or steps; none of them where they are left out, and None where they are not constant."""
    position = _POSITIONS[name]
    if scope.opset < SLICE_AS_INPUTS_SINCE:
        return list(attributes.integers(node, name) or ())
    if len(node.input) <= position or not node.input[position]:
        return []
    constant = (value_of or scope.constant)(node.input[position])
    return None if constant is None else [int(each) for each in constant.reshape(-1)]


def slice_steps(scope: Scope, node: NodeProto) -> list[int] | None:
    """Return the steps of a Slice, none where they are left out; None where they are not constant."""
    return _told(scope, node, "steps")


def slice_starts(scope: Scope, node: NodeProto) -> list[int] | None:
    """Return the starts of a Slice; None where they are not constant."""
    return _told(scope, node, "starts")


def slice_amounts(scope: Scope, node: NodeProto, value_of: ValueOf | None = None) -> dict[str, list[int]] | None:
    """Return the starts, ends and steps, as far as it has them; None where one is not constant.

    ``value_of`` tells values that are no constants of the model as well.
    """
    found = {}
    for name in _POSITIONS:
        values = _told(scope, node, name, value_of)
        if values is None:
            return None
        if values:
            found[name] = values
    return found


def slices_again_from_end(scope: Scope, node: NodeProto) -> bool:
    """Whether an axis is listed from the end that the Slice lists from the begin whose result this one takes."""
    before = scope.own_producer(node.input[0])
    while before is not None and before.op_type == "Identity" and not normal_domain(before.domain):
        before = scope.own_producer(before.input[0])
    known = scope.type_of(node.input[0])
    if before is None or before.op_type != "Slice" or normal_domain(before.domain) or known is None or not known.rank:
        return False
    first, again = (listed_axes(scope, each) for each in (before, node))
    return any(axis < 0 and axis + known.rank in first for axis in again)


def listed_axes(scope: Scope, node: NodeProto) -> list[int]:
    """Return the axes as they are listed, the first ones where none are; none where they are not constant."""
    starts = _told(scope, node, "starts") or []
    if scope.opset < SLICE_AS_INPUTS_SINCE:
        return list(attributes.integers(node, "axes") or range(len(starts)))
    if len(node.input) <= 3 or not node.input[3]:
        return list(range(len(starts)))
    constant = scope.constant(node.input[3])
    return [] if constant is None else [int(each) for each in constant.reshape(-1)]


_BEFORE_ALL = -(1 << 30)
"""A start that lies before the first element of whatever is as long as axes are."""


def starts_before_first(scope: Scope, node: NodeProto, axes: Sequence[int]) -> list[bool] | None:
    """Return of each axis that a Slice takes whether it starts before the first element; None where not known."""
    amounts, known = slice_amounts(scope, node), scope.type_of(node.input[0])
    if amounts is None or "starts" not in amounts or known is None or known.shape is None:
        return None
    steps = amounts.get("steps", [1] * len(axes))
    lengths = [-length if isinstance(length := known.shape[axis], int) else _BEFORE_ALL for axis in axes]
    return [step > 0 and start < least for start, step, least in zip(amounts["starts"], steps, lengths, strict=True)]


_LONG, _NO_END = (1 << 31) - 1, (1 << 63) - 1


def takes_all(starts: Sequence[int], ends: Sequence[int], steps: Sequence[int]) -> bool:
    """Whether a Slice with these amounts takes all elements of whatever is as long as axes are."""
    return not any(starts) and all(end >= _LONG for end in ends) and all(step == 1 for step in steps)


def without_far_ends(ends: Sequence[int]) -> list[int]:
    """Return the ends of a Slice, none of which fits 32 bits alone: the largest number is known for no end at all."""
    return [_NO_END if end > _LONG else end for end in ends]


def ends_far(scope: Scope, node: NodeProto) -> bool:
    """Whether a Slice has an end that does not fit 32 bits, and is not known for no end either."""
    ends = _told(scope, node, "ends") or []
    return ends != without_far_ends(ends)


def may_start_before_first(scope: Scope, node: NodeProto, axes: Sequence[int]) -> bool:
    """Whether a Slice counts a start from the end of an axis of open length, which may be shorter than that.

    A start of -2 is none: of one element it means the same to whoever counts it round the length.
    """
    amounts, known = slice_amounts(scope, node), scope.type_of(node.input[0])
    if amounts is None or "starts" not in amounts:
        return False
    shape = None if known is None else known.shape
    steps = amounts.get("steps", [1] * len(axes))
    return any(
        step > 0 and _BEFORE_ALL <= start < -2 and (shape is None or not isinstance(shape[axis], int))
        for start, step, axis in zip(amounts["starts"], steps, axes, strict=True)
    )


def ends_past_axes(scope: Scope, node: NodeProto, axes: Sequence[int]) -> bool | None:
    """Whether a Slice goes backwards to a place before which more elements lie than its data have axes.

    Of an axis of open length an end that is counted from its end may be such a place. None where not known.
    """
    amounts, known, steps = slice_amounts(scope, node), scope.type_of(node.input[0]), slice_steps(scope, node)
    if known is None or known.shape is None:
        return None
    if amounts is None and steps is not None and len(steps) == len(axes):
        # An end that leaves something lies two places before the length, at most.
        lengths = [known.shape[axis] for axis, step in zip(axes, steps, strict=True) if step < 0]
        return None if any(not isinstance(each, int) or each - 2 > len(known.shape) for each in lengths) else False
    if amounts is None or len(amounts.get("ends", ())) != len(axes):
        return None
    for end, step, axis in zip(amounts["ends"], amounts.get("steps", [1] * len(axes)), axes, strict=True):
        length = known.shape[axis]
        place = end + length if isinstance(length, int) and end < 0 else end
        if step < 0 and (place > len(known.shape) or (_BEFORE_ALL < place < 0 and not isinstance(length, int))):
            return True
    return False
