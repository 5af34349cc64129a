"""Diagonals of matrices: MatrixDiagPart, MatrixDiag and MatrixSetDiag in their three versions, and MatrixBandPart;
Diag and DiagPart, the main diagonal of what all axes together make.

tf2onnx goes through diagonals in loops whose inner shapes ONNX Runtime can't tell where the band is an input, and loses
the axis of a batch of unknown length. Here each element's place is computed as TensorFlow's documentation defines it,
and all are gathered at once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from padfix.sources.tf_ops.tensor import END, INTEGER, Builder, Tensor, concatenated, count_up

_KINDS = ("MatrixDiagPart", "MatrixDiag", "MatrixSetDiag")
OPERATORS = (
    "MatrixBandPart",
    "Diag",
    "DiagPart",
    *(f"{kind}{version}" for kind in _KINDS for version in ("", "V2", "V3")),
)

_RIGHT = "RIGHT"


def convert(builder: Builder, node: Any) -> Tensor:
    """Return the diagonals of matrices, or matrices with given diagonals."""
    kind = node.type.removesuffix("V2").removesuffix("V3")
    data, *others = (builder.read(name) for name in node.input)
    rank = builder.rank_of(node.input[0], f"what {node.name} reads")
    if kind in ("Diag", "DiagPart"):
        return _whole(node, data, rank)
    if kind == "MatrixBandPart":
        return _banded(data, rank, others)
    if kind == "MatrixDiagPart":
        return _part(node, data, rank, others)
    if kind == "MatrixDiag":
        return _matrices(node, data, rank, others)
    return _exchanged(node, data, rank, others)


@dataclass(frozen=True)
class _Band:
    """The diagonals ``low`` to ``high`` of matrices of ``rows`` by ``columns``, each of ``longest`` places."""

    low: Tensor
    high: Tensor
    rows: Tensor
    columns: Tensor
    longest: Tensor
    sides: tuple[str, str]

    def offset(self, diagonal: Tensor) -> Tensor:
        """Return how many places of a row of diagonals come before each diagonal's own."""
        builder = self.low.builder
        length = (self.columns - diagonal.maximum(0)).minimum(self.rows + diagonal.minimum(0))
        above, below = (builder.constant(side == _RIGHT, bool) for side in self.sides)
        is_right = (above & diagonal.less(0).negated()) | (below & diagonal.greater(0).negated())
        return builder.choose(is_right, self.longest - length, 0)

    def places(self) -> tuple[Tensor, Tensor, Tensor]:
        """Return for each element of a matrix whether it is in the band, and its row and place there."""
        builder = self.low.builder
        row = count_up(builder, self.rows, INTEGER).unsqueeze([1])
        diagonal = count_up(builder, self.columns, INTEGER).unsqueeze([0]) - row
        is_inside = diagonal.less(self.low).negated() & diagonal.greater(self.high).negated()
        place = row - (diagonal * -1).maximum(0) + self.offset(diagonal)
        return is_inside, self.high - diagonal, place


def _bounds(given: Tensor | None, data: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return the lowest and the highest diagonal, and 1 where they are several, which then have an axis, or else 0."""
    builder = data.builder
    if given is None:
        return builder.integers(0), builder.integers(0), builder.integers(0)
    ends = given.cast(INTEGER).reshape([-1])
    low, high = ends.take(0), ends.take(-1)
    shape = builder.ctx.get_shape(given.name)
    if shape is not None and np.prod(shape) == 1:
        return low, low, builder.integers(0)
    return low, high, low.equal(high).negated().cast(INTEGER)


def _sides(node: Any) -> tuple[str, str]:
    """Return the side at which diagonals above and below the main one begin."""
    said = node.get_attr_value("align", b"LEFT_LEFT" if node.type.endswith("V2") else b"RIGHT_LEFT")
    above, below = (said.decode() if isinstance(said, bytes) else said).split("_")
    return above, below


def _whole(node: Any, data: Tensor, rank: int) -> Tensor:
    """Return the one matrix whose diagonal ``data`` is, or the diagonal of the one matrix that it is."""
    shape = data.shape()
    if node.type == "Diag":
        made, lengths = _matrices(node, data.reshape([-1]), 1, []), [shape, shape]
    else:
        half = shape.part(0, rank // 2, 0)
        count = data.builder.node("ReduceProd", [half], INTEGER, {"keepdims": 0})
        made, lengths = _part(node, data.reshape([count, count]), 2, []), [half]
    return made.shaped(*lengths)


def _part(node: Any, data: Tensor, rank: int, others: list[Tensor]) -> Tensor:
    builder = data.builder
    low, high, axes = _bounds(others[0] if others else None, data)
    rows, columns = data.lengths([rank - 2, rank - 1])
    longest = (rows + high.minimum(0)).minimum(columns - low.maximum(0))
    band = _Band(low, high, rows, columns, longest, _sides(node))
    number = high - low + 1
    diagonal = (high - count_up(builder, number, INTEGER)).unsqueeze([1])
    along = count_up(builder, longest, INTEGER) - band.offset(diagonal)
    row, column = along + (diagonal * -1).maximum(0), along + diagonal.maximum(0)
    is_there = row.less(0).negated() & row.less(rows) & column.less(0).negated() & column.less(columns)
    filler = others[1] if len(others) > 1 else _zero(data)
    found = _gathered(_flat(data, builder.integers(rank - 2)), is_there, row * columns + column, filler)
    batch = data.shape().part(0, rank - 2, 0)
    return found.shaped(batch, number.reshape([1]).part(0, axes, 0), longest.reshape([1]))


def _matrices(node: Any, data: Tensor, rank: int, others: list[Tensor]) -> Tensor:
    builder = data.builder
    low, high, axes = _bounds(others[0] if others else None, data)
    (longest,) = data.lengths([rank - 1])
    fewest_rows, fewest_columns = longest - high.minimum(0), longest + low.maximum(0)
    rows, columns = (each.cast(INTEGER).reshape([]) for each in others[1:3]) if len(others) > 2 else (None, None)
    rows, columns = rows or builder.integers(-1), columns or builder.integers(-1)
    square = fewest_rows.maximum(fewest_columns)
    is_free = rows.less(0) & columns.less(0)
    rows, columns = (
        builder.choose(is_free, square, builder.choose(given.less(0), fewest, given))
        for given, fewest in ((rows, fewest_rows), (columns, fewest_columns))
    )
    band = _Band(low, high, rows, columns, longest, _sides(node))
    is_inside, place_row, place = band.places()
    filler = others[3] if len(others) > 3 else _zero(data)
    flat = _flat(data, axes * -1 + (rank - 1))
    return _gathered(flat, is_inside, place_row * longest + place, filler)


def _banded(data: Tensor, rank: int, others: list[Tensor]) -> Tensor:
    """Return the matrices with zeros outside of a band; a number below zero is no limit."""
    builder = data.builder
    rows, columns = (count_up(builder, length, INTEGER) for length in data.lengths([rank - 2, rank - 1]))
    below = rows.unsqueeze([1]) - columns.unsqueeze([0])
    limits = [each.cast(INTEGER) for each in others]
    is_kept = [
        limit.less(0) | distance.greater(limit).negated()
        for limit, distance in zip(limits, (below, below * -1), strict=True)
    ]
    return builder.choose(is_kept[0] & is_kept[1], data, 0)


def _exchanged(node: Any, data: Tensor, rank: int, others: list[Tensor]) -> Tensor:
    builder, diagonals = data.builder, others[0]
    low, high, _ = _bounds(others[1] if len(others) > 1 else None, data)
    rows, columns = data.lengths([rank - 2, rank - 1])
    longest = diagonals.shape().take(-1)
    band = _Band(low, high, rows, columns, longest, _sides(node))
    is_inside, place_row, place = band.places()
    before = builder.integers(rank - 2)
    either = concatenated([_flat(diagonals, before), _flat(data, before)], rank - 2)
    number = longest * (high - low + 1)
    own = count_up(builder, rows * columns, INTEGER).reshape([rows, columns])
    return either.take(builder.choose(is_inside, place_row * longest + place, own + number), rank - 2)


def _gathered(flat: Tensor, is_there: Tensor, index: Tensor, filler: Tensor) -> Tensor:
    """Return elements of the last axis, and the filler where there is none."""
    builder = flat.builder
    shape = flat.shape()
    ones = concatenated([shape.part(0, -1, 0), builder.integers([1])])
    both = concatenated([flat, filler.cast(flat.dtype).expand(ones)], -1)
    return both.take(builder.choose(is_there, index, shape.take(-1)), -1)


def _flat(data: Tensor, kept: Tensor) -> Tensor:
    """Return all axes behind the first ``kept`` as one."""
    shape = data.shape()
    count = data.builder.node("ReduceProd", [shape.part(kept, END, 0)], INTEGER, {"keepdims": 1})
    return data.shaped(shape.part(0, kept, 0), count)


def _zero(data: Tensor) -> Tensor:
    return data.builder.constant(0, data.dtype)
