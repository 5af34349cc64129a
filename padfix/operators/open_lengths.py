"""What goes wrong beside lengths that are left open, which OpenCV 4.14 takes for 0 as long as it reads a model."""

from __future__ import annotations

from onnx import NodeProto

from padfix.graph import attributes
from padfix.graph.scopes import Dimension, Scope, ValueType, normal_domain
from padfix.operators.constant_chains import is_constant
from padfix.operators.elementwise import ELEMENTWISE
from padfix.operators.lists import depends_on_data
from padfix.operators.loaded_lengths import are_images_alone

_WEIGHING = ("Conv", "ConvTranspose")

_POOLING_ALL = ("GlobalAveragePool", "GlobalLpPool", "GlobalMaxPool")

_ONE_BY_ONE = ELEMENTWISE | {"BatchNormalization", "Conv"}
"""What leaves one element of an axis one element."""

_STACK = 3
"""The fewest axes of which the first may stay open."""

_FARTHEST = 16
"""Operators that are looked at."""


def flattens_open(scope: Scope, node: NodeProto) -> bool:
    """Whether a Flatten makes one row or one column of data of which a length is open."""
    known, axis = scope.type_of(node.input[0]), attributes.integer(node, "axis", 1)
    return (
        known is not None and known.rank is not None and known.lengths is None and axis in (0, -known.rank, known.rank)
    )


def multiplies_open(scope: Scope, node: NodeProto) -> bool:
    """Whether a product is told a length on one side that an input leaves open on the other: of a row, or how many.

    Of a batch alone that is open, the first of three axes, importers make one.
    """
    first, second = (
        [] if (known := scope.type_of(name)) is None else list(known.shape or ()) for name in node.input[:2]
    )
    is_late = any(not isinstance(each, int) for shape in (first, second) for each in shape[len(shape) >= _STACK :])
    pairs = [*zip(first[-3::-1], second[-3::-1], strict=False), *zip(first[-1:], second[-2:-1], strict=False)]
    return is_late and any(_differ(scope, *each) for each in pairs)


def puts_open(scope: Scope, node: NodeProto) -> bool:
    """Whether lengths are told of what a ScatterND puts that its data or indices leave open, or the other way round."""
    types = [scope.type_of(name) for name in node.input[:3]]
    shapes = [each.shape for each in types if each is not None and each.shape]
    if len(shapes) < len(types) or not isinstance(depth := shapes[1][-1], int):
        return False
    put = (*shapes[1][:-1], *shapes[0][depth:])
    return any(_differ(scope, *each) for each in zip(put, shapes[2], strict=False))


def _differ(scope: Scope, one: Dimension, other: Dimension) -> bool:
    """Whether one length is told, and not 1, and the other one is what an input of the model leaves open."""
    types = (scope.root.types.get(name) for name in scope.root.inputs)
    named = {each for known in types if known is not None for each in known.shape or () if isinstance(each, str)}
    return any(each in named and isinstance(told, int) and told != 1 for each, told in ((one, other), (other, one)))


def leaves_known_lengths(scope: Scope, node: NodeProto) -> bool:
    """Whether a Reshape copies a known length of data of which another is open, or leaves one to be found of weights.

    Those are weights of convolutions that go over open lengths. Of data whose lengths are all known it copies one, or
    finds it, where an input of the model leaves another open.
    """
    told = scope.constant(node.input[1]) if len(node.input) > 1 else None
    data, gives = scope.type_of(node.input[0]), scope.type_of(node.output[0])
    if told is None or data is None or not data.shape or attributes.integer(node, "allowzero", 0):
        return False
    if is_constant(scope, node.input[0]):
        readers = [each for each in scope.consumers(node.output[0]) if each.op_type in _WEIGHING]
        goes_over = [scope.type_of(each.input[0]) for each in readers if node.output[0] in each.input[1:2]]
        is_known = gives is not None and gives.lengths is not None
        return is_known and bool((told <= 0).any()) and any(is_open_behind_batch(each) for each in goes_over)
    copied = [axis for axis, each in enumerate(told.reshape(-1)) if each == 0 and axis < len(data.shape)]
    if are_images_alone(scope):
        return False
    if data.lengths is not None:
        return bool((told <= 0).any()) and gives is not None and gives.lengths is not None
    return any(isinstance(data.shape[axis], int) for axis in copied)


def is_open_behind_batch(known: ValueType | None) -> bool:
    """Whether lengths behind the first are left open."""
    return known is not None and any(not isinstance(each, int) for each in (known.shape or ())[1:])


def is_behind_open_pool(scope: Scope, node: NodeProto) -> bool:
    """Whether the lengths of 1 that a node reads are those of a pool over all of an open length, also further back."""
    before = scope.own_producer(node.input[0])
    for _ in range(_FARTHEST):
        if before is None or normal_domain(before.domain):
            return False
        if before.op_type in _POOLING_ALL:
            return is_open_behind_batch(scope.type_of(before.input[0]))
        if before.op_type not in _ONE_BY_ONE:
            return False
        data = next((name for name in before.input if name and depends_on_data(scope, name)), "")
        before = scope.own_producer(data) if data else None
    return False
