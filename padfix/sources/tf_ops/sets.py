"""Sets: DenseToDenseSetOperation (``tf.sets``) and ListDiff (``tf.compat.v1.setdiff1d``).

tf2onnx writes the first for differences only, and what it writes can't be run where nothing is left.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from padfix.sources.tf_ops.ordering import extremes
from padfix.sources.tf_ops.tensor import END, INTEGER, Builder, Tensor, concatenated, join
from padfix.sources.tf_ops.windows import reduce

OPERATORS = ("DenseToDenseSetOperation", "ListDiff")


def convert(builder: Builder, node: Any) -> list[Tensor]:
    """Return what is left: of sets as a sparse tensor, of lists with their positions."""
    first, second = (builder.read(name) for name in node.input)
    if first.dtype.kind not in "iuf":
        raise ValueError(f"{node.name} holds text, which ONNX can't sort")
    if node.type == "ListDiff":
        return _list_difference(node, first, second)
    return _set_operation(node, first, second)


def _list_difference(node: Any, x: Tensor, y: Tensor) -> list[Tensor]:
    kept = x.builder.node("NonZero", [_is_among(x, y).negated()], INTEGER).reshape([-1])
    return [x.take(kept), kept.cast(x.builder.type_of(node.output[1]))]


def _set_operation(node: Any, first: Tensor, second: Tensor) -> list[Tensor]:
    """Return indices, values and shape: each set's numbers in rising order, in the first columns of its row."""
    builder = first.builder
    rank = builder.rank_of(node.input[0], f"the sets of {node.name}")
    operation = node.get_attr_value("set_operation")
    operation = operation.decode() if isinstance(operation, bytes) else operation
    if operation == "b-a":
        first, second = second, first
    groups = first.lengths(range(rank - 1))
    if operation == "union":
        first = concatenated([first, second], rank - 1)
    values = _rising(first)
    is_kept = _is_new(values, rank)
    if operation != "union":
        there = _is_among(values, second)
        is_kept = is_kept & (there if operation == "intersection" else there.negated())
    column = builder.node("CumSum", [is_kept.cast(INTEGER), builder.integers(rank - 1)], INTEGER) - 1
    places = builder.node("NonZero", [is_kept], INTEGER).transpose([1, 0])
    columns = builder.node("GatherND", [column, places], INTEGER).reshape([-1, 1])
    rows = places.take(builder.integers(list(range(rank - 1))), 1)
    found = builder.node("GatherND", [values, places], values.dtype)
    sizes = concatenated([builder.integers([0]), column.reshape([-1]) + 1])
    largest = reduce("ReduceMax", sizes, [0])
    return [concatenated([rows, columns], 1), found, join(builder, [*groups, largest])]


def _rising(values: Tensor) -> Tensor:
    """Return numbers sorted along the last axis."""
    # What ONNX Runtime sorts; each holds every number of the types that it stands in for.
    data = values.cast(np.int64 if values.dtype.kind in "iu" else values.dtype)
    found, _ = extremes(data, data.lengths([-1])[0], largest=False)
    return found.cast(values.dtype)


def _is_new(values: Tensor, rank: int) -> Tensor:
    """Whether each number of rising ones is another than the one before."""
    first, before, behind = (values.part(start, end, rank - 1) for start, end in ((0, 1), (0, -1), (1, END)))
    return concatenated([first.equal(first), behind.equal(before).negated()], rank - 1)


def _is_among(values: Tensor, others: Tensor) -> Tensor:
    """Whether each number is one of the others in its row."""
    each = values.unsqueeze([-1])
    same = each.equal(others.unsqueeze([-2])).cast(INTEGER)
    # A column that never matches, so that there is one to reduce where the others are none.
    never = each.equal(each).negated().cast(INTEGER)
    return reduce("ReduceSum", concatenated([same, never], -1), [-1]).greater(0)
