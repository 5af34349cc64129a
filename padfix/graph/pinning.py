"""Nodes whose output types are set by hand, so that inference goes on from what is known better than it knows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from onnx import GraphProto, NodeProto, TypeProto, ValueInfoProto

from padfix.graph.scopes import outer_names_of

PINNED_DOMAIN = "padfix.pinned"
"""Domain without schemas: a node moved there keeps the output type that is written in value_info."""


def pin(graph: GraphProto, found: Mapping[str, TypeProto]) -> None:
    """Set the types in ``found``, and make inference take them as they are, in place."""
    for node in graph.node:
        if any(name in found for name in node.output):
            node.domain = PINNED_DOMAIN
            del node.attribute[:]
    kept = [value for value in graph.value_info if value.name not in found]
    del graph.value_info[:]
    graph.value_info.extend(kept)
    graph.value_info.extend(ValueInfoProto(name=name, type=proto) for name, proto in found.items())
    for value in graph.output:
        if value.name in found:
            value.type.CopyFrom(found[value.name])


def tainted_by(nodes: Iterable[NodeProto], names: Iterable[str]) -> set[str]:
    """Return ``names`` and every value that is computed from one of them."""
    tainted = set(names)
    for node in nodes:
        if tainted.intersection(node.input) or tainted & outer_names_of(node):
            tainted.update(node.output)
    return tainted
