"""ShapeN, the shapes of several tensors at once, and BroadcastArgs; tf2onnx leaves them unless all is known."""

from __future__ import annotations

from typing import Any

from padfix.sources.tf_ops.tensor import Builder, Tensor, concatenated

OPERATORS = ("ShapeN", "BroadcastArgs")


def convert(builder: Builder, node: Any) -> list[Tensor]:
    """Return the shape of each input, or the one to which both broadcast."""
    if node.type == "BroadcastArgs":
        return [common_shape(builder, node)]
    kind = builder.type_of(node.output[0])
    return [builder.read(name).shape().cast(kind) for name in node.input]


def common_shape(builder: Builder, node: Any) -> Tensor:
    """Return the shape to which two shapes broadcast."""
    shapes = [builder.read(name) for name in node.input]
    ranks = [(builder.ctx.get_shape(shape.name) or [-1])[0] for shape in shapes]
    if min(ranks) < 0:
        raise ValueError(f"the ranks that {node.name} reads are not known")
    wide = [
        concatenated([builder.constant([1] * (max(ranks) - rank), shape.dtype), shape])
        for shape, rank in zip(shapes, ranks, strict=True)
    ]
    return builder.choose(wide[0].equal(1), wide[1], wide[0])
