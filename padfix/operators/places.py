"""Indices: how many there are, and whether they count from the end, as what computes them may give less than 0."""

from __future__ import annotations

import math
from collections.abc import Sequence

from onnx import NodeProto, TensorProto

from padfix.graph import attributes
from padfix.graph.scopes import Scope
from padfix.operators.clip import clip_bounds
from padfix.operators.constant_chains import is_constant, worked_out
from padfix.operators.integer_ranges import divisor_left_of
from padfix.operators.window import Shape

_COUNTING = frozenset(
    "Abs ArgMax ArgMin Exp NonMaxSuppression NonZero Relu Shape Sigmoid Size Softmax Sqrt".split()  # noqa: SIM905
)
"""Operators that give nothing below 0, whatever they are given: positions, lengths and magnitudes."""

_POSITIONS_APART = {"MaxPool": (1,), "TopK": (1,), "Unique": (1, 2, 3)}
"""Operators that give positions beside values, and which of their results are these."""

_MOVING = frozenset(
    """
    Cast Ceil Compress Expand Flatten Floor Gather GatherElements GatherND Identity Reshape Round Slice Split Squeeze
    Tile Transpose Unsqueeze
    """.split()  # noqa: SIM905
)
"""Operators that give no other numbers than those of their first input, or the whole numbers next to these."""

_KEEPING = {
    **dict.fromkeys(("Add", "Concat", "Div", "Max", "Mean", "Min", "Mul", "Sum"), None),
    "CumSum": (0,),
    "Pow": (0,),
    "Range": (0, 2),
    "ReduceMax": (0,),
    "ReduceMin": (0,),
    "ReduceSum": (0,),
    "ScatterElements": (0, 2),
    "ScatterND": (0, 2),
    "Where": (1, 2),
}
"""Operators that give nothing below 0 where nothing below 0 is in these of their inputs, or in any."""

_MOST_STEPS = 16
"""Operators on a path from what computes indices to what reads them that are looked at."""


def may_count_from_end(scope: Scope, name: str) -> bool:
    """Whether indices are computed, and by nothing that gives none below 0."""
    return not is_constant(scope, name) and _may_be_below_zero(scope, name, _MOST_STEPS, {})


def _may_be_below_zero(scope: Scope, name: str, steps: int, seen: dict[str, bool]) -> bool:
    """Whether a value may hold a number below 0, as far as ``steps`` operators before it tell."""
    if name not in seen:
        seen[name] = True  # for a path that is too long
        seen[name] = _is_below_zero(scope, name, steps, seen)
    return seen[name]


def _added_to_its_rest(scope: Scope, node: NodeProto) -> str:
    """Return what a sum adds to the rest of a division by just that, which is nearer to 0; nothing of others."""
    for rest, divisor in (node.input, reversed(node.input)):
        maker = scope.own_producer(rest)
        if maker is not None and maker.op_type == "Sub" and divisor_left_of(scope, maker) == divisor:
            return str(divisor)
    return ""


def _is_below_zero(scope: Scope, name: str, steps: int, seen: dict[str, bool]) -> bool:
    known, producer, told = scope.type_of(name), scope.producer(name), worked_out(scope, name)
    if told is not None:
        return told.dtype.kind not in "biuf" or bool((told < 0).any())
    if known is not None and known.elem_type in (TensorProto.BOOL, TensorProto.UINT8, TensorProto.UINT16):
        return False
    if producer is None or not steps:
        return True

    def below(read: str) -> bool:
        return _may_be_below_zero(scope, read, steps - 1, seen)

    kind, given = producer.op_type, [each for each in producer.input if each]
    if known is not None and known.elem_type in (TensorProto.INT32, TensorProto.INT64):
        if kind == "Sub" and divisor_left_of(scope, producer):
            return below(given[0])  # what is left of a division has the sign of what is divided
        if kind == "Add" and (divisor := _added_to_its_rest(scope, producer)):
            return below(divisor)
    if kind in _COUNTING or list(producer.output).index(name) in _POSITIONS_APART.get(kind, ()):
        return False
    if kind == "Mod":
        return attributes.integer(producer, "fmod", 0) != 0 or below(given[1])
    if kind == "Max":
        return all(below(each) for each in given)
    if kind == "Clip":
        return below(given[0]) and clip_bounds(scope, producer)[0] < 0
    if kind in _MOVING:
        return below(given[0])
    if kind not in _KEEPING:
        return True
    places = _KEEPING[kind]
    read = given if places is None else [given[place] for place in places if place < len(given)]
    return any(below(each) for each in read)


def picks_many_planes(shapes: Sequence[Shape | None]) -> bool | None:
    """Whether more than 64 tuples each pick what has two axes or more; None where that is not known."""
    data, indices = shapes[:2]
    length = None if not indices else indices[-1]
    if data is None or indices is None or not isinstance(length, int):
        return None
    if len(data) - length < _AXES_OF_PLANES:
        return False
    lengths = [each for each in indices[:-1] if isinstance(each, int)]
    return math.prod(lengths) > _MANY_TUPLES if len(lengths) == len(indices) - 1 else None


_AXES_OF_PLANES = 2

_MANY_TUPLES = 64
"""Tuples by which GatherND picks rightly on every runtime tried."""
