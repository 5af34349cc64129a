"""Einsum of two tensors as the product of matrices that it mostly is, such as the two of an attention.

tf2onnx's optimiser takes every Einsum apart with lengths that it computes, which has no meaning on an empty batch.
"""

from __future__ import annotations

from typing import Any

from padfix.sources.tf_ops.tensor import Builder, Tensor

OPERATORS = ("Einsum",)


def convert(builder: Builder, node: Any) -> Tensor:
    """Return a MatMul between transposes where one axis is summed over and one is left of each; else an Einsum."""
    equation = node.get_attr_str("equation").replace(" ", "")
    operands = [builder.read(name) for name in node.input]
    given, arrow, wanted = equation.partition("->")
    labels = given.split(",")
    if arrow and len(labels) == 2 and _is_plain(*labels, wanted):
        left, right = labels
        batch = [label for label in wanted if label in left and label in right]
        rows = [label for label in left if label not in right]
        columns = [label for label in right if label not in left]
        summed = [label for label in left if label in right and label not in wanted]
        if len(rows) == len(columns) == len(summed) == 1 and set(rows + columns) <= set(wanted):
            first = _ordered(operands[0], list(left), [*batch, *rows, *summed])
            second = _ordered(operands[1], list(right), [*batch, *summed, *columns])
            return _ordered(first.matmul(second), [*batch, *rows, *columns], list(wanted))
    return builder.node("Einsum", operands, operands[0].dtype, {"equation": equation})


def _is_plain(*labels: str) -> bool:
    """Whether all axes have names of their own."""
    return all(each.isalpha() and len(set(each)) == len(each) for each in labels)


def _ordered(tensor: Tensor, labels: list[str], wanted: list[str]) -> Tensor:
    return tensor if labels == wanted else tensor.transpose([labels.index(label) for label in wanted])
