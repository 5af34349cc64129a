"""What goes wrong beside lengths that are left open, which OpenCV 4.14 takes for 0 as long as it reads a model."""

from __future__ import annotations

from onnx import NodeProto

from padfix.graph import attributes
from padfix.graph.scopes import Scope, ValueType, normal_domain
from padfix.operators.constant_chains import is_constant
from padfix.operators.elementwise import ELEMENTWISE
from padfix.operators.lists import depends_on_data

_WEIGHING = ("Conv", "ConvTranspose")

_KEEPING = ("Add", "Cast", "Clip", "Div", "Dropout", "Identity", "Mul", "Softmax", "Sub", "Where")
"""Operators that scores may go through on their way to a product."""

_SPREADING = ("Add", "Div", "Max", "Mean", "Min", "Mul", "Sub", "Sum")

_POOLING_ALL = ("GlobalAveragePool", "GlobalLpPool", "GlobalMaxPool")

_ONE_BY_ONE = ELEMENTWISE | {"BatchNormalization", "Conv"}
"""What leaves one element of an axis one element."""

_FARTHEST = 16
"""Operators that are looked at."""


def leaves_known_lengths(scope: Scope, node: NodeProto) -> bool:
    """Whether a Reshape copies a known length of data of which another is open, or leaves one to be found of weights.

    Those are weights of convolutions that go over open lengths.
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
    copied = [axis for axis, each in enumerate(told.reshape(-1)) if each == 0 and 0 < axis < len(data.shape)]
    return is_open_behind_batch(data) and any(isinstance(data.shape[axis], int) for axis in copied)


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


def spreads_over_open(scope: Scope, node: NodeProto) -> bool:
    """Whether a constant number meets scores of an open length, which the product behind them sums over as another.

    Or the keys that give them this length.
    """
    data = [name for name in node.input if name and depends_on_data(scope, name)]
    told = [scope.type_of(name) for name in node.input if name not in data]
    is_number = all(each is not None and each.lengths is not None and set(each.lengths) <= {1} for each in told)
    known = scope.type_of(data[0]) if len(data) == 1 else None
    if not told or not is_number or known is None or not known.shape or _is_one(scope, data[0], -1):
        return False
    values = _summed_with(scope, node.output[0])
    return values is not None and not _is_one(scope, values, -2)


def _summed_with(scope: Scope, name: str) -> str | None:
    """Return what a product behind scores multiplies them with, summing over their last axis.

    Of keys, by which queries are multiplied first, it is that product which gives the scores.
    """
    for _ in range(_FARTHEST):
        readers = scope.consumers(name)
        for each in readers:
            if each.op_type == "MatMul" and each.input[0] == name:
                return str(each.input[1])
        passing = next((each for each in readers if each.op_type in (*_KEEPING, "MatMul")), None)
        if passing is None:
            return None
        name = passing.output[0]
    return None


def _is_one(scope: Scope, name: str, axis: int) -> bool:
    """Whether a length, counted from the end, is known, or is an open one that constants have made 1 of 0."""
    for _ in range(_FARTHEST):
        known, node = scope.type_of(name), scope.own_producer(name)
        rank = len(known.shape) if known is not None and known.shape else 0
        if known is None or known.shape is None or rank < -axis or isinstance(known.shape[axis], int):
            return True
        if node is None or normal_domain(node.domain) or node.op_type == "Reshape":
            return False  # what a Reshape copies is 0 again
        if node.op_type == "Transpose":
            perm = attributes.integers(node, "perm") or list(range(rank))[::-1]
            axis = perm[axis] - rank
        if node.op_type == "MatMul":
            name = node.input[1 if axis == -1 else 0]
            continue
        if node.op_type in _SPREADING and not all(depends_on_data(scope, each) for each in node.input if each):
            return True
        name = node.input[0]
    return False
