"""Whole numbers and booleans without what a Cast or a Div of integers does to numbers besides changing their type."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from onnx import TensorProto, helper

from padfix.operators.constant_chains import worked_out
from padfix.operators.long_results import steers
from padfix.operators.numbers import JOINING_DOUBLES
from padfix.operators.plain_traits import makes_batch
from padfix.operators.refusal import Refusal
from padfix.operators.traits import traits_of
from padfix.rules.base import Rewrite, Site
from padfix.rules.build.along_axes import FLOATS
from padfix.rules.build.explicit_pads import copied
from padfix.rules.build.forms import Form
from padfix.rules.build.node_forms import of_inputs
from padfix.rules.build.node_trials import as_declared, trials_of
from padfix.rules.build.objections import Operators
from padfix.rules.build.truth_forms import truth_forms
from padfix.targets.traits import Traits

if TYPE_CHECKING:
    from padfix.graph.fragment_builder import FragmentBuilder

_MOST_DIVISORS = 1 << 20
"""Elements of a constant that is written out."""

_MATRIX = 2

_MOD_SINCE = 10
_INTEGERS_JOINED_SINCE = 12
_LIKE_SINCE = 15

_SIGNED = (TensorProto.INT32, TensorProto.INT64)


def with_whole_doubles(site: Site) -> Form:
    """Return what multiplies, divides or compares with constants of the whole shape, be they one element."""
    result = site.scope.type_of(site.node.output[0])
    shape = () if result is None or result.shape is None else result.shape
    lengths = [each for each in shape if isinstance(each, int)]
    values = [site.constant(place) for place in range(len(site.node.input))]

    def write() -> Rewrite:
        builder = site.builder()
        whole = [
            builder.input(name) if value is None else builder.constant(np.broadcast_to(value, lengths).copy(), "whole")
            for name, value in zip(site.node.input, values, strict=True)
        ]
        return Rewrite(builder.ending_in(copied(site.node), whole), (as_declared(site),), exact=True)

    is_known = bool(shape) and len(lengths) == len(shape) and math.prod(lengths) <= _MOST_DIVISORS
    own = {**(traits_of(site.scope, site.node) or {}), "constants": "none", "one-first": False}
    own["doubles-of-floats"] = is_joining = site.node.op_type in JOINING_DOUBLES
    why_not = Refusal("its constants join what they meet, or would be very large, or of open lengths (--shape)")
    operators: Operators = ((site.node.op_type, own),)
    return Form("doubles of the whole shape", operators, write, None if is_known and not is_joining else why_not)


def as_dense_layer(site: Site) -> Form:
    """Return a product with a matrix as a Gemm, of rows."""
    weights, data, result = site.constant(1), site.input_type(0), site.scope.type_of(site.node.output[0])
    known = None if data is None else data.rank
    shape = () if result is None or result.shape is None else result.shape
    lengths = [each if isinstance(each, int) else -1 for each in shape]
    is_of_rows = weights is not None and weights.ndim == _MATRIX and site.constant(0) is None
    is_matrix = known == _MATRIX

    def write(builder: FragmentBuilder, value: Any, matrix: Any) -> Any:
        if is_matrix:
            return builder.op("Gemm", [value, matrix])
        assert weights is not None
        rows = builder.op("Gemm", [builder.reshaped(value, [-1, weights.shape[0]]), matrix])
        return builder.reshaped(rows, lengths)

    why_not = None
    if site.node.op_type != "MatMul" or not is_of_rows or not known:
        why_not = Refusal("it is no product of data with a constant matrix")
    elif not is_matrix and (known < _MATRIX or not lengths or 0 in lengths or lengths.count(-1) > 1):
        why_not = Refusal("it needs the lengths of what it gives (--shape)")
    reshaped: Operators = () if is_matrix else (("Reshape", {"rank": _MATRIX}), ("Reshape", {"rank": known}))
    operators: Operators = (*reshaped, ("Gemm", {"numbers": "double"}))
    return Form("a Gemm", operators, lambda: of_inputs(site, write, exact=False), why_not)


def cut_forms(site: Site) -> Iterator[Form]:
    """Yield a Cast of numbers whose fractions are cut off before it, or of which 0 and 1 alone are left."""
    own = traits_of(site.scope, site.node) or {}
    is_truth = own.get("gives") == "boolean"

    def write() -> Rewrite:
        builder = site.builder()
        value = builder.input(site.input_name(0))
        size = builder.op("Abs", [value])
        cut = builder.op("Sign", [size if is_truth else value])
        if not is_truth:
            cut = builder.op("Mul", [cut, builder.op("Floor", [size])])
        builder.output(site.node.output[0], builder.original(copied(site.node), [cut]))
        return Rewrite(builder.build(), trials_of(site), exact=True)

    parts: Operators = (("Abs", {}), ("Sign", {}), ("Floor", {}), ("Mul", {"gate-second": False}))
    why_not = None if own.get("changes-numbers") else Refusal("it keeps the numbers")
    operators: Operators = (*parts, ("Cast", {**own, "changes-numbers": False}))
    yield Form("what is left of its numbers, before it", operators, write, why_not)
    if site.elem_type(0) == TensorProto.BOOL:
        yield from truth_forms(site)

    def compare() -> Rewrite:
        builder = site.builder()
        zero = builder.constant(np.zeros((), helper.tensor_dtype_to_np_dtype(site.elem_type(0))), "zero")
        equal = builder.op("Equal", [builder.input(site.input_name(0)), zero])
        builder.output(site.node.output[0], builder.op("Not", [equal]))
        return Rewrite(builder.build(), trials_of(site), exact=True)

    no_question = None
    if not is_truth:
        no_question = Refusal("it makes no booleans")
    elif site.elem_type(0) not in _SIGNED:
        no_question = Refusal("its data are no integers with a sign")
    questions: Operators = (("Equal", {"broadcasts": False}), ("Not", {}))
    yield Form("not equal to zero", questions, compare, no_question)


def divided_forms(site: Site) -> Iterator[Form]:
    """Yield a Div of integers from whose dividend the rest is taken before it."""
    own = traits_of(site.scope, site.node) or {}

    def write() -> Rewrite:
        builder = site.builder()
        dividend, divisor = (builder.input(name) for name in site.node.input)
        rest = builder.op("Mod", [dividend, divisor], {"fmod": 1})
        whole = builder.op("Sub", [dividend, rest])
        builder.output(site.node.output[0], builder.original(copied(site.node), [whole, divisor]))
        return Rewrite(builder.build(), trials_of(site), exact=True)

    why_not = None
    if site.elem_type(0) not in _SIGNED or site.opset < _MOD_SINCE:
        why_not = Refusal("its data are no integers with a sign, or this opset has no Mod")
    operators: Operators = (("Mod", {"cuts-off": True}), ("Sub", {}), ("Div", {**own, "changes-numbers": False}))
    yield Form("the rest taken off before it", operators, write, why_not)
    if own.get("by-power-of-two"):
        yield _by_many(site, own)


def _by_many(site: Site, own: Traits) -> Form:
    """Return a quotient whose divisor is a constant of the shape of the result."""
    known, divisor = site.scope.type_of(site.node.output[0]), site.constant(1)
    lengths = None if known is None else known.lengths

    def write() -> Rewrite:
        assert lengths is not None and divisor is not None
        builder = site.builder()
        whole = builder.constant(np.full(lengths, divisor.reshape(()), divisor.dtype), "divisor")
        builder.output(site.node.output[0], builder.op("Div", [builder.input(site.input_name(0)), whole]))
        return Rewrite(builder.build(), (as_declared(site),), exact=True)

    traits = {**own, "by-power-of-two": False, "by-one-each": True, "constants": "none"}
    why_not = None if lengths and np.prod(lengths) <= _MOST_DIVISORS else Refusal("it needs all lengths (--shape)")
    return Form("a divisor for each element", (("Div", traits),), write, why_not)


def _spread_first(site: Site) -> Form:
    """Return the rest of a division of what has the whole shape, as a maximum that no runtime takes for a copy."""
    own = {**(traits_of(site.scope, site.node) or {}), "spreads-first": False}
    known = site.scope.type_of(site.node.output[0])
    lengths = None if known is None else known.lengths
    since = 1 if site.elem_type(0) in FLOATS else _INTEGERS_JOINED_SINCE

    def write() -> Rewrite:
        builder = site.builder(max(site.opset, since))
        dividend, divisor = (builder.input(name) for name in site.node.input)
        shape = builder.op("Shape", [divisor]) if lengths is None else builder.integers(lengths, "lengths")
        whole = builder.op("Max", [builder.op("Expand", [dividend, shape])] * 2)
        builder.output(site.node.output[0], builder.original(copied(site.node), [whole, divisor]))
        tried = trials_of(site) if lengths is None else (as_declared(site),)
        return Rewrite(builder.build(), tried, exact=True)

    measuring: Operators = (("Shape", {}),) if lengths is None else ()
    given = site.input_type(0)
    first = None if given is None else given.lengths
    is_batch = None if first is None or lengths is None else makes_batch(first, lengths)
    joined: Operators = (("Max", {"inputs": 2, "broadcasts": False}), ("Mod", own))
    operators: Operators = (*measuring, ("Expand", {"makes-batch": is_batch}), *joined)
    return Form("a dividend of the whole shape", operators, write, None, since)


def remainder_forms(site: Site) -> Iterator[Form]:
    """Yield the rest of a division, with the sign of the dividend, as that of magnitudes, which has it added."""
    yield _spread_first(site)
    own = traits_of(site.scope, site.node) or {}

    def write() -> Rewrite:
        builder = site.builder()
        dividend, divisor = (builder.input(name) for name in site.node.input)
        rest = builder.original(copied(site.node), [builder.op("Abs", [each]) for each in (dividend, divisor)])
        builder.output(site.node.output[0], builder.op("Mul", [rest, builder.op("Sign", [dividend])]))
        return Rewrite(builder.build(), trials_of(site), exact=True)

    why_not = None if own.get("cuts-off") else Refusal("it has the sign of the divisor")
    parts: Operators = (("Abs", {}), ("Sign", {}), ("Mul", {"gate-second": False}))
    yield Form("the rest of magnitudes", (*parts, ("Mod", {**own, "of-positive": True})), write, why_not)
    yield _left_by_quotient(site, own)


def _left_by_quotient(site: Site, own: Traits) -> Form:
    """Return the rest of a division as what the whole quotient leaves, however that is rounded.

    It may have the other sign than the divisor, which is added then, before the rest is taken once more. By a 0, which
    has no rest, a Div may end the process: what is not constant becomes 1 there.
    """
    divisor = worked_out(site.scope, site.input_name(1))
    is_safe = divisor is not None and bool(divisor.all())
    settles = not own.get("cuts-off") and not own.get("of-positive")

    def write() -> Rewrite:
        builder = site.builder()
        rest, by = (builder.input(name) for name in site.node.input)
        if not is_safe:
            dtype = helper.tensor_dtype_to_np_dtype(site.elem_type(1))
            none, one = (builder.constant(np.array(each, dtype), "number") for each in (0, 1))
            by = builder.op("Where", [builder.op("Equal", [by, none]), one, by])
        rest = builder.op("Sub", [rest, builder.op("Mul", [builder.op("Div", [rest, by]), by])])
        if settles:
            rest = builder.op("Add", [rest, by])
            rest = builder.op("Sub", [rest, builder.op("Mul", [builder.op("Div", [rest, by]), by])])
        builder.output(site.node.output[0], rest)
        return Rewrite(builder.build(), trials_of(site), exact=True)

    kept = {each: own.get(each) for each in ("numbers", "axes", "alike", "channels-last", "type", "of-longs")}
    asking: Operators = () if is_safe else (("Equal", kept), ("Where", kept))
    whole: Operators = (
        *asking,
        ("Div", {**kept, "changes-numbers": True}),
        ("Mul", {**kept, "gate-second": False}),
        ("Sub", kept),
        *((("Add", kept),) if settles else ()),
    )
    why_not = Refusal("a product of floats rounds") if site.elem_type(0) in FLOATS else None
    if why_not is None and settles and site.elem_type(0) not in _SIGNED:
        why_not = Refusal("its integers may not hold the divisor beside the rest")
    return Form("what a whole quotient leaves", whole, write, why_not)


def logic_forms(site: Site) -> Iterator[Form]:
    """Yield what two booleans give as whether the product, the larger or the distance of 0 and 1 is above a half."""
    joint = {"And": "Mul", "Or": "Max", "Xor": "Sub"}[site.node.op_type]

    def write() -> Rewrite:
        builder = site.builder()
        numbers = [builder.op("Cast", [builder.input(name)], {"to": TensorProto.FLOAT}) for name in site.node.input]
        joined: Any = builder.op(joint, numbers)
        if joint == "Sub":
            joined = builder.op("Abs", [joined])
        half = builder.constant(np.array(0.5, np.float32), "half")
        builder.output(site.node.output[0], builder.op("Greater", [joined, half]))
        return Rewrite(builder.build(), trials_of(site), exact=True)

    traits: Traits = {"inputs": 2, "broadcasts": True}
    operators: Operators = (("Cast", {"gives": "single"}), (joint, traits), ("Abs", {}), ("Greater", {}))
    yield Form("numbers of 0 and 1", operators, write)
    yield from truth_forms(site)


def signed_forms(site: Site) -> Iterator[Form]:
    """Yield magnitude, negative, sign or Relu of whole numbers as differences and extremes; a negative as a product."""
    elem_type = site.elem_type(0)

    def write() -> Rewrite:
        builder = site.builder()
        value = builder.input(site.input_name(0))
        dtype = helper.tensor_dtype_to_np_dtype(elem_type)
        least, none, most = (builder.constant(np.array(each, dtype), "bound") for each in (-1, 0, 1))
        if site.node.op_type == "Sign":
            result = builder.op("Min", [builder.op("Max", [value, least]), most])
        elif site.node.op_type == "Relu":
            result = builder.op("Max", [value, none])
        else:
            negative = builder.op("Sub", [none, value])
            result = negative if site.node.op_type == "Neg" else builder.op("Max", [value, negative])
        builder.output(site.node.output[0], result)
        return Rewrite(builder.build(), trials_of(site), exact=True)

    parts = {"Abs": ("Sub", "Max"), "Neg": ("Sub",), "Relu": ("Max",), "Sign": ("Max", "Min")}[site.node.op_type]
    traits = {"inputs": 2, "broadcasts": True, "from-constant": False, "from-softmax": False}
    why_not = None
    if elem_type not in _SIGNED or (len({*parts} - {"Sub"}) and site.opset < _INTEGERS_JOINED_SINCE):
        why_not = Refusal("its data are no whole numbers of 32 or 64 bits, or this opset does not compare them")
    yield Form("differences and extremes", tuple((part, traits) for part in parts), write, why_not)
    if site.node.op_type == "Neg":
        yield _multiplied(site)


def _multiplied(site: Site) -> Form:
    """Return the negative of floats as a product with -1."""
    elem_type = site.elem_type(0) or TensorProto.UNDEFINED

    def write() -> Rewrite:
        builder = site.builder()
        minus = builder.constant(np.array(-1, helper.tensor_dtype_to_np_dtype(elem_type)), "minus")
        builder.output(site.node.output[0], builder.op("Mul", [builder.input(site.input_name(0)), minus]))
        return Rewrite(builder.build(), trials_of(site), exact=True)

    why_not = None if elem_type in FLOATS else Refusal("its data are no floats")
    return Form("a product with -1", (("Mul", {"gate-second": False, "one-first": False}),), write, why_not)


def long_forms(site: Site) -> Iterator[Form]:
    """Yield the integers that a Cast makes, or the lengths that a Shape or Size gives, as what is like an integer."""
    own, is_cast = traits_of(site.scope, site.node) or {}, site.node.op_type == "Cast"

    def write() -> Rewrite:
        builder = site.builder(max(site.opset, _LIKE_SINCE))
        value = builder.input(site.input_name(0))
        value = value if is_cast else builder.original(copied(site.node), [value])
        result = builder.op("CastLike", [value, builder.constant(np.zeros((), np.int64), "integer")])
        builder.output(site.node.output[0], result)
        return Rewrite(builder.build(), trials_of(site), exact=True)

    measured: Operators = () if is_cast else ((site.node.op_type, {**own, "ends-as-long": False}),)
    why_not = None if own.get("ends-as-long") else Refusal("it makes no integers that become results")
    if not is_cast and steers(site.scope, site.node.output[0]):
        why_not = Refusal("its lengths say what others do as well")
    yield Form("what is like an integer", (*measured, ("CastLike", {})), write, why_not, _LIKE_SINCE)
