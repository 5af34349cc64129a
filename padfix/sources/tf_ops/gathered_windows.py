"""Windows in element types for which ONNX or ONNX Runtime has no window operator, written out tap by tap.

Pools of 64-bit integers and convolutions of 32-bit ones have no ONNX form, and ONNX Runtime convolves and averages no
float64. What every tap reads is gathered side by side, and one ReduceMax, ReduceSum or MatMul in the very type makes
the result: exact, at the price of memory for the gathered taps. tf2onnx takes the integers through float32 or writes
models that don't load.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from padfix.sources.tf_ops.tensor import Builder, Tensor
from padfix.sources.tf_ops.windows import (
    CONVOLUTIONS,
    GRADIENTS,
    Window,
    channels_last,
    inside,
    known_taps,
    lowest,
    reduce,
    spatial_attribute,
)

_PREFIX = "Gathered"
_POOLS = {"MaxPool": 2, "MaxPoolV2": 2, "MaxPool3D": 3, "AvgPool": 2, "AvgPool3D": 3}
_SPATIAL = _POOLS | CONVOLUTIONS | GRADIENTS
_TYPES = {
    **dict.fromkeys(("MaxPool", "MaxPoolV2", "MaxPool3D"), frozenset({"int64", "uint64"})),
    **dict.fromkeys(("AvgPool", "AvgPool3D"), frozenset({"float64"})),
    **dict.fromkeys((*CONVOLUTIONS, *GRADIENTS), frozenset({"float64", "int32", "int64"})),
}

OPERATORS = tuple(f"{_PREFIX}{operator}" for operator in _SPATIAL)


def rename(ctx: Any, nodes: Sequence[Any]) -> Sequence[Any]:
    """Give the nodes of those types an operator of their own, which no rewriter of tf2onnx knows; itself such a one."""
    from tf2onnx import utils

    for node in nodes:
        wanted = _TYPES.get(node.type)
        dtype = ctx.get_dtype(node.output[0]) if wanted else None
        if wanted and dtype is not None and np.dtype(utils.map_onnx_to_numpy_type(dtype)).name in wanted:
            node.type = f"{_PREFIX}{node.type}"
    return list(ctx.get_nodes())


def declare_ranks(ctx: Any) -> None:
    """Tell tf2onnx how many axes images have of which it knows nothing: each operator takes one number of them."""
    for node in ctx.get_nodes():
        spatial = _SPATIAL.get(node.type, 2 if node.type == "MaxPoolWithArgmax" else None)
        if spatial is not None and node.type not in GRADIENTS and ctx.get_shape(node.input[0]) is None:
            ctx.set_shape(node.input[0], [-1] * (spatial + 2))


def convert(builder: Builder, node: Any) -> Tensor:
    """Return the windows of ``node``, gathered and reduced."""
    operator = node.type.removeprefix(_PREFIX)
    spatial, last = _SPATIAL[operator], channels_last(node)
    image = builder.read(node.input[2 if operator in GRADIENTS else 0])
    if not last:
        image = image.transpose([0, *range(2, spatial + 2), 1])
    if operator in _POOLS:
        window = Window(node, image, _given(builder, node, "ksize", spatial))
        window.strides = _given(builder, node, "strides", spatial)
        result = _pooled(window, largest=operator.startswith("Max"))
    else:
        kernel = builder.read(node.input[1])
        window = Window(node, image, known_taps(node, kernel, spatial))
        is_gradient, depthwise = operator in GRADIENTS, operator.startswith("Depthwise")
        laid = window.taps_together(
            window.read_by_result(builder.read(node.input[0])) if is_gradient else window.read(0)
        )
        if depthwise:
            result = _spread(window, laid, kernel) if is_gradient else _scaled(window, laid, kernel)
        else:
            swapped = kernel.transpose([*range(spatial), spatial + 1, spatial])
            result = _multiplied(window, laid, swapped if is_gradient else kernel)
    if not last:
        result = result.transpose([0, spatial + 1, *range(1, spatial + 1)])
    return result


def _given(builder: Builder, node: Any, attribute: str, spatial: int) -> list[int]:
    """Return an attribute that MaxPoolV2 has as an input."""
    if len(node.input) < 3:
        return spatial_attribute(node, attribute, spatial)
    values = builder.read(node.input[1 if attribute == "ksize" else 2]).array
    if values is None:
        raise ValueError(f"{node.name} computes its {attribute}")
    first = 1 if channels_last(node) else 2
    return [int(value) for value in values[first : first + spatial]]


def _pooled(window: Window, *, largest: bool) -> Tensor:
    """Return the largest element, or the mean of the elements, of each window; padding takes no part."""
    axes, dtype = [2 * (axis + 1) for axis in range(window.spatial)], window.image.dtype
    if largest:
        return reduce("ReduceMax", window.read(lowest(dtype)), axes)
    sums = reduce("ReduceSum", window.read(0), axes)
    for axis, (position, size) in enumerate(zip(window.positions(), window.sizes, strict=True)):
        counts = reduce("ReduceSum", inside(position, size).cast(dtype), [1])
        sums = sums / counts.reshape([-1, *[1] * (window.spatial - axis)])
    return sums


def _multiplied(window: Window, laid: Tensor, kernel: Tensor) -> Tensor:
    """Return a convolution with ``kernel``, [*taps, channels of a group, results], from what the taps read."""
    channels, results = (length.known for length in kernel.lengths((window.spatial, window.spatial + 1)))
    total = window.image.lengths((window.spatial + 1,))[0].known
    if channels is None or results is None:
        raise ValueError(f"the filter of {window.node.name} has no known size")
    groups = 1 if total is None else total // channels
    keep, count = window.kept, math.prod(window.taps)
    if groups == 1:
        return laid.reshape([*keep, count * channels]).matmul(kernel.reshape([-1, results]))
    # Groups first on both sides: ONNX Runtime broadcasts no product over an empty batch.
    windows = functools.reduce(Tensor.__mul__, keep)
    rows = laid.reshape([windows, count, groups, channels]).transpose([2, 0, 1, 3])
    columns = kernel.reshape([count * channels, groups, results // groups]).transpose([1, 0, 2])
    products = rows.reshape([groups, windows, count * channels]).matmul(columns)
    return products.transpose([1, 0, 2]).reshape([*keep, results])


def _scaled(window: Window, laid: Tensor, kernel: Tensor) -> Tensor:
    """Return a depthwise convolution with ``kernel``, [*taps, channels, results of a channel]."""
    channels, results = kernel.lengths((window.spatial, window.spatial + 1))
    sums = reduce("ReduceSum", _products(window, laid, kernel, 1), [window.spatial + 1])
    return sums.reshape([*window.kept, channels * results])


def _spread(window: Window, laid: Tensor, kernel: Tensor) -> Tensor:
    """Return the gradient of a depthwise convolution."""
    results = kernel.lengths((window.spatial + 1,))[0]
    return reduce("ReduceSum", _products(window, laid, kernel, results), [window.spatial + 1, window.spatial + 3])


def _products(window: Window, laid: Tensor, kernel: Tensor, last: int | Tensor) -> Tensor:
    channels, results = kernel.lengths((window.spatial, window.spatial + 1))
    count = math.prod(window.taps)
    return laid.reshape([*window.kept, count, channels, last]) * kernel.reshape([count, channels, results])
