"""Activations that overflow in some runtimes, or are approximated, in operators that every runtime computes alike."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from onnx import TensorProto, helper

from padfix.operators.clip import BOUNDS_AS_INPUT_SINCE, clip_bounds
from padfix.operators.gates import BOUND
from padfix.rules.base import Site
from padfix.rules.build.elementary_forms import clipped, unranked, written
from padfix.rules.build.forms import Form
from padfix.rules.build.objections import Operators

if TYPE_CHECKING:
    from padfix.graph.fragment_builder import FragmentBuilder

_CUBE = 0.044715
"""The factor of the cube in the definition of Gelu by Tanh."""

_LINEAR_FROM: Mapping[int, float] = {TensorProto.FLOAT16: 10.0, TensorProto.DOUBLE: 40.0}
"""Where a Softplus rounds to its input, in element types with more or fewer bits than most."""


def clip_forms(site: Site) -> Iterator[Form]:
    """Yield a Clip that reads its bounds."""
    dtype = helper.tensor_dtype_to_np_dtype(site.elem_type(0))
    least, most = (
        np.array(each, dtype) if math.isfinite(each) else None for each in clip_bounds(site.scope, site.node)
    )

    def write(builder: FragmentBuilder, value: Any) -> Any:
        return clipped(builder, value, least, most)

    since = BOUNDS_AS_INPUT_SINCE
    yield Form("bounds as inputs", (("Clip", {}),), partial(written, site, write, opset=since), unranked(site), since)


def tanh_forms(site: Site) -> Iterator[Form]:
    """Yield a Tanh of numbers within bounds: it rounds to 1 there in every element type."""
    dtype = helper.tensor_dtype_to_np_dtype(site.elem_type(0))

    def write(builder: FragmentBuilder, value: Any) -> Any:
        return builder.op("Tanh", [clipped(builder, value, np.array(-BOUND, dtype), np.array(BOUND, dtype))])

    traits = {"gates-other-data": False, "bounded": True}
    yield Form("a Clip before it", (("Clip", {}), ("Tanh", traits)), partial(written, site, write), unranked(site))


def softplus_forms(site: Site) -> Iterator[Form]:
    """Yield the Softplus of what is below a bound, and what is above it, where it is its own Softplus."""
    bound = np.array(_LINEAR_FROM.get(site.elem_type(0), BOUND), helper.tensor_dtype_to_np_dtype(site.elem_type(0)))

    def write(builder: FragmentBuilder, value: Any) -> Any:
        curved = builder.op("Softplus", [clipped(builder, value, None, bound)])
        above = builder.op("Relu", [builder.op("Sub", [value, builder.constant(bound, "bound")])])
        return builder.op("Add", [curved, above])

    operators: Operators = (("Clip", {}), ("Softplus", {"bounded": True}), ("Relu", {}))
    yield Form("a Clip before it", operators, partial(written, site, write), unranked(site))


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
