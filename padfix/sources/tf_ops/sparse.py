"""Sparse tensors as the places and numbers that they are made of; embeddings of features begin with SparseReshape.

tf2onnx divides by the product of the lengths that are given, which is zero where there are no rows. It lacks others.
"""

from __future__ import annotations

from typing import Any

from padfix.sources.tf_ops.ordering import extremes
from padfix.sources.tf_ops.tensor import INTEGER, Builder, Tensor, count_up, filled, join
from padfix.sources.tf_ops.windows import reduce

OPERATORS = ("SparseReshape", "SparseReorder", "SparseTensorDenseMatMul", "SparseReduceSum")


def convert(builder: Builder, node: Any) -> Tensor | list[Tensor]:
    """Return the results of ``node``."""
    given = [builder.read(name) for name in node.input]
    if node.type == "SparseReshape":
        return _reshaped(*given)
    if node.type == "SparseReorder":
        return _reordered(*given)
    if given[1].dtype.kind == "c":
        raise ValueError(f"{node.name} computes on complex numbers")
    if node.type == "SparseReduceSum":
        return _summed(node, *given)
    return _multiplied(node, *given)


def _reshaped(places: Tensor, shape: Tensor, wanted: Tensor) -> list[Tensor]:
    """Return the places, and the shape with the length that was left open."""
    is_open = wanted.less(0)
    builder = places.builder
    given = reduce("ReduceProd", builder.choose(is_open, 1, wanted), [0])
    asked = builder.choose(is_open, reduce("ReduceProd", shape, [0]) / given.maximum(1), wanted)
    flat = places.matmul(_steps(shape).unsqueeze([1]))
    return [(flat / _steps(asked).maximum(1)).modulo(asked.maximum(1)), asked]


def _reordered(places: Tensor, values: Tensor, shape: Tensor) -> list[Tensor]:
    """Return places and numbers row by row."""
    flat = places.matmul(_steps(shape).unsqueeze([1])).reshape([-1])
    _, order = extremes(flat, flat.lengths([0])[0], largest=False)
    return [places.take(order), values.take(order)]


def _multiplied(node: Any, places: Tensor, values: Tensor, shape: Tensor, dense: Tensor) -> Tensor:
    """Return the product with a matrix, of which only the rows are read that a number of the sparse one meets."""
    builder, across = dense.builder, int(node.get_attr_value("adjoint_a", False))
    if node.get_attr_value("adjoint_b", False):
        dense = dense.transpose([1, 0])
    terms = dense.take(places.take(1 - across, 1)) * values.unsqueeze([1])
    whole = join(builder, [shape.take(across), *dense.lengths([1])])
    rows = places.take(across, 1).cast(INTEGER).unsqueeze([1]).expand(terms.shape())
    return filled(0, terms.dtype, whole).scattered(rows, terms, "add")


def _summed(node: Any, places: Tensor, values: Tensor, shape: Tensor, axes: Tensor) -> Tensor:
    """Return the sums along axes, as a dense tensor."""
    builder, rank = places.builder, (places.builder.ctx.get_shape(node.input[2]) or [-1])[0]
    if axes.array is None or rank < 1:
        raise ValueError(f"the axes of {node.name} are not known")
    summed = {int(axis) % rank for axis in axes.array.reshape(-1)}
    kept = builder.integers([axis for axis in range(rank) if axis not in summed])
    lengths = shape.take(kept)
    number = places.take(kept, 1).matmul(_steps(lengths).unsqueeze([1])).reshape([-1])
    size = reduce("ReduceProd", lengths, [0]).reshape([1])
    sums = filled(0, values.dtype, size).scattered(number, values, "add")
    if node.get_attr_value("keep_dims", False):
        lengths = join(builder, [1 if axis in summed else shape.take(axis) for axis in range(rank)])
    return sums.shaped(lengths)


def _steps(shape: Tensor) -> Tensor:
    """Return how many numbers lie between neighbours along each axis."""
    axis = count_up(shape.builder, shape.lengths([0])[0], INTEGER)
    is_further = axis.unsqueeze([1]).less(axis.unsqueeze([0]))
    return reduce("ReduceProd", shape.builder.choose(is_further, shape.unsqueeze([0]), 1), [1])
