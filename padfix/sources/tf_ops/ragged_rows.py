"""Where the values of ragged rows stand in a tensor that holds them all: RaggedTensorToTensor and RaggedTensorToSparse.

tf2onnx takes the longest of no rows for a length, which is the lowest number there is, and divides by the longest of
rows that are all empty. What is here takes the place of its two functions that count.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any
from unittest import mock

from padfix.sources.tf_ops.tensor import INTEGER, Builder, Tensor, concatenated, count_up
from padfix.sources.tf_ops.windows import reduce


def counted() -> AbstractContextManager[Any]:
    """Let tf2onnx count rows as they are."""
    from tf2onnx.onnx_opset import tensor

    return mock.patch.multiple(
        tensor, ragged_lengths_to_sparse_indices=_of_lengths, ragged_row_ids_to_sparse_indices=_of_row_ids
    )


def _of_lengths(ctx: Any, lengths: str) -> tuple[str, ...]:
    """Return how many rows and columns there are, and the row and the column of each value."""
    builder = Builder(ctx, "ragged_lengths")
    given = builder.read(lengths)
    rows, columns = given.shape(), _longest(given, 0)
    place = count_up(builder, (rows * columns).reshape([]), INTEGER)
    width = columns.maximum(1)
    row, column = place / width, place.modulo(width)
    is_there = column.less(given.take(row))
    kept = [builder.node("Compress", [each, is_there], INTEGER) for each in (row, column)]
    return tuple(each.name for each in (rows, columns, *kept))


def _of_row_ids(ctx: Any, row_ids: str) -> tuple[str, ...]:
    """Return how many columns there are, and the column of each value: how far it is from the first of its row."""
    builder = Builder(ctx, "ragged_ids")
    flat = concatenated([builder.read(row_ids), builder.integers([-1])])
    _, first, row = builder.nodes("Unique", [flat], [INTEGER] * 3, {"sorted": 1})
    column = (count_up(builder, flat.lengths([0])[0], INTEGER) - first.take(row)).part(0, -1, 0)
    return (_longest(column, -1) + 1).name, column.name


def _longest(numbers: Tensor, least: int) -> Tensor:
    """Return the largest of the numbers, which may be none, as a vector."""
    more = concatenated([numbers, numbers.builder.integers([least])])
    return reduce("ReduceMax", more, [0]).reshape([1])
