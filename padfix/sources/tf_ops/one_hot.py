"""OneHot by comparing each index with the positions: an index outside the depth is nowhere on.

tf2onnx writes OneHot, where an index from -depth to -1 counts from the end, or reads a row of a unit matrix, which
fails outside of it. Either lacks types that TensorFlow has.
"""

from __future__ import annotations

from typing import Any

from padfix.sources.tf_ops.tensor import INTEGER, Array, Builder, Tensor, count_up

OPERATORS = ("OneHot",)


def convert(builder: Builder, node: Any) -> Tensor:
    """Return on at the index and off elsewhere, along the attribute ``axis``."""
    indices, depth, on, off = (builder.read(name) for name in node.input)
    rank, axis = builder.rank_of(node.input[0], f"the indices of {node.name}"), node.get_attr_value("axis", -1)
    place = rank if axis == -1 else axis
    positions = count_up(builder, depth, INTEGER).reshape([-1, *[1] * (rank - place)])
    is_on = indices.cast(INTEGER).unsqueeze([place]).equal(positions)
    if _is(on.array, 1) and _is(off.array, 0):
        return is_on.cast(on.dtype)
    return builder.choose(is_on, on, off)


def _is(array: Array | None, value: int) -> bool:
    return array is not None and array.dtype.kind in "?iuf" and array.size == 1 and array.item() == value
