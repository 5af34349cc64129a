"""What a node is like, in the words that targets state their facts in (:data:`padfix.targets.traits.TRAITS`)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from onnx import NodeProto, TensorProto

from padfix.geometry.padding import drops_window, effective_kernel
from padfix.graph import attributes
from padfix.graph.scopes import Scope, normal_domain
from padfix.operators.axis_order import order_traits
from padfix.operators.batches import OF_IMAGES, is_of_another_batch, is_of_unlike_batches
from padfix.operators.both_ways import reads_both_ways
from padfix.operators.constant_chains import (
    gives_constant,
    is_constant_boolean,
    is_given_by_node,
    is_of_constants,
    is_steered_by_data,
    is_steered_by_results,
    reads_constant_doubles,
    reads_unsigned_bytes,
)
from padfix.operators.constant_pad import given_pads
from padfix.operators.data_order import is_untold_volume
from padfix.operators.elementwise import PLACES
from padfix.operators.followed_batch import drops_batch, is_one_of_several, lie_within
from padfix.operators.fused_layers import ends_model, is_beside_numbers
from padfix.operators.held_lengths import is_told_late, makes_lengths_late, reads_list_of_lengths
from padfix.operators.lists import ON_ONE, SOFTENING, is_of_made_line, is_of_made_number, lists_for_numbers
from padfix.operators.loaded_lengths import counts_channels_otherwise
from padfix.operators.mixed_images import mixes_images
from padfix.operators.moved_results import GIVING_SQUEEZED, activates_result, gives_squeezed, reads_moved_result
from padfix.operators.numbers import (
    elements_of,
    far_numbers,
    multiplies_whole_numbers,
    numbers_of,
    type_of_data,
)
from padfix.operators.other_traits import OTHERS
from padfix.operators.pad_traits import adds_extremes, fill_of, pad_traits
from padfix.operators.padded_lines import has_middle_taps_below, keeps_line_of_eights
from padfix.operators.passing import reads_nothing, same_traits
from padfix.operators.picking_traits import computed_weights, is_weight
from padfix.operators.plain_traits import CLASSICAL, CLASSICAL_DOMAIN, classical_traits
from padfix.operators.quantizers import QUANTIZERS, traits_of_bytes
from padfix.operators.reading import read
from padfix.operators.reduced_lines import by_channels_of_lines, sums_dequantized_lines
from padfix.operators.resample import Resample
from padfix.operators.resample_traits import resample_traits
from padfix.operators.schemas import schema
from padfix.operators.shape_questions import any_of
from padfix.operators.shared_constants import reads_constant_again, reads_turned_constant, weighs_number_again
from padfix.operators.skips import what_a_window_skips
from padfix.operators.squares import squares_large
from padfix.operators.steps_of_bytes import byte_traits
from padfix.operators.transposed import TransposedWindow
from padfix.operators.window import Pair, Shape, Window, is_row_of_nine
from padfix.operators.written import SAME, is_unnamed_at_end, wrong_arity
from padfix.targets.traits import Trait, Traits

_PLANE_AXES, _TALL, _NARROW = 2, 12, 8
_NEAR_STRIDE = 2
_FEW_CHANNELS = 32
_AXES_OF_IMAGES, _AXES_OF_WINDOWS, _MOST_AXES = 4, 6, 8
_SPACE_TO_DEPTH = ((0, 1, 3, 5, 2, 4), (0, 3, 5, 1, 2, 4))
"""How a Transpose orders the axes of blocks that become channels, behind the channels and before them."""


@dataclass
class _Kept:
    """What a node was found to be like in a scope; it holds the node, so that its identity stays its own."""

    scope: Scope
    node: NodeProto
    traits: Traits | None


def traits_of(scope: Scope, node: NodeProto) -> Traits | None:
    """Return what ``node`` is like; None for operators that no fact is about, and those that can't be read.

    Many rules ask it of the same nodes: it is found once, until something is edited.
    """
    known = scope.root.traits
    kept = known.get(id(node))
    if not isinstance(kept, _Kept) or kept.scope is not scope:
        kept = known[id(node)] = _Kept(scope, node, _found_traits(scope, node))
    return None if kept.traits is None else dict(kept.traits)


def _found_traits(scope: Scope, node: NodeProto) -> Traits | None:
    if normal_domain(node.domain) == CLASSICAL_DOMAIN:
        return classical_traits(node) if node.op_type in CLASSICAL else None
    opset = scope.opset if schema(node.op_type, scope.opset) else None  # of operators that are newer, the newest
    if normal_domain(node.domain) or wrong_arity(node, opset) or not any(node.output):
        return None
    found = _own_traits(scope, node)
    if found is None:
        return None
    data = node.input[0] if node.input else ""
    found = {**found, **order_traits(scope, node), **byte_traits(scope, node), "numbers": numbers_of(scope, data)}
    found |= type_of_data(scope, node) | {"ends-unnamed": is_unnamed_at_end(node)}
    is_told = bool(node.input) and all(scope.constant(name) is not None for name in node.input if name)
    found["constant-result"] = is_told and scope.parent is None and scope.is_output(node.output[0])
    found["axes"] = axes_of(scope, node)
    found["of-untold-volume"] = is_untold_volume(scope, data)
    found["lists-for-numbers"] = bool(lists_for_numbers(scope, node))
    known = scope.type_of(data) if data else None
    found["reads-moved-result"] = reads_moved_result(scope, node)
    found["activates-result"] = activates_result(scope, node)
    found["by-channels-of-lines"] = by_channels_of_lines(scope, node) is not None
    found["sums-dequantized-lines"] = sums_dequantized_lines(scope, node)
    found["of-longs"] = known is not None and known.elem_type == TensorProto.INT64
    found["across-images"] = bool(found.get("across-images")) or mixes_images(scope, node)
    found["gives-more"] = any(scope.is_used(name) for name in node.output[1:] if name)
    found |= same_traits(scope, node)
    found["reads-nothing"] = reads_nothing(scope, node)
    found["constants-by-nodes"] = any(is_given_by_node(scope, name) for name in node.input)
    found["reads-halves"] = any(numbers_of(scope, name) == "half" for name in node.input if name)
    found["steered-by-results"] = is_steered_by_results(scope, node)
    found["gives-a-constant"] = gives_constant(scope, node)
    found["integers-as-result"] = _gives_integers(scope, node)
    found["reads-list-of-lengths"] = reads_list_of_lengths(scope, node)
    found |= {"makes-lengths-late": makes_lengths_late(scope, node), "told-late": is_told_late(scope, node)}
    found["steered-by-data"] = is_steered_by_data(scope, node)
    found["reads-unsigned-bytes"] = reads_unsigned_bytes(scope, node)
    found["constants-again"] = reads_constant_again(scope, node)
    found["number-again"] = weighs_number_again(scope, node)
    found["constants-turned"] = reads_turned_constant(scope, node)
    found["weights-both-ways"] = reads_both_ways(scope, node)
    found.update(far_numbers(scope, node))
    found["constant-doubles"] = reads_constant_doubles(scope, node)
    found["constant-booleans"] = any(is_constant_boolean(scope, name) for name in node.input)
    found["drops-batch"] = drops_batch(scope, node)
    if node.op_type in GIVING_SQUEEZED:
        found["gives-squeezed"] = gives_squeezed(scope, node)
    if node.op_type in (*ON_ONE, *PLACES, *QUANTIZERS, *SOFTENING):
        found["of-made-list"] = is_of_made_line(scope, node)
        found["of-made-number"] = is_of_made_number(scope, node)
    if node.op_type not in OF_IMAGES:
        return found
    unlike = is_of_unlike_batches(scope, data) or is_one_of_several(scope, data)
    within = is_of_another_batch(scope, data) or lie_within(scope, data)
    return {**found, "batch-within": within, "unlike-batches": unlike}


def _gives_integers(scope: Scope, node: NodeProto) -> bool:
    """Whether a result of the model holds integers that depend on data."""
    results = [name for name in node.output if name and scope.parent is None and scope.is_output(name)]
    is_whole = any(numbers_of(scope, name) == "integer" for name in results)
    return is_whole and not gives_constant(scope, node)


def _own_traits(scope: Scope, node: NodeProto) -> Traits | None:
    if node.op_type == "Pad":
        return pad_traits(scope, node)
    if node.op_type in OTHERS:
        return OTHERS[node.op_type](scope, node)
    match read(scope, node):
        case Window() as window:
            own = {
                **traits_of_bytes(scope, node, window.operator),
                "behind-pad": pad_before(scope, node),
                "dense-behind-extremes": is_dense_behind_extremes(scope, node, window),
                "of-weights": is_weight(scope, node.input[0]) or is_of_constants(scope, node.input[0]),
                "high-power": (attributes.integer(node, "p", 2) or 2) > 2,
                "squares-far": squares_large(scope, node),
                **(computed_weights(scope, node) if node.op_type == "Conv" else {}),
                "of-whole-numbers": multiplies_whole_numbers(scope, node),
                "biased": len(node.input) > 2 and bool(node.input[2]),
                "ends-model": ends_model(scope, node),
                "beside-numbers": is_beside_numbers(scope),
                "skips-behind": what_a_window_skips(scope, node, window),
                "channels-counted-otherwise": node.op_type == "Conv" and counts_channels_otherwise(scope, node),
            }
            return {**window_traits(window), **own, **traits_with_pad(scope, node, window)}
        case TransposedWindow() as window:
            own = {
                "behind-pad": pad_before(scope, node),
                "ends-model": ends_model(scope, node),
                "beside-numbers": is_beside_numbers(scope),
                "channels-counted-otherwise": counts_channels_otherwise(scope, node),
                **computed_weights(scope, node),
            }
            return {**transposed_traits(window), **own}
        case Resample() as resize:
            return {**resample_traits(scope, node, resize), "elements": elements_of(resize.elem_type)}
    return None


def axes_of(scope: Scope, node: NodeProto) -> int:
    """Return how many axes what a node reads first, or gives, has; as many as an image's where neither is known."""
    types = [scope.type_of(name) for name in (*node.input[:1], *node.output[:1]) if name]
    ranks = [each.rank for each in types if each is not None and each.rank is not None]
    axes = max(ranks, default=_AXES_OF_IMAGES)
    return min(axes - _is_of_one_less(scope, node) if axes == _AXES_OF_WINDOWS else axes, _MOST_AXES)


def _is_of_one_less(scope: Scope, node: NodeProto) -> bool:
    """Whether it is a Transpose between Reshapes that leaves an axis of one element in its place, and no shuffle."""
    if node.op_type != "Transpose":
        return False
    before, known = scope.own_producer(node.input[0]), scope.type_of(node.input[0])
    behind = [each.op_type for each in scope.consumers(node.output[0])]
    if before is None or before.op_type != "Reshape" or behind != ["Reshape"]:
        return False
    order = tuple(attributes.integers(node, "perm") or ())
    if known is None or order in _SPACE_TO_DEPTH:
        return False
    return any(axis == place and (known.shape or ())[axis] == 1 for place, axis in enumerate(order))


def _common(window: Window | TransposedWindow) -> dict[str, Trait | None]:
    known = [taps for taps in window.kernel if taps is not None]
    reaches = list(zip(known, window.strides, strict=True)) if len(known) == window.rank else []
    return {
        "auto-pad": window.auto_pad or "NOTSET",
        "sizes": "static" if all(isinstance(size, int) for size in window.sizes) else "dynamic",
        "spatial-axes": window.rank,
        "strided": max(window.strides) > 1,
        "far-strides": max(window.strides) > _NEAR_STRIDE,
        "dilated": max(window.dilations) > 1,
        "dilations-written": window.written.dilations is not None,
        "grouped": window.written.group > 1,
        "strides-written": window.written.strides is not None,
        "kernel-written": window.written.kernel_shape is not None,
        "kernel-below-stride": any(taps < stride for taps, stride in reaches) if reaches else None,
        "kernel-above-stride": all(taps > stride for taps, stride in reaches) if reaches else None,
        "one-tap": all(taps == 1 for taps in known) if len(known) == window.rank else None,
        "odd-square": set(known) in ({3}, {5}) if len(known) == window.rank else None,
        "square": len(set(known)) == 1 < window.rank if len(known) == window.rank else None,
        "row-of-nine": is_row_of_nine(known) if len(known) == window.rank else None,
        "nine-columns": known[-1:] == [9] if len(known) == window.rank else None,
        "one-channel": window.channels == 1 if window.channels else None,
    }


def window_traits(window: Window) -> Traits:
    """Return what a convolution or pool is like."""
    pairs = window.same_pads() if window.auto_pad in SAME else window.explicit_pads
    group, maps, channels = window.written.group, window.maps, window.channels or window.data_channels
    return {
        **_common(window),
        "one-channel": channels == 1 if channels else None,
        "few-channels": channels < _FEW_CHANNELS if channels else None,
        "padding": padding_of(pairs),
        "even-pads": _even(pairs),
        "wide-pads": _any_wide(window, pairs),
        "depthwise": None if maps is None else 1 < group == maps == window.channels,
        "map-each": None if maps is None else group == maps == window.channels,
        "column-by-twos": window.strides == (2, 2) and window.kernel[-1] == 1 and window.kernel[0] != 1,
        # Of a length that is left open it is taken that it is more: what a model is for is never one element.
        "one-element": any(size == 1 and pair != (0, 0) for size, pair in zip(window.sizes, pairs, strict=True)),
        "one-pad-before": all(pair is not None and pair[0] == 1 for pair in pairs),
        "pads-before": any_of([None if pair is None else pair[0] > 0 for pair in pairs]),
        "leaves-a-rest": any_of([_leaves_a_rest(window, axis, pair) for axis, pair in enumerate(pairs)]),
        "tall-result": _is_tall(window.output_sizes()),
        "one-line-result": _is_short(window.output_sizes(), 1, 1),
        "two-column-result": _is_short(window.output_sizes(), 0, 2),
        "line-of-eights": keeps_line_of_eights(window, pairs),
        "middle-taps-below": has_middle_taps_below(window, pairs),
        "indices": window.has_indices,
        "column-major": window.has_indices and window.written.storage_order != 0 and window.rank > 1,
        "storage-order-written": window.written.storage_order != 0,
        "batched": window.batch > 1 if isinstance(window.batch, int) else None,
        "elements": elements_of(window.elem_type),
        "counts-pads": window.operator.is_average and window.written.count_include_pad,
        "rounds-up": window.written.ceil_mode,
        "beyond-image": any(_is_longer(window, axis, pair) for axis, pair in enumerate(pairs)),
        "drops-window": window.written.ceil_mode
        and any_of([_drops_window(window, axis, pair) for axis, pair in enumerate(pairs)]),
    }


def _is_tall(sizes: Shape) -> bool | None:
    """Whether a plane has more rows than 12 of no more than 8 elements, in which QNN computes averages otherwise."""
    if len(sizes) != _PLANE_AXES:
        return False
    rows, columns = (size if isinstance(size, int) else None for size in sizes)
    if (rows is not None and rows <= _TALL) or (columns is not None and columns > _NARROW):
        return False
    return None if rows is None or columns is None else True


def _is_short(sizes: Shape, rows: int, columns: int) -> bool | None:
    """Whether a plane has no more than so many rows, or columns."""
    if len(sizes) != _PLANE_AXES:
        return False
    most = zip(sizes, (rows, columns), strict=True)
    return any_of([size <= length if isinstance(size, int) else None for size, length in most])


def _leaves_a_rest(window: Window, axis: int, pair: Pair | None) -> bool | None:
    """Whether there are elements at the end of an axis that no window reaches."""
    size, taps, stride = window.sizes[axis], window.kernel[axis], window.strides[axis]
    if stride == 1:
        return False
    if taps is None or pair is None or not isinstance(size, int):
        return None
    return (size + sum(pair) - effective_kernel(taps, window.dilations[axis])) % stride != 0


def _is_longer(window: Window, axis: int, pair: Pair | None) -> bool:
    """Whether a window is longer than the image with its pads, where both are known."""
    size, taps = window.sizes[axis], window.kernel[axis]
    if not isinstance(size, int) or taps is None or pair is None:
        return False
    return effective_kernel(taps, window.dilations[axis]) > size + sum(pair)


def _drops_window(window: Window, axis: int, pair: Pair | None) -> bool | None:
    """Whether ceil_mode leaves out the last window of an axis.

    It begins less than a stride behind the last place where a whole window lies within the pads, and so in the image,
    whatever its length, where a kernel is no shorter than a stride and the pad at the end together.
    """
    size, taps, stride, dilation = window.sizes[axis], window.kernel[axis], window.strides[axis], window.dilations[axis]
    if taps is None or pair is None:
        return None
    if not isinstance(size, int):
        return False if stride + pair[1] <= effective_kernel(taps, dilation) else None
    return drops_window(size, taps, stride, dilation, *pair)


def transposed_traits(window: TransposedWindow) -> Traits:
    """Return what a transposed convolution is like."""
    axes = [window.axis(axis) for axis in range(window.rank)]
    pairs = [None if each is None else (each.begin, each.end) for each in axes]
    return {
        **_common(window),
        "padding": padding_of(pairs),
        "even-pads": _even(pairs),
        "crops-past-kernel": _crops_past_kernel(window, pairs),
        "biased": window.has_bias,
        "map-each": None if window.maps is None else window.written.group == window.maps == window.channels,
        "one-filter-a-group": _has_one_filter_a_group(window),
        "multiplies-channels": _multiplies_channels(window),
        "output-shape": window.output_shape is not None,
        "output-padding": any(window.output_padding),
        "last-strides-differ": len(set(window.strides[-2:])) > 1,
    }


def _has_one_filter_a_group(window: TransposedWindow) -> bool | None:
    """Whether every group makes one map of several channels."""
    if window.written.group == 1:
        return False
    if window.maps_per_group is None or window.channels is None:
        return None
    return window.maps_per_group == 1 and window.channels > window.written.group


def _multiplies_channels(window: TransposedWindow) -> bool | None:
    """Whether every channel is a group of its own, and makes several maps."""
    if window.written.group == 1:
        return False
    if window.maps_per_group is None or window.channels is None:
        return None
    return window.maps_per_group > 1 and window.channels == window.written.group


def padding_of(pairs: Sequence[Pair | None]) -> str | None:
    """Return what padding is like; None where that depends on a length that is not known."""
    known = [pair for pair in pairs if pair is not None]
    if any(begin != end for begin, end in known):
        return "asymmetric"
    if len(known) < len(pairs):
        return None
    return "symmetric" if any(begin for begin, _ in known) else "none"


def _crops_past_kernel(window: TransposedWindow, pairs: Sequence[Pair | None]) -> bool | None:
    """Whether so much is cropped at an end that not even the kernel of its outermost element reaches what is left."""
    return any_of(
        [
            None if pair is None or span is None else max(pair) > span
            for pair, span in zip(pairs, window.spans, strict=True)
        ]
    )


def _any_wide(window: Window, pairs: Sequence[Pair | None]) -> bool | None:
    """Whether pads at a begin are so long that a window lies in them with all its taps."""
    return any_of(
        [
            None if pair is None or span is None else pair[0] >= span
            for pair, span in zip(pairs, window.spans, strict=True)
        ]
    )


def _even(pairs: Sequence[Pair | None]) -> bool | None:
    """Whether there is as much padding at both ends of every axis."""
    known = {amount for pair in pairs if pair is not None for amount in pair}
    return False if len(known) > 1 else None if None in pairs else True


def pad_before(scope: Scope, node: NodeProto) -> str | None:
    """Return what padding the node gets from a Pad that adds zeros, which runtimes make part of a window.

    None where that is not known; amounts on the axes of batch and channels count as well.
    """
    pairs = _pairs_before(scope, node)
    return None if pairs is None else padding_of(pairs)


def traits_with_pad(scope: Scope, node: NodeProto, window: Window) -> Traits:
    """Return what pads are like together with those of such a Pad: whether a window lies in them with all its taps."""
    joined = joined_pairs(scope, node, window)
    if joined is None:
        return {"wide-pads": None, "line-of-eights": None}
    return {"wide-pads": _any_wide(window, joined), "line-of-eights": keeps_line_of_eights(window, joined)}


def joined_pairs(scope: Scope, node: NodeProto, window: Window) -> list[Pair | None] | None:
    own = window.same_pads() if window.auto_pad in SAME else window.explicit_pads
    before = _pairs_before(scope, node)
    if before is None:
        return None
    more = before[2:] or [(0, 0)] * window.rank
    return [
        None if pair is None else (pair[0] + other[0], pair[1] + other[1])
        for pair, other in zip(own, more, strict=False)
    ]


def _pairs_before(scope: Scope, node: NodeProto) -> list[Pair] | None:
    """Return the amounts of a Pad of zeros that the node reads from, by axis; none where there is no such Pad."""
    before = scope.own_producer(node.input[0])
    if before is None or before.op_type != "Pad" or normal_domain(before.domain):
        return []
    mode = attributes.text(before, "mode", "constant") or "constant"
    if mode != "constant" or fill_of(scope, before) not in ("zero", None):
        return []
    amounts = given_pads(scope, before)
    if amounts is None or (len(before.input) > 3 and before.input[3]):
        return None
    half = len(amounts) // 2
    return list(zip(amounts[:half], amounts[half:], strict=True))


def is_dense_behind_extremes(scope: Scope, node: NodeProto, window: Window) -> bool:
    """Whether three by three taps side by side multiply what a Pad adds close to the largest number that there is."""
    if window.op_type != "Conv" or window.kernel != (3, 3) or max(*window.strides, *window.dilations) > 1:
        return False
    before = scope.own_producer(node.input[0])
    return before is not None and before.op_type == "Pad" and adds_extremes(scope, before)
