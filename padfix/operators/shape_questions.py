"""Questions about shapes of which a part may not be known."""

from __future__ import annotations

import math
from collections.abc import Sequence

from onnx import NodeProto

from padfix.graph.scopes import Scope
from padfix.operators.lists import depends_on_data

_VOLUMES, _MATRICES = 5, 3
"""Axes of matrices in planes, one of which is there for each image; and of matrices at all."""


def rank_of(scope: Scope, name: str) -> int:
    """Return how many axes a value has; 0 where that is not known, as of a number."""
    known = scope.type_of(name)
    return 0 if known is None else known.rank or 0


def is_by_a_number(scope: Scope, node: NodeProto) -> bool:
    """Whether one of the matrices that a node multiplies has one element, and depends on no data."""
    return any(is_a_number(scope, name) for name in node.input)


def is_a_number(scope: Scope, name: str) -> bool:
    """Whether a value has one element and depends on no data: runtimes work it out, and take it for a number."""
    known = scope.type_of(name)
    is_one = known is not None and known.lengths is not None and math.prod(known.lengths) == 1
    return is_one and not depends_on_data(scope, name)


def any_of(known: Sequence[bool | None]) -> bool | None:
    """Return whether one is true, None where that depends on one that is not known."""
    if any(known):
        return True
    return None if None in known else False


_JOINED_AT_ONCE = 3
"""Inputs that OpenCV takes in one step; of more, the first two."""

_JOINING = ("Add", "Div", "Max", "Min", "Mul", "Sub")
"""What gives each of its inputs the shape of all."""


def is_spread(scope: Scope, node: NodeProto, position: int) -> bool | None:
    """Return whether an input takes a shape of the result that is not its own; None where that is not known."""
    given, gives = scope.type_of(node.input[position]), scope.type_of(node.output[0])
    maker, others = scope.own_producer(node.input[position]), {*node.input} - {node.input[position]}
    if maker is not None and maker.op_type in _JOINING and others and others <= {*maker.input}:
        return False  # it has taken the shapes of the others already
    if given is None or gives is None or given.shape is None or gives.shape is None:
        return None
    if len(given.shape) != len(gives.shape):
        return True
    return any_of([None if None in pair else pair[0] != pair[1] for pair in zip(given.shape, gives.shape, strict=True)])


def is_spread_but_for_one(scope: Scope, node: NodeProto) -> bool | None:
    """Return whether one of two inputs takes a shape that is not its own, be it that the second is of one element."""
    known = scope.type_of(node.input[1])
    is_one = known is not None and known.lengths is not None and math.prod(known.lengths) == 1
    return any_of([is_spread(scope, node, place) for place in range(1 if is_one else 2)])


def has_column_among_first(scope: Scope, node: NodeProto) -> bool | None:
    """Return whether one of the first two inputs of four and more has one column where the result has several.

    None where that is not known; a number has one column, too.
    """
    gives, given = scope.type_of(node.output[0]), [scope.type_of(name) for name in node.input]
    if len(given) <= _JOINED_AT_ONCE:
        return False
    if gives is None or gives.shape is None or any(each is None or each.shape is None for each in given[:2]):
        return None
    if len(gives.shape) <= 1 or gives.shape[-1] == 1:
        return False
    columns = [each.shape[-1] if each.shape else 1 for each in given[:2] if each is not None and each.shape is not None]
    return any_of([None if not isinstance(each, int) and each != gives.shape[-1] else each == 1 for each in columns])


def copied_along_first(scope: Scope, node: NodeProto) -> list[int]:
    """Return which factors of a product of volumes have one matrix along their first axis, and the result several."""
    types = [scope.type_of(name) for name in (*node.input[:2], node.output[0])]
    shapes = [() if known is None or known.shape is None else known.shape for known in types]
    result = shapes.pop()
    if max(map(len, shapes)) < _VOLUMES or len(result) < _VOLUMES:
        return []
    return [
        place
        for place, shape in enumerate(shapes)
        if _MATRICES <= len(shape) <= len(result) and shape[0] == 1 and result[-len(shape)] != 1
    ]
