"""SparseReshape: the places of a sparse tensor's numbers in another shape; embeddings of sparse features begin with it.

tf2onnx divides by the product of the lengths that are given, which is zero where there are no rows.
"""

from __future__ import annotations

from typing import Any

from padfix.sources.tf_ops.tensor import INTEGER, Builder, Tensor, count_up
from padfix.sources.tf_ops.windows import reduce

OPERATORS = ("SparseReshape",)


def convert(builder: Builder, node: Any) -> list[Tensor]:
    """Return the places, and the shape with the length that was left open."""
    places, shape, wanted = (builder.read(name) for name in node.input)
    is_open = wanted.less(0)
    given = reduce("ReduceProd", builder.choose(is_open, 1, wanted), [0])
    asked = builder.choose(is_open, reduce("ReduceProd", shape, [0]) / given.maximum(1), wanted)
    flat = places.matmul(_steps(shape).unsqueeze([1]))
    return [(flat / _steps(asked).maximum(1)).modulo(asked.maximum(1)), asked]


def _steps(shape: Tensor) -> Tensor:
    """Return how many numbers lie between neighbours along each axis."""
    axis = count_up(shape.builder, shape.lengths([0])[0], INTEGER)
    is_further = axis.unsqueeze([1]).less(axis.unsqueeze([0]))
    return reduce("ReduceProd", shape.builder.choose(is_further, shape.unsqueeze([0]), 1), [1])
