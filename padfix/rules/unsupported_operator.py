"""PF306: an operator beside the convolutions, pools and resizes that the target refuses, or computes wrongly."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from itertools import chain, zip_longest
from typing import TYPE_CHECKING, Any

from padfix.operators.both_branches import both_can_run
from padfix.operators.branches import branch_traits
from padfix.operators.constant_chains import has_chain
from padfix.operators.data_order import number_of_channels
from padfix.operators.decided_bodies import decided_body
from padfix.operators.elementwise import REDUCTIONS
from padfix.operators.lists import COMPARING, JOINING_TRUTHS
from padfix.operators.moved_results import activates_result, reads_moved_result
from padfix.operators.other_traits import JOINING, OTHERS
from padfix.operators.plain_traits import CLASSICAL, CLASSICAL_DOMAIN
from padfix.operators.quantizers import QUANTIZERS
from padfix.operators.recurrent_layers import RECURRENT
from padfix.operators.refusal import Refusal
from padfix.operators.sequences import MAKING, TAKING, takers_of
from padfix.operators.traits import traits_of
from padfix.rules.base import Rewrite, Site
from padfix.rules.build.activation_forms import (
    apart_from_softplus,
    clip_forms,
    erf_forms,
    gelu_forms,
    hard_sigmoid_forms,
    softplus_forms,
    tanh_forms,
)
from padfix.rules.build.apart_from_layers import apart_forms
from padfix.rules.build.as_floats import as_floats, in_sixteen_bits
from padfix.rules.build.axes_put_last import axes_put_last
from padfix.rules.build.block_swaps import block_swaps
from padfix.rules.build.broadcast_forms import (
    appended_forms,
    choice_forms,
    exchanged_forms,
    in_rows,
    inverse_forms,
    narrowed_forms,
    negated_forms,
    paired_forms,
    reciprocal_forms,
    rows_first,
    summed_forms,
)
from padfix.rules.build.classical_forms import CLASSICAL_FORMS
from padfix.rules.build.computed_norms import computed_layer_norm
from padfix.rules.build.constant_forms import constant_form
from padfix.rules.build.copied_lengths import copied_lengths, told_channels
from padfix.rules.build.cut_columns import joined_as_volumes
from padfix.rules.build.defined_forms import DEFINED_FORMS
from padfix.rules.build.definition import definition_forms
from padfix.rules.build.determinant_forms import determinant_forms
from padfix.rules.build.element_forms import counted_axis_forms, single_forms
from padfix.rules.build.elementary_forms import reduction_forms
from padfix.rules.build.explicit_pads import copied
from padfix.rules.build.exponential_forms import (
    exponential_forms,
    logarithm_of_sum,
    mish_forms,
    share_of_exponentials,
)
from padfix.rules.build.forms import Form
from padfix.rules.build.image_constants import beside_images
from padfix.rules.build.joined_images import in_matrices
from padfix.rules.build.layer_forms import (
    batch_norm_forms,
    dense_forms,
    flattening_forms,
    instance_norm_forms,
    layer_norm_forms,
    listed_first,
    picking_forms,
)
from padfix.rules.build.lent_rows import lent_rows
from padfix.rules.build.moved_forms import listed_forms, moved_forms, reshaped_forms
from padfix.rules.build.node_forms import of_inputs
from padfix.rules.build.norm_weights import whole_weights
from padfix.rules.build.objections import Objection, Operators
from padfix.rules.build.open_reductions import open_reductions
from padfix.rules.build.part_forms import part_forms, whole_forms
from padfix.rules.build.passing_forms import (
    doubled_forms,
    joined_forms,
    multiplied_by_one,
    parted_forms,
    power_forms,
    squared_forms,
    typed_forms,
)
from padfix.rules.build.picked_elements import slices_of_picked
from padfix.rules.build.plain_forms import PLAIN_FORMS
from padfix.rules.build.quantizer_forms import zero_point_forms
from padfix.rules.build.question_forms import either_forms, equal_forms, exchanged_comparison, extreme_comparisons
from padfix.rules.build.quotient_forms import axes_of_number, normalization_forms, number_forms, of_one_element
from padfix.rules.build.recurrent_forms import recurrent_forms
from padfix.rules.build.response_forms import response_forms
from padfix.rules.build.roi_forms import roi_forms
from padfix.rules.build.rounded_forms import round_forms
from padfix.rules.build.scaled_images import scaled_forms
from padfix.rules.build.scan_forms import counts_from_end_alone, scan_forms
from padfix.rules.build.score_forms import score_forms
from padfix.rules.build.sequence_forms import list_forms
from padfix.rules.build.slice_forms import slice_forms
from padfix.rules.build.softmax_forms import hardmax_forms, logarithm_forms, softmax_forms
from padfix.rules.build.sorted_forms import listed_unique
from padfix.rules.build.space_forms import depth_forms, pooling_forms, replaced
from padfix.rules.build.square_forms import squared_integer_forms
from padfix.rules.build.target_rule import TargetRule
from padfix.rules.build.told_batch import pooled_forms
from padfix.rules.build.told_forms import image_forms, picked_lengths, reversed_forms, told_forms
from padfix.rules.build.transpose_forms import exchange_forms, written_order
from padfix.rules.build.truth_forms import truth_forms
from padfix.rules.build.whole_forms import (
    cut_forms,
    divided_forms,
    logic_forms,
    long_forms,
    remainder_forms,
    signed_forms,
)
from padfix.rules.build.wrapped_forms import wrapped_forms

if TYPE_CHECKING:
    from padfix.graph.fragment_builder import FragmentBuilder


class UnsupportedOperator(TargetRule):
    """An operator that the target refuses, or runs and gives other numbers for, and that pads and resizes nothing.

    Importers recognise activations by the nodes that exporters write for them, and some look at the nodes alone: what
    multiplies other data by the gate of a HardSwish (as squeeze-and-excitation does) becomes a HardSwish. Others read
    the channels of DepthToSpace in one order only, pool no volume, take a Softmax of an old opset for one of today,
    lose count of the axes of a reduction, copy the channels of what a convolution keeps in another order, take a
    constant from it instead of it from the constant, overflow in a Softplus, approximate a Gelu, multiply a gate twice,
    join more than two inputs as if all were of one shape, run a recurrent layer the wrong way round, take a Transpose
    for done already, lose the factors of a Gemm, pick the first of several elements, take the bounds of one axis of a
    Slice for another's, take every second element before they are computed, compute a Softmax of bytes, or read a zero
    point only in the shape of its scale. `padfix targets NAME` lists what is known.

    padfix puts an Identity behind such a gate, before an activation or a norm that becomes a part of the
    convolution before it, and before one channel that is joined with several, so that each is read for what it is;
    writes DepthToSpace and SpaceToDepth as a convolution whose weights are zeros and ones; a global pool of a
    volume as one of a plane; a reduction a few axes at a time, as a sum or as a product with ones; an old Softmax
    on the matrix that it means; an LRN with a bias of 1; MeanVarianceNormalization and LpNormalization as
    quotients; the lengths where a Reshape copies them; a difference as a sum with what is negated; Softplus,
    LogSoftmax and Tanh so that no number is too large; Gelu as the product that it is; Erf as the Tanh of a
    polynomial, to the last places of single precision; constants as initializers that nodes give; a Clip whose
    bounds are inputs, as opset 11 has it; inputs that are joined two at a time, or two of them as if they were any
    number; factors, and the branches of a Where, exchanged; a layer that runs backwards as one over what a Slice or
    a product turned round; a layer with its sequence alone, or step by step; the boxes of a RoiAlign scaled before
    it; a Transpose of three axes as one of four; a Gemm with its factors in the weights; a LayerNormalization with
    a bias, and of a list; the norm of an instance's lines or volume as a plane's; what a Gather picks as a product
    with a matrix of 0 and 1; the axes of a Slice in another order, or what it takes by a Gather; a Relu behind a
    Softmax, which gives nothing below 0; a zero point in the shape of its scale; a DFT of another axis between two
    Transposes; a product with a list as one with a matrix; slopes of a PRelu for every axis, or apart; Celu as a
    scaled Elu; the lengths of a Split's pieces; indices counted from the begin; a BatchNormalization as a product
    and a sum; a CumSum as a product with ones, or sums; an Expand as its copies; a Flatten as a Reshape; a list as
    a matrix of one row; a Gemm as a product and a sum; a maximum along axes as a pool; what moves elements as a
    Gather from a row, where axes of one length are taken for one another; what picks by a matrix of indices as what
    picks by a
    list; constants in the whole shape; a convolution with ones before what takes another axis for that of its
    channels; Softsign and ThresholdedRelu as products; a Hardmax, OneHot, IsInf and IsNaN as what is equal; a
    MaxUnpool as maxima scattered over zeros; a Col2Im as a transposed convolution; an AffineGrid as a product with
    all positions; a GroupNormalization as the norm of lines; an RMSNormalization as a quotient; a power of a whole
    number as a product; a Concat without what has no elements; the terms of a sum exchanged; a Round as a sum with
    a number so large that no fraction fits; a QuantizeLinear with its DequantizeLinear as floats that are rounded
    and cut off; a Clip with the least alone as a maximum; what gives its data as they are, which some converters
    take away, with the sign changed twice; and whole numbers without their fractions, or the rest of a division,
    before a Cast or a Div that keeps them; a GridSample as a product with the weights that elements have for its
    places; what takes or puts single elements with axes and indices from the begin, behind a Slice, or with an axis
    more; an activation behind the larger of its data and themselves, or of a result of the model times 1; a Trilu
    and constants of booleans as choices by numbers; an Einsum with small letters, a written result and an axis for
    what has none; a reduction of all axes without listing them; bytes as whole numbers in floats, where their sums
    stay exact; a Clip of whole numbers as a maximum and a minimum; a pool of single elements behind what makes or
    turns a volume; an Attention, a RotaryEmbedding and a loss as what ONNX defines them by; a BatchNormalization
    that trains as the norm of its batch; numbers for lists of one; a Reshape to an open length that is measured with
    0 or -1 in its place; what is copied to the open lengths of other data without its copies; what is taken from a
    list as the tensors that are known to be in it; and what of classical machine learning is arithmetic, as that.

    Refused: what has no such form, as a cubic GridSample that reads behind the border; and a Shape of lengths that are
    left open.

    Before, opset 17, for opencv:

        main (float[1,3,8,8] X, float[1,3,1,1] S) => (float[1,3,8,8] Y) {
          gate = HardSigmoid <alpha = 0.16666667, beta = 0.5> (S)
          Y = Mul (X, gate)
        }

    After:

        alone = HardSigmoid <alpha = 0.16666667, beta = 0.5> (S)
        gate = Identity (alone)
        Y = Mul (X, gate)

    References:

    - The ONNX specification of HardSigmoid: <https://onnx.ai/onnx/operators/onnx__HardSigmoid.html>
    - The ONNX specification of SpaceToDepth: <https://onnx.ai/onnx/operators/onnx__SpaceToDepth.html>
    """

    code = "PF306"
    name = "unsupported-operator"
    operators = frozenset(
        [*(("", op_type) for op_type in OTHERS), *((CLASSICAL_DOMAIN, op_type) for op_type in CLASSICAL)]
    )
    example_target = "opencv"

    def objection(self, site: Site) -> Objection | None:
        """Return the worst thing that the target has against the node; None where its body takes its place."""
        takes_its_place = decided_body(site.scope, site.node) is not None or both_can_run(site.scope, site.node)
        takes_its_place = takes_its_place and not counts_from_end_alone(site.scope, site.node, site.target)
        return None if takes_its_place or _is_taken_apart(site) else super().objection(site)

    def forms(self, site: Site) -> Iterator[Form]:
        """Yield the forms that operators of this type have, and the constant that it computes."""
        if reads_moved_result(site.scope, site.node) or activates_result(site.scope, site.node):
            yield multiplied_by_one(site)
        yield from _FORMS.get(site.node.op_type, definition_forms)(site)
        if has_chain(site.scope, site.node):
            yield constant_form(site)


def _is_taken_apart(site: Site) -> bool:
    """Whether all that is taken of a list is known beforehand, so that tensors stand there in the end."""
    takers = takers_of(site.scope, site.node) if site.node.op_type in MAKING else None
    return takers is not None and all(site.target.knows_of(each.op_type) for each in takers)


def _apart(site: Site) -> Iterator[Form]:
    def write() -> Rewrite:
        return replaced(site, lambda builder, value: builder.op("Identity", [builder.original(node, [value])]))

    node = copied(site.node)
    traits = {**(traits_of(site.scope, site.node) or {}), "gates-other-data": False}
    yield Form("an Identity behind it", ((site.node.op_type, traits),), write)


def _tanh(site: Site) -> Iterator[Form]:
    yield from _apart(site)
    yield from tanh_forms(site)


def _by_itself(site: Site) -> Iterator[Form]:
    """Yield an activation that is read by itself, not as part of the convolution before it."""
    node = copied(site.node)
    marks = (
        "behind-depthwise-volume",
        "cuts-volume-off",
        "halved-gate",
        "between-bytes",
        "within-celu",
        "joins-between-bytes",
    )
    changed = dict.fromkeys(marks, False)
    traits = {**(traits_of(site.scope, node) or {}), **changed}
    why_not = None if all(node.input) else Refusal("it leaves an input out")

    def write(op_type: str, times: int) -> Rewrite:
        def behind(builder: FragmentBuilder, value: Any, *bounds: Any) -> Any:
            return builder.original(node, [builder.op(op_type, [value] * times), *bounds])

        return of_inputs(site, behind, exact=True)

    operators: Operators = ((node.op_type, traits),)
    yield Form("an Identity before it", operators, partial(write, "Identity", 1), why_not)
    traits = {
        **traits,
        "behind-convolution": "no",
        "behind-product": False,
        "cuts-relu-off": False,
        "cuts-quantized": False,
    }
    operators = (("Max", {"inputs": 2, "broadcasts": False}), (node.op_type, traits))
    yield Form("the larger of its data and themselves", operators, partial(write, "Max", 2), why_not)


def _first(*forms: Callable[[Site], Iterator[Form]]) -> Callable[[Site], Iterator[Form]]:
    """Return the forms of an operator, those that leave more of it as it is first."""
    return lambda site: chain.from_iterable(each(site) for each in forms)


def _undecided(site: Site) -> Iterator[Form]:
    """Yield the body in the place of what holds it, which is no form where it is not decided beforehand."""
    told = branch_traits(site.scope, site.node)["decided-by"] if site.node.op_type == "If" else None
    if told == "lengths":
        reason = "a length decides that is left open (--shape)"
    else:
        reason = (
            "data decides, and not both branches can be run"
            if told
            else "how often it runs is not known, or it would be too many nodes"
        )
    yield Form("its body in its place", (), _unwritten, Refusal(reason))


def _unwritten() -> Rewrite | Refusal:
    return Refusal("There is no such form.")


def _lengths(site: Site) -> Iterator[Form]:
    yield Form("its lengths as a constant", (), _unwritten, Refusal("they are left open (--shape)"))


def _numbered(site: Site) -> Iterator[Form]:
    """Yield a Reshape with the lengths that it copies, and one with an Identity before it."""
    shape, channels = site.constant(1), number_of_channels(site.scope, site.input_name(0))
    given = [] if shape is None else [int(each) for each in shape.reshape(-1)]
    known = site.input_type(0)
    lengths = () if known is None or known.shape is None else known.shape
    numbered = [
        length if not each and isinstance(length, int) else each
        for each, length in zip_longest(given, lengths[: len(given)])
    ]
    own = traits_of(site.scope, site.node) or {}
    gives = site.scope.type_of(site.node.output[0])
    if own.get("leaves-known-lengths") and gives is not None and gives.lengths:
        numbered = list(gives.lengths)
    copied_still = {"copies-channels": channels is None, "copies-behind-reshape": 0 in numbered}
    left = {name: bool(own.get(name)) and is_still for name, is_still in copied_still.items()}
    several = bool(numbered) and numbered[0] > 1 and all(each > 0 for each in numbered)
    left["leaves-known-lengths"] = False
    left["numbers-images"] = bool(own.get("numbers-images")) or (several and given[0] == 0)
    yield Form(
        "the lengths that it copies",
        (("Reshape", {**own, **left}),),
        lambda: replaced(site, lambda builder, value: builder.reshaped(value, numbered)),
        None if given != numbered else Refusal("what it copies is not known"),
    )
    yield Form(
        "an Identity before it",
        (("Reshape", {**own, **dict.fromkeys(copied_still, False)}),),
        lambda: replaced(site, lambda builder, value: builder.reshaped(builder.op("Identity", [value]), given)),
        None if given else Refusal("its shape is not known"),
    )
    yield Form(
        "the larger of its data and themselves",
        (("Max", {"inputs": 2, "broadcasts": False}), ("Reshape", {**own, "goes-back": False})),
        lambda: replaced(site, lambda builder, value: builder.reshaped(builder.op("Max", [value] * 2), given)),
        None if given and own.get("goes-back") else Refusal("it does not undo what was put together before a product"),
    )


_FORMS: Mapping[str, Callable[[Site], Iterator[Form]]] = {
    **PLAIN_FORMS,
    **DEFINED_FORMS,
    **CLASSICAL_FORMS,
    **{name: _first(PLAIN_FORMS[name], DEFINED_FORMS[name]) for name in PLAIN_FORMS.keys() & DEFINED_FORMS.keys()},
    "QLinearMatMul": _first(DEFINED_FORMS["QLinearMatMul"], PLAIN_FORMS["QLinearMatMul"]),
    **dict.fromkeys(TAKING, list_forms),
    "Unsqueeze": _first(axes_of_number, axes_put_last, reshaped_forms, pooled_forms),
    "Squeeze": _first(part_forms, number_forms, PLAIN_FORMS["Squeeze"], of_one_element, axes_put_last, reshaped_forms),
    "Split": _first(PLAIN_FORMS["Split"], moved_forms),
    "Expand": _first(PLAIN_FORMS["Expand"], beside_images, moved_forms, as_floats),
    "Tile": _first(PLAIN_FORMS["Tile"], beside_images, moved_forms),
    "ConstantOfShape": _first(PLAIN_FORMS["ConstantOfShape"], beside_images),
    **dict.fromkeys(
        COMPARING, _first(exchanged_comparison, rows_first(_first(truth_forms, as_floats)), extreme_comparisons)
    ),
    **dict.fromkeys(
        ("GreaterOrEqual", "LessOrEqual"),
        _first(exchanged_comparison, rows_first(_first(truth_forms, as_floats)), extreme_comparisons, either_forms),
    ),
    "Equal": _first(rows_first(equal_forms), as_floats, extreme_comparisons),
    "Less": _first(rows_first(_first(PLAIN_FORMS["Less"], truth_forms, as_floats)), extreme_comparisons),
    "Not": truth_forms,
    **dict.fromkeys(("Elu", "HardSwish", "LeakyRelu", "Sigmoid"), _by_itself),
    "Relu": _first(_by_itself, signed_forms),
    **dict.fromkeys(("If", "Loop", "SequenceMap"), _undecided),
    "Scan": _first(scan_forms, _undecided),
    "Erf": _first(_by_itself, erf_forms),
    **dict.fromkeys(JOINING_TRUTHS, rows_first(logic_forms)),
    "Add": rows_first(
        _first(lent_rows, narrowed_forms, apart_from_softplus, apart_forms, exchanged_forms, summed_forms)
    ),
    "BatchNormalization": batch_norm_forms,
    "Clip": _first(_by_itself, clip_forms),
    "Cast": _first(PLAIN_FORMS["Cast"], cut_forms, long_forms, wrapped_forms),
    **dict.fromkeys(("Abs", "Neg", "Sign"), signed_forms),
    "Concat": _first(
        in_matrices,
        joined_as_volumes,
        copied_lengths,
        parted_forms,
        in_rows,
        joined_forms,
        doubled_forms,
        appended_forms,
        as_floats,
        moved_forms,
    ),
    "Pow": _first(typed_forms, rows_first(_first(power_forms, squared_integer_forms))),
    "HardSigmoid": _first(_by_itself, _apart, hard_sigmoid_forms),
    "Tanh": _first(_by_itself, _tanh),
    "Mish": _first(_by_itself, mish_forms, exponential_forms, share_of_exponentials),
    "Gelu": _first(_by_itself, gelu_forms),
    **dict.fromkeys(("GlobalAveragePool", "GlobalLpPool", "GlobalMaxPool"), pooling_forms),
    "Flatten": _first(flattening_forms, moved_forms),
    "DepthToSpace": depth_forms,
    "SpaceToDepth": depth_forms,
    "Reshape": _first(
        axes_of_number, number_forms, told_forms, image_forms, _numbered, listed_first, pooled_forms, block_swaps
    ),
    "Sub": rows_first(_first(apart_forms, negated_forms)),
    "Div": rows_first(
        _first(scaled_forms, score_forms, apart_forms, reciprocal_forms, negated_forms, inverse_forms, divided_forms)
    ),
    "ReverseSequence": _first(reversed_forms, PLAIN_FORMS["ReverseSequence"]),
    "Reciprocal": _first(inverse_forms, definition_forms),
    "Mod": rows_first(_first(remainder_forms, as_floats)),
    "BitShift": in_sixteen_bits,
    "Mul": rows_first(
        _first(scaled_forms, score_forms, apart_forms, exchanged_forms, squared_forms, squared_integer_forms)
    ),
    **dict.fromkeys(JOINING, rows_first(_first(apart_forms, paired_forms))),
    **dict.fromkeys(("Max", "Min"), rows_first(_first(apart_forms, exchanged_forms, paired_forms, as_floats))),
    "Where": rows_first(_first(choice_forms, as_floats)),
    **dict.fromkeys(RECURRENT, recurrent_forms),
    "RoiAlign": roi_forms,
    "Round": round_forms,
    "Transpose": _first(written_order, reshaped_forms, exchange_forms, moved_forms, pooled_forms, block_swaps),
    "Gemm": _first(copied_lengths, lent_rows, dense_forms),
    "MatMul": _first(copied_lengths, PLAIN_FORMS["MatMul"]),
    "LayerNormalization": _first(whole_weights, layer_norm_forms, computed_layer_norm, definition_forms),
    "Gather": _first(
        part_forms, whole_forms, counted_axis_forms, single_forms, picking_forms, listed_forms, moved_forms, as_floats
    ),
    "Shape": _first(long_forms, picked_lengths, _lengths),
    "Size": long_forms,
    "Slice": _first(slice_forms, slices_of_picked, moved_forms),
    **dict.fromkeys(QUANTIZERS, zero_point_forms),
    "Softplus": _first(_by_itself, softplus_forms, exponential_forms, logarithm_of_sum),
    **dict.fromkeys(REDUCTIONS, _first(reduction_forms, open_reductions)),
    **dict.fromkeys(("ReduceMax", "ReduceMin"), _first(reduction_forms, open_reductions, as_floats)),
    "Hardmax": hardmax_forms,
    "InstanceNormalization": _first(told_channels, instance_norm_forms),
    "Softmax": softmax_forms,
    "LogSoftmax": logarithm_forms,
    **dict.fromkeys(("LpNormalization", "MeanVarianceNormalization"), normalization_forms),
    "LRN": response_forms,
    "Det": determinant_forms,
    "Unique": _first(listed_unique, definition_forms),
}
