"""Windows in element types for which ONNX or ONNX Runtime has no window operator, written out tap by tap.

Pools of 64-bit integers and convolutions of 32-bit ones have no ONNX form, and ONNX Runtime convolves and averages no
float64. What every tap reads is gathered side by side, and one ReduceMax, ReduceSum or MatMul in the very type makes
the result: exact, at the price of memory for the gathered taps. tf2onnx takes the integers through float32 or writes
models that don't load.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from padfix.sources.tf_ops.tensor import Builder, Tensor
from padfix.sources.tf_ops.windows import (
    channels_last,
    explicit_paddings,
    inside,
    known_taps,
    lay_out,
    lowest,
    reduce,
    source_positions,
    spatial_attribute,
    taps_together,
    wanted_positions,
    window_positions,
)

_PREFIX = "Gathered"
_POOLS = {"MaxPool": 2, "MaxPoolV2": 2, "MaxPool3D": 3, "AvgPool": 2, "AvgPool3D": 3}
_CONVOLUTIONS = {"Conv2D": 2, "Conv3D": 3, "DepthwiseConv2dNative": 2}
_GRADIENTS = {"Conv2DBackpropInput": 2, "Conv3DBackpropInputV2": 3, "DepthwiseConv2dNativeBackpropInput": 2}
_SPATIAL = _POOLS | _CONVOLUTIONS | _GRADIENTS
_TYPES = {
    **dict.fromkeys(("MaxPool", "MaxPoolV2", "MaxPool3D"), frozenset({"int64", "uint64"})),
    **dict.fromkeys(("AvgPool", "AvgPool3D"), frozenset({"float64"})),
    **dict.fromkeys((*_CONVOLUTIONS, *_GRADIENTS), frozenset({"float64", "int32", "int64"})),
}

OPERATORS = tuple(f"{_PREFIX}{operator}" for operator in _SPATIAL)


def rename(ctx: Any, nodes: Sequence[Any]) -> Sequence[Any]:
    """Give the nodes of those types an operator of their own: a tf2onnx rewriter, run before operators are mapped."""
    from tf2onnx import utils

    for node in nodes:
        wanted = _TYPES.get(node.type)
        dtype = ctx.get_dtype(node.output[0]) if wanted else None
        if wanted and dtype is not None and np.dtype(utils.map_onnx_to_numpy_type(dtype)).name in wanted:
            node.type = f"{_PREFIX}{node.type}"
    return list(ctx.get_nodes())


def convert(builder: Builder, node: Any) -> Tensor:
    """Return the windows of ``node``, gathered and reduced."""
    operator = node.type.removeprefix(_PREFIX)
    spatial, last = _SPATIAL[operator], channels_last(node)
    image = builder.read(node.input[2 if operator in _GRADIENTS else 0])
    if not last:
        image = image.transpose([0, *range(2, spatial + 2), 1])
    window = _Window(builder, node, image, spatial)
    if operator in _POOLS:
        result = window.pooled(largest=operator.startswith("Max"))
    else:
        depthwise = operator.startswith("Depthwise")
        kernel = builder.read(node.input[1])
        window.taps = known_taps(node, kernel, spatial)
        if operator in _GRADIENTS:
            laid = window.read_by_result(builder.read(node.input[0]))
            result = window.spread(laid, kernel) if depthwise else window.multiplied(laid, _swapped(kernel, spatial))
        else:
            laid = window.read(0)
            result = window.scaled(laid, kernel) if depthwise else window.multiplied(laid, kernel)
    if not last:
        result = result.transpose([0, spatial + 1, *range(1, spatial + 1)])
    return result


def _swapped(kernel: Tensor, spatial: int) -> Tensor:
    return kernel.transpose([*range(spatial), spatial + 1, spatial])


class _Window:
    """A window over an image with its channels last."""

    def __init__(self, builder: Builder, node: Any, image: Tensor, spatial: int) -> None:
        self._builder, self._node, self._image, self._spatial = builder, node, image, spatial
        self._sizes = image.lengths(range(1, spatial + 1))
        self._padding = node.get_attr_str("padding")
        self._explicit = explicit_paddings(node, spatial)
        self._strides = spatial_attribute(node, "strides", spatial)
        self._rates = spatial_attribute(node, "dilations", spatial)
        self.taps: list[int] = []
        self._kept: list[Tensor] = []

    def read(self, outside: Any) -> Tensor:
        """Return what each tap of each window reads, [batch, windows, taps, ..., channels]."""
        return self._lay_out(self._positions(), None if self._padding == "VALID" else outside)

    def _lay_out(self, positions: list[Tensor], outside: Any) -> Tensor:
        # Lengths of the axes that the result keeps. Not zeros in a Reshape, which would copy them: tf2onnx drops a
        # Transpose before a Reshape when it moves only axes of length one, and the zeros would copy others.
        self._kept = [self._image.lengths((0,))[0], *(position.lengths((0,))[0] for position in positions)]
        return lay_out(self._image, positions, self._sizes, self.taps, outside)

    def _positions(self) -> list[Tensor]:
        return [window_positions(size, *window) for size, window in zip(self._sizes, self._windows(), strict=True)]

    def _windows(self) -> list[tuple[int, int, int, str, tuple[int, int]]]:
        paddings = [self._padding] * self._spatial
        return list(zip(self.taps, self._strides, self._rates, paddings, self._explicit, strict=True))

    def read_by_result(self, wanted: Tensor) -> Tensor:
        """Return what each tap adds to each element of a gradient of the shape ``wanted``, in the same layout."""
        places = wanted_positions(self._node, wanted, self._spatial)
        positions = [
            source_positions(size, wanted.take(place).cast(np.int64), *window)
            for size, place, window in zip(self._sizes, places, self._windows(), strict=True)
        ]
        return self._lay_out(positions, 0)

    def pooled(self, *, largest: bool) -> Tensor:
        """Return the largest element, or the mean of the elements, of each window; padding takes no part."""
        kernel, strides = (self._given(position, name) for position, name in ((1, "ksize"), (2, "strides")))
        self.taps, self._strides = kernel, strides
        axes = [2 * (axis + 1) for axis in range(self._spatial)]
        if largest:
            return reduce("ReduceMax", self.read(lowest(self._image.dtype)), axes)
        sums = reduce("ReduceSum", self.read(0), axes)
        for axis, (position, size) in enumerate(zip(self._positions(), self._sizes, strict=True)):
            counts = reduce("ReduceSum", inside(position, size).cast(self._image.dtype), [1])
            sums = sums / counts.reshape([-1, *[1] * (self._spatial - axis)])
        return sums

    def multiplied(self, laid: Tensor, kernel: Tensor) -> Tensor:
        """Return a convolution with ``kernel``, [*taps, channels of a group, results], from what the taps read."""
        channels, results = (length.known for length in kernel.lengths((self._spatial, self._spatial + 1)))
        total = self._image.lengths((self._spatial + 1,))[0].known
        if channels is None or results is None:
            raise ValueError(f"the filter of {self._node.name} has no known size")
        groups = 1 if total is None else total // channels
        keep = self._kept
        taps_last = taps_together(laid, self._spatial)
        count = int(np.prod(self.taps))
        if groups == 1:
            return taps_last.reshape([*keep, count * channels]).matmul(kernel.reshape([-1, results]))
        # Groups first on both sides: ONNX Runtime broadcasts no product over an empty batch.
        windows = keep[0]
        for each in keep[1:]:
            windows = windows * each
        rows = taps_last.reshape([windows, count, groups, channels]).transpose([2, 0, 1, 3])
        columns = kernel.reshape([count * channels, groups, results // groups]).transpose([1, 0, 2])
        products = rows.reshape([groups, windows, count * channels]).matmul(columns)
        return products.transpose([1, 0, 2]).reshape([*keep, results])

    def scaled(self, laid: Tensor, kernel: Tensor) -> Tensor:
        """Return a depthwise convolution with ``kernel``, [*taps, channels, results of a channel]."""
        products = self._products(laid, kernel, 1)
        channels, results = kernel.lengths((self._spatial, self._spatial + 1))
        return reduce("ReduceSum", products, [self._spatial + 1]).reshape([*self._kept, channels * results])

    def spread(self, laid: Tensor, kernel: Tensor) -> Tensor:
        """Return the gradient of a depthwise convolution."""
        results = kernel.lengths((self._spatial + 1,))[0]
        products = self._products(laid, kernel, results)
        return reduce("ReduceSum", products, [self._spatial + 1, self._spatial + 3])

    def _products(self, laid: Tensor, kernel: Tensor, last: int | Tensor) -> Tensor:
        channels, results = kernel.lengths((self._spatial, self._spatial + 1))
        count = int(np.prod(self.taps))
        data = taps_together(laid, self._spatial).reshape([*self._kept, count, channels, last])
        return data * kernel.reshape([count, channels, results])

    def _given(self, position: int, attribute: str) -> list[int]:
        """Return an attribute that MaxPoolV2 has as an input."""
        if len(self._node.input) < 3:
            return spatial_attribute(self._node, attribute, self._spatial)
        values = self._builder.read(self._node.input[position]).array
        if values is None:
            raise ValueError(f"{self._node.name} computes its {attribute}")
        first = 1 if channels_last(self._node) else 2
        return [int(value) for value in values[first : first + self._spatial]]
