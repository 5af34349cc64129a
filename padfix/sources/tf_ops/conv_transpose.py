"""The gradients of convolutions by their input, used as transposed convolutions: plain, grouped and depthwise.

TensorFlow is told the size of the result. An element of the input at ``i`` adds to the result at
``i * stride + tap * dilation - begin``, where ``begin`` is the begin padding of the forward convolution; what no tap
reaches is zero. ConvTranspose says the same with ``pads`` and ``output_padding`` once the size is known. Where it is
only known at run time, the unpadded ConvTranspose is cut to size by a Slice.

tf2onnx itself writes ``output_shape`` without ``auto_pad`` (one element off for odd totals), negative pads when the
stride exceeds the kernel, ignores groups and explicit paddings, and lacks the depthwise one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from padfix.geometry.padding import effective_kernel, same_output_size
from padfix.geometry.transposed import natural_output_size
from padfix.sources.tf_ops.tensor import INTEGER, Builder, Tensor
from padfix.sources.tf_ops.windows import (
    channels_last,
    explicit_paddings,
    spatial_attribute,
    wanted_positions,
)

OPERATORS = ("Conv2DBackpropInput", "Conv3DBackpropInputV2", "DepthwiseConv2dNativeBackpropInput")


def begin_padding(padding: str, explicit: tuple[int, int], natural: int, output: int) -> int:
    """Return how many elements of the unpadded result are cut off at its begin."""
    if padding == "SAME":
        return max(0, natural - output) // 2
    return explicit[0] if padding == "EXPLICIT" else 0


def input_size(padding: str, explicit: tuple[int, int], output: int, span: int, stride: int) -> int:
    """Return the only input size that TensorFlow accepts for a result of size ``output``."""
    if padding == "SAME":
        return same_output_size(output, stride)
    padded = output + (sum(explicit) if padding == "EXPLICIT" else 0)
    return (padded - span) // stride + 1


def convert(builder: Builder, node: Any) -> Tensor:
    """Return a ConvTranspose between transposes, with a Slice where needed."""
    spatial = 3 if node.type == "Conv3DBackpropInputV2" else 2
    wanted, kernel, data, *bias = (builder.read(each) for each in node.input[:4])  # tf2onnx makes a BiasAdd the fourth
    shape = builder.ctx.get_shape(node.input[1]) or [-1] * (spatial + 2)
    taps = [length if length >= 0 else None for length in shape[:spatial]]
    padding, explicit = node.get_attr_str("padding"), explicit_paddings(node, spatial)
    strides, dilations = (spatial_attribute(node, attribute, spatial) for attribute in ("strides", "dilations"))
    places = wanted_positions(node, wanted, spatial)
    sizes = [
        size if length is not None else None for size, length in zip(_known_sizes(wanted, places), taps, strict=True)
    ]

    pads = [0] * (2 * spatial)
    output_padding = [0] * spatial
    for axis, (size, length_of_taps) in enumerate(zip(sizes, taps, strict=True)):
        span = effective_kernel(length_of_taps or 1, dilations[axis])
        if size is None or length_of_taps is None:
            # The longest tail that TensorFlow can ask for; the Slice cuts what is too much of it.
            output_padding[axis] = max(0, strides[axis] - (span if padding == "SAME" else 1 + explicit[axis][1]))
            continue
        length = input_size(padding, explicit[axis], size, span, strides[axis])
        natural = natural_output_size(length, length_of_taps, strides[axis], dilations[axis])
        begin = begin_padding(padding, explicit[axis], natural, size)
        end = natural - begin - size
        pads[axis], pads[spatial + axis] = begin, max(0, end)
        output_padding[axis] = max(0, -end)

    last, groups = channels_last(node), _groups(node, wanted, spatial)
    if last:
        data = data.transpose([0, spatial + 1, *range(1, spatial + 1)])
    attributes: dict[str, Any] = {"strides": strides, "dilations": dilations, "pads": pads}
    attributes |= {"kernel_shape": taps} if None not in taps else {}
    attributes |= {"group": groups} if groups != 1 else {}
    attributes |= {"output_padding": output_padding} if any(output_padding) else {}
    filters = _channels_first(kernel, spatial, depthwise=node.type.startswith("Depthwise"))
    result = builder.node("ConvTranspose", [data, filters, *bias], data.dtype, attributes)
    free = [axis for axis, size in enumerate(sizes) if size is None]
    if free:
        size_then = wanted.take(np.array([places[axis] for axis in free])).cast(INTEGER)
        axes = np.array([2 + axis for axis in free])
        starts = builder.integers([explicit[axis][0] for axis in free])
        if padding == "SAME":
            surplus = result.shape().take(axes) - np.array([output_padding[axis] for axis in free]) - size_then
            # max(0, t) as (t + |t|) / 2, which every opset has for integers.
            starts = (surplus + surplus.absolute()) / 4
        bounds = [starts, starts + size_then, builder.integers(axes)]
        result = builder.node("Slice", [result, *bounds], result.dtype)
    if last:
        result = result.transpose([0, *range(2, spatial + 2), 1])
    return result


def _known_sizes(wanted: Tensor, places: Sequence[int]) -> list[int | None]:
    """Return the wanted spatial sizes that are constant, read through the Concat that a Pack becomes."""
    if wanted.array is not None:
        return [wanted.take(place).known for place in places]
    joined = wanted.builder.producer(wanted.name)
    if joined is None or joined.type != "Concat" or len(joined.input) != len(places) + (2 if places[0] else 0):
        return [None] * len(places)
    producers = [wanted.builder.producer(joined.input[place]) for place in places]
    parts = [wanted.builder.read(each.output[0]).array if each is not None else None for each in producers]
    return [int(part.reshape(-1)[0]) if part is not None and part.size == 1 else None for part in parts]


def _groups(node: Any, wanted: Tensor, spatial: int) -> int:
    """Return how many groups the result's channels fall into, one where their number is not known."""
    ctx = wanted.builder.ctx
    shape = ctx.get_shape(node.input[1]) or [-1] * (spatial + 2)
    if node.type.startswith("Depthwise"):
        if shape[2] < 1:
            raise ValueError(f"the filter of {node.name} has no known number of channels")
        return int(shape[2])
    axis = spatial + 1 if channels_last(node) else 1
    result = (ctx.get_shape(node.output[0]) or [-1] * (spatial + 2))[axis]
    if result < 1 and wanted.array is not None and wanted.array.size > spatial:
        result = int(wanted.array[axis])
    return int(result // shape[spatial]) if result > 0 and shape[spatial] > 0 else 1


def _channels_first(kernel: Tensor, spatial: int, *, depthwise: bool) -> Tensor:
    """Return the filter as [input channels, output channels of a group, *taps]."""
    taps = range(spatial)
    if depthwise:
        first = kernel.transpose([spatial, spatial + 1, *taps])
        return first.reshape([-1, 1, *kernel.lengths(taps)])
    return kernel.transpose([spatial + 1, spatial, *taps])
