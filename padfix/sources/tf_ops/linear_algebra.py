"""Inverses, Cholesky factors and solutions of equations, which tf2onnx lacks.

ONNX Runtime has an operator of its own for inverses; ONNX has none.
"""

from __future__ import annotations

from typing import Any

from padfix.sources.tf_ops.tensor import INTEGER, Builder, Tensor, count_up

OPERATORS = ("MatrixInverse", "MatrixSolve", "MatrixTriangularSolve", "Cholesky")

OF_THE_RUNTIME = frozenset({"Inverse"})
"""Operators in the domain ``com.microsoft``."""


def convert(builder: Builder, node: Any) -> Tensor:
    """Return what the node makes of each matrix."""
    matrix = builder.read(node.input[0])
    rank = builder.rank_of(node.input[0], f"the matrices of {node.name}")
    if node.type == "Cholesky":
        if builder.ctx.opset < 13:
            raise ValueError(f"{node.name} needs opset 13 or newer")
        return _factor(builder, matrix, rank)
    if node.type == "MatrixTriangularSolve":
        place = count_up(builder, matrix.lengths([rank - 1])[0], INTEGER)
        row, column = place.unsqueeze([1]), place.unsqueeze([0])
        beyond = row.less(column) if node.get_attr_value("lower", True) else row.greater(column)
        matrix = builder.choose(beyond, 0.0, matrix)
    if node.get_attr_value("adjoint", False):
        matrix = matrix.transpose([*range(rank - 2), rank - 1, rank - 2])
    inverse = builder.node("Inverse", [matrix], matrix.dtype, domain="com.microsoft")
    return inverse if node.type == "MatrixInverse" else inverse.matmul(builder.read(node.input[1]))


def _factor(builder: Builder, matrix: Tensor, rank: int) -> Tensor:
    """Return the lower triangle whose product with its transpose is the matrix, column by column.

    Each column takes its own product out of what is left of the matrix, of which only the lower triangle is read.
    """

    def turn(left: Tensor, step: Tensor) -> list[Tensor]:
        column = left.take(step, rank - 1)
        pivot = column.take(step.reshape([1]), rank - 2).root()
        is_above = count_up(left.builder, left.lengths([rank - 1])[0], INTEGER).less(step)
        found = left.builder.choose(is_above, 0.0, column / pivot)
        return [left - found.unsqueeze([rank - 1]) * found.unsqueeze([rank - 2]), found]

    steps = count_up(builder, matrix.lengths([rank - 1])[0], INTEGER)
    body = builder.body({"left": (matrix.dtype, [-1] * rank), "step": (INTEGER, [])}, turn)
    attributes = {"num_scan_inputs": 1, "scan_output_axes": [rank - 1]}
    return builder.nodes("Scan", [matrix, steps], [matrix.dtype] * 2, attributes, body=body)[1]
