"""What the handlers of windowed operators share: attributes along the spatial axes, and the positions of windows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from padfix.geometry.padding import effective_kernel
from padfix.sources.tf_ops.tensor import FLOAT, INTEGER, Builder, Tensor, count_up

Pair = tuple[int, int]


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


def window_positions(size: Tensor, taps: int, stride: int, rate: int, padding: str, explicit: Pair = (0, 0)) -> Tensor:
    """Return the input position of each tap of each window along an axis, [windows, taps], as float32."""
    builder = size.builder
    span = effective_kernel(taps, rate)
    tap = builder.floats(np.arange(taps) * rate)
    if padding == "SAME":
        count = (size + (stride - 1)) / stride
        total = ((count - 1) * stride + span - size).cast(FLOAT).maximum(0.0)
        return count_up(builder, count).reshape([-1, 1]) * float(stride) + tap - (total * 0.5).floor()
    count = (size + (sum(explicit) - span + stride)) / stride
    return count_up(builder, count).reshape([-1, 1]) * float(stride) + tap - float(explicit[0])


def source_positions(
    size: Tensor, result: Tensor, taps: int, stride: int, rate: int, padding: str, explicit: Pair = (0, 0)
) -> Tensor:
    """Return the input position whose tap adds to each element of a transposed convolution's result.

    [result, taps], as float32. Where no input element does, the position is no whole number or off the input.
    """
    builder = size.builder
    begin = builder.floats(float(explicit[0]))
    if padding == "SAME":
        span = effective_kernel(taps, rate)
        begin = (((size - 1) * stride + span - result).cast(FLOAT).maximum(0.0) * 0.5).floor()
    reached = count_up(builder, result).reshape([-1, 1]) + begin - builder.floats(np.arange(taps) * rate)
    return reached / float(stride)


def within(position: Tensor, size: Tensor) -> Tensor:
    """Return whether each position lies between the first and the last element of an axis of length ``size``."""
    return position.less(0.0).negated() & position.greater((size - 1).cast(FLOAT)).negated()


def clamped(position: Tensor, size: Tensor) -> Tensor:
    """Return positions on the axis, its ends for those off it."""
    return position.maximum(0.0).minimum((size - 1).cast(FLOAT))


def inside(position: Tensor, size: Tensor) -> Tensor:
    """Return whether each position is an element of an axis of length ``size``."""
    return within(position, size) & position.floor().equal(position)


def lay_out(
    image: Tensor, positions: Sequence[Tensor], sizes: Sequence[Tensor], taps: Sequence[int], outside: Any
) -> Tensor:
    """Return what each tap of each window reads, [batch, windows, taps, windows, taps, ..., channels].

    Args:
        image: [batch, *spatial, channels].
        positions: For each spatial axis the positions, [windows, taps].
        sizes: Lengths of the spatial axes.
        taps: Numbers of taps along them.
        outside: What taps off the image read; None where there are none.
    """
    result = image
    for axis in reversed(range(len(positions))):
        result = result.take(clamped(positions[axis].floor(), sizes[axis]).cast(INTEGER), axis + 1)
    if outside is None:
        return result
    seen: Tensor | None = None
    for axis, position in enumerate(positions):
        later = 2 * (len(positions) - 1 - axis) + 1
        mask = inside(position, sizes[axis]).reshape([-1, taps[axis], *[1] * later])
        seen = mask if seen is None else seen & mask
    assert seen is not None
    return image.builder.choose(seen, result, outside)


def taps_together(laid: Tensor, spatial: int) -> Tensor:
    """Return what :func:`lay_out` laid out as [batch, windows..., taps..., channels]."""
    axes = range(spatial)
    return laid.transpose(
        [0, *(2 * axis + 1 for axis in axes), *(2 * axis + 2 for axis in axes), 2 * spatial + 1],
    )


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
