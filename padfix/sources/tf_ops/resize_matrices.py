"""ResizeArea, ResizeBicubic and ScaleAndTranslate as two matrix products, with TensorFlow's own weights.

tf2onnx writes a nearest Resize for the first (tensorflow-onnx#2239). For the second it writes a Resize with Keys'
kernel in every case; TensorFlow takes its weights from a table of 1024 steps, and Keys' kernel only with half-pixel
centres, and ONNX Runtime refuses to run that Resize when the image shrinks and a Transpose is moved through it
(onnxruntime#12302). The last is behind ``tf.image.resize`` with antialias, Lanczos, Gauss or Mitchell; tf2onnx lacks
it.
"""

from __future__ import annotations

from typing import Any

from padfix.sources.tf_ops import sampling
from padfix.sources.tf_ops.image import Image
from padfix.sources.tf_ops.resize_grid import grid_of
from padfix.sources.tf_ops.tensor import Builder, Tensor

OPERATORS = ("ResizeArea", "ResizeBicubic", "ScaleAndTranslate")


def convert(builder: Builder, node: Any) -> Tensor:
    """Return the products of the image with the weights along height and along width."""
    image = Image(builder, node)
    axes = list(zip(image.sizes, image.counts, strict=True))
    if node.type != "ScaleAndTranslate":
        weights = sampling.area_weights if node.type == "ResizeArea" else sampling.cubic_weights
        return image.weigh([weights(grid_of(node), size, count) for size, count in axes])
    scale, translation = (builder.read(node.input[index]) for index in (2, 3))
    kernel = node.get_attr_str("kernel_type") if node.get_attr("kernel_type") else "lanczos3"
    antialias = bool(node.get_attr_value("antialias", True))
    return image.weigh(
        [
            sampling.filter_weights(kernel, antialias, size, count, scale.take(axis), translation.take(axis))
            for axis, (size, count) in enumerate(axes)
        ]
    )
