"""Where TensorFlow's resizes read, and with which weights, in float32 as its kernels compute them.

``size`` is the input's length and ``count`` the output's, both scalars. Matrices have the shape [count, size].
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from padfix.sources.tf_ops.tensor import FLOAT, Array, Tensor, count_up

_TABLE = 1024  # steps of TensorFlow's table of cubic weights


@dataclass(frozen=True)
class Grid:
    """How an output position becomes an input position.

    Attributes:
        align_corners: The centres of the outermost pixels coincide.
        half_pixel_centers: The outer edges of the outermost pixels coincide. Neither: their begins do.
    """

    align_corners: bool
    half_pixel_centers: bool

    def scale(self, size: Tensor, count: Tensor) -> Tensor:
        """Return input pixels an output pixel, as image_resizer_state.h computes it."""
        builder = size.builder
        plain = size.cast(FLOAT) / count.cast(FLOAT)
        if not self.align_corners:
            return plain
        steps = (count - 1).cast(FLOAT).maximum(1.0)
        return builder.choose(count.greater(1), (size - 1).cast(FLOAT) / steps, plain)

    def positions(self, size: Tensor, count: Tensor) -> Tensor:
        """Return the input position of each output pixel."""
        output = count_up(size.builder, count)
        scale = self.scale(size, count)
        return (output + 0.5) * scale - 0.5 if self.half_pixel_centers else output * scale


def nearest(grid: Grid, size: Tensor, count: Tensor) -> Tensor:
    """Return the input index of each output pixel, int64."""
    output, scale = count_up(size.builder, count), grid.scale(size, count)
    position = (output + 0.5) * scale if grid.half_pixel_centers else output * scale
    index = position.round_away() if grid.align_corners else position.floor()
    return index.minimum((size - 1).cast(FLOAT)).cast(np.int64)


def linear_taps(grid: Grid, size: Tensor, count: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return both input indices (int64) of each output pixel of ResizeBilinear and the part of the second."""
    position = grid.positions(size, count)
    whole = position.floor()
    upper = position.ceil().minimum((size - 1).cast(FLOAT))
    lower = whole.maximum(0.0).minimum(upper)
    return lower.cast(np.int64), upper.cast(np.int64), position - whole


def cubic_weights(grid: Grid, size: Tensor, count: Tensor) -> Tensor:
    """Return the matrix of ResizeBicubic.

    The weights come from a table of 1024 steps. With half-pixel centres the kernel is Keys' (a = -0.5), and taps
    outside the input get no weight; otherwise a = -0.75, and they read the edge.
    """
    builder = size.builder
    position = grid.positions(size, count)
    whole = position.floor()
    step = ((position - whole) * float(_TABLE)).round_even().cast(np.int64)
    back = step * -1 + _TABLE
    near, far = (builder.floats(table) for table in cubic_table(-0.5 if grid.half_pixel_centers else -0.75))
    taps = [
        (whole - 1.0, far.take(step)),
        (whole, near.take(step)),
        (whole + 1.0, near.take(back)),
        (whole + 2.0, far.take(back)),
    ]
    if grid.half_pixel_centers:
        return _normalised(_scatter(size, taps), size)
    last = (size - 1).cast(FLOAT)
    return _scatter(size, [(index.maximum(0.0).minimum(last), weight) for index, weight in taps])


def cubic_table(a: float) -> tuple[Array, Array]:
    """Return the weights of a tap at distance t and at distance 1 + t, for t = 0, 1/1024, ..., 1."""
    t = np.arange(_TABLE + 1, dtype=np.float32) / np.float32(_TABLE)
    near = ((np.float32(a + 2) * t - np.float32(a + 3)) * t * t + np.float32(1)).astype(np.float32)
    x = t + np.float32(1)
    far = ((np.float32(a) * x - np.float32(5 * a)) * x + np.float32(8 * a)) * x - np.float32(4 * a)
    return near, far.astype(np.float32)


def area_weights(grid: Grid, size: Tensor, count: Tensor) -> Tensor:
    """Return the matrix of ResizeArea: the part of each output pixel's box that each input pixel covers.

    With aligned corners the last boxes reach over the input's end; what is there is the last pixel's.
    """
    builder = size.builder
    # The corners of a single pixel are no distance apart; whatever the box, it holds that pixel.
    scale = grid.scale(size, count).maximum(1e-20)
    output = count_up(builder, count)
    begin = _column(output * scale)
    end = _column((output + 1.0) * scale)
    pixel = count_up(builder, size)
    beyond = (size.cast(FLOAT) + scale) * 2.0 + 2.0
    pixel_end = builder.choose(pixel.less((size - 1).cast(FLOAT)), pixel + 1.0, beyond)
    covered = (pixel_end.minimum(end) - pixel.maximum(begin)).maximum(0.0)
    # A box inside one pixel is `scale` wide; the difference of its ends is that only to within their rounding.
    inside = begin.less(pixel).negated() & pixel_end.less(end).negated()
    return builder.choose(inside, scale, covered) / scale


def _column(vector: Tensor) -> Tensor:
    return vector.reshape([-1, 1])


def _scatter(size: Tensor, taps: list[tuple[Tensor, Tensor]]) -> Tensor:
    """Return the matrix with each tap's weights at its indices; indices outside the input are dropped."""
    pixel = count_up(size.builder, size)
    parts = [size.builder.choose(_column(index).equal(pixel), _column(weight), 0.0) for index, weight in taps]
    return functools.reduce(Tensor.__add__, parts)


def _normalised(matrix: Tensor, size: Tensor) -> Tensor:
    """Return the matrix with rows that sum to one; rows of zeros stay."""
    builder = size.builder
    ones = count_up(builder, size) * 0.0 + 1.0
    sums = matrix.matmul(_column(ones))
    tiny = sums.absolute().less(1000 * float(np.finfo(np.float32).tiny))
    return matrix / builder.choose(tiny, 1.0, sums)


def _triangle(x: Tensor) -> Tensor:
    return (x * -1.0 + 1.0).maximum(0.0)


def _box(x: Tensor) -> Tensor:
    builder = x.builder
    return builder.choose(x.less(0.5), 1.0, builder.choose(x.equal(0.5), builder.floats(0.5), 0.0))


def _gaussian(x: Tensor) -> Tensor:
    return x.builder.choose(x.less(1.5), (x * x * -2.0).exponential(), 0.0)


def _keys_cubic(x: Tensor) -> Tensor:
    near = (x * 1.5 - 2.5) * x * x + 1.0
    far = ((x * -0.5 + 2.5) * x - 4.0) * x + 2.0
    return x.builder.choose(x.less(1.0), near, x.builder.choose(x.less(2.0), far, 0.0))


def _mitchell_cubic(x: Tensor) -> Tensor:
    near = (x * (7 / 6) - 2.0) * x * x + 8 / 9
    far = ((x * (-7 / 18) + 2.0) * x - 10 / 3) * x + 16 / 9
    return x.builder.choose(x.less(1.0), near, x.builder.choose(x.less(2.0), far, 0.0))


def _lanczos(radius: float) -> Callable[[Tensor], Tensor]:
    def kernel(x: Tensor) -> Tensor:
        pi = float(np.pi)
        inner = x.maximum(1e-3)
        wave = (inner * pi).sine() * (inner * pi / radius).sine() * radius
        weight = wave / (inner * inner * (pi * pi))
        outside = x.builder.choose(x.greater(radius), 0.0, weight)
        return x.builder.choose(x.greater(1e-3), outside, 1.0)

    return kernel


KERNELS: dict[str, tuple[float, Callable[[Tensor], Tensor]]] = {
    "lanczos1": (1.0, _lanczos(1.0)),
    "lanczos3": (3.0, _lanczos(3.0)),
    "lanczos5": (5.0, _lanczos(5.0)),
    "gaussian": (1.5, _gaussian),
    "box": (1.0, _box),
    "triangle": (1.0, _triangle),
    "keyscubic": (2.0, _keys_cubic),
    "mitchellcubic": (2.0, _mitchell_cubic),
}
"""How far taps are looked for, in pixels, and weight by distance of each ``kernel_type`` of ScaleAndTranslate."""


def filter_weights(
    kernel: str, antialias: bool, size: Tensor, count: Tensor, scale: Tensor, translation: Tensor
) -> Tensor:
    """Return the matrix of ScaleAndTranslate, where ``scale`` is output pixels an input pixel.

    With ``antialias`` the kernel is stretched when the image shrinks. Positions outside the image give zero.

    At some ratios (13 to 6) a pixel lies on the very edge of a kernel that does not end in zero. Whether it counts is
    then a matter of rounding, so the operations are those of scale_and_translate_op.cc, in their order.
    """
    builder = size.builder
    inverse = builder.floats(1.0) / scale
    shift = inverse * -1.0 * translation
    stretch = inverse.maximum(1.0) if antialias else builder.floats(1.0)
    # The same number as 1 / stretch. A product with a quotient of 1 becomes one division in ONNX Runtime's optimised
    # graphs, which rounds otherwise.
    shrink = (builder.floats(1.0) / inverse).minimum(1.0) if antialias else builder.floats(1.0)
    sample = (count_up(builder, count) + 0.5) * inverse + shift
    seen = sample.less(0.0).negated() & sample.greater(size.cast(FLOAT)).negated()
    radius, kernel_weight = KERNELS[kernel]
    reach, pixel = stretch * radius, count_up(builder, size)
    first = _column((sample - reach - 0.5).ceil())
    last = _column((sample + reach - 0.5).floor())
    reached = pixel.less(first).negated() & pixel.greater(last).negated()
    distance = (pixel + 0.5 - _column(sample)) * shrink
    weights = builder.choose(reached, kernel_weight(distance.absolute()), 0.0)
    return builder.choose(_column(seen), _normalised(weights, size), 0.0)
