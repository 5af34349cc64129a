"""What the handlers of windowed operators share: attributes along the spatial axes, and the positions of windows."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from padfix.geometry.padding import effective_kernel
from padfix.sources.tf_ops.tensor import FLOAT, INTEGER, Builder, Tensor, count_up

Pair = tuple[int, int]

CONVOLUTIONS = {"Conv2D": 2, "Conv3D": 3, "DepthwiseConv2dNative": 2}
"""TensorFlow's convolutions, and how many spatial axes they have."""
GRADIENTS = {"Conv2DBackpropInput": 2, "Conv3DBackpropInputV2": 3, "DepthwiseConv2dNativeBackpropInput": 2}
"""Their gradients by the input, which are transposed convolutions."""


def channels_last(node: Any) -> bool:
    """Whether the node keeps channels on the last axis, which is the default."""
    return not str(node.data_format).startswith("NC")


def spatial_attribute(node: Any, attribute: str, spatial: int) -> list[int]:
    """Return the entries of a list attribute that are for the spatial axes; ones where it is left out."""
    first = 1 if channels_last(node) else 2
    found = node.get_attr(attribute)
    return list(found.ints)[first : first + spatial] if found and len(found.ints) > spatial else [1] * spatial


def explicit_paddings(node: Any, spatial: int) -> list[Pair]:
    """Return begin and end of each spatial axis; zeros unless the padding is EXPLICIT."""
    if node.get_attr_str("padding") != "EXPLICIT":
        return [(0, 0)] * spatial
    first = 1 if channels_last(node) else 2
    values = list(node.get_attr("explicit_paddings").ints)
    return [(values[2 * axis], values[2 * axis + 1]) for axis in range(first, first + spatial)]


def known_taps(node: Any, kernel: Tensor, spatial: int) -> list[int]:
    """Return the lengths of a filter along its spatial axes, which are its first.

    Raises:
        ValueError: One is not known.
    """
    taps = [length.known for length in kernel.lengths(range(spatial))]
    if not all(taps):
        raise ValueError(f"the filter of {node.name} has no known size")
    return [tap or 0 for tap in taps]


def wanted_positions(node: Any, wanted: Tensor, spatial: int) -> list[int]:
    """Return where the spatial sizes stand in the shape, or list of sizes, that a gradient is to have."""
    is_short = wanted.builder.ctx.get_shape(wanted.name) == [spatial]
    first = 0 if is_short else 1 if channels_last(node) else 2
    return list(range(first, first + spatial))


def within(position: Tensor, size: Tensor) -> Tensor:
    """Return whether each position lies between the first and the last element of an axis of length ``size``."""
    return position.less(0.0).negated() & position.greater((size - 1).cast(FLOAT)).negated()


def clamped(position: Tensor, size: Tensor) -> Tensor:
    """Return positions on the axis, its ends for those off it."""
    return position.maximum(0.0).minimum((size - 1).cast(FLOAT))


def inside(position: Tensor, size: Tensor) -> Tensor:
    """Return whether each position is an element of an axis of length ``size``."""
    return within(position, size) & position.floor().equal(position)


class Window:
    """A window over an image, [batch, *spatial, channels], and what its taps read.

    Attributes:
        image: The image.
        taps: Numbers of taps along the spatial axes.
        strides: How far it moves.
        sizes: Lengths of the spatial axes.
        kept: Lengths of the axes that a result keeps, batch and windows, once something was read. Not zeros in a
            Reshape, which would copy them: tf2onnx drops a Transpose before a Reshape when it moves only axes of length
            one, and the zeros would copy others.
    """

    def __init__(self, node: Any, image: Tensor, taps: Sequence[int], rates: str = "dilations") -> None:
        self.node, self.image, self.taps, self.spatial = node, image, list(taps), len(taps)
        self.sizes = image.lengths(range(1, self.spatial + 1))
        self.strides = spatial_attribute(node, "strides", self.spatial)
        self.kept: list[Tensor] = []
        self._padding = node.get_attr_str("padding")
        self._explicit = explicit_paddings(node, self.spatial)
        self._rates = spatial_attribute(node, rates, self.spatial)

    def positions(self) -> list[Tensor]:
        """Return the input position of each tap of each window along each axis, [windows, taps], as float32."""
        found = []
        for axis, size in enumerate(self.sizes):
            taps, stride, (before, after) = self.taps[axis], self.strides[axis], self._explicit[axis]
            span, builder = effective_kernel(taps, self._rates[axis]), size.builder
            begin = builder.floats(float(before))
            if self._padding == "SAME":
                count = (size + (stride - 1)) / stride
                begin = (((count - 1) * stride + span - size).cast(FLOAT).maximum(0.0) * 0.5).floor()
            else:
                count = (size + (before + after - span + stride)) / stride
            tap = builder.floats(np.arange(taps) * self._rates[axis])
            found.append(count_up(builder, count).reshape([-1, 1]) * float(stride) + tap - begin)
        return found

    def read(self, outside: Any) -> Tensor:
        """Return what each tap of each window reads, [batch, windows, taps, windows, taps, ..., channels].

        Taps off the image read ``outside``, or the nearest element where that is None.
        """
        return self._lay_out(self.positions(), None if self._padding == "VALID" else outside)

    def read_by_result(self, wanted: Tensor) -> Tensor:
        """Return what each tap adds to each element of a gradient of the shape ``wanted``, in the same layout."""
        positions = []
        for axis, place in enumerate(wanted_positions(self.node, wanted, self.spatial)):
            size, taps, stride, rate = self.sizes[axis], self.taps[axis], self.strides[axis], self._rates[axis]
            result, builder = wanted.take(place).cast(INTEGER), size.builder
            begin = builder.floats(float(self._explicit[axis][0]))
            if self._padding == "SAME":
                span = effective_kernel(taps, rate)
                begin = (((size - 1) * stride + span - result).cast(FLOAT).maximum(0.0) * 0.5).floor()
            reached = count_up(builder, result).reshape([-1, 1]) + begin - builder.floats(np.arange(taps) * rate)
            # Where no input element adds to the result, this is no whole number or off the input.
            positions.append(reached / float(stride))
        return self._lay_out(positions, 0)

    def _lay_out(self, positions: Sequence[Tensor], outside: Any) -> Tensor:
        self.kept = [self.image.lengths((0,))[0], *(position.lengths((0,))[0] for position in positions)]
        result = self.image
        for axis in reversed(range(self.spatial)):
            result = result.take(clamped(positions[axis].floor(), self.sizes[axis]).cast(INTEGER), axis + 1)
        return result if outside is None else self.where_inside(result, outside, positions)

    def where_inside(self, laid: Tensor, outside: Any, positions: Sequence[Tensor]) -> Tensor:
        """Return what was laid out, with ``outside`` for the taps off the image."""
        masks = [
            inside(position, size).reshape([-1, taps, *[1] * (2 * (self.spatial - axis) - 1)])
            for axis, (position, size, taps) in enumerate(zip(positions, self.sizes, self.taps, strict=True))
        ]
        return laid.builder.choose(functools.reduce(Tensor.__and__, masks), laid, outside)

    def taps_together(self, laid: Tensor) -> Tensor:
        """Return what was laid out as [batch, windows..., taps..., channels]."""
        axes = range(self.spatial)
        order = [*(2 * axis + 1 for axis in axes), *(2 * axis + 2 for axis in axes)]
        return laid.transpose([0, *order, 2 * self.spatial + 1])


def reduce(operator: str, tensor: Tensor, axes: Sequence[int]) -> Tensor:
    """Return ``tensor`` reduced along ``axes``, which are dropped."""
    builder: Builder = tensor.builder
    as_input = 13 if operator == "ReduceSum" else 18
    if builder.ctx.opset < as_input:
        return builder.node(operator, [tensor], tensor.dtype, {"axes": list(axes), "keepdims": 0})
    return builder.node(operator, [tensor, builder.integers(list(axes))], tensor.dtype, {"keepdims": 0})


def lowest(dtype: np.dtype[Any]) -> float | int:
    """Return the smallest number of a type."""
    return int(np.iinfo(dtype).min) if dtype.kind in "iu" else float(np.finfo(dtype).min)
