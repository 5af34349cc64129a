"""Coordinates of Resize and Upsample, one axis at a time.

Notation: ``size`` is the input length, ``output`` the output length, ``scale`` the factor between them, ``i`` an output
index, ``x`` the position in the input that it samples.

A scale that comes from a ``scales`` tensor is a float32 number, and its arithmetic is done in float32, the type of that
tensor: so do ONNX Runtime and the files that were tuned to it. The same holds for a ``roi``. A scale that comes from
``sizes`` is the fraction ``output / size``; its arithmetic is exact, so that a position never slips to a neighbour
(14 -> 2 samples 0 and 7).

Sources: the ONNX operator specification of Resize (versions 11, 13, 18 and 19); for Resize-10 and Upsample, whose text
leaves the coordinates open, the behaviour that every file of that age was made for.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache
from typing import Final

import numpy as np

Scale = Fraction | float
"""``Fraction`` when derived from ``sizes``; a float that holds a float32 value when read from ``scales``."""

HALF: Final = Fraction(1, 2)


def output_size(size: int, scale: float) -> int:
    """Return the output length for a float32 ``scale``, in every version: the float32 product, truncated."""
    return int(np.float32(size) * np.float32(scale))


def scale_to(size: int, output: int) -> float:
    """Return the float32 scale that makes ``size`` elements ``output``, whoever multiplies.

    The float32 next to 9 / 5 is short of it: five times that is 9 in single precision and 8.99... in double precision,
    in which ONNX's shape inference cuts it off. The next larger one gives 9 in both.
    """
    scale = np.float32(output / size)
    return float(scale if float(scale) * size >= output else np.nextafter(scale, np.float32(np.inf)))


def legacy_nearest_indices(size: int, scale: float, output: int) -> list[int]:
    """Return the input index that each output index of Upsample or Resize-10 copies in mode nearest.

    The position is ``i / scale`` in float32 (asymmetric); it is rounded down on an axis that grows and up on one that
    shrinks, then clipped into the input. An axis of scale 1 is copied.
    """
    if np.float32(scale) == np.float32(1):
        return [min(index, size - 1) for index in range(output)]
    position = np.arange(output, dtype=np.float32) / np.float32(scale)
    rounded = np.floor(position) if np.float32(scale) >= 1 else np.ceil(position)
    return [int(index) for index in np.clip(rounded, 0, size - 1)]


def aspect_ratio_scale(sizes: list[tuple[int, int]], policy: str) -> Fraction:
    """Return the one scale of keep_aspect_ratio_policy for (input length, wanted length) of each resized axis.

    Raises:
        ValueError: ``policy`` is neither ``not_larger`` nor ``not_smaller``.
    """
    scales = [Fraction(wanted, size) for size, wanted in sizes]
    if policy == "not_larger":
        return min(scales)
    if policy == "not_smaller":
        return max(scales)
    raise ValueError(f"keep_aspect_ratio_policy {policy!r} is not one of stretch, not_larger, not_smaller.")


def aspect_ratio_output_size(size: int, scale: Fraction) -> int:
    """Return ``scale * size`` rounded to the nearest integer, halves up."""
    return math.floor(scale * size + HALF)


def source_coordinates(
    mode: str, size: int, output: int, scale: Scale, roi: tuple[float, float] = (0.0, 1.0)
) -> list[Fraction] | list[float]:
    """Return the position ``x`` in the input for each output index.

    Args:
        mode: A value of ``coordinate_transformation_mode``.
        size: Input length.
        output: Output length.
        scale: Exact when a ``Fraction``; else float32 arithmetic (see the module's docstring).
        roi: Normalised (start, end) of the axis; read by ``tf_crop_and_resize`` only.

    Raises:
        ValueError: ``mode`` is unknown.
    """
    if mode == "align_corners":
        # Both lengths are integers here: the scale plays no part, nor does its rounding.
        return [Fraction(i * (size - 1), output - 1) for i in range(output)] if output > 1 else [Fraction(0)] * output
    if mode == "tf_crop_and_resize":
        return _cropped_coordinates(size, output, roi)
    if mode == "pytorch_half_pixel" and output <= 1:
        return [Fraction(0)] * output
    if isinstance(scale, Fraction):
        return [_exact(mode, i, size, output, scale) for i in range(output)]
    return _single_precision(mode, size, output, scale)


def _exact(mode: str, i: int, size: int, output: int, scale: Fraction) -> Fraction:
    if mode == "asymmetric":
        return i / scale
    if mode == "tf_half_pixel_for_nn":
        return (i + HALF) / scale
    if mode in ("half_pixel", "pytorch_half_pixel"):
        return (i + HALF) / scale - HALF
    if mode == "half_pixel_symmetric":
        adjustment = output / (scale * size)
        return Fraction(size, 2) * (1 - adjustment) + (i + HALF) / scale - HALF
    raise ValueError(f"coordinate_transformation_mode {mode!r} is unknown.")


def _single_precision(mode: str, size: int, output: int, scale: float) -> list[float]:
    index, factor, half = np.arange(output, dtype=np.float32), np.float32(scale), np.float32(0.5)
    if mode == "asymmetric":
        position = index / factor
    elif mode == "tf_half_pixel_for_nn":
        position = (index + half) / factor
    elif mode in ("half_pixel", "pytorch_half_pixel"):
        position = (index + half) / factor - half
    elif mode == "half_pixel_symmetric":
        adjustment = np.float32(output) / (factor * np.float32(size))
        offset = np.float32(size) / np.float32(2) * (np.float32(1) - adjustment)
        position = offset + (index + half) / factor - half
    else:
        raise ValueError(f"coordinate_transformation_mode {mode!r} is unknown.")
    return [float(each) for each in position]


def _cropped_coordinates(size: int, output: int, roi: tuple[float, float]) -> list[float]:
    start, end, last = np.float32(roi[0]), np.float32(roi[1]), np.float32(size - 1)
    if output == 1:
        return [float(np.float32(0.5) * (start + end) * last)]
    # One division at the end keeps the last position of a whole-image crop at size - 1, inside the image.
    index = np.arange(output, dtype=np.float32)
    return [float(each) for each in start * last + index * (end - start) * last / np.float32(output - 1)]


_NEAR: Final = 1e-5
"""Of a length: so far apart positions may be that are computed in another order in single precision."""


@lru_cache(maxsize=4096)
def crop_slips(rounding: str | None, size: int, output: int, roi: tuple[float, float]) -> bool:
    """Whether some position of a crop rounds to another element, or leaves the image, if it is computed otherwise.

    In mode nearest ``rounding`` says where; None where elements are interpolated.
    """
    start, end, last = np.float32(roi[0]), np.float32(roi[1]), np.float32(max(size - 1, 0))
    index, spaces = np.arange(output, dtype=np.float32), np.float32(max(output - 1, 1))
    meant = np.array(_cropped_coordinates(size, output, roi), np.float32)
    if output == 1:
        return False
    first, extent = Fraction(float(start)), Fraction(float(end)) - Fraction(float(start))
    exactly = np.array([float((first + extent * Fraction(each, output - 1)) * (size - 1)) for each in range(output)])
    part, step = index / spaces * (end - start), (end - start) * last / spaces
    ways = (start * last + index * step, start * last + part * last, (part + start) * last)
    differs = np.any([way != exactly for way in (meant, *ways)], axis=0)
    edges = np.minimum(np.abs(meant), np.abs(meant - last))
    if rounding is not None:
        shift = 0.5 if rounding.startswith("round") else 0.0
        edges = np.minimum(edges, np.abs(meant - shift - np.round(meant - shift)))
    return bool((differs & (edges <= _NEAR * size)).any())


_ROUNDINGS: Final[dict[str, Callable[[Scale], int]]] = {
    "round_prefer_floor": lambda x: math.ceil(x - HALF if isinstance(x, Fraction) else x - 0.5),
    "round_prefer_ceil": lambda x: math.floor(x + HALF if isinstance(x, Fraction) else x + 0.5),
    "floor": lambda x: math.floor(x),
    "ceil": lambda x: math.ceil(x),
}

NEAREST_MODES: Final = tuple(_ROUNDINGS)
"""Every value of the attribute ``nearest_mode``; the first is its default."""


def nearest_index(x: Scale, nearest_mode: str, size: int) -> int:
    """Return the input index that position ``x`` copies, clipped into ``range(size)``.

    Raises:
        ValueError: ``nearest_mode`` is unknown.
    """
    if nearest_mode not in _ROUNDINGS:
        raise ValueError(f"nearest_mode {nearest_mode!r} is not one of {', '.join(NEAREST_MODES)}.")
    return min(max(_ROUNDINGS[nearest_mode](x), 0), size - 1)


def nearest_indices(
    mode: str,
    nearest_mode: str,
    size: int,
    output: int,
    scale: Scale,
    roi: tuple[float, float] = (0.0, 1.0),
) -> list[int]:
    """Return the input index that each output index of Resize (version 11 and later) copies in mode nearest."""
    return [nearest_index(x, nearest_mode, size) for x in source_coordinates(mode, size, output, scale, roi)]


@lru_cache(maxsize=4096)
def slips_in_single_precision(mode: str, rounding: str, size: int, output: int) -> bool:
    """Whether positions that are computed in single precision, from the two lengths, round to other elements.

    Between aligned corners they are taken as multiples of a step, from the lengths or from a scale that was one.
    """
    if size == output or size < 1 or output < 1:
        return False
    meant, scale = nearest_indices(mode, rounding, size, output, Fraction(output, size)), np.float32(output / size)
    if mode != "align_corners":
        return nearest_indices(mode, rounding, size, output, float(scale)) != meant
    index, last = np.arange(output, dtype=np.float32), np.float32(size - 1)
    spaces = np.float32(max(output - 1, 1)), np.float32(max(float(scale * np.float32(size)) - 1, 1.0))
    ways = index * (last / spaces[0]), index * (last / spaces[1]), index * last / spaces[1]
    return any([nearest_index(float(x), rounding, size) for x in way] != meant for way in ways)


@lru_cache(maxsize=4096)
def slips_by_the_inverse(mode: str, rounding: str, size: int, output: int, scale: Scale) -> bool:
    """Whether positions round to other elements that are products with the inverse of a scale, in single precision.

    That of a scale which comes from ``sizes`` is the quotient of the lengths. Between aligned corners this is
    :func:`slips_in_single_precision`: there runtimes have steps, and no scale.
    """
    if size == output or size < 1 or output < 1:
        return False
    if mode == "align_corners":
        return slips_in_single_precision(mode, rounding, size, output)
    meant, half = nearest_indices(mode, rounding, size, output, scale), np.float32(0.5)
    index = np.arange(output, dtype=np.float32)
    if isinstance(scale, Fraction):
        inverse = np.float32(size) / np.float32(output)
    else:
        inverse = np.float32(1) / np.float32(scale)
    centred = (index * inverse + (half * inverse - half), (index + half) * inverse - half)
    ways = (index * inverse,) if mode == "asymmetric" else centred
    return any([nearest_index(float(x), rounding, size) for x in way] != meant for way in ways)
