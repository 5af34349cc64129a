"""What a Unique is like: how it orders elements, what it tells of them, and what goes by how many there are."""

from __future__ import annotations

from onnx import NodeProto

from padfix.graph import attributes
from padfix.graph.dependence import reached
from padfix.graph.scopes import Scope
from padfix.operators.constant_chains import STEERED, has_chain
from padfix.targets.traits import Traits

_MADE_TO_LENGTHS = ("ConstantOfShape", "Expand", "Range")
"""What gives as many elements as it is told, whatever its data hold."""

_MEASURING = ("Shape", "Size")

_PLACES = 2
"""The output that says of each element which of the unique ones it is."""


def unique_traits(scope: Scope, node: NodeProto) -> Traits:
    """Return how a Unique orders elements, what it tells of them, and whether constants' elements tell a length."""
    return {
        "sorted": attributes.integer(node, "sorted", 1) != 0,
        "along-axis": attributes.find(node, "axis") is not None,
        "gives-each": any(scope.is_used(name) for name in node.output[2:] if name),
        "tells-places": any(scope.is_used(name) for name in node.output[_PLACES : _PLACES + 1] if name),
        "tells-a-length": has_chain(scope, node) and _tells_a_length(scope, node),
    }


def _tells_a_length(scope: Scope, node: NodeProto) -> bool:
    """Whether something gives as many elements as is computed of what a node of constants gives."""

    def computed(name: str) -> list[str]:
        readers = [each for each in scope.consumers(name) if each.op_type not in _MEASURING and has_chain(scope, each)]
        return [given for each in readers for given in each.output if given]

    return any(
        name in [each.input[place] for place in STEERED[each.op_type] if place < len(each.input)]
        for name in reached([name for name in node.output if name], computed)
        for each in scope.consumers(name)
        if each.op_type in _MADE_TO_LENGTHS
    )
