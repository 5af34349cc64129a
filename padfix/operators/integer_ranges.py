"""Between which numbers integers of a model lie, as far as their types and what gives them tell."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from onnx import NodeProto, TensorProto, helper

from padfix.graph import attributes
from padfix.graph.scopes import Scope, normal_domain
from padfix.operators.clip import UNBOUNDED, Bounds, clip_bounds
from padfix.operators.constant_chains import worked_out
from padfix.operators.elementwise import COPYING, LAYING_OUT, PICKING_OUT, PLACES

_MOST_BETWEEN = 12
"""Operators on a path to a number that are looked at."""

NARROW = (TensorProto.INT8, TensorProto.INT16, TensorProto.UINT8, TensorProto.UINT16)
"""Integers of fewer than 32 bits."""

_COUNTED = (TensorProto.INT32, TensorProto.INT64)

WHOLE_HALVES = 2048
"""Up to where half precision holds all whole numbers."""

PICKING_BY_PLACES = ("Gather", "GatherElements", "GatherND", "Scatter", "ScatterElements", "ScatterND")
"""What reads places from its second input."""

_KEEPING = LAYING_OUT | COPYING | PICKING_OUT
_KEEPING |= {"Cast", "Ceil", "Floor", "MaxPool", "ReduceMax", "ReduceMin", "Round", "ReverseSequence", "TopK"}
"""Operators that give numbers of their first input, or the next whole ones, in another type at the most."""

_JOINING: Mapping[str, tuple[int, ...]] = {
    "Concat": (),
    "Pad": (0, 2),
    "ScatterElements": (0, 2),
    "ScatterND": (0, 2),
    "Where": (1, 2),
}
"""Operators that give numbers of these of their inputs, or of all."""


def is_beyond_halves(scope: Scope, node: NodeProto) -> bool:
    """Whether a Mod of integers may give another rest where it is computed in half precision.

    Halves hold whole numbers up to 2048, and the quotient by a power of two. By other numbers it comes out next to a
    whole one, but for a place counted from the end, which is no further below 0 than the divisor.
    """
    known, divisor = scope.type_of(node.input[0]), worked_out(scope, node.input[1])
    if known is None or known.elem_type not in _COUNTED:
        return False
    if divisor is None or not divisor.size or np.abs(divisor).max() > WHOLE_HALVES or (divisor == 0).any():
        return True
    readers = scope.consumers(node.output[0])
    is_place = [each.op_type in PICKING_BY_PLACES and node.output[0] in each.input[1:2] for each in readers]
    if is_place and all(is_place) and not scope.is_output(node.output[0]):
        return False
    least, most = range_of(scope, node.input[0])
    sizes = np.abs(divisor.astype(np.int64))
    return max(-least, most) > WHOLE_HALVES or bool((sizes & (sizes - 1)).any())


def counts_beyond_halves(scope: Scope, node: NodeProto) -> bool:
    """Whether a sum of floats adds whole numbers that halves do not hold, and integers are made of what it gives."""
    known = scope.type_of(node.output[0])
    if known is None or known.elem_type != TensorProto.FLOAT:
        return False
    added = [value for name in node.input if (value := scope.constant(name)) is not None and value.size]
    if not any(np.abs(each).max() > WHOLE_HALVES and bool((each == np.trunc(each)).all()) for each in added):
        return False
    readers = scope.consumers(node.output[0])
    while len(readers) == 1 and readers[0].op_type in LAYING_OUT:
        readers = scope.consumers(readers[0].output[0])
    made = [scope.type_of(each.output[0]) for each in readers if each.op_type == "Cast"]
    return any(each is not None and each.elem_type in _COUNTED for each in made)


def divides_by_power_of_two(scope: Scope, node: NodeProto) -> bool:
    """Whether what may be below 0 is divided by one constant of 2, 4, 8 and so on."""
    value = scope.constant(node.input[1])
    if value is None or value.size != 1 or value.dtype.kind not in "iu":
        return False
    number = int(value.reshape(-1)[0])
    return number > 1 and number & (number - 1) == 0 and range_of(scope, node.input[0])[0] < 0


def wraps(scope: Scope, node: NodeProto) -> bool:
    """Whether a Cast of integers to fewer than 32 bits may meet numbers of which it has to drop high bits."""
    before, behind = scope.type_of(node.input[0]), scope.type_of(node.output[0])
    if before is None or behind is None or behind.elem_type not in NARROW or _of_type(before.elem_type) == UNBOUNDED:
        return False
    least, most = _of_type(behind.elem_type)
    given = range_of(scope, node.input[0])
    return given[0] < least or given[1] > most


def range_of(scope: Scope, name: str) -> Bounds:
    """Return between which numbers a tensor's lie."""
    return _range_of(scope, name, 0)


def _of_type(elem_type: int) -> Bounds:
    """Return the bounds of integers or booleans by their type; none of others."""
    if elem_type == TensorProto.BOOL:
        return 0, 1
    dtype: np.dtype[Any] = np.dtype(helper.tensor_dtype_to_np_dtype(elem_type)) if elem_type else np.dtype(np.float32)
    if dtype.kind not in "iu":
        return UNBOUNDED
    ends = np.iinfo(dtype)
    return float(ends.min), float(ends.max)


def _range_of(scope: Scope, name: str, depth: int) -> Bounds:
    """Return between which numbers a value lies: what gives it tells, or else its type."""
    known, value, node = scope.type_of(name), scope.constant(name), scope.producer(name)
    widest = UNBOUNDED if known is None else _of_type(known.elem_type)
    if value is not None:
        is_known = value.size and value.dtype.kind in "biuf" and bool(np.isfinite(value).all())
        return (float(value.min()), float(value.max())) if is_known else widest
    is_other = node is not None and name != node.output[0] and node.op_type != "Split"
    if node is None or is_other or normal_domain(node.domain) or depth > _MOST_BETWEEN:
        return widest
    given = _given_by(scope, node, depth)
    return given if widest[0] <= given[0] and given[1] <= widest[1] else widest


def _given_by(scope: Scope, node: NodeProto, depth: int) -> Bounds:
    def of(place: int) -> Bounds:
        return _range_of(scope, node.input[place], depth + 1)

    if node.op_type in _KEEPING:
        return of(0)
    if node.op_type == "Sub" and (by := divisor_left_of(scope, node)):
        size, given = max(abs(each) for each in _range_of(scope, by, depth + 1)), of(0)
        return (0 if given[0] >= 0 else 1 - size), (0 if given[1] <= 0 else size - 1)
    if node.op_type in _JOINING or node.op_type in _ARITHMETIC:
        places = _JOINING.get(node.op_type, ()) or range(len(node.input))
        found = [of(place) if node.input[place] else (0.0, 0.0) for place in places if place < len(node.input)]
        join = _ARITHMETIC.get(node.op_type, _around)
        result = found[0]
        for each in found[1:] or ([(0.0, 0.0)] if node.op_type == "Pad" else []):
            result = join(result, each)
        return result if attributes.text(node, "reduction", "none") in ("none", None) else UNBOUNDED
    if node.op_type in PLACES:
        return 0, _longest(scope, node)
    if node.op_type == "Clip":
        bounds, data = clip_bounds(scope, node), of(0)
        return max(bounds[0], min(data[0], bounds[1])), min(bounds[1], max(data[1], bounds[0]))
    if node.op_type == "Mod" and attributes.integer(node, "fmod", 0) == 0:
        divisor = of(1)
        return (0, divisor[1] - 1) if divisor[0] > 0 else UNBOUNDED
    if node.op_type in ("Abs", "Relu"):
        least, most = of(0)
        return max(0, least), max(0, most, -least if node.op_type == "Abs" else 0)
    if node.op_type == "Sign":
        least, most = of(0)
        return max(-1, min(least, 1)), min(1, max(most, -1))
    return UNBOUNDED


def divisor_left_of(scope: Scope, node: NodeProto) -> str | None:
    """Return by what a difference is the rest of a division: less the product of the quotient with the divisor."""
    whole = scope.own_producer(node.input[1])
    quotient = scope.own_producer(whole.input[0]) if whole is not None and whole.op_type == "Mul" else None
    if whole is None or quotient is None or quotient.op_type != "Div" or quotient.input[0] != node.input[0]:
        return None
    by, times = quotient.input[1], whole.input[1]
    numbers = [] if by == times else [worked_out(scope, each) for each in (by, times)]
    found = [set(each.reshape(-1).tolist()) for each in numbers if each is not None]
    is_one = len(found) == 2 and found[0] == found[1] and len(found[0]) == 1  # one of them is spread
    return by if by == times or is_one else None


def _longest(scope: Scope, node: NodeProto) -> float:
    """Return the last place along the axis of an ArgMax."""
    known, axis = scope.type_of(node.input[0]), attributes.integer(node, "axis", 0) or 0
    shape = () if known is None or known.shape is None else known.shape
    length = shape[axis] if -len(shape) <= axis < len(shape) else None
    return length - 1 if isinstance(length, int) else math.inf


def _around(one: Bounds, other: Bounds) -> Bounds:
    return min(one[0], other[0]), max(one[1], other[1])


def _times(one: Bounds, other: Bounds) -> Bounds:
    if not all(map(math.isfinite, (*one, *other))):
        return UNBOUNDED
    products = [each * factor for each in one for factor in other]
    return min(products), max(products)


_ARITHMETIC: Mapping[str, Callable[[Bounds, Bounds], Bounds]] = {
    "Add": lambda one, other: (one[0] + other[0], one[1] + other[1]),
    "Max": lambda one, other: (max(one[0], other[0]), max(one[1], other[1])),
    "Min": lambda one, other: (min(one[0], other[0]), min(one[1], other[1])),
    "Mul": _times,
    "Sub": lambda one, other: (one[0] - other[1], one[1] - other[0]),
}
