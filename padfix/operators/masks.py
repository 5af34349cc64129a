"""What masks the data of a Softmax: infinities or numbers below 0, with which data may leave a whole row out."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from onnx import NodeProto

from padfix.graph.scopes import Scope, normal_domain
from padfix.operators.constant_chains import worked_out
from padfix.operators.elementwise import COPYING, LAYING_OUT, PICKING_OUT
from padfix.operators.lists import COMPARING, JOINING_TRUTHS, depends_on_data
from padfix.operators.numbers import numbers_of
from padfix.operators.shape_questions import is_spread

_PASSING = LAYING_OUT | COPYING | PICKING_OUT | {"Add", "Cast", "Mul", "Where"}
"""What lies between a mask and the Softmax that it is for."""

_WEIGHING = ("Add", "Div", "Mul", "Sub", "Where")
"""What makes numbers of 0 and 1 as large as those of a mask."""

_MAKING_MASKS = _PASSING | {*COMPARING, *JOINING_TRUTHS, *_WEIGHING, "Concat", "CumSum", "Max", "Min", "Neg", "Not"}
"""What makes a mask of what the caller gives."""

_SMALL, _FAR = 16.0, 1e7
"""What scores are added to without a loss in half precision; and what nothing is left of them behind, in any."""

_NEAR = 32

_DEEPEST = 4
"""Sums of sums that are looked at."""


def may_leave_rows_out(scope: Scope, name: str, axis: int) -> bool:
    """Whether infinities leave whole rows along an axis out, or may as data decides where they are.

    What is left is no number, as the quotient of 0 by 0. ``axis`` is counted from the end.
    """
    seen, left = set[str](), [name]
    while left and len(seen) < _NEAR:
        each = left.pop()
        node = scope.own_producer(each) if each not in seen else None
        seen.add(each)
        if node is None or normal_domain(node.domain) or node.op_type not in _PASSING:
            continue
        if _leaves_rows_out(scope, node, axis):
            return True
        left += node.input[1 if node.op_type == "Where" else 0 :]
    return False


def _leaves_rows_out(scope: Scope, node: NodeProto, axis: int) -> bool:
    is_choice = node.op_type == "Where"
    if node.op_type not in ("Add", "Where") or (is_choice and worked_out(scope, node.input[0]) is not None):
        return False
    values = [worked_out(scope, name) for name in node.input[is_choice:]]
    masks = [np.isneginf(each) for each in values if each is not None and each.dtype.kind == "f"]
    return any(each.any() if is_choice else each.ndim >= -axis and each.all(axis).any() for each in masks)


@dataclass(frozen=True)
class MaskedSum:
    """The sum of scores and what masks them, which a Softmax reads.

    Attributes:
        nodes: The Adds, from the one that adds the mask to the one that the Softmax reads.
        place: Which input of the first is the mask.
        of_caller: Whether the caller gives the numbers of the mask.
    """

    nodes: tuple[NodeProto, ...]
    place: int
    of_caller: bool


def masked_sum(scope: Scope, name: str, axis: int, depth: int = 0) -> MaskedSum | None:
    """Return the sum by which numbers may mask whole rows along an axis, counted from the end; None for no such sum.

    They are numbers that half precision holds, but not what is added to them: a model in half precision loses that
    itself, and has none. Of several sums it is the first.
    """
    node = scope.own_producer(name)
    if node is None or node.op_type != "Add" or depth > _DEEPEST or numbers_of(scope, name) == "half":
        return None
    if any(_is_without_largest(scope, each) for each in node.input):
        return None
    for each in node.input:
        if (found := masked_sum(scope, each, axis, depth + 1)) is not None:
            return replace(found, nodes=(*found.nodes, node))
    masks = [place for place, each in enumerate(node.input) if not depends_on_data(scope, each)]
    if depth or not masks:  # what a constant is added to is no mask of that
        masks = list(range(len(node.input)))
    spread = [is_spread(scope, node, place) is not False for place in range(len(node.input))]
    for place in sorted(masks, key=lambda each: (spread[each], each), reverse=True):
        is_mask, of_caller = _masking(scope, node.input[place], axis)
        if is_mask:
            return MaskedSum((node,), place, of_caller)
    return None


def _masking(scope: Scope, name: str, axis: int) -> tuple[bool, bool]:
    """Return whether data may be such numbers, and whether the caller gives them.

    They are constants, or an input, or what is chosen, multiplied or added of them where nothing but masks is made.
    """
    value = worked_out(scope, name)
    if value is not None:
        if value.dtype.kind != "f":
            return False, False
        rows = (value.max(axis) if value.ndim >= -axis and value.size else value).astype(
            np.float64
        )  # half holds no 1e7
        return bool(((rows > -_FAR) & (rows < -_SMALL)).any()), False
    seen, left, is_large, of_caller = set[str](), [name], False, False
    while left and len(seen) < _NEAR:
        each = left.pop()
        if each in seen or not depends_on_data(scope, each):
            continue
        seen.add(each)
        node = scope.own_producer(each)
        if node is None:
            of_caller = of_caller or numbers_of(scope, each) in ("single", "half")
            continue
        if normal_domain(node.domain) or node.op_type not in _MAKING_MASKS:
            return False, False
        values = [worked_out(scope, given) for given in node.input if node.op_type in _WEIGHING]
        sizes = [np.abs(given) for given in values if given is not None and given.dtype.kind == "f"]
        if node.op_type == "Mul" and any(bool((size >= _FAR).all()) for size in sizes):
            continue  # to what leaves nothing of scores, or to 0
        is_large = is_large or any(bool(((size > _SMALL) & (size < _FAR)).any()) for size in sizes)
        left += node.input
    return (is_large or of_caller) and not left, of_caller


def _is_without_largest(scope: Scope, name: str) -> bool:
    """Whether the largest of each row is taken off a mask, or a number where that is more."""
    node = scope.own_producer(name)
    if node is not None and node.op_type == "Max":
        node = next((each for given in node.input if (each := scope.own_producer(given)) is not None), None)
    off = scope.own_producer(node.input[1]) if node is not None and node.op_type == "Sub" else None
    if node is None or off is None or off.op_type != "Max":
        return False
    makers = [scope.own_producer(given) for given in off.input]
    rows = [each.input[0] for each in makers if each is not None and each.op_type == "ReduceMax"]
    return node.input[0] in (*off.input, *rows)
