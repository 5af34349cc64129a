"""Sets: DenseToDenseSetOperation (``tf.sets``) and ListDiff (``tf.compat.v1.setdiff1d``).

tf2onnx writes the first for differences only, and what it writes can't be run where nothing is left.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from padfix.sources.tf_ops.tensor import INTEGER, Builder, Tensor, join
from padfix.sources.tf_ops.windows import reduce

OPERATORS = ("DenseToDenseSetOperation", "ListDiff")

_TRUE = np.dtype(np.bool_)


def convert(builder: Builder, node: Any) -> list[Tensor]:
    """Return what is left: of sets as a sparse tensor, of lists with their positions."""
    first, second = (builder.read(name) for name in node.input)
    if first.dtype.kind not in "iuf":
        raise ValueError(f"{node.name} holds text, which ONNX can't sort")
    if node.type == "ListDiff":
        return _list_difference(node, first, second)
    return _set_operation(node, first, second)


def _list_difference(node: Any, x: Tensor, y: Tensor) -> list[Tensor]:
    from tf2onnx import utils

    builder = x.builder
    kept = builder.node("NonZero", [_is_among(x, y).negated()], INTEGER).reshape([-1])
    index_type = utils.map_onnx_to_numpy_type(builder.ctx.get_dtype(node.output[1]))
    return [x.take(kept), kept.cast(index_type)]


def _set_operation(node: Any, first: Tensor, second: Tensor) -> list[Tensor]:
    """Return indices, values and shape: each set's numbers in rising order, in the first columns of its row."""
    builder = first.builder
    rank = builder.ctx.get_rank(node.input[0])
    if rank is None:
        raise ValueError(f"the number of axes of the sets of {node.name} is not known")
    operation = node.get_attr_value("set_operation")
    operation = operation.decode() if isinstance(operation, bytes) else operation
    if operation == "b-a":
        first, second = second, first
    groups = first.lengths(range(rank - 1))
    if operation == "union":
        first = builder.node("Concat", [first, second], first.dtype, {"axis": rank - 1})
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
    sizes = builder.node("Concat", [builder.integers([0]), column.reshape([-1]) + 1], INTEGER, {"axis": 0})
    largest = reduce("ReduceMax", sizes, [0])
    indices = builder.node("Concat", [rows, columns], INTEGER, {"axis": 1})
    return [indices, found, join(builder, [*groups, largest])]


def _rising(values: Tensor) -> Tensor:
    """Return numbers sorted along the last axis."""
    from tf2onnx import utils

    builder = values.builder
    # What ONNX Runtime sorts; each holds every number of the types that it stands in for.
    wide = np.dtype(np.int64) if values.dtype.kind in "iu" else values.dtype
    data = values.cast(wide)
    count = data.lengths([-1])[0].reshape([1])
    types = [utils.map_numpy_to_onnx_dtype(wide), utils.map_numpy_to_onnx_dtype(INTEGER)]
    node = builder.ctx.make_node(
        "TopK", [data.name, count.name], {"axis": -1, "largest": 0, "sorted": 1}, output_count=2, dtypes=types
    )
    return Tensor(builder, wide, name=str(node.output[0])).cast(values.dtype)


def _is_new(values: Tensor, rank: int) -> Tensor:
    """Whether each number of rising ones is another than the one before."""
    builder = values.builder
    last = [builder.integers([rank - 1])]
    behind = builder.node("Slice", [values, builder.integers([1]), builder.integers([2**31 - 1]), *last], values.dtype)
    before = builder.node("Slice", [values, builder.integers([0]), builder.integers([-1]), *last], values.dtype)
    is_first = builder.node("Slice", [values, builder.integers([0]), builder.integers([1]), *last], values.dtype)
    parts = [is_first.equal(is_first), behind.equal(before).negated()]
    return builder.node("Concat", parts, _TRUE, {"axis": rank - 1})


def _is_among(values: Tensor, others: Tensor) -> Tensor:
    """Whether each number is one of the others in its row."""
    builder, each = values.builder, values.unsqueeze([-1])
    same = each.equal(others.unsqueeze([-2])).cast(INTEGER)
    # A column that never matches, so that there is one to reduce where the others are none.
    never = each.equal(each).negated().cast(INTEGER)
    columns = builder.node("Concat", [same, never], INTEGER, {"axis": -1})
    return reduce("ReduceSum", columns, [-1]).greater(0)
