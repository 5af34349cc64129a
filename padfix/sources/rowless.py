"""Products, reductions and shapes that ONNX Runtime takes on an empty batch as well.

Its MatMul hands a matrix on the left on to each matrix of the right operand, but not where there are none: it refuses
an empty batch (``Compute right operand cannot broadcast``). Its Einsum of the same product takes one with one
matrix on the left; several end it with an arithmetic error. Its reductions give an empty tensor all of its axes back
where those that go are counted from the last. Shapes with an open length are :mod:`padfix.sources.open_reshapes`.
"""

from __future__ import annotations

from collections.abc import Sequence
from string import ascii_lowercase

import numpy as np
from onnx import NodeProto, TensorProto, helper, numpy_helper

from padfix.files.model import Model
from padfix.graph import attributes
from padfix.graph.scopes import DEFAULT_DOMAIN, Scope, iterate_scopes, normal_domain
from padfix.operators.inference import infer
from padfix.sources import open_reshapes

_TYPES = frozenset({TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.INT32, TensorProto.INT64})
"""What ONNX Runtime has an Einsum for."""

_EINSUM_SINCE = 12


def take_no_rows(model: Model) -> None:
    """Write products that hand a matrix on to an open batch, reductions and shapes, so that they take no rows."""
    scopes = iterate_scopes(model.proto)
    if not any(_products(scope) or _reductions(scope) or open_reshapes.has_some(scope) for scope in scopes):
        return  # lengths are inferred for those that need them
    for scope in infer(model):
        for node in _products(scope):
            _exchange(scope, node)
        for node, axes in _reductions(scope):
            _count_from_the_first(scope, node, axes)
        open_reshapes.settle(scope)


def _products(scope: Scope) -> list[NodeProto]:
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


def _reductions(scope: Scope) -> list[tuple[NodeProto, Sequence[int]]]:
    """Return reductions with axes counted from the last, and these axes."""
    found: list[tuple[NodeProto, Sequence[int]]] = []
    for node in scope.nodes:
        if not node.op_type.startswith("Reduce") or normal_domain(node.domain) != DEFAULT_DOMAIN:
            continue
        given = attributes.find(node, "axes")
        constant = scope.constant(node.input[1]) if len(node.input) > 1 and node.input[1] else None
        axes = list(given.ints) if given is not None else [] if constant is None else constant.reshape(-1).tolist()
        if any(axis < 0 for axis in axes):
            found.append((node, axes))
    return found


def _count_from_the_first(scope: Scope, node: NodeProto, axes: Sequence[int]) -> None:
    data = scope.type_of(node.input[0])
    if data is None or data.rank is None:
        return
    counted = [axis % data.rank for axis in axes]
    given = attributes.find(node, "axes")
    if given is not None:
        given.ints[:] = counted
        return
    tensor = numpy_helper.from_array(np.array(counted, np.int64), f"{node.output[0]}/padfix_axes")
    scope.container.initializer.append(tensor)
    if len(scope.consumers(node.input[1])) == 1 and not scope.is_output(node.input[1]):
        _forget(scope, node.input[1])
    node.input[1] = tensor.name


def _forget(scope: Scope, name: str) -> None:
    """Remove a constant of this scope that nothing reads any more."""
    for held in (scope.container.initializer, scope.container.node):
        for index in reversed(range(len(held))):
            if name in ([held[index].name] if isinstance(held[index], TensorProto) else held[index].output):
                del held[index]
