"""Which axes of data are alike in length, and in which order a runtime holds them that moves channels to the end.

onnx2tf tells by the lengths alone whether it has moved the channels of what it reads: where all of them are equal, or
where a Transpose moves the batch and two are, it guesses.
"""

from __future__ import annotations

from collections.abc import Sequence

from onnx import NodeProto

from padfix.graph.scopes import Dimension, Scope, normal_domain
from padfix.operators.data_order import CHANNELS
from padfix.operators.table import PADDED, TRANSPOSED
from padfix.targets.fact import Traits

_MATRIX = 2

_LEAST_RANK = 3
"""Axes of data that has channels to move."""

_AS_WRITTEN = frozenset(
    (
        *("Compress", "CumSum", "Einsum", "Expand", "Flatten", "Gather", "GatherElements", "GatherND", "Gemm"),
        *("MatMul", "OneHot", "Reshape", "Squeeze", "Tile", "TopK", "Transpose", "Unsqueeze"),
    )
)
"""Operators that give their axes in the order of the model."""

_POOLED = frozenset(("GlobalAveragePool", "GlobalLpPool", "GlobalMaxPool"))

_RANKS = ("none", "others", "channels", "all")

_NEAR = 64  # tensors that are looked at before data counts as far from any such operator


def order_traits(scope: Scope, node: NodeProto) -> Traits:
    """Return which axes of what a node reads and gives are alike, and whether its data has its channels at the end."""
    shapes = _shapes(scope, node)
    alike = alike_axes(shapes)
    if node.op_type == "Transpose" and any(len(set(each)) < len(each) == _MATRIX for each in shapes):
        alike = "others"
    return {"alike": alike, "channels-last": _is_moved(scope, node, alike)}


def alike_axes(shapes: Sequence[Sequence[Dimension]]) -> str:
    """Return which axes of data of these shapes are alike, as :func:`order_traits` does of a node."""
    return max((_alike(shape) for shape in shapes), key=_RANKS.index, default=_RANKS[0])


def _alike(shape: Sequence[Dimension]) -> str:
    several = [each for each in shape if isinstance(each, int) and each > 1]
    if len(shape) < _LEAST_RANK or len(set(several)) == len(several):
        return "none"
    channels, *places = shape[CHANNELS:]
    if not isinstance(channels, int) or channels == 1 or channels not in places:
        return "others"
    return "all" if set(places) == {channels} else "channels"


def _shapes(scope: Scope, node: NodeProto) -> list[Sequence[Dimension]]:
    types = [scope.type_of(name) for name in (*_data(scope, node), *node.output) if name]
    return [each.shape for each in types if each is not None and each.shape is not None]


def _data(scope: Scope, node: NodeProto) -> list[str]:
    given = [name for name in node.input if name and not scope.is_initializer(name)]
    producers = [(name, scope.producer(name)) for name in given]
    return [name for name, producer in producers if producer is None or producer.op_type != "Constant"]


def spread_of_constants(scope: Scope, node: NodeProto) -> str | None:
    """Return how the constants that a node reads take the shape of what it gives; None where that is not known.

    "none" have it already, as all have that of fewer axes than images; "number" is one element without axes,
    "one" such an element with axes, "channels" one a channel written with all axes, "others" any else.
    """
    result = scope.type_of(node.output[0])
    shape = None if result is None else result.shape
    known = [None if name in _data(scope, node) else scope.type_of(name) for name in node.input]
    given = [each.shape for each in known if each is not None]
    if not given or (shape is not None and len(shape) < _LEAST_RANK):
        return "none"
    if shape is None or None in given:
        return None
    found = [_spread(each, shape) for each in given if each is not None]
    return max(found, key=("none", "number", "one", "channels", "others").index)


def _spread(given: Sequence[Dimension], shape: Sequence[Dimension]) -> str:
    several = [axis - len(given) for axis, length in enumerate(given) if length != 1]
    if not several:
        return "one" if given else "number"
    # Where the number of images is open, a constant for one is for all: no other has the shape of the result.
    if list(given) == [shape[0] if isinstance(shape[0], int) else 1, *shape[1:]]:
        return "none"
    return "channels" if len(given) == len(shape) and several == [CHANNELS - len(shape)] else "others"


def _is_moved(scope: Scope, node: NodeProto, alike: str) -> bool:
    """Whether all that a node reads comes from images or what works on them, and nothing between orders the axes.

    An image of which all lengths are equal is read as it is by all but what works on images.
    """
    seen, left = set[str](), _data(scope, node)
    while left and len(seen) < _NEAR:
        name = left.pop()
        producer = scope.producer(name) if name not in seen and scope.defines(name) else None
        is_known = name in seen
        seen.add(name)
        if producer is None:
            if not is_known and alike == "all" and scope.constant(name) is None:
                return False
            continue
        key = (normal_domain(producer.domain), producer.op_type)
        if not key[0] and producer.op_type in _AS_WRITTEN:
            return False
        if key not in PADDED | TRANSPOSED and producer.op_type not in _POOLED:
            left += _data(scope, producer)
    return True
