"""LRN (``tf.nn.local_response_normalization``), with the sum over each window of channels taken anew.

ONNX Runtime's own LRN goes on from one window to the next, adds a square and takes another out again: where a large
number leaves, up to a thousandth of what is left is gone with it.
"""

from __future__ import annotations

from typing import Any

from padfix.sources.tf_ops.tensor import FLOAT, Builder, Tensor

OPERATORS = ("LRN",)


def convert(builder: Builder, node: Any) -> Tensor:
    """Return each number divided by a power of the squares beside it."""
    data = builder.read(node.input[0])
    image = data.cast(FLOAT)
    radius = node.get_attr_value("depth_radius", 5)
    size = 2 * radius + 1
    # Rows as channels and channels as columns, so that no axis has to move.
    attributes = {"kernel_shape": [1, size], "pads": [0, radius, 0, radius], "count_include_pad": 1}
    means = builder.node("AveragePool", [image * image], FLOAT, attributes)
    sums = means * (size * node.get_attr_value("alpha", 1.0)) + node.get_attr_value("bias", 1.0)
    power = builder.node("Pow", [sums, builder.floats(node.get_attr_value("beta", 0.5))], FLOAT)
    return (image / power).cast(data.dtype)
