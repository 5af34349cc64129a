"""Data that are copied to the lengths of what they meet anyway, as PyTorch writes an ``expand_as``."""

from __future__ import annotations

from onnx import NodeProto

from padfix.graph.scopes import Scope, normal_domain
from padfix.operators.told_lengths import is_as_long, told_lengths

SPREADING = ("ConstantOfShape", "Expand")
"""Operators that give data, or a number, as many times as lengths say."""


def measured_copy(scope: Scope, node: NodeProto) -> tuple[int, NodeProto] | None:
    """Return which input of a node that works element by element is copied to open lengths of another one, and by what.

    That other input spreads it to as many elements without it.
    """
    for place, name in enumerate(node.input):
        spread = scope.own_producer(name) if name else None
        if spread is None or spread.op_type not in SPREADING or normal_domain(spread.domain):
            continue
        lengths = spread.input[-1]
        if any(other != name and _is_measured(scope, lengths, other) for other in node.input if other):
            return place, spread
    return None


def _is_measured(scope: Scope, lengths: str, of: str) -> bool:
    """Whether a list holds the lengths of data, some of which are open."""
    known = scope.type_of(of)
    told = told_lengths(scope, lengths, of=of) if known is not None and known.shape else None
    is_open = told is not None and any(not isinstance(each, int) for each in told)
    return is_open and told is not None and is_as_long(scope, told, of)
