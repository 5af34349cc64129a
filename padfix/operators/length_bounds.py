"""Between which numbers lies what a model works out from lengths as it runs, where there is a batch at all."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping, Sequence
from itertools import chain

import numpy as np
from onnx import NodeProto, TensorProto

from padfix.graph import attributes
from padfix.graph.scopes import Dimension, Scope, normal_domain
from padfix.operators.constant_chains import worked_out
from padfix.operators.reading import read
from padfix.operators.resample import Resample
from padfix.operators.slices import slice_starts, slice_steps, sliced_axes
from padfix.operators.told_lengths import elements_taken

Bounds = tuple[float, float]
"""The least and the largest that a number can be."""

_ANY: Bounds = (0, math.inf)

_DEEPEST = 40


def bounds_of(scope: Scope, name: str) -> list[Bounds] | None:
    """Return the bounds of each element of a list, or of a number; None where they are not known.

    The batch of an input has an element or more; any other length that is left open may be 0 as well.
    """
    return _bounds(scope, name, _Walk())


@dataclasses.dataclass(frozen=True)
class _Walk:
    """How far behind the value that is asked about, and what is known of those on the way, which many may read."""

    depth: int = 0
    known: dict[str, list[Bounds] | None] = dataclasses.field(default_factory=dict)

    def deeper(self) -> _Walk:
        return _Walk(self.depth + 1, self.known)


def _bounds(scope: Scope, name: str, walk: _Walk) -> list[Bounds] | None:
    if name not in walk.known:
        walk.known[name] = _worked_out(scope, name, walk)
    return walk.known[name]


def _worked_out(scope: Scope, name: str, walk: _Walk) -> list[Bounds] | None:
    value = worked_out(scope, name)
    if value is not None:
        return [(float(each), float(each)) for each in value.reshape(-1)] if value.dtype.kind in "iu" else None
    node = scope.own_producer(name)
    if node is None or normal_domain(node.domain) or walk.depth > _DEEPEST:
        return None
    if node.op_type == "Shape":
        return _measured(scope, node, walk)
    if node.op_type == "Relu":
        return _cut_below(scope, node, walk)
    if node.op_type in _ARITHMETIC or node.op_type == "Concat":
        given = [_bounds(scope, each, walk.deeper()) for each in node.input]
        if node.op_type in ("Concat", "Max", "Min"):
            given = [
                _of_any(scope, name) if each is None else each for name, each in zip(node.input, given, strict=True)
            ]
        listed = [each for each in given if each is not None]
        if len(listed) < len(given):
            return None
        if node.op_type == "Sub" and _leaves_part(scope, node, listed[0]):
            return [(0, most) for _, most in listed[0]]
        rest = _rest_of_quotient(scope, node, listed[0]) if node.op_type == "Sub" else None
        if rest is not None:
            return rest
        is_joined = node.op_type == "Concat"
        return list(chain.from_iterable(listed)) if is_joined else _between(_ARITHMETIC[node.op_type], listed)
    if node.op_type not in _TAKING or (node.op_type == "Cast" and attributes.integer(node, "to", 0) not in _WHOLE):
        return None
    first = _bounds(scope, node.input[0], walk.deeper())
    if first is None:
        return None
    if node.op_type in _LAYING:
        return _LAYING[node.op_type](scope, node, name, first)
    return elements_taken(scope, node, first) or _looked_up(scope, node, first)


def _cut_below(scope: Scope, node: NodeProto, walk: _Walk) -> list[Bounds] | None:
    """Return the bounds of integers that are cut at 0, by way of floats before opset 14."""
    given, made = node.input[0], scope.own_producer(node.input[0])
    if made is not None and made.op_type == "Cast" and not normal_domain(made.domain):
        given = made.input[0]
    listed = _bounds(scope, given, walk.deeper()) or _of_any(scope, given)
    return None if listed is None else [(max(least, 0), max(most, 0)) for least, most in listed]


def _turned(scope: Scope, node: NodeProto, _: str, listed: list[Bounds]) -> list[Bounds] | None:
    """Return the bounds of the elements of a table whose axes a Transpose exchanges."""
    known = scope.type_of(node.input[0])
    if known is None or known.lengths is None or math.prod(known.lengths) != len(listed):
        return None
    places = np.arange(len(listed)).reshape(known.lengths)
    return [listed[place] for place in places.transpose(attributes.integers(node, "perm")).flat]


def _split_off(scope: Scope, node: NodeProto, name: str, listed: list[Bounds]) -> list[Bounds] | None:
    """Return the bounds of one piece of a list."""
    types = [scope.type_of(each) for each in node.output]
    lengths = [each.lengths for each in types if each is not None and each.lengths is not None]
    if len(lengths) < len(types) or any(len(each) != 1 for each in lengths):
        return None
    place = list(node.output).index(name)
    start = sum(length for (length,) in lengths[:place])
    return listed[start : start + lengths[place][0]]


def _looked_up(scope: Scope, node: NodeProto, table: list[Bounds]) -> list[Bounds] | None:
    """Return the bounds of what a Gather picks from a list by places that are not known."""
    places = scope.type_of(node.input[1]) if node.op_type == "Gather" and table else None
    known = scope.type_of(node.input[0])
    if places is None or places.lengths is None or known is None or known.rank != 1:
        return None
    return [(min(least for least, _ in table), max(most for _, most in table))] * math.prod(places.lengths)


def adds_nothing(scope: Scope, node: NodeProto) -> bool:
    """Whether the amounts of a Pad are worked out, and are 0 unless there is no batch."""
    amounts = bounds_of(scope, node.input[1]) if len(node.input) > 1 and node.input[1] else None
    return amounts is not None and all(each == (0, 0) for each in amounts)


def may_be_negative(bounds: Sequence[Bounds] | None) -> bool | None:
    """Whether some of the integers that lie between bounds is below 0; None where that is not known."""
    if bounds is None or not any(least < 0 for least, _ in bounds):
        return None if bounds is None else False
    return True if all(most < 0 for least, most in bounds if least < 0) else None


def _of_any(scope: Scope, name: str) -> list[Bounds] | None:
    """Return the bounds of integers of which only is known how many there are."""
    known = scope.type_of(name)
    if known is None or known.lengths is None or known.elem_type not in _WHOLE:
        return None
    return [(-math.inf, math.inf)] * math.prod(known.lengths)


def _leaves_part(scope: Scope, node: NodeProto, whole: list[Bounds]) -> bool:
    """Whether what is taken off numbers that are not below 0 is a part of themselves, as of the two sides of a pad."""
    part = scope.own_producer(node.input[1])
    if part is None or normal_domain(part.domain) or part.op_type != "Div" or part.input[0] != node.input[0]:
        return False
    divisor = scope.constant(part.input[1])
    is_below = any(least < 0 for least, _ in whole)
    return divisor is not None and divisor.size in (1, len(whole)) and bool((divisor >= 1).all()) and not is_below


def _rest_of_quotient(scope: Scope, node: NodeProto, whole: list[Bounds]) -> list[Bounds] | None:
    """Return the bounds of what a whole quotient by constants leaves, spelled out: ``x - x / y * y``."""
    product = scope.own_producer(node.input[1])
    if product is None or normal_domain(product.domain) or product.op_type != "Mul":
        return None
    for quotient, factor in (product.input, [*product.input][::-1]):
        made, divisor = scope.own_producer(quotient), scope.constant(factor)
        if divisor is None or made is None or normal_domain(made.domain) or made.op_type != "Div":
            continue
        if [*made.input] == [node.input[0], factor] and divisor.dtype.kind in "iu":
            return _between(_remainder, [whole, [(float(each), float(each)) for each in divisor.reshape(-1)]])
    return None


def _measured(scope: Scope, node: NodeProto, walk: _Walk) -> list[Bounds] | None:
    known = scope.type_of(node.input[0])
    if known is None or known.shape is None:
        return None
    bounds = [_length(scope, each, walk) for each in known.shape]
    return bounds[attributes.integer(node, "start", 0) : attributes.integer(node, "end", len(bounds))]


def _length(scope: Scope, length: Dimension, walk: _Walk) -> Bounds:
    """Return the bounds of a length."""
    if isinstance(length, int):
        return length, length
    root = scope.root
    types = [root.type_of(name) for name in root.inputs if root.constant(name) is None]
    if length is None or length in {each.shape[0] for each in types if each is not None and each.shape}:
        return (1, math.inf) if length is not None else _ANY
    for node in scope.nodes:
        for name in node.output:
            known = scope.type_of(name) if name else None
            if known is not None and known.shape is not None and length in known.shape:
                made = _MAKING.get(node.op_type) if not normal_domain(node.domain) and walk.depth < _DEEPEST else None
                return _ANY if made is None else made(scope, node, known.shape.index(length), walk)
    return _ANY


def _folded(scope: Scope, node: NodeProto, axis: int, walk: _Walk) -> Bounds:
    """Return the bounds of a length that a Reshape is the first to give: 1 or more unless its data has no element."""
    data = scope.type_of(node.input[0])
    given = None if data is None or data.shape is None else [_length(scope, each, walk.deeper()) for each in data.shape]
    return (1, math.inf) if given is not None and all(least > 0 for least, _ in given) else _ANY


def _resized(scope: Scope, node: NodeProto, axis: int, walk: _Walk) -> Bounds:
    """Return the bounds of a length that a Resize is the first to give: those before it, where it keeps the axis."""
    resize = read(scope, node)
    if not isinstance(resize, Resample) or resize.shape is None:
        return _ANY
    scales = resize.scale_of_axes()
    return _length(scope, resize.shape[axis], walk.deeper()) if scales is not None and scales[axis] == 1 else _ANY


def _cut(scope: Scope, node: NodeProto, axis: int, walk: _Walk) -> Bounds:
    """Return the bounds of a length that a Slice is the first to give: the first elements of an axis."""
    data = scope.type_of(node.input[0])
    shape = () if data is None or data.shape is None else data.shape
    axes = sliced_axes(scope, node, len(shape))
    ends = _bounds(scope, node.input[2], walk.deeper()) if len(node.input) > 2 else None
    if axes is None or axis not in axes or ends is None or len(ends) != len(axes):
        return _ANY
    starts, steps = slice_starts(scope, node), slice_steps(scope, node)
    if starts != [0] * len(axes) or steps not in ([], [1] * len(axes)):
        return _ANY
    end, whole = ends[axes.index(axis)], _length(scope, shape[axis], walk.deeper())
    return (min(end[0], whole[0]), min(end[1], whole[1])) if end[0] >= 0 else _ANY


_MAKING: Mapping[str, Callable[[Scope, NodeProto, int, _Walk], Bounds]] = {
    "Reshape": _folded,
    "Resize": _resized,
    "Slice": _cut,
}
"""Operators that give lengths of their own, and what tells their bounds by the axis."""


def _between(compute: Callable[[Bounds, Bounds], Bounds], given: list[list[Bounds]]) -> list[Bounds] | None:
    """Return the bounds of what is computed from lists element by element, of which some may hold one for all."""
    result = given[0]
    for other in given[1:]:
        count = max(len(result), len(other))
        if {len(result), len(other)} - {1, count}:
            return None
        pairs = zip(result * (count // len(result)), other * (count // len(other)), strict=True)
        result = [compute(*pair) for pair in pairs]
    return result


def _product(one: Bounds, other: Bounds) -> Bounds:
    ends = [0.0 if 0 in (left, right) else left * right for left in one for right in other]
    return min(ends), max(ends)


def _quotient(one: Bounds, other: Bounds) -> Bounds:
    """Return the bounds of a division of integers; any number where it may be by less than 1."""
    least, most = other
    if least < 1:
        return -math.inf, math.inf
    by_each = [end if math.isinf(end) else math.trunc(end / by) for end in one for by in (least, most)]
    return min(by_each), max(by_each)


def _remainder(one: Bounds, other: Bounds) -> Bounds:
    """Return the bounds of what is left of integers that are not below 0 by one that is above; else any number."""
    if one[0] < 0 or other[0] < 1:
        return -math.inf, math.inf
    return 0, min(one[1], other[1] - 1)


_ARITHMETIC: Mapping[str, Callable[[Bounds, Bounds], Bounds]] = {
    "Add": lambda one, other: (one[0] + other[0], one[1] + other[1]),
    "Div": _quotient,
    "Max": lambda one, other: (max(one[0], other[0]), max(one[1], other[1])),
    "Min": lambda one, other: (min(one[0], other[0]), min(one[1], other[1])),
    "Mod": _remainder,
    "Mul": _product,
    "Sub": lambda one, other: (one[0] - other[1], one[1] - other[0]),
}


_LAYING: Mapping[str, Callable[[Scope, NodeProto, str, list[Bounds]], list[Bounds] | None]] = {
    "Neg": lambda _scope, _node, _name, listed: [(-most, -least) for least, most in listed],
    "Split": _split_off,
    "Transpose": _turned,
}

_TAKING = ("Cast", "Gather", "Identity", "Reshape", "Slice", "Squeeze", "Unsqueeze", *_LAYING)

_WHOLE = (TensorProto.INT32, TensorProto.INT64)
