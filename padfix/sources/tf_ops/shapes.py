"""ShapeN, the shapes of several tensors at once, which tf2onnx leaves as it is unless all are known."""

from __future__ import annotations

from typing import Any

from padfix.sources.tf_ops.tensor import Builder, Tensor

OPERATORS = ("ShapeN",)


def convert(builder: Builder, node: Any) -> list[Tensor]:
    """Return the shape of each input."""
    from tf2onnx import utils

    kind = utils.map_onnx_to_numpy_type(builder.ctx.get_dtype(node.output[0]))
    return [builder.read(name).shape().cast(kind) for name in node.input]
