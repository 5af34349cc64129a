"""What is known beforehand of lengths that a model puts together as it runs: numbers, and lengths of its own inputs."""

from __future__ import annotations

import math
from collections import Counter
from functools import partial
from typing import TypeVar

import numpy as np
from onnx import GraphProto, NodeProto

from padfix.graph import attributes
from padfix.graph.lengths import length_of
from padfix.graph.scopes import Dimension, Scope, normal_domain
from padfix.graph.types import TypeOf
from padfix.operators.constant_chains import STEERED, has_chain, worked_out
from padfix.operators.fused_layers import made_by
from padfix.operators.resample import Resample
from padfix.operators.slices import ValueOf, slice_amounts

_SIZES = 3
"""Position among the inputs of a Resize."""

_DEEPEST = 30

Element = TypeVar("Element")


def told_sizes(scope: Scope, node: NodeProto, resize: Resample) -> dict[int, int | None] | None:
    """Return the axes to which a Resize may give another length by sizes of run time, each with that if it is known.

    All others keep theirs. None where nothing is known, or where the aspect ratio or a region makes it more than that.
    """
    told = _told_axes(scope, node, resize)
    return None if told is None else {axis: each if isinstance(each, int) else None for axis, each in told.items()}


def told_factors(scope: Scope, node: NodeProto, resize: Resample) -> dict[int, int] | None:
    """Return how many times as long sizes of run time make each axis that they may change; None where that is not told.

    All others keep their lengths. The factors are whole, so that by them every position is what it is by the sizes.
    """
    told, shape = _told_axes(scope, node, resize), resize.shape
    if told is None or shape is None:
        return None
    factors = {axis: _factor(each, (shape[axis], _own_length(axis))) for axis, each in told.items()}
    return None if None in factors.values() else {axis: factor for axis, factor in factors.items() if factor}


def _told_axes(scope: Scope, node: NodeProto, resize: Resample) -> dict[int, Dimension] | None:
    """Return what is known of each axis to which a Resize may give another length by sizes of run time."""
    is_plain = resize.policy == "stretch" and resize.coordinates != "tf_crop_and_resize"
    axes, shape = resize.resized_axes(), resize.shape
    if resize.is_legacy or resize.scales_name or resize.sizes is not None or not is_plain or not axes or shape is None:
        return None
    told = told_lengths(scope, node.input[_SIZES], of=node.input[0]) if len(node.input) > _SIZES else None
    if told is None or len(told) != len(axes):
        return None
    kept = {axis: (shape[axis], _own_length(axis)) for axis in axes}
    return {axis: each for axis, each in zip(axes, told, strict=True) if each is None or each not in kept[axis]}


def _factor(told: Dimension, own: tuple[Dimension, ...]) -> int | None:
    """Return how many times one of the names of a length another one is; None where that is no whole number."""
    if told is None:
        return None
    length = length_of(told)
    for each in own:
        name = length_of(each)
        symbol, count = name.factors[0] if name.factors else ("", name.constant)
        times = dict(length.factors).get(symbol, 0) if symbol else length.constant
        if each is not None and count > 0 and times > 0 and name.times(times // count) == length:
            return times // count
    return None


def told_lengths(
    scope: Scope, name: str, depth: int = 0, of: str = "", type_of: TypeOf | None = None
) -> list[Dimension] | None:
    """Return what is known of each element of a list: a number, the length that has a name, or nothing (None).

    None for the whole where not even its number of elements is known. Open lengths that are measured of the tensor
    ``of`` have names of their own (:func:`_own_length`), and what they are times whole numbers is told as well.
    ``type_of`` tells the types of names while those of the scope are not known yet.
    """
    value = worked_out(scope, name, type_of)
    if value is not None:
        return [int(each) for each in value.reshape(-1)] if value.dtype.kind in "iu" else None
    node = scope.own_producer(name)
    is_read = node is not None and not normal_domain(node.domain) and depth <= _DEEPEST
    given = type_of or scope.type_of
    found = _listed_by(scope, node, depth + 1, of, given) if node is not None and is_read else None
    return found if found is not None else _unknown(given, name)


def measures_images(scope: Scope, node: NodeProto) -> bool:
    """Whether a node lays its data out, or copies them, by lengths that the model measures and that are left open."""
    place = STEERED[node.op_type][0]
    producer = scope.own_producer(node.input[place]) if len(node.input) > place else None
    if producer is None or not has_chain(scope, producer, open_lengths=True):
        return False
    told = told_lengths(scope, node.input[place])
    return told is not None and not all(isinstance(each, int) for each in told)


def may_keep_lengths(scope: Scope, node: NodeProto) -> bool:
    """Whether an Expand may be given a length of 1, or none, by run time where its data are longer, and stay so."""
    if _is_own_for_one(scope, node):
        return False
    data, listed = scope.type_of(node.input[0]), told_lengths(scope, node.input[1], of=node.input[0])
    if data is None or data.shape is None or listed is None:
        return True
    told = [1] * (len(data.shape) - len(listed)) + listed[max(0, len(listed) - len(data.shape)) :]
    pairs = zip(data.shape, told, strict=True)
    return any(own != 1 and given != own and (given is None or given == 1) for own, given in pairs)


def _is_own_for_one(scope: Scope, node: NodeProto) -> bool:
    """Whether an Expand is given the measured lengths of its data wherever it would be given a 1.

    There, 1 less than they are is added.
    """
    total = made_by(scope, node.input[1], "Add")
    added = None if total is None else made_by(scope, total.input[1], "Mul")
    if total is None or added is None:
        return False
    truth, less = made_by(scope, added.input[0], "Cast"), made_by(scope, added.input[1], "Sub")
    asked = None if truth is None else made_by(scope, truth.input[0], "Equal")
    cast = None if less is None else made_by(scope, less.input[0], "Cast")
    measured = None if cast is None else made_by(scope, cast.input[0], "Shape")
    if asked is None or measured is None or less is None:
        return False
    ones = [scope.constant(each.input[1]) for each in (asked, less)]
    is_of_own = asked.input[0] == total.input[0] and [*measured.input] == [node.input[0]] and not measured.attribute
    return is_of_own and all(each is not None and each.size == 1 and each == 1 for each in ones)


def elements_taken(
    scope: Scope, node: NodeProto, listed: list[Element], value_of: ValueOf | None = None
) -> list[Element] | None:
    """Return which elements of a list a Gather or Slice takes, all of them for others; None where it isn't known.

    ``value_of`` tells values that are no constants of the model as well.
    """
    if node.op_type == "Gather":
        places = (value_of or scope.constant)(node.input[1])
        if places is None or any(not -len(listed) <= each < len(listed) for each in places.flat):
            return None
        return [listed[int(each)] for each in places.reshape(-1)]
    if node.op_type != "Slice":
        return listed
    amounts = slice_amounts(scope, node, value_of)
    if amounts is None or len(amounts.get("starts", ())) != 1:
        return None
    (start,), (end,), (step,) = amounts["starts"], amounts["ends"], amounts.get("steps", [1])
    return listed[start:end:step]


def _listed_by(scope: Scope, node: NodeProto, depth: int, of: str, type_of: TypeOf) -> list[Dimension] | None:
    """Return what is known of each element of a list that a node gives; None where that is nothing."""
    told = partial(told_lengths, scope, depth=depth, of=of, type_of=type_of)
    value_of = partial(worked_out, scope, type_of=type_of)
    match node.op_type:
        case "Shape":
            return _measured(scope, node, of, type_of)
        case "Concat":
            pieces = [told(each) for each in node.input]
            if any(piece is None for piece in pieces):
                return None
            return [each for piece in pieces for each in piece or ()]
        case "Cast" | "Gather" | "Identity" | "Reshape" | "Slice" | "Squeeze" | "Unsqueeze":
            listed = told(node.input[0])
            return None if listed is None else elements_taken(scope, node, listed, value_of)
        case "Where":
            asked = scope.own_producer(node.input[0])
            is_asked = asked is not None and asked.op_type == "Equal" and not normal_domain(asked.domain)
            compared = [told(each) for each in asked.input] if is_asked and asked is not None else []
            return _chosen(*compared, *(told(each) for each in node.input[1:])) if compared else None
        case "Ceil" | "Floor" | "Round" if of:
            return told(node.input[0])
        case "Mul":
            pairs = [(told(node.input[place]), _whole_numbers(value_of(node.input[1 - place]))) for place in (0, 1)]
            return next((_times(lengths, numbers) for lengths, numbers in pairs if lengths and numbers), None)
        case _:
            return None


def _chosen(*lists: list[Dimension] | None) -> list[Dimension] | None:
    """Return of four lists the elements of the third where the first two are equal, and those of the last elsewhere.

    A length is not negative, so that it is none of those numbers by which exporters say that one is kept.
    """
    if any(each is None for each in lists) or len({len(each) for each in lists if each is not None}) > 1:
        return None
    found: list[Dimension] = []
    for one, other, chosen, left in zip(*(each for each in lists if each is not None), strict=True):
        names = [isinstance(each, str) for each in (one, other)]
        least = min((each for each in (one, other) if isinstance(each, int)), default=0)
        if one is None or other is None or (one != other and any(names) and not (least < 0 and any(names))):
            found.append(chosen if chosen == left else None)
        else:
            found.append(chosen if one == other else left)
    return found


def _whole_numbers(value: np.ndarray | None) -> list[int] | None:
    """Return constants that are whole and above 0; None where one is not."""
    is_whole = value is not None and value.dtype.kind in "iuf" and bool((np.mod(value, 1) == 0).all())
    return [int(each) for each in value.reshape(-1)] if value is not None and is_whole and (value > 0).all() else None


def _times(lengths: list[Dimension], numbers: list[int]) -> list[Dimension] | None:
    """Return lengths times numbers, of which there are as many, or one."""
    count = max(len(lengths), len(numbers))
    if {len(lengths), len(numbers)} - {1, count}:
        return None
    pairs = zip(lengths * (count // len(lengths)), numbers * (count // len(numbers)), strict=True)
    return [None if length is None else length_of(length).times(number).dimension() for length, number in pairs]


def _unknown(type_of: TypeOf, name: str) -> list[Dimension] | None:
    """Return nothing (None) for each element of a list, or for a number; None where it is not known how many it has."""
    known = type_of(name)
    lengths = None if known is None else known.lengths
    return [None] * math.prod(lengths) if lengths is not None and len(lengths) < 2 else None


def is_as_long(scope: Scope, told: list[Dimension], of: str) -> bool:
    """Whether what is told of lengths, measured of ``of`` among others, is what that tensor has."""
    known = scope.type_of(of)
    shape = () if known is None or known.shape is None else known.shape
    return len(told) == len(shape) and all(
        each is not None and each in (length, _own_length(axis))
        for axis, (each, length) in enumerate(zip(told, shape, strict=True))
    )


def reverses_all(scope: Scope, node: NodeProto) -> bool:
    """Whether a ReverseSequence turns whole rows round, of which the length is known, in each of its batch."""
    known, axis = scope.type_of(node.input[0]), attributes.integer(node, "time_axis", 0) or 0
    shape = None if known is None else known.shape
    if shape is None or not 0 <= axis < len(shape) or not isinstance(shape[axis], int):
        return False
    told = worked_out(scope, node.input[1])
    spread = scope.own_producer(node.input[1])
    if told is None and spread is not None and spread.op_type == "Expand" and not normal_domain(spread.domain):
        return told_lengths(scope, spread.input[0]) == [shape[axis]]
    return told is not None and bool(told.size) and bool((told == shape[axis]).all())


def _own_length(axis: int) -> str:
    """Return a name that no model gives a length, for one that is measured of a certain tensor."""
    return f"\0{axis}"


def _measured(scope: Scope, node: NodeProto, of: str, type_of: TypeOf) -> list[Dimension] | None:
    known = type_of(node.input[0])
    if known is None or known.shape is None:
        return None
    lengths: list[Dimension]
    if node.input[0] == of:
        lengths = [each if isinstance(each, int) else _own_length(axis) for axis, each in enumerate(known.shape)]
    else:
        lengths = [None if of and _is_shared(scope, each) else each for each in known.shape]
    start, end = attributes.integer(node, "start", 0), attributes.integer(node, "end", len(lengths))
    return lengths[start:end]


def _is_shared(scope: Scope, length: Dimension) -> bool:
    """Whether several axes of inputs are declared with the name of a length: no runtime holds them to be alike."""
    container = scope.root.container
    if not isinstance(length, str) or not isinstance(container, GraphProto):
        return False
    names = Counter(each.dim_param for value in container.input for each in value.type.tensor_type.shape.dim)
    return names[length] > 1
