"""Bincount and DenseBincount: how often each number occurs, or what it weighs (Keras' ``IntegerLookup``).

tf2onnx takes the rows of a matrix for one list. Numbers beyond the size are left out, as in TensorFlow.
"""

from __future__ import annotations

from typing import Any

from padfix.sources.tf_ops.tensor import INTEGER, Builder, Tensor, filled, join

OPERATORS = ("Bincount", "DenseBincount")


def convert(builder: Builder, node: Any) -> Tensor:
    """Return the counts, for each row of a matrix by itself."""
    data, size, weights = (builder.read(name) for name in node.input)
    known = builder.ctx.get_shape(weights.name)
    if known is None:
        raise ValueError(f"whether {node.name} has weights is not known")
    if node.type == "Bincount":
        data = data.reshape([-1])
    shape = builder.node("Shape", [data], INTEGER)
    kept, last = shape.part(0, -1, 0), shape.take(-1)
    rows = builder.node("ReduceProd", [kept], INTEGER, {"keepdims": 1})
    numbers, count = _shaped(data.cast(INTEGER), [rows, last]), size.cast(INTEGER).reshape([])
    is_binary = bool(node.get_attr_value("binary_output", False))
    if is_binary or 0 in known:
        each = filled(1, weights.dtype, builder.node("Shape", [numbers], INTEGER))
    else:
        each = _shaped(weights, [rows, last])
    places = builder.choose(numbers.less(count), numbers, count)
    started = filled(0, weights.dtype, join(builder, [rows, count + 1]))
    attributes = {"axis": 1, **({} if is_binary else {"reduction": "add"})}
    whole = builder.node("ScatterElements", [started, places, each], weights.dtype, attributes)
    return _shaped(whole.part(0, count, 1), [kept, count])


def _shaped(data: Tensor, lengths: list[Tensor]) -> Tensor:
    builder = data.builder
    shape = builder.node("Concat", [each.reshape([-1]) for each in lengths], INTEGER, {"axis": 0})
    return builder.node("Reshape", [data, shape], data.dtype, {"allowzero": 1})
