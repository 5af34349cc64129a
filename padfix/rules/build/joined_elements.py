"""What joins elements at places that data tell, as a graph's nodes add up what their edges bring.

Rows are added by a product with a matrix that is 1 where a row of the data and an update have the same place. What is
joined otherwise is compared place by place, and reduced.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from onnx import NodeProto, TensorProto, helper

from padfix.graph import attributes
from padfix.graph.lengths import filled
from padfix.graph.scopes import Dimension, normal_domain
from padfix.operators.refusal import Refusal
from padfix.rules.base import Rewrite, Site, TrialInput
from padfix.rules.build.elementary_forms import reduced, reduction_traits
from padfix.rules.build.forms import Form
from padfix.rules.build.node_trials import as_declared
from padfix.rules.build.objections import Operators

if TYPE_CHECKING:
    from padfix.graph.fragment_builder import FragmentBuilder, Value

_MOST = 1 << 24
"""Places that floats tell apart, and elements that are compared, as far as lengths are known."""

_TRIED = 5
"""In place of a length that is left open, where a form is tried."""

JOINS = {
    "add": ("Add", "ReduceSum"),
    "mul": ("Mul", "ReduceProd"),
    "max": ("Max", "ReduceMax"),
    "min": ("Min", "ReduceMin"),
}
"""By what is joined: the operator on two, and that on many."""

_FLOAT = int(TensorProto.FLOAT)

_NO_LENGTHS = Refusal("it needs the lengths of its data (--shape)")


def neutral(reduction: str, elem_type: int) -> np.ndarray:
    """Return the number that changes nothing that it is joined with."""
    dtype = np.dtype(helper.tensor_dtype_to_np_dtype(elem_type))
    if reduction in ("add", "mul"):
        return np.array(0 if reduction == "add" else 1, dtype)
    ends = (-np.inf, np.inf) if dtype.kind == "f" else (np.iinfo(dtype).min, np.iinfo(dtype).max)
    return np.array(ends[reduction == "min"], dtype)


def joined_forms(site: Site) -> Iterator[Form]:
    """Yield rows that are added by a product, and rows and elements that are joined place by place."""
    if (site.text("reduction", "none") or "none") in JOINS:
        rows = _rows(site)
        yield _by_product(site, rows)
        yield _row_by_row(site, rows)
        if site.node.op_type == "ScatterElements":
            yield _by_elements(site)


@dataclass(frozen=True)
class _Rows:
    """Data as the rows of a matrix, and which of them each update is for.

    Attributes:
        lengths: Of the data.
        order: The axes of the data with those along which rows are counted first.
        counted: How many these are.
        updates: How many updates there are; 1 where that is not known.
        places: The name of what tells the row of each update: one number, or one for each axis that is counted.
        spread: The Expand that copies the places along rows, which goes.
    """

    lengths: tuple[int, ...]
    order: tuple[int, ...]
    counted: int
    updates: int
    places: str
    spread: NodeProto | None = None

    @property
    def bounds(self) -> tuple[int, ...]:
        """The lengths along which rows are counted."""
        return tuple(self.lengths[axis] for axis in self.order[: self.counted])

    @property
    def number(self) -> int:
        """How many rows there are."""
        return math.prod(self.bounds)

    @property
    def width(self) -> int:
        """Elements of a row."""
        return math.prod(self.lengths) // self.number

    @property
    def moves(self) -> Operators:
        """What lays the data out so."""
        turned: Operators = () if self.order == tuple(range(len(self.order))) else (("Transpose", {}),)
        return (*turned, ("Reshape", {"rank": 2}), ("Reshape", {"rank": len(self.lengths)}))

    def laid_out(self, builder: FragmentBuilder, value: Value, *, first: int) -> Value:
        """Return data or updates as a matrix of so many rows."""
        if self.order != tuple(range(len(self.order))):
            value = builder.op("Transpose", [value], {"perm": list(self.order)})
        return builder.reshaped(value, [first, self.width])

    def back(self, builder: FragmentBuilder, value: Value) -> Value:
        """Return a matrix as data were before."""
        value = builder.reshaped(value, [self.lengths[axis] for axis in self.order])
        if self.order == tuple(range(len(self.order))):
            return value
        return builder.op("Transpose", [value], {"perm": [self.order.index(axis) for axis in range(len(self.order))]})

    def row_of_each(self, builder: FragmentBuilder, told: np.ndarray | None) -> Value:
        """Return which row each update is for, a list of floats; ``told`` are constant places."""
        strides = np.array([math.prod(self.bounds[axis + 1 :]) for axis in range(self.counted)])
        if told is not None:
            listed = told.reshape(-1, self.counted)
            counted = np.where(listed < 0, listed + np.array(self.bounds), listed)
            return builder.constant((counted * strides).sum(-1).astype(np.float32), "rows")
        places = builder.op("Cast", [builder.input(self.places)], {"to": _FLOAT})
        if self.counted == 1:
            return builder.reshaped(_from_first(builder, places, self.bounds[0]), [-1])
        counted = _from_first(builder, builder.reshaped(places, [-1, self.counted]), self.bounds)
        weighed = builder.op("Mul", [counted, builder.constant(strides.astype(np.float32), "strides")])
        return reduced(builder, "ReduceSum", weighed, [1], kept=False)


def _rows(site: Site) -> _Rows | Refusal:
    data, indices, updates = (site.input_type(place) for place in range(3))
    lengths = None if data is None else data.lengths
    listed = None if indices is None else indices.shape
    if not lengths or 0 in lengths or not listed or updates is None or updates.shape is None:
        return _NO_LENGTHS
    known = math.prod(each for each in listed if isinstance(each, int))
    if site.node.op_type == "ScatterND":
        counted = listed[-1]
        if not isinstance(counted, int) or not 0 < counted <= len(lengths):
            return Refusal("along how many axes its places count is not known")
        return _Rows(lengths, tuple(range(len(lengths))), counted, known // counted, site.node.input[1])
    axis = (attributes.integer(site.node, "axis", 0) or 0) % len(lengths)
    others = [each for each in range(len(lengths)) if each != axis]
    source, spread = _one_a_row(site, listed, others)
    if not source or any(lengths[each] != updates.shape[each] for each in others):
        return Refusal("its updates are not of whole rows, or may be of several")
    length = listed[axis]
    return _Rows(lengths, (axis, *others), 1, length if isinstance(length, int) else 1, source, spread)


def _one_a_row(site: Site, listed: Sequence[Dimension], others: Sequence[int]) -> tuple[str, NodeProto | None]:
    """Return what tells one place for each row, and the Expand that copies it along rows; nothing where none does."""
    name = site.node.input[1]
    if all(listed[each] == 1 for each in others):
        return name, None
    spread = site.scope.own_producer(name)
    if spread is None or spread.op_type != "Expand" or normal_domain(spread.domain):
        return "", None
    known = site.scope.type_of(spread.input[0])
    shape = () if known is None or known.shape is None else known.shape
    whole = (*[1] * (len(listed) - len(shape)), *shape)
    is_row = bool(shape) and len(whole) == len(listed) and all(whole[each] == 1 for each in others)
    # What is copied along the rows as well is one place for all of them.
    along = next(axis for axis in range(len(listed)) if axis not in others)
    return (spread.input[0], spread) if is_row and whole[along] == listed[along] else ("", None)


def _by_product(site: Site, rows: _Rows | Refusal) -> Form:
    """Return rows that are added as a product with a matrix of 0 and 1."""
    why_not = rows if isinstance(rows, Refusal) else _too_many(rows.number * rows.updates)
    if site.text("reduction") != "add" or site.elem_type(0) != _FLOAT:
        why_not = Refusal("it adds no floats of 32 bits")

    def write() -> Rewrite:
        assert isinstance(rows, _Rows)
        builder = site.builder()
        row = builder.reshaped(rows.row_of_each(builder, site.constant(1)), [1, -1])
        column = builder.constant(np.arange(rows.number, dtype=np.float32)[:, None], "places")
        distance = builder.op("Abs", [builder.op("Sub", [row, column])])
        matrix = builder.op("Relu", [builder.op("Sub", [builder.constant(np.array(1, np.float32), "one"), distance])])
        return _written(site, rows, builder, builder.op("MatMul", [matrix, _updates(site, rows, builder)]))

    parts: Operators = tuple((each, {"rank": 2}) for each in ("Sub", "Abs", "Relu", "MatMul"))
    joined = ("Add", {"inputs": 2, "broadcasts": False})
    operators: Operators = (*_PLACING, *parts, joined, *(() if isinstance(rows, Refusal) else rows.moves))
    return Form("rows added by a product with 0 and 1", operators, write, why_not)


def _row_by_row(site: Site, rows: _Rows | Refusal) -> Form:
    """Return rows that are joined with all updates of their place."""
    why_not = rows if isinstance(rows, Refusal) else _too_many(rows.number * rows.width * rows.updates)

    def write() -> Rewrite:
        assert isinstance(rows, _Rows)
        builder = site.builder()
        row = builder.reshaped(rows.row_of_each(builder, site.constant(1)), [1, -1, 1])
        column = np.arange(rows.number, dtype=np.float32)[:, None, None]
        updates = builder.unsqueezed(_updates(site, rows, builder), 0)
        return _written(site, rows, builder, _reduced(site, builder, row, column, updates, 1))

    moves: Operators = () if isinstance(rows, Refusal) else rows.moves
    return Form("rows joined place by place", (*_comparing(site, 3), *moves), write, why_not)


def _by_elements(site: Site) -> Form:
    """Return elements that are joined with all updates of their place along an axis."""
    known, listed = site.input_type(0), site.input_type(1)
    lengths = () if known is None or known.shape is None else known.shape
    shape = () if listed is None or listed.shape is None else listed.shape
    axis = (attributes.integer(site.node, "axis", 0) or 0) % max(len(lengths), 1)
    number = lengths[axis] if lengths else None
    is_whole = len(lengths) == len(shape) and all(
        lengths[each] == shape[each] for each in range(len(shape)) if each != axis
    )
    if not is_whole or not isinstance(number, int):
        why_not: Refusal | None = Refusal("it needs the length of its axis (--shape), and updates of all its rows")
    else:
        why_not = _too_many(number * math.prod(each for each in shape if isinstance(each, int)))

    def write() -> Rewrite:
        assert isinstance(number, int)
        builder = site.builder()
        data, places, updates = (builder.input(name) for name in site.node.input)
        counted = _from_first(builder, builder.op("Cast", [places], {"to": _FLOAT}), number)
        column = np.arange(number, dtype=np.float32).reshape([-1, *[1] * (len(lengths) - axis)])
        given = [builder.unsqueezed(each, axis) for each in (counted, updates)]
        join, _ = JOINS[site.text("reduction")]
        joined = builder.op(join, [data, _reduced(site, builder, given[0], column, given[1], axis + 1)])
        builder.output(site.node.output[0], joined)
        return Rewrite(builder.build(), (_with_places(site, dict(as_declared(site, _TRIED)), [number]),))

    return Form("elements joined place by place", _comparing(site, len(lengths) + 1), write, why_not)


def _too_many(number: int) -> Refusal | None:
    return Refusal("it would compare too many elements") if number > _MOST else None


_PLACING: Operators = (
    ("Cast", {"numbers": "integer", "elements": "integer", "unsigned": False, "gives": "single"}),
    *((each, {}) for each in ("Neg", "Sign", "Relu", "Add", "Mul")),
)
"""What makes floats of places, counted from the first element."""


def _comparing(site: Site, rank: int) -> Operators:
    """Return what compares places, and reduces what is joined."""
    join, reduce = JOINS[site.text("reduction")]
    own = {} if site.elem_type(0) == _FLOAT else {"numbers": "integer", "elements": "integer"}
    return (
        *_PLACING,
        *((each, {"rank": rank}) for each in ("Sub", "Abs")),
        ("Greater", {"rank": rank, "constants": "number"}),
        ("Where", {"broadcasts": False, **own}),
        (reduce, {**reduction_traits(reduce, site.opset, [1]), "rank": rank, "axes": rank, **own}),
        (join, {"inputs": 2, "broadcasts": False, **own}),
    )


def _reduced(
    site: Site, builder: FragmentBuilder, places: Value, column: np.ndarray, updates: Value, axis: int
) -> Value:
    """Return for each place what its updates are joined to, along an axis of all updates."""
    reduction = site.text("reduction")
    distance = builder.op("Abs", [builder.op("Sub", [places, builder.constant(column, "places")])])
    nearness = builder.op("Sub", [builder.constant(np.array(1, np.float32), "one"), distance])
    near = builder.op("Greater", [nearness, builder.constant(np.array(0.5, np.float32), "half")])
    nothing = builder.constant(neutral(reduction, site.elem_type(0)), "neutral")
    return reduced(builder, JOINS[reduction][1], builder.op("Where", [near, updates, nothing]), [axis], kept=False)


def _from_first(builder: FragmentBuilder, places: Value, bounds: int | Sequence[int]) -> Value:
    """Return places, floats by now, that all count from the first element."""
    below = builder.op("Relu", [builder.op("Sign", [builder.op("Neg", [places])])])
    return builder.op(
        "Add", [places, builder.op("Mul", [below, builder.constant(np.array(bounds, np.float32), "bounds")])]
    )


def _updates(site: Site, rows: _Rows, builder: FragmentBuilder) -> Value:
    return rows.laid_out(builder, builder.input(site.node.input[2]), first=-1)


def _written(site: Site, rows: _Rows, builder: FragmentBuilder, joined: Value) -> Rewrite:
    """Return the data joined with a matrix of what there is for each of its rows."""
    data = rows.laid_out(builder, builder.input(site.node.input[0]), first=rows.number)
    join, _ = JOINS[site.text("reduction")]
    builder.output(site.node.output[0], rows.back(builder, builder.op(join, [data, joined])))
    trial = dict(as_declared(site, _TRIED))
    spread = rows.spread
    if spread is None:
        return Rewrite(builder.build(), (_with_places(site, trial, rows.bounds),))
    shape = trial.pop(spread.output[0]).shape
    known = site.scope.type_of(spread.input[0])
    assert known is not None
    trial[spread.input[0]] = TrialInput(filled(known.shape, _TRIED), known.elem_type)
    told = site.scope.constant(spread.input[1])
    lengths = TrialInput.of(np.array(shape, np.int64), constant=False) if told is None else TrialInput.of(told)
    trial[spread.input[1]] = lengths
    return Rewrite(builder.build(), (_with_places(site, trial, rows.bounds, spread.input[0]),), replaces=(spread,))


def _with_places(
    site: Site, trial: dict[str, TrialInput], bounds: Sequence[int], name: str = ""
) -> dict[str, TrialInput]:
    """Return a trial with places within bounds, some of them alike, and some that count from the end."""
    name = name or site.node.input[1]
    given = trial[name]
    if not given.constant:
        dtype = helper.tensor_dtype_to_np_dtype(given.elem_type)
        ends = np.array(bounds) if len(bounds) > 1 else np.array(bounds[0])
        places = np.random.default_rng(0).integers(-ends, ends, given.shape).astype(dtype)
        trial[name] = TrialInput.of(places, constant=False)
    return trial
