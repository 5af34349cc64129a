"""What changes one by one the elements of a result of the model, where a runtime moves that before a Reshape."""

from __future__ import annotations

from onnx import NodeProto

from padfix.graph.scopes import Scope, normal_domain
from padfix.operators.constant_chains import is_constant
from padfix.operators.elementwise import RESHAPING
from padfix.operators.fused_layers import PRODUCTS

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

_OF_TWO = ("Add", "Div", "Max", "Mean", "Min", "Mul", "Pow", "Sub", "Sum")

_DEEPEST = 20

_MATRIX = 2

_AXES_OF_VOLUMES = 5

_AXES_AS_INPUT_SINCE = 13
"""The first opset whose Squeeze takes its axes as an input."""

_SQUARE = 2


def _changes(scope: Scope, node: NodeProto) -> bool:
    """Whether a node changes each element by itself; a square does, as a product with itself or as a power."""
    if node.op_type == "Mul":
        return len(set(node.input)) == 1
    exponent = scope.constant(node.input[1]) if node.op_type == "Pow" else None
    return node.op_type in CHANGING or (exponent is not None and bool((exponent == _SQUARE).all()))


def reads_moved_result(scope: Scope, node: NodeProto) -> bool:
    """Whether a square, or a node of :data:`CHANGING`, reads a result that a Reshape or product with a constant gives.

    Or a transposed convolution of three axes. Between them may lie what reshapes, or changes each element, too.
    """
    if normal_domain(node.domain) or scope.parent is not None or not _changes(scope, node):
        return False
    name, is_result = node.input[0], False
    for _ in range(_DEEPEST):
        is_result = is_result or scope.is_output(name)
        producer = scope.own_producer(name)
        if producer is None or normal_domain(producer.domain):
            return False
        is_product = _is_product(scope, producer)
        if is_result and (is_product or producer.op_type in RESHAPING or _is_volume(scope, producer)):
            return True
        if is_product or (producer.op_type not in RESHAPING and not _changes(scope, producer)):
            return False
        name = producer.input[0]
    return False


GIVING_SQUEEZED = {"Add": False, "Clip": False, "LeakyRelu": True, "PRelu": False, "Relu": True}
"""What some compute before a Squeeze, and whether only where something else reads what that gives.

Of Add the sum of a number, or a number for each element along the last axis.
"""


def gives_squeezed(scope: Scope, node: NodeProto) -> bool:
    """Whether a node of :data:`GIVING_SQUEEZED` makes a result of the model of what a Squeeze has just cut axes off.

    Of three axes and more before those are cut off. What changes each element by itself may lie between them.
    """
    name = _added_to(scope, node) if node.op_type == "Add" else node.input[0]
    if not name or not scope.is_output(node.output[0]):
        return False
    is_read_again, counts = False, True
    for _ in range(_DEEPEST):
        is_read_again |= counts and (scope.is_output(name) or len(scope.consumers(name)) > 1)
        before = scope.own_producer(name)
        if before is None or normal_domain(before.domain):
            return False
        if before.op_type == "Squeeze":
            known = scope.type_of(before.input[0])
            is_matrix = known is not None and known.rank is not None and known.rank <= _MATRIX
            return not is_matrix and (is_read_again or not GIVING_SQUEEZED[node.op_type])
        if before.op_type == "Add" and scope.opset < _AXES_AS_INPUT_SINCE and _added_to(scope, before):
            name, is_read_again = _added_to(scope, before), True
        elif before.op_type == "Identity" or _changes(scope, before):
            name, counts = before.input[0], counts and before.op_type in ("Identity", *GIVING_SQUEEZED)
        else:
            return False
    return False


def _added_to(scope: Scope, node: NodeProto) -> str:
    """Return what an Add adds a constant number to, or one for each element along the last axis; else nothing."""
    constants = [each for each in node.input if is_constant(scope, each)]
    known = scope.type_of(constants[0]) if len(constants) == 1 else None
    if known is None or known.shape is None or len(known.shape) > 1:
        return ""
    added = [str(each) for each in node.input if each not in constants]
    return added[0]


def activates_result(scope: Scope, node: NodeProto) -> bool:
    """Whether a Relu reads a result of the model that arithmetic of two gives, or what passes that on."""
    if node.op_type != "Relu" or normal_domain(node.domain) or scope.parent is not None:
        return False
    name, is_result = node.input[0], False
    for _ in range(_DEEPEST):
        is_result = is_result or scope.is_output(name)
        is_result = is_result or any(
            each.op_type == "Identity" and scope.is_output(each.output[0]) for each in scope.consumers(name)
        )
        producer = scope.own_producer(name)
        if producer is None or producer.op_type != "Identity":
            return is_result and producer is not None and producer.op_type in _OF_TWO
        name = producer.input[0]
    return False


def _is_product(scope: Scope, node: NodeProto) -> bool:
    """Whether a node is a product with a constant, or adds one to a product, as a bias; or any Einsum.

    Those are convolutions between two Reshapes to runtimes that have no product with a constant matrix.
    """
    if node.op_type not in ("Add", *PRODUCTS):
        return node.op_type == "Einsum"
    is_by_constant = any(is_constant(scope, name) for name in node.input[:2])
    if node.op_type in PRODUCTS:
        return is_by_constant
    before = [scope.own_producer(name) for name in node.input]
    return is_by_constant and any(each is not None and each.op_type in PRODUCTS for each in before)


def _is_volume(scope: Scope, node: NodeProto) -> bool:
    """Whether a node is a transposed convolution of three spatial axes, behind which some reshape what planes give."""
    known = scope.type_of(node.input[0]) if node.op_type == "ConvTranspose" else None
    return known is not None and known.rank == _AXES_OF_VOLUMES
