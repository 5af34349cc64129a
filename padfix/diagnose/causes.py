"""What a difference between two arrays looks like, in words: a shift, a sign, a factor, only the border.

Windowed operators hold images as ``[N, C, *size]``, so the axes from 2 on are rows and columns and have a border.
"""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np

from padfix.proof.compare import is_number
from padfix.proof.executors import Array

MOST_VALUES = 4_000_000
"""Arrays with more elements are judged by their first samples of the batch and first channels."""

_SPATIAL = {3: ("column",), 4: ("row", "column"), 5: ("slice", "row", "column")}


def axis_name(rank: int, axis: int) -> str:
    """Return ``"row"`` or ``"column"`` where ``axis`` is one of an image, else ``"step along axis N"``."""
    names = _SPATIAL.get(rank, ())
    return names[axis - 2] if axis >= 2 and names else f"step along axis {axis}"


def border_split(outside: Array) -> tuple[tuple[int, int], tuple[int, int]] | None:
    """Return (outside, all) for the border and for the interior; None where there are no axes from 2 on.

    ``outside`` is boolean ``[N, C, *size]``, true where the difference is above the tolerance.
    """
    if outside.ndim < 3 or min(outside.shape[2:]) < 3:
        return None
    inside = (slice(None), slice(None), *[slice(1, -1)] * (outside.ndim - 2))
    interior = outside[inside]
    bad, bad_inside = int(np.count_nonzero(outside)), int(np.count_nonzero(interior))
    return (bad - bad_inside, outside.size - interior.size), (bad_inside, interior.size)


def likely_cause(reference: Array, candidate: Array, tolerance: float) -> str:
    """Return what ``candidate`` looks like beside ``reference``; empty when nothing known fits.

    Differences up to ``tolerance`` are rounding.
    """
    if not (is_number(reference.dtype) and is_number(candidate.dtype)):
        return ""
    reference, candidate = _sample(reference), _sample(candidate)
    if reference.shape != candidate.shape:
        return _other_shape(reference, candidate, tolerance)
    usual = np.isfinite(reference) & np.isfinite(candidate)
    if not usual.all():
        return "one of the two holds infinities or not-a-number where the other has numbers: another fill value"
    outside = np.abs(reference - candidate) > tolerance
    for words in (
        _one_channel(reference, candidate, outside, tolerance),
        _same_everywhere(reference, candidate, tolerance),
        _shift(reference, candidate, tolerance),
        _swapped(reference, candidate, tolerance),
        _only_border(outside),
    ):
        if words:
            return words
    return ""


def _sample(array: Array) -> Array:
    array = array.astype(np.float64)
    while array.size > MOST_VALUES and array.ndim > 1:
        axis = 0 if array.shape[0] > 1 else 1
        if array.shape[axis] == 1:
            break
        array = array[: max(1, array.shape[0] // 2)] if axis == 0 else array[:, : array.shape[1] // 2]
    return array


def _close(first: Array, second: Array, tolerance: float) -> bool:
    """Whether all but a few values agree, and the array says something at all."""
    if first.shape != second.shape or first.size < 2 or float(np.ptp(first)) <= 4 * tolerance:
        return False
    return float(np.mean(np.abs(first - second) <= tolerance)) > 0.98


def _same_everywhere(reference: Array, candidate: Array, tolerance: float) -> str:
    if not np.any(candidate):
        return "all zeros"
    if _close(-reference, candidate, tolerance):
        return "the sign is the other one"
    if _close(reference + np.median(candidate - reference), candidate, tolerance):
        return f"everything is moved by {float(np.median(candidate - reference)):.4g}: another bias or offset"
    norm = float(np.vdot(reference, reference))
    factor = float(np.vdot(reference, candidate)) / norm if norm else 0.0
    if factor and _close(reference * factor, candidate, tolerance * max(1.0, abs(factor))):
        return f"everything is {factor:.4g} times as large: another scale"
    return ""


def _shift(reference: Array, candidate: Array, tolerance: float) -> str:
    for axis in range(reference.ndim - 1, 0, -1):
        length = reference.shape[axis]
        for step in (1, 2):
            if length < step + 3:
                continue
            early, late = (_cut(array, axis, 0, length - step) for array in (reference, candidate))
            early_end, late_end = (_cut(array, axis, step, length) for array in (reference, candidate))
            for here, there, way in ((early, late_end, "end"), (early_end, late, "begin")):
                if _close(here, there, tolerance):
                    name = axis_name(reference.ndim, axis)
                    distance = f"one {name}" if step == 1 else f"two {name}s"
                    return (
                        f"a shift of {distance} toward the {way}: "
                        "padding on the other side, or an index rounded the other way"
                    )
    return ""


def _cut(array: Array, axis: int, start: int, stop: int) -> Array:
    index: list[Any] = [slice(None)] * array.ndim
    index[axis] = slice(start, stop)
    part: Array = array[tuple(index)]
    return part


def _swapped(reference: Array, candidate: Array, tolerance: float) -> str:
    for first, second in reversed(list(combinations(range(reference.ndim), 2))):
        if reference.shape[first] == reference.shape[second] and reference.shape[first] > 1:
            other = np.swapaxes(reference, first, second)
            if _close(other, candidate, tolerance):
                return f"axes {first} and {second} are swapped"
    for axis in range(reference.ndim - 1, 0, -1):
        if reference.shape[axis] > 1 and _close(np.flip(reference, axis), candidate, tolerance):
            return f"axis {axis} is reversed"
    return ""


def _one_channel(reference: Array, candidate: Array, outside: Array, tolerance: float) -> str:
    """Only some channels differ: a weight or bias of theirs."""
    if outside.ndim < 2 or outside.shape[1] < 2:
        return ""
    bad = np.flatnonzero(outside.any(axis=tuple(axis for axis in range(outside.ndim) if axis != 1)))
    if len(bad) == 0 or len(bad) > max(1, outside.shape[1] // 8):
        return ""
    listed = ", ".join(str(int(channel)) for channel in bad[:4])
    one = len(bad) == 1
    words = f"only channel{'' if one else 's'} {listed}{', ...' if len(bad) > 4 else ''} of {outside.shape[1]} differ"
    words += "s" if one else ""
    within = _same_everywhere(reference[:, bad], candidate[:, bad], tolerance)
    return f"{words}: {within or 'a weight or bias of that channel'}"


def _only_border(outside: Array) -> str:
    if outside.ndim < 3 or min(outside.shape[2:]) < 4 or not outside.any():
        return ""
    sides, deepest = [], 0
    for axis in range(2, outside.ndim):
        length = outside.shape[axis]
        lines = np.flatnonzero(outside.any(axis=tuple(each for each in range(outside.ndim) if each != axis)))
        if lines[0] >= length - length // 4 - 1:
            sides.append(f"the last {axis_name(outside.ndim, axis)}s")
        elif lines[-1] <= length // 4:
            sides.append(f"the first {axis_name(outside.ndim, axis)}s")
    if len(sides) == 1:
        return f"only {sides[0]} differ: padding, or a fill value"
    distance = np.full(outside.shape[2:], min(outside.shape[2:]))
    for axis, length in enumerate(outside.shape[2:]):
        line = np.minimum(np.arange(length), np.arange(length)[::-1])
        distance = np.minimum(distance, line.reshape([-1 if each == axis else 1 for each in range(outside.ndim - 2)]))
    deepest = int(distance[outside.any(axis=(0, 1))].max())
    if deepest < max(1, min(outside.shape[2:]) // 5):
        return f"only the border differs ({deepest + 1} deep): padding, or a fill value"
    return ""


def _other_shape(reference: Array, candidate: Array, tolerance: float) -> str:
    if reference.ndim != candidate.ndim:
        return "another number of axes"
    if sorted(reference.shape) == sorted(candidate.shape):
        return "the same lengths in another order: a transposition or another layout"
    parts = []
    shared = [min(pair) for pair in zip(reference.shape, candidate.shape, strict=True)]
    for axis, (wanted, found) in enumerate(zip(reference.shape, candidate.shape, strict=True)):
        if wanted != found:
            name = axis_name(reference.ndim, axis)
            parts.append(
                f"{abs(wanted - found)} {name}{'s' if abs(wanted - found) != 1 else ''} "
                f"{'missing' if found < wanted else 'too many'}"
            )
    words = " and ".join(parts)
    for where in ("begin", "end"):
        first, second = (_aligned(array, shared, at_end=where == "begin") for array in (reference, candidate))
        if _close(first, second, tolerance):
            return f"{words} at the {where}, the rest agrees: a crop or pads of another size"
    return f"{words}: a crop or pads of another size"


def _aligned(array: Array, shape: list[int], *, at_end: bool) -> Array:
    """Return the part of ``array`` of ``shape`` at its end or at its begin."""
    slices = (slice(n - want, n) if at_end else slice(0, want) for n, want in zip(array.shape, shape, strict=True))
    return array[tuple(slices)]
