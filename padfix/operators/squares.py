"""Roots of sums of squares, as norms have them, and of what numbers the squares are."""

from __future__ import annotations

from dataclasses import dataclass

from onnx import NodeProto

from padfix.graph import attributes
from padfix.graph.scopes import Scope
from padfix.operators.clip import clip_bounds
from padfix.operators.numbers import numbers_of
from padfix.operators.reductions import reduced_axes
from padfix.operators.spelled_norms import squared

_NEVER_LARGE = ("Cos", "HardSigmoid", "LpNormalization", "Sigmoid", "Sign", "Sin", "Softmax", "Softsign", "Tanh")

_MOST = 200.0
"""What half precision holds the square of, and a little more than that."""

_SUMMING = ("ReduceMean", "ReduceSum")


@dataclass(frozen=True)
class RootOfSquares:
    """What a Sqrt is the root of.

    Attributes:
        data: What is squared.
        nodes: The square, its sum or mean, and what keeps that from zero, if anything does.
        axes: Along which it is summed; none for all of them.
        least: The constant that is added to the sum, or is the least that it is; empty where there is none.
    """

    data: str
    nodes: tuple[NodeProto, ...]
    axes: tuple[int, ...]
    least: str = ""


def root_of_squares(scope: Scope, node: NodeProto) -> RootOfSquares | None:
    """Return the sum of squares that a Sqrt is the root of; None where it is of something else."""
    maker, behind, least = scope.own_producer(node.input[0]), tuple[NodeProto, ...](), ""
    if maker is not None and maker.op_type in ("Add", "Max") and len(maker.input) == 2:
        told = [scope.constant(name) for name in maker.input]
        places = [place for place, value in enumerate(told) if value is not None and value.size == 1]
        if len(places) == 1:
            least, behind = maker.input[places[0]], (maker,)
            maker = scope.own_producer(maker.input[1 - places[0]])
    if maker is None or maker.op_type not in _SUMMING or attributes.integer(maker, "noop_with_empty_axes", 0):
        return None
    axes, square = reduced_axes(scope, maker), scope.own_producer(maker.input[0])
    data = "" if square is None else squared(scope, square)
    if square is None or not data or axes is None:
        return None
    return RootOfSquares(data, (square, maker, *behind), tuple(axes), least)


def squares_large(scope: Scope, node: NodeProto) -> bool:
    """Whether an LpPool or a ReduceL2 squares numbers of which half precision may not hold that."""
    is_square = attributes.integer(node, "p", 2) == 2 if node.op_type == "LpPool" else node.op_type == "ReduceL2"
    return is_square and _may_be_large(scope, node.input[0])


def roots_large(scope: Scope, node: NodeProto) -> bool:
    """Whether a Sqrt is the root of a sum of such squares."""
    found = root_of_squares(scope, node)
    return found is not None and _may_be_large(scope, found.data)


def _may_be_large(scope: Scope, name: str) -> bool:
    """Whether squares of data may be more than half precision holds, as far as what gives them tells."""
    if numbers_of(scope, name) not in ("single", "half"):
        return False
    maker = scope.own_producer(name)
    if maker is None:
        return scope.constant(name) is None
    if maker.op_type == "Clip":
        least, most = clip_bounds(scope, maker)
        return least < -_MOST or most > _MOST
    return maker.op_type not in _NEVER_LARGE and not _is_share(scope, maker)


def _is_share(scope: Scope, node: NodeProto) -> bool:
    """Whether a Mul gives data times a number that is chosen by how large the largest of their magnitudes is."""
    for data, factor in (tuple(node.input), tuple(node.input)[::-1]) if node.op_type == "Mul" else ():
        chosen = scope.own_producer(factor)
        asked = scope.own_producer(chosen.input[0]) if chosen is not None and chosen.op_type == "Where" else None
        size = scope.own_producer(asked.input[0]) if asked is not None and asked.op_type == "Greater" else None
        while size is not None and size.op_type == "ReduceMax":
            size = scope.own_producer(size.input[0])
        if size is not None and size.op_type == "Abs" and size.input[0] == data:
            return True
    return False
