"""What makes a graph meaningless whatever its operators do: names given twice or never, cycles, endless expansion.

The rest of padfix may then rely on it: every value has one producer, every read value exists, and calls of functions
end. Order is not asked for (runtimes sort), nor are types.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from graphlib import CycleError, TopologicalSorter
from typing import Any

from onnx import FunctionProto, GraphProto, ModelProto, NodeProto, TensorProto, TypeProto, defs

from padfix.errors import SourceError, UnsupportedError
from padfix.graph.scopes import (
    DEFAULT_DOMAIN,
    FunctionKey,
    all_nodes,
    bodies_of,
    call_key,
    function_key,
    label,
    names_of,
    normal_domain,
    weights_of,
)

MOST_EXPANDED = 200_000
"""Nodes that calls of functions may come to when every call is replaced by the function's body."""

_HINT = "No runtime can run it; export the model again."


def require_sound(model: ModelProto, name: str) -> None:
    """Make sure that ``model``, which messages call ``name``, has a meaning; weights are not needed.

    Raises:
        SourceError: Saying which name, node or function is wrong.
        UnsupportedError: It is written for a newer operator set than the installed onnx package knows.
    """
    _require_versions(model, name)
    try:
        _require_graph(model.graph, [])
        for function in model.functions:
            _require_graph(function, [])
        _require_finite_calls(model)
    except _UnsoundError as error:
        raise SourceError(f"{name} is not a valid ONNX model: {error}.", _HINT) from None


class _UnsoundError(Exception):
    """The text completes the sentence "it is not valid: ..."."""


def _require_versions(model: ModelProto, name: str) -> None:
    newest = defs.onnx_opset_version()
    for container in (model, *model.functions):
        for entry in container.opset_import:
            if normal_domain(entry.domain) != DEFAULT_DOMAIN:
                continue
            if entry.version < 1:
                raise SourceError(
                    f"{name} is not a valid ONNX model: it is written for opset {entry.version}.",
                    "Operator sets are numbered from 1; export the model again.",
                )
            if entry.version > newest:
                raise UnsupportedError(
                    f"{name} is written for opset {entry.version}; the installed onnx package knows up to {newest}.",
                    "Update the onnx package, or export the model for an older opset.",
                )


def _require_graph(container: GraphProto | FunctionProto, around: Sequence[set[str]]) -> set[str]:
    """Check one list of nodes and the bodies in it; return the names that it reads from around it.

    ``around`` holds the names of each scope around it. They are not merged: bodies may be many, and names very many.
    """
    where = f"{'function' if isinstance(container, FunctionProto) else 'graph'} {container.name!r}"
    first = _each_once(names_of(container.input), where, "input")
    if isinstance(container, GraphProto):
        first |= _each_once(names_of(weights_of(container)), where, "initializer")
        _require_types(container, where)
    given = _each_once([*first, *(name for node in container.node for name in node.output if name)], where, "value")
    scopes = [given, *around]
    outer: set[str] = set()
    known = set(first)
    reads: list[set[str]] = []
    is_sorted = True
    for index, node in enumerate(container.node):
        used = set(node.input)
        for _, body in bodies_of(node):
            used |= _require_graph(body, scopes)
        used.discard("")
        for name in used:
            if name in given:
                is_sorted = is_sorted and name in known
            else:
                if not any(name in scope for scope in around):
                    raise _UnsoundError(f"{node.op_type} {label(node, index)!r} reads {name!r}, which nothing gives")
                outer.add(name)
        reads.append(used)
        known.update(node.output)
    for name in names_of(container.output):
        if name not in given:
            if not any(name in scope for scope in around):
                raise _UnsoundError(f"nothing gives the output {name!r} of the {where}")
            outer.add(name)
    if not is_sorted:
        _require_no_cycle(container.node, reads, first)
    return outer


_ELEMENT_TYPES = frozenset(TensorProto.DataType.values())


def _require_types(graph: GraphProto, where: str) -> None:
    """Make sure that every element type that the graph declares is one of ONNX; 0 leaves it open."""
    for value in (*graph.input, *graph.output, *graph.value_info):
        _require_element_types(value.type, f"the value {value.name!r} of the {where}")
    for tensor in weights_of(graph):
        if tensor.data_type not in _ELEMENT_TYPES:
            raise _UnsoundError(f"the initializer {tensor.name!r} of the {where} has element type {tensor.data_type}")


def _require_element_types(declared: TypeProto, what: str) -> None:
    while True:
        kind = declared.WhichOneof("value")
        if kind in ("tensor_type", "sparse_tensor_type"):
            elem_type = getattr(declared, kind).elem_type
            if elem_type not in _ELEMENT_TYPES:
                raise _UnsoundError(f"{what} has element type {elem_type}")
            return
        if kind == "map_type":
            declared = declared.map_type.value_type
        elif kind in ("sequence_type", "optional_type"):
            declared = getattr(declared, kind).elem_type
        else:
            return


def _each_once(names: Iterable[str], where: str, kind: str) -> set[str]:
    found: set[str] = set()
    for name in names:
        if name in found:
            raise _UnsoundError(f"the {kind} {name!r} of the {where} is given twice")
        found.add(name)
    return found


def _require_no_cycle(nodes: Sequence[NodeProto], reads: Sequence[set[str]], first: set[str]) -> None:
    producer = {name: index for index, node in enumerate(nodes) for name in node.output if name and name not in first}
    sources = {index: {producer[name] for name in used if name in producer} for index, used in enumerate(reads)}
    try:
        TopologicalSorter(sources).prepare()
    except CycleError as error:
        index = min(error.args[1])
        raise _UnsoundError(
            f"{nodes[index].op_type} {label(nodes[index], index)!r} depends on its own result"
        ) from None


def _require_finite_calls(model: ModelProto) -> None:
    """Make sure that no function calls itself, and that the calls together come to a number of nodes that can be run.

    Forty functions that each call the next one twice are a trillion nodes.
    """
    if not model.functions:
        return
    functions: dict[FunctionKey, FunctionProto] = {}
    for function in model.functions:
        key = function_key(function)
        if key in functions:
            raise _UnsoundError(f"the function {function.name!r} is defined twice")
        functions[key] = function
    contents = {key: _contents(function, functions) for key, function in functions.items()}
    try:
        order = list(TopologicalSorter({key: calls for key, (_, calls) in contents.items()}).static_order())
    except CycleError as error:
        raise _UnsoundError(f"the function {error.args[1][0][1]!r} calls itself") from None
    sizes: dict[FunctionKey, int] = {}
    for key in order:
        count, calls = contents[key]
        sizes[key] = count + sum(sizes[call] for call in calls)
    own, calls = _contents(model.graph, functions)
    total = own + sum(sizes[key] for key in calls)
    written = sum(count for count, _ in contents.values())
    if total > MOST_EXPANDED + 20 * (written + own):
        raise _UnsoundError(f"its calls of functions come to {total} nodes")


def _contents(container: Any, functions: dict[FunctionKey, FunctionProto]) -> tuple[int, list[FunctionKey]]:
    """Return how many nodes a container and the bodies in it hold, and which functions they call."""
    nodes = list(all_nodes(container.node))
    return len(nodes), [key for key in map(call_key, nodes) if key in functions]
