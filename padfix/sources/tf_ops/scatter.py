"""ScatterNd, SparseToDense and TensorScatterAdd, Sub, Max and Min, which take several numbers for one place.

tf2onnx writes the first as a ScatterND that keeps one of them, whichever comes last, and ONNX Runtime's ScatterND lets
threads race for a place in the others. Here places are counted along one axis, where ScatterElements goes through them
in order.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from padfix.sources.tf_ops.segments import beside
from padfix.sources.tf_ops.tensor import END, INTEGER, Builder, Tensor, concatenated, count_up, filled, join
from padfix.sources.tf_ops.windows import reduce

_REDUCTIONS = {
    "ScatterNd": "add",
    "TensorScatterAdd": "add",
    "TensorScatterSub": "add",
    "TensorScatterMax": "max",
    "TensorScatterMin": "min",
}
OPERATORS = (*_REDUCTIONS, "SparseToDense")


def convert(builder: Builder, node: Any) -> Tensor:
    """Return the tensor, or zeros of a shape, with numbers put in."""
    if node.type == "SparseToDense":
        return _dense(builder, node)
    first, second, third = (builder.read(name) for name in node.input)
    is_new = node.type == "ScatterNd"
    indices, updates = (first, second) if is_new else (second, third)
    shape = third.cast(INTEGER) if is_new else first.shape()
    rank = (builder.ctx.get_shape(shape.name) or [-1])[0] if is_new else builder.ctx.get_rank(first.name) or -1
    if node.type == "TensorScatterSub":
        updates = updates * -1
    reduction = _REDUCTIONS[node.type]
    if builder.ctx.opset < (18 if reduction in ("max", "min") else 16):
        raise ValueError("reductions in a scatter need opset 18 for maxima and minima, 16 for sums")
    kind, wide = updates.dtype, np.dtype(np.int32) if updates.dtype == np.bool_ else updates.dtype
    depth = indices.shape().take(builder.integers([-1]))
    rest = builder.node("Slice", [shape, depth, builder.integers([END])], INTEGER)
    total, strides = _numbers_below(shape, rank)
    outer = builder.node("Slice", [strides, builder.integers([0]), depth], INTEGER)
    row = _product(rest).maximum(1)
    place = reduce("ReduceSum", indices.cast(INTEGER) * outer, [-1]) / row
    count = total / row
    rows = updates.cast(wide).shaped(builder.node("Size", [place], INTEGER).reshape([1]), rest)
    count = count.reshape([1])
    start = filled(0, wide, concatenated([count, rest])) if is_new else first.cast(wide).shaped(count, rest)
    where = beside(place.reshape([-1]), rows).expand(rows.shape())
    return start.scattered(where, rows, reduction).shaped(shape).cast(kind)


def _dense(builder: Builder, node: Any) -> Tensor:
    """Return a tensor of one value but for some places; of several values for one place the last stays."""
    places, shape, values, default = (builder.read(name) for name in node.input)
    rank = (builder.ctx.get_shape(shape.name) or [-1])[0]
    if rank < 1:
        raise ValueError(f"how many axes {node.name} scatters into is not known")
    total, strides = _numbers_below(shape.cast(INTEGER), rank)
    apart = places.cast(INTEGER).reshape([-1, rank]) * strides
    place = reduce("ReduceSum", apart, [1])
    kind, wide = values.dtype, np.dtype(np.int32) if values.dtype == np.bool_ else values.dtype
    given = values.cast(wide).reshape([-1]).expand(place.shape())
    start = default.cast(wide).reshape([1]).expand(total.reshape([1]))
    return start.scattered(place, given).shaped(shape.cast(INTEGER)).cast(kind)


def _numbers_below(shape: Tensor, rank: int) -> tuple[Tensor, Tensor]:
    """Return how many elements the whole has, and what belongs to one place of each of ``rank`` axes; -1 for any."""
    builder = shape.builder
    if rank < 1:
        place = count_up(builder, builder.node("Size", [shape], INTEGER), INTEGER)
        is_below = place.reshape([1, -1]).greater(place.reshape([-1, 1]))
        return _product(shape), reduce("ReduceProd", builder.choose(is_below, shape, 1), [1])
    found = [builder.integers(1)]
    for axis in reversed(range(rank)):
        found.insert(0, found[0] * shape.take(axis))
    return found[0], join(builder, found[1:])


def _product(lengths: Tensor) -> Tensor:
    """Return a product, one of no lengths at all."""
    return reduce("ReduceProd", concatenated([lengths.builder.integers([1]), lengths]), [0])
