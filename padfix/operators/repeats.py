"""What becomes of elements that an Expand or Tile repeats."""

from __future__ import annotations

from onnx import NodeProto

from padfix.graph.scopes import Scope
from padfix.operators.elementwise import LAYING_OUT
from padfix.operators.passing import passed_on

_PRODUCTS = ("Conv", "ConvTranspose", "Einsum", "Gemm", "LSTM", "MatMul", "RNN")
"""Operators that multiply rows by columns."""

_AXES_AT_ONCE = 2

_FARTHEST = 16
"""Nodes that are looked at."""


def multiplies_copies(scope: Scope, node: NodeProto) -> bool:
    """Whether a product, or a recurrent layer, reads elements that the node repeats, moved at most."""
    before, behind = (scope.type_of(name) for name in (node.input[0], node.output[0]))
    if scope.constant(node.input[0]) is not None:
        return False
    if before is not None and behind is not None and before.lengths is not None and before.lengths == behind.lengths:
        return False
    names = [node.output[0]]
    for _ in range(_FARTHEST):
        readers = [each for name in names for each in scope.consumers(name)]
        if any(each.op_type in _PRODUCTS and set(each.input[:2]) & set(names) for each in readers):
            return True
        names = [each.output[0] for each in readers if _moves(scope, each, names)]
        if not names:
            return False
    return False


def repeats_many_axes(scope: Scope, node: NodeProto) -> bool:
    """Whether a Tile may repeat along three axes and more, how often being known at run time alone."""
    return scope.constant(node.input[1]) is None and _repeated(scope, node.input[1]) > _AXES_AT_ONCE


def _repeated(scope: Scope, name: str) -> int:
    """Return along how many axes what lists the repeats of a Tile may tell another number than 1."""
    told, known, producer = scope.constant(name), scope.type_of(name), scope.own_producer(name)
    if told is not None:
        return int((told != 1).sum())
    if producer is not None and producer.op_type == "Concat":
        return sum(_repeated(scope, each) for each in producer.input)
    shape = None if known is None else known.shape
    return shape[0] if shape and isinstance(shape[0], int) else _AXES_AT_ONCE + 1


def _moves(scope: Scope, node: NodeProto, names: list[str]) -> bool:
    """Whether a node gives the elements of one of these tensors, in whatever shape and beside whatever else."""
    if node.op_type == "Concat":
        return not set(names).isdisjoint(node.input)
    return (node.op_type in LAYING_OUT and node.input[0] in names) or passed_on(scope, node) in names
