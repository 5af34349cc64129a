"""How much rounding a tensor may show: units in the last place of its magnitude, and what its inputs' last bits move.

Over the few operators of a stretch rounding can't pile up. Measured on EfficientNetB0 and ResNet50, TensorFlow against
ONNX Runtime, the worst stretch is 30 units in the last place of its largest value off. A bound relative to the range of
a tensor would alarm where all its values are nearly one (an untrained sigmoid gives 0.5 everywhere).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

import numpy as np

from padfix.proof.compare import coarsest, is_real
from padfix.proof.executors import Array, ExecutionFailed

UNITS = {"float64": 64, "float32": 64, "float16": 4, "bfloat16": 4}
"""Units in the last place of the largest magnitude; 16-bit results are computed in 32 bits and rounded once a node."""

LAST_PLACE = {"float64": 2.0**-52, "float32": 2.0**-23, "float16": 2.0**-10, "bfloat16": 2.0**-7}

_OTHER_UNIT = 2.0**-2
"""8-bit floats: one unit in the last place is an eighth or a quarter."""

SAMPLES = 3
"""Runs of the original on moved inputs; the largest move of them counts."""


def tolerance(types: Iterable[np.dtype[np.generic]], magnitude: float) -> float:
    """Return the absolute difference that rounding explains in one stretch.

    Args:
        types: Types that the original computes the stretch in; the coarsest float among them decides.
        magnitude: Largest absolute value of the original's tensor, over all probes.
    """
    name = coarsest(types)
    return UNITS.get(name, 1) * LAST_PLACE.get(name, _OTHER_UNIT) * magnitude


def own_tolerance(types: Iterable[np.dtype[np.generic]], magnitude: float, whole: float) -> float:
    """Return the absolute difference that rounding explains on data that was made for a stretch.

    Runtimes approximate a function over its whole range, so that small numbers are off by parts of the largest. They do
    so in float32 at the least: 16-bit numbers are rounded to units of their own.

    Args:
        types: As in :func:`tolerance`.
        magnitude: Largest absolute value of the original's tensor on this data.
        whole: The same over all probes, or the largest number read where nothing is approximated.
    """
    name = coarsest(types)
    place = LAST_PLACE.get(name, _OTHER_UNIT)
    return UNITS.get(name, 1) * max(place * magnitude, min(place, LAST_PLACE["float32"]) * whole)


def moved(array: Array, random: np.random.Generator) -> Array:
    """Return floats each moved to the next number above or below; other types and zeros as they are.

    The next number to 0 is subnormal, and a runtime may flush it.
    """
    if not is_real(array.dtype) or not array.size:
        return array
    up = random.integers(0, 2, array.shape).astype(bool)
    limit = np.where(up, np.inf, -np.inf).astype(array.dtype)
    with np.errstate(over="ignore"):
        return np.where(array == 0, array, np.nextafter(array, limit)).astype(array.dtype)


def spread(
    run: Callable[[Mapping[str, Array]], Mapping[str, Array]],
    arrays: Mapping[str, Array],
    results: Mapping[str, Array],
) -> dict[str, Array]:
    """Return for each float result how far its numbers move when every float input moves by a unit in the last place.

    The largest absolute differences over some runs of the original by name, which gives ``results`` for ``arrays``.
    There is nothing for results that are not finite or not floats, and nothing at all where no input is a float.
    """
    if not any(is_real(array.dtype) for array in arrays.values()):
        return {}
    random = np.random.default_rng([0, 1])
    found: dict[str, Array] = {}
    for _ in range(SAMPLES):
        try:
            again = run({name: moved(array, random) for name, array in arrays.items()})
        except ExecutionFailed:
            return {}
        for name, result in results.items():
            other = again.get(name)
            if not is_real(result.dtype) or other is None or other.shape != result.shape or not result.size:
                continue
            with np.errstate(invalid="ignore"):
                difference = np.abs(other.astype(np.float64) - result.astype(np.float64))
            if np.isfinite(difference).all():
                found[name] = np.maximum(found.get(name, 0.0), difference)
    return found


_NO_MOVES = np.zeros(())


def farthest_slice(
    types: Iterable[np.dtype[np.generic]], expected: Array, found: Array, least: float, moves: Array = _NO_MOVES
) -> tuple[float, float]:
    """Return the difference in the slice of an array that goes furthest beyond its rounding, and that rounding.

    Args:
        types: As in :func:`tolerance`.
        expected: What the original gives; finite where the result counts.
        found: What the candidate gives, of the same shape.
        least: What is allowed of every slice.
        moves: How far each number of the original moves with the last bits of what it is computed from.
    """
    name = coarsest(types)
    units, place = UNITS.get(name, 1), LAST_PLACE.get(name, _OTHER_UNIT)
    if expected.shape != found.shape or not np.isfinite(expected).all() or not np.isfinite(found).all():
        return 0.0, 0.0
    wide = expected.astype(np.float64)
    apart, size, moves = np.abs(found - wide), np.abs(wide), np.broadcast_to(moves, expected.shape)
    worst, share = (0.0, 0.0), 1.0
    for axis in range(expected.ndim):
        others = tuple(each for each in range(expected.ndim) if each != axis)
        differences = apart.max(axis=others, initial=0.0)
        allowed = units * np.maximum(place * size.max(axis=others, initial=0.0), moves.max(axis=others, initial=0.0))
        allowed = np.maximum(allowed, least)
        beyond = np.divide(differences, allowed, out=np.zeros_like(differences), where=allowed > 0)
        if beyond.size and beyond.max() > share:
            index, share = int(beyond.argmax()), float(beyond.max())
            worst = float(differences[index]), float(allowed[index])
    return worst
