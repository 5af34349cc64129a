"""What goes wrong beside lengths that are left open, which OpenCV 4.14 takes for 0 as long as it reads a model."""

from __future__ import annotations

from onnx import NodeProto

from padfix.graph import attributes
from padfix.graph.scopes import Scope, ValueType, normal_domain
from padfix.operators.constant_chains import is_constant
from padfix.operators.elementwise import ELEMENTWISE
from padfix.operators.lists import depends_on_data
from padfix.operators.loaded_lengths import are_images_alone

_WEIGHING = ("Conv", "ConvTranspose")

_POOLING_ALL = ("GlobalAveragePool", "GlobalLpPool", "GlobalMaxPool")

_ONE_BY_ONE = ELEMENTWISE | {"BatchNormalization", "Conv"}
"""What leaves one element of an axis one element."""

_FARTHEST = 16
"""Operators that are looked at."""


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
