"""The elements that ONNX Runtime 1.31.1 copies in mode nearest, one axis at a time.

Measured, not read: every pair of lengths of a sweep was run, and the arithmetic below is the one that fits. Notation as
in :mod:`padfix.geometry.resampling`.
"""

from __future__ import annotations

import math

import numpy as np

MEASURED_MODES = frozenset({"asymmetric", "half_pixel", "pytorch_half_pixel"})
"""Coordinate transformations whose arithmetic is known."""

_TIE = 1e-6


def runtime_nearest_indices(mode: str, nearest_mode: str, size: int, output: int, scale: float) -> list[int]:
    """Return the input index that each output index copies, for ``mode`` one of :data:`MEASURED_MODES`.

    Positions are computed in float32 from a float32 scale, also where the scale comes from ``sizes`` and is ``output /
    size``; those within a millionth of a half count as a half when they are rounded.
    """
    index, factor, half = np.arange(output, dtype=np.float32), np.float32(scale), np.float32(0.5)
    if mode == "asymmetric":
        position = index / factor
    elif mode == "pytorch_half_pixel" and output == 1:
        position = np.zeros(1, np.float32)
    else:
        position = (index + half) / factor - half
    return [min(max(_rounded(float(x), nearest_mode), 0), size - 1) for x in position]


def _rounded(x: float, nearest_mode: str) -> int:
    if nearest_mode == "floor":
        return math.floor(x)
    if nearest_mode == "ceil":
        return math.ceil(x)
    whole = math.floor(x)
    if abs(x - whole - 0.5) < _TIE:
        return whole + (nearest_mode == "round_prefer_ceil")
    return math.floor(x + 0.5)
