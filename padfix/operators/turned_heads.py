"""An attention of as many heads as rows, whose heads are turned on one side alone: in the queries, or in the result."""

from __future__ import annotations

from onnx import NodeProto

from padfix.graph import attributes
from padfix.graph.dependence import reached
from padfix.graph.scopes import Scope, normal_domain
from padfix.operators.elementwise import ELEMENTWISE

_TURNED = [0, 2, 1, 3]

_BETWEEN = {"Cast", "Dropout", "Identity"}
"""What may stand between scores, their softmax and the product with values."""

_SCALING = {"Add", "Div", "Mul", "Sub", "Where"}
"""What works on scores before a softmax."""

_MIXING = {"Concat", "LayerNormalization", "RMSNormalization", "Slice", "Split"}
"""What queries may go through besides, behind which it is not known how a runtime orders them."""


def turns_heads_once(scope: Scope, node: NodeProto) -> bool:
    """Whether a MatMul weighs the values of an attention of as many heads as rows, and heads are turned once.

    All lengths are told, and queries are computed. A result counts as turned where rows are made of it at once.
    """
    known = scope.type_of(node.output[0])
    lengths = known.lengths if known is not None else None
    if lengths is None or len(lengths) != len(_TURNED) or lengths[1] != lengths[2] or lengths[1] < 2:
        return False
    queries = _queries_of(scope, node)
    if not any(_before(scope, name, {"Identity"}) for name in queries):
        return False
    is_turned = any(_is_turned(scope, name, ELEMENTWISE) for name in queries)
    may_be_turned = is_turned or any(_is_turned(scope, name, ELEMENTWISE | _MIXING) for name in queries)
    backs = [each for each in scope.consumers(node.output[0]) if _turns(each)]
    rows = [each for back in backs for each in scope.consumers(back.output[0])]
    is_turned_back = bool(backs) and all(each.op_type == "Reshape" for each in rows)
    return is_turned != is_turned_back or may_be_turned != is_turned_back


def _queries_of(scope: Scope, node: NodeProto) -> list[str]:
    """Return what scores are computed of, where their softmax is the first factor of a product."""
    shares = [each for each in _before(scope, node.input[0], _BETWEEN) if each.op_type == "Softmax"]
    scores = [each for share in shares for each in _before(scope, share.input[0], _BETWEEN | _SCALING)]
    return [each.input[0] for each in scores if each.op_type == "MatMul"]


def _is_turned(scope: Scope, name: str, passed: set[str] | frozenset[str]) -> bool:
    return any(_turns(each) for each in _before(scope, name, passed))


def _turns(node: NodeProto) -> bool:
    return node.op_type == "Transpose" and attributes.integers(node, "perm") == _TURNED


def _before(scope: Scope, name: str, passed: set[str] | frozenset[str]) -> list[NodeProto]:
    """Return the nodes that give data, before any of the operators that are passed over."""

    def is_passed(node: NodeProto) -> bool:
        return node.op_type in passed and not normal_domain(node.domain)

    def made_of(given: str) -> list[str]:
        maker = scope.own_producer(given)
        return [each for each in maker.input if each] if maker is not None and is_passed(maker) else []

    makers = (scope.own_producer(given) for given in reached([name], made_of))
    return [each for each in makers if each is not None and not is_passed(each)]
