"""What operators are like that neither pad nor resize, in the words that targets state their facts in."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from onnx import NodeProto

from padfix.graph import attributes
from padfix.graph.scopes import Scope
from padfix.operators.activations import ACTIVATIONS
from padfix.operators.attention import attention_traits
from padfix.operators.axis_order import (
    compares_constant_first,
    has_fewer_axes,
    is_one_first,
    lies_before_alike,
    moves_fewer_axes,
    reads_one_of_more_axes,
    spread_of_constants,
    spreads_data,
)
from padfix.operators.batches import gives_each_image_its_own
from padfix.operators.branches import branch_traits, loop_traits, scan_traits
from padfix.operators.bytes_among_floats import is_one_channel_for_bytes
from padfix.operators.clip import cuts_window_off_zero
from padfix.operators.constant_chains import is_constant, is_worked_out_of_open, reads_constant_bytes
from padfix.operators.counted_images import computes_with_count
from padfix.operators.data_order import (
    is_behind_convolution,
    is_behind_softmax,
    is_behind_volume,
    is_behind_window,
    number_of_channels,
    puts_constant_before_layer,
)
from padfix.operators.elementwise import REDUCTIONS
from padfix.operators.fused_layers import (
    adds_as_many,
    adds_as_many_as_channels,
    adds_for_softplus,
    adds_more_axes,
    adds_one_to_size,
    adds_to_column,
    adds_to_convolution,
    adds_to_erf,
    adds_turned_half,
    adds_wide_constant,
    axes_of_share,
    is_log_of_sum,
    spreads_channels,
    takes_largest_off,
)
from padfix.operators.gates import divides_heads, product_traits
from padfix.operators.integer_ranges import counts_beyond_halves, divides_by_power_of_two
from padfix.operators.joined_traits import joined_traits
from padfix.operators.layer_traits import dense_traits, group_norm_traits, layer_norm_traits
from padfix.operators.lent_rows import lent_row
from padfix.operators.lists import (
    COMPARING,
    JOINING_TRUTHS,
    depends_on_data,
    joins_a_list,
)
from padfix.operators.loaded_lengths import counts_channels_otherwise, counts_no_blocks
from padfix.operators.long_results import ends_as_long
from padfix.operators.masks import masked_sum, may_leave_rows_out
from padfix.operators.measured_copies import measured_copy, puts_rows_before_open
from padfix.operators.numbers import divides_each, holds_beyond_half, holds_infinity, quotient_changes_numbers
from padfix.operators.picking_traits import gather_traits, is_weight, ranked
from padfix.operators.plain_traits import PLAINLY, power_traits
from padfix.operators.quantizers import (
    QUANTIZERS,
    cuts_quantized,
    is_between_bytes,
    is_from_least_byte,
    quantizer_traits,
)
from padfix.operators.recurrent_layers import RECURRENT, recurrent_traits
from padfix.operators.reductions import reduction_traits
from padfix.operators.reshape_traits import reshape_traits
from padfix.operators.sampled_places import sample_traits
from padfix.operators.scaled_images import scales_whole_window
from padfix.operators.scaled_inputs import scales_a_volume, shifts_scaled_line
from padfix.operators.shape_questions import any_of, has_column_among_first, is_spread
from padfix.operators.slice_traits import slice_traits
from padfix.operators.spelled_norms import divided_norm, norm_traits, scaled_norm, square_traits
from padfix.operators.spread_axes import computes_fewer_axes, fed_list_traits, joins_constant_first, spreads_along_alike
from padfix.operators.squares import roots_large, squares_large
from padfix.operators.transpose_traits import transpose_traits
from padfix.operators.unique_traits import unique_traits
from padfix.targets.traits import COUNT, Traits


def _type_of(scope: Scope, node: NodeProto) -> int:
    known = scope.type_of(node.input[0])
    return 0 if known is None else known.elem_type


def _root_of_sums(scope: Scope, node: NodeProto) -> Traits:
    data = scope.type_of(node.input[0])
    shape = None if data is None else data.shape
    return {**ranked(scope, node), "open-batch": not shape or not isinstance(shape[0], int)}


def _measured(scope: Scope, node: NodeProto) -> Traits:
    data = scope.type_of(node.input[0])
    lengths = None if data is None else data.shape
    # Runtimes take a batch that is left open for one image.
    return {
        "sizes": "static" if lengths and all(isinstance(each, int) for each in lengths[1:]) else "dynamic",
        "open-batch": not all(isinstance(each, int) for each in (lengths or ())[:1]),
        "of-weights": is_constant(scope, node.input[0]),
        "picks-lengths": attributes.find(node, "start") is not None or attributes.find(node, "end") is not None,
        "as-result": scope.parent is None and scope.is_output(node.output[0]),
        "ends-as-long": ends_as_long(scope, node),
    }


def _along_an_axis(scope: Scope, node: NodeProto) -> Traits:
    """Return of a Softmax whether it takes the axes from its own to the last together, as it did before opset 13.

    And whether its axis is written, or left to what the opset has for one.
    """
    known = [scope.type_of(name) for name in (node.input[0], node.output[0])]  # it gives what it takes, in shape
    shape = next((each.shape for each in known if each is not None and each.shape is not None), None)
    rank = 0 if shape is None else len(shape)
    default = -1 if scope.opset >= 13 else 1
    axis = attributes.integer(node, "axis", default) or 0
    together: bool | None = False
    if scope.opset < 13 and axis != -1:
        behind = [None] if shape is None else shape[axis % max(len(shape), 1) + 1 :]
        together = any_of([None if each is None else each != 1 for each in behind])
    is_written = attributes.find(node, "axis") is not None
    return {
        "rank": None if shape is None else rank,
        "takes-axes-together": together,
        "axis-written": is_written,
        "over-batch": axis in (0, -rank) and rank > 0 and shape is not None and shape[0] != 1,
        "one-element": together is False and shape is not None and -rank <= axis < rank and shape[axis] == 1,
        "axis-from-end": axis < 0,
        "before-alike": lies_before_alike(scope, node.input[0], axis),
    }


def _on_images(scope: Scope, node: NodeProto) -> Traits:
    return {
        **ranked(scope, node),
        "behind-window": is_behind_window(scope, node.input[0]),
        "epsilon-written": attributes.find(node, "epsilon") is not None,
        "numbers-computed": not all(is_weight(scope, name) for name in node.input[1:3]),
        "channels-counted-otherwise": counts_channels_otherwise(scope, node),
    }


def _softmax(scope: Scope, node: NodeProto) -> Traits:
    axis, known = attributes.integer(node, "axis", -1), scope.type_of(node.input[0])
    lengths = None if known is None else known.shape
    place = axis % len(lengths) - len(lengths) if lengths else -1
    behind = [1 if scope.opset < 13 or axis == -1 else None] if lengths is None else lengths[axis:][1:]
    return {
        "axis-inside": scope.opset >= 13 and any_of([None if each is None else each != 1 for each in behind]),
        "largest-off": takes_largest_off(scope, node.input[0], axis % max(len(lengths or ()), 1)),
        **_along_an_axis(scope, node),
        "between-bytes": is_between_bytes(scope, node, ("Clip", "Identity")),
        "from-least-byte": is_from_least_byte(scope, node),
        "leaves-rows-out": may_leave_rows_out(scope, node.input[0], place),
        "masks-by-numbers": masked_sum(scope, node.input[0], place) is not None,
    }


def _response(scope: Scope, node: NodeProto) -> Traits:
    bias = attributes.find(node, "bias")
    return {
        **ranked(scope, node),
        "whole-bias": bias is None or float(bias.f).is_integer(),
        "even-size": (attributes.integer(node, "size", 1) or 1) % 2 == 0,
    }


def _depth_to_space(scope: Scope, node: NodeProto) -> Traits:
    return {
        "order": attributes.text(node, "mode", "DCR") or "DCR",
        "one-channel-for-bytes": is_one_channel_for_bytes(scope, node),
        **_blocks(node),
    }


def _space_to_depth(scope: Scope, node: NodeProto) -> Traits:
    return {"counts-no-blocks": counts_no_blocks(scope, node), **_blocks(node)}


def _blocks(node: NodeProto) -> Traits:
    return {"blocks-of-one": attributes.integer(node, "blocksize", 0) == 1}


def _difference(scope: Scope, node: NodeProto) -> Traits:
    """Return of a Sub or Div whether it takes what a convolution or Softmax gives from a constant of several.

    And of one, where the convolution has one channel; and whether it takes from the data their Tanh, as Tanhshrink
    does, or the logarithm of the sum of their powers of e, as LogSoftmax does.
    """
    first, subtracted = scope.constant(node.input[0]), scope.producer(node.input[1])
    while subtracted is not None and subtracted.op_type == "Identity":
        subtracted = scope.producer(subtracted.input[0])
    several = first is not None and first.size > 1
    by_channel = several or (first is not None and number_of_channels(scope, node.input[1]) == 1)
    axes = axes_of_share(scope, node) if node.op_type == "Div" else 0
    return {
        "constant-first": first is not None,
        "from-constant": by_channel and is_behind_convolution(scope, node.input[1]),
        "from-softmax": several and is_behind_softmax(scope, node.input[1]),
        "less-own-tanh": subtracted is not None
        and subtracted.op_type == "Tanh"
        and subtracted.input[0] == node.input[0],
        "less-own-log-sum": is_log_of_sum(scope, subtracted, node.input[0]),
        "by-own-sum": axes == 1,
        "by-own-sums": axes > 1,
        "by-power-of-two": node.op_type == "Div" and divides_by_power_of_two(scope, node),
        "by-zero": node.op_type == "Div" and (divisor := scope.constant(node.input[1])) is not None and 0 in divisor,
    }


def _sum(scope: Scope, node: NodeProto) -> Traits:
    """Return of an Add whether it adds something computed to what a convolution of three axes gives.

    And whether it adds a constant of more axes than a row to a product, several numbers to one of a single column, or
    the shift to a norm that is spelled out.
    """
    computed = all(scope.constant(name) is None for name in node.input)
    return {
        "adds-to-volume": computed and any(is_behind_volume(scope, name) for name in node.input),
        "adds-to-convolution": adds_to_convolution(scope, node),
        **norm_traits(scope, node),
        "adds-as-many": adds_as_many(scope, node),
        "shifts-scaled-line": shifts_scaled_line(scope, node),
        "counts-beyond-halves": counts_beyond_halves(scope, node),
        "adds-lent-row": bool(lent_row(scope, node)),
        "adds-as-many-channels": adds_as_many_as_channels(scope, node),
        "adds-to-column": adds_to_column(scope, node),
        "adds-more-axes": adds_more_axes(scope, node),
        "adds-wide-constant": adds_wide_constant(scope, node),
        "adds-to-erf": adds_to_erf(scope, node),
        "adds-one-to-size": adds_one_to_size(scope, node),
        "adds-turned-half": adds_turned_half(scope, node),
        "adds-for-softplus": adds_for_softplus(scope, node),
        "spreads-alike": spreads_along_alike(scope, node),
    }


def _joining(scope: Scope, node: NodeProto) -> Traits:
    """Return how many inputs are joined, how many axes that has, and whether one, or the first, takes others' shape."""
    spread = [is_spread(scope, node, position) for position in range(len(node.input))]
    many = adds_as_many(scope, node)
    ranks = [known.rank if (known := scope.type_of(name)) else None for name in node.input]
    told = [each for each in ranks if each is not None]
    gives = scope.type_of(node.output[0])
    return {
        "rank": None if gives is None else gives.rank,
        "inputs": min(len(node.input), COUNT[-1]),
        "broadcasts": any_of(spread),
        "column-among-first": has_column_among_first(scope, node),
        "adds-as-many": many,
        "adds-as-many-channels": adds_as_many_as_channels(scope, node),
        "adds-to-convolution": node.op_type == "Sum" and adds_to_convolution(scope, node),
        "fewer-axes-first": ranks[0] is not None and ranks[0] < max(told),
    }


def _comparison(scope: Scope, node: NodeProto) -> Traits:
    """Return of how many axes a comparison is, and whether several elements take the shape of the other input."""
    gives, given = scope.type_of(node.output[0]), [scope.type_of(name) for name in node.input]
    several = [each is None or each.shape is None or set(each.shape) - {1} for each in given]
    spread = [is_spread(scope, node, place) for place, is_list in enumerate(several) if is_list]
    return {
        "rank": None if gives is None else gives.rank,
        "broadcasts": any_of(spread),
        "meets-infinity": any(holds_infinity(scope, name) for name in node.input),
        "beyond-half": any(holds_beyond_half(scope, name) for name in node.input),
        "both-broadcast": _are_all(spread) if len(spread) > 1 else False,
        "compares-itself": len(set(node.input)) == 1,
        "compares-constant-first": compares_constant_first(scope, node),
        "read-untyped": bool(scope.consumers(node.output[0])) and not _is_declared(scope, node.output[0]),
    }


def _is_declared(scope: Scope, name: str) -> bool:
    return any(each.name == name for each in scope.container.value_info)


def _are_all(known: Sequence[bool | None]) -> bool | None:
    return False if False in known else None if None in known else True


def _choice(scope: Scope, node: NodeProto) -> Traits:
    """Return of a Where whether what it takes elsewhere is several elements that take the shape of the others.

    And whether data tell where it gives an infinity.
    """
    known = scope.type_of(node.input[2])
    is_number = known is not None and known.shape is not None and set(known.shape) <= {1}
    return {
        "broadcasts": False if is_number else is_spread(scope, node, 2),
        "reads-constant-bytes": reads_constant_bytes(scope, node),
        "meets-infinity": depends_on_data(scope, node.input[0])
        and any(holds_infinity(scope, name) for name in node.input[1:]),
    }


def _roi_align(scope: Scope, node: NodeProto) -> Traits:
    scale = attributes.find(node, "spatial_scale")
    # What opset 16 calls output_half_pixel is all that there was before.
    default = "half_pixel" if scope.opset >= 16 else "output_half_pixel"
    return {
        "mode": attributes.text(node, "mode", "avg") or "avg",
        "coordinates": attributes.text(node, "coordinate_transformation_mode", default) or default,
        "scaled": scale is not None and scale.f != 1,
        "ratio-written": attributes.find(node, "sampling_ratio") is not None,
    }


def _pairing(own: Callable[[Scope, NodeProto], Traits]) -> Callable[[Scope, NodeProto], Traits]:
    """Return what reads the traits of an operator that works element by element on several inputs."""

    def read(scope: Scope, node: NodeProto) -> Traits:
        spread = {
            "by-number-of-images": computes_with_count(scope, node),
            "joins-a-list": joins_a_list(scope, node),
            "joins-a-copy": measured_copy(scope, node) is not None,
            **square_traits(scope, node),
            "spreads-channels": spreads_channels(scope, node),
            "cuts-quantized": node.op_type in ("Max", "Min") and cuts_quantized(scope, node),
            "cuts-window-off-zero": node.op_type in ("Max", "Min") and cuts_window_off_zero(scope, node),
            "fewer-axes": has_fewer_axes(scope, node),
            "moves-fewer-axes": moves_fewer_axes(scope, node),
            "computed-fewer-axes": computes_fewer_axes(scope, node),
            **fed_list_traits(scope, node),
            "spreads-data": spreads_data(scope, node),
            "constants": spread_of_constants(scope, node),
            "one-first": is_one_first(scope, node),
            "constant-before-layer": puts_constant_before_layer(scope, node),
            "joins-constant-first": joins_constant_first(scope, node),
            "rows-before-open": puts_rows_before_open(scope, node),
            "scales-window": scales_whole_window(scope, node),
            "scales-a-volume": scales_a_volume(scope, node),
            "one-of-more-axes": reads_one_of_more_axes(scope, node),
            "by-open-length": node.op_type == "Div" and is_worked_out_of_open(scope, node.input[1]),
            "numbers-images": gives_each_image_its_own(scope, node),
            "of-constants-too": any(scope.constant(name) is not None for name in node.input if name),
        }
        return {**own(scope, node), **spread}

    return read


JOINING = ("Max", "Mean", "Min", "Sum")

OTHERS: Mapping[str, Callable[[Scope, NodeProto], Traits]] = {
    **PLAINLY,
    **ACTIVATIONS,
    "Attention": attention_traits,
    "EyeLike": lambda scope, node: {
        "types-differ": attributes.integer(node, "dtype", 0) not in (0, _type_of(scope, node))
    },
    "Gather": gather_traits,
    "Gemm": dense_traits,
    "GroupNormalization": group_norm_traits,
    "Add": _pairing(_sum),
    **dict.fromkeys((*COMPARING, *JOINING_TRUTHS), _pairing(_comparison)),
    "Concat": joined_traits,
    "GridSample": sample_traits,
    "DepthToSpace": _depth_to_space,
    "Div": _pairing(
        lambda scope, node: {
            **_difference(scope, node),
            "changes-numbers": quotient_changes_numbers(scope, node),
            "divides-heads": divides_heads(scope, node),
            "by-one-each": divides_each(scope, node),
            **divided_norm(scope, node),
        }
    ),
    "Sub": _pairing(_difference),
    "SpaceToDepth": _space_to_depth,
    "Hardmax": _along_an_axis,
    "If": branch_traits,
    "Loop": loop_traits,
    "Scan": scan_traits,
    "InstanceNormalization": _on_images,
    **dict.fromkeys(JOINING, _pairing(_joining)),
    **dict.fromkeys(("LayerNormalization", "RMSNormalization"), layer_norm_traits),
    "LRN": _response,
    "LogSoftmax": _along_an_axis,
    "LpNormalization": lambda scope, node: {
        **ranked(scope, node),
        "by-sum": attributes.integer(node, "p", 2) == 1,
    },
    "Mul": _pairing(lambda scope, node: {**product_traits(scope, node), **scaled_norm(scope, node)}),
    "MeanVarianceNormalization": ranked,
    **dict.fromkeys(REDUCTIONS, reduction_traits),
    "ReduceL2": lambda scope, node: {**reduction_traits(scope, node), "squares-far": squares_large(scope, node)},
    "Sqrt": lambda scope, node: {"squares-far": roots_large(scope, node)},
    **dict.fromkeys(RECURRENT, recurrent_traits),
    "Pow": _pairing(power_traits),
    "Reshape": reshape_traits,
    "RoiAlign": _roi_align,
    "Slice": slice_traits,
    "Softmax": _softmax,
    "Shape": _measured,
    **dict.fromkeys(QUANTIZERS, quantizer_traits),
    "GlobalAveragePool": ranked,
    "GlobalMaxPool": ranked,
    "GlobalLpPool": _root_of_sums,
    "Transpose": transpose_traits,
    "Unique": unique_traits,
    "Where": _pairing(_choice),
}
"""By the type of an operator that facts may be about, and that neither pads nor resizes: what reads its traits."""
