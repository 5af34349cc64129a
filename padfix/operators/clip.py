"""What a Clip says of the numbers that it gives."""

from __future__ import annotations

import math

from onnx import NodeProto

from padfix.graph import attributes
from padfix.graph.scopes import Scope
from padfix.operators.elementwise import COPYING, LAYING_OUT, PICKING_OUT

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


_WINDOWS = ("AveragePool", "Conv", "ConvTranspose", "MaxPool")

_JOINED = LAYING_OUT | COPYING | PICKING_OUT | {"BatchNormalization", "Pad", "Relu"}
"""What converters take for a part of a window, or move before it, as arithmetic with constants, too."""

_WITH_CONSTANTS = ("Add", "Clip", "Div", "Max", "Min", "Mul", "Sub")

_MOST_BETWEEN = 8


def cuts_window_off_zero(scope: Scope, node: NodeProto) -> bool:
    """Whether a Clip, or a Max or Min with a constant, of what a window gives leaves 0 out."""
    data = [name for name in node.input if name and scope.constant(name) is None]
    if len(data) != 1:
        return False
    if node.op_type == "Clip":
        least, most = clip_bounds(scope, node)
        leaves_out = least > 0 or most < 0
    else:
        told = [value for name in node.input if (value := scope.constant(name)) is not None]
        leaves_out = any(bool(((value > 0) if node.op_type == "Max" else (value < 0)).any()) for value in told)
    return leaves_out and _is_of_window(scope, data[0])


def _is_of_window(scope: Scope, name: str) -> bool:
    """Whether a window gives data, or what is counted as a part of it."""
    for _ in range(_MOST_BETWEEN):
        maker = scope.own_producer(name)
        if maker is None or maker.op_type in _WINDOWS:
            return maker is not None
        data = [each for each in maker.input if each and scope.constant(each) is None]
        if maker.op_type not in _JOINED and (maker.op_type not in _WITH_CONSTANTS or len(data) != 1):
            return False
        name = maker.input[0] if maker.op_type in _JOINED else data[0]
    return False
