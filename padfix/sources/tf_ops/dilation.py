"""Dilation2D, greyscale morphology (``tf.nn.dilation2d``; ``tf.nn.erosion2d`` by way of negations); tf2onnx lacks it.

An output is the largest of ``input + filter`` over its window. Taps outside the image don't take part.
"""

from __future__ import annotations

from typing import Any

from padfix.sources.tf_ops.tensor import Builder, Tensor
from padfix.sources.tf_ops.windows import inside, known_taps, lay_out, lowest, reduce, window_positions

OPERATORS = ("Dilation2D",)


def convert(builder: Builder, node: Any) -> Tensor:
    """Return one maximum over each of the windows, which are gathered side by side."""
    image, kernel = (builder.read(name) for name in node.input)
    strides, rates = (list(node.get_attr(attribute).ints)[1:3] for attribute in ("strides", "rates"))
    height, width = known_taps(node, kernel, 2)
    padding = node.get_attr_str("padding")
    sizes = image.lengths((1, 2))
    positions = [
        window_positions(size, count, stride, rate, padding)
        for size, count, stride, rate in zip(sizes, (height, width), strides, rates, strict=True)
    ]
    # [batch, rows, height, columns, width, channels]
    data = lay_out(image, positions, sizes, (height, width), None)
    sums = data + kernel.reshape([height, 1, width, -1])
    if padding == "SAME":
        rows = inside(positions[0], sizes[0]).reshape([-1, height, 1, 1, 1])
        columns = inside(positions[1], sizes[1]).reshape([-1, width, 1])
        sums = builder.choose(rows & columns, sums, lowest(image.dtype))
    return reduce("ReduceMax", sums, (2, 4))
