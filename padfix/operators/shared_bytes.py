"""Bytes that a DequantizeLinear reads beside others, or that are no quantizer's."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from onnx import NodeProto

from padfix.graph.dependence import reached
from padfix.graph.scopes import Scope
from padfix.operators.bytes_among_floats import moved_from
from padfix.operators.constant_chains import is_constant, worked_out

_TAKING = "DequantizeLinear"


def is_of_plain_bytes(scope: Scope, node: NodeProto) -> bool:
    """Whether what a DequantizeLinear reads are bytes that no quantizer gives, or that others than its like read too.

    Such bytes are none that stand for numbers in steps, but integers.
    """
    name = node.input[0]
    if is_constant(scope, name):
        return False
    if scope.own_producer(name) is None:
        return scope.is_output(name) or any(each.op_type != _TAKING for each in scope.consumers(name))
    before = partial(moved_from, scope)
    names = [each for each in reached([name], before) if each and not before(each)]
    makers = [scope.own_producer(each) for each in names if not is_constant(scope, each)]
    is_quantized = [each is not None and ("Quantize" in each.op_type or "QLinear" in each.op_type) for each in makers]
    return not makers or not all(is_quantized)


def is_in_other_steps(scope: Scope, node: NodeProto) -> bool:
    """Whether another DequantizeLinear takes the same bytes of no node in other steps, where this one's aren't of 1."""
    name, own = node.input[0], _steps(scope, node)
    if scope.own_producer(name) is not None or is_constant(scope, name) or own in (((1.0,), (0,)), ((1.0,), ())):
        return False
    readers = [each for each in scope.consumers(name) if each.op_type == _TAKING]
    return any(_steps(scope, each) != own for each in readers)


def _steps(scope: Scope, node: NodeProto) -> tuple[Sequence[float | str], ...]:
    """Return the scale and the zero point: their elements, or the name of what is computed."""
    told = [(name, worked_out(scope, name)) for name in node.input[1:] if name]
    values = [(name,) if value is None else tuple(value.reshape(-1).tolist()) for name, value in told]
    return (*values, ())[:2]
