"""Constants that nodes give: how their numbers are written, and whether a GELU is made of them."""

from __future__ import annotations

from onnx import NodeProto

from padfix.graph import attributes
from padfix.graph.scopes import Scope
from padfix.targets.traits import Traits

_BEHIND_ERF = ("Add", "Mul", "Mul")
"""What stands behind the Erf of a GELU, in its order."""


def constant_traits(scope: Scope, node: NodeProto) -> Traits:
    """Return of a Constant whether it holds a tensor, sparse too, is a result of the model, and a number of a GELU."""
    return {
        "of-tensor": any(attributes.find(node, each) is not None for each in ("value", "sparse_value")),
        "as-result": scope.parent is None and scope.is_output(node.output[0]),
        "of-gelu": _is_of_gelu(scope, node.output[0]),
    }


def _is_of_gelu(scope: Scope, name: str) -> bool:
    """Whether what reads a constant is divided before an Erf, or one of the sum and products behind it."""
    for reader in scope.consumers(name):
        behind = [each for given in reader.output for each in scope.consumers(given)]
        if reader.op_type in ("Div", "Mul") and any(each.op_type == "Erf" for each in behind):
            return True
        for start in range(len(_BEHIND_ERF)):
            if _is_behind_erf(scope, reader, _BEHIND_ERF[start::-1]):
                return True
    return False


def _is_behind_erf(scope: Scope, node: NodeProto, op_types: tuple[str, ...]) -> bool:
    """Whether a node is of the first of these types, what it reads given by one of the next, and so on to an Erf."""
    if not op_types:
        return node.op_type == "Erf"
    if node.op_type != op_types[0]:
        return False
    producers = (scope.producer(name) for name in node.input if name)
    return any(each is not None and _is_behind_erf(scope, each, op_types[1:]) for each in producers)
