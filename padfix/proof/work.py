"""How much work a run of a model is, from its shapes alone."""

from __future__ import annotations

import math

from onnx import NodeProto

from padfix.files.model import Model
from padfix.graph.scopes import Scope
from padfix.graph.shapes import infer

HEAVY = 2_000_000_000
"""Multiplications a run above which the whole proof of a rewritten model makes do with fewer kinds of data."""

FEW_KINDS = ("normal", "negative", "ramp")
"""Those that tell most: each rewrite was proven on all kinds of data before, on its own."""

_GENERATORS = frozenset({"ConstantOfShape", "Expand", "Tile", "Range", "Pad", "Constant", "EyeLike", "OneHot", "Loop"})
_MULTIPLIERS = frozenset({"Conv", "ConvTranspose", "ConvInteger", "QLinearConv", "FusedConv", "MatMul", "Gemm"})


def multiplications(model: Model) -> int:
    """Return about how many multiplications one run of a model takes; what has no known shape counts nothing.

    Args:
        model: The model; its weights are not needed.
    """
    return sum(
        _of_node(scope, node) for scope in infer(model) for node in scope.container.node if node.op_type in _MULTIPLIERS
    )


def result_bytes(model: Model) -> int:
    """Return about how many bytes all results of one run take; what has no known shape counts nothing.

    Operators that make much of nothing (a constant of a shape, copies) don't count: a file of a few bytes may ask them
    for all the memory there is.

    Args:
        model: The model; its weights are not needed.
    """
    lengths = (
        _lengths(scope, name)
        for scope in infer(model)
        for node in scope.container.node
        if node.op_type not in _GENERATORS
        for name in node.output
        if name
    )
    return sum(4 * math.prod(each) for each in lengths if each)


def _of_node(scope: Scope, node: NodeProto) -> int:
    position = 3 if node.op_type == "QLinearConv" else 1
    if len(node.input) <= position:
        return 0
    source, weight = _lengths(scope, node.input[0]), _lengths(scope, node.input[position])
    result = _lengths(scope, node.output[0])
    if weight is None or len(weight) < 2:
        return 0
    if node.op_type == "ConvTranspose":
        return math.prod(source) * math.prod(weight[1:]) if source else 0
    if node.op_type in ("MatMul", "Gemm"):
        return math.prod(result) * max(weight[-2:]) if result else 0
    return math.prod(result) * math.prod(weight[1:]) if result else 0


def _lengths(scope: Scope, name: str) -> tuple[int, ...] | None:
    known = scope.type_of(name)
    if known is None or known.shape is None:
        return None
    lengths = tuple(length for length in known.shape if isinstance(length, int))
    return lengths if len(lengths) == len(known.shape) else None
