"""What a Clip says of the numbers that it gives."""

from __future__ import annotations

import math

from onnx import NodeProto

from padfix.graph import attributes
from padfix.graph.scopes import Scope

Bounds = tuple[float, float]

UNBOUNDED: Bounds = (-math.inf, math.inf)

BOUNDS_AS_INPUT_SINCE = 11
"""The first opset whose Clip reads its bounds."""


def clip_bounds(scope: Scope, node: NodeProto) -> Bounds:
    """Return the least and the largest number that a Clip gives, as far as they are constants."""
    bounds = list(UNBOUNDED)
    for position, name in enumerate(("min", "max")):
        if scope.opset < BOUNDS_AS_INPUT_SINCE:
            given = attributes.find(node, name)
            bounds[position] = bounds[position] if given is None else given.f
            continue
        told = node.input[position + 1] if len(node.input) > position + 1 else ""
        constant = scope.constant(told) if told else None
        if constant is not None and constant.size == 1 and constant.dtype.kind not in "OSU":
            bounds[position] = float(constant.item())
    return bounds[0], bounds[1]


def cuts_relu_off(scope: Scope, node: NodeProto) -> bool:
    """Whether a Clip gives numbers below 0 alone of what a Relu gives."""
    before = scope.own_producer(node.input[0])
    return before is not None and before.op_type == "Relu" and clip_bounds(scope, node)[1] < 0
