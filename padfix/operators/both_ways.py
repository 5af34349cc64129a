"""Weights that two layers read in opposite orders of their axes, as tied ones are."""

from __future__ import annotations

from collections.abc import Iterator

from onnx import NodeProto

from padfix.graph import attributes
from padfix.graph.scopes import Scope, bodies_of
from padfix.operators.constant_chains import is_constant, is_of_constants
from padfix.operators.equations import parts_of, turns_second

_VIEWS = ("DequantizeLinear", "Identity", "Reshape", "Squeeze", "Unsqueeze")
"""What leaves the elements of its data in their order."""

_LAYERS = {"Conv": False, "ConvTranspose": True}

_IMAGE = 4
"""Axes of the weights of images; those of lines have fewer."""


def reads_both_ways(scope: Scope, node: NodeProto) -> bool:
    """Whether a product or convolution has square constant weights that another takes turned.

    Square: as many rows as columns, or as many channels as a convolution gives. A Conv and a ConvTranspose take the
    first two axes of their weights for each other's. What only names, cuts or adds axes of length 1 in between is
    looked through, and for products a Transpose of the last two. A constant that a caller may replace is one as well.
    """
    weights = node.input[1] if len(node.input) > 1 else ""
    way = _way_of(scope, node, weights) if weights else None
    if way is None or not (scope.is_initializer(weights) or is_of_constants(scope, weights)):
        return False
    root, is_turned = _root(scope, weights, of_layer=node.op_type in _LAYERS)
    owner = scope.owner(root)
    ways = _ways(owner, root, node.op_type in _LAYERS) if owner is not None else ()
    return any(each != way ^ is_turned for each in ways)


def _root(scope: Scope, name: str, *, of_layer: bool) -> tuple[str, bool]:
    """Return the constant that lies in memory, and whether the axes of ``name`` are turned to it."""
    is_turned = False
    while not is_constant(scope, name) and (maker := scope.producer(name)) is not None:
        turns = _turns(maker)
        if maker.op_type not in _VIEWS and (of_layer or not turns):
            break
        name, is_turned = maker.input[0], is_turned ^ turns
    return name, is_turned


def _ways(scope: Scope, name: str, of_layer: bool, is_turned: bool = False) -> Iterator[bool]:
    """Yield of each layer that reads a constant whether it takes it turned, here and in bodies."""
    for reader in scope.consumers(name):
        way = _way_of(scope, reader, name)
        if way is not None:
            if (reader.op_type in _LAYERS) == of_layer:
                yield way ^ is_turned
        elif reader.op_type in _VIEWS or (_turns(reader) and not of_layer):
            yield from _ways(scope, reader.output[0], of_layer, is_turned ^ _turns(reader))
        elif any(True for _ in bodies_of(reader)):
            bodies = [each for each in scope.bodies if each.owner(name) is scope]
            yield from (way for each in bodies for way in _ways(each, name, of_layer, is_turned))


def _way_of(scope: Scope, node: NodeProto, name: str) -> bool | None:
    """Return whether a layer takes ``name``, as its square weights, turned; None where it does not."""
    if name not in node.input or list(node.input).index(name) != 1:
        return None
    known = scope.type_of(name)
    lengths = None if known is None else known.lengths
    if lengths is None:
        return None
    if node.op_type in _LAYERS:
        is_square = len(lengths) >= _IMAGE and lengths[0] == lengths[1] and attributes.integer(node, "group", 1) == 1
        return _LAYERS[node.op_type] if is_square else None
    if len(lengths) < 2 or lengths[-1] != lengths[-2]:
        return None
    if node.op_type == "MatMul":
        return False
    if node.op_type == "Gemm":
        return bool(attributes.integer(node, "transB", 0))
    if node.op_type == "Einsum":
        factors, gives = parts_of(attributes.text(node, "equation", ""))
        return turns_second(factors, gives or "")
    return None


def _turns(node: NodeProto) -> bool:
    """Whether a node changes the last two axes of its data for each other, and moves no other."""
    if node.op_type != "Transpose":
        return False
    order = list(attributes.integers(node, "perm") or (1, 0))
    return len(order) > 1 and order == [*range(len(order) - 2), len(order) - 1, len(order) - 2]
