"""What an Attention is like, in the words that targets state their facts in."""

from __future__ import annotations

from onnx import NodeProto

from padfix.graph import attributes
from padfix.graph.scopes import Scope
from padfix.operators.numbers import numbers_of
from padfix.targets.traits import Trait, Traits

_MASK, _PAST = 3, 4
_PRODUCTS, _COUNT = 3, 6
"""Positions of inputs, and of the output that has the products before or behind their Softmax."""

_HEADS = 4
"""Axes of data whose heads are an axis of their own."""

_RANKS = (3, _HEADS)


def attention_traits(scope: Scope, node: NodeProto) -> Traits:
    """Return what is masked, whether what was read before is given, and what else is asked for than the mean."""
    softcap = attributes.find(node, "softcap")
    return {
        "masked": _mask(scope, node),
        "causal": attributes.integer(node, "is_causal", 0) != 0,
        "remembers": len(node.input) > _PAST and bool(node.input[_PAST]),
        "as-many-keys": _has_as_many_keys(scope, node),
        "bounded": softcap is not None and softcap.f != 0,
        "counts-keys": len(node.input) > _COUNT and bool(node.input[_COUNT]),
        "within-window": any(attributes.integer(node, f"{side}_window_size", -1) != -1 for side in ("left", "right")),
        "gives-products": len(node.output) > _PRODUCTS and scope.is_used(node.output[_PRODUCTS]),
    }


def _mask(scope: Scope, node: NodeProto) -> Trait:
    if len(node.input) <= _MASK or not node.input[_MASK]:
        return "no"
    return "by-booleans" if numbers_of(scope, node.input[_MASK]) == "boolean" else "by-numbers"


def _has_as_many_keys(scope: Scope, node: NodeProto) -> bool | None:
    """Whether there are as many new keys as queries."""
    shapes = [None if (known := scope.type_of(name)) is None else known.shape for name in node.input[:2]]
    if any(shape is None or len(shape) not in _RANKS for shape in shapes):
        return None
    queries, keys = (shape[2 if len(shape) == _HEADS else 1] for shape in shapes if shape is not None)
    return queries == keys
