"""Whether nothing that a stretch computes is rounded: then the least difference is one.

Operators that compare, pick and move round nothing, nor does the arithmetic of whole numbers. Sums and products of
floats are not rounded either where every number in them is a whole number of some power of two, and not too many of it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from onnx import TensorProto

from padfix.graph import attributes
from padfix.proof.compare import is_real
from padfix.proof.constants import Constants
from padfix.proof.executors import Array
from padfix.proof.graph_view import NodeView

if TYPE_CHECKING:
    from padfix.proof.stretches import Stretch

COMPARING = frozenset(
    {"Clip", "Min", "Max", "Greater", "GreaterOrEqual", "Less", "LessOrEqual", "Equal", "ThresholdedRelu", "Shrink"}
)
ROUNDING = frozenset({"Round", "Floor", "Ceil", "Sign"})
LOGICAL = frozenset({"Not", "And", "Or", "Xor", "Where", "IsNaN", "IsInf"})
MOVING = frozenset(
    {
        "Identity",
        "Reshape",
        "Flatten",
        "Squeeze",
        "Unsqueeze",
        "Transpose",
        "Concat",
        "Slice",
        "Split",
        "Expand",
        "Tile",
    }
)
EXACT = COMPARING - {"Shrink"} | ROUNDING | LOGICAL | MOVING | {"Relu", "Abs", "Neg", "NonMaxSuppression"}
"""Operators whose results are no more rounded than what they read."""

COUNTING = frozenset({"Add", "Sub", "Mul", "Sum", "Abs", "Neg", "Sign", "Min", "Max", "Clip", "Where", "Concat"})
"""Arithmetic of whole numbers, at every input."""

OF_FIRST = MOVING | {"Div", "Mod", "CumSum", "ReduceSum", "ReduceMax", "ReduceMin", "Pad"}
"""Operators whose first input is data; at the others stand sizes, and divisors, which must not be zero."""

LOOKING_UP = frozenset({"LabelEncoder", "OneHotEncoder", "RegexFullMatch", "StringConcat", "StringNormalizer"})
"""Operators of text and whole numbers that give one of some values for each."""

PICKING = frozenset({"Gather", "GatherElements", "GatherND"})

_SUMS = frozenset({"Add", "Sub", "Sum"})

_FINEST = 6
"""Binary places of the numbers that are followed."""

_PLACES = {np.dtype(np.float16): 11, np.dtype(np.float32): 24, np.dtype(np.float64): 53}

_WHOLE: dict[int, int] = {TensorProto.INT32: 31, TensorProto.INT64: 63}

_CASTS: dict[int, int] = {TensorProto.FLOAT: 24, TensorProto.DOUBLE: 53, **_WHOLE}
"""Binary places of the types that are cast to without loss, if these suffice."""

_QUOTIENT = 1000
"""Binary places of the quotient of two whole numbers: its rounding never reaches the next whole number, nor a half."""

_Grid = tuple[int, float, int]
"""How many binary places numbers have, the largest of them, and how many places their type holds."""


def is_exact(
    stretch: Stretch,
    constants: tuple[Constants | None, Constants | None],
    values: Mapping[str, Array],
    expected: Array,
) -> bool:
    """Whether nothing that a stretch gives is rounded, in either model, on the given values."""
    nodes = (*stretch.nodes, *stretch.candidate_nodes)
    if not all(node.is_standard or node.op_type in LOOKING_UP for node in nodes):
        return False
    if all(node.op_type in EXACT | LOOKING_UP for node in nodes):
        return True
    read = [values[name] for name in stretch.above if name in values]
    is_counted = expected.dtype.kind in "iubO" and all(each.dtype.kind in "bO" or is_whole(each) for each in read)
    if is_counted and all(node.op_type in EXACT | COUNTING | OF_FIRST | PICKING | LOOKING_UP for node in nodes):
        return True
    known = {name: values[name] for name in stretch.above if name in values}
    others = {stretch.above[name]: array for name, array in known.items()}
    return _is_on_grids(stretch.nodes, constants[0], known) and _is_on_grids(
        stretch.candidate_nodes, constants[1], others
    )


def is_whole(array: Array) -> bool:
    """Whether an array holds whole numbers that are no quantised ones."""
    return array.dtype.kind in "iu" and array.dtype.itemsize >= 4


def _is_on_grids(nodes: Sequence[NodeView], constants: Constants | None, values: Mapping[str, Array]) -> bool:
    """Whether every number that nodes compute is held by its type as it is."""
    grids = {name: _grid_of(array) for name, array in values.items()}
    for node in nodes:
        for name in node.inputs:
            if name and name not in grids and constants is not None and name in constants:
                array = constants.find(name)
                grids[name] = None if array is None else _grid_of(array)
        read = [grids.get(name) for name in node.inputs if name]
        found = None if None in read else _computed(node, [each for each in read if each is not None])
        if found is None:
            return False
        grids.update((name, found) for name in node.outputs)
    return True


def _computed(node: NodeView, read: Sequence[_Grid]) -> _Grid | None:
    """Return the grid of what a node gives; None where it may be rounded."""
    if not read:
        return None
    finest, largest = max(each for each, _, _ in read), max(size for _, size, _ in read)
    places = min(each for _, _, each in read)
    kind = attributes.integer(node.proto, "to", 0) if node.op_type == "Cast" and node.proto is not None else 0
    if node.op_type in ROUNDING or kind in _WHOLE:
        finest, largest = 0 if finest == _QUOTIENT else finest, largest + 1
    elif finest == _QUOTIENT:
        return None
    elif node.op_type == "Div":
        # Integers drop what is left; quotients of floats are told apart from whole numbers and halves up to this size.
        if finest or largest >= 2.0 ** (places - 1):
            return None
        return (0 if places in _WHOLE.values() else _QUOTIENT), largest, places
    elif node.op_type in _SUMS:
        largest = sum(size for _, size, _ in read)
    elif node.op_type == "Mul":
        finest, largest = sum(each for each, _, _ in read), float(np.prod([size for _, size, _ in read]))
    elif node.op_type != "Cast" and node.op_type not in EXACT:
        return None
    places = _CASTS.get(kind, 0) if node.op_type == "Cast" else places
    return (finest, largest, places) if largest * 2.0**finest < 2.0**places else None


def _grid_of(array: Array) -> _Grid | None:
    if array.dtype.kind == "b":
        return 0, 1.0, _WHOLE[TensorProto.INT64]
    places_held = _PLACES.get(array.dtype, 0) if is_real(array.dtype) else 8 * array.dtype.itemsize - 1
    if not array.size:
        return 0, 1.0, places_held
    if array.dtype.kind not in "fiu" or not np.isfinite(array).all():
        return None
    wide = array.astype(np.float64)
    for places in range(_FINEST + 1):
        scaled = wide * 2.0**places
        if np.array_equal(scaled, np.rint(scaled)):
            return places, float(np.abs(wide).max()), places_held
    return None
