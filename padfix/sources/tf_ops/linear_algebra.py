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
    rank = builder.ctx.get_rank(node.input[0])
    if rank is None:
        raise ValueError(f"the number of axes of the matrices of {node.name} is not known")
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
    from tf2onnx import utils

    count = matrix.lengths([rank - 1])[0]
    body = builder.ctx.create_new_graph_with_same_config()
    body.parent_graph = builder.ctx
    inner, onnx_type = Builder(body, utils.make_name("factor")), utils.map_numpy_to_onnx_dtype(matrix.dtype)
    names = [utils.make_name(name) for name in ("left", "step")]
    body.add_graph_input(names[0], onnx_type, [-1] * rank)
    body.add_graph_input(names[1], utils.map_numpy_to_onnx_dtype(INTEGER), [])
    left, step = Tensor(inner, matrix.dtype, name=names[0]), Tensor(inner, INTEGER, name=names[1])

    column = left.take(step, rank - 1)
    pivot = column.take(step.reshape([1]), rank - 2).root()
    is_above = count_up(inner, left.lengths([rank - 1])[0], INTEGER).less(step)
    found = inner.choose(is_above, 0.0, column / pivot)
    rest = left - found.unsqueeze([rank - 1]) * found.unsqueeze([rank - 2])
    for each in (rest, found):
        body.add_graph_output(body.make_node("Identity", [each.name], dtypes=[onnx_type]).output[0])
    made = builder.ctx.make_node(
        "Scan",
        [matrix.name, count_up(builder, count, INTEGER).name],
        {"num_scan_inputs": 1, "scan_output_axes": [rank - 1]},
        output_count=2,
        dtypes=[onnx_type] * 2,
        branches={"body": body},
    )
    return Tensor(builder, matrix.dtype, name=str(made.output[1]))
