"""Open lengths as OpenCV 4.14 counts them while it reads a model, before it is told how long anything is.

It lays a model out at once. An open length of an input is 0 then, but for how many lines or images there are, which is
1 until an input leaves another length open. What two tensors meet in is as long as the longest of them, and 1 at the
least; a Reshape makes a length that it copies 0 again. A Concat or a product whose lengths are not alike by this count
is refused, be they alike or not when it runs. Found by joining what an operator gives with a tensor counted as 0 and
with one counted as 1.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from onnx import GraphProto, NodeProto

from padfix.geometry.padding import effective_kernel
from padfix.graph import attributes
from padfix.graph.scopes import Scope, normal_domain
from padfix.operators.constant_chains import worked_out
from padfix.operators.constant_pad import given_pads
from padfix.operators.data_order import CHANNELS
from padfix.operators.elementwise import REDUCTIONS
from padfix.operators.lists import depends_on_data
from padfix.operators.reading import operator_of, read
from padfix.operators.reductions import reduced_axes
from padfix.operators.resample import Resample
from padfix.operators.shape_questions import rank_of
from padfix.operators.slices import slice_amounts, sliced_axes
from padfix.operators.window import Window

# fmt: off
OF_TWO = frozenset(
    {
        "Add", "And", "BitwiseAnd", "Div", "Equal", "Expand", "Greater", "GreaterOrEqual", "Less", "LessOrEqual", "Max",
        "Mean", "Min", "Mod", "Mul", "Or", "Pow", "Sub", "Sum", "Where", "Xor"
    }
)
# fmt: on
"""Operators in which tensors meet, each as long as the longest, and those that copy to lengths."""

_LINES = 3
"""Axes from which on the first of an input is how many there are, and counted as 1."""

_DEEPEST = 200

_MATRIX = 2

_NO_END = 1 << 30
"""An end of a Slice that lies behind whatever length there is."""

Counted = int | str
"""How long an axis is counted as; a name, that nothing else has, where that is neither 0 nor 1 nor known."""


def counted_lengths_differ(scope: Scope, node: NodeProto) -> bool:
    """Whether open lengths that have to be alike are counted otherwise: those that a product sums, or a Concat joins.

    A length that is known is counted as it is, and none is alike that is counted as neither 0 nor 1 beside it.
    """
    return any(
        are_counted_otherwise([counted_length(scope, node.input[place], axis) for place, axis in group])
        for group in alike_axes(scope, node)
    )


def counts_channels_otherwise(scope: Scope, node: NodeProto) -> bool:
    """Whether open channels of a convolution or norm are not counted as many as its weights are for.

    A convolution takes any multiple of those of a group, but 0.
    """
    axis = {"Conv": 1}.get(node.op_type, 0)
    known = [scope.type_of(name) for name in node.input[:2]]
    data, weights = [None if each is None else each.shape for each in known] if len(known) > 1 else (None, None)
    if not data or len(data) <= CHANNELS or isinstance(data[CHANNELS], int) or not weights or len(weights) <= axis:
        return False
    counted, wanted = counted_length(scope, node.input[0], CHANNELS), weights[axis]
    if counted is None or not isinstance(wanted, int) or isinstance(counted, str):
        return isinstance(wanted, int) and isinstance(counted, str)
    return counted % max(wanted, 1) != 0 or counted == 0 if node.op_type == "Conv" else counted != wanted


def counts_no_blocks(scope: Scope, node: NodeProto) -> bool:
    """Whether an open length that a SpaceToDepth cuts into blocks is counted as no multiple of them, being padded."""
    block = attributes.integer(node, "blocksize", 1) or 1
    return any(_padded_length(scope, node.input[0], axis) % block != 0 for axis in (CHANNELS + 1, CHANNELS + 2))


def _padded_length(scope: Scope, name: str, axis: int) -> int:
    """Return how long an axis is counted as that a Pad or a convolution makes as long; 0 where that is not known."""
    counted = counted_length(scope, name, axis)
    if not isinstance(counted, str):
        return 0
    place, of = counted.split(" of ", 1)
    node, at = scope.own_producer(of), int(place)
    given = None if node is None else counted_length(scope, node.input[0], at)
    if node is None or not isinstance(given, int):
        return 0
    if node.op_type == "Pad":
        amounts = given_pads(scope, node) or []
        return given + sum(amounts[at :: len(amounts) // 2 or 1])
    reading = read(scope, node)
    if node.op_type != "Conv" or not isinstance(reading, Window) or reading.auto_pad.startswith("SAME"):
        return 0
    space = at - reading.leading
    taps, pads = reading.kernel[space], reading.explicit_pads[space]
    if taps is None or pads is None:
        return 0
    left = given + sum(pads) - effective_kernel(taps, reading.dilations[space])
    return left // reading.strides[space] + 1


def alike_axes(scope: Scope, node: NodeProto) -> list[list[tuple[int, int]]]:
    """Return the axes, by the place of an input, that have to be of one length in a Concat, a Gemm or a MatMul."""
    ranks = [rank_of(scope, name) for name in node.input]
    if node.op_type == "Concat":
        joined = (attributes.integer(node, "axis", 1) or 0) % max(*ranks, 1)
        others = [axis for axis in range(min(ranks)) if axis != joined]
        return [[(place, axis) for place in range(len(ranks))] for axis in others]
    if min(ranks[:2]) < _MATRIX:
        return []
    turned = [bool(attributes.integer(node, name, 0)) for name in ("transA", "transB")]
    return [[(0, ranks[0] - 1 - turned[0]), (1, ranks[1] - 2 + turned[1])]]


def are_counted_otherwise(counted: Sequence[Counted | None]) -> bool:
    """Whether lengths that have to be alike are not by how they are counted."""
    told = {each for each in counted if isinstance(each, int) and each > 1}
    others = {each for each in counted if isinstance(each, int) or not told}
    return None not in counted and len(others) > 1 and told != others


def counted_length(scope: Scope, name: str, axis: int, depth: int = 0) -> Counted | None:
    """Return how long an axis is counted as, which is what is known of it; None where that has not been found out."""
    known, node = scope.type_of(name), scope.own_producer(name)
    rank = 0 if known is None or known.shape is None else len(known.shape)
    length = known.shape[axis] if known is not None and known.shape is not None and 0 <= axis < rank else None
    if known is None or known.shape is None or not 0 <= axis < rank or isinstance(length, int):
        return length if isinstance(length, int) else None
    if node is None:
        return int(axis == 0 and rank >= _LINES and are_images_alone(scope, name))
    if normal_domain(node.domain) or depth > _DEEPEST or not depends_on_data(scope, name):
        return None

    def before(place: int, at: int | None) -> Counted | None:
        """Return what is counted of an input; None where that is not known."""
        return None if at is None else counted_length(scope, node.input[place], at, depth + 1)

    return _given(scope, node, axis, rank, f"{axis} of {name}", before)


def are_images_alone(scope: Scope, name: str = "") -> bool:
    """Whether no input up to this one, or none at all, leaves more open than how many lines or images there are."""
    container = scope.root.container
    for value in container.input if isinstance(container, GraphProto) else ():
        lengths = value.type.tensor_type.shape.dim
        kept = lengths[1:] if len(lengths) >= _LINES else lengths
        if any(not length.HasField("dim_value") for length in kept):
            return False
        if value.name == name:
            break
    return True


def _given(
    scope: Scope, node: NodeProto, axis: int, rank: int, other: str, before: Callable[[int, int | None], Counted | None]
) -> Counted | None:
    """Return how long an axis is counted as of what a node gives."""
    operator, first = operator_of(node), rank_of(scope, node.input[0]) if node.input else 0
    match node.op_type:
        case op_type if op_type in OF_TWO:
            place = int(_is_bias(scope, node) and not depends_on_data(scope, node.input[0]))
            return before(place, axis) if len(node.input) < 2 or _is_bias(scope, node) else 1
        case "Reshape":
            return _laid_out(scope, node, axis, rank, other, before(0, axis))
        case "Flatten":
            return before(0, axis if axis == 0 and attributes.integer(node, "axis", 1) == 1 else None)
        case "Transpose":
            perm = attributes.integers(node, "perm") or list(range(rank))[::-1]
            return before(0, perm[axis])
        case "MatMul":
            factor = int(axis == rank - 1)
            return before(factor, axis - rank + rank_of(scope, node.input[factor]))
        case "Gemm":
            return before(0, (1 if attributes.integer(node, "transA", 0) else 0) if axis == 0 else None)
        case "Squeeze" | "Unsqueeze" | "Gather":
            return _moved(scope, node, axis, rank, first, before)
        case op_type if op_type in REDUCTIONS:
            reduced = {each % max(first, 1) for each in reduced_axes(scope, node) or range(first)}
            kept = [each for each in range(first) if each not in reduced]
            return before(0, axis if first == rank else kept[axis] if len(kept) == rank else None)
        case "Slice" | "Pad" | "ConvTranspose" | "DepthToSpace" | "SpaceToDepth" | "Tile":
            given = before(0, axis)
            is_zero_still = given == 0 and node.op_type != "Pad"
            return given if is_zero_still or not _may_change(scope, node, axis, rank) else other
        case _ if operator is not None:
            return _by_windows(scope, node, axis, other, before(0, axis))
        case "Concat" | "Split":
            joined = attributes.integer(node, "axis", 0) or 0
            return other if joined % max(rank, 1) == axis else before(0, axis)
        case _:
            return before(0, axis if first == rank else None)


def _laid_out(scope: Scope, node: NodeProto, axis: int, rank: int, other: str, given: Counted | None) -> Counted:
    """Return what is counted of an axis that a Reshape gives: 0 of one that it copies, unless images alone are open."""
    told = worked_out(scope, node.input[1]) if len(node.input) > 1 else None
    length = None if told is None or told.size != rank else int(told.reshape(-1)[axis])
    types = [scope.type_of(name) for name in (node.input[0], node.output[0])]
    first = [None if known is None or not known.shape else known.shape[0] for known in types]
    is_found_again = length == -1 and axis == 0 and given == 1 and first[0] is not None and first[0] == first[1]
    if are_images_alone(scope) or is_found_again:
        return 1
    return 0 if length == 0 else other


def _is_bias(scope: Scope, node: NodeProto) -> bool:
    """Whether a sum adds constants to a product with weights, which is one layer with it."""
    if node.op_type != "Add":
        return False
    values = [worked_out(scope, name) for name in node.input]
    place = 0 if values[0] is not None else 1
    bias, maker = values[place], scope.own_producer(node.input[1 - place])
    is_product = maker is not None and maker.op_type == "MatMul" and not depends_on_data(scope, maker.input[1])
    return is_product and bias is not None


def _may_change(scope: Scope, node: NodeProto, axis: int, rank: int) -> bool:
    """Whether a node that cuts, pads, copies or spreads data may do so along an axis."""
    if node.op_type == "Slice":
        axes, amounts = sliced_axes(scope, node, rank), slice_amounts(scope, node) or {}
        if axes is None or not amounts.get("starts") or not amounts.get("ends"):
            return axes is None or axis in axes
        at = axes.index(axis) if axis in axes else None
        return at is not None and (amounts["starts"][at] != 0 or amounts["ends"][at] < _NO_END)
    if node.op_type in ("Pad", "Tile"):
        told = worked_out(scope, node.input[1]) if len(node.input) > 1 else None
        neutral = int(node.op_type == "Tile")
        return told is None or told.size % rank != 0 or bool((told.reshape(-1, rank)[:, axis] != neutral).any())
    return axis > 0


def _moved(
    scope: Scope, node: NodeProto, axis: int, rank: int, first: int, before: Callable[[int, int | None], Counted | None]
) -> Counted | None:
    """Return what is counted of an axis where others are added, taken away or picked from."""
    if node.op_type == "Gather":
        picked, places = (attributes.integer(node, "axis", 0) or 0) % max(first, 1), rank_of(scope, node.input[1])
        if picked <= axis < picked + places:
            return before(1, axis - picked)
        return before(0, axis if axis < picked else axis - places + 1)
    listed, more = reduced_axes(scope, node), max(first, rank)
    changed = {each % max(more, 1) for each in listed or ()}
    left = [each for each in range(more) if each not in changed]
    if len(left) != min(first, rank):
        return before(0, None)
    return before(0, left[axis] if rank < first else left.index(axis) if axis in left else None)


def _by_windows(scope: Scope, node: NodeProto, axis: int, other: str, given: Counted | None) -> Counted | None:
    """Return what is counted of an axis that windows go over, or that is resized, of one that is counted as ``given``.

    Pools count 0 and 1 as they are.
    """
    reading = read(scope, node)
    if isinstance(reading, Window):
        place = axis - reading.leading
        if not isinstance(given, int) or not 0 <= place < reading.rank or "Pool" in reading.op_type:
            return given
        taps, stride = reading.kernel[place], reading.strides[place]
        pads = (None,) if reading.auto_pad.startswith("SAME") else reading.explicit_pads[place]
        if taps is None or None in pads:
            return given if reading.auto_pad.startswith("SAME") and stride == 1 else other
        left = given + sum(each or 0 for each in pads) - effective_kernel(taps, reading.dilations[place])
        return given if left // stride + 1 == given else other
    scales = reading.scales if isinstance(reading, Resample) else None
    is_same = scales is not None and len(scales) > axis and int(int(given == 1) * scales[axis]) == given
    return given if is_same else other
