"""Equal forms of QuantizeLinear and DequantizeLinear."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from onnx import NodeProto, helper

from padfix.graph.scopes import Scope
from padfix.operators.clip import clip_bounds
from padfix.operators.constant_chains import has_chain
from padfix.operators.quantizers import ZERO_POINT, cuts_one_end, quantizer_traits
from padfix.operators.refusal import Refusal
from padfix.operators.traits import traits_of
from padfix.rules.base import Rewrite, Site, Trial, TrialInput
from padfix.rules.build.byte_forms import caller_forms
from padfix.rules.build.constant_forms import constant_form
from padfix.rules.build.elementary_forms import clipped
from padfix.rules.build.explicit_pads import copied
from padfix.rules.build.forms import Form
from padfix.rules.build.node_trials import like, trials_of
from padfix.rules.build.objections import Operators
from padfix.rules.build.pad_node import sliced
from padfix.rules.build.rounded_forms import BOUNDS, stepped_forms
from padfix.targets.traits import Traits

_QUARTER = 0.25
"""Of a step: the ends of bytes lie as much further in, or importers take the cut for the QuantizeLinear's own."""

_MIDDLE = 128
"""What bytes with a sign are less than those without."""

_SHORT = 3
"""In place of a length that is not known, where a form is tried."""


def zero_point_forms(site: Site) -> Iterator[Form]:
    """Yield the operator with a zero point in the shape of its scale, and of floats."""
    scale, told = site.input_type(1), site.constant(ZERO_POINT)
    quantized = site.elem_type(0) if site.node.op_type == "DequantizeLinear" else _elem_type(site)
    lengths = None if scale is None else scale.lengths
    is_given = bool(site.input_name(ZERO_POINT))
    if lengths is None or not quantized or (is_given and (told is None or told.size != 1)):
        why_not: Refusal | None = Refusal("its zero point, or how many scales there are, is only known at run time")
    else:
        why_not = None

    def write() -> Rewrite:
        assert lengths is not None
        builder = site.builder()
        dtype = helper.tensor_dtype_to_np_dtype(quantized)
        zero = np.full(lengths, 0 if told is None else told.reshape(()), dtype)
        inputs = [builder.input(site.input_name(place)) for place in range(ZERO_POINT)]
        node = builder.original(copied(site.node), [*inputs, builder.constant(zero, "zero_point")])
        builder.output(site.node.output[0], node)
        return Rewrite(builder.build(), trials_of(site), exact=True)

    traits = {**quantizer_traits(site.scope, site.node), "zero-point-written": True, "zero-point-alike": True}
    yield Form("a zero point in the shape of its scale", ((site.node.op_type, traits),), write, why_not)
    if traits["one-element"] and site.node.op_type == "QuantizeLinear":
        yield _doubled(site)
    if traits["leaves-floats-over"] or (traits["of-input"] and site.node.op_type == "QuantizeLinear"):
        yield _cut_off(site)
    if site.node.op_type == "DequantizeLinear":
        yield _set_apart(site)
    if traits["unsigned-from-zero"]:
        yield _of_signed_weights(site)
    if traits["behind-cut-sum"]:
        yield _quantized_first(site)
        yield _behind_extremes(site)
    yield from stepped_forms(site)
    if has_chain(site.scope, site.node):
        yield constant_form(site)
    yield from caller_forms(site)


def _cut_off(site: Site) -> Form:
    """Return a QuantizeLinear of its data within what its bytes stand for, or a quarter of a step less.

    What is cut off is rounded to the first or the last byte all the same.
    """
    scale, known = site.constant(1), site.input_type(0)
    zero = site.constant(ZERO_POINT) if site.input_name(ZERO_POINT) else np.zeros(1, np.uint8)
    limits = BOUNDS.get(_elem_type(site))
    why_not = None if known is not None and known.rank else Refusal("how many axes it has is not known")
    if scale is None or scale.size != 1 or zero is None or zero.size != 1 or limits is None:
        why_not = Refusal("it has several scales, or none that are known, or makes no bytes")

    def write() -> Rewrite:
        assert scale is not None
        assert zero is not None
        assert limits is not None
        builder = site.builder()
        data, *steps = (builder.input(name) if name else None for name in site.node.input)
        ends = (limits[0] + _QUARTER - int(zero.item()), limits[1] - _QUARTER - int(zero.item()))
        within = clipped(builder, data, *(np.array(each * float(scale.item()), scale.dtype) for each in ends))
        return Rewrite(builder.ending_in(copied(site.node), [within, *steps]), trials_of(site), exact=True)

    traits = {**quantizer_traits(site.scope, site.node), "leaves-floats-over": False, "of-input": False}
    operators: Operators = (("Clip", {"cuts-one-end-of-bytes": False}), ("QuantizeLinear", traits))
    return Form("its data cut off before it", operators, write, why_not)


def _of_signed_weights(site: Site) -> Form:
    """Return a DequantizeLinear of constant bytes with a sign: each is 128 less, and so is the zero point."""
    weights, scale = site.constant(0), site.input_type(1)
    lengths = None if scale is None else scale.lengths

    def write() -> Rewrite:
        assert weights is not None
        assert lengths is not None
        builder = site.builder()
        signed = builder.constant((weights.astype(np.int16) - _MIDDLE).astype(np.int8), "weights")
        zero = builder.constant(np.full(lengths, -_MIDDLE, np.int8), "zero_point")
        inputs = [signed, builder.input(site.input_name(1)), zero]
        return Rewrite(builder.ending_in(copied(site.node), inputs), trials_of(site), exact=True)

    signs = {"unsigned": False, "off-centre": True, "unsigned-from-zero": False}
    traits = {**quantizer_traits(site.scope, site.node), **signs, "zero-point-written": True, "zero-point-alike": True}
    why_not = None if weights is not None and lengths is not None else Refusal("its bytes or scales are not constant")
    return Form("bytes with a sign", (("DequantizeLinear", traits),), write, why_not)


def _quantized_first(site: Site) -> Form:
    """Return a QuantizeLinear of what cuts off the bytes that another one makes, with the same steps."""
    scope, node = site.scope, site.node
    cutting = scope.own_producer(node.input[0])
    told = {name: scope.constant(name) for name in node.input[1:] if name}
    known = scope.type_of(cutting.input[0]) if cutting is not None and cutting.input else None

    def write() -> Rewrite:
        assert cutting is not None
        assert known is not None
        builder = site.builder()
        data, *bounds = (builder.input(name) if name else None for name in cutting.input)
        steps = [builder.constant(each, "steps") for each in told.values() if each is not None]
        data = builder.op("DequantizeLinear", [builder.original(copied(node), [data, *steps]), *steps])
        cut = builder.original(copied(cutting), [data, *bounds])
        trial = _trial_of(scope, cutting, node)
        return Rewrite(builder.ending_in(copied(node), [cut, *steps]), (trial,), exact=True, replaces=(cutting,))

    why_not = None if known is not None and known.shape is not None else Refusal("how many axes it has is not known")
    if any(each is None for each in told.values()):
        why_not = Refusal("its steps are not constant")
    traits = {**quantizer_traits(scope, node), "behind-cut-sum": False}
    now: Traits = {}
    if cutting is not None:
        is_one_end = cutting.op_type == "Clip" and cuts_one_end(scope, cutting, [node])
        now = {**(traits_of(scope, cutting) or {}), "behind-convolution": "no", "cuts-one-end-of-bytes": is_one_end}
    parts: Operators = (("QuantizeLinear", traits), ("DequantizeLinear", {"undoes-quantizer": True}))
    kind = "Relu" if cutting is None else cutting.op_type
    return Form("bytes before what cuts them off as well", (*parts, (kind, now)), write, why_not)


def _trial_of(scope: Scope, cutting: NodeProto, quantizer: NodeProto) -> Trial:
    """Return what a node and the QuantizeLinear behind it are tried on: something of its data's type, and constants."""
    known = scope.type_of(cutting.input[0])
    assert known is not None
    constants = {name: scope.constant(name) for name in (*quantizer.input[1:], *cutting.input[1:]) if name}
    trial = {name: TrialInput.of(value) for name, value in constants.items() if value is not None}
    return {**trial, cutting.input[0]: like(known, _SHORT)}


def _behind_extremes(site: Site) -> Form:
    """Return a QuantizeLinear of a maximum and a minimum, in the place of the Relu or Clip before it."""
    scope, node = site.scope, site.node
    cutting = scope.own_producer(node.input[0])
    data = scope.type_of(cutting.input[0]) if cutting is not None and cutting.input else None
    least, most = (0.0, np.inf) if cutting is None or cutting.op_type == "Relu" else clip_bounds(scope, cutting)
    bounds = (("Max", least), ("Min", most))
    names = [*node.input[1:], *(() if cutting is None else cutting.input[1:])]
    told = {name: scope.constant(name) for name in filter(None, names)}

    def write() -> Rewrite:
        assert cutting is not None
        assert data is not None
        builder = site.builder()
        value = builder.input(cutting.input[0])
        dtype = helper.tensor_dtype_to_np_dtype(data.elem_type)
        for op_type, bound in bounds:
            if np.isfinite(bound):
                value = builder.op(op_type, [value, builder.constant(np.array(bound, dtype), "bound")])
        steps = [builder.input(name) for name in filter(None, node.input[1:])]
        trial = _trial_of(scope, cutting, node)
        return Rewrite(builder.ending_in(copied(node), [value, *steps]), (trial,), exact=True, replaces=(cutting,))

    why_not = None if data is not None and data.shape is not None else Refusal("how many axes it has is not known")
    if any(each is None for each in told.values()):
        why_not = Refusal("its steps, or the bounds before it, are not constant")
    operators: Operators = tuple((each, {"inputs": 2, "constants": "number"}) for each, _ in bounds)
    traits = {**quantizer_traits(scope, node), "behind-cut-sum": False}
    return Form("a maximum and a minimum before it", (*operators, ("QuantizeLinear", traits)), write, why_not)


def _set_apart(site: Site) -> Form:
    """Return a DequantizeLinear with a maximum behind it that changes nothing, but is none of bytes."""

    def write() -> Rewrite:
        builder = site.builder()
        numbers = builder.original(copied(site.node), [builder.input(name) for name in site.node.input])
        least = np.finfo(helper.tensor_dtype_to_np_dtype(site.elem_type(1))).min
        builder.output(site.node.output[0], builder.op("Max", [numbers, builder.constant(np.array(least), "least")]))
        return Rewrite(builder.build(), trials_of(site), exact=True)

    traits = {**quantizer_traits(site.scope, site.node), "saturates": False, "as-result": False}
    operators: Operators = (("DequantizeLinear", traits), ("Max", {"inputs": 2, "constants": "number"}))
    return Form("a maximum behind it", operators, write)


def _doubled(site: Site) -> Form:
    """Return a QuantizeLinear of the data twice, of which one is taken."""
    known = site.input_type(0)
    last = 0 if known is None or not known.rank else known.rank - 1
    why_not = None if known is not None and known.rank else Refusal("its data are a number")

    def write() -> Rewrite:
        builder = site.builder()
        data, *rest = (builder.input(name) for name in site.node.input)
        twice = builder.op("Concat", [data, data], {"axis": last})
        quantized = builder.original(copied(site.node), [twice, *rest])
        builder.output(site.node.output[0], sliced(builder, quantized, [0], [1], [last]))
        return Rewrite(builder.build(), trials_of(site), exact=True)

    traits = {**quantizer_traits(site.scope, site.node), "one-element": False}
    operators: Operators = (("Concat", {}), ("QuantizeLinear", traits), ("Slice", {"behind-window": False}))
    return Form("of its data twice", operators, write, why_not)


def _elem_type(site: Site) -> int:
    known = site.scope.type_of(site.node.output[0])
    return 0 if known is None else known.elem_type
