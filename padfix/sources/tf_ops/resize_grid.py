"""TensorFlow's two flags of a resize as ONNX's coordinate transformation, and where ONNX Runtime samples for it."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

from padfix.sources.records import coordinates
from padfix.sources.tf_ops.sampling import Grid
from padfix.sources.tf_ops.tensor import Array


def grid_of(node: Any) -> Grid:
    """Return the flags of a Resize node of TensorFlow; graphs from before a flag was added leave it out."""
    return Grid(bool(node.get_attr_value("align_corners")), bool(node.get_attr_value("half_pixel_centers")))


def onnx_transformation(grid: Grid) -> str:
    """Return the ``coordinate_transformation_mode``."""
    return coordinates(align_corners=grid.align_corners, half_pixel_centers=grid.half_pixel_centers)


def onnx_positions(grid: Grid, size: int, count: int) -> Array:
    """Return the float32 input position that ONNX Runtime computes for each output index."""
    output = np.arange(count, dtype=np.float32)
    if grid.align_corners:
        return output * np.float32(size - 1) / np.float32(max(1, count - 1))
    scale = np.float32(count) / np.float32(size)
    if grid.half_pixel_centers:
        return (output + np.float32(0.5)) / scale - np.float32(0.5)
    return output / scale


def exact_positions(grid: Grid, size: int, count: int) -> list[Fraction]:
    """Return the input position of each output index by exact arithmetic."""
    scale = Fraction(size - 1, count - 1) if grid.align_corners and count > 1 else Fraction(size, count)
    half = Fraction(1, 2) if grid.half_pixel_centers else 0
    return [(index + half) * scale - half for index in range(count)]
