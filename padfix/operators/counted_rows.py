"""The first rows of a constant, as many as an open length: the positions of words, which a model looks up."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from onnx import NodeProto, TensorProto

from padfix.graph import attributes
from padfix.graph.scopes import Dimension, Scope, normal_domain
from padfix.operators.constant_chains import chain_of, leaves_of, worked_out
from padfix.operators.slices import sliced_axes
from padfix.operators.told_lengths import told_lengths

_PASSING = frozenset({"Cast", "Identity", "Reshape", "Squeeze", "Unsqueeze"})
"""Operators behind which a list of positions has as many elements as before, in the same order."""

GIVING_ROWS = ("Gather", "Slice")
"""Operators that may give the first rows of a constant."""

_NUMBERS = (TensorProto.FLOAT, TensorProto.INT32, TensorProto.INT64)


@dataclass(frozen=True)
class CountedRows:
    """What gives the first rows of a constant.

    ``rows`` are all of them, along the first axis; ``before`` is how many axes of one element the result has before
    that; ``measured`` is the tensor whose length along ``axis`` says how many of them, and ``chain`` computes that.
    """

    rows: np.ndarray
    before: int
    measured: str
    axis: int
    chain: Sequence[NodeProto]


def counted_rows(scope: Scope, node: NodeProto) -> CountedRows | None:
    """Return the first rows of a constant that a node gives, where an open length is how many; None otherwise."""
    if normal_domain(node.domain) or node.op_type not in GIVING_ROWS:
        return None
    chain = chain_of(scope, node, open_lengths=True)
    found = _looked_up(scope, node) if node.op_type == "Gather" else _cut(scope, node)
    if chain is None or found is None or not found[0].size:
        return None
    rows, before, length = found
    for name in leaves_of(scope, chain)[1]:
        known = scope.type_of(name)
        shape = () if known is None or known.shape is None else known.shape
        if known is not None and known.elem_type in _NUMBERS and list(shape).count(length) == 1:
            return CountedRows(rows, before, name, list(shape).index(length), chain)
    return None


def _looked_up(scope: Scope, node: NodeProto) -> tuple[np.ndarray, int, Dimension] | None:
    """Return the rows that a Gather picks by positions that count, how many axes come before them, and the length."""
    table, places = worked_out(scope, node.input[0]), scope.type_of(node.input[1])
    if table is None or not table.ndim or attributes.integer(node, "axis", 0) != 0:
        return None
    shape = () if places is None or places.shape is None else places.shape
    if not shape or any(each != 1 for each in shape[:-1]):
        return None
    each = scope.own_producer(node.input[1])
    while each is not None and each.op_type in _PASSING and not normal_domain(each.domain):
        each = scope.own_producer(each.input[0])
    if each is None or normal_domain(each.domain):
        return None
    if each.op_type == "Slice":
        cut = _cut(scope, each)
        listed = None if cut is None or cut[0].ndim != 1 else cut[0]
        is_within = listed is not None and listed.dtype.kind == "i" and bool((np.abs(listed) < len(table)).all())
        return None if cut is None or not is_within else (table[listed], len(shape) - 1, cut[2])
    if each.op_type != "Range":
        return None
    start, step = (worked_out(scope, each.input[place]) for place in (0, 2))
    is_counting = start is not None and step is not None and not start.any() and bool((step == 1).all())
    told = told_lengths(scope, each.input[1]) if is_counting else None
    is_open = told is not None and len(told) == 1 and isinstance(told[0], str)
    return (table, len(shape) - 1, told[0]) if is_open and told is not None else None


def _cut(scope: Scope, node: NodeProto) -> tuple[np.ndarray, int, Dimension] | None:
    """Return the rows of which a Slice gives the first, how many axes come before them, and the length that says so."""
    held = worked_out(scope, node.input[0])
    if held is None or len(node.input) < 3:
        return None
    axes, told = sliced_axes(scope, node, held.ndim), told_lengths(scope, node.input[2])
    starts = worked_out(scope, node.input[1])
    steps = worked_out(scope, node.input[4]) if len(node.input) > 4 and node.input[4] else np.ones(1)
    if axes is None or len(axes) != 1 or told is None or starts is None or steps is None:
        return None
    (axis,) = axes
    is_first = not starts.any() and bool((steps == 1).all()) and all(each == 1 for each in held.shape[:axis])
    is_open = len(told) == 1 and isinstance(told[0], str)
    return (held.reshape(held.shape[axis:]), axis, told[0]) if is_first and is_open else None
