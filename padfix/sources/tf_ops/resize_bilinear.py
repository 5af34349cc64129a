"""ResizeBilinear: an ONNX Resize where its positions are TensorFlow's, else both neighbours gathered and mixed.

tf2onnx writes scales that give outputs one short (7 to 31 gives 30), and leaves non-float images to fail on loading.
Runtimes weigh all four neighbours at once, which differs from TensorFlow's in the last bit. Where that is rounded (an
image that is brought back to bytes), it would be another whole number.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from padfix.sources.tf_ops import sampling
from padfix.sources.tf_ops.image import Image
from padfix.sources.tf_ops.resize_grid import exact_positions, grid_of, onnx_positions, onnx_transformation
from padfix.sources.tf_ops.rounded import is_rounded
from padfix.sources.tf_ops.sampling import Grid
from padfix.sources.tf_ops.tensor import Builder, Tensor

OPERATORS = ("ResizeBilinear",)

_NEGLIGIBLE = 1e-5
"""Pixels that ONNX Runtime's position may be off TensorFlow's: a tenth of the proof's tolerance."""


def convert(builder: Builder, node: Any) -> Tensor:
    """Return the resized image, in float32."""
    image, grid = Image(builder, node), grid_of(node)
    data = image.in_float()
    lengths = [image.known(axis) for axis in (0, 1)]
    if all(known is not None and known[0] == known[1] for known in lengths):
        return data
    if all(known is None or agrees(grid, *known) for known in lengths) and not is_rounded(builder.ctx, node.output[0]):
        return image.resize(data, {"mode": "linear", "coordinate_transformation_mode": onnx_transformation(grid)})
    for axis in (1, 0):
        data = _mixed(data, grid, axis + 1, image.sizes[axis], image.counts[axis])
    return data


def agrees(grid: Grid, size: int, count: int) -> bool:
    """Whether ONNX Runtime samples where TensorFlow does, and both where exact arithmetic would."""
    builder = Builder(None, "")
    positions = grid.positions(builder.integers(size), builder.integers(count)).array
    assert positions is not None
    exact = np.array([float(position) for position in exact_positions(grid, size, count)])
    return all(
        float(np.abs(np.clip(other, 0, size - 1) - np.clip(positions, 0, size - 1)).max(initial=0)) <= _NEGLIGIBLE
        for other in (exact, onnx_positions(grid, size, count).astype(np.float64))
    )


def _mixed(data: Tensor, grid: Grid, axis: int, size: Tensor, count: Tensor) -> Tensor:
    """Return ``data`` resized along ``axis`` in the order of TensorFlow's own arithmetic, equal to the last bit."""
    if size.known is not None and size.known == count.known:
        return data
    lower, upper, fraction = sampling.linear_taps(grid, size, count)
    begin, end = data.take(lower, axis), data.take(upper, axis)
    return begin + (end - begin) * fraction.reshape([-1, *[1] * (3 - axis)])
