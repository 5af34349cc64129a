"""The heads of an attention that are brought back beside each other."""

from __future__ import annotations

from onnx import NodeProto

from padfix.graph import attributes
from padfix.graph.scopes import Scope, normal_domain

_BACK = [0, 2, 1, 3]

_BETWEEN = {"Cast", "Dropout", "Identity"}
"""What may stand between scores, their softmax and the product with values."""

_SCALING = {"Add", "Div", "Mul", "Sub", "Where"}
"""What works on scores before a softmax."""

_AS_THEY_ARE = {"Concat", "Transpose"}
"""What queries may come from that are right."""


def turns_heads_back(scope: Scope, node: NodeProto) -> bool:
    """Whether a Transpose turns the heads of an attention back of which there are, or may be, as many as rows.

    Its queries are computed, and not turned last.
    """
    known = scope.type_of(node.input[0])
    if (
        known is None
        or known.shape is None
        or attributes.integers(node, "perm") != _BACK
        or len(known.shape) != len(_BACK)
    ):
        return False
    heads, rows = known.shape[1:3]
    may_be_equal = heads == rows or not (isinstance(heads, int) and isinstance(rows, int))
    product = scope.own_producer(node.input[0])
    if not may_be_equal or product is None or product.op_type != "MatMul":
        return False
    shares = [each for each in _before(scope, product.input[0], _BETWEEN) if each.op_type == "Softmax"]
    scores = [each for share in shares for each in _before(scope, share.input[0], _BETWEEN | _SCALING)]
    queries = [scope.own_producer(each.input[0]) for each in scores if each.op_type == "MatMul"]
    return any(each is not None and each.op_type not in _AS_THEY_ARE for each in queries)


def _before(scope: Scope, name: str, passed: set[str]) -> list[NodeProto]:
    """Return the nodes that give data, before any of the operators that are passed over."""
    found, names, seen = [], [name], {name}
    while names:
        producer = scope.own_producer(names.pop())
        if producer is not None and producer.op_type in passed and not normal_domain(producer.domain):
            names.extend({each for each in producer.input if each} - seen)
            seen.update(producer.input)
        elif producer is not None:
            found.append(producer)
    return found
