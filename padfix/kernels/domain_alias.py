"""``ai.onnx``, the other spelling of ONNX's own domain, which onnx.reference does not know."""

from __future__ import annotations

from collections.abc import Iterator

from onnx import FunctionProto, GraphProto, ModelProto, NodeProto, OperatorSetIdProto

ALIAS = "ai.onnx"


def without_alias(model: ModelProto) -> ModelProto:
    """Return ``model`` itself, or a copy that spells ONNX's own domain ``""`` throughout."""
    if not any(place.domain == ALIAS for place in _places(model)):
        return model
    copy = ModelProto()
    copy.CopyFrom(model)
    for place in _places(copy):
        if place.domain == ALIAS:
            place.domain = ""
    return copy


def all_nodes_of(model: ModelProto) -> Iterator[NodeProto]:
    """Yield every node of the graph, of bodies and of functions."""
    yield from _nodes(model.graph)
    for function in model.functions:
        yield from _nodes(function)


def _places(model: ModelProto) -> Iterator[NodeProto | OperatorSetIdProto]:
    """Yield everything in the model that names the domain of an operator."""
    yield from model.opset_import
    for function in model.functions:
        yield from function.opset_import
    yield from all_nodes_of(model)


def _nodes(container: GraphProto | FunctionProto) -> Iterator[NodeProto]:
    for node in container.node:
        yield node
        for attribute in node.attribute:
            for body in (attribute.g, *attribute.graphs):
                yield from _nodes(body)
