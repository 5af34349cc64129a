"""Exponentials of what is far below 0, where some runtimes give no small number but a very large one."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from onnx import TensorProto, helper

from padfix.operators.clip import BOUNDS_AS_INPUT_SINCE
from padfix.operators.gates import BOUND, FAR
from padfix.operators.refusal import Refusal
from padfix.operators.traits import traits_of
from padfix.rules.base import Site
from padfix.rules.build.along_axes import FLOATS
from padfix.rules.build.elementary_forms import clipped, unranked, written
from padfix.rules.build.forms import Form
from padfix.rules.build.objections import Operators

if TYPE_CHECKING:
    from padfix.graph.fragment_builder import FragmentBuilder

_POWERS = 9
"""Odd powers of a third after which the inverse hyperbolic tangent grows by less than single precision holds."""


def exponential_forms(site: Site) -> Iterator[Form]:
    """Yield an Exp, a Softplus or a Mish of what is not far below 0, times the exponential of what is left.

    All of them fall as an exponential does, and are 0 in single precision where what is left is as far again.
    """
    dtype = np.dtype(helper.tensor_dtype_to_np_dtype(site.elem_type(0)))
    op_type = site.node.op_type
    curve = "Exp" if op_type == "Exp" else "Softplus"

    def write(builder: FragmentBuilder, value: Any) -> Any:
        bound = np.array(BOUND, dtype)
        near = builder.op(curve, [clipped(builder, value, np.array(FAR, dtype), None if curve == "Exp" else bound)])
        beyond = builder.op("Sub", [value, builder.constant(np.array(FAR, dtype), "far")])
        left = builder.op("Exp", [clipped(builder, beyond, np.array(FAR, dtype), np.array(0, dtype))])
        result = builder.op("Mul", [near, left])
        if op_type == "Mish":
            return builder.op("Mul", [value, builder.op("Tanh", [clipped(builder, result, -bound, bound)])])
        if op_type == "Exp":
            return result
        above = builder.op("Relu", [builder.op("Sub", [value, builder.constant(bound, "bound")])])
        return builder.op("Add", [result, above])

    own = traits_of(site.scope, site.node) or {}
    parts: Operators = (("Clip", {}), ("Sub", {}), ("Exp", {"falls-far": False}), ("Mul", {"gate-second": False}))
    if curve == "Softplus":
        parts = (*parts, ("Softplus", {"falls-far": False, "bounded": True}), ("Relu", {}), ("Add", {}))
    if op_type == "Mish":
        parts = (*parts, ("Tanh", {"gates-other-data": False, "bounded": True}))
    why_not = unranked(site)
    if site.elem_type(0) not in FLOATS:
        why_not = Refusal("its data are no floats")
    elif not own.get("falls-far"):
        why_not = Refusal("its data are not far below 0")
    elif curve == "Softplus" and site.elem_type(0) != TensorProto.FLOAT:
        why_not = Refusal("where it is its own data depends on its element type")
    since = BOUNDS_AS_INPUT_SINCE
    yield Form("a product with what is left of it", parts, partial(written, site, write, opset=since), why_not, since)


def logarithm_of_sum(site: Site) -> Iterator[Form]:
    """Yield a Softplus as the larger of its data and 0, and what the logarithm of 1 and a small number adds to that.

    That logarithm is twice the inverse hyperbolic tangent of a number of at most a third, of which a few powers are
    all of it: no sum with 1 loses what is small.
    """

    def write(builder: FragmentBuilder, value: Any) -> Any:
        small = _falling(builder, builder.op("Neg", [builder.op("Abs", [value])]))
        share = builder.op("Div", [small, builder.op("Add", [small, _number(builder, 2)])])
        square = builder.op("Mul", [share, share])
        total = builder.op("Mul", [square, _number(builder, 2 / (2 * _POWERS - 1))])
        for each in reversed(range(1, _POWERS - 1)):
            total = builder.op("Mul", [square, builder.op("Add", [total, _number(builder, 2 / (2 * each + 1))])])
        added = builder.op("Mul", [share, builder.op("Add", [total, _number(builder, 2)])])
        return builder.op("Add", [builder.op("Relu", [value]), added])

    parts: Operators = tuple((each, {}) for each in ("Abs", "Neg", "Relu", "Div"))
    since = BOUNDS_AS_INPUT_SINCE
    yield Form(
        "a few powers of its logarithm",
        (*parts, *_FALLING),
        partial(written, site, write, opset=since),
        _unless_single(site),
        since,
    )


def share_of_exponentials(site: Site) -> Iterator[Form]:
    """Yield Mish as its data times a quotient of exponentials, of which none is above 1."""

    def write(builder: FragmentBuilder, value: Any) -> Any:
        above, below = _falling(builder, value), _falling(builder, builder.op("Neg", [value]))
        twice = builder.op("Mul", [below, _number(builder, 2)])
        first = builder.op("Mul", [above, builder.op("Add", [above, twice])])
        second = builder.op("Mul", [below, twice])
        share = builder.op("Div", [first, builder.op("Add", [first, second])])
        return builder.op("Mul", [value, share])

    since = BOUNDS_AS_INPUT_SINCE
    parts: Operators = (("Neg", {}), ("Div", {}), *_FALLING)
    yield Form("exponentials", parts, partial(written, site, write, opset=since), _unless_single(site), since)


_FALLING: Operators = (
    ("Clip", {}),
    ("Exp", {"falls-far": False}),
    ("Sub", {}),
    ("Mul", {"gate-second": False}),
    ("Add", {}),
)


def _falling(builder: FragmentBuilder, value: Any) -> Any:
    """Return the exponential of what is below 0 of a value: of what is not far below, times that of the rest."""
    far, zero = np.array(FAR, np.float32), np.array(0, np.float32)
    near = builder.op("Exp", [clipped(builder, value, far, zero)])
    rest = builder.op("Sub", [value, builder.constant(far, "far")])
    return builder.op("Mul", [near, builder.op("Exp", [clipped(builder, rest, far, zero)])])


def _number(builder: FragmentBuilder, number: float) -> Any:
    return builder.constant(np.array(number, np.float32), "number")


def _unless_single(site: Site) -> Refusal | None:
    return unranked(site) if site.elem_type(0) == TensorProto.FLOAT else Refusal("it is not of single precision")


def mish_forms(site: Site) -> Iterator[Form]:
    """Yield Mish as the product that it is."""

    def write(builder: FragmentBuilder, value: Any) -> Any:
        return builder.op("Mul", [value, builder.op("Tanh", [builder.op("Softplus", [value])])])

    operators: Operators = (
        ("Tanh", {"gates-other-data": False, "bounded": True}),
        ("Softplus", {"falls-far": True, "bounded": True}),
    )
    yield Form("a product", operators, partial(written, site, write), unranked(site))
