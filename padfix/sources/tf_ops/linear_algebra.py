"""MatrixInverse, for which ONNX Runtime has an operator of its own and ONNX has none."""

from __future__ import annotations

from typing import Any

from padfix.sources.tf_ops.tensor import Builder, Tensor

OPERATORS = ("MatrixInverse",)


def convert(builder: Builder, node: Any) -> Tensor:
    """Return the inverse of each matrix, or of each transposed matrix."""
    data = builder.read(node.input[0])
    if node.get_attr_value("adjoint", False):
        rank = builder.ctx.get_rank(node.input[0])
        if rank is None:
            raise ValueError(f"the number of axes of the matrices of {node.name} is not known")
        data = data.transpose([*range(rank - 2), rank - 1, rank - 2])
    return builder.node("Inverse", [data], data.dtype, domain="com.microsoft")
