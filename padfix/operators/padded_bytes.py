"""Pads of one line of dequantized numbers."""

from __future__ import annotations

from functools import partial

import numpy as np
from onnx import NodeProto

from padfix.graph import attributes
from padfix.graph.dependence import reached
from padfix.graph.scopes import Scope
from padfix.operators.bytes_among_floats import is_dequantized, moved_from
from padfix.operators.pad_traits import fill_of

PADDING = ("CenterCropPad", "Pad")

_ONE = (None, (), (1,))
"""The shapes that a step for all numbers may have."""


def pads_line_of_bytes(scope: Scope, node: NodeProto) -> bool:
    """Whether a Pad of constants, or a CenterCropPad of told lengths, pads one axis alone of dequantized numbers.

    The axis has one element, and what is added is no byte of 0. The numbers are those of a QuantizeLinear of one step,
    moved at most.
    """
    if attributes.text(node, "mode", "constant") not in ("constant", ""):
        return False
    data, result = scope.type_of(node.input[0]), scope.type_of(node.output[0])
    if data is None or result is None or data.shape is None or result.shape is None:
        return False
    if len(data.shape) != len(result.shape):
        return False
    changed = [before for before, after in zip(data.shape, result.shape, strict=True) if before != after]
    if changed != [1] or (node.op_type != "Pad" and data.lengths is None):
        return False
    is_zero = node.op_type != "Pad" or fill_of(scope, node) == "zero"
    return any(_is_of_bytes(scope, each, is_zero) for each in reached([node.input[0]], partial(moved_from, scope)))


def _is_of_bytes(scope: Scope, name: str, is_zero: bool) -> bool:
    """Whether bytes that a QuantizeLinear makes are dequantized here, and 0 does not stand for what is added."""
    maker = scope.own_producer(name)
    if maker is None or not is_dequantized(scope, name):
        return False
    quantizer, scale = scope.own_producer(maker.input[0]), scope.type_of(maker.input[1])
    if quantizer is None or quantizer.op_type != "QuantizeLinear" or (scale is not None and scale.lengths not in _ONE):
        return False
    zero = scope.constant(maker.input[2]) if any(maker.input[2:]) else np.zeros(1)
    return not is_zero or zero is None or bool(np.any(zero != 0))
