"""A product of matrices of bytes as one of the numbers that the bytes stand for."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from padfix.operators.refusal import Refusal
from padfix.rules.base import Rewrite, Site
from padfix.rules.build.forms import Form
from padfix.rules.build.node_trials import trials_of
from padfix.rules.build.quantized_window import between_quantizers
from padfix.targets.traits import Traits

_NAMES = ("data", "scale", "zero", "weights", "weight_scale", "weight_zero", "result_scale", "result_zero")

_LISTED_SINCE = 13
"""The first opset with a scale for each row or column."""


def product_of_bytes(site: Site) -> Iterator[Form]:
    """Yield a QLinearMatMul as a MatMul between a DequantizeLinear of each of its data and a QuantizeLinear."""
    numbers = {name: site.constant(place) for place, name in enumerate(_NAMES) if "scale" in name or "zero" in name}
    held = {
        name: value.reshape(()) if value.size == 1 else value for name, value in numbers.items() if value is not None
    }
    known = site.input_type(3)
    columns = None if known is None or known.rank is None else known.rank - 1
    why_not = None
    if len(held) < len(numbers):
        why_not = Refusal("its scales and zero points are not constant")
    elif any(value.ndim > (1 if name.startswith("weight") else 0) for name, value in held.items()) or not columns:
        why_not = Refusal("it has a scale for each row, or how many axes its weights have is not known")

    def write() -> Rewrite:
        builder = site.builder()
        listed = held["weight_scale"]
        zero = np.broadcast_to(held["weight_zero"], listed.shape) if listed.ndim else held["weight_zero"]
        given = {name: builder.constant(value, name) for name, value in {**held, "weight_zero": zero}.items()}
        data, weights = (builder.input(site.input_name(place)) for place in (0, 3))
        first = builder.op("DequantizeLinear", [data, given["scale"], given["zero"]])
        axis = {"axis": columns} if listed.ndim else None
        second = builder.op("DequantizeLinear", [weights, given["weight_scale"], given["weight_zero"]], axis)
        product = builder.op("MatMul", [first, second], name=site.node.name)
        last = builder.op("QuantizeLinear", [product, given["result_scale"], given["result_zero"]])
        builder.output(site.node.output[0], last)
        return Rewrite(builder.build(), trials_of(site))

    product: Traits = {
        "numbers": "single",
        "rank": columns + 1 if columns else None,
        "list-first": False,
        "list-second": False,
    }
    opset = _LISTED_SINCE if "weight_scale" in held and held["weight_scale"].ndim else 10
    name = "a product of the numbers that the bytes stand for"
    yield from between_quantizers(site, Form(name, (("MatMul", product),), write, why_not, opset))
