"""Activations whose powers of e overflow in some runtimes, written so that none does, whatever the numbers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from onnx import TensorProto, helper

from padfix.operators.gates import BOUND
from padfix.operators.refusal import Refusal
from padfix.rules.base import Site
from padfix.rules.build.elementary_forms import written
from padfix.rules.build.forms import Form
from padfix.rules.build.objections import Operators

if TYPE_CHECKING:
    from padfix.graph.fragment_builder import FragmentBuilder

_BOUNDS_AS_INPUT_SINCE = 11

_LINEAR_FROM: Mapping[int, float] = {TensorProto.FLOAT16: 10.0, TensorProto.DOUBLE: 40.0}
"""Where a Softplus rounds to its input, in element types with more or fewer bits than most."""


def tanh_forms(site: Site) -> Iterator[Form]:
    """Yield a Tanh of numbers within bounds: it rounds to 1 there in every element type."""
    dtype = helper.tensor_dtype_to_np_dtype(site.elem_type(0))

    def write(builder: FragmentBuilder, value: Any) -> Any:
        return builder.op("Tanh", [_clipped(builder, value, np.array(-BOUND, dtype), np.array(BOUND, dtype))])

    traits = {"gates-other-data": False, "bounded": True}
    yield Form("a Clip before it", (("Clip", {}), ("Tanh", traits)), partial(written, site, write), _unranked(site))


def softplus_forms(site: Site) -> Iterator[Form]:
    """Yield the Softplus of what is below a bound, and what is above it, where it is its own Softplus."""
    bound = np.array(_LINEAR_FROM.get(site.elem_type(0), BOUND), helper.tensor_dtype_to_np_dtype(site.elem_type(0)))

    def write(builder: FragmentBuilder, value: Any) -> Any:
        curved = builder.op("Softplus", [_clipped(builder, value, None, bound)])
        above = builder.op("Relu", [builder.op("Sub", [value, builder.constant(bound, "bound")])])
        return builder.op("Add", [curved, above])

    operators: Operators = (("Clip", {}), ("Softplus", {"bounded": True}), ("Relu", {}))
    yield Form("a Clip before it", operators, partial(written, site, write), _unranked(site))


def _clipped(builder: FragmentBuilder, value: Any, least: np.ndarray | None, most: np.ndarray) -> Any:
    if builder.opset < _BOUNDS_AS_INPUT_SINCE:
        told = {"max": float(most)} if least is None else {"min": float(least), "max": float(most)}
        return builder.op("Clip", [value], told)
    bounds = [builder.input("") if each is None else builder.constant(each, "bound") for each in (least, most)]
    return builder.op("Clip", [value, *bounds])


def _unranked(site: Site) -> Refusal | None:
    known = site.input_type(0)
    is_known = known is not None and bool(known.rank)
    return None if is_known else Refusal("the rank of its input is not known")
