"""ResizeNearestNeighbor: an ONNX Resize where its indices are TensorFlow's for certain, else a Gather an axis.

TensorFlow multiplies the output index by the rounded quotient input / output; ONNX Runtime divides it by the rounded
quotient output / input. At pixel boundaries one or the other is off by one (14 to 2 reads 6 or 7), so indices are
compared before a Resize is written. tf2onnx writes the Resize in every case.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np

from padfix.sources.tf_ops import sampling
from padfix.sources.tf_ops.image import Image
from padfix.sources.tf_ops.resize_grid import exact_positions, grid_of, onnx_positions, onnx_transformation
from padfix.sources.tf_ops.sampling import Grid
from padfix.sources.tf_ops.tensor import Array, Builder, Tensor

OPERATORS = ("ResizeNearestNeighbor",)

_RESIZABLE = frozenset({"float32", "int32", "int8", "uint8"})
"""What ONNX Runtime's Resize takes."""

_LONGEST = 1 << 14
"""Output positions that a factor is tried on where the length is not known."""


def convert(builder: Builder, node: Any) -> Tensor:
    """Return the resized image, in its own type."""
    image, grid = Image(builder, node), grid_of(node)
    lengths = [image.known(axis) for axis in (0, 1)]
    if all(known is not None and known[0] == known[1] for known in lengths):
        return image.data
    if image.data.dtype.name in _RESIZABLE:
        factors = [image.factor(axis) for axis in (0, 1)]
        if all(factor is not None and repeats(grid, factor, lengths[axis]) for axis, factor in enumerate(factors)):
            # Whole factors mean that each pixel is repeated; said in the form that most runtimes take.
            simple = Grid(align_corners=False, half_pixel_centers=False)
            return image.resize(image.data, _attributes(simple))
        if all(known is not None and agrees(grid, *known) for known in lengths):
            return image.resize(image.data, _attributes(grid))
    result = image.data
    for axis in (0, 1):
        known = lengths[axis]
        if known is None or known[0] != known[1]:
            result = result.take(sampling.nearest(grid, image.sizes[axis], image.counts[axis]), axis + 1)
    return result


def indices(grid: Grid, size: int, count: int) -> Array:
    """Return the input index that TensorFlow reads for each output index."""
    builder = Builder(None, "")
    found = sampling.nearest(grid, builder.integers(size), builder.integers(count)).array
    assert found is not None
    return found


def repeats(grid: Grid, factor: int, lengths: tuple[int, int] | None) -> bool:
    """Whether TensorFlow repeats each pixel ``factor`` times, at every size unless ``lengths`` are given."""
    if lengths is None and grid.align_corners:
        return factor == 1
    size, count = lengths or (max(1, _LONGEST // factor), max(1, _LONGEST // factor) * factor)
    return bool((indices(grid, size, count) == np.arange(count) // factor).all())


def agrees(grid: Grid, size: int, count: int) -> bool:
    """Whether ONNX Runtime reads the pixels that TensorFlow does, and both those of exact arithmetic."""
    wanted = indices(grid, size, count)
    if size == count:
        return True
    half = 0.5 if grid.align_corners or grid.half_pixel_centers else 0
    exact = [min(math.floor(position + Fraction(half)), size - 1) for position in exact_positions(grid, size, count)]
    rounded = np.floor(onnx_positions(grid, size, count) + np.float32(half))
    slipped = np.clip(rounded, 0, size - 1).astype(np.int64)
    return bool((wanted == slipped).all() and (wanted == exact).all())


def _attributes(grid: Grid) -> dict[str, str]:
    plain = grid == Grid(align_corners=False, half_pixel_centers=False)
    return {
        "mode": "nearest",
        "coordinate_transformation_mode": onnx_transformation(grid),
        "nearest_mode": "floor" if plain else "round_prefer_ceil",
    }
