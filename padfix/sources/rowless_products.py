"""Products of matrices that ONNX Runtime takes on an empty batch as well.

Its MatMul hands a matrix on the left on to each matrix of the right operand, but not where there are none: it refuses
an empty batch (``Compute right operand cannot broadcast``). Its Einsum of the same product takes one with one
matrix on the left; several end it with an arithmetic error.
"""

from __future__ import annotations

from string import ascii_lowercase

from onnx import NodeProto, TensorProto, helper

from padfix.files.model import Model
from padfix.graph.scopes import DEFAULT_DOMAIN, Scope, iterate_scopes, normal_domain
from padfix.operators.inference import infer

_TYPES = frozenset({TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.INT32, TensorProto.INT64})
"""What ONNX Runtime has an Einsum for."""

_EINSUM_SINCE = 12


def take_no_rows(model: Model) -> None:
    """Write each product that an open batch gets its left operand in, in place, so that it takes an empty batch."""
    if not any(_candidates(scope) for scope in iterate_scopes(model.proto)):
        return  # lengths are inferred for those that need them
    for scope in infer(model):
        for node in _candidates(scope):
            _exchange(scope, node)


def _candidates(scope: Scope) -> list[NodeProto]:
    """Return products that may have several matrices on the right: most have the weights of a layer there."""
    if scope.opset < _EINSUM_SINCE:
        return []
    return [
        node
        for node in scope.nodes
        if node.op_type == "MatMul"
        and normal_domain(node.domain) == DEFAULT_DOMAIN
        and ((right := scope.type_of(node.input[1])) is None or right.rank != 2)
    ]


def _exchange(scope: Scope, node: NodeProto) -> None:
    left, right = (scope.type_of(name) for name in node.input)
    if left is None or left.rank != 2 or left.elem_type not in _TYPES:
        return
    if right is None or right.shape is None or len(right.shape) < 3:
        return
    batch = ascii_lowercase[: len(right.shape) - 2]
    if any(not isinstance(length, int) for length in right.shape[: len(batch)]):
        node.op_type = "Einsum"
        node.attribute.append(helper.make_attribute("equation", f"xy,{batch}yz->{batch}xz"))
