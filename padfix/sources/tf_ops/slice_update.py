"""XlaDynamicUpdateSlice (``keras.ops.slice_update``, which caches of keys and values are written with)."""

from __future__ import annotations

from typing import Any

from padfix.sources.tf_ops.tensor import INTEGER, Builder, Tensor, count_up

OPERATORS = ("XlaDynamicUpdateSlice",)


def convert(builder: Builder, node: Any) -> Tensor:
    """Return the tensor with a block of it exchanged; a block that would reach beyond the end is moved back."""
    data, block, starts = (builder.read(name) for name in node.input)
    rank = builder.rank_of(node.input[0], f"what {node.name} reads")
    is_inside = builder.constant(True, bool)
    for axis, (length, count) in enumerate(zip(data.lengths(range(rank)), block.lengths(range(rank)), strict=True)):
        if length.known is not None and length.known == count.known:
            continue
        place = count_up(builder, length, INTEGER) - starts.take(axis).cast(INTEGER).minimum(length - count).maximum(0)
        along = place.less(0).negated() & place.less(count)
        is_inside = is_inside & along.reshape([-1 if each == axis else 1 for each in range(rank)])
        block = block.take(place.maximum(0).minimum(count - 1), axis)
    return builder.choose(is_inside, block, data)
