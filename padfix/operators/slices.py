"""What a Slice takes: attributes before opset 10, inputs since then."""

from __future__ import annotations

from collections.abc import Sequence

from onnx import NodeProto

from padfix.graph import attributes
from padfix.graph.scopes import Dimension, Scope

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
    if not isinstance(count, int):
        return None
    return [axis % rank for axis in (range(count) if listed is None else listed)]


def slice_amounts(scope: Scope, node: NodeProto) -> dict[str, list[int]] | None:
    """Return the starts, ends and steps, as far as it has them; None where one is not constant."""
    found = {}
    for name, position in _POSITIONS.items():
        if scope.opset < SLICE_AS_INPUTS_SINCE:
            values = attributes.integers(node, name)
        elif len(node.input) <= position or not node.input[position]:
            values = None
        else:
            constant = scope.constant(node.input[position])
            if constant is None:
                return None
            values = [int(each) for each in constant.reshape(-1)]
        if values is not None:
            found[name] = list(values)
    return found


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
