"""ScatterNd and TensorScatterAdd, Sub, Max and Min, which take several numbers for one place.

tf2onnx writes the first as a ScatterND that keeps one of them, whichever comes last, and ONNX Runtime's ScatterND lets
threads race for a place in the others. Here places are counted along one axis, where ScatterElements goes through them
in order.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from padfix.sources.tf_ops.segments import beside
from padfix.sources.tf_ops.tensor import INTEGER, Builder, Tensor, filled

_REDUCTIONS = {
    "ScatterNd": "add",
    "TensorScatterAdd": "add",
    "TensorScatterSub": "add",
    "TensorScatterMax": "max",
    "TensorScatterMin": "min",
}
OPERATORS = tuple(_REDUCTIONS)

_END = 2**31 - 1


def convert(builder: Builder, node: Any) -> Tensor:
    """Return the tensor, or zeros of a shape, with numbers put in."""
    first, second, third = (builder.read(name) for name in node.input)
    is_new = node.type == "ScatterNd"
    indices, updates = (first, second) if is_new else (second, third)
    shape = third.cast(INTEGER) if is_new else builder.node("Shape", [first], INTEGER)
    known = builder.ctx.get_shape(indices.name)
    if not known or known[-1] < 1:
        raise ValueError(f"how many axes the indices of {node.name} are for is not known")
    if node.type == "TensorScatterSub":
        updates = updates * -1
    reduction = _REDUCTIONS[node.type]
    if builder.ctx.opset < (18 if reduction in ("max", "min") else 16):
        raise ValueError("reductions in a scatter need opset 18 for maxima and minima, 16 for sums")
    kind, wide = updates.dtype, np.dtype(np.int32) if updates.dtype == np.bool_ else updates.dtype
    place, count = builder.integers(0), builder.integers(1)
    for axis in range(known[-1]):
        length = shape.take(axis)
        place, count = place * length + indices.cast(INTEGER).take(axis, len(known) - 1), count * length
    rest = builder.node("Slice", [shape, builder.integers([known[-1]]), builder.integers([_END])], INTEGER)
    rows = _with_length(updates.cast(wide), builder.node("Size", [place], INTEGER), rest)
    start = filled(0, wide, _beginning(count, rest)) if is_new else _with_length(first.cast(wide), count, rest)
    where = beside(place.reshape([-1]), rows).expand(builder.node("Shape", [rows], INTEGER))
    result = builder.node("ScatterElements", [start, where, rows], wide, {"axis": 0, "reduction": reduction})
    return builder.node("Reshape", [result, shape], wide, {"allowzero": 1}).cast(kind)


def _beginning(length: Tensor, rest: Tensor) -> Tensor:
    return rest.builder.node("Concat", [length.reshape([1]), rest], INTEGER, {"axis": 0})


def _with_length(data: Tensor, length: Tensor, rest: Tensor) -> Tensor:
    return data.builder.node("Reshape", [data, _beginning(length, rest)], data.dtype, {"allowzero": 1})
