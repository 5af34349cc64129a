"""Equal forms of activations that are straight, or a curve, on each side of zero."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from onnx import helper

from padfix.graph import attributes
from padfix.operators.negative_parts import scaling_list
from padfix.operators.refusal import Refusal
from padfix.operators.traits import traits_of
from padfix.rules.base import Site
from padfix.rules.build.explicit_pads import copied
from padfix.rules.build.forms import Form
from padfix.rules.build.node_forms import of_inputs
from padfix.rules.build.objections import Operators

if TYPE_CHECKING:
    from padfix.graph.fragment_builder import FragmentBuilder


_FEWEST = 2


def _sloped(site: Site) -> Iterator[Form]:
    """Yield a PRelu behind an Identity, with slopes for every axis, and as what is above zero and a slope below."""
    known, slopes = site.input_type(0), site.constant(1)
    own = traits_of(site.scope, site.node) or {}

    def apart(builder: FragmentBuilder, value: Any, slope: Any) -> Any:
        return builder.original(copied(site.node), [builder.op("Identity", [value]), slope])

    operators: Operators = (("PRelu", {**own, "behind-window": False}),)
    yield Form("an Identity before it", operators, lambda: of_inputs(site, apart, exact=True))
    rank = None if known is None else known.rank

    def whole(builder: FragmentBuilder, value: Any, slope: Any) -> Any:
        assert slopes is not None and rank is not None
        wide = slopes.reshape([1] * (rank - slopes.ndim) + list(slopes.shape))
        return builder.original(copied(site.node), [value, builder.constant(wide, "slope")])

    why_not = Refusal("its slopes are not constant") if slopes is None else None
    if rank is None or (slopes is not None and slopes.ndim >= rank):
        why_not = Refusal("it has slopes for every axis, or how many there are is not known")
    operators = (("PRelu", {**own, "slopes": "others"}),)
    yield Form("slopes for every axis", operators, lambda: of_inputs(site, whole, exact=True), why_not)

    def fewer(builder: FragmentBuilder, value: Any, slope: Any) -> Any:
        assert slopes is not None
        return builder.original(copied(site.node), [value, builder.constant(slopes[0], "slope")])

    why_not = None if own.get("slopes-of-all-axes") else Refusal("it has slopes for fewer axes, or for each element")
    if slopes is None or slopes.ndim < _FEWEST or slopes.shape[0] != 1:
        why_not = why_not or Refusal("its slopes are not constant, or not the same for all images")
    operators = (("PRelu", {**own, "slopes-of-all-axes": False}),)
    yield Form("slopes without the first axis", operators, lambda: of_inputs(site, fewer, exact=True), why_not)

    def write(builder: FragmentBuilder, value: Any, slope: Any) -> Any:
        below = builder.op("Neg", [builder.op("Relu", [builder.op("Neg", [value])])])
        return builder.op("Add", [builder.op("Relu", [value]), builder.op("Mul", [below, slope])])

    operators = (("Relu", {}), ("Neg", {}), ("Mul", {"gate-second": False}), ("Add", {}))
    yield Form("the sum of both sides of zero", operators, lambda: of_inputs(site, write, exact=False))


def _softened(site: Site) -> Iterator[Form]:
    """Yield Softsign as a product, as pnnx takes the quotient for a Softsign again."""
    one = np.array(1, helper.tensor_dtype_to_np_dtype(site.elem_type(0) or 1))

    def write(builder: FragmentBuilder, value: Any) -> Any:
        length = builder.op("Add", [builder.op("Abs", [value]), builder.constant(one, "one")])
        return builder.op("Mul", [value, builder.op("Reciprocal", [length])])

    operators: Operators = (("Abs", {}), ("Add", {}), ("Reciprocal", {}), ("Mul", {"gate-second": False}))
    yield Form("a product", operators, lambda: of_inputs(site, write, exact=False))


def _cut_off(site: Site) -> Iterator[Form]:
    """Yield a ThresholdedRelu as a product with 1 above its limit, and with 0 elsewhere."""
    found = attributes.find(site.node, "alpha")
    limit = np.array(1 if found is None else found.f, helper.tensor_dtype_to_np_dtype(site.elem_type(0) or 1))

    def write(builder: FragmentBuilder, value: Any) -> Any:
        above = builder.op("Relu", [builder.op("Sub", [value, builder.constant(limit, "limit")])])
        return builder.op("Mul", [value, builder.op("Sign", [above])])

    operators: Operators = (("Sub", {}), ("Relu", {}), ("Sign", {}), ("Mul", {"gate-second": False}))
    yield Form("a product with 0 and 1", operators, lambda: of_inputs(site, write, exact=True))


def _scaled(site: Site) -> Iterator[Form]:
    """Yield Celu as Elu of what is divided by alpha."""
    found = attributes.find(site.node, "alpha")
    dtype = helper.tensor_dtype_to_np_dtype(site.elem_type(0) or 1)

    def write(builder: FragmentBuilder, value: Any) -> Any:
        alpha = builder.constant(np.array(1 if found is None else found.f, dtype), "alpha")
        curve = builder.op("Elu", [builder.op("Div", [value, alpha])])
        return builder.op("Mul", [curve, alpha])

    yield Form(
        "a scaled Elu",
        (("Div", {}), ("Elu", {"behind-depthwise-volume": False}), ("Mul", {"gate-second": False})),
        lambda: of_inputs(site, write, exact=False),
    )


def _multiplied_elu(site: Site) -> Iterator[Form]:
    """Yield Selu as an Elu with a factor."""
    alpha, gamma = (attributes.find(site.node, name) for name in ("alpha", "gamma"))
    dtype = helper.tensor_dtype_to_np_dtype(site.elem_type(0) or 1)

    def write(builder: FragmentBuilder, value: Any) -> Any:
        curve = builder.op("Elu", [value], {"alpha": _SELU[0] if alpha is None else alpha.f})
        factor = np.array(_SELU[1] if gamma is None else gamma.f, dtype)
        return builder.op("Mul", [curve, builder.constant(factor, "gamma")])

    operators: Operators = (("Elu", {"behind-depthwise-volume": False}), ("Mul", {"gate-second": False}))
    yield Form("an Elu with a factor", operators, lambda: of_inputs(site, write, exact=False))


def listed_slopes(site: Site) -> Iterator[Form]:
    """Yield a product of the negative part of data with slopes of as many axes, where a PRelu is written so."""
    own = traits_of(site.scope, site.node) or {}
    place = scaling_list(site.scope, site.node)
    result = site.scope.type_of(site.node.output[0])
    rank = 0 if result is None or result.rank is None else result.rank

    def write(builder: FragmentBuilder, *values: Any) -> Any:
        assert place is not None
        slopes = site.constant(place)
        assert slopes is not None
        wide = builder.constant(slopes.reshape(*[1] * (rank - 1), -1), "slopes")
        return builder.original(copied(site.node), [*values[:place], wide, *values[place + 1 :]])

    why_not = None if place is not None else Refusal("it is by no list of slopes")
    operators: Operators = (("Mul", {**own, "scales-negative-part": False}),)
    yield Form("slopes of as many axes", operators, lambda: of_inputs(site, write, exact=True), why_not)


_SELU = (1.67326319217681884765625, 1.05070102214813232421875)
"""The factors of a Selu that names none."""


SLOPE_FORMS: Mapping[str, Callable[[Site], Iterator[Form]]] = {
    "Celu": _scaled,
    "PRelu": _sloped,
    "Selu": _multiplied_elu,
    "Softsign": _softened,
    "ThresholdedRelu": _cut_off,
}
"""By the type of an operator: what yields its forms."""
