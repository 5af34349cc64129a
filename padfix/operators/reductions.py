"""What the operators that reduce axes are like."""

from __future__ import annotations

from collections.abc import Sequence

from onnx import NodeProto

from padfix.graph import attributes
from padfix.graph.scopes import Dimension, Scope
from padfix.operators.batches import reduces_images, takes_first_axis
from padfix.operators.constant_chains import is_of_data
from padfix.operators.data_order import AXES_OF_IMAGES, CHANNELS
from padfix.operators.numbers import holds_infinity
from padfix.targets.traits import Traits


def reduced_axes(scope: Scope, node: NodeProto) -> list[int] | None:
    """Return which axes a reduction, a Squeeze or an Unsqueeze lists by an attribute or an input, none for all of them.

    None where that is only known at run time.
    """
    if len(node.input) < 2 or not node.input[1]:
        return list(attributes.integers(node, "axes") or ())
    known = scope.constant(node.input[1])
    return None if known is None else [int(axis) for axis in known.reshape(-1)]


def reduction_traits(scope: Scope, node: NodeProto) -> Traits:
    """Return what axes a reduction has, and how it names them."""
    listed, data = reduced_axes(scope, node), scope.type_of(node.input[0])
    every = None if data is None else data.rank
    lengths = [] if data is None or data.shape is None or every is None else data.shape
    reduced = [lengths[axis] for axis in listed or range(len(lengths)) if -len(lengths) <= axis < len(lengths)]
    # A number has no axes; that a reduction leaves it as it is is nothing that it is told.
    of_none = 0 if attributes.integer(node, "noop_with_empty_axes", 0) else 1 if every == 0 else every
    count = _count(scope, node, listed)
    return {
        "asked-for-infinity": _is_asked_for_infinity(scope, node),
        "added-axis-from-end": any(axis < 0 for axis in listed or ()) and _adds_axes(scope, node.input[0]),
        "axis-from-end": any(axis < 0 for axis in listed or ()),
        "of-data": is_of_data(scope, node),
        "one-element": are_of_one_element(reduced),
        "axes-as-input": len(node.input) > 1 and bool(node.input[1]),
        "axes-listed": bool(count),
        "rank-untold": listed is None
        and not attributes.integer(node, "keepdims", 1)
        and not _is_one(scope, node.input[1]),
        "axes-empty": listed == [] and len(node.input) > 1 and bool(node.input[1]),
        "reduced-axes": None if count is None else count or of_none,
        "moves-batch": None
        if listed is None or every is None
        else 0 in {axis % max(every, 1) for axis in listed or range(every)}
        and not attributes.integer(node, "keepdims", 1),
        "reduces-channels": None
        if listed is None or every is None
        else CHANNELS in {axis % max(every, 1) for axis in listed} and len(listed) > 1,
        "rank": every,
        "keeps-axis": attributes.integer(node, "keepdims", 1) != 0,
        "reduces-all": None if count is None or every is None else (count or of_none) == every,
        "several-of-volume": every is not None and every > AXES_OF_IMAGES and len(reduced) > 1,
        "of-volume": every is not None and every > AXES_OF_IMAGES,
        "across-images": reduces_images(scope, listed, lengths)
        if listed or (listed is not None and of_none)
        else False,
        "over-batch": None if listed is None else reduces_batch(listed, lengths) if listed or of_none else False,
    }


def are_of_one_element(reduced: Sequence[Dimension]) -> bool | None:
    """Whether each of the reduced axes has one element, None where that depends on lengths that are left open."""
    if not reduced or any(isinstance(length, int) and length != 1 for length in reduced):
        return False
    return True if all(isinstance(length, int) for length in reduced) else None


def _count(scope: Scope, node: NodeProto, listed: Sequence[int] | None) -> int | None:
    """Return how many axes it lists; where they are fed, as many as the list of them is long."""
    if listed is not None:
        return len(listed)
    fed = scope.type_of(node.input[1])
    length = None if fed is None or fed.shape is None or len(fed.shape) != 1 else fed.shape[0]
    return length if isinstance(length, int) else None


def _is_one(scope: Scope, name: str) -> bool:
    """Whether this is a list of one element."""
    known = scope.type_of(name)
    return known is not None and known.shape == (1,)


def reduces_batch(axes: Sequence[int], lengths: Sequence[Dimension]) -> bool:
    """Whether a reduction along these axes, all of them where none is listed, takes several images together."""
    return len(lengths) >= AXES_OF_IMAGES and takes_first_axis(axes, len(lengths)) and lengths[0] != 1


def _adds_axes(scope: Scope, name: str) -> bool:
    """Whether an Unsqueeze, or a Reshape to more axes, gives this, or an Identity of it."""
    maker = scope.own_producer(name)
    while maker is not None and maker.op_type == "Identity":
        maker = scope.own_producer(maker.input[0])
    if maker is None or maker.op_type not in ("Reshape", "Unsqueeze"):
        return False
    ranks = [None if (known := scope.type_of(each)) is None else known.rank for each in (maker.input[0], name)]
    return ranks[0] is None or ranks[1] is None or ranks[0] < ranks[1]


def _is_asked_for_infinity(scope: Scope, node: NodeProto) -> bool:
    """Whether it is asked if the largest or the least of some numbers is infinite."""
    if node.op_type not in ("ReduceMax", "ReduceMin"):
        return False
    readers = scope.consumers(node.output[0])
    is_compared = any(holds_infinity(scope, name) for each in readers if each.op_type == "Equal" for name in each.input)
    return is_compared or any(each.op_type == "IsInf" for each in readers)
