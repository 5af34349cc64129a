"""Data of open lengths that meet others: copied to those anyway, as PyTorch writes an ``expand_as``, or read last."""

from __future__ import annotations

from onnx import NodeProto

from padfix.graph.scopes import Scope, normal_domain
from padfix.operators.told_lengths import is_as_long, told_lengths

SPREADING = ("ConstantOfShape", "Expand")
"""Operators that give data, or a number, as many times as lengths say."""


_MATRIX = 2


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


def puts_rows_before_open(scope: Scope, node: NodeProto) -> bool:
    """Whether a constant matrix of several rows is what a node reads first, and open rows are among what it meets."""
    first = scope.constant(node.input[0])
    if first is None or first.ndim != _MATRIX or len(first) == 1:
        return False
    shapes = [None if (known := scope.type_of(name)) is None else known.shape for name in node.input[1:] if name]
    return any(shape and len(shape) == _MATRIX and not isinstance(shape[0], int) for shape in shapes)
