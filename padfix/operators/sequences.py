"""Lists of tensors of which it is known what they hold: who puts them together, and who takes from them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from onnx import NodeProto

from padfix.graph import attributes
from padfix.graph.scopes import Scope, normal_domain
from padfix.operators.constant_chains import worked_out
from padfix.targets.traits import Traits

MAKING = ("SequenceConstruct", "SequenceEmpty", "SequenceErase", "SequenceInsert", "SplitToSequence")
"""Operators that give lists."""

TAKING = ("ConcatFromSequence", "SequenceAt", "SequenceLength")
"""Operators that give tensors of lists, or tell how many there are."""

_MOST_PIECES = 512


@dataclass(frozen=True)
class Piece:
    """A tensor, or a part of one along an axis.

    Attributes:
        name: The tensor.
        axis: Along which axis it is a part; None where it is all.
        start: Its first element.
        end: The one behind its last.
        keeps_axis: Whether it still has the axis, of which it takes one element else.
    """

    name: str
    axis: int | None = None
    start: int = 0
    end: int = 0
    keeps_axis: bool = True


@dataclass(frozen=True)
class Listed:
    """What a list holds, and the nodes that put it together, last first."""

    pieces: tuple[Piece, ...] = ()
    made_by: tuple[NodeProto, ...] = field(default=(), compare=False)


def listed(scope: Scope, name: str) -> Listed | None:
    """Return what a list holds; None where that is not known beforehand."""
    node = scope.own_producer(name)
    if node is None or normal_domain(node.domain) or node.op_type not in MAKING:
        return None
    match node.op_type:
        case "SequenceConstruct":
            return Listed(tuple(map(Piece, node.input)), (node,))
        case "SequenceEmpty":
            return Listed((), (node,))
        case "SplitToSequence":
            pieces = list(_split(scope, node))
            return Listed(tuple(pieces), (node,)) if 0 < len(pieces) <= _MOST_PIECES else None
    before = listed(scope, node.input[0])
    if before is None or len(before.pieces) > _MOST_PIECES:
        return None
    place, pieces = len(before.pieces), list(before.pieces)
    if at := node.input[-1] if len(node.input) > (2 if node.op_type == "SequenceInsert" else 1) else "":
        told = place_in(scope, at, len(pieces))
        if told is None:
            return None
        place = told
    if node.op_type == "SequenceInsert":
        pieces.insert(place, Piece(node.input[1]))
    elif not pieces:
        return None
    else:
        del pieces[min(place, len(pieces) - 1)]
    return replace(before, pieces=tuple(pieces), made_by=(node, *before.made_by))


def place_in(scope: Scope, name: str, number: int) -> int | None:
    """Return a place in a list of so many, counted from the begin; None where it is not known, or there is none."""
    told = worked_out(scope, name)
    if told is None or told.size != 1:
        return None
    place = int(told.reshape(-1)[0])
    return place + number if -number <= place < 0 else place if 0 <= place <= number else None


def _split(scope: Scope, node: NodeProto) -> Iterator[Piece]:
    """Yield the parts of a SplitToSequence; none where they are not known."""
    known, data = scope.type_of(node.input[0]), node.input[0]
    axis = attributes.integer(node, "axis", 0) or 0
    shape = None if known is None else known.shape
    if not shape or not -len(shape) <= axis < len(shape):
        return
    axis %= len(shape)
    whole = shape[axis]
    told = worked_out(scope, node.input[1]) if len(node.input) > 1 and node.input[1] else None
    is_told = len(node.input) > 1 and bool(node.input[1])
    if not isinstance(whole, int) or not 0 < whole <= _MOST_PIECES or (is_told and told is None):
        return
    keeps_axis = told is not None or attributes.integer(node, "keepdims", 1) != 0
    lengths = [1] * whole
    if told is not None and told.ndim:
        lengths = [int(each) for each in told.reshape(-1)]
    elif told is not None and (most := int(told)) > 0:
        lengths = [min(most, whole - start) for start in range(0, whole, most)]
    if sum(lengths) != whole or min(lengths) < 1:
        return
    start = 0
    for length in lengths:
        yield Piece(data, axis, start, start + length, keeps_axis)
        start += length


def takers_of(scope: Scope, node: NodeProto) -> list[NodeProto] | None:
    """Return the nodes that give tensors of the list that a node gives; None where what one takes is not known."""
    found, left = list[NodeProto](), [node]
    while left:
        each = left.pop()
        if scope.is_output(each.output[0]) or listed(scope, each.output[0]) is None:
            return None
        for reader in scope.consumers(each.output[0]):
            if reader.op_type in TAKING and taken(scope, reader) is not None:
                found.append(reader)
            elif reader.op_type in MAKING and reader.input[0] == each.output[0]:
                left.append(reader)
            else:
                return None
    return found


def taken(scope: Scope, node: NodeProto) -> Listed | None:
    """Return what a node of :data:`TAKING` reads, in its order, and what put that together; None if it is not known."""
    held = listed(scope, node.input[0])
    if held is None or not held.pieces or node.op_type != "SequenceAt":
        return held if held is not None and held.pieces else None
    place = place_in(scope, node.input[1], len(held.pieces))
    return None if place is None or place == len(held.pieces) else replace(held, pieces=(held.pieces[place],))


def place_traits(scope: Scope, node: NodeProto) -> Traits:
    """Return of a SequenceAt what it takes: a piece, an input of the model, or what it counts from the end."""
    place, held = worked_out(scope, node.input[1]), taken(scope, node)
    pieces = () if held is None else held.pieces
    is_piece = any(each.axis is not None for each in pieces)
    return {
        "counts-from-end": place is not None and bool((place < 0).any()),
        "takes-piece": is_piece,
        "gives-input": any(each.axis is None and each.name in scope.inputs for each in pieces),
    }


def length_traits(scope: Scope, node: NodeProto) -> Traits:
    """Return of a SequenceLength whether the list is split from data."""
    producer = scope.own_producer(node.input[0])
    return {"of-split": producer is not None and producer.op_type == "SplitToSequence"}
