"""Stretches of unknown size, swept over sizes by themselves: a tap more or less may show at one length among many."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from padfix.proof.allowances import RESAMPLERS
from padfix.proof.compare import is_real
from padfix.proof.executors import Array, ExecutionFailed
from padfix.proof.own_data import OwnData
from padfix.proof.probes import Probe
from padfix.proof.stretches import Judged, Stretch

WINDOWS = ("Conv", "Pool", "Dilation2D", "ExtractImagePatches", "ExtractVolumePatches")

RESAMPLED_LENGTHS = (*range(1, 65), 97, 128, 200)
WINDOW_LENGTHS = tuple(range(1, 13))

MOST_STRETCHES = 16
"""Stretches that are swept; a network repeats the same few operators."""

MOST_ELEMENTS = 1 << 22


def sweep(own: OwnData, stretches: Sequence[Stretch], probe: Probe) -> list[Judged]:
    """Return the stretches that differ at some size of what they read, of those that agreed on the probes.

    What is no image keeps the values that the probe brought.
    """
    wrong: list[Judged] = []
    side = own.stretches.sides[0]
    if not side.can_be_fed:
        return wrong
    seen: set[object] = set()
    for one in stretches:
        stretch = own.stretches.common_stretch(one.name, through_lists=True)
        if stretch is None:
            continue
        lengths = _lengths(stretch)
        kind = tuple(node.op_type for node in stretch.nodes)
        unknown = {name: axes for name in stretch.above if (axes := side.unknown_axes(name))}
        # Of two open tensors nobody knows which axes go together.
        if not lengths or len(unknown) != 1 or len(seen) >= MOST_STRETCHES:
            continue
        if not any(name in "".join(kind) for name in RESAMPLERS):
            if kind in seen:
                continue
            seen.add(kind)
        found = _swept(own, stretch, probe, unknown, lengths)
        if found is not None:
            wrong.append(found)
    return wrong


def _lengths(stretch: Stretch) -> Sequence[int]:
    kinds = [node.op_type for node in stretch.nodes]
    if any(name in kind for kind in kinds for name in RESAMPLERS):
        return RESAMPLED_LENGTHS
    return WINDOW_LENGTHS if any(name in kind for kind in kinds for name in WINDOWS) else ()


def _swept(
    own: OwnData,
    stretch: Stretch,
    probe: Probe,
    unknown: Mapping[str, tuple[int, ...]],
    lengths: Sequence[int],
) -> Judged | None:
    random = np.random.default_rng(0)
    values = own.stretches.values(probe, stretch.above)
    for turn, length in enumerate(lengths):
        data = dict(values)
        for name, axes in unknown.items():
            data[name] = _of_length(values[name], axes, length, lengths[(7 * turn + 3) % len(lengths)], random)
        if sum(array.size for array in data.values()) > MOST_ELEMENTS:
            continue
        try:
            found = own.on(stretch, probe, data, f"data of shape {_shapes(data, unknown)}")
        except ExecutionFailed as failure:
            if failure.overdue:
                return None
            continue  # the original takes no such size
        if found is not None:
            return found
    return None


def _of_length(array: Array, axes: Sequence[int], first: int, second: int, random: np.random.Generator) -> Array:
    """Return an array like ``array`` whose open axes have these lengths in turn; the batch is one."""
    if not is_real(array.dtype) or array.ndim < 3:
        return array
    shape = list(array.shape)
    for turn, axis in enumerate(axis for axis in axes if axis > 0):
        shape[axis] = first if turn % 2 == 0 else second
    if 0 in axes:
        shape[0] = 1
    return random.standard_normal(shape).astype(array.dtype)


def _shapes(data: Mapping[str, Array], unknown: Mapping[str, object]) -> str:
    return ", ".join(str(list(data[name].shape)) for name in unknown)
