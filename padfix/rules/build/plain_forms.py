"""Equal forms of comparisons, picked elements, pieces, running sums, transforms and other operators."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from onnx import TensorProto, helper, numpy_helper

from padfix.graph import attributes
from padfix.operators.elementwise import PLACES
from padfix.operators.numbers import bytes_of
from padfix.operators.picked_parts import sorted_axes
from padfix.operators.picking_traits import PICKING
from padfix.operators.refusal import Refusal
from padfix.operators.suppression import OVERLAP
from padfix.operators.traits import traits_of
from padfix.rules.base import Rewrite, Site
from padfix.rules.build.along_axes import FLOATS
from padfix.rules.build.byte_forms import byte_forms, dynamic_forms
from padfix.rules.build.constant_forms import filled_forms
from padfix.rules.build.copy_forms import joined_copies, repeated_copies
from padfix.rules.build.data_before_constants import behind_data
from padfix.rules.build.element_forms import element_forms, type_forms
from padfix.rules.build.equation_forms import equation_forms
from padfix.rules.build.explicit_pads import copied
from padfix.rules.build.forms import Form
from padfix.rules.build.index_forms import MAXIMUM_OF_INTEGERS_SINCE
from padfix.rules.build.matrix_forms import matrix_forms
from padfix.rules.build.moved_forms import moved_forms
from padfix.rules.build.node_forms import of_inputs
from padfix.rules.build.node_trials import as_declared, trials_of
from padfix.rules.build.objections import Operators
from padfix.rules.build.passing_forms import summed_with_nothing
from padfix.rules.build.place_forms import compressed_forms, extreme_place_forms
from padfix.rules.build.running_sum_forms import running_sum_forms
from padfix.rules.build.sampled_forms import sampled_forms
from padfix.rules.build.slope_forms import SLOPE_FORMS
from padfix.rules.build.sorted_forms import sorted_forms
from padfix.rules.build.spectrum_forms import spectrum_forms
from padfix.rules.build.split_forms import split_forms
from padfix.rules.build.transform_forms import transform_forms
from padfix.targets.traits import Traits

if TYPE_CHECKING:
    from padfix.graph.fragment_builder import FragmentBuilder

_SIZES_AS_INPUT_SINCE = 13

_NOTHING_DROPPED_SINCE = 7
"""Opset from which on a Dropout is for training only where it is told so."""

_MASK_OF_BOOLEANS_SINCE = 10


def _less(site: Site) -> Iterator[Form]:
    def write(builder: FragmentBuilder, first: Any, second: Any) -> Any:
        return builder.op("Greater", [second, first])

    own = traits_of(site.scope, site.node) or {}
    compared = {name: own.get(name) for name in ("both-broadcast", "numbers")}
    yield Form(
        "what is greater, the other way round", (("Greater", compared),), lambda: of_inputs(site, write, exact=True)
    )


def _passed(site: Site) -> Iterator[Form]:
    """Yield a Dropout as the Identity that it is where nothing is dropped, and all of its mask as kept."""
    mode = site.constant(2) if site.input_name(2) else np.array(False)
    is_old = site.opset < _NOTHING_DROPPED_SINCE and not attributes.integer(site.node, "is_test", 0)
    is_random = is_old or mode is None or bool(mode)
    mask = site.node.output[1] if len(site.node.output) > 1 else ""
    why_not = Refusal("it drops elements, or whether it does is not known") if is_random else None
    known = site.input_type(0)
    lengths = None if known is None else known.lengths
    is_asked = site.scope.is_used(mask)
    if is_asked and site.opset < _MASK_OF_BOOLEANS_SINCE:
        why_not = Refusal("its mask is of numbers in this opset")
    kept: Operators = ()
    if is_asked:
        kept = (("Identity", {}),) if lengths else (("Shape", {}), ("ConstantOfShape", {}))
    traits = {**(traits_of(site.scope, site.node) or {}), "constant-booleans": False}
    operators: Operators = (("Identity", traits),)

    def write() -> Rewrite:
        builder = site.builder()
        value = builder.input(site.input_name(0))
        builder.output(site.node.output[0], builder.op("Identity", [value]))
        if is_asked and lengths:
            builder.output(mask, builder.op("Identity", [builder.constant(np.ones(lengths, np.bool_), "kept")]))
        elif is_asked:
            true = helper.make_tensor("", TensorProto.BOOL, [1], [True])
            builder.output(mask, builder.op("ConstantOfShape", [builder.op("Shape", [value])], {"value": true}))
        tried = (as_declared(site),) if is_asked and lengths else trials_of(site)
        return Rewrite(builder.build(), tried, exact=True)

    yield Form("an Identity", (*operators, *kept), write, why_not)


def _named(site: Site) -> Iterator[Form]:
    """Yield a Squeeze with its axes, all that have one element; with them in order; and in an opset of today."""
    lengths = shape if (known := site.input_type(0)) is not None and (shape := known.shape) is not None else (None,)
    axes = [axis for axis, length in enumerate(lengths) if length == 1]
    is_told = len(site.node.input) > 1 or attributes.find(site.node, "axes") is not None
    told = Refusal("its axes are written") if is_told else None
    is_known = all(isinstance(length, int) for length in lengths)
    why_not = told or (None if is_known else Refusal("a length is left open (--shape)"))

    def write(builder: FragmentBuilder, value: Any) -> Any:
        return builder.unsqueezed(value, *axes, back=True) if axes else builder.op("Identity", [value])

    def modern(builder: FragmentBuilder, value: Any) -> Any:
        return builder.original(copied(site.node), [value])

    operators: Operators = (("Squeeze", {"axes-written": True}) if axes else ("Identity", {}),)
    yield Form("its axes written", operators, lambda: of_inputs(site, write, exact=True), why_not)
    yield _in_order(site)
    operators = (("Squeeze", {"axes-written": False, "open-lengths": not is_known}),)
    as_it_is = _SIZES_AS_INPUT_SINCE
    yield Form("as opset 13 has it", operators, lambda: of_inputs(site, modern, exact=True), told, opset=as_it_is)


def _in_order(site: Site) -> Form:
    """Return a Squeeze whose axes are listed from the first to the last."""
    in_order = sorted_axes(site.scope, site.node)

    def write(builder: FragmentBuilder, value: Any, *_: Any) -> Any:
        return builder.unsqueezed(value, *(in_order or ()), back=True)

    own = traits_of(site.scope, site.node) or {}
    why_not = None if own.get("axes-out-of-order") else Refusal("its axes are in order, as far as they are known")
    own = {**own, "axes-out-of-order": False}
    return Form("its axes in order", (("Squeeze", own),), lambda: of_inputs(site, write, exact=True), why_not)


def _limited(site: Site) -> Iterator[Form]:
    """Yield a NonMaxSuppression whose limits are lists of one number."""
    limits = range(2, len(site.node.input))
    unread = any(site.input_name(place) and site.constant(place) is None for place in limits)

    def write() -> Rewrite:
        builder = site.builder()
        inputs = [builder.input(site.input_name(place)) for place in range(2)]
        for place in limits:
            told = site.constant(place)
            inputs.append(builder.input("") if told is None else builder.constant(told.reshape(-1), "limit"))
        builder.output(site.node.output[0], builder.original(copied(site.node), inputs))
        return Rewrite(builder.build(), trials_of(site), exact=True)

    why_not = Refusal("its limits are not constant") if unread else None
    own = {**(traits_of(site.scope, site.node) or {}), "limits-as-numbers": False}
    yield Form("its limits as lists", (("NonMaxSuppression", own),), write, why_not)
    yield _from_least_overlap(site)
    yield _by_corners(site)


def _from_least_overlap(site: Site) -> Form:
    """Return a NonMaxSuppression whose limit of overlap is the least number that is not held in fewer bits, for 0.

    What overlaps at all is far beyond it: boxes would have to be 10^38 times as large as what they share.
    """
    own = traits_of(site.scope, site.node) or {}

    def write() -> Rewrite:
        builder = site.builder()
        names = [*site.node.input, *[""] * OVERLAP][: max(len(site.node.input), OVERLAP + 1)]
        inputs = [builder.input(name) for name in names]
        inputs[OVERLAP] = builder.constant(np.array([np.finfo(np.float32).tiny]), "limit")
        builder.output(site.node.output[0], builder.original(copied(site.node), inputs))
        return Rewrite(builder.build(), trials_of(site), exact=True)

    why_not = None if own.get("takes-no-overlap") else Refusal("its limit of overlap is another than 0, or computed")
    told: Operators = (("NonMaxSuppression", {**own, "takes-no-overlap": False}),)
    return Form("the least limit of overlap in place of 0", told, write, why_not)


_CENTRES = ((0, 1, 0, 1), (1, 0, 1, 0), (0, 0, 0, 0), (0, 0, 0, 0))
_LENGTHS = ((0, 0, 0, 0), (0, 0, 0, 0), (0, -0.5, 0, 0.5), (-0.5, 0, 0.5, 0))
"""What x and y, and width and height, add to the first y and x, and to the last, of a box."""


def _by_corners(site: Site) -> Form:
    """Return a NonMaxSuppression of boxes by their corners, which are a product of their centres and lengths.

    A box of a length below 0 overlaps none; by its corners it would be one of the length without the sign. It is given
    the length 0, with which it overlaps none either.
    """
    dtype = helper.tensor_dtype_to_np_dtype(site.elem_type(0))

    def write() -> Rewrite:
        builder = site.builder()
        given = builder.input(site.input_name(0))
        centres = builder.op("MatMul", [given, builder.constant(np.array(_CENTRES, dtype), "centres")])
        lengths = builder.constant(np.array(_LENGTHS, dtype), "lengths")
        boxes = builder.op("Add", [centres, builder.op("MatMul", [builder.op("Relu", [given]), lengths])])
        others = [builder.input(name) for name in site.node.input[1:]]
        node = copied(site.node, without=("center_point_box",))
        builder.output(site.node.output[0], builder.original(node, [boxes, *others]))
        return Rewrite(builder.build(), trials_of(site), exact=True)

    own = traits_of(site.scope, site.node) or {}
    why_not = None if own.get("boxes-by-centre") else Refusal("its boxes are told by their corners")
    operators: Operators = (
        ("Relu", {}),
        ("MatMul", {"rank": 3, "by-a-matrix": True}),
        ("Add", {}),
        ("NonMaxSuppression", {**own, "boxes-by-centre": False}),
    )
    return Form("boxes by their corners", operators, write, why_not)


def _cast_twice(site: Site) -> Iterator[Form]:
    """Yield a Cast by way of whole numbers of 32 bits, which all bytes are."""

    def write(builder: FragmentBuilder, value: Any) -> Any:
        return builder.original(copied(site.node), [builder.op("Cast", [value], {"to": TensorProto.INT32})])

    own = traits_of(site.scope, site.node) or {}
    whole: Traits = {"gives": "integer", "gives-odd-integers": False, "gives-signed-bytes": False, "wraps": False}
    casts = ({**own, **whole}, {**own, "elements": "integer", "unsigned": False})
    why_not = Refusal("its data are no bytes") if own.get("elements") != "byte" else None
    operators = tuple(("Cast", each) for each in casts)
    yield Form("a Cast to whole numbers before it", operators, lambda: of_inputs(site, write, exact=True), why_not)
    yield summed_with_nothing(site)
    if own.get("bytes-of-input"):
        yield _cast_inside(site)


def _cast_inside(site: Site) -> Form:
    """Return a Cast of an input behind what gives it as it is: the larger of it and itself, or 0 and 1 of booleans."""
    is_boolean = site.elem_type(0) == TensorProto.BOOL

    def write(builder: FragmentBuilder, value: Any) -> Any:
        before = ("Cast", [value], {"to": TensorProto.FLOAT}) if is_boolean else ("Max", [value, value], {})
        return builder.original(copied(site.node), [builder.op(*before)])

    own: Traits = {**(traits_of(site.scope, site.node) or {}), "bytes-of-input": False}
    maximum: Traits = {"inputs": 2, "broadcasts": False, "bytes": bytes_of(site.scope, site.node.input[0])}
    cast: Traits = {**own, "gives": "single"}
    operators: Operators = (("Cast", cast) if is_boolean else ("Max", maximum), ("Cast", own))
    is_old = not is_boolean and site.elem_type(0) not in FLOATS and site.opset < MAXIMUM_OF_INTEGERS_SINCE
    why_not = Refusal("this opset has no maximum of integers") if is_old else None
    return Form("a value of its own before it", operators, lambda: of_inputs(site, write, exact=True), why_not)


def _as_tensor(site: Site) -> Iterator[Form]:
    """Yield a Constant of a tensor."""
    value = site.scope.constant(site.node.output[0])

    def write() -> Rewrite:
        assert value is not None
        node = helper.make_node("Constant", [], [site.node.output[0]], value=numpy_helper.from_array(value))
        return Rewrite(site.only(node), ({},), exact=True)

    why_not = Refusal("it holds no numbers") if value is None else None
    own = traits_of(site.scope, site.node) or {}
    yield Form("a tensor", (("Constant", {**own, "of-tensor": True}),), write, why_not)
    yield behind_data(site)


def _counted(site: Site) -> Iterator[Form]:
    """Yield a Range as what counts up from 0 and is taken off its start, and as a count by ones times its step."""
    dtype, own = helper.tensor_dtype_to_np_dtype(site.elem_type(0)), traits_of(site.scope, site.node) or {}

    def down(builder: FragmentBuilder, start: Any, limit: Any, step: Any) -> Any:
        length, up = builder.op("Sub", [start, limit]), builder.op("Neg", [step])
        return builder.op("Sub", [start, builder.op("Range", [builder.constant(np.zeros((), dtype)), length, up])])

    def by_ones(builder: FragmentBuilder, start: Any, limit: Any, step: Any) -> Any:
        zero, one = (builder.constant(np.array(each, dtype)) for each in (0, 1))
        length = builder.op("Ceil", [builder.op("Div", [builder.op("Sub", [limit, start]), step])])
        return builder.op("Add", [builder.op("Mul", [builder.op("Range", [zero, length, one]), step]), start])

    up: Traits = {**own, "backwards": False}
    operators: Operators = (("Sub", {}), ("Neg", {}), ("Range", up))
    why_not = None if own.get("backwards") else Refusal("it counts up, or it is not known whether it does")
    yield Form("what counts up from 0, off its start", operators, lambda: of_inputs(site, down, exact=False), why_not)
    operators = tuple((op_type, {}) for op_type in ("Sub", "Div", "Ceil", "Mul", "Add"))
    operators = (*operators, ("Range", {**up, "by-fractions": False}))
    why_not = None if own.get("by-fractions") else Refusal("it counts whole numbers")
    yield Form("a count by ones, times its step", operators, lambda: of_inputs(site, by_ones, exact=False), why_not)


PLAIN_FORMS: Mapping[str, Callable[[Site], Iterator[Form]]] = {
    **SLOPE_FORMS,
    **dict.fromkeys(PICKING, element_forms),
    "ReverseSequence": moved_forms,
    **dict.fromkeys(PLACES, extreme_place_forms),
    "Cast": _cast_twice,
    "CastLike": type_forms,
    "Constant": _as_tensor,
    "ConstantOfShape": filled_forms,
    "Compress": compressed_forms,
    **dict.fromkeys(("CumProd", "CumSum"), running_sum_forms),
    "DFT": transform_forms,
    "DynamicQuantizeLinear": dynamic_forms,
    "Dropout": _passed,
    "Einsum": equation_forms,
    "Expand": repeated_copies,
    "GridSample": sampled_forms,
    "Less": _less,
    "MatMul": matrix_forms,
    **dict.fromkeys(("MatMulInteger", "QLinearMatMul"), byte_forms),
    "NonMaxSuppression": _limited,
    "Range": _counted,
    "STFT": spectrum_forms,
    "Split": split_forms,
    "Squeeze": _named,
    "Tile": joined_copies,
    "TopK": sorted_forms,
}
"""By the type of an operator: what yields its forms."""
