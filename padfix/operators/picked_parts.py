"""What picks one of the parts that a Reshape makes of the last axis: a head's queries, keys or values, for one."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from onnx import NodeProto

from padfix.graph import attributes
from padfix.graph.scopes import Dimension, Scope, normal_domain
from padfix.operators.constant_chains import worked_out
from padfix.operators.data_order import AXES_OF_IMAGES
from padfix.operators.slices import slice_amounts, sliced_axes
from padfix.operators.told_lengths import told_lengths


@dataclass(frozen=True)
class Part:
    """One of the parts that a Reshape makes of the last axis of data, picked from its volume, or from that turned.

    Attributes:
        before: The nodes that go with it, in their order: the Reshape, what turns it, and a Slice before a Squeeze.
        kept: How many axes of the data stay as they are.
        made: How long the axes are that become of the last.
        place: Which of these it is picked along.
        index: Which element.
        perm: In which order the volume has its axes.
    """

    before: tuple[NodeProto, ...]
    kept: int
    made: tuple[int, ...]
    place: int
    index: int
    perm: tuple[int, ...]


def picked_part(scope: Scope, node: NodeProto) -> Part | None:
    """Return the part that a Gather of one element picks, or a Squeeze behind a Slice of one; None for all else."""
    found = _picked_element(scope, node)
    if found is None:
        return None
    name, axis, index, cut = found
    turned = _turned(scope, name)
    if turned is None:
        return None
    reshape, order, between = turned
    gives, data = scope.type_of(reshape.output[0]), scope.type_of(reshape.input[0])
    ranks = [known.rank or 0 for each in (reshape, *between) if (known := scope.type_of(each.output[0])) is not None]
    if gives is None or data is None or not gives.shape or not data.shape or max(ranks) <= AXES_OF_IMAGES:
        return None
    kept = len(data.shape) - 1
    made = [each for each in gives.shape[kept:] if isinstance(each, int)]
    place, length = order[axis] - kept, gives.shape[order[axis]]
    if not _keeps_all_but_last(scope, reshape, data.shape, gives.shape) or place < 0 or not isinstance(length, int):
        return None
    before = (reshape, *between, *([] if cut is None else [cut]))
    return Part(before, kept, tuple(made), place, index % length, order)


def _turned(scope: Scope, name: str) -> tuple[NodeProto, tuple[int, ...], tuple[NodeProto, ...]] | None:
    """Return the Reshape whose volume a tensor is in another order, that order, and the nodes between, first to last.

    PyTorch exchanges two axes by way of one that it adds and takes away: Unsqueeze, Transpose and Squeeze.
    """
    between: list[NodeProto] = []
    node = scope.own_producer(name)
    while node is not None and len(between) < _MOST_BETWEEN and any(_is_plain(node, each) for each in _TURNING):
        between.insert(0, node)
        node = scope.own_producer(node.input[0])
    volume = scope.type_of(node.output[0]) if node is not None and _is_plain(node, "Reshape") else None
    if node is None or volume is None or volume.rank is None:
        return None
    order = list(range(volume.rank))
    for each in between:
        perm = attributes.integers(each, "perm") if each.op_type == "Transpose" else None
        axes = None if each.op_type == "Transpose" else squeezed_axes(scope, each)
        if perm is not None:
            order = [order[axis] for axis in perm]
        elif axes is None:
            return None
        elif each.op_type == "Unsqueeze":
            for axis in sorted(axis % (len(order) + len(axes)) for axis in axes):
                order.insert(axis, _ADDED)
        else:
            gone = {axis % len(order) for axis in axes}
            order = [axis for place, axis in enumerate(order) if place not in gone]
    return (node, tuple(order), tuple(between)) if sorted(order) == list(range(volume.rank)) else None


_TURNING = ("Squeeze", "Transpose", "Unsqueeze")
"""What exchanges axes, also by way of one that is added and taken away."""

_ADDED = -1
"""In place of an axis of the volume, one that it has not."""

_MOST_BETWEEN = 8


def is_taken_apart(scope: Scope, node: NodeProto) -> bool:
    """Whether all that reads what a Reshape makes, or a Transpose turns, picks a part of it."""
    readers = [] if scope.is_output(node.output[0]) else list(scope.consumers(node.output[0]))
    if (
        len(readers) == 1
        and any(_is_plain(readers[0], each) for each in _TURNING)
        and not picked_part(scope, readers[0])
    ):
        return is_taken_apart(scope, readers[0])
    picking = [each for reader in readers for each in _behind_slice(scope, reader)]
    return bool(picking) and all(picked_part(scope, each) is not None for each in picking)


def _behind_slice(scope: Scope, node: NodeProto) -> Sequence[NodeProto]:
    if not _is_plain(node, "Slice") or scope.is_output(node.output[0]):
        return (node,)
    return scope.consumers(node.output[0]) or (node,)


def _picked_element(scope: Scope, node: NodeProto) -> tuple[str, int, int, NodeProto | None] | None:
    """Return what an element is picked from, along which axis, which it is, and the Slice that takes it."""
    if _is_plain(node, "Gather"):
        data, index = scope.type_of(node.input[0]), scope.constant(node.input[1])
        if data is None or not data.rank or index is None or index.ndim:
            return None
        return node.input[0], (attributes.integer(node, "axis", 0) or 0) % data.rank, int(index), None
    cut = scope.own_producer(node.input[0]) if _is_plain(node, "Squeeze") else None
    if cut is None or not _is_plain(cut, "Slice"):
        return None
    data, amounts = scope.type_of(cut.input[0]), slice_amounts(scope, cut)
    if data is None or not data.shape or amounts is None:
        return None
    axes, taken = sliced_axes(scope, cut, len(data.shape)), _squeezed(scope, node, len(data.shape))
    if axes is None or len(axes) != 1 or taken != axes:
        return None
    length = data.shape[axes[0]]
    if not isinstance(length, int):
        return None
    (start,), (end,), (step,) = amounts["starts"], amounts["ends"], amounts.get("steps", [1])
    picked = range(length)[start:end:step]
    return (cut.input[0], axes[0], picked[0], cut) if len(picked) == 1 else None


def _squeezed(scope: Scope, node: NodeProto, rank: int) -> list[int] | None:
    told = squeezed_axes(scope, node)
    return None if told is None else [each % rank for each in told]


def squeezed_axes(scope: Scope, node: NodeProto) -> list[int] | None:
    """Return the axes that a Squeeze or Unsqueeze lists, in its order; None where it lists none, or these are open."""
    told = attributes.integers(node, "axes")
    if len(node.input) > 1:
        value = worked_out(scope, node.input[1])
        told = None if value is None else [int(each) for each in value.reshape(-1)]
    return None if told is None else list(told)


def sorted_axes(scope: Scope, node: NodeProto) -> list[int] | None:
    """Return the axes that a Squeeze lists from the first to the last; None where that is not known."""
    known, listed = scope.type_of(node.input[0]), squeezed_axes(scope, node)
    rank = None if known is None else known.rank
    if listed is None or len({axis < 0 for axis in listed}) < 2:
        return None if listed is None else sorted(listed)
    return sorted(listed, key=lambda axis: axis % rank) if rank else None


def _keeps_all_but_last(scope: Scope, node: NodeProto, before: Sequence[Dimension], after: Sequence[Dimension]) -> bool:
    """Whether a Reshape makes axes of known lengths of the last one alone: one length at most is left to be found."""
    kept = len(before) - 1
    told, made = told_lengths(scope, node.input[1]), [each for each in after[kept:] if isinstance(each, int)]
    if told is None or len(told) != len(after) or len(made) != len(after) - kept or math.prod(made) != before[-1]:
        return False
    copies = not attributes.integer(node, "allowzero", 0)
    same = [told[axis] == before[axis] or (copies and told[axis] == 0) for axis in range(kept)]
    return same.count(False) <= 1


def _is_plain(node: NodeProto, op_type: str) -> bool:
    return node.op_type == op_type and not normal_domain(node.domain)
