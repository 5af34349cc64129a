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
from padfix.operators.elementwise import COPYING, LAYING_OUT, PICKING_OUT, PLACES

_MOST_BETWEEN = 12
"""Operators on a path to a number that are looked at."""

NARROW = (TensorProto.INT8, TensorProto.INT16, TensorProto.UINT8, TensorProto.UINT16)
"""Integers of fewer than 32 bits."""

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


def wraps(scope: Scope, node: NodeProto) -> bool:
    """Whether a Cast of integers to fewer than 32 bits may meet numbers of which it has to drop high bits."""
    before, behind = scope.type_of(node.input[0]), scope.type_of(node.output[0])
    if before is None or behind is None or behind.elem_type not in NARROW or _of_type(before.elem_type) == UNBOUNDED:
        return False
    least, most = _of_type(behind.elem_type)
    given = _range_of(scope, node.input[0], 0)
    return given[0] < least or given[1] > most


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
