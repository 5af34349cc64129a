"""Upsample (1, 7, 9) and Resize (10, 11, 13, 18, 19), from the ONNX specification, one axis after the other."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np

from padfix.geometry import resampling
from padfix.geometry.resampling import Scale
from padfix.kernels.integer_resample import ResizedAxis, interpolate_integers, within_range
from padfix.kernels.windows import Array


def legacy_resize(X: Array, scales: Sequence[float], mode: str = "nearest") -> Array:
    """Return ``X`` resized as Upsample and Resize-10 do.

    Coordinates are asymmetric in both modes. Nearest rounds down on axes that grow and up on axes that shrink. When no
    axis changes its length the input is returned as it is, whatever the scales.

    Args:
        X: Any shape and dtype.
        scales: One factor an axis, float32 values.
        mode: ``nearest``, ``linear`` or (Upsample-1) ``bilinear``.

    Raises:
        ValueError: An unknown mode, or not one scale an axis.
    """
    if len(scales) != X.ndim:
        raise ValueError(f"{len(scales)} scales don't fit an input of {X.ndim} axes.")
    if mode not in ("nearest", "linear", "bilinear"):
        raise ValueError(f"mode {mode!r} is not one of nearest, linear.")
    if not all(scale > 0 for scale in scales):
        raise ValueError(f"Scales {[float(scale) for scale in scales]} are not all above 0.")
    outputs = [resampling.output_size(size, scale) for size, scale in zip(X.shape, scales, strict=True)]
    if list(X.shape) == outputs:
        return X.copy()
    if mode == "nearest":
        indices = [
            resampling.legacy_nearest_indices(size, scale, output)
            for size, scale, output in zip(X.shape, scales, outputs, strict=True)
        ]
        return _take(X, indices)
    axes = [
        ResizedAxis(number, size, output, float(np.float32(scale)))
        for number, (size, output, scale) in enumerate(zip(X.shape, outputs, scales, strict=True))
    ]
    if X.dtype.kind in "iu":
        return interpolate_integers(X, axes, "asymmetric")
    return _interpolate(X, axes, Filter("linear"), "asymmetric")


@dataclass(frozen=True)
class Filter:
    """How neighbours are weighted."""

    mode: str
    cubic_coeff_a: float = -0.75
    exclude_outside: bool = False
    antialias: bool = False


def resize(
    X: Array,
    roi: Array | None = None,
    scales: Array | None = None,
    sizes: Array | None = None,
    *,
    mode: str = "nearest",
    coordinate_transformation_mode: str = "half_pixel",
    nearest_mode: str = "round_prefer_floor",
    cubic_coeff_a: float = -0.75,
    exclude_outside: int = 0,
    extrapolation_value: float = 0.0,
    antialias: int = 0,
    axes: Sequence[int] | None = None,
    keep_aspect_ratio_policy: str = "stretch",
) -> Array:
    """Return ``X`` resized as Resize-11 and later do.

    Exactly one of ``scales`` and ``sizes`` is given; an empty one counts as absent. With ``tf_crop_and_resize`` and
    ``scales`` the output length is ``floor(size * scale)``, as ONNX's shape inference and ONNX Runtime have it. The
    specification is silent about integers: linear is :func:`interpolate_integers`, all else is computed like floats.
    Either way results are cut towards 0 and kept within their type's range.

    An axis of scale 1 is not resized, and stays as it is unless it is cropped. That matters for the coordinates
    ``tf_half_pixel_for_nn`` alone: their ``x + 0.5`` would give each channel and image the numbers of the next. The
    text exempts no axis, but TensorFlow, where they are from, resizes height and width alone, and ONNX Runtime ended
    the shift as a fault (issue 5151). It and OpenVINO agree.

    Raises:
        ValueError: Inputs and attributes that don't fit together, or an unknown mode.
    """
    named = _resized_axes(X, roi, scales, sizes, axes, coordinate_transformation_mode, keep_aspect_ratio_policy)
    cropped = coordinate_transformation_mode == "tf_crop_and_resize"
    resized = [axis for axis in named if cropped or axis.scale != 1 or axis.output != axis.size]
    if mode == "nearest":
        if antialias:
            raise ValueError("antialias does not go with mode nearest.")
        result = X
        for axis in resized:
            indices = _nearest(axis, coordinate_transformation_mode, nearest_mode)
            if indices != tuple(range(axis.size)):
                result = np.take(result, indices, axis=axis.number)
        result = result.copy() if result is X else result
    elif mode == "linear" and X.dtype.kind in "iu" and not antialias and not cropped:
        result = interpolate_integers(X, resized, coordinate_transformation_mode)
    elif mode in ("linear", "cubic"):
        weighting = Filter(mode, float(cubic_coeff_a), bool(exclude_outside), bool(antialias))
        result = _interpolate(X, resized, weighting, coordinate_transformation_mode)
    else:
        raise ValueError(f"mode {mode!r} is not one of nearest, linear, cubic.")
    if cropped:
        _extrapolate(result, resized, extrapolation_value)
    return result


def _resized_axes(
    X: Array,
    roi: Array | None,
    scales: Array | None,
    sizes: Array | None,
    axes: Sequence[int] | None,
    coordinates: str,
    policy: str,
) -> list[ResizedAxis]:
    numbers = list(range(X.ndim)) if axes is None else [axis % X.ndim for axis in axes]
    if scales is not None and scales.size == 0:
        scales = None
    if sizes is not None and sizes.size == 0:
        sizes = None
    if (scales is None) == (sizes is None):
        raise ValueError("Resize needs either scales or sizes, and not both.")
    given = scales if scales is not None else sizes
    if given is None or given.size != len(numbers):
        raise ValueError(f"scales or sizes don't fit the {len(numbers)} axes to resize.")
    lengths = [X.shape[number] for number in numbers]
    factors: list[Scale]
    if scales is not None:
        factors = [float(np.float32(scale)) for scale in scales.ravel()]
        if min([1.0, *map(float, factors)]) <= 0:
            raise ValueError(f"Scales {factors} are not all above 0.")
        outputs = [resampling.output_size(size, float(scale)) for size, scale in zip(lengths, factors, strict=True)]
    else:
        wanted = [int(size) for size in given.ravel()]
        if any(size == 0 and target != 0 for size, target in zip(lengths, wanted, strict=True)):
            raise ValueError("An axis without elements can't be resized to one with elements.")
        if policy == "stretch":
            outputs = wanted
            factors = [
                Fraction(target, size) if size and target else Fraction(1)
                for size, target in zip(lengths, wanted, strict=True)
            ]
        else:
            if 0 in lengths:
                raise ValueError(f"keep_aspect_ratio_policy {policy!r} has no meaning on an axis without elements.")
            shared = resampling.aspect_ratio_scale(list(zip(lengths, wanted, strict=True)), policy)
            outputs = [resampling.aspect_ratio_output_size(size, shared) for size in lengths]
            factors = [shared] * len(numbers)
    rois = [(0.0, 1.0)] * len(numbers)
    if coordinates == "tf_crop_and_resize":
        if roi is None or roi.size != 2 * len(numbers):
            raise ValueError(f"tf_crop_and_resize needs a roi of {2 * len(numbers)} numbers.")
        flat = [float(each) for each in roi.ravel()]
        rois = [(flat[place], flat[place + len(numbers)]) for place in range(len(numbers))]
    return [ResizedAxis(*each) for each in zip(numbers, lengths, outputs, factors, rois, strict=True)]


def _take(X: Array, indices: Sequence[Sequence[int]]) -> Array:
    result = X
    for axis, index in enumerate(indices):
        if list(index) != list(range(X.shape[axis])):
            result = np.take(result, np.asarray(index, dtype=np.intp), axis=axis)
    return result.copy() if result is X else result


@lru_cache(maxsize=4096)
def _coordinates(axis: ResizedAxis, mode: str) -> tuple[Scale, ...]:
    return tuple(resampling.source_coordinates(mode, axis.size, axis.output, axis.scale, axis.roi))


@lru_cache(maxsize=4096)
def _nearest(axis: ResizedAxis, mode: str, nearest_mode: str) -> tuple[int, ...]:
    return tuple(resampling.nearest_index(x, nearest_mode, axis.size) for x in _coordinates(axis, mode))


@lru_cache(maxsize=1024)
def _weights(axis: ResizedAxis, weighting: Filter, mode: str) -> tuple[Array, Array]:
    """Return input indices and weights, both ``[output, taps]``, of every output position of one axis."""
    coordinates = _coordinates(axis, mode)
    whole = np.array([math.floor(x) for x in coordinates], dtype=np.int64)
    part = np.array([float(x - math.floor(x)) for x in coordinates], dtype=np.float64)
    # On an axis that shrinks, antialiasing stretches the filter until neighbouring outputs' filters meet.
    stretch = max(1.0, 1.0 / float(axis.scale)) if weighting.antialias else 1.0
    reach = math.ceil((2 if weighting.mode == "cubic" else 1) * stretch)
    offsets = np.arange(-reach, reach + 1)
    distance = np.abs(offsets[None, :] - part[:, None]) / stretch
    if weighting.mode == "cubic":
        a = weighting.cubic_coeff_a
        near = ((a + 2) * distance - (a + 3)) * distance**2 + 1
        far = ((a * distance - 5 * a) * distance + 8 * a) * distance - 4 * a
        weights = np.where(distance <= 1, near, np.where(distance < 2, far, 0.0))
    else:
        weights = np.maximum(0.0, 1.0 - distance)
    indices = whole[:, None] + offsets[None, :]
    if weighting.exclude_outside:
        weights = np.where((indices >= 0) & (indices < axis.size), weights, 0.0)
    if weighting.exclude_outside or weighting.antialias:
        total = weights.sum(axis=1, keepdims=True)
        weights = weights / np.where(total == 0, 1.0, total)
    used = weights.any(axis=0)
    return np.clip(indices, 0, axis.size - 1)[:, used], weights[:, used]


def _interpolate(X: Array, axes: Sequence[ResizedAxis], weighting: Filter, mode: str) -> Array:
    result = X.astype(np.float64)
    for axis in axes:
        if axis.scale == 1 and axis.output == axis.size and mode != "tf_crop_and_resize":
            continue
        indices, weights = _weights(axis, weighting, mode)
        column = (-1,) + (1,) * (X.ndim - axis.number - 1)
        shape = (*result.shape[: axis.number], axis.output, *result.shape[axis.number + 1 :])
        total = np.zeros(shape, dtype=np.float64)
        for tap in range(indices.shape[1]):
            total += np.take(result, indices[:, tap], axis=axis.number) * weights[:, tap].reshape(column)
        result = total
    return within_range(result, X.dtype)


def _extrapolate(result: Array, axes: Sequence[ResizedAxis], value: float) -> None:
    """Overwrite, in place, what samples outside the image on any axis."""
    for axis in axes:
        outside = [not 0 <= x <= axis.size - 1 for x in _coordinates(axis, "tf_crop_and_resize")]
        if any(outside):
            result[(slice(None),) * axis.number + (np.array(outside),)] = value
