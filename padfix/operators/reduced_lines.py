"""Lines that are reduced, and constants of their channels that are computed with behind them, which OpenVINO joins."""

from __future__ import annotations

import math

from onnx import NodeProto

from padfix.graph.scopes import Scope, normal_domain
from padfix.operators.elementwise import REDUCTIONS
from padfix.operators.reductions import reduced_axes

_POOLS = ("GlobalAveragePool", "GlobalMaxPool")

_OF_TWO = ("Add", "Div", "Mul", "Sub", "Sum")

_BY_CHANNELS = frozenset((*_OF_TWO, "BatchNormalization", "DequantizeLinear", "PRelu", "QuantizeLinear"))
"""Operators with a constant for each channel that may be joined with the reduction before them."""

# fmt: off
_BETWEEN = frozenset(
    {
        "Abs", "Clip", "Dropout", "Elu", "HardSigmoid", "HardSwish", "Identity", "LeakyRelu", "Mish", "Neg", "Relu",
        "Selu", "Sigmoid", "Softsign", "Sqrt", "Swish", "Tanh", "Unsqueeze",
    }
)
# fmt: on

_FARTHEST = 8

_LINES = 3
"""The axes of lines with their batch and their channels."""


def by_channels_of_lines(scope: Scope, node: NodeProto) -> int | None:
    """Return which input of a node is made of reduced lines, if constants of several elements change it; else None.

    The lines are reduced along their last axis, or their batch along its own.
    """
    if node.op_type not in _BY_CHANNELS or normal_domain(node.domain):
        return None
    places = range(len(node.input)) if node.op_type in _OF_TWO else range(1)
    computed = [place for place in places if node.input[place] and scope.constant(node.input[place]) is None]
    others = [scope.constant(name) for place, name in enumerate(node.input) if place not in computed and name]
    is_by_several = any(each is not None and each.size > 1 for each in others)
    return (
        computed[0] if is_by_several and len(computed) == 1 and _are_reduced(scope, node.input[computed[0]]) else None
    )


def _are_reduced(scope: Scope, name: str) -> bool:
    """Whether what a node gives to one reader alone is made of reduced lines, element by element."""
    for _ in range(_FARTHEST):
        node = scope.own_producer(name)
        if node is None or normal_domain(node.domain) or scope.is_output(name) or len(scope.consumers(name)) > 1:
            return False
        if node.op_type in (*REDUCTIONS, *_POOLS):
            return _is_along_one_axis(scope, node)
        data = [each for each in node.input if each and scope.constant(each) is None]
        is_passed_on = node.op_type in _BETWEEN or (node.op_type in _OF_TWO and _is_by_numbers(scope, node))
        if not is_passed_on or len(data) != 1:
            return False
        name = data[0]
    return False


_SUMMED = ("GlobalAveragePool", "ReduceMean", "ReduceSum")

# fmt: off
_KEEPING_BYTES = frozenset(
    {
        "Clip", "Concat", "DepthToSpace", "Dropout", "Flatten", "Gather", "Identity", "MaxPool", "Pad", "Relu",
        "Reshape", "Slice", "SpaceToDepth", "Split", "Squeeze", "Transpose", "Unsqueeze",
    }
)
# fmt: on
"""Operators behind which a DequantizeLinear may be moved."""


def sums_dequantized_lines(scope: Scope, node: NodeProto) -> bool:
    """Whether lines are added up, each image by itself, that a DequantizeLinear gives which may be moved behind it."""
    if node.op_type not in _SUMMED or normal_domain(node.domain):
        return False
    known = scope.type_of(node.input[0])
    shape = () if known is None or known.shape is None else known.shape
    axes = [_LINES - 1] if node.op_type in _POOLS else reduced_axes(scope, node)
    if len(shape) != _LINES or shape[0] == 1 or not axes or any(axis % _LINES == 0 for axis in axes):
        return False
    name = node.input[0]
    for _ in range(_FARTHEST):
        producer = scope.own_producer(name)
        if producer is None or normal_domain(producer.domain) or producer.op_type not in _KEEPING_BYTES:
            return producer is not None and producer.op_type == "DequantizeLinear"
        name = producer.input[0]
    return False


def _is_by_numbers(scope: Scope, node: NodeProto) -> bool:
    told = [scope.constant(name) for name in node.input]
    return all(each is None or each.size == 1 for each in told)


def _is_along_one_axis(scope: Scope, node: NodeProto) -> bool:
    """Whether the lines of several images, or of any number, are reduced along one axis that is not the channels'."""
    known = scope.type_of(node.input[0])
    shape = () if known is None or known.shape is None else known.shape
    if len(shape) != _LINES:
        return False
    axes = [_LINES - 1] if node.op_type in _POOLS else reduced_axes(scope, node)
    reduced = {axis % _LINES for axis in axes or ()}
    if reduced == {0}:
        return shape[1] != 1
    several = math.prod(each for each in shape[:2] if isinstance(each, int))
    return reduced == {_LINES - 1} and shape[0] != 1 and several != 1
