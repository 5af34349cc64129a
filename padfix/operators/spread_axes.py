"""Sums that spread data of one axis, which a runtime that puts axes back by their lengths takes for another axis.

And constants of fewer axes that are read first.

onnx2tf gives some sums in the order of the model: it tries orders of each term and takes that in which the most lengths
are where the result has them. Data of one axis fit as well along any other that is as long.
"""

from __future__ import annotations

from collections.abc import Sequence

from onnx import NodeProto

from padfix.graph.scopes import Dimension, Scope
from padfix.operators.axis_order import may_be_moved
from padfix.operators.taken_axes import LEAST_RANK


def spreads_along_alike(scope: Scope, node: NodeProto) -> bool | None:
    """Whether a sum of computed data spreads one of a single axis, which is as long as another one of the result.

    None where a length that is left open decides.
    """
    types = [scope.type_of(name) for name in (*node.output[:1], *node.input)]
    shapes = [() if known is None or known.shape is None else known.shape for known in types]
    result = shapes[0]
    # Of three axes an order that is not that of images is none but that of the model.
    if len(result) <= LEAST_RANK or any(len(each) != len(result) for each in shapes):
        return False
    if any(scope.constant(name) is not None for name in node.input) or not may_be_moved(scope, node.input):
        return False
    found = [_fits_elsewhere(each, result) for each in shapes[1:]]
    return True if True in found else None if None in found else False


def joins_constant_first(scope: Scope, node: NodeProto) -> bool:
    """Whether a constant of two axes and more, but of fewer than the result, is what a node reads first."""
    first, result = scope.constant(node.input[0]), scope.type_of(node.output[0])
    rank = 0 if result is None or result.rank is None else result.rank
    return first is not None and 1 < first.ndim < rank


def spread_term(scope: Scope, node: NodeProto) -> int:
    """Return which term of such a sum has a single axis, the last of several."""
    types = [scope.type_of(name) for name in node.input]
    lines = [known is not None and known.shape is not None and _only_axis(known.shape) is not None for known in types]
    return max((place for place, is_line in enumerate(lines) if is_line), default=len(lines) - 1)


def _only_axis(shape: Sequence[Dimension]) -> int | None:
    """Return which axis behind the batch is the only one that has, or may have, more than one element."""
    several = [axis for axis, length in enumerate(shape) if axis and length != 1]
    return several[0] if len(several) == 1 else None


def _fits_elsewhere(shape: Sequence[Dimension], result: Sequence[Dimension]) -> bool | None:
    axis = _only_axis(shape)
    others = [] if axis is None else [length for each, length in enumerate(result) if each and each != axis]
    if axis is None or all(length == 1 for length in others):
        return False
    told = [_are_equal(result[axis], length) for length in others if length != 1]
    # What is as long along all axes is read as it is.
    if all(told):
        return False
    return True if True in told else None if None in told else False


def _are_equal(one: Dimension, other: Dimension) -> bool | None:
    """Return whether two lengths are equal, None where that is open: a name is as long as itself."""
    if one is not None and one == other:
        return True
    return False if isinstance(one, int) and isinstance(other, int) else None
