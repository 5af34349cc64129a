"""What a Pad of constant amounts adds: the one reading of such a node."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from onnx import NodeProto

from padfix.graph import attributes
from padfix.graph.scopes import Dimension, Scope, normal_domain
from padfix.operators.cut_columns import leaves_last_columns
from padfix.operators.shape_questions import any_of
from padfix.operators.window import Pair
from padfix.targets.traits import Traits

MOST_PADS = 4
"""Pads in a row that are looked through; padfix itself writes two, so that ONNX Runtime does not fuse them."""


@dataclass(frozen=True)
class ConstantPad:
    """A Pad of constants: (begin, end) of each axis of its input, and the value by array or by name."""

    pairs: tuple[Pair, ...]
    value: np.ndarray | str


def local_producer(scope: Scope, name: str) -> NodeProto | None:
    """Return the node of this very scope that computes ``name``, if its operator is ONNX's own."""
    producer = scope.own_producer(name)
    return None if producer is None or normal_domain(producer.domain) else producer


def read_constant_pad(scope: Scope, node: NodeProto, rank: int) -> ConstantPad | None:
    """Return what a Pad adds, axis by axis; None where that is not constant, or takes elements away."""
    if node.op_type != "Pad" or any(each.ref_attr_name for each in node.attribute):
        return None
    if attributes.text(node, "mode", "constant") not in ("constant", ""):
        return None
    value: np.ndarray | str
    given = given_pads(scope, node)
    axes = list(range(rank))
    if scope.opset < 11:
        attribute = attributes.find(node, "value")
        value = np.array(0.0 if attribute is None else attribute.f, np.float32)
    else:
        name = node.input[2] if len(node.input) > 2 else ""
        known = scope.constant(name) if name else np.zeros((), np.float32)
        value = name if known is None else known
        if len(node.input) > 3 and node.input[3]:
            listed = _integers(scope, node, 3)
            if listed is None or any(not -rank <= axis < rank for axis in listed):
                return None
            axes = [axis % rank for axis in listed]
    if given is None or len(given) != 2 * len(axes) or len(set(axes)) != len(axes) or min(given, default=0) < 0:
        return None
    pairs = [(0, 0)] * rank
    for position, axis in enumerate(axes):
        pairs[axis] = (given[position], given[position + len(axes)])
    return ConstantPad(tuple(pairs), value)


def given_pads(scope: Scope, node: NodeProto) -> list[int] | None:
    """Return the amounts as a Pad lists them, all begins first; None where they are computed."""
    if scope.opset < 11:
        return attributes.integers(node, "paddings" if scope.opset < 2 else "pads")
    return _integers(scope, node, 1)


def _integers(scope: Scope, node: NodeProto, position: int) -> list[int] | None:
    constant = scope.constant(node.input[position]) if len(node.input) > position and node.input[position] else None
    return None if constant is None else [int(each) for each in constant.reshape(-1)]


def extent_traits(scope: Scope, node: NodeProto, amounts: Sequence[int] | None) -> Traits:
    """Return of a Pad whether it adds more than there is, and columns again before those that a Slice leaves."""
    data = scope.type_of(node.input[0]) if node.input and node.input[0] else None
    return {
        "pads-beyond-length": _is_beyond_length(None if data is None else data.shape, amounts),
        "pads-cut-columns": _pads_cut_columns(scope, node, amounts),
    }


def _pads_cut_columns(scope: Scope, node: NodeProto, amounts: Sequence[int] | None) -> bool:
    """Whether columns are added before those that a Slice leaves to the end of images, and none behind them."""
    if amounts is None or len(amounts) < 2 or not leaves_last_columns(scope, node.input[0], len(amounts) // 2):
        return False
    return amounts[len(amounts) // 2 - 1] > 0 and not amounts[-1]


def _is_beyond_length(lengths: Sequence[Dimension] | None, amounts: Sequence[int] | None) -> bool | None:
    """Whether an axis is padded by more than it has elements, at its begin or its end; None where it is not known."""
    if lengths is None or amounts is None or len(amounts) != 2 * len(lengths):
        return None
    padded = zip((*lengths, *lengths), amounts, strict=True)
    return any_of([amount > 0 and (amount > length if isinstance(length, int) else None) for length, amount in padded])
