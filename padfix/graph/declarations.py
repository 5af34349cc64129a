"""Declared lengths that nothing confirms, where believing them would do harm.

A model may declare of an inner value what is not so: ``value_info`` that an edit left behind. Mostly nobody computes
with it. But ONNX Runtime replaces a Shape whose input has declared lengths by a constant, so that a rewrite which reads
a size at run time would read the declaration instead, and only where optimisations are on.
"""

from __future__ import annotations

from collections.abc import Iterable

from onnx import FunctionProto, TypeProto, ValueInfoProto

from padfix.graph.dependence import reached
from padfix.graph.scopes import Scope, ValueType, all_nodes, bodies_of, outer_names_of


def drop_unconfirmed(scope: Scope, names: Iterable[str]) -> None:
    """Clear each length that is declared of ``names``, or of what they are computed from, and that nothing confirms.

    Confirmed is what shape inference finds for itself, from the model's inputs on. The inputs' own declarations stay: a
    runtime enforces them.

    Args:
        scope: Where the names are values; edited in place, with the scopes around it.
        names: Values that a Shape reads.
    """
    producers = {name: node for node in scope.nodes for name in node.output if name}

    def read_for(name: str) -> Iterable[str]:
        node = producers.get(name)
        return () if node is None else (*node.input, *outer_names_of(node))

    behind = reached(names, read_for)
    nodes = [producers[name] for name in behind if name in producers]
    for value in _declared(scope):
        if value.name in behind:
            _clear(value.type, scope.types.get(value.name))
    for node in nodes:
        if not all(_is_known(scope.types.get(name)) for name in node.output if name):
            for inner in all_nodes([node]):  # nobody knows its lengths, so nor those of the values in its bodies
                for _, graph in bodies_of(inner):
                    for value in (*graph.value_info, *graph.output, *graph.input):
                        _clear(value.type, None)
    outer = [name for name in behind if name and not scope.defines(name)]
    if scope.parent is not None and outer:
        drop_unconfirmed(scope.parent, outer)


def _declared(scope: Scope) -> list[ValueInfoProto]:
    """Return what a scope declares and no runtime enforces."""
    container = scope.container
    values = list(container.value_info)
    if not isinstance(container, FunctionProto):
        values += container.output
        if scope.parent is not None:
            values += container.input
    return values


def _is_known(known: ValueType | None) -> bool:
    return known is not None and known.shape is not None and all(isinstance(each, int) for each in known.shape)


def _clear(proto: TypeProto, known: ValueType | None) -> None:
    """Clear the lengths of a tensor's type that ``known`` does not confirm."""
    if not proto.HasField("tensor_type") or not proto.tensor_type.HasField("shape"):
        return
    declared = proto.tensor_type.shape.dim
    lengths = (None,) * len(declared) if known is None or known.shape is None else known.shape
    while len(declared) > len(lengths):
        del declared[-1]
    while len(declared) < len(lengths):
        declared.add()
    for entry, length in zip(declared, lengths, strict=True):
        if entry.HasField("dim_value") and entry.dim_value != length:
            entry.Clear()
