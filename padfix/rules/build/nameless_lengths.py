"""Open lengths of a model's inputs that have no name, which an importer may take for 0 as it lays out a Reshape."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from onnx import GraphProto, NodeProto, TensorShapeProto

from padfix.graph import attributes
from padfix.graph.scopes import Scope

_POOLS = ("AveragePool", "LpPool", "MaxPool")

_LINES = 3
"""Axes from which on the first of an input is how many there are."""


def nameless_copied(scope: Scope, graph: GraphProto) -> list[str]:
    """Return the inputs with open lengths without a name, where a Reshape copies or tells one, or a pool pads one."""
    found = [] if scope.parent is not None else list(dict.fromkeys(name for name, _ in _nameless(scope, graph)))
    asks = found and (any(_copies_open(scope, each.input) for each in _reshapes(scope)) or _pads_open(scope))
    return found if asks or (found and _tells_open(scope, graph)) else []


def name_lengths(scope: Scope, graph: GraphProto) -> None:
    """Name each open length without a name as no other is."""
    taken = {each.dim_param for value in graph.input for each in value.type.tensor_type.shape.dim}
    for name, length in list(_nameless(scope, graph)):
        number = 0
        while (told := f"{name}_length_{number}") in taken:
            number += 1
        taken.add(told)
        length.dim_param = told


def _nameless(scope: Scope, graph: GraphProto) -> Iterator[tuple[str, TensorShapeProto.Dimension]]:
    for value in graph.input:
        if not scope.is_initializer(value.name):
            for length in value.type.tensor_type.shape.dim:
                if not length.HasField("dim_value") and not length.dim_param:
                    yield value.name, length


def _reshapes(scope: Scope) -> Iterator[NodeProto]:
    return (node for node in scope.nodes if node.op_type == "Reshape" and len(node.input) > 1)


def _copies_open(scope: Scope, names: Sequence[str]) -> bool:
    """Whether a Reshape copies an open length behind the first."""
    told, data = scope.constant(names[1]), scope.type_of(names[0])
    if told is None or data is None or data.shape is None:
        return False
    copied = [axis for axis, each in enumerate(told.reshape(-1)) if each == 0 and 0 < axis < len(data.shape)]
    return any(not isinstance(data.shape[axis], int) for axis in copied)


def _tells_open(scope: Scope, graph: GraphProto) -> bool:
    """Whether a Reshape says all lengths of data of which some are open, and one name would tell that lengths are.

    A name of the first of three axes and more tells no more than that there are images.
    """
    shapes = [value.type.tensor_type.shape.dim for value in graph.input if not scope.is_initializer(value.name)]
    behind = [length for shape in shapes for length in (shape[1:] if len(shape) >= _LINES else shape)]
    is_open = [not length.HasField("dim_value") for length in behind]
    if not any(is_open) or any(length.dim_param for length in behind):
        return False
    for node in _reshapes(scope):
        told, data = scope.constant(node.input[1]), scope.type_of(node.input[0])
        if told is None or not told.size or bool((told <= 0).any()) or data is None or not data.shape:
            continue
        counted = [1 if len(data.shape) >= _LINES else data.shape[0], *data.shape[1:]]  # whatever batch is left open
        known = [each for each in counted if isinstance(each, int)]
        if data.lengths is None and (len(known) < len(counted) or math.prod(known) != math.prod(told.tolist())):
            return True
    return False


def _pads_open(scope: Scope) -> bool:
    """Whether a pool has pads, and lengths of its images are open."""
    pools = [node for node in scope.nodes if node.op_type in _POOLS and any(attributes.integers(node, "pads") or ())]
    types = [scope.type_of(node.input[0]) for node in pools]
    shapes = [known.shape[2:] for known in types if known is not None and known.shape is not None]
    return any(not isinstance(length, int) for shape in shapes for length in shape)
