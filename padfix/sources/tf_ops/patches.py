"""ExtractImagePatches and ExtractVolumePatches (``tf.image.extract_patches``): windows laid side by side as channels.

A patch holds its taps row by row, the channels of each together. Taps in the padding are zero.
"""

from __future__ import annotations

from typing import Any

from padfix.sources.tf_ops.tensor import Builder, Tensor
from padfix.sources.tf_ops.windows import lay_out, taps_together, window_positions

OPERATORS = ("ExtractImagePatches", "ExtractVolumePatches")


def convert(builder: Builder, node: Any) -> Tensor:
    """Return windows gathered along each spatial axis."""
    image = builder.read(node.input[0])
    taps, strides = (list(node.get_attr(attribute).ints)[1:-1] for attribute in ("ksizes", "strides"))
    rates = list(node.get_attr("rates").ints)[1:-1] if node.get_attr("rates") else [1] * len(taps)
    padding = node.get_attr_str("padding")
    axes = range(len(taps))
    sizes = image.lengths([axis + 1 for axis in axes])
    positions = [window_positions(sizes[axis], taps[axis], strides[axis], rates[axis], padding) for axis in axes]
    laid = lay_out(image, positions, sizes, taps, None if padding == "VALID" else 0)
    batch, channels = image.lengths((0, len(taps) + 1))
    for count in taps:
        channels = channels * count
    windows = [position.lengths((0,))[0] for position in positions]
    return taps_together(laid, len(taps)).reshape([batch, *windows, channels])
