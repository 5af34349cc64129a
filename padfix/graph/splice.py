"""Puts a fragment in the place of one node; everything else of the model stays as it is."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any

from onnx import FunctionProto, GraphProto, NodeProto, TensorProto, ValueInfoProto

from padfix.graph.declarations import drop_unconfirmed
from padfix.graph.fragment import LOCAL_PREFIX, Fragment
from padfix.graph.scopes import Scope, bodies_of, names_of, outer_names_of, weights_of
from padfix.graph.types import contradicts, value_type


def plan_splice(scope: Scope, index: int, fragment: Fragment) -> int:
    """Replace the node at ``index`` of ``scope`` by ``fragment``, once :func:`apply_splices` makes all planned edits.

    Until then the scope's indices stay what they are, and its questions are answered as if the edit were made.

    Outputs keep their names; local names are made unique among all names of the model's part (the main graph with its
    bodies, or one function). Constants become initializers of the scope's graph, or Constant nodes where initializers
    are not allowed or not usual: in functions, in bodies inside functions, and before IR version 4, where every
    initializer would also have to be an input. The node that stands for the replaced one keeps its name, doc string
    and metadata. ``value_info`` of the outputs is kept unless inference contradicts it.

    Returns:
        How many nodes are to stand in place of the one.
    """
    container = scope.container
    node = container.node[index]
    replaced = NodeProto()
    replaced.CopyFrom(node)
    names = _names_of(scope)
    base = replaced.name or next((name for name in replaced.output if name), replaced.op_type)
    mapping = _unique_names(fragment, set(replaced.output), base, names)

    nodes: list[NodeProto] = []
    tensors: list[TensorProto] = []
    for tensor in fragment.initializers:
        renamed = TensorProto()
        renamed.CopyFrom(tensor)
        renamed.name = mapping.get(tensor.name, tensor.name)
        tensors.append(renamed)
    for each in fragment.nodes:
        copy = NodeProto()
        copy.CopyFrom(each)
        for field in (copy.input, copy.output):
            for position, name in enumerate(field):
                field[position] = mapping.get(name, name)
        nodes.append(copy)
    successor = _successor(nodes, replaced)
    _name_nodes(nodes, successor, replaced, base, names)

    constants = add_constants(scope, tensors)
    nodes = [*constants, *nodes]
    scope.exchange(node, nodes, [] if constants else tensors)
    scope.edits[index] = nodes
    return len(nodes)


def add_constants(scope: Scope, tensors: Sequence[TensorProto]) -> list[NodeProto]:
    """Make ``tensors`` initializers of the scope's graph; return the nodes that give them where there can be none."""
    container = scope.container
    if not scope.takes_initializers:
        names = _names_of(scope)
        return [_constant_node(tensor, names) for tensor in tensors]
    assert isinstance(container, GraphProto)
    container.initializer.extend(tensors)
    return []


def apply_splices(scope: Scope) -> None:
    """Make the planned edits of ``scope``. The list of nodes is written once, however many there are."""
    if not scope.edits:
        return
    container = scope.container
    outputs: set[str] = set()
    measured: set[str] = set()
    after: list[NodeProto] = []
    for index, node in enumerate(container.node):
        planned = scope.edits.get(index)
        if planned is None:
            after.append(node)
        else:
            outputs.update(node.output)
            after.extend(planned)
            measured.update(each.input[0] for each in planned if each.op_type == "Shape")
    if len(after) == len(container.node):
        for index in scope.edits:
            container.node[index].CopyFrom(after[index])
    else:
        del container.node[:]
        container.node.extend(after)
    scope.edits.clear()
    _delete(container.value_info, lambda value: value.name in outputs and _is_stale(scope, value))
    scope.refresh()
    drop_unconfirmed(scope, measured)


def drop_unread(scope: Scope, read: Collection[str]) -> Collection[str]:
    """Delete what computes ``read``, which nodes read that are there no more, as far as nothing reads it any more.

    Nodes, constants and initializers of ``scope`` alone; what a quantization annotation names stays.

    Returns:
        ``read``, and what the deleted nodes read.
    """
    container = scope.container
    annotations = () if isinstance(container, FunctionProto) else container.quantization_annotation
    noted = {entry.value for each in annotations for entry in each.quant_parameter_tensor_names}
    gone, unread, waiting, met = set[str](), set[str](), list(read), set(read)
    while waiting:
        name = waiting.pop()
        if not name or name in noted or not scope.defines(name) or scope.is_used(name):
            continue
        if (node := scope.producer(name)) is None:
            unread.update({name} - scope.inputs)
        elif not any(scope.is_used(each) or each in noted for each in node.output):
            gone.update(filter(None, node.output))
            waiting += [*node.input, *outer_names_of(node)]
            met.update(waiting)
            scope.exchange(node, (), ())
    for index in reversed(range(len(container.node)) if gone else ()):
        if not gone.isdisjoint(container.node[index].output):
            del container.node[index]
    if not isinstance(container, FunctionProto):
        _delete(container.initializer, lambda tensor: tensor.name in unread)
        _delete(container.sparse_initializer, lambda sparse: sparse.values.name in unread)
        _delete(container.quantization_annotation, lambda each: each.tensor_name in gone)
    _delete(container.value_info, lambda value: value.name in gone)
    scope.refresh()
    return met


def _delete(entries: Any, unwanted: Callable[[Any], bool]) -> None:
    for index in reversed(range(len(entries))):
        if unwanted(entries[index]):
            del entries[index]


Names = dict[str, int]
"""Each name in use, with the number that was last appended to it to make another."""


def _names_of(scope: Scope) -> Names:
    """Return all names in use around ``scope``; gathered once and then kept up to date by splicing."""
    root = scope.root
    names: Names | None = root.__dict__.get("_all_names")
    if names is None:
        gathered: set[str] = set()
        _gather(root.container, gathered)
        names = root.__dict__["_all_names"] = dict.fromkeys(gathered, 1)
    return names


def _gather(container: GraphProto | FunctionProto, names: set[str]) -> None:
    names.update(names_of(container.input), names_of(container.output))
    if isinstance(container, FunctionProto):
        names.update(container.attribute)
    else:
        names.update(names_of(weights_of(container)))
    names.update(names_of(container.value_info))
    for node in container.node:
        names.add(node.name)
        names.update(node.input)
        names.update(node.output)
        for _, graph in bodies_of(node):
            _gather(graph, names)


class NewNames:
    """Makes names that nothing around a scope has, all of which begin like ``base``."""

    def __init__(self, scope: Scope, base: str) -> None:
        self._names, self._base = _names_of(scope), base

    def __call__(self, name: str) -> str:
        """Return ``name``, or one like it, behind the common beginning."""
        return _unique(f"{self._base}/{name}", self._names)


def _unique(wanted: str, names: Names) -> str:
    if wanted not in names:
        names[wanted] = 1
        return wanted
    while True:
        names[wanted] += 1
        name = f"{wanted}_{names[wanted]}"
        if name not in names:
            names[name] = 1
            return name


def _unique_names(fragment: Fragment, outputs: set[str], base: str, names: Names) -> dict[str, str]:
    local = [tensor.name for tensor in fragment.initializers]
    local += [name for node in fragment.nodes for name in node.output]
    mapping: dict[str, str] = {}
    for name in local:
        if name and name not in outputs and name not in mapping:
            mapping[name] = _unique(f"{base}_{name.removeprefix(LOCAL_PREFIX)}", names)
    return mapping


def _successor(nodes: list[NodeProto], replaced: NodeProto) -> NodeProto | None:
    """Return the node that stands for the replaced one: of its operator if there is one, else what gives its output."""
    same = [node for node in nodes if node.op_type == replaced.op_type and node.domain == replaced.domain]
    named = [node for node in same if node.name == replaced.name]
    outputs = set(replaced.output) - {""}
    giving = [node for node in nodes if outputs & set(node.output)]
    return next(iter([*named, *same, *giving]), None)


def _name_nodes(
    nodes: list[NodeProto], successor: NodeProto | None, replaced: NodeProto, base: str, names: Names
) -> None:
    for node in nodes:
        if node is successor:
            node.ClearField("name")
            if replaced.HasField("name"):
                node.name = replaced.name
            if not node.doc_string and replaced.doc_string:
                node.doc_string = replaced.doc_string
            if not node.metadata_props:
                node.metadata_props.extend(replaced.metadata_props)
        else:
            node.name = _unique(f"{base}_{node.op_type}", names)


def _constant_node(tensor: TensorProto, names: Names) -> NodeProto:
    node = NodeProto(op_type="Constant", name=_unique(f"{tensor.name}_Constant", names))
    node.output.append(tensor.name)
    attribute = node.attribute.add()
    attribute.name = "value"
    attribute.type = attribute.TENSOR
    attribute.t.CopyFrom(tensor)
    attribute.t.ClearField("name")
    return node


def _is_stale(scope: Scope, value: ValueInfoProto) -> bool:
    """Whether inference says otherwise than a ``value_info``."""
    known = scope.types.get(value.name)
    claimed = value_type(value.type)
    return known is not None and claimed is not None and contradicts(known, claimed)
