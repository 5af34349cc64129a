"""Bytes whose sums lie next to the middle between two steps: there the least change of a weight or a bias shows.

What an operator of quantised numbers sums up is a whole number, and thousands of sums round to one step. A bias of one
more changes what is given where a sum was the last one of its step, which data by chance seldom brings. The sums are
linear, so bytes are chosen that reach such a one: large weights bring a sum near to it, small ones to the very number.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING

import numpy as np

from padfix.geometry.padding import effective_kernel, known_same_pads
from padfix.graph import attributes
from padfix.proof.allowances import OUTPUT_SCALE
from padfix.proof.constants import Constants
from padfix.proof.executors import Array
from padfix.proof.graph_view import NodeView

if TYPE_CHECKING:
    from padfix.proof.stretches import Stretch

_BIAS = {"QLinearConv": 8, "QGemm": 6, "QLinearMatMul": None}
"""Operators whose first input is read by weights at position 3, with the position of their bias."""

_TRIES = 64
"""Beginnings from which each sum is sought; some end beside it."""

_TIES = (0, -1, 1, -2, 2, -3, 3, -4)
"""Steps that are tried first: where sums are small, none of the scales' rounding explains the other step."""

_ROUNDS = 8
"""How often sums are sought anew that were not reached."""

_MOST_PLACES = 32
"""Sums that are sought at once."""

_MOST_READ = 64
"""Bytes of a sum that are chosen; the others stand for zero."""

MOST_TURNS = 4
"""Data for one operator: where its sums read one byte in common, few can be chosen at once."""


@dataclass(frozen=True)
class _Sums:
    """What an operator sums up.

    Attributes:
        places: Places of the bytes that each sum of one channel reads, one row a sum, none in common; -1 is no byte.
        offsets: How much further each channel reads.
        weights: The weights, one row a channel, without their zero points.
        bias: What is added, one a channel.
        steps: How many steps a sum of one is, one a channel.
        zero: The byte that stands for zero.
        lowest: The first step that is given, counted from that of zero.
        highest: The last.
    """

    places: Array
    offsets: Array
    weights: Array
    bias: Array
    steps: Array
    zero: int
    lowest: int
    highest: int

    def of(self, channels: Array, read: Array, is_read: Array) -> _Some:
        """Return sums of some channels, one each, and of the bytes at ``read`` alone, those of zero but for others."""
        weights = np.take_along_axis(np.where(is_read, self.weights[channels], 0), read, 1)
        return _Some(weights, self.bias[channels][:, None], self.steps[channels][:, None], self.lowest, self.highest)


@dataclass(frozen=True)
class _Some:
    """Sums of one channel each: weights, one row a sum, and what is added, steps and limits as those of all."""

    weights: Array
    bias: Array
    steps: Array
    lowest: int
    highest: int

    def given(self, numbers: Array) -> Array:
        """Return the sums of numbers of shape (sum, try, weight)."""
        return np.asarray(np.matmul(numbers, self.weights[:, :, None])[:, :, 0] + self.bias)

    def rounded(self, numbers: Array) -> Array:
        """Return the steps that these sums round to."""
        return np.asarray(np.clip(np.rint(self.given(numbers) * self.steps), self.lowest, self.highest))


def near_ties(
    stretch: Stretch, constants: tuple[Constants, Constants], values: Mapping[str, Array]
) -> Iterator[dict[str, Array]]:
    """Yield bytes for each operator of a stretch whose sums then lie next to a tie, on either side of it.

    Where the candidate has the same operator, sums of the channels whose constants differ are sought, else of any.
    """
    for node in stretch.nodes:
        name = node.inputs[0] if node.inputs else ""
        if node.op_type not in _BIAS or name not in stretch.above or not values[name].size:
            continue
        sums = _sums_of(node, constants[0], values[name])
        if sums is None or not sums.places.size:
            continue
        twin = stretch.twin(node, 0)
        others = None if twin is None else _sums_of(twin, constants[1], values[name])
        if others is None or others.weights.shape != sums.weights.shape:
            others = sums
        apart = (sums.weights != others.weights).any(1) | (sums.bias != others.bias) | (sums.steps != others.steps)
        channels = np.flatnonzero(apart if apart.any() else ~apart)
        for turn in range(min(MOST_TURNS, -(-2 * len(channels) // len(sums.places)))):
            yield {name: _filled((sums, others), values[name], channels, turn)}


def _filled(both: tuple[_Sums, _Sums], array: Array, channels: Array, turn: int) -> Array:
    """Return bytes like ``array``: each sum of the places is that of one channel, on one side of a tie."""
    sums = both[0]
    number = turn * len(sums.places) + np.arange(len(sums.places))
    chosen = channels[number // 2 % len(channels)]
    ours, theirs = (each.weights[chosen] for each in both)
    random = np.random.default_rng([0, turn])
    is_read = (ours != 0) & (sums.places >= 0)
    read = np.lexsort((random.random(ours.shape), ours == theirs, ~is_read))[:, :_MOST_READ]
    read = np.take_along_axis(read, np.argsort(-np.abs(np.take_along_axis(ours * is_read, read, 1)), 1), 1)
    known = [each.of(chosen, read, is_read) for each in both]
    limits = np.iinfo(array.dtype).min - sums.zero, np.iinfo(array.dtype).max - sums.zero
    found = _reaching(known[0], known[sums is not both[1]], number[:, None] % 2, limits, random)
    flat = np.full(array.size, sums.zero, array.dtype)
    is_read = np.take_along_axis(is_read, read, 1)
    places = np.take_along_axis(sums.places, read, 1) + sums.offsets[chosen][:, None]
    flat[places[is_read]] = (found + sums.zero)[is_read]
    return flat.reshape(array.shape)


def _reaching(ours: _Some, theirs: _Some, above: Array, limits: tuple[int, int], random: np.random.Generator) -> Array:
    """Return numbers, one a weight, whose sums are the last below a tie, or the first above it, as nearly as can be.

    Preferred are those that the other model rounds to another step.
    """
    count, read = ours.weights.shape
    best, least = np.zeros((count, read), np.int64), np.full(count, np.inf)
    for turn in range(_ROUNDS):
        sizes = 2.0 ** -random.integers(0, 8, (_TRIES, 1))
        found = np.rint(random.uniform(*limits, (count, _TRIES, read)) * sizes).astype(np.int64)
        tie = np.floor(ours.given(found) * ours.steps) if turn % 2 else np.resize(_TIES, (count, _TRIES))
        goal = np.floor((np.clip(tie, ours.lowest, ours.highest - 1) + 0.5) / ours.steps) + above
        rest = goal - ours.given(found)
        for place in range(read):  # large weights first
            weight = ours.weights[:, place, None]
            more = np.trunc(np.divide(rest, weight, out=np.zeros_like(rest), where=weight != 0))
            more = np.clip(found[:, :, place] + more, *limits) - found[:, :, place]
            found[:, :, place] += more.astype(np.int64)
            rest -= more * weight
        apart = ours.rounded(found) != theirs.rounded(found)
        away = np.abs(rest) - np.where(apart, 1 / ours.steps, 0.0)
        nearest = away.argmin(1)
        is_nearer = away.min(1) < least
        best = np.where(is_nearer[:, None], found[np.arange(count), nearest], best)
        least = np.minimum(away.min(1), least)
        if np.all(least < 0) or (ours is theirs and np.all(least == 0)):
            break
    return best


def _sums_of(node: NodeView, constants: Constants, array: Array) -> _Sums | None:
    """Return what a node sums up; None where that can't be told."""
    names = node.inputs
    read = [
        constants.find(name) for name in (*names[1:6], *names[OUTPUT_SCALE[node.op_type] :][:2]) if name in constants
    ]
    known = [each for each in read if each is not None]
    if len(known) < 7 or node.proto is None:
        return None
    scale, zero, weights, weight_scale, weight_zero, given, given_zero = known
    kinds = {each.dtype.kind for each in (zero, weights, weight_zero, given_zero)}
    if scale.size != 1 or given.size != 1 or array.dtype != zero.dtype or array.dtype.itemsize > 1 or kinds - {*"iu"}:
        return None
    position = _BIAS[node.op_type] or len(names)
    bias = constants.find(names[position]) if position < len(names) and names[position] else np.zeros(1, np.int64)
    rows = _rows(node, weights.astype(np.int64))
    found = _places(node, array.shape, weights.shape)
    if bias is None or rows is None or found is None or rows.shape[1] != found[0].shape[1]:
        return None
    (places, offsets), channels, limits = found, len(rows), np.iinfo(given_zero.dtype)
    if not {weight_scale.size, weight_zero.size, bias.size} <= {1, channels}:
        return None
    steps = (
        scale.astype(np.float64).ravel() * weight_scale.astype(np.float64).ravel() / given.astype(np.float64).ravel()
    )
    return _Sums(
        places,
        np.repeat(offsets, channels // len(offsets)),
        rows - weight_zero.astype(np.int64).reshape(-1, 1),
        np.broadcast_to(bias.ravel().astype(np.int64), channels),
        np.broadcast_to(steps, channels),
        int(zero.ravel()[0]),
        limits.min - int(given_zero.ravel()[0]),
        limits.max - int(given_zero.ravel()[0]),
    )


def _rows(node: NodeView, weights: Array) -> Array | None:
    """Return the weights, one row a channel."""
    assert node.proto is not None
    if node.op_type == "QLinearConv":
        return weights.reshape(len(weights), -1)
    if weights.ndim != 2:
        return None
    return weights if attributes.integer(node.proto, "transB", 0) else weights.T


def _places(node: NodeView, shape: Sequence[int], kernel: Sequence[int]) -> tuple[Array, Array] | None:
    """Return where the first channels' sums read, one row a sum, and how much further each group of channels reads."""
    assert node.proto is not None
    every = np.arange(math.prod(shape))
    if node.op_type != "QLinearConv":
        if attributes.integer(node.proto, "transA", 0):
            return every.reshape(shape).T[:_MOST_PLACES], np.zeros(1, np.int64)
        return every.reshape(-1, shape[-1])[:_MOST_PLACES], np.zeros(1, np.int64)
    if attributes.integer(node.proto, "channels_last", 0):
        return None
    groups, area = attributes.integer(node.proto, "group", 1), math.prod(shape[2:])
    patches = _patches(node, shape[2:], kernel[2:])
    if patches is None:
        return None
    inner = np.arange(kernel[1]).reshape(1, -1, 1) * area
    first = np.where(patches[:, None] < 0, -1, patches[:, None] + inner).reshape(len(patches), -1)
    images = np.arange(shape[0]).reshape(-1, 1, 1) * math.prod(shape[1:])
    places = np.where(first < 0, -1, first + images).reshape(-1, first.shape[1])
    return places[:_MOST_PLACES], np.arange(groups) * kernel[1] * area


def _patches(node: NodeView, sizes: Sequence[int], kernel: Sequence[int]) -> Array | None:
    """Return where windows that share nothing read, one row a window; -1 in the padding."""
    assert node.proto is not None
    rank = len(sizes)
    ones = [1] * rank
    strides, dilations, pads = (
        list(attributes.integers(node.proto, name) or default)
        for name, default in (("strides", ones), ("dilations", ones), ("pads", [0] * 2 * rank))
    )
    kind = attributes.text(node.proto, "auto_pad", "NOTSET")
    if kind.startswith("SAME"):
        pads = [each or 0 for each in known_same_pads(sizes, kernel, strides, dilations, upper=kind == "SAME_UPPER")]
    axes = []
    for axis, (size, length, stride, dilation) in enumerate(zip(sizes, kernel, strides, dilations, strict=True)):
        span = effective_kernel(length, dilation)
        last = size + pads[axis] + pads[rank + axis] - span
        starts = np.arange(0, last + 1, -(-span // stride) * stride) - pads[axis]
        taken = starts[:, None] + dilation * np.arange(length)
        axes.append((np.where((taken < 0) | (taken >= size), -1, taken), size))
    if not axes:
        return None
    return reduce(_combined, axes)[0]


def _combined(first: tuple[Array, int], second: tuple[Array, int]) -> tuple[Array, int]:
    """Return where windows over two axes read, given where those over each do and how long it is."""
    (ours, length), (theirs, size) = first, second
    one, other = ours[:, None, :, None], theirs[None, :, None, :]
    both = np.where((one < 0) | (other < 0), -1, one * size + other)
    return both.reshape(len(ours) * len(theirs), -1), length * size
