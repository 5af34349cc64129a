"""Lists (data of one axis), which runtimes whose arrays have two axes at least keep as columns."""

from __future__ import annotations

from onnx import NodeProto

from padfix.graph.scopes import Scope
from padfix.operators.constant_chains import chain_of

_MOST_BETWEEN = 8
"""Operators on lists that are looked through, as far as where one comes from."""


def is_computed_list(scope: Scope, name: str) -> bool:
    """Whether data, not a constant, is known to have one axis, which is not known to have one element."""
    known = scope.type_of(name) if name else None
    return known is not None and known.rank == 1 and known.shape != (1,) and depends_on_data(scope, name)


COMPARING = ("Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual")


def joins_a_list(scope: Scope, node: NodeProto) -> bool:
    """Whether such a list meets something, element by element, that is no list of a caller as it is one itself."""
    lists = [is_computed_list(scope, name) for name in node.input]
    others = [scope.type_of(name) for name, is_list in zip(node.input, lists, strict=True) if not is_list]
    if not any(lists):
        return False
    if node.op_type in COMPARING and others:
        return True
    is_spread = any(each is None or each.shape is None or set(each.shape) - {1} for each in others)
    return is_spread or any(is_list and _is_made(scope, name) for name, is_list in zip(node.input, lists, strict=True))


def _is_made(scope: Scope, name: str) -> bool:
    """Whether a list is made, a few operators before, of what is none: by a reduction, a Reshape or a Gather."""
    producer = scope.producer(name)
    for _ in range(_MOST_BETWEEN):
        if producer is None:
            return False
        before = [each for each in producer.input if each and depends_on_data(scope, each)]
        if not all(is_computed_list(scope, each) for each in before):
            return True
        producer = scope.producer(before[0]) if before else None
    return True


def appends_to_input(scope: Scope, node: NodeProto) -> bool:
    """Whether a node reads the model's only input, once, which nothing else reads, and beside it constants alone."""
    data = [name for name in node.input if depends_on_data(scope, name)]
    if len(data) != 1 or scope.parent is not None:
        return False
    given = [name for name in scope.inputs if not scope.is_initializer(name)]
    return given == data and len(scope.consumers(data[0])) == 1 and not scope.is_output(data[0])


def depends_on_data(scope: Scope, name: str) -> bool:
    """Whether a tensor is, or is computed from, more than constants and lengths."""
    owner = scope.owner(name)
    if owner is None or owner.is_initializer(name):
        return False
    producer = scope.producer(name)
    if producer is None:
        return True
    return producer.op_type != "Constant" and chain_of(owner, producer, open_lengths=True) is None
