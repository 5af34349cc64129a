"""Weights in bytes without a sign whose zero point is 0, which convolutions multiply with bytes whose own is not."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from onnx import NodeProto, TensorProto

from padfix.graph.dependence import reached
from padfix.graph.scopes import Scope
from padfix.operators.bytes_among_floats import moved_from

_BETWEEN = 2
"""Operators that may stand between a convolution and what makes bytes of its numbers."""


def is_from_zero(scope: Scope, name: str, zeros: Sequence[str]) -> bool:
    """Whether bytes have no sign, and a zero point of 0 or none."""
    known = scope.type_of(name)
    if known is None or known.elem_type != TensorProto.UINT8:
        return False
    return not any(zeros) or ((zero := scope.constant(zeros[0])) is not None and not zero.any())


def is_off_zero(scope: Scope, name: str) -> bool:
    """Whether a zero point is not 0, or not known."""
    zero = scope.constant(name) if name else None
    return bool(name) and (zero is None or bool(zero.any()))


def is_of_bytes_off_zero(scope: Scope, convolution: NodeProto) -> bool:
    """Whether bytes with a zero point other than 0 are convolved, and the result is quantized."""
    data = reached([convolution.input[0]], partial(moved_from, scope))
    makers = [maker for name in data if (maker := scope.own_producer(name)) is not None]
    of_bytes = [each.input[2] for each in makers if each.op_type == "DequantizeLinear" and any(each.input[2:])]
    return any(is_off_zero(scope, name) for name in of_bytes) and _is_quantized(scope, convolution, _BETWEEN)


def _is_quantized(scope: Scope, node: NodeProto, between: int) -> bool:
    readers = scope.consumers(node.output[0])
    if any(each.op_type == "QuantizeLinear" for each in readers):
        return True
    return between > 0 and any(each.output and _is_quantized(scope, each, between - 1) for each in readers)
