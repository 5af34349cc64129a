"""What the operator that computes a tensor lets it hold: a number that it never gives says nothing of what reads it."""

from __future__ import annotations

import math

import numpy as np

from padfix.graph import attributes
from padfix.operators.elementwise import COPYING, LAYING_OUT, PICKING_OUT
from padfix.proof.constants import Constants
from padfix.proof.graph_view import GraphView, NodeView

Bounds = tuple[float, float]

ANY: Bounds = (-math.inf, math.inf)

_GIVEN: dict[str, Bounds] = {
    **dict.fromkeys(("Relu", "Abs", "Sqrt", "Exp", "Softplus", "ReduceL2", "ReduceSumSquare"), (0.0, math.inf)),
    **dict.fromkeys(("Sigmoid", "HardSigmoid", "Softmax", "Hardmax"), (0.0, 1.0)),
    **dict.fromkeys(("Tanh", "Softsign", "Erf", "Sin", "Cos", "Sign"), (-1.0, 1.0)),
    "Relu6": (0.0, 6.0),
}
"""The least and the largest that an operator of ONNX or TensorFlow gives."""

_KEEPING = (
    LAYING_OUT
    | COPYING
    | PICKING_OUT
    | frozenset(
        {"ExpandDims", "StridedSlice", "Dropout", "DepthToSpace", "SpaceToDepth", "MaxPool", "GlobalMaxPool"}
        | {"AveragePool", "GlobalAveragePool", "MaxPoolV2", "AvgPool", "ReduceMax", "ReduceMin", "ReduceMean"}
    )
)
"""Operators whose results lie between the least and the largest of what they read first, or at zero."""

_DEEPEST = 8
"""Operators above a tensor that are looked at."""


def bounds_of(view: GraphView, constants: Constants | None, name: str, depth: int = _DEEPEST) -> Bounds:
    """Return the least and the largest number that a tensor can hold, as far as the operators above it tell."""
    node = view.producers.get(name)
    if node is None or not depth:
        return ANY
    if node.op_type in _GIVEN:
        return _GIVEN[node.op_type]
    if node.op_type == "Clip" and node.proto is not None:
        return _of_clip(node, constants)
    if node.op_type in _KEEPING and node.inputs:
        low, high = bounds_of(view, constants, node.inputs[0], depth - 1)
        return min(low, 0.0), max(high, 0.0)
    if node.op_type in ("Concat", "Add", "AddV2", "Mul"):
        read = [bounds_of(view, constants, each, depth - 1) for each in node.inputs]
        if node.op_type == "Concat":
            return min(low for low, _ in read), max(high for _, high in read)
        return (0.0, math.inf) if all(low >= 0 for low, _ in read) else ANY
    return ANY


def _of_clip(node: NodeView, constants: Constants | None) -> Bounds:
    found = list(ANY)
    for place, attribute in enumerate(("min", "max")):
        assert node.proto is not None
        name = node.inputs[place + 1] if len(node.inputs) > place + 1 else ""
        limit = constants.find(name) if name and constants is not None else None
        if limit is not None and limit.size == 1:
            found[place] = float(np.ravel(limit)[0])
        elif not name:
            given = attributes.find(node.proto, attribute)
            found[place] = found[place] if given is None else given.f
    return (found[0], found[1]) if found[0] <= found[1] else ANY
