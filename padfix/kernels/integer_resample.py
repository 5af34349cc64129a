"""Linear interpolation of integers, to the last bit.

The specification says nothing of how an integer result is rounded, so ONNX Runtime's arithmetic is what it means here
(1.31, ``UpsampleBilinear`` and ``UpsampleTrilinear``): positions and weights in float32, the neighbours of all
axes added up at once in a fixed order, the sum cut towards 0. Results that lie on an integer depend on each of these.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from padfix.geometry.resampling import Scale
from padfix.kernels.windows import Array

_FIXED_POINT = 1 << 10
"""Images of 8-bit integers with their channels last are weighted in steps of a 1024th instead."""


@dataclass(frozen=True)
class ResizedAxis:
    """One axis that Resize works on: its number, lengths, scale and normalised (start, end) of the roi."""

    number: int
    size: int
    output: int
    scale: Scale
    roi: tuple[float, float] = (0.0, 1.0)


@dataclass(frozen=True)
class _Neighbours:
    """The lower and the upper neighbour of every output position of one axis, and what each weighs."""

    indices: tuple[Array, Array]
    weights: tuple[Array, Array]


def interpolate_integers(X: Array, resized: Sequence[ResizedAxis], mode: str) -> Array:
    """Return ``X``, of an integer type, resized linearly.

    Args:
        X: Any shape; of four or five axes the first two are batch and channels if both have a scale of 1, and of four
            the last is the channels if only it and the first have.
        resized: The axes to resize, each once.
        mode: The coordinate transformation; not ``tf_crop_and_resize``.
    """
    named = {axis.number: axis for axis in resized}
    axes = [named.get(number, ResizedAxis(number, size, size, 1.0)) for number, size in enumerate(X.shape)]
    if X.size == 0 or 0 in (axis.output for axis in axes):
        return np.zeros([axis.output for axis in axes], X.dtype)
    still = [axis.scale == 1 for axis in axes]
    if [axis.output for axis in axes] == list(X.shape):
        return X.copy()
    if X.ndim in (4, 5) and all(still[:2]):
        axes = axes[2:]
    elif X.ndim == 4 and still[0] and still[3]:
        axes = axes[1:3]
        if X.dtype.itemsize == 1:
            return _in_fixed_point(X, axes, mode)
    return within_range(_sum(X.astype(np.float32), [(axis.number, _neighbours(axis, mode)) for axis in axes]), X.dtype)


def within_range(result: Array, dtype: np.dtype[Any]) -> Array:
    """Return ``result`` as ``dtype``; integers are cut towards 0 and kept within their type's range."""
    if dtype.kind in "iu":
        limits = np.iinfo(dtype)
        return np.clip(np.trunc(result.astype(np.float64)), limits.min, limits.max).astype(dtype)
    return result.astype(dtype)


def _in_fixed_point(X: Array, axes: Sequence[ResizedAxis], mode: str) -> Array:
    neighbours = []
    for axis in axes:
        found = _neighbours(axis, mode)
        steps = (_positions(axis, mode) * np.float32(_FIXED_POINT)).astype(np.int64)
        lower, upper = (np.abs(steps - index * _FIXED_POINT) for index in found.indices)
        alike = found.indices[0] == found.indices[1]
        weights = (np.where(alike, _FIXED_POINT // 2, upper), np.where(alike, _FIXED_POINT // 2, lower))
        neighbours.append((axis.number, _Neighbours(found.indices, weights)))
    total = _sum(X.astype(np.int64), neighbours)
    return within_range(total / _FIXED_POINT**2, X.dtype)


def _sum(X: Array, axes: Sequence[tuple[int, _Neighbours]]) -> Array:
    """Add up the weighted corners around each position: the last of ``axes`` moves first and is multiplied first."""
    total: Array | None = None
    for corner in product((0, 1), repeat=len(axes)):
        part, weight = X, np.ones((), X.dtype)
        for side, (number, neighbours) in zip(corner, axes, strict=True):
            part = np.take(part, neighbours.indices[side], axis=number)
        for side, (number, neighbours) in reversed(list(zip(corner, axes, strict=True))):
            weight = weight * neighbours.weights[side].reshape(-1, *[1] * (X.ndim - number - 1))
        total = weight * part if total is None else total + weight * part
    return X if total is None else total


def _neighbours(axis: ResizedAxis, mode: str) -> _Neighbours:
    positions = _positions(axis, mode)
    first = positions.astype(np.int64)
    second = np.minimum(first + 1, axis.size - 1)
    half = np.float32(0.5)
    weights = [
        np.where(first == second, half, np.abs(positions - index.astype(np.float32))) for index in (second, first)
    ]
    return _Neighbours((first, second), (weights[0], weights[1]))


def _positions(axis: ResizedAxis, mode: str) -> Array:
    """Return the position in the input of every output, float32, within the image."""
    number = np.float32
    x = np.arange(axis.output, dtype=number)
    size, output, scale, half = number(axis.size), number(axis.output), number(float(axis.scale)), number(0.5)
    if scale == 1 and axis.output == axis.size:
        pass
    elif mode == "asymmetric":
        x = x / scale
    elif mode == "align_corners":
        x = x * (size - number(1)) / (output - number(1)) if axis.output > 1 else x
    elif mode == "half_pixel_symmetric":
        offset = size / number(2) * (number(1) - output / (scale * size))
        x = (float(offset) + (x.astype(np.float64) + 0.5) / float(scale) - 0.5).astype(number)
    elif mode == "half_pixel" or (mode == "pytorch_half_pixel" and axis.output > 1):
        x = (x + half) / scale - half
    elif mode != "pytorch_half_pixel":
        raise ValueError(f"coordinate_transformation_mode {mode!r} does not go with integers.")
    return np.clip(x, number(0), size - number(1))
