"""Forms of a convolution of bytes."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

import numpy as np
from onnx import TensorProto

from padfix.operators.clip import BOUNDS_AS_INPUT_SINCE
from padfix.operators.quantizers import is_between_quantizers
from padfix.operators.refusal import Refusal
from padfix.operators.steps_of_bytes import OPERATOR_OF_BYTES
from padfix.operators.window import Window
from padfix.rules.base import Rewrite, Site
from padfix.rules.build.byte_forms import OF_CALLER
from padfix.rules.build.forms import Form
from padfix.rules.build.node_trials import trials_of
from padfix.rules.build.objections import Operators
from padfix.rules.build.rounded_forms import WAYS_TO_ROUND

_PER_CHANNEL_SINCE = 13


def quantized_forms(site: Site, window: Window) -> Iterator[Form]:
    """Yield a QLinearConv as a convolution of the numbers that its bytes stand for."""
    if site.node.op_type != OPERATOR_OF_BYTES:
        return
    names = ("data", "scale", "zero", "weights", "weight_scale", "weight_zero", "result_scale", "result_zero", "bias")
    numbers = {name: site.constant(place) for place, name in enumerate(names) if site.input_name(place)}
    # What is one number may be written as a list of one.
    held = {
        name: None if value is None else value.reshape(()) if value.size == 1 else value
        for name, value in numbers.items()
        if "scale" in name or "zero" in name
    }
    why_not = None
    if any(value is None for value in held.values()) or ("bias" in numbers and numbers["bias"] is None):
        why_not = Refusal("its scales, zero points or bias are not constant")

    def write() -> Rewrite:
        builder = site.builder()
        given = {name: builder.constant(value, name) for name, value in held.items() if value is not None}
        data, weights = (builder.input(site.input_name(place)) for place in (0, 3))
        inputs = [builder.op("DequantizeLinear", [data, given["scale"], given["zero"]])]
        listed = held["weight_scale"]
        assert listed is not None
        zero = held["weight_zero"]
        assert zero is not None
        if listed.ndim and not zero.ndim:
            given["weight_zero"] = builder.constant(np.broadcast_to(zero, listed.shape), "weight_zero")
        axis = {"axis": 0} if listed.ndim else None
        inputs.append(builder.op("DequantizeLinear", [weights, given["weight_scale"], given["weight_zero"]], axis))
        bias, scale = numbers.get("bias"), held["scale"]
        if bias is not None:
            assert scale is not None
            inputs.append(builder.constant((bias * scale.astype(np.float64) * listed).astype(np.float32), "bias"))
        told = {name: getattr(window.written, name) for name in ("auto_pad", "pads", "dilations", "group")}
        told = {**told, "kernel_shape": window.kernel, "strides": window.strides}
        kept = {name: list(value) if isinstance(value, tuple) else value for name, value in told.items() if value}
        result = builder.op("Conv", inputs, kept, name=site.node.name)
        last = builder.op("QuantizeLinear", [result, given["result_scale"], given["result_zero"]])
        builder.output(site.node.output[0], last)
        return Rewrite(builder.build(), trials_of(site))

    listed = held.get("weight_scale")
    per_channel = listed is not None and listed.ndim > 0
    opset = _PER_CHANNEL_SINCE if per_channel else 10
    name = "a convolution of the numbers that the bytes stand for"
    yield from between_quantizers(site, Form(name, (), write, why_not, opset))


def between_quantizers(site: Site, form: Form) -> Iterator[Form]:
    """Yield a form, of numbers that bytes stand for, with quantizers about it, and with what may stand for these.

    The rules for its quantizers write that.
    """
    yield dataclasses.replace(form, operators=(*quantizers_around(site), *form.operators))
    opset = max(form.opset, BOUNDS_AS_INPUT_SINCE)
    is_within = None if is_between_quantizers(site.scope, site.node) else Refusal("its bytes go elsewhere")
    for ways, about, why_not in (
        (WAYS_TO_ROUND, "", form.why_not or is_within),
        (OF_CALLER, ", with Casts about it", form.why_not),
    ):
        for way, operators in ways.items():
            name = f"{form.name}{about}, {way}"
            yield Form(name, (*operators, *form.operators), form.write, why_not, opset)


def quantizers_around(site: Site) -> Operators:
    """Return the operators that take the bytes of a node for numbers, and give numbers as bytes."""
    unsigned = site.elem_type(0) == TensorProto.UINT8
    alike = {"zero-point-written": True, "zero-point-alike": True, "unsigned": unsigned, "one-element": False}
    return tuple(
        (op_type, {**alike, "of-caller": False})  # a caller's bytes have forms of their own where they stand
        for op_type in ("DequantizeLinear", "QuantizeLinear")
    )
