"""What asks each number something (IsInf, IsNaN, OneHot), as comparisons."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from onnx import TensorProto, helper

from padfix.graph import attributes
from padfix.operators.numbers import constant_before_casts, numbers_of
from padfix.operators.refusal import Refusal
from padfix.operators.traits import traits_of
from padfix.rules.base import Rewrite, Site
from padfix.rules.build.along_axes import FLOATS
from padfix.rules.build.explicit_pads import copied
from padfix.rules.build.forms import Form
from padfix.rules.build.node_trials import as_declared, trials_of
from padfix.rules.build.objections import Operators
from padfix.rules.build.truth_forms import truth_forms
from padfix.rules.build.written_forms import axis_forms
from padfix.targets.traits import Traits

if TYPE_CHECKING:
    from padfix.graph.fragment_builder import FragmentBuilder

_FLOATS_EQUAL_SINCE = 11

_OR_EQUAL_SINCE = 12

_LARGER_SINCE = 9
"""Opset from which on a Greater takes what a Max gives of data that are broadcast."""

_SUMMED = (*FLOATS, TensorProto.INT32, TensorProto.INT64)

_OR_EQUAL: Operators = (("GreaterOrEqual", {"broadcasts": False}),)

_EQUAL: Operators = (("Equal", {"broadcasts": True}),)

_ONE_MEETS: Traits = {"broadcasts": False, "meets-infinity": True, "beyond-half": True}


def infinity_forms(site: Site) -> Iterator[Form]:
    """Yield whether a number, or its magnitude, is equal to infinity."""
    signs = {sign for sign in (-1, 1) if attributes.integer(site.node, f"detect_{_NAMES[sign]}", 1)}

    def write() -> Rewrite:
        builder = site.builder(max(site.opset, _FLOATS_EQUAL_SINCE))
        value = builder.input(site.input_name(0))
        infinite = np.array(min(signs) * math.inf if len(signs) == 1 else math.inf, _dtype(site))
        size = builder.op("Abs", [value]) if len(signs) > 1 else value
        builder.output(site.node.output[0], builder.op("Equal", [size, builder.constant(infinite, "infinity")]))
        return Rewrite(builder.build(), trials_of(site), exact=True)

    def bound() -> Rewrite:
        builder = site.builder(max(site.opset, _OR_EQUAL_SINCE))
        value = builder.input(site.input_name(0))
        if signs == {-1}:
            value = builder.op("Neg", [value])
        size = builder.op("Abs", [value]) if len(signs) > 1 else value
        infinite = builder.constant(np.array(math.inf, _dtype(site)), "infinity")
        builder.output(site.node.output[0], builder.op("GreaterOrEqual", [size, infinite]))
        return Rewrite(builder.build(), trials_of(site), exact=True)

    def above() -> Rewrite:
        builder = site.builder()
        value = builder.input(site.input_name(0))
        size = builder.op("Abs", [value]) if len(signs) > 1 else value
        builder.output(site.node.output[0], _beyond_all(builder, size, max(signs)))
        return Rewrite(builder.build(), trials_of(site), exact=True)

    def never() -> Rewrite:
        builder = site.builder(max(site.opset, _LARGER_SINCE))
        size = builder.op("Abs", [builder.input(site.input_name(0))])
        nothing = builder.constant(np.array(0, _dtype(site)), "nothing")
        builder.output(site.node.output[0], builder.op("Less", [size, nothing]))
        return Rewrite(builder.build(), trials_of(site), exact=True)

    why_not = None if signs else Refusal("it asks for neither infinity")
    asked = Refusal("it asks for infinity") if signs else None
    yield Form("below nothing", (("Abs", {}), ("Less", {"broadcasts": False})), never, asked, _LARGER_SINCE)
    single = why_not or (None if site.elem_type(0) == TensorProto.FLOAT else Refusal("it is not of single precision"))
    operators: Operators = (("Abs", {}), ("Equal", _ONE_MEETS))
    yield Form("equal to infinity", operators, write, why_not, _FLOATS_EQUAL_SINCE)
    operators = (("Abs", {}), ("Neg", {}), ("GreaterOrEqual", _ONE_MEETS))
    yield Form("no less than infinity", operators, bound, why_not, _OR_EQUAL_SINCE)
    yield Form("beyond the largest number", (("Abs", {}), *_BEYOND), above, single)


_NAMES = {-1: "negative", 1: "positive"}

_BEYOND: Operators = tuple((op_type, {"broadcasts": False, "beyond-half": True}) for op_type in ("Greater", "Less"))


def _beyond_all(builder: FragmentBuilder, value: Any, sign: int) -> Any:
    """Return whether a value in single precision lies beyond all numbers on one side."""
    most = np.array(sign * np.finfo(np.float32).max, np.float32)
    return builder.op("Greater" if sign > 0 else "Less", [value, builder.constant(most, "most")])


def not_a_number_forms(site: Site) -> Iterator[Form]:
    """Yield whether a number is not equal to itself."""

    def write(op_type: str, since: int) -> Rewrite:
        builder = site.builder(max(site.opset, since))
        value = builder.input(site.input_name(0))
        builder.output(site.node.output[0], builder.op("Not", [builder.op(op_type, [value, value])]))
        return Rewrite(builder.build(), trials_of(site), exact=True)

    for op_type, since in (("Equal", _FLOATS_EQUAL_SINCE), ("GreaterOrEqual", _OR_EQUAL_SINCE)):
        operators: Operators = ((op_type, {"broadcasts": False, "compares-itself": True}), ("Not", {}))
        yield Form(f"not {op_type} to itself", operators, partial(write, op_type, since), opset=since)


def either_forms(site: Site) -> Iterator[Form]:
    """Yield what is larger or equal, or less or equal, as either of both."""

    def write() -> Rewrite:
        builder = site.builder()
        numbers = [builder.input(name) for name in site.node.input]
        either = [builder.op(each, numbers) for each in (beyond, "Equal")]
        builder.output(site.node.output[0], builder.op("Or", either))
        return Rewrite(builder.build(), trials_of(site), exact=True)

    beyond = site.node.op_type.removesuffix("OrEqual")
    own = traits_of(site.scope, site.node) or {}
    told: Traits = {
        name: own.get(name) for name in ("rank", "broadcasts", "meets-infinity", "beyond-half", "numbers", "axes")
    }
    yield Form("either of both", ((beyond, told), ("Equal", told), ("Or", {"axes": own.get("axes")})), write)


def equal_forms(site: Site) -> Iterator[Form]:
    """Yield whether neither number is less than the other, or which are beyond all numbers where that is infinity."""
    yield _infinite(site)

    def write() -> Rewrite:
        builder = site.builder(max(site.opset, _OR_EQUAL_SINCE))
        first, second = (builder.input(name) for name in site.node.input)
        sides = [builder.op("GreaterOrEqual", each) for each in ([first, second], [second, first])]
        builder.output(site.node.output[0], builder.op("And", sides))
        return Rewrite(builder.build(), trials_of(site), exact=True)

    why_not = None if site.elem_type(0) in FLOATS else Refusal("its data are no floats")
    own = traits_of(site.scope, site.node) or {}
    compared = {name: own.get(name) for name in ("rank", "broadcasts", "both-broadcast", "numbers")}
    operators: Operators = (("GreaterOrEqual", compared), ("And", {}))
    yield Form("neither is less", operators, write, why_not, _OR_EQUAL_SINCE)
    yield from truth_forms(site)


_BY_EXTREMES = {
    "Greater": ("Max", "Greater", False),
    "GreaterOrEqual": ("Min", "GreaterOrEqual", False),
    "Less": ("Max", "Greater", True),
    "LessOrEqual": ("Max", "LessOrEqual", False),
}
"""How a comparison is one with an extreme of both: which, how it meets the second, and whether that is the first."""


def extreme_comparisons(site: Site) -> Iterator[Form]:
    """Yield a comparison of data that are both broadcast as one of their larger or smaller ones, which are as many."""
    extreme, comparing, is_turned = _BY_EXTREMES.get(site.node.op_type, ("Max", "LessOrEqual", False))
    is_equal = site.node.op_type == "Equal"
    since = _LARGER_SINCE if comparing == "Greater" and site.elem_type(0) in FLOATS else _OR_EQUAL_SINCE

    def write() -> Rewrite:
        builder = site.builder(max(site.opset, since))
        both = [builder.input(name) for name in site.node.input]
        other = builder.op("Min", both) if is_equal else both[0 if is_turned else 1]
        builder.output(site.node.output[0], builder.op(comparing, [builder.op(extreme, both), other]))
        return Rewrite(builder.build(), trials_of(site), exact=True)

    own = traits_of(site.scope, site.node) or {}
    numbers: Traits = {name: own.get(name) for name in ("rank", "numbers", "bytes", "joins-a-list")}
    operators: Operators = (
        *(
            (each, {**numbers, "inputs": 2, "broadcasts": True})
            for each in ((extreme, "Min") if is_equal else (extreme,))
        ),
        (comparing, {**numbers, "broadcasts": not is_equal, "both-broadcast": False}),
    )
    why_not = None if own.get("both-broadcast") is not False else Refusal("one of both has all elements")
    way = f"the {'smaller' if extreme == 'Min' else 'larger'} of both compared"
    yield Form(way, operators, write, why_not, since)


def exchanged_comparison(site: Site) -> Iterator[Form]:
    """Yield a comparison with a constant first as one of both with the other sign, where it stands last."""
    own, first = traits_of(site.scope, site.node) or {}, site.constant(0)
    if not own.get("compares-constant-first"):
        return

    def write() -> Rewrite:
        assert first is not None
        builder = site.builder()
        other = builder.op("Neg", [builder.input(site.input_name(1))])
        compared = builder.op(site.node.op_type, [other, builder.constant(-first, "negative")])
        builder.output(site.node.output[0], compared)
        return Rewrite(builder.build(), trials_of(site), exact=True)

    operators: Operators = (("Neg", {}), (site.node.op_type, {**own, "compares-constant-first": False}))
    why_not = None if site.elem_type(0) in FLOATS else Refusal("only floats are negated without a loss")
    yield Form("both with the other sign, exchanged", operators, write, why_not)


def _infinite(site: Site) -> Form:
    """Return which numbers are equal to one infinity as which are beyond all numbers on its side."""
    told = [constant_before_casts(site.scope, name) for name in site.node.input]
    place = 0 if told[0] is None else 1
    infinity = told[1 - place]
    signs = set() if infinity is None or infinity.size != 1 else set(infinity.reshape(-1).tolist())

    def write() -> Rewrite:
        builder = site.builder()
        value = builder.input(site.input_name(place))
        builder.output(site.node.output[0], _beyond_all(builder, value, 1 if math.inf in signs else -1))
        return Rewrite(builder.build(), trials_of(site), exact=True)

    known, result = site.input_type(place), site.scope.type_of(site.node.output[0])
    why_not = None
    if site.elem_type(0) != TensorProto.FLOAT or not signs & {math.inf, -math.inf}:
        why_not = Refusal("it asks for no infinity in single precision")
    elif known is None or result is None or known.rank is None or known.rank != result.rank:
        why_not = Refusal("infinity has more axes than the data")
    return Form("beyond the largest number", _BEYOND, write, why_not)


def _of_whole_depth(site: Site) -> Form:
    """Return a OneHot whose depth is an integer, and whose axis is written."""
    depth = site.constant(1)

    def write() -> Rewrite:
        assert depth is not None
        builder = site.builder()
        index, values = (builder.input(site.input_name(place)) for place in (0, 2))
        number = builder.constant(np.array(int(depth.reshape(-1)[0]), _dtype(site)), "depth")
        node = copied(site.node)
        attributes.set_integer(node, "axis", attributes.integer(node, "axis", -1) or 0)
        return Rewrite(builder.ending_in(node, [index, number, values]), trials_of(site), exact=True)

    own = {**(traits_of(site.scope, site.node) or {}), "depth-is-no-number": False, "axis-written": True}
    why_not = None if depth is not None else Refusal("its depth is not constant")
    if _dtype(site) not in (np.int32, np.int64):
        why_not = Refusal("its indices are no integers of 32 or 64 bits")
    return Form("its depth as an integer", (("OneHot", own),), write, why_not)


def one_hot_forms(site: Site) -> Iterator[Form]:
    """Yield a OneHot that says its axis, and one value where an index is equal to a place, else the other.

    An index is counted from the begin or the end. One in floats is made an integer, by a Cast that has its own rule.
    """
    yield from axis_forms(site)
    yield _of_whole_depth(site)
    values, known = site.constant(2), site.input_type(0)
    rank = -1 if known is None or known.rank is None else known.rank

    def write(*, flat: bool) -> Rewrite:
        assert values is not None
        builder = site.builder()
        off, on = (builder.constant(each.reshape(()), "value") for each in values)
        chosen: Any = off
        for truth in _asked(site, builder, rank, flat=flat):
            chosen = builder.op("Where", [truth, on, chosen])
        builder.output(site.node.output[0], builder.reshaped(chosen, lengths or ()) if flat else chosen)
        return Rewrite(builder.build(), (as_declared(site),), exact=True)

    result = site.scope.type_of(site.node.output[0])
    lengths = None if result is None else result.lengths
    why_not = None
    if site.constant(1) is None or values is None or rank < 0:
        why_not = Refusal("its depth or its values are not constant, or how many axes it has is not known")
    asking: Operators = (("Unsqueeze", {"rank": rank}), ("Equal", {"broadcasts": True, "numbers": "integer"}))
    summed = _summed_places(site, asking, rank, why_not)
    yield Form("equal to a place", (*asking, ("Where", {"broadcasts": True})), partial(write, flat=False), why_not)
    if lengths is None or 0 in lengths or _new_axis(site, rank) != rank:
        why_not = why_not or Refusal("it needs the lengths of its input (--shape), and its places as the last axis")
    two: Traits = {"rank": 2, "broadcasts": True, "constants": "none", "numbers": "integer"}
    matrix: Operators = (("Reshape", {"rank": 2}), ("Equal", two), ("Where", two), ("Reshape", {"rank": rank + 1}))
    yield Form("equal to a place, as a matrix", matrix, partial(write, flat=True), why_not)
    yield summed


def _new_axis(site: Site, rank: int) -> int:
    """Return which axis a OneHot makes."""
    return (attributes.integer(site.node, "axis", -1) or 0) % max(rank + 1, 1)


def _asked(site: Site, builder: FragmentBuilder, rank: int, *, flat: bool = False) -> list[Any]:
    """Return whether an index of a OneHot is a place, counted from the end and from the begin."""
    depth, axis, dtype = site.constant(1), _new_axis(site, rank), _dtype(site)
    assert depth is not None
    index = builder.input(site.input_name(0))
    if dtype.kind == "f":
        index, dtype = builder.op("Cast", [index], {"to": TensorProto.INT64}), np.dtype(np.int64)
    index = builder.reshaped(index, [-1, 1]) if flat else builder.unsqueezed(index, axis)
    number, found = int(depth.reshape(-1)[0]), []
    for first in (-number, 0):
        places = np.arange(first, first + number, dtype=dtype).reshape(-1, *[1] * (rank - axis))
        places = places.reshape(1, -1) if flat else places
        found.append(builder.op("Equal", [index, builder.constant(places, "places")]))
    return found


def _summed_places(site: Site, asking: Operators, rank: int, why_not: Refusal | None) -> Form:
    """Return a OneHot as a sum of what is equal to a place, in numbers, times what one value is above the other."""
    values = site.constant(2)

    def write() -> Rewrite:
        assert values is not None
        builder = site.builder()
        off, on = values
        found = [builder.op("Cast", [each], {"to": site.elem_type(2)}) for each in _asked(site, builder, rank)]
        result = builder.op("Mul", [builder.op("Add", found), builder.constant(on - off, "distance")])
        result = builder.op("Add", [result, builder.constant(off, "off")]) if off else result
        builder.output(site.node.output[0], result)
        return Rewrite(builder.build(), (as_declared(site),), exact=True)

    if why_not is None and (site.elem_type(2) not in _SUMMED or not _is_distance_exact(values)):
        why_not = Refusal("its values are no floats or integers, or their distance is rounded")
    gives: Traits = {"numbers": numbers_of(site.scope, site.input_name(2)) or "single"}
    cast: Traits = {"gives": gives["numbers"], "changes-type": True, "numbers": "boolean"}
    operators: Operators = (*asking, ("Cast", cast), ("Mul", {**gives, "gate-second": False}), ("Add", gives))
    return Form("a sum of what is equal to a place", operators, write, why_not)


def _is_distance_exact(values: np.ndarray | None) -> bool:
    """Whether the first of two values and what the second is above it are the second."""
    return values is not None and bool(values[0] + (values[1] - values[0]) == values[1])


def _dtype(site: Site) -> np.dtype[Any]:
    return np.dtype(helper.tensor_dtype_to_np_dtype(site.elem_type(0)))
