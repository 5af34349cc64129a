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
from dataclasses import dataclass
from typing import Any

import numpy as np

from padfix.geometry.padding import effective_kernel, same_output_size
from padfix.geometry.transposed import natural_output_size
from padfix.graph.dependence import reached
from padfix.sources.tf_ops.tensor import INTEGER, Builder, Tensor, join
from padfix.sources.tf_ops.windows import (
    GRADIENTS,
    channels_last,
    explicit_paddings,
    spatial_attribute,
    wanted_positions,
)

OPERATORS = tuple(GRADIENTS)

_TAKES_APART = frozenset({"Cast", "Concat", "Gather", "Identity", "Reshape", "Slice", "Squeeze", "Unsqueeze"})
"""What takes lengths out of shapes and puts them together."""


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
    spatial = GRADIENTS[node.type]
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
    result = _cut(result, wanted, _Sizes(places, sizes, [each[0] for each in explicit], output_padding), padding)
    batch = _other_batch(node, wanted, places)
    if batch is not None:
        result = _with_batch(result, batch, spatial + 2)
    if last:
        result = result.transpose([0, *range(2, spatial + 2), 1])
    return result


@dataclass(frozen=True)
class _Sizes:
    """Along each spatial axis: where its size stands, the size where it is constant, and what is cut off and added."""

    places: Sequence[int]
    known: Sequence[int | None]
    before: Sequence[int]
    added: Sequence[int]


def _cut(result: Tensor, wanted: Tensor, sizes: _Sizes, padding: str) -> Tensor:
    """Return an unpadded result cut to the sizes that are computed."""
    free = [axis for axis, size in enumerate(sizes.known) if size is None]
    if not free:
        return result
    builder = result.builder
    size_then = wanted.take(np.array([sizes.places[axis] for axis in free])).cast(INTEGER)
    axes = np.array([2 + axis for axis in free])
    starts = builder.integers([sizes.before[axis] for axis in free])
    if padding == "SAME":
        surplus = result.shape().take(axes) - np.array([sizes.added[axis] for axis in free]) - size_then
        # max(0, t) as (t + |t|) / 2, which every opset has for integers.
        starts = (surplus + surplus.absolute()) / 4
    return builder.node("Slice", [result, starts, starts + size_then, builder.integers(axes)], result.dtype)


def _other_batch(node: Any, wanted: Tensor, places: Sequence[int]) -> Tensor | None:
    """Return the batch that the result is to have, where nothing says that it is the data's.

    TensorFlow refuses another than the data's, but not where one of the two is empty.
    """
    ctx, data = wanted.builder.ctx, node.input[2]
    if places[0] == 0:
        return None
    batch, known = wanted.take(0).cast(INTEGER), ctx.get_shape(data)
    if batch.known is not None and known and known[0] == batch.known:
        return None
    source = ctx.get_node_by_output(wanted.name)
    while source is not None and source.type in _TAKES_APART:
        source = ctx.get_node_by_output(source.input[0])
    if source is not None and source.type == "Shape" and _is_made_of(ctx, data, source.input[0]):
        return None
    return batch


def _is_made_of(ctx: Any, name: str, other: str) -> bool:
    """Whether a tensor is another one, or is computed from it."""

    def read_by(found: str) -> list[str]:
        node = ctx.get_node_by_output(found)
        return [] if node is None else list(node.input)

    return other in reached([name], read_by)


def _with_batch(result: Tensor, batch: Tensor, rank: int) -> Tensor:
    """Return a result with another batch: none of its rows, or zeros where it has none."""
    builder = result.builder
    zeros = builder.choose(result.lengths([0])[0].equal(0), batch, 0)
    pads = join(builder, [*[0] * rank, zeros, *[0] * (rank - 1)])
    filled = builder.node("Pad", [result, pads], result.dtype)
    ends = [builder.integers([0]), batch.reshape([1]), builder.integers([0])]
    return builder.node("Slice", [filled, *ends], result.dtype)


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
