"""What changes one by one the elements of a result of the model, where a runtime moves that before a Reshape."""

from __future__ import annotations

from onnx import NodeProto

from padfix.graph.scopes import Scope, normal_domain
from padfix.operators.constant_chains import is_constant

# fmt: off
CHANGING = frozenset(
    {
        "Abs", "Acos", "Acosh", "Asin", "Asinh", "Atan", "Atanh", "Ceil", "Clip", "Cos", "Cosh", "Erf", "Exp",
        "Floor", "Gelu", "HardSwish", "LeakyRelu", "Log", "Neg", "PRelu", "Reciprocal", "Relu", "Round", "Sigmoid",
        "Sign", "Sin", "Sinh", "Softplus", "Sqrt", "Tan", "Tanh",
    }
)
# fmt: on
"""Operators that change each element by itself, and that a runtime computes in one step."""

_RESHAPING = ("Flatten", "Reshape", "Squeeze", "Unsqueeze")

_PRODUCTS = ("Gemm", "MatMul")
"""What is a convolution between two Reshapes to runtimes that have no product with a constant matrix."""

_DEEPEST = 20


def reads_moved_result(scope: Scope, node: NodeProto) -> bool:
    """Whether a node of :data:`CHANGING` reads a result of the model that a Reshape or a product with a constant gives.

    Between them may lie what reshapes, or changes each element, too.
    """
    if node.op_type not in CHANGING or normal_domain(node.domain) or scope.parent is not None:
        return False
    name, is_result = node.input[0], False
    for _ in range(_DEEPEST):
        is_result = is_result or scope.is_output(name)
        producer = scope.own_producer(name)
        if producer is None or normal_domain(producer.domain):
            return False
        product = _product(scope, producer)
        if is_result and (product is not None or producer.op_type in _RESHAPING):
            return True
        if product is not None or producer.op_type not in (*_RESHAPING, *CHANGING):
            return False
        name = producer.input[0]
    return False


def _product(scope: Scope, node: NodeProto) -> NodeProto | None:
    """Return the product with a constant that a node is, or to which it adds one, as a bias; any that is an Einsum."""
    if node.op_type == "Einsum":
        return node
    if node.op_type in _PRODUCTS:
        return node if any(is_constant(scope, name) for name in node.input[:2]) else None
    if node.op_type != "Add" or not any(is_constant(scope, name) for name in node.input):
        return None
    before = [scope.own_producer(name) for name in node.input]
    return next((each for each in before if each is not None and each.op_type in _PRODUCTS), None)
