"""Dilation2D, greyscale morphology (``tf.nn.dilation2d``; ``tf.nn.erosion2d`` by way of negations); tf2onnx lacks it.

An output is the largest of ``input + filter`` over its window. Taps outside the image don't take part.
"""

from __future__ import annotations

from typing import Any

from padfix.sources.tf_ops.tensor import Builder, Tensor
from padfix.sources.tf_ops.windows import Window, known_taps, lowest, reduce

OPERATORS = ("Dilation2D",)


def convert(builder: Builder, node: Any) -> Tensor:
    """Return one maximum over each of the windows, which are gathered side by side."""
    image, kernel = (builder.read(name) for name in node.input)
    window = Window(node, image, known_taps(node, kernel, 2), rates="rates")
    height, width = window.taps
    # [batch, rows, height, columns, width, channels]
    sums = window.read(None) + kernel.reshape([height, 1, width, -1])
    if node.get_attr_str("padding") == "SAME":
        sums = window.where_inside(sums, lowest(image.dtype), window.positions())
    return reduce("ReduceMax", sums, (2, 4))
