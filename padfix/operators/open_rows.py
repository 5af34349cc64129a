"""Rows of an open number that OpenCV 4.14 counts otherwise where two tensors are computed with, element by element.

It lays models out for no rows at first. A matrix that something of two tensors gives then has another number of rows
than one that is given or multiplied, until a Reshape copies it, and no Concat takes both. Of lines and images it takes
one at first, unless their number is none of an input's first axis: a sequence may have its batch behind its steps.
"""

from __future__ import annotations

from onnx import NodeProto

from padfix.graph import attributes
from padfix.graph.scopes import Scope, normal_domain
from padfix.operators.batches import open_batches
from padfix.operators.constant_chains import worked_out
from padfix.operators.elementwise import ELEMENTWISE, LAYING_OUT, PICKING_OUT, REDUCTIONS

_OF_TWO = frozenset({"Add", "Div", "Max", "Mean", "Min", "Mul", "Pow", "Sub", "Sum", "Where"})
_LAYERS = frozenset({"Concat", "Gemm", "LogSoftmax", "MatMul", "Softmax"})
_PASSING = (ELEMENTWISE - _OF_TWO) | LAYING_OUT | PICKING_OUT | _LAYERS | set(REDUCTIONS)
_MATRIX = 2
_FARTHEST = 16
"""Operators that are looked through."""


def joins_open_rows(scope: Scope, node: NodeProto) -> bool:
    """Whether a Concat joins tensors of an open number of rows, of which that is counted in both ways."""
    known = scope.type_of(node.output[0])
    shape = () if known is None or known.shape is None else known.shape
    if len(shape) < _MATRIX or isinstance(shape[0], int) or attributes.integer(node, "axis", 1) in (0, -len(shape)):
        return False
    if len(shape) > _MATRIX and (shape[0] is None or shape[0] in open_batches(scope)):
        return False
    return len({is_counted_of_two(scope, name) for name in node.input}) > 1


def is_counted_of_two(scope: Scope, name: str) -> bool:
    """Whether a matrix has the number of rows that something of two tensors gives."""
    for _ in range(_FARTHEST):
        producer = scope.own_producer(name)
        if producer is None or normal_domain(producer.domain):
            return False
        if producer.op_type in _OF_TWO:
            factors = scope.own_producer(producer.input[0])
            is_bias = producer.op_type == "Add" and worked_out(scope, producer.input[-1]) is not None
            if factors is None or factors.op_type != "MatMul" or not is_bias:
                return True
            producer = factors  # a product and its bias are one layer
        elif producer.op_type == "Reshape":
            told = worked_out(scope, producer.input[1]) if len(producer.input) > 1 else None
            if told is None or not told.size or told[0] == 0:
                return False
        elif producer.op_type not in _PASSING:
            return False
        name = producer.input[0]
    return False
