"""The negative part of data, scaled by a list: how a converter without PRelu writes one, which a runtime puts back."""

from __future__ import annotations

from onnx import NodeProto

from padfix.graph.scopes import Scope

_FEWEST_AXES = 3
"""Axes of data from which on a list along the last one is none of channels."""


def scaling_list(scope: Scope, node: NodeProto) -> int | None:
    """Return which input of a Mul is a list of several slopes for the negative part of data of three axes and more."""
    known = scope.type_of(node.output[0])
    if known is None or known.rank is None or known.rank < _FEWEST_AXES:
        return None
    for place, name in enumerate(node.input):
        value = scope.constant(name)
        if value is not None and value.ndim == 1 and value.size > 1:
            return place if _is_negative_part(scope, node.input[1 - place]) else None
    return None


def _is_negative_part(scope: Scope, name: str) -> bool:
    """Whether data are Relu(-x), its opposite, or x - Abs(x)."""
    maker = scope.own_producer(name)
    if maker is not None and maker.op_type == "Neg":
        maker = scope.own_producer(maker.input[0])
    if maker is None:
        return False
    before = [scope.own_producer(each) for each in maker.input]
    if maker.op_type == "Relu":
        return before[0] is not None and before[0].op_type == "Neg"
    size = before[1] if maker.op_type == "Sub" else None
    return size is not None and size.op_type == "Abs" and size.input[0] == maker.input[0]
