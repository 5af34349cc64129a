"""Rows that a product adds, and that something else uses as what the model is fed or gives."""

from __future__ import annotations

from onnx import NodeProto

from padfix.graph.scopes import Scope
from padfix.operators.bytes_among_floats import is_of_caller
from padfix.operators.shared_constants import becomes_gemm

_BIAS = 2
"""Which input a Gemm adds."""


def lent_row(scope: Scope, node: NodeProto) -> str:
    """Return the row that a Gemm, or a sum that becomes one, adds, where the model is fed or gives it for more.

    A row is a matrix of one, as wide as the product; the name is empty where there is none.
    """
    name = _added(scope, node)
    row, given = scope.type_of(name) if name else None, scope.type_of(node.output[0])
    if row is None or given is None or not given.shape or row.shape != (1, given.shape[-1]):
        return ""
    readers = scope.consumers(name)
    is_read = any(_added(scope, each) != name or list(each.input).count(name) > 1 for each in readers)
    return name if is_of_caller(scope, name) and (is_read or scope.is_output(name)) else ""


def _added(scope: Scope, node: NodeProto) -> str:
    """Return what a Gemm adds to its product, or a sum to a product that it alone reads."""
    if node.op_type == "Gemm":
        return node.input[_BIAS] if len(node.input) > _BIAS else ""
    for place, name in enumerate(node.input if node.op_type == "Add" else ()):
        maker = scope.own_producer(name)
        if maker is not None and maker.op_type == "MatMul" and becomes_gemm(scope, maker):
            return str(node.input[1 - place])
    return ""
