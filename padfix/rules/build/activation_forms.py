"""Activations that overflow in some runtimes, or are approximated, in operators that every runtime computes alike."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from onnx import TensorProto, helper

from padfix.graph import attributes
from padfix.operators.axis_order import ORDER
from padfix.operators.clip import BOUNDS_AS_INPUT_SINCE, clip_bounds
from padfix.operators.fused_layers import made_by
from padfix.operators.gates import BOUND
from padfix.operators.refusal import Refusal
from padfix.operators.traits import traits_of
from padfix.rules.base import Rewrite, Site
from padfix.rules.build.along_axes import FLOATS
from padfix.rules.build.elementary_forms import clipped, unranked, written
from padfix.rules.build.forms import Form
from padfix.rules.build.node_forms import of_inputs
from padfix.rules.build.node_trials import trials_of
from padfix.rules.build.objections import Operators
from padfix.targets.traits import Traits

if TYPE_CHECKING:
    from padfix.graph.fragment_builder import FragmentBuilder

_CUBE = 0.044715
"""The factor of the cube in the definition of Gelu by Tanh."""

_LINEAR_FROM: Mapping[int, float] = {TensorProto.FLOAT16: 10.0, TensorProto.DOUBLE: 40.0}
"""Where a Softplus rounds to its input, in element types with more or fewer bits than most."""

_ERF_BY_TANH = (
    *(1.1283792471842504, 0.1027698641449006, -1.95288214751726e-4, -6.148381847108733e-4),
    *(8.459655371620796e-5, -4.794597629802954e-6, 2.757521665633814e-8, 5.421638918346257e-9),
)
"""The factors of x, x ** 3 and so on, whose sum has erf(x) as its Tanh: the polynomial nearest to it up to 4.

Of all numbers in single precision none comes out more than 4 units in its last place off, as kernels of Erf do.
"""

_ERF_IS_ONE_FROM = 4.0
"""Where erf(x) rounds to 1 in single precision."""


def clip_forms(site: Site) -> Iterator[Form]:
    """Yield a Clip that reads its bounds, and one as the larger and the smaller of its data and what is computed."""
    if (traits_of(site.scope, site.node) or {}).get("bounds-computed"):
        yield _between(site)
        return
    if not any(site.node.input[1:]) and not site.node.attribute:
        yield Form(
            "an Identity",
            (("Identity", {}),),
            partial(written, site, lambda builder, value: builder.op("Identity", [value])),
        )
    dtype = helper.tensor_dtype_to_np_dtype(site.elem_type(0))
    least, most = (
        np.array(each, dtype) if math.isfinite(each) else None for each in clip_bounds(site.scope, site.node)
    )

    def write(builder: FragmentBuilder, value: Any) -> Any:
        return clipped(builder, value, least, most)

    since, own = BOUNDS_AS_INPUT_SINCE, traits_of(site.scope, site.node) or {}
    yield Form("bounds as inputs", (("Clip", own),), partial(written, site, write, opset=since), unranked(site), since)
    yield _with_both_bounds(site, least, most)
    why_not = unranked(site) if least is not None and most is None else Refusal("it has another bound than the least")

    def bounded(builder: FragmentBuilder, value: Any) -> Any:
        for op_type, bound in (("Max", least), ("Min", most)):
            if bound is not None:
                value = builder.op(op_type, [value, builder.constant(bound, "bound")])
        return value

    def extremes() -> Rewrite:
        builder = site.builder()
        builder.output(site.node.output[0], bounded(builder, builder.input(site.input_name(0))))
        return Rewrite(builder.build(), trials_of(site))

    larger: Operators = (("Max", {"inputs": 2}),)
    yield Form("the larger of both", larger, extremes, why_not)
    is_open = least is None and most is None
    why_not = Refusal("its bounds are not constant") if is_open else unranked(site)
    yield Form("a maximum and a minimum", (*larger, ("Min", {"inputs": 2})), extremes, why_not)


def _with_both_bounds(site: Site, least: np.ndarray | None, most: np.ndarray | None) -> Form:
    """Return a Clip of floats that is told its bound at the other side, too: it has none there."""

    def write() -> Rewrite:
        builder = site.builder()
        dtype = helper.tensor_dtype_to_np_dtype(site.elem_type(0))
        below, above = (np.array(each, dtype) for each in (-np.inf, np.inf))
        bounds = below if least is None else least, above if most is None else most
        builder.output(site.node.output[0], clipped(builder, builder.input(site.input_name(0)), *bounds))
        return Rewrite(builder.build(), trials_of(site), exact=True)

    why_not = unranked(site)
    if (least is None) == (most is None):
        why_not = Refusal("it has both bounds, or none")
    elif site.elem_type(0) not in FLOATS:
        why_not = Refusal("its data are no floats")
    elif site.opset < BOUNDS_AS_INPUT_SINCE:
        why_not = Refusal("this opset has its bounds as attributes")
    own = {**(traits_of(site.scope, site.node) or {}), "bounds-one-side": False, "one-bound-inside": False}
    return Form("both bounds", (("Clip", own),), write, why_not)


def _between(site: Site) -> Form:
    least, most = (site.input_name(place) for place in (1, 2))

    def write() -> Rewrite:
        builder = site.builder()
        value = builder.input(site.input_name(0))
        for op_type, bound in (("Max", least), ("Min", most)):
            if bound:
                value = builder.op(op_type, [value, builder.input(bound)])
        builder.output(site.node.output[0], value)
        return Rewrite(builder.build(), trials_of(site))

    traits: Traits = {"inputs": 2, "broadcasts": True}
    operators: Operators = (*((("Max", traits),) if least else ()), *((("Min", traits),) if most else ()))
    return Form("the larger and the smaller of each", operators, write)


def apart_from_softplus(site: Site) -> Iterator[Form]:
    """Yield a sum with an Identity behind each exponential in it, so that a logarithm of it makes no Softplus."""
    names = [site.input_name(place) for place in range(len(site.node.input))]
    places = [place for place, name in enumerate(names) if made_by(site.scope, name, "Exp") is not None]
    own = traits_of(site.scope, site.node) or {}

    def write(builder: FragmentBuilder, *values: Any) -> Any:
        return builder.op(
            "Add", [builder.op("Identity", [each]) if place in places else each for place, each in enumerate(values)]
        )

    operators: Operators = (("Add", {**own, "adds-for-softplus": False}),)
    why_not = None if own.get("adds-for-softplus") else Refusal("no logarithm reads the sum of an exponential")
    yield Form("an Identity behind the exponential", operators, lambda: of_inputs(site, write, exact=True), why_not)


def tanh_forms(site: Site) -> Iterator[Form]:
    """Yield a Tanh of numbers within bounds: it rounds to 1 there in every element type."""
    dtype = helper.tensor_dtype_to_np_dtype(site.elem_type(0))

    def write(builder: FragmentBuilder, value: Any) -> Any:
        return builder.op("Tanh", [clipped(builder, value, np.array(-BOUND, dtype), np.array(BOUND, dtype))])

    traits = {"gates-other-data": False, "bounded": True}
    yield Form("a Clip before it", (("Clip", {}), ("Tanh", traits)), partial(written, site, write), unranked(site))


def hard_sigmoid_forms(site: Site) -> Iterator[Form]:
    """Yield a HardSigmoid as a product and a sum, cut off."""
    dtype = helper.tensor_dtype_to_np_dtype(site.elem_type(0))

    def factor(name: str, default: float) -> np.ndarray:
        found = attributes.find(site.node, name)
        return np.array(default if found is None else found.f, dtype)

    def write(builder: FragmentBuilder, value: Any) -> Any:
        for op_type, name, default in (("Mul", "alpha", 0.2), ("Add", "beta", 0.5)):
            value = builder.op(op_type, [value, builder.constant(factor(name, default), name)])
        return clipped(builder, value, np.array(0, dtype), np.array(1, dtype))

    operators: Operators = (("Mul", {"gate-second": False}), ("Add", {}), ("Clip", {}))
    yield Form("a product and a sum", operators, partial(written, site, write), unranked(site))


def softplus_forms(site: Site) -> Iterator[Form]:
    """Yield the Softplus of what is below a bound, and what is above it, where it is its own Softplus."""
    bound = np.array(_LINEAR_FROM.get(site.elem_type(0), BOUND), helper.tensor_dtype_to_np_dtype(site.elem_type(0)))

    def write(builder: FragmentBuilder, value: Any) -> Any:
        curved = builder.op("Softplus", [clipped(builder, value, None, bound)])
        above = builder.op("Relu", [builder.op("Sub", [value, builder.constant(bound, "bound")])])
        return builder.op("Add", [curved, above])

    falls = (traits_of(site.scope, site.node) or {}).get("falls-far", False)
    operators: Operators = (("Clip", {}), ("Softplus", {"bounded": True, "falls-far": falls}), ("Relu", {}))
    yield Form("a Clip before it", operators, partial(written, site, write), unranked(site))


def erf_forms(site: Site) -> Iterator[Form]:
    """Yield an Erf in single precision as the Tanh of a polynomial, which is as near as kernels of Erf come."""

    def write(builder: FragmentBuilder, value: Any) -> Any:
        def number(each: float) -> Any:
            return builder.constant(np.array(each, np.float32), "factor")

        bound = np.array(_ERF_IS_ONE_FROM, np.float32)
        value = clipped(builder, value, -bound, bound)
        square = builder.op("Mul", [value, value])
        total = number(_ERF_BY_TANH[-1])
        for each in _ERF_BY_TANH[-2::-1]:
            total = builder.op("Add", [builder.op("Mul", [square, total]), number(each)])
        return builder.op("Tanh", [builder.op("Mul", [value, total])])

    order = {name: each for name, each in (traits_of(site.scope, site.node) or {}).items() if name in ORDER}
    parts: Operators = tuple((each, order) for each in ("Clip", "Mul", "Add"))
    # The polynomial stays within the bound of a Tanh; a target that wants to see that has a Clip of it, too.
    operators: Operators = (*parts, ("Tanh", {**order, "gates-other-data": False, "bounded": True}))
    why_not = unranked(site)
    if site.elem_type(0) != TensorProto.FLOAT:
        why_not = Refusal("the polynomial is for single precision")
    yield Form("the Tanh of a polynomial", operators, partial(written, site, write), why_not)


def gelu_forms(site: Site) -> Iterator[Form]:
    """Yield a Gelu as the product that its definition is, by Erf or by Tanh."""
    dtype = helper.tensor_dtype_to_np_dtype(site.elem_type(0))
    by_tanh = site.text("approximate", "none") == "tanh"

    def write(builder: FragmentBuilder, value: Any) -> Any:
        def times(other: Any, factor: float) -> Any:
            return builder.op("Mul", [other, builder.constant(np.array(factor, dtype), "factor")])

        if by_tanh:
            cube = builder.op("Mul", [builder.op("Mul", [value, value]), value])
            inner = times(builder.op("Add", [value, times(cube, _CUBE)]), math.sqrt(2 / math.pi))
            share = builder.op("Tanh", [clipped(builder, inner, np.array(-BOUND, dtype), np.array(BOUND, dtype))])
        else:
            share = builder.op("Erf", [times(value, math.sqrt(0.5))])
        # One more than the share is what runtimes know Gelu by, and approximate.
        return times(builder.op("Add", [value, builder.op("Mul", [value, share])]), 0.5)

    operators: Operators = (("Tanh", {"gates-other-data": False, "bounded": True}),) if by_tanh else (("Erf", {}),)
    yield Form("a product", operators, partial(written, site, write), unranked(site))


def swish_forms(site: Site) -> Iterator[Form]:
    """Yield a Swish as the product that it is."""
    found = attributes.find(site.node, "alpha")
    factor = np.array(1 if found is None else found.f, helper.tensor_dtype_to_np_dtype(site.elem_type(0)))

    def write(builder: FragmentBuilder, value: Any) -> Any:
        inner = value if factor == 1 else builder.op("Mul", [value, builder.constant(factor, "alpha")])
        return builder.op("Mul", [value, builder.op("Sigmoid", [inner])])

    operators: Operators = (("Sigmoid", {}), ("Mul", {"gate-second": True}))
    yield Form("a product", operators, partial(written, site, write, 1))


def shrink_forms(site: Site) -> Iterator[Form]:
    """Yield a Shrink as what a Clip takes off, and as the sum of what is left on both sides of zero."""
    dtype: Any = helper.tensor_dtype_to_np_dtype(site.elem_type(0))
    limit, bias = (
        np.array(default if (found := attributes.find(site.node, name)) is None else found.f).astype(dtype)
        for name, default in (("lambd", 0.5), ("bias", 0.0))
    )

    def cut(builder: FragmentBuilder, value: Any) -> Any:
        return builder.op("Sub", [value, clipped(builder, value, -limit, limit)])

    def sides(builder: FragmentBuilder, value: Any) -> Any:
        parts = []
        for joint, beyond in (("Sub", value), ("Add", builder.op("Neg", [value]))):
            above = builder.op("Relu", [builder.op("Sub", [beyond, builder.constant(limit, "limit")])])
            moved = builder.op(joint, [value, builder.constant(bias, "bias")]) if bias else value
            parts.append(builder.op("Mul", [moved, builder.op("Sign", [above])]))
        return builder.op("Add", parts)

    why_not = unranked(site)
    if site.elem_type(0) not in FLOATS or limit < 0:
        why_not = Refusal("its data are no floats, or its limit is below zero")
    is_soft = None if limit == bias else Refusal("it moves by another number than its limit")
    yield Form(
        "without what a Clip leaves", (("Clip", {}), ("Sub", {})), partial(written, site, cut), why_not or is_soft
    )
    operators: Operators = (
        ("Neg", {}),
        ("Sub", {}),
        ("Relu", {}),
        ("Sign", {}),
        ("Mul", {"gate-second": False}),
        ("Add", {}),
    )
    yield Form("both sides of zero", operators, partial(written, site, sides), why_not)
