"""What onnx.reference does not know by the name that a model gives it."""

from __future__ import annotations

from collections.abc import Iterator

from onnx import FunctionProto, GraphProto, ModelProto, NodeProto, OperatorSetIdProto

_ALIAS = "ai.onnx"
"""The other spelling of ONNX's own domain."""

_SUPERSEDED = frozenset({"consumed_inputs", "output_sequence"})
"""Attributes of opset 1 to 6 that never changed a number: whether an operator may overwrite its input, and whether a
recurrent one has its first output."""


def in_one_spelling(model: ModelProto) -> ModelProto:
    """Return the model, or a copy that spells ONNX's own domain ``""`` throughout and has no superseded attribute."""
    if not any(map(_is_odd, _places(model))):
        return model
    copy = ModelProto()
    copy.CopyFrom(model)
    for place in filter(_is_odd, _places(copy)):
        place.domain = place.domain.removeprefix(_ALIAS)
        if isinstance(place, NodeProto):
            for attribute in [each for each in place.attribute if each.name in _SUPERSEDED]:
                place.attribute.remove(attribute)
    return copy


def _is_odd(place: NodeProto | OperatorSetIdProto) -> bool:
    superseded = isinstance(place, NodeProto) and any(each.name in _SUPERSEDED for each in place.attribute)
    return place.domain == _ALIAS or (place.domain == "" and superseded)


def _places(model: ModelProto) -> Iterator[NodeProto | OperatorSetIdProto]:
    """Yield everything in the model that names the domain of an operator."""
    for container in (model, *model.functions):
        yield from container.opset_import
    for body in (model.graph, *model.functions):
        yield from _nodes(body)


def _nodes(container: GraphProto | FunctionProto) -> Iterator[NodeProto]:
    for node in container.node:
        yield node
        for attribute in node.attribute:
            for body in (attribute.g, *attribute.graphs):
                yield from _nodes(body)
