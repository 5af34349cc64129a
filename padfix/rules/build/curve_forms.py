"""Angles, inverse and hyperbolic functions, and Shrink, by the operators that every runtime has."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from onnx import helper

from padfix.graph import attributes
from padfix.operators.gates import HALF_A_TURN
from padfix.operators.refusal import Refusal
from padfix.rules.base import Site
from padfix.rules.build.along_axes import FLOATS
from padfix.rules.build.elementary_forms import clipped, unranked, written
from padfix.rules.build.forms import Form
from padfix.rules.build.objections import Operators

if TYPE_CHECKING:
    from padfix.graph.fragment_builder import FragmentBuilder

Number = Callable[[float], Any]


def curve_forms(site: Site) -> Iterator[Form]:
    """Yield a function as its definition by a root, a logarithm, exponentials or an arc tangent."""
    curve, parts = _CURVES[site.node.op_type]
    dtype = np.dtype(helper.tensor_dtype_to_np_dtype(site.elem_type(0)))

    def write(builder: FragmentBuilder, value: Any) -> Any:
        return curve(builder, value, lambda each: builder.constant(np.array(each, dtype), "number"))

    why_not = unranked(site)
    if site.elem_type(0) not in FLOATS:
        why_not = Refusal("its data are no floats")
    yield Form(
        "its definition", tuple((each, _TRAITS.get(each, {})) for each in parts), partial(written, site, write), why_not
    )


def _arc_sine(builder: FragmentBuilder, value: Any, number: Number) -> Any:
    one = number(1)
    sides = builder.op("Mul", [builder.op("Sub", [one, value]), builder.op("Add", [one, value])])
    share = builder.op("Div", [value, builder.op("Add", [one, builder.op("Sqrt", [sides])])])
    return builder.op("Mul", [builder.op("Atan", [share]), number(2)])


def _arc_cosine(builder: FragmentBuilder, value: Any, number: Number) -> Any:
    """Return the angle by the tangent of its fourth part, which is nowhere infinite, and exact where it is 0."""
    below, above = (builder.op("Sqrt", [builder.op(each, [number(1), value])]) for each in ("Sub", "Add"))
    tangent = builder.op("Div", [below, builder.op("Add", [above, number(np.sqrt(2))])])
    return builder.op("Mul", [builder.op("Atan", [tangent]), number(4)])


def _area_sine(builder: FragmentBuilder, value: Any, number: Number) -> Any:
    """Return the logarithm of a sum with the root of a square, which is of a share of at most 1: nothing overflows."""
    one, size = number(1), builder.op("Abs", [value])
    larger = builder.op("Max", [size, one])
    share = builder.op("Div", [builder.op("Min", [size, one]), larger])
    root = builder.op("Sqrt", [builder.op("Add", [builder.op("Mul", [share, share]), one])])
    total = builder.op("Add", [size, builder.op("Mul", [larger, root])])
    return builder.op("Mul", [builder.op("Sign", [value]), builder.op("Log", [total])])


def _area_cosine(builder: FragmentBuilder, value: Any, number: Number) -> Any:
    below, above = (builder.op("Sqrt", [builder.op(each, [value, number(1)])]) for each in ("Sub", "Add"))
    return builder.op("Log", [builder.op("Add", [value, builder.op("Mul", [below, above])])])


def _area_tangent(builder: FragmentBuilder, value: Any, number: Number) -> Any:
    above, below = (builder.op("Log", [builder.op(each, [number(1), value])]) for each in ("Add", "Sub"))
    return builder.op("Mul", [builder.op("Sub", [above, below]), number(0.5)])


def _of_exponentials(joint: str, builder: FragmentBuilder, value: Any, number: Number) -> Any:
    """Return half the sum or difference of what grows and what falls, each the square of a root: no root overflows."""
    root = builder.op("Exp", [builder.op("Mul", [value, number(0.5)])])
    sides = [
        builder.op("Mul", [builder.op("Mul", [each, number(0.5)]), each])
        for each in (root, builder.op("Exp", [builder.op("Mul", [value, number(-0.5)])]))
    ]
    return builder.op(joint, sides)


_TRAITS: Mapping[str, Mapping[str, Any]] = {
    "Div": {"from-constant": False},
    "Max": {"inputs": 2, "broadcasts": True},
    "Min": {"inputs": 2, "broadcasts": True},
    "Mul": {"gate-second": False},
}

_CURVES: Mapping[str, tuple[Callable[[FragmentBuilder, Any, Number], Any], tuple[str, ...]]] = {
    "Acos": (_arc_cosine, ("Sub", "Add", "Mul", "Sqrt", "Div", "Atan")),
    "Acosh": (_area_cosine, ("Sub", "Add", "Mul", "Sqrt", "Log")),
    "Asin": (_arc_sine, ("Sub", "Add", "Mul", "Sqrt", "Div", "Atan")),
    "Asinh": (_area_sine, ("Abs", "Sign", "Max", "Min", "Add", "Mul", "Sqrt", "Div", "Log")),
    "Atanh": (_area_tangent, ("Sub", "Add", "Mul", "Log")),
    "Cosh": (partial(_of_exponentials, "Add"), ("Add", "Mul", "Exp")),
    "Sinh": (partial(_of_exponentials, "Sub"), ("Sub", "Mul", "Exp")),
}
"""By the type of a function: what writes it, and of which operators."""


def shrink_forms(site: Site) -> Iterator[Form]:
    """Yield a Shrink as what is nearer to zero by its bias, where it is beyond its limit."""
    limit, bias = (0.5 if (found := attributes.find(site.node, "lambd")) is None else found.f, 0.0)
    if (told := attributes.find(site.node, "bias")) is not None:
        bias = told.f
    dtype = helper.tensor_dtype_to_np_dtype(site.elem_type(0))

    def write(builder: FragmentBuilder, value: Any) -> Any:
        def number(each: float) -> Any:
            return builder.constant(np.array(each, dtype), "number")

        beyond = builder.op("Greater", [builder.op("Abs", [value]), number(limit)])
        nearer = builder.op("Sub", [value, builder.op("Mul", [builder.op("Sign", [value]), number(bias)])])
        return builder.op("Where", [beyond, nearer, number(0)])

    operators: Operators = (
        ("Abs", {}),
        ("Greater", {}),
        ("Sign", {}),
        ("Mul", {"gate-second": False}),
        ("Sub", {}),
        ("Where", {"broadcasts": False}),
    )
    why_not = unranked(site)
    if site.elem_type(0) not in FLOATS or limit < 0:
        why_not = Refusal("its data are no floats, or its limit is below 0")
    yield Form("nearer to zero beyond a limit", operators, partial(written, site, write), why_not)


_TURN = 2 * np.pi

_PARTS_OF_A_TURN = (6.0, 0.25, _TURN - 6.25)
"""What a turn is the sum of: the first two are short, so that half precision holds what a thousand of them are."""

_ROUND_SINCE = 11


def angle_forms(site: Site) -> Iterator[Form]:
    """Yield a Sin or Cos of what is left of an angle without whole turns, which are taken off part by part."""
    dtype = np.dtype(helper.tensor_dtype_to_np_dtype(site.elem_type(0)))

    def write(builder: FragmentBuilder, value: Any) -> Any:
        def number(each: float) -> Any:
            return builder.constant(np.array(each, dtype), "number")

        turns = builder.op("Round", [builder.op("Mul", [value, number(1 / _TURN)])])
        for part in _PARTS_OF_A_TURN:
            value = builder.op("Sub", [value, builder.op("Mul", [turns, number(part)])])
        left = clipped(builder, value, np.array(-HALF_A_TURN, dtype), np.array(HALF_A_TURN, dtype))
        return builder.op(site.node.op_type, [left])

    operators: Operators = (
        ("Mul", {"gate-second": False}),
        ("Round", {}),
        ("Sub", {}),
        ("Clip", {}),
        (site.node.op_type, {"bounded": True}),
    )
    why_not = unranked(site)
    if site.elem_type(0) not in FLOATS:
        why_not = Refusal("its data are no floats")
    write_it = partial(written, site, write, opset=_ROUND_SINCE)
    yield Form("what is left without whole turns", operators, write_it, why_not, opset=_ROUND_SINCE)


CURVE_FORMS: Mapping[str, Callable[[Site], Iterator[Form]]] = {
    **dict.fromkeys(_CURVES, curve_forms),
    **dict.fromkeys(("Cos", "Sin"), angle_forms),
    "Shrink": shrink_forms,
}
"""By the type of an operator: what yields its forms."""
