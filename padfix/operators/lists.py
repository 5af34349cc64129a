"""Lists (data of one axis), which runtimes whose arrays have two axes at least keep as columns."""

from __future__ import annotations

from onnx import NodeProto

from padfix.graph.scopes import Scope
from padfix.operators.constant_chains import chain_of


def is_computed_list(scope: Scope, name: str) -> bool:
    """Whether data, not a constant, is known to have one axis, which is not known to have one element."""
    known = scope.type_of(name) if name else None
    return known is not None and known.rank == 1 and known.shape != (1,) and depends_on_data(scope, name)


COMPARING = ("Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual")


def spreads_a_list(scope: Scope, node: NodeProto) -> bool:
    """Whether such a list meets, element by element, what is no other one; a number counts where it is compared."""
    lists = [is_computed_list(scope, name) for name in node.input]
    if not any(lists):
        return False
    others = [scope.type_of(name) for name, is_list in zip(node.input, lists, strict=True) if not is_list]
    if node.op_type in COMPARING and others:
        return True
    return any(each is None or each.shape is None or set(each.shape) - {1} for each in others)


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
