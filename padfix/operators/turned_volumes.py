"""Elements that move in axes that two Reshapes make and take away again: windows, heads, pixels among channels."""

from __future__ import annotations

from dataclasses import dataclass

from onnx import NodeProto

from padfix.graph import attributes
from padfix.graph.scopes import Scope, normal_domain
from padfix.operators.constant_chains import worked_out
from padfix.operators.shuffles import only_reader, shuffles_pixels
from padfix.targets.traits import COUNT, Trait


@dataclass(frozen=True)
class TurnedVolume:
    """A Transpose between two Reshapes, each of which the next alone reads.

    Attributes:
        split: The first Reshape.
        turn: The Transpose.
        joined: The last Reshape.
        lengths: Of the axes that are turned.
        order: The axes in the order of the result.
    """

    split: NodeProto
    turn: NodeProto
    joined: NodeProto
    lengths: tuple[int, ...]
    order: tuple[int, ...]


def turned_volume(scope: Scope, node: NodeProto) -> TurnedVolume | None:
    """Return the volume that a node turns, or gives or takes for that; None where some length is open."""
    split = node
    for op_type in ("Reshape", "Transpose"):
        if split.op_type == op_type and (maker := scope.own_producer(split.input[0])) is not None:
            is_behind = maker.op_type == ("Transpose" if op_type == "Reshape" else "Reshape")
            split = maker if is_behind and not normal_domain(maker.domain) else split
    turn = only_reader(scope, split, "Transpose") if split.op_type == "Reshape" else None
    joined = None if turn is None else only_reader(scope, turn, "Reshape")
    if turn is None or joined is None or node not in (split, turn, joined):
        return None
    if len(split.input) < 2 or any(worked_out(scope, each.input[1]) is None for each in (split, joined)):
        return None
    known, given, gives = (scope.type_of(name) for name in (turn.input[0], split.input[0], joined.output[0]))
    if any(each is None or each.lengths is None or 0 in each.lengths for each in (known, given, gives)):
        return None
    assert known is not None
    assert known.lengths is not None
    order = attributes.integers(turn, "perm") or list(reversed(range(len(known.lengths))))
    return TurnedVolume(split, turn, joined, known.lengths, tuple(order))


def axes_turned_before(scope: Scope, node: NodeProto) -> Trait:
    """Return how many axes are turned that a Reshape takes away again, none where that is a shuffle of pixels."""
    volume = turned_volume(scope, node)
    if volume is None or volume.joined is not node or shuffles_pixels(scope, volume.split):
        return 0
    return min(len(volume.lengths), COUNT[-1])
