"""What the caller of a function gives to the attributes of its nodes."""

from __future__ import annotations

from collections.abc import Mapping

from onnx import AttributeProto, FunctionProto, NodeProto, TypeProto

from padfix.graph.scopes import all_nodes, bodies_of

_WITH_BODIES = (AttributeProto.GRAPH, AttributeProto.GRAPHS)

Bindings = Mapping[str, AttributeProto] | None
"""What the caller of a function gives its attributes; None when that is not known."""


def strip_bodies(node: NodeProto) -> None:
    """Delete every claim about intermediate values from the bodies of ``node``."""
    for inner in all_nodes([node]):
        for _, graph in bodies_of(inner):
            del graph.value_info[:]
            for value in (*graph.input, *graph.output):
                if value.type.HasField("tensor_type"):
                    value.type.tensor_type.ClearField("shape")


def refers(node: NodeProto) -> bool:
    """Whether an attribute of ``node``, or of a node in its bodies, is given by the caller of a function."""
    for each in node.attribute:
        if each.ref_attr_name:
            return True
        if each.type in _WITH_BODIES:
            return any(each.ref_attr_name for inner in all_nodes([node]) for each in inner.attribute)
    return False


def bind(node: NodeProto, bindings: Bindings) -> bool:
    """Give attributes that refer to the function's caller the caller's value; drop those that it leaves out.

    Returns False when the caller is not known, so that nothing can be said of the node.
    """
    if bindings is None:
        return False
    for inner in all_nodes([node]):
        give(inner, {each.ref_attr_name: bindings.get(each.ref_attr_name) for each in inner.attribute})
    return True


def give(node: NodeProto, values: Mapping[str, AttributeProto | None]) -> None:
    """Give attributes of a node that refer to the caller's these values; those go that the caller leaves out."""
    for attribute in [each for each in node.attribute if each.ref_attr_name and each.ref_attr_name in values]:
        given, name = values[attribute.ref_attr_name], attribute.name
        if given is None:
            node.attribute.remove(attribute)
        else:
            attribute.CopyFrom(given)
            attribute.name = name


def given_by_call(function: FunctionProto, node: NodeProto, bindings: Bindings) -> dict[str, AttributeProto] | None:
    """Return what a call gives its function's attributes, defaults included; None when that is not known.

    Args:
        function: What is called.
        node: The call.
        bindings: What the caller of the function around the call gives.
    """
    given = {each.name: each for each in function.attribute_proto}
    for attribute in node.attribute:
        if not attribute.ref_attr_name:
            given[attribute.name] = attribute
        elif bindings is None:
            return None
        elif attribute.ref_attr_name in bindings:
            given[attribute.name] = bindings[attribute.ref_attr_name]
    return given


def digest_of(inputs: Mapping[str, TypeProto], bindings: Bindings) -> bytes:
    """Return bytes that are the same for the same types of inputs and the same bindings."""
    parts = [b"unknown caller" if bindings is None else b""]
    parts += [part for name in sorted(inputs) for part in (name.encode(), inputs[name].SerializeToString())]
    given = bindings or {}
    parts += [part for name in sorted(given) for part in (name.encode(), given[name].SerializeToString())]
    return b"\0".join(parts)
