"""What masks the data of a Softmax: infinities below 0, with which data may leave a whole row out."""

from __future__ import annotations

import numpy as np
from onnx import NodeProto

from padfix.graph.scopes import Scope, normal_domain
from padfix.operators.constant_chains import worked_out
from padfix.operators.elementwise import COPYING, LAYING_OUT, PICKING_OUT

_PASSING = LAYING_OUT | COPYING | PICKING_OUT | {"Add", "Cast", "Mul", "Where"}
"""What lies between a mask and the Softmax that it is for."""

_NEAR = 32


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
