"""What operators are like that pick and split, in the words that targets state their facts in."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from onnx import NodeProto, TensorProto

from padfix.graph import attributes
from padfix.graph.scopes import Dimension, Scope, ValueType
from padfix.operators.constant_chains import COMPUTED, is_constant, reads_constant_bytes, worked_out
from padfix.operators.cut_rows import has_fewer_rows
from padfix.operators.elementwise import ELEMENTWISE, MOST_MOVES, MOVING, PLACES, RESHAPING
from padfix.operators.lists import depends_on_data
from padfix.operators.long_results import ends_as_long, is_behind_images, turns_longs
from padfix.operators.numbers import numbers_of
from padfix.operators.open_lengths import puts_open
from padfix.operators.passing import passed_on
from padfix.operators.picked_parts import picked_part
from padfix.operators.places import may_count_from_end, picks_many_planes
from padfix.operators.slices import slice_starts, sliced_axes
from padfix.operators.suppression import suppression_traits
from padfix.targets.traits import COUNT, Traits

_LINES = 3
_ROWS = 2
"""Axes of lines: images, channels and places."""

PICKING = ("GatherElements", "GatherND", "Scatter", "ScatterElements", "ScatterND")
"""Operators whose second input says which elements."""

_PUTTING_ALONG_AXIS = ("Scatter", "ScatterElements")

_ON_EACH = ("Abs", "Add", "Cast", "Clip", "Identity", "Max", "Min", "Mod", "Mul", "Neg", "Sub")

_MANY_AXES = 6
"""Axes of data and of indices together, one of which is picked from, that give more than five."""

_AXES_OF_IMAGES = 4

FEW_ROWS = 8
"""Rows that converters may try a table with, whatever indices the model has."""


def along_axis(scope: Scope, node: NodeProto) -> Traits:
    """Return whether the axis of an operator is counted from the end, and whether it is the first one."""
    axis, known = attributes.integer(node, "axis", 0) or 0, scope.type_of(node.input[0])
    rank = None if known is None else known.rank
    return {
        "axis-from-end": axis < 0,
        "first-axis": axis == 0 if axis >= 0 else None if rank is None else axis == -rank,
    }


def _picking(scope: Scope, node: NodeProto) -> Traits:
    indices = scope.constant(node.input[1])
    shapes = [None if (known := scope.type_of(name)) is None else known.shape for name in node.input[:3]]
    updates = shapes[2] if len(shapes) > 2 else None
    indices_shape = shapes[1] or ()
    return {
        **ranked(scope, node),
        "takes-nothing": any(0 in (shape or ()) for shape in shapes),
        "axis-from-end": (attributes.integer(node, "axis", 0) or 0) < 0,
        "of-fewer-rows": has_fewer_rows(scope, node, shapes),
        "of-more-rows": _has_more_rows(node, shapes),
        "told-beside-open": _is_told_beside_open(node, shapes),
        "behind-slice-from-first": node.op_type == "GatherElements" and _is_behind_slice_from_first(scope, node),
        "of-listed-values": updates is not None and len(updates) == 1,
        "both-computed": not is_constant(scope, node.input[1]),
        "negative-indices": _holds_negatives(scope, node.input[1]),
        "maybe-from-end": may_count_from_end(scope, node.input[1]),
        "picks-rows": indices is not None and node.op_type == "GatherND" and indices.shape[-1:] == (1,),
        "picks-many-planes": node.op_type == "GatherND" and picks_many_planes(shapes),
        "by-image": attributes.integer(node, "batch_dims", 0) != 0,
        "tuples-open": node.op_type == "GatherND" and not all(isinstance(each, int) for each in indices_shape[-1:]),
        "puts-slices": _puts_slices(node, shapes),
        "puts-open": node.op_type == "ScatterND" and puts_open(scope, node),
        "places-in-rows": node.op_type == "ScatterND" and _are_in_rows(shapes[1]),
        "by-tuples": node.op_type == "GatherND" and shapes[1] is not None and tuple(shapes[1][-1:]) != (1,),
        "by-many-axes": node.op_type == "GatherND" and shapes[1] is not None and len(shapes[1]) > _AXES_OF_IMAGES,
        "joins": (reduction := attributes.text(node, "reduction", "none") or "none") != "none",
        "joins-extremes": reduction in ("max", "min"),
        "reads-constant-bytes": reads_constant_bytes(scope, node),
        "laid-out-apart": _is_laid_out_apart(scope, node),
        "reduction-written": attributes.find(node, "reduction") is not None,
    }


def _is_laid_out_apart(scope: Scope, node: NodeProto) -> bool:
    """Whether some of the inputs have their axes of a Reshape and others have not, where a first length is open."""
    if node.op_type.endswith("ND"):
        return False
    names = [name for name in node.input if not is_constant(scope, name)]
    types = [scope.type_of(name) for name in names]
    is_open = any(known is None or not known.shape or not isinstance(known.shape[0], int) for known in types)
    return is_open and len({_is_laid_out(scope, name) for name in names}) > 1


def _is_laid_out(scope: Scope, name: str) -> bool:
    """Whether a value has its axes of a Reshape, or of what becomes one, before operators on each element."""
    for _ in range(MOST_MOVES + 1):
        producer = scope.producer(name)
        if producer is None or producer.op_type in RESHAPING:
            return producer is not None
        if producer.op_type not in ELEMENTWISE:
            return False
        name = next((each for each in producer.input if each and not is_constant(scope, each)), name)
    return False


def gather_traits(scope: Scope, node: NodeProto) -> Traits:
    """Return of a Gather what it picks from, and by what."""
    indices = scope.type_of(node.input[1]) if len(node.input) > 1 else None
    rank = None if indices is None else indices.rank
    is_told = any(scope.constant(name) is not None or scope.is_initializer(name) for name in node.input)
    matrix = scope.type_of(node.input[0])
    is_matrix = matrix is not None and matrix.rank == 2 and scope.is_initializer(node.input[0])
    rows = matrix.shape[0] if matrix is not None and matrix.shape else None
    return {
        "takes-nothing": indices is not None and 0 in (indices.shape or ()),
        "several-of-batch": _picks_along_first(node, matrix)
        and indices is not None
        and set(indices.shape or ()) - {1} != set(),
        "embeds": is_matrix and attributes.integer(node, "axis", 0) == 0 and rank in (0, 1, 2),
        "few-rows": isinstance(rows, int) and rows < FEW_ROWS,
        "axis-written": attributes.find(node, "axis") is not None,
        "axis-from-end": (attributes.integer(node, "axis", 0) or 0) < 0,
        "first-axis": _picks_along_first(node, matrix),
        "turns-longs": turns_longs(scope, node),
        "by-data": len(node.input) > 1 and depends_on_data(scope, node.input[1]),
        "maybe-from-end": len(node.input) > 1 and may_count_from_end(scope, node.input[1]),
        "places-computed": _has_computed_places(scope, node),
        "before-cast": _is_before_cast(scope, node),
        "both-computed": not is_told,
        "by-integers-of-32-bits": indices is not None
        and indices.elem_type == TensorProto.INT32
        and depends_on_data(scope, node.input[1]),
        "picks-a-list": None if rank is None else rank > 0,
        "by-list-of-caller": rank in (0, 1) and _is_as_given(scope, node.input[1]),
        "gives-a-number": rank == 0 and matrix is not None and matrix.rank == 1,
        "picks-a-matrix": None if rank is None else rank > 1,
        "of-lists": matrix is not None and matrix.rank == 1,
        "picks-all-in-order": picks_all_in_order(scope, node),
        "picks-part": picked_part(scope, node) is not None,
        "gives-many-axes": bool(rank) and matrix is not None and (matrix.rank or 0) + (rank or 0) > _MANY_AXES,
    }


def picks_all_in_order(scope: Scope, node: NodeProto) -> bool:
    """Whether a Gather picks every element along its axis once, from the first on."""
    data, places = scope.type_of(node.input[0]), scope.constant(node.input[1]) if len(node.input) > 1 else None
    if data is None or data.lengths is None or places is None or not data.lengths:
        return False
    length = data.lengths[attributes.integer(node, "axis", 0) or 0]
    return places.size == length and bool((places.reshape(-1) % max(length, 1) == np.arange(length)).all())


def _is_before_cast(scope: Scope, node: NodeProto) -> bool:
    """Whether a Cast alone reads what a node gives."""
    readers = [] if scope.is_output(node.output[0]) else scope.consumers(node.output[0])
    return [each.op_type for each in readers] == ["Cast"]


def _has_computed_places(scope: Scope, node: NodeProto) -> bool:
    """Whether a Gather picks from data or lengths, by indices that are no constant but are computed from some."""
    if any(not name or scope.constant(name) is not None for name in node.input) or len(node.input) < 2:
        return False
    return worked_out(scope, node.input[1]) is not None


def _holds_negatives(scope: Scope, name: str) -> bool:
    value = scope.constant(name)
    return value is not None and bool((value < 0).any())


def _is_as_given(scope: Scope, name: str) -> bool:
    """Whether an input of the model has these axes, or did before what works on each element."""
    for _ in range(MOST_MOVES + 1):
        producer = scope.producer(name)
        if producer is None or producer.op_type not in _ON_EACH:
            break
        name = next((each for each in producer.input if not is_constant(scope, each)), name)
    owner = scope.owner(name)
    return owner is not None and owner.parent is None and name in owner.inputs and not is_constant(scope, name)


def _picks_along_first(node: NodeProto, data: ValueType | None) -> bool:
    """Whether a Gather picks along the first axis of its data."""
    rank = 0 if data is None else data.rank or 0
    return attributes.integer(node, "axis", 0) in (0, -rank)


def _may_be_outside(scope: Scope, node: NodeProto) -> bool:
    """Whether an index of a OneHot may be none of its places: all but constants and positions along a short axis."""
    depth, name = scope.constant(node.input[1]), node.input[0]
    most = 0 if depth is None or not depth.size else int(depth.reshape(-1)[0])
    for _ in range(MOST_MOVES + 1):
        told, producer = scope.constant(name), scope.producer(name)
        if told is not None:
            return bool((told < -most).any() or (told >= most).any())
        if producer is None or producer.op_type not in (*MOVING, *PLACES):
            return True
        if producer.op_type.startswith("Arg"):
            known = scope.type_of(producer.input[0])
            length = (
                known.shape[attributes.integer(producer, "axis", 0) or 0] if known is not None and known.shape else None
            )
            return not isinstance(length, int) or length > most
        name = producer.input[0]
    return True


def _is_whole_number(scope: Scope, name: str) -> bool:
    """Whether a value is an integer without an axis."""
    known = scope.type_of(name)
    return known is not None and known.shape == () and numbers_of(scope, name) == "integer"


def _has_more_rows(node: NodeProto, shapes: Sequence[Sequence[Dimension] | None]) -> bool | None:
    """Whether a ScatterElements has more indices along its axis than its data have elements."""
    if node.op_type not in _PUTTING_ALONG_AXIS:
        return False
    data, indices = shapes[:2]
    if not data or not indices:
        return None
    axis = attributes.integer(node, "axis", 0) or 0
    most, given = data[axis], indices[axis]
    if isinstance(most, int) and isinstance(given, int):
        return given > most
    return False if most is not None and most == given else None


def _is_told_beside_open(node: NodeProto, shapes: Sequence[Sequence[Dimension] | None]) -> bool:
    """Whether elements have told numbers of indices along axes of open lengths, more than one of the images.

    A GatherElements takes as many as there are along its own axis.
    """
    data, indices = shapes[:2]
    is_gathering = node.op_type == "GatherElements"
    if not (is_gathering or node.op_type in _PUTTING_ALONG_AXIS) or not data or not indices:
        return False
    own_axis = (attributes.integer(node, "axis", 0) or 0) % len(data)
    pairs = enumerate(zip(data, indices, strict=False))
    return any(
        not isinstance(length, int) and isinstance(given, int) and given > (axis == 0)
        for axis, (length, given) in pairs
        if not (is_gathering and axis == own_axis)
    )


def _are_in_rows(places: Sequence[Dimension] | None) -> bool:
    """Whether places that count along one axis are no list."""
    return places is not None and len(places) > _ROWS and places[-1] == 1


def _puts_slices(node: NodeProto, shapes: Sequence[Sequence[Dimension] | None]) -> bool:
    """Whether a ScatterND puts whole slices, by places that count along several axes."""
    if node.op_type != "ScatterND" or shapes[0] is None or not shapes[1]:
        return False
    counted = shapes[1][-1]
    return isinstance(counted, int) and 1 < counted < len(shapes[0])


def _is_behind_slice_from_first(scope: Scope, node: NodeProto) -> bool:
    """Whether data are what a Slice takes from the first element on, and it does matter to the indices what it leaves.

    It does not where it takes along the axis of the indices alone and none of these counts from the end.
    """
    before = scope.own_producer(node.input[0])
    while before is not None and (passed := passed_on(scope, before)):
        before = scope.own_producer(passed)
    if before is None or before.op_type != "Slice":
        return False
    known = scope.type_of(before.input[0])
    if known is None or not known.rank:
        return False
    axes, starts = sliced_axes(scope, before, known.rank), slice_starts(scope, before)
    if axes is None or starts is None:
        return True
    cut = {axis for axis, start in zip(axes, starts, strict=True) if start == 0}
    own = (attributes.integer(node, "axis", 0) or 0) % known.rank
    counts = _holds_negatives(scope, node.input[1]) or may_count_from_end(scope, node.input[1])
    return bool(cut - {own}) or (own in cut and counts)


def _split(scope: Scope, node: NodeProto) -> Traits:
    known, axis = scope.type_of(node.input[0]), attributes.integer(node, "axis", 0) or 0
    length = (
        known.shape[axis] if known is not None and known.shape and -len(known.shape) <= axis < len(known.shape) else 0
    )
    counts = attributes.integer(node, "num_outputs", 0)
    is_even = None if length is None or isinstance(length, str) else length % (counts or 1) == 0
    has_lengths = len(node.input) > 1 or attributes.find(node, "split") is not None
    pieces = pieces_told(scope, node)
    return {
        "axis-written": attributes.find(node, "axis") is not None,
        "axis-from-end": axis < 0,
        "split-evenly": is_even if counts else True,
        "pieces-told": has_lengths or bool(counts),
        "even-by-itself": len(node.input) < 2 and len(set(pieces or ())) < 2,
        "open-lengths": isinstance(length, int) and known is not None and known.lengths is None,
        "as-result": scope.parent is None and any(scope.is_output(name) for name in node.output),
        "splits-constant": is_weight(scope, node.input[0], defaults=True),
        "empty-piece": None if pieces is None and counts else 0 in (pieces or ()),
    }


def pieces_told(scope: Scope, node: NodeProto) -> list[int] | None:
    """Return the length of each piece of a Split, or None where that is not known."""
    given = node.input[1] if len(node.input) > 1 else ""
    if given or attributes.find(node, "split") is not None:
        told = worked_out(scope, given) if given else attributes.integers(node, "split")
        return None if told is None else [int(each) for each in told]
    known, axis = scope.type_of(node.input[0]), attributes.integer(node, "axis", 0) or 0
    shape = () if known is None or known.shape is None else known.shape
    length = shape[axis] if -len(shape) <= axis < len(shape) else None
    if not isinstance(length, int):
        return None
    count = len(node.output)
    each = -(-length // count)
    return [max(0, min(each, length - each * place)) for place in range(count)]


def is_weight(scope: Scope, name: str, depth: int = 0, *, defaults: bool = False) -> bool:
    """Whether a constant or a weight is read: written down as it is, or moved about by a few operators.

    ``defaults`` counts those of inputs as well, which a caller could replace.
    """
    owner, producer = scope.owner(name), scope.producer(name)
    if owner is None or producer is None:
        return owner is not None and (owner.is_fixed(name) or (defaults and owner.is_initializer(name)))
    if producer.op_type == "Constant":
        return True
    read = producer.input if producer.op_type in COMPUTED and depth < MOST_MOVES else ()
    return bool(read) and all(is_weight(scope, each, depth + 1, defaults=defaults) for each in read if each)


def computed_weights(scope: Scope, node: NodeProto) -> Traits:
    """Return whether the weights and the bias of a convolution are computed, or an input of the model.

    And of a Conv whether every channel is a group of its own, and makes several maps.
    """
    weights, bias = (node.input[place] if place < len(node.input) else "" for place in (1, 2))
    found: Traits = {
        "weights-computed": bool(weights) and not is_weight(scope, weights),
        "bias-computed": bool(bias) and not is_weight(scope, bias),
    }
    if node.op_type != "Conv":
        return found  # how many maps a transposed one makes of each channel its reader tells
    known, group = scope.type_of(weights), attributes.integer(node, "group", 1) or 1
    maps, each = (None, None) if known is None or not known.shape else known.shape[:2]
    return {**found, "multiplies-channels": group > 1 and each == 1 and maps != group}


def ranked(scope: Scope, node: NodeProto) -> Traits:
    """Return how many axes the data have."""
    data = scope.type_of(node.input[0])
    return {"rank": None if data is None else data.rank}


def triangle_traits(scope: Scope, node: NodeProto) -> Traits:
    """Return of a Trilu how many axes its data have, and whether its matrices have more rows than columns."""
    data = scope.type_of(node.input[0])
    rows, columns = data.shape[-2:] if data is not None and data.shape is not None and data.rank else (None, None)
    is_tall = rows > columns if isinstance(rows, int) and isinstance(columns, int) else rows != columns or rows is None
    return {**ranked(scope, node), "tall": is_tall}


def _sizes_of(scope: Scope, node: NodeProto) -> str:
    known = scope.type_of(node.input[0])
    return "dynamic" if known is None or known.lengths is None else "static"


def _leaves_its_axis_open(scope: Scope, node: NodeProto) -> bool:
    known, axis = scope.type_of(node.input[0]), attributes.integer(node, "axis", -1) or 0
    shape = () if known is None or known.shape is None else known.shape
    return -len(shape) <= axis < len(shape) and not isinstance(shape[axis], int)


def _number_of_results(scope: Scope, node: NodeProto) -> int | None:
    """Return how many elements a TopK gives, or the most that is counted; None where that is not known."""
    told = scope.constant(node.input[1]) if len(node.input) > 1 else None
    number = attributes.integer(node, "k", 0) if told is None else int(told.reshape(-1)[0])
    return min(number, len(COUNT) - 1) or None


def _leaves_channels(scope: Scope, node: NodeProto) -> bool:
    """Whether places of extremes behind what works on images have channels, and other axes behind these."""
    if not is_behind_images(scope, node.input[0]):
        return False
    known, axis = scope.type_of(node.input[0]), attributes.integer(node, "axis", 0) or 0
    rank = _LINES if known is None or known.rank is None else known.rank
    if attributes.integer(node, "keepdims", 1):
        return rank >= _LINES
    return rank > _LINES and axis % rank != 1


def _takes_first_out(scope: Scope, node: NodeProto) -> bool:
    """Whether an ArgMax or ArgMin works along the first axis, which it does not keep."""
    known, axis = scope.type_of(node.input[0]), attributes.integer(node, "axis", 0) or 0
    is_first = axis == 0 or (known is not None and known.rank is not None and axis == -known.rank)
    return is_first and not attributes.integer(node, "keepdims", 1)


PICKING_TRAITS: Mapping[str, Callable[[Scope, NodeProto], Traits]] = {
    **dict.fromkeys(PICKING, _picking),
    **dict.fromkeys(
        PLACES,
        lambda scope, node: {
            **ranked(scope, node),
            "axis-from-end": (attributes.integer(node, "axis", 0) or 0) < 0,
            "takes-last": attributes.integer(node, "select_last_index", 0) != 0,
            "keeps-axis": attributes.integer(node, "keepdims", 1) != 0,
            "kept-unwritten": attributes.find(node, "keepdims") is None,
            "moves-batch": _takes_first_out(scope, node),
            "leaves-channels": _leaves_channels(scope, node),
            "ends-as-long": ends_as_long(scope, node),
            "turns-longs": turns_longs(scope, node),
        },
    ),
    "NonMaxSuppression": suppression_traits,
    "OneHot": lambda scope, node: {
        "axis-written": attributes.find(node, "axis") is not None,
        "maybe-from-end": may_count_from_end(scope, node.input[0]) or _holds_negatives(scope, node.input[0]),
        "maybe-outside": _may_be_outside(scope, node),
        "depth-is-no-number": not _is_whole_number(scope, node.input[1]),
        "of-floats": numbers_of(scope, node.input[2]) != "integer",
    },
    "Split": _split,
    "TopK": lambda scope, node: {
        **ranked(scope, node),
        "axis-from-end": (attributes.integer(node, "axis", -1) or 0) < 0,
        "inner-axis-from-end": (attributes.integer(node, "axis", -1) or 0) < -1,
        "sorted": attributes.integer(node, "sorted", 1) != 0,
        "number-as-attribute": len(node.input) == 1,
        "sizes": _sizes_of(scope, node),
        "open-lengths": _leaves_its_axis_open(scope, node),
        "results": _number_of_results(scope, node),
        "gives-places": len(node.output) > 1 and scope.is_used(node.output[1]),
    },
}
"""By the type of an operator: what reads its traits."""
