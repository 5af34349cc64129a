"""Conv3D, whose groups tf2onnx forgets: it looks for them by the names of two-dimensional layouts alone."""

from __future__ import annotations

from typing import Any

from padfix.sources.tf_ops.tensor import Builder
from padfix.sources.tf_ops.windows import channels_last

OPERATORS = ("Conv3D",)


def convert(builder: Builder, node: Any) -> None:
    """Let tf2onnx convert the node, and say how many groups the filter divides the channels into."""
    from tf2onnx.onnx_opset.nn import ConvOp

    data, kernel = (builder.ctx.get_shape(each) or [-1] * 5 for each in node.input[:2])
    channels, read = data[-1 if channels_last(node) else 1], kernel[-2]
    ConvOp.any_version(builder.ctx.opset, builder.ctx, node)
    if channels > 0 and read > 0:
        node.set_attr("group", channels // read)
