"""What kind of numbers data are, in the words that targets state their facts in."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
from onnx import NodeProto, TensorProto, helper

from padfix.graph.scopes import Scope
from padfix.operators.elementwise import COPYING, LAYING_OUT, MOST_MOVES, PICKING_OUT
from padfix.targets.traits import Trait

_CASTING = ("Cast", "CastLike", "Identity")
_MAKING_WHOLE = ("Ceil", "Floor", "Round", "Sign")
_STAYING_WHOLE = LAYING_OUT | COPYING | PICKING_OUT
_STAYING_WHOLE |= {"Abs", "Add", "Cast", "Max", "Min", "Mul", "Neg", "ReduceMax", "ReduceMin", "Relu", "Sub"}

_INTEGERS = ("integer", "byte")

JOINING_DOUBLES = frozenset(
    (
        *("Add", "Concat", "Einsum", "MatMul", "Max", "Mean", "Min", "Mod"),
        *("ScatterElements", "ScatterND", "Sub", "Sum"),
    )
)
"""What takes no doubles as constants for floats, be they of the whole shape."""

_ODD_INTEGERS = (TensorProto.INT8, TensorProto.INT16, TensorProto.UINT8, TensorProto.UINT16, TensorProto.UINT64)

_WIDE_INTEGERS = (TensorProto.INT64, TensorProto.UINT64)
_MOST_OF_32_BITS = (1 << 31) - 1

_MOST_BETWEEN = 8
"""Operators that are looked through, as far as where numbers come from."""

_BYTES: Mapping[int, str] = {TensorProto.INT8: "signed", TensorProto.UINT8: "unsigned"}

_SHORT_FLOATS = (
    *(TensorProto.BFLOAT16, TensorProto.FLOAT8E4M3FN, TensorProto.FLOAT8E4M3FNUZ),
    *(TensorProto.FLOAT8E5M2, TensorProto.FLOAT8E5M2FNUZ),
)
"""Floats that have fewer digits than those of 16 bits that all know."""

_FLOATS: Mapping[int, str] = {TensorProto.FLOAT16: "half", TensorProto.BFLOAT16: "half", TensorProto.DOUBLE: "double"}


def numbers_of(scope: Scope, name: str) -> str:
    """Return what kind of numbers data are; the usual floats where that is not known."""
    known = scope.type_of(name) if name else None
    elem_type = TensorProto.FLOAT if known is None else known.elem_type
    if elem_type == TensorProto.BOOL:
        return "boolean"
    return _FLOATS.get(elem_type, "single" if elements_of(elem_type) in (None, "float") else "integer")


def bytes_of(scope: Scope, name: str) -> str:
    """Return whether data are bytes with a sign, without one, or none."""
    known = scope.type_of(name) if name else None
    return _BYTES.get(0 if known is None else known.elem_type, "none")


def elements_of(elem_type: int | None) -> str | None:
    """Return what kind of numbers a type holds; integers of 8 bits are apart. None where it is not known."""
    if not elem_type:
        return None
    if elem_type in (TensorProto.INT8, TensorProto.UINT8):
        return "byte"
    return "integer" if np.dtype(helper.tensor_dtype_to_np_dtype(elem_type)).kind in "iu" else "float"


def type_of_data(scope: Scope, node: NodeProto) -> dict[str, Trait]:
    """Return what type of numbers a node takes, a Where behind its condition, by the names of ONNX; none if unknown.

    And whether these are doubles that were floats.
    """
    place = 1 if node.op_type == "Where" else 0
    known = scope.type_of(node.input[place]) if place < len(node.input) else None
    told: dict[str, Trait] = {} if known is None or not known.elem_type else {"type": name_of(known.elem_type)}
    if node.op_type in ("Cast", "CastLike"):
        given = scope.type_of(node.output[0])
        told["gives-short-floats"] = given is not None and given.elem_type in _SHORT_FLOATS
    return {**told, "doubles-of-floats": computes_in_widened(scope, node)}


def computes_in_widened(scope: Scope, node: NodeProto) -> bool:
    """Whether a node computes with constants in doubles that a Cast makes of floats, be it before others.

    What multiplies, divides or compares takes constants that have the whole shape of the result for floats.
    """
    given = [name for name in node.input if name]
    data = [name for name in given if scope.constant(name) is None]
    if len(data) in (0, len(given)) or any(numbers_of(scope, name) != "double" for name in given):
        return False
    result = scope.type_of(node.output[0])
    shapes = {told.shape for told in map(scope.constant, given) if told is not None}
    if node.op_type not in JOINING_DOUBLES and result is not None and shapes == {result.shape}:
        return False
    return any(_is_widened(scope, name, _MOST_BETWEEN) for name in data)


def _is_widened(scope: Scope, name: str, most: int) -> bool:
    producer = scope.producer(name)
    if producer is None or not most or numbers_of(scope, name) != "double":
        return False
    if producer.op_type in ("Cast", "CastLike") and numbers_of(scope, producer.input[0]) == "single":
        return scope.constant(name) is None
    return any(_is_widened(scope, each, most - 1) for each in producer.input if each)


def name_of(elem_type: int) -> str:
    """Return a type's name in ONNX's own words: ``float``, ``uint8``."""
    return str(TensorProto.DataType.Name(elem_type)).lower()


def is_odd_integer(scope: Scope, name: str) -> bool:
    """Whether data are integers of 8, 16 or 64 bits of a kind that few runtimes compute with."""
    known = scope.type_of(name) if name else None
    return known is not None and known.elem_type in _ODD_INTEGERS


def is_narrow_integer(scope: Scope, name: str) -> bool:
    """Whether data are integers of up to 32 bits."""
    known = scope.type_of(name) if name else None
    return known is not None and known.elem_type in (TensorProto.INT8, TensorProto.INT16, TensorProto.INT32)


def is_whole(scope: Scope, name: str, depth: int = 0) -> bool:
    """Whether numbers are known to have no fractions: by their type, or by what computes them."""
    known, value, producer = scope.type_of(name), scope.constant(name), scope.producer(name)
    if known is not None and (known.elem_type == TensorProto.BOOL or elements_of(known.elem_type) in _INTEGERS):
        return True
    if value is not None or producer is None:
        return value is not None and bool((value == np.trunc(value)).all())
    if producer.op_type in _MAKING_WHOLE:
        return True
    is_kept = producer.op_type in _STAYING_WHOLE and depth < _MOST_BETWEEN
    return is_kept and all(is_whole(scope, each, depth + 1) for each in producer.input if each)


def multiplies_whole_numbers(scope: Scope, node: NodeProto) -> bool:
    """Whether a window's data, and the weights that it may have, are known to have no fractions."""
    return all(is_whole(scope, name) for name in node.input[:2])


def cast_changes_numbers(scope: Scope, node: NodeProto) -> bool:
    """Whether a Cast has fractions to cut off, or other numbers than 0 and 1 to make booleans of."""
    before, behind = scope.type_of(node.input[0]), scope.type_of(node.output[0])
    if behind is None or before is None or before.elem_type == TensorProto.BOOL:
        return False
    if behind.elem_type != TensorProto.BOOL:
        return elements_of(behind.elem_type) in _INTEGERS and not is_whole(scope, node.input[0])
    return not _is_truth(scope, node.input[0])


def _is_truth(scope: Scope, name: str, depth: int = 0) -> bool:
    """Whether numbers are 0 and 1 alone: the signs of magnitudes, and what is made of booleans."""
    known, producer = scope.type_of(name), scope.producer(name)
    if known is not None and known.elem_type == TensorProto.BOOL:
        return True
    if producer is None or depth > _MOST_BETWEEN:
        return False
    if producer.op_type == "Sign":
        size = scope.producer(producer.input[0])
        while size is not None and size.op_type in LAYING_OUT:
            size = scope.producer(size.input[0])
        return size is not None and size.op_type == "Abs"
    is_kept = producer.op_type in (*LAYING_OUT, "Cast", "ReduceMax", "ReduceMin")
    return is_kept and _is_truth(scope, producer.input[0], depth + 1)


def quotient_changes_numbers(scope: Scope, node: NodeProto) -> bool:
    """Whether a Div of integers has a rest to drop, which is not taken off before it."""
    known, less = scope.type_of(node.output[0]), scope.producer(node.input[0])
    if known is None or elements_of(known.elem_type) not in _INTEGERS:
        return False
    rest = scope.producer(less.input[1]) if less is not None and less.op_type == "Sub" else None
    return less is None or rest is None or rest.op_type != "Mod" or rest.input[:] != [less.input[0], node.input[1]]


def divides_each(scope: Scope, node: NodeProto) -> bool:
    """Whether a constant of several elements, as many as the result has, divides integers."""
    known, divisor = scope.type_of(node.output[0]), scope.constant(node.input[1])
    if known is None or divisor is None or divisor.dtype.kind not in "iu" or divisor.size == 1:
        return False
    return known.lengths is None or divisor.size == math.prod(known.lengths)


def holds_infinity(scope: Scope, name: str) -> bool:
    """Whether there is an infinity among the numbers of a constant, or of one of another type that is made of it."""
    known = constant_before_casts(scope, name)
    return known is not None and known.dtype.kind == "f" and bool(np.isinf(known).any())


def holds_beyond_half(scope: Scope, name: str) -> bool:
    """Whether a number of a floating constant is larger than half precision has them."""
    known = scope.constant(name)
    return known is not None and known.dtype.kind == "f" and bool((np.abs(known) > np.finfo(np.float16).max).any())


_ARITHMETIC = ("Add", "Div", "Max", "Min", "Mul", "Sub", "Sum")
"""What is computed with a number, where others choose it."""

_PUTTING = frozenset(("Add", "Concat", "Pad", "Sub", "Sum", "Where"))
"""What gives an infinity that it reads, and most others beside it."""

_LEAVING = LAYING_OUT | COPYING | PICKING_OUT | {"Concat", "Pad"}
"""What gives the numbers that it reads elsewhere, and no others for them."""


def far_numbers(scope: Scope, node: NodeProto) -> dict[str, bool]:
    """Return whether a node counts with a constant of one infinite element, and reads integers beyond 32 bits.

    And whether a result of the model has an infinity of its constants.
    """
    single = (name for name in node.input if name and (known := scope.constant(name)) is not None and known.size == 1)
    return {
        "by-infinity": node.op_type in _ARITHMETIC and any(holds_infinity(scope, name) for name in single),
        "infinity-as-result": node.op_type in _PUTTING and _puts_infinity_in_result(scope, node),
        "of-wide-integers": any(holds_wide_integers(scope, name) for name in node.input),
    }


def _puts_infinity_in_result(scope: Scope, node: NodeProto) -> bool:
    """Whether an infinity among the constants of a node is in what the model gives, however that is laid out."""
    if scope.parent is not None or not any(name and holds_infinity(scope, name) for name in node.input):
        return False
    names = [node.output[0]]
    for _ in range(MOST_MOVES + 1):
        if any(map(scope.is_output, names)):
            return True
        readers = [each for name in names for each in scope.consumers(name) if each.op_type in _LEAVING]
        names = [each.output[0] for each in readers]
    return False


def holds_wide_integers(scope: Scope, name: str) -> bool:
    """Whether an integer of a constant does not fit 32 bits; the two that mean to the end or the begin are none."""
    known = scope.type_of(name) if name else None
    if known is None or known.elem_type not in _WIDE_INTEGERS or (value := scope.constant(name)) is None:
        return False
    ends = np.iinfo(value.dtype)
    is_end = (value == ends.max) | (value == ends.min)
    return bool(((value > _MOST_OF_32_BITS) | (value < -_MOST_OF_32_BITS - 1))[~is_end].any())


def constant_before_casts(scope: Scope, name: str) -> np.ndarray | None:
    """Return the constant of which a value is made by nothing but changes of its type, or which it is itself."""
    for _ in range(_MOST_BETWEEN):
        producer = scope.producer(name) if name else None
        if producer is None or producer.op_type not in _CASTING or not producer.input:
            break
        name = producer.input[0]
    return scope.constant(name) if name else None
