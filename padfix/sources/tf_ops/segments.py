"""Sums, products, means, maxima and minima over the rows that have the same segment number.

tf2onnx divides by zero where a segment is empty, gives infinities for its maximum, counts the negative numbers that
TensorFlow leaves out, and lacks integers. Here rows are scattered into a start value, one element after the other: ONNX
Runtime's ScatterElements goes through the rows in order, where its ScatterND lets threads race for a row.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from padfix.sources.tf_ops.tensor import END, INTEGER, Builder, Tensor, concatenated, filled
from padfix.sources.tf_ops.windows import lowest

_SORTED = ("SegmentSum", "SegmentProd", "SegmentMean", "SegmentMax", "SegmentMin")
_UNSORTED = ("UnsortedSegmentSum", "UnsortedSegmentProd", "UnsortedSegmentMax", "UnsortedSegmentMin")
_SPARSE = ("SparseSegmentSum", "SparseSegmentMean", "SparseSegmentSqrtN")
_COUNTED = tuple(f"{name}WithNumSegments" for name in _SPARSE)
OPERATORS = (*_SORTED, *_UNSORTED, *_SPARSE, *_COUNTED)

_REDUCTIONS: dict[str, tuple[str, Callable[[np.dtype[Any]], Any]]] = {
    "Prod": ("mul", lambda dtype: 1),
    "Max": ("max", lowest),
    "Min": ("min", lambda dtype: np.iinfo(dtype).max if dtype.kind in "iu" else np.finfo(dtype).max),
}
"""The reduction of a scatter, and what an empty segment starts with, by operator; the others add to zero."""


def convert(builder: Builder, node: Any) -> Tensor:
    """Return one row for each segment."""
    kind = node.type.removesuffix("WithNumSegments")
    name = kind.removeprefix("Unsorted").removeprefix("Sparse").removeprefix("Segment")
    data, *others = (builder.read(given) for given in node.input)
    if kind in _UNSORTED:
        rows, numbers, count = _flat(node, data, others[0].cast(INTEGER), others[1])
        # TensorFlow leaves rows with a negative number out; here they are gathered in a segment more, which is cut off.
        numbers = builder.choose(numbers.less(0), count, numbers)
        return _scattered(name, rows, numbers, count + 1).part(0, count, 0)
    if kind in _SPARSE:
        data = data.take(others.pop(0).cast(INTEGER))
    numbers = others[0].cast(INTEGER)
    count = others[1].cast(INTEGER).reshape([1]) if node.type in _COUNTED else _number_of(numbers)
    result = _scattered(name, data, numbers, count)
    if name in ("Mean", "SqrtN", "Max", "Min"):
        result = _settled(name, data, result, numbers, count)
    return result


def _flat(node: Any, data: Tensor, numbers: Tensor, count: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return rows, their numbers [rows], and the number of segments [1]."""
    builder = data.builder
    rank, axes = (builder.rank_of(name, f"the inputs of {node.name}") for name in node.input[:2])
    rows = data if axes == 1 else data.reshape([-1, *data.lengths(range(axes, rank))])
    return rows, numbers if axes == 1 else numbers.reshape([-1]), count.cast(INTEGER).reshape([1])


def _number_of(numbers: Tensor) -> Tensor:
    """Return how many segments sorted numbers are for: one more than the last, none without any; [1]."""
    builder = numbers.builder
    started = concatenated([builder.integers([-1]), numbers])
    return started.take(builder.integers([-1])) + 1


def _scattered(name: str, rows: Tensor, numbers: Tensor, count: Tensor) -> Tensor:
    builder = rows.builder
    reduction, start = _REDUCTIONS.get(name, ("add", lambda dtype: 0))
    if builder.ctx.opset < (18 if reduction in ("max", "min") else 16):
        raise ValueError("reductions in a scatter need opset 18 for maxima and minima, 16 for sums and products")
    shape = rows.shape()
    whole = concatenated([count, shape.part(1, END, 0)])
    places = beside(numbers, rows).expand(shape)
    return filled(start(rows.dtype), rows.dtype, whole).scattered(places, rows, reduction)


def _settled(name: str, rows: Tensor, result: Tensor, numbers: Tensor, count: Tensor) -> Tensor:
    """Return the result with means divided, and zeros where a segment is empty."""
    builder = rows.builder
    ones = filled(1, rows.dtype, numbers.shape())
    sizes = beside(filled(0, rows.dtype, count).scattered(numbers, ones, "add"), rows)
    if name in ("Max", "Min"):
        return builder.choose(sizes.equal(0), 0, result)
    sizes = builder.choose(sizes.equal(0), 1, sizes)
    return result / (sizes.root() if name == "SqrtN" else sizes)


def beside(numbers: Tensor, rows: Tensor) -> Tensor:
    """Return a number for each row with as many axes as the rows have."""
    builder = rows.builder
    rank = builder.ctx.get_rank(rows.name)
    if rank is not None:
        return numbers.reshape([-1, *[1] * (rank - 1)])
    others = rows.shape().shape() - 1
    shape = concatenated([builder.integers([-1]), filled(1, INTEGER, others)])
    return builder.node("Reshape", [numbers, shape], numbers.dtype)
