"""QuantizeAndDequantize, V1 to V4, as QuantizeLinear and DequantizeLinear where those say it, else as arithmetic.

TensorFlow scales by the side of the range that needs it more, so that zero stays zero, rounds halves to even or up, and
clamps only to a range that is given. tf2onnx's rewriter takes every number of bits for 8, and rounds halves to even.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from padfix.sources.tf_ops.tensor import FLOAT, Builder, Tensor
from padfix.sources.tf_ops.windows import reduce

OPERATORS = ("QuantizeAndDequantizeV2", "QuantizeAndDequantizeV3", "QuantizeAndDequantizeV4")

_SINCE_AXES = 13
"""The opset from which QuantizeLinear takes a scale for each channel."""


def convert(builder: Builder, node: Any) -> Tensor:
    """Return the input moved to the steps of an integer type."""
    data, low, high, *others = (builder.read(name) for name in node.input)
    bits = others[0] if others else builder.integers(node.get_attr_value("num_bits", 8))
    signed, narrow = node.get_attr_value("signed_input", True), node.get_attr_value("narrow_range", False)
    axis, given = node.get_attr_value("axis", -1), node.get_attr_value("range_given", False)
    if not given:
        low, high = _extent(node, data, axis, "ReduceMin"), _extent(node, data, axis, "ReduceMax")
    one = builder.constant(1.0, data.dtype)
    top = builder._apply("Pow", [one * 2.0, (bits - int(signed)).cast(data.dtype)], data.dtype, np.power)
    least = top * -1.0 + (1.0 if narrow else 0.0) if signed else one * 0.0
    most = top - 1.0
    from_low, from_high = _scale(least, low), _scale(most, high)
    by_low = from_low.less(from_high)
    scale = builder.choose(by_low, from_low, from_high)
    step = builder.choose(by_low, low / least, high / most)
    half_up = node.get_attr_str("round_mode") == "HALF_UP" if node.get_attr("round_mode") else False
    is_constant = data.dtype == FLOAT and bits.known == 8 and step.array is not None and np.all(step.array > 0)
    if given and not half_up and is_constant:
        if signed and narrow:
            data = data.maximum(_along(step * -127.0, node, axis))
        return _linear(data, step, np.dtype(np.int8 if signed else np.uint8), axis)
    if given:
        begin = _along(builder.choose(by_low, low, least * step), node, axis)
        end = _along(builder.choose(by_low, most * step, high), node, axis)
        data = data.minimum(end).maximum(begin)
    scaled = data * _along(scale, node, axis)
    rounded = (scaled + 0.5).floor() if half_up else scaled.round_even()
    return rounded * _along(step, node, axis)


def _extent(node: Any, data: Tensor, axis: int, operator: str) -> Tensor:
    """Return the smallest or largest element, of each channel where there are channels."""
    rank = data.builder.rank_of(data.name, f"the input of {node.name}")
    return reduce(operator, data, [each for each in range(rank) if each != axis])


def _scale(integer: Tensor, bound: Tensor) -> Tensor:
    """Return steps per unit by one side of the range; the largest number where that side has none."""
    return bound.builder.choose((integer * bound).greater(0.0), integer / bound, float(np.finfo(bound.dtype).max))


def _along(values: Tensor, node: Any, axis: int) -> Tensor:
    """Return a value for each channel in a shape that meets the input's."""
    if axis < 0:
        return values
    rank = values.builder.ctx.get_rank(node.input[0])
    return values.reshape([-1, *[1] * (rank - 1 - axis)])


def _linear(data: Tensor, step: Tensor, kind: np.dtype[Any], axis: int) -> Tensor:
    builder = data.builder
    zero = builder.constant(np.zeros(() if step.array is None else step.array.shape), kind)
    attributes = {"axis": axis} if axis >= 0 and builder.ctx.opset >= _SINCE_AXES else {}
    wide = builder.node("QuantizeLinear", [data, step, zero], kind, attributes)
    return builder.node("DequantizeLinear", [wide, step, zero], step.dtype, attributes)
