"""Bytes for operators of quantised numbers that show what bytes by chance hide.

The means of planes of such bytes are all alike, and mostly beyond what an average can give. And of a byte that is added
or multiplied the least change shows with a few of the 256 that it meets alone.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import numpy as np

from padfix.graph import attributes
from padfix.proof.constants import Constants
from padfix.proof.executors import Array
from padfix.proof.graph_view import NodeView

if TYPE_CHECKING:
    from padfix.proof.stretches import Stretch

_AVERAGES = frozenset({"QLinearAveragePool", "QLinearGlobalAveragePool"})

_PAIRS = {"QLinearAdd": np.add, "QLinearMul": np.multiply}
"""Operators on two numbers: (A, its scale and zero point, B, its scale and zero point, scale and zero point given)."""

_TURNS = 4
"""Data for one average, so that planes are near every step."""

_MOST = 1 << 16
"""Elements for which all bytes are tried."""


def telling_bytes(
    stretch: Stretch, constants: tuple[Constants, Constants], values: Mapping[str, Array]
) -> Iterator[dict[str, Array]]:
    """Yield bytes for the operators of a stretch."""
    for node in stretch.nodes:
        for position in (0, 3):
            name = node.inputs[position] if position < len(node.inputs) else ""
            array = values.get(name)
            if name not in stretch.above or array is None or not array.size or array.dtype.itemsize > 1:
                continue
            if node.op_type in _AVERAGES and position == 0:
                yield from ({name: _on_levels(node, array, turn)} for turn in range(_TURNS))
            if node.op_type in _PAIRS and array.dtype.kind in "iu":
                twin = stretch.twin(node, position)
                found = None if twin is None else _differing((node, twin), constants, array, position)
                if found is not None:
                    yield {name: found}


def _on_levels(node: NodeView, array: Array, turn: int) -> Array:
    """Return bytes like ``array``, each plane about a level of its own, from the least byte to the greatest."""
    assert node.proto is not None
    limits, is_last = np.iinfo(array.dtype), attributes.integer(node.proto, "channels_last", 0)
    planes = np.moveaxis(array, -1, 1) if is_last else array
    count = math.prod(planes.shape[:2])
    levels = limits.min + (limits.max - limits.min) * (_TURNS * np.arange(count) + turn) // (_TURNS * count - 1)
    grain = np.resize([-2, 1, 3, -1, 0], planes.shape)
    found = levels.reshape(*planes.shape[:2], *(1 for _ in planes.shape[2:])) + grain
    found = found.clip(limits.min, limits.max).astype(array.dtype)
    return np.ascontiguousarray(np.moveaxis(found, 1, -1) if is_last else found)


def _differing(
    nodes: tuple[NodeView, NodeView], constants: tuple[Constants, Constants], array: Array, position: int
) -> Array | None:
    """Return bytes like ``array`` with which two models' sums or products are furthest apart, element by element."""
    read = [_read(node, known, position) for node, known in zip(nodes, constants, strict=True)]
    if None in read or array.size > _MOST:
        return None
    best, most = array.copy(), np.zeros(array.shape)
    limits = np.iinfo(array.dtype)
    for byte in range(limits.min, limits.max + 1):
        ours, theirs = (
            _given(node.op_type, np.full(array.shape, float(byte)), each or ()).clip(limits.min, limits.max)
            for node, each in zip(nodes, read, strict=True)
        )
        if ours.shape != array.shape or theirs.shape != array.shape:
            return None
        apart = np.abs(ours - theirs)
        best[apart > most] = byte
        most = np.maximum(most, apart)
    return best if most.any() else None


def _read(node: NodeView, constants: Constants, position: int) -> tuple[Array, ...] | None:
    """Return the constants of an operator on two numbers, those of the data at ``position`` first."""
    own, other = (position, 3 - position)
    names = [*node.inputs[own + 1 : own + 3], *node.inputs[other : other + 3], *node.inputs[6:8]]
    found = [constants.find(name) if name in constants else None for name in names]
    known = [each.astype(np.float64) for each in found if each is not None]
    return tuple(known) if len(known) == len(found) == 7 else None


def _given(op_type: str, data: Array, read: tuple[Array, ...]) -> Array:
    """Return what an operator on two numbers gives, before it is held within what a byte can be."""
    scale, zero, other, other_scale, other_zero, given, given_zero = read
    result = _PAIRS[op_type]((data - zero) * scale, (other - other_zero) * other_scale) / given + given_zero
    rounded: Array = np.rint(result)
    return rounded
