"""Constants that nodes give: how their numbers are written, and whether a GELU is made of them."""

from __future__ import annotations

import numpy as np
from onnx import NodeProto

from padfix.graph import attributes
from padfix.graph.dependence import reached
from padfix.graph.scopes import Scope
from padfix.targets.traits import Traits

_BEHIND_ERF = ("Add", "Mul", "Mul")
"""What stands behind the Erf of a GELU, in its order."""


_ONE = ("value_float", "value_int")
_WHOLE = ("value_int", "value_ints")
"""The attributes of a Constant that hold one number without an axis, and whole numbers."""

_MEETING = (
    *("Add", "Concat", "Div", "Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual", "Max", "Min", "Mod"),
    *("BitwiseAnd", "BitwiseOr", "BitwiseXor", "Mul", "Range", "ScatterElements", "ScatterND", "Sub", "Sum", "Where"),
)
"""Operators that take integers together with others, which are to be of the same type."""

_HANDING_ON = ("Expand", "Gather", "Identity", "Reshape", "Slice", "Squeeze", "Tile", "Transpose", "Unsqueeze")
"""Operators that give elements of what they take first."""


_SCALED = {"DequantizeLinear": 2, "QLinearConv": 2, "QLinearMatMul": 2, "QuantizeLinear": 2}
"""Operators with as many inputs before a zero point, which is as many elements as the scale."""

_ARITHMETIC = ("Add", "Cast", "Div", "Identity", "Max", "Min", "Mod", "Mul", "Neg", "Pow", "Sub")
"""Operators that give as many axes as they take."""


def constant_traits(scope: Scope, node: NodeProto) -> Traits:
    """Return of a Constant whether it holds a tensor, sparse too, is a result of the model, and a number of a GELU.

    Of numbers that are none, a runtime may take one for a list of one element, and whole ones for integers of 32 bits.
    """
    return {
        "of-tensor": _holds(node, ("value", "sparse_value")),
        "number-among-numbers": _holds(node, _ONE) and _stands_among_numbers(scope, node.output[0]),
        "beyond-32-bits": _holds(node, _WHOLE) and _is_beyond_32_bits(scope, node.output[0]),
        "meets-integers": _holds(node, _WHOLE) and _meets_integers(scope, node.output[0]),
        "as-result": scope.parent is None and scope.is_output(node.output[0]),
        "of-gelu": _is_of_gelu(scope, node.output[0]),
    }


def _stands_among_numbers(scope: Scope, name: str) -> bool:
    """Whether a number says which element a Gather takes, or is given axes, or computed with other numbers alone.

    So do a scale and a zero point, which are to be of one shape.
    """
    for reader in scope.consumers(name):
        types = [scope.type_of(each) for each in reader.input if each]
        if reader.op_type in _SCALED and len(types) > _SCALED[reader.op_type] and name != reader.input[0]:
            return True
        if reader.op_type == "Unsqueeze" or (reader.op_type == "Gather" and reader.input[1] == name):
            return True
        if reader.op_type in _ARITHMETIC and all(each is None or not each.rank for each in types):
            return True
    return False


def _meets_integers(scope: Scope, name: str) -> bool:
    """Whether integers are taken together with others, but for such of a Constant, at once or when handed on."""

    def is_alone(reader: NodeProto, given: str) -> bool:
        return all(each == given or _is_whole(scope.producer(each)) for each in reader.input)

    def handed_on(given: str) -> list[str]:
        readers = scope.consumers(given)
        moving = [each for each in readers if each.op_type in _HANDING_ON and each.input[0] == given]
        joining = [each for each in readers if each.op_type in _MEETING and is_alone(each, given)]
        return [each.output[0] for each in (*moving, *joining)]

    return any(
        reader.op_type in _MEETING and not is_alone(reader, given)
        for given in reached([name], handed_on)
        for reader in scope.consumers(given)
    )


def _is_whole(node: NodeProto | None) -> bool:
    """Whether a node is a Constant of whole numbers that are no tensor."""
    return node is not None and node.op_type == "Constant" and _holds(node, _WHOLE)


def _holds(node: NodeProto, names: tuple[str, ...]) -> bool:
    return any(attributes.find(node, each) is not None for each in names)


def _is_beyond_32_bits(scope: Scope, name: str) -> bool:
    """Whether a constant holds a whole number that takes more than 32 bits with its sign."""
    value, bounds = scope.constant(name), np.iinfo(np.int32)
    return value is not None and bool(((value < bounds.min) | (value > bounds.max)).any())


def _is_of_gelu(scope: Scope, name: str) -> bool:
    """Whether what reads a constant is divided before an Erf, or one of the sum and products behind it."""
    for reader in scope.consumers(name):
        behind = [each for given in reader.output for each in scope.consumers(given)]
        if reader.op_type in ("Div", "Mul") and any(each.op_type == "Erf" for each in behind):
            return True
        for start in range(len(_BEHIND_ERF)):
            if _is_behind_erf(scope, reader, _BEHIND_ERF[start::-1]):
                return True
    return False


def _is_behind_erf(scope: Scope, node: NodeProto, op_types: tuple[str, ...]) -> bool:
    """Whether a node is of the first of these types, what it reads given by one of the next, and so on to an Erf."""
    if not op_types:
        return node.op_type == "Erf"
    if node.op_type != op_types[0]:
        return False
    producers = (scope.producer(name) for name in node.input if name)
    return any(each is not None and _is_behind_erf(scope, each, op_types[1:]) for each in producers)
