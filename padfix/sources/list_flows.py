"""Where the lists of a GraphDef (TensorArrays) go: which operators, loops, conditions and functions hand them on."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

_VARIANT = 21  # TensorFlow's DataType number (types.proto)

LOOPS = frozenset({"While", "StatelessWhile"})
CONDITIONS = frozenset({"If", "StatelessIf"})
CALLS = frozenset({"PartitionedCall", "StatefulPartitionedCall"})
_OUTPUTS = {
    "TensorListReserve": "handle",
    "TensorListFromTensor": "output_handle",
    "TensorListSetItem": "output_handle",
    "TensorListGetItem": "item",
    "TensorListStack": "tensor",
    "TensorListLength": "length",
    "Identity": "output",
}
"""The operators of a list that can be dense, and their results."""

_SHAPES = {"TensorListReserve": 0, "TensorListFromTensor": 1, "TensorListGetItem": 2, "TensorListStack": 1}
"""The input that says what shape an element has."""

Key = tuple[str, str]


class Scope:
    """The nodes of a graph or function; ``function`` is None for the main graph."""

    def __init__(self, tensorflow: Any, owner: Any, function: Any = None) -> None:
        self._tensorflow, self._owner, self.function = tensorflow, owner, function
        self.name: str = function.signature.name if function is not None else ""
        self.nodes: Sequence[Any] = owner
        self.by_name = {node.name: node for node in owner}

    def key(self, reference: str) -> Key:
        if self.function is None and ":" not in reference:
            reference += ":0"
        return self.name, reference

    def result(self, node: Any, output: str, index: int = 0) -> Key:
        return self.name, f"{node.name}:{index}" if self.function is None else f"{node.name}:{output}:{index}"

    def reference(self, name: str, output: str) -> str:
        return name if self.function is None else f"{name}:{output}:0"

    def seen_through(self, reference: str) -> str:
        """Return the node, or argument, that a reference means, seen through what hands it on."""
        name = reference.split(":")[0]
        while name in self.by_name and self.by_name[name].op == "Identity":
            name = self.by_name[name].input[0].split(":")[0]
        return name

    def constant(self, reference: str) -> Any:
        """Return the array that a reference means, where it is a constant."""
        node = self.by_name.get(self.seen_through(reference))
        if node is None or node.op != "Const":
            return None
        return self._tensorflow.make_ndarray(node.attr["value"].tensor)

    def integer(self, reference: str) -> int | None:
        """Return the integer that a reference means, where it is a constant."""
        array = self.constant(reference)
        return int(array.item()) if array is not None and array.size == 1 and array.dtype.kind in "iu" else None

    def new_node(self) -> Any:
        return self._tensorflow.compat.v1.NodeDef()

    def add(self, nodes: Iterable[Any]) -> None:
        self._owner.extend(nodes)

    def rename_outputs(self, nodes: set[str], names: Mapping[str, str]) -> None:
        """Let references to results of ``nodes`` say the new names of results; the main graph's have none."""
        if self.function is None:
            return

        def renamed(reference: str) -> str:
            name, *rest = reference.split(":")
            return ":".join([name, names.get(rest[0], rest[0]), *rest[1:]]) if name in nodes and rest else reference

        for node in self.nodes:
            for place, reference in enumerate(node.input):
                node.input[place] = renamed(reference)
        for name, reference in list(self.function.ret.items()):
            self.function.ret[name] = renamed(reference)


@dataclass
class ListFlow:
    """One list, from where it is made to where it is read.

    Attributes:
        nodes: Its operators by scope.
        typed: What hands it on, as (node, attribute of types, index).
        arguments: (function, arguments or results, index) of functions that it goes through.
        can_be_dense: Whether nothing else reads it.
        element: The ``DataType`` number of its elements.
        lengths: The shape of an element, None for an open length.
    """

    nodes: dict[Scope, list[Any]] = field(default_factory=dict)
    typed: list[tuple[Any, str, int]] = field(default_factory=list)
    arguments: list[tuple[Any, Any, int]] = field(default_factory=list)
    can_be_dense: bool = True
    element: int = 0
    lengths: list[int | None] = field(default_factory=list)


class Flows:
    """The lists of a GraphDef.

    Attributes:
        scopes: The main graph and its functions by name; "" is the main graph.
    """

    def __init__(self, tensorflow: Any, graph_def: Any) -> None:
        self._tensorflow = tensorflow
        self.scopes = {"": Scope(tensorflow, graph_def.node)}
        for function in graph_def.library.function:
            self.scopes[function.signature.name] = Scope(tensorflow, function.node_def, function)
        self._above: dict[Key, Key] = {}
        self._typed: list[tuple[Key, Any, str, int]] = []
        self._arguments: list[tuple[Key, Any, Any, int]] = []
        for scope in self.scopes.values():
            for node in scope.nodes:
                self._visit(scope, node)

    def root(self, key: Key) -> Key:
        """Return the key that stands for a list wherever it is."""
        while key in self._above:
            key = self._above[key]
        return key

    def flow(self, root: Key) -> ListFlow:
        """Return all that is to know of one list."""
        flow, shapes = ListFlow(), list[list[int | None]]()
        for scope in self.scopes.values():
            for node in scope.nodes:
                self._collect(flow, shapes, scope, node, root)
        flow.typed = [(node, attribute, index) for key, node, attribute, index in self._typed if self.root(key) == root]
        flow.arguments = [tuple_[1:] for tuple_ in self._arguments if self.root(tuple_[0]) == root]
        merged = _merged(shapes)
        flow.can_be_dense &= merged is not None and flow.element != _VARIANT
        flow.lengths = merged or []
        return flow

    def _collect(self, flow: ListFlow, shapes: list[list[int | None]], scope: Scope, node: Any, root: Key) -> None:
        is_list = node.op in _OUTPUTS and (node.op != "Identity" or node.attr["T"].type == _VARIANT)
        keys = [scope.key(reference) for reference in node.input if not reference.startswith("^")]
        reads = any(self.root(key) == root for key in keys)
        makes = is_list and self.root(scope.result(node, _OUTPUTS[node.op])) == root
        if not (reads or makes):
            return
        if not is_list:
            flow.can_be_dense &= node.op in LOOPS | CONDITIONS | CALLS
            return
        flow.nodes.setdefault(scope, []).append(node)
        if "element_dtype" in node.attr:
            flow.element = node.attr["element_dtype"].type
        said = scope.constant(node.input[_SHAPES[node.op]]) if node.op in _SHAPES else None
        if said is not None and said.ndim:
            shapes.append([int(length) if length >= 0 else None for length in said])

    def _join(self, *keys: Key) -> None:
        first, *others = dict.fromkeys(map(self.root, keys))
        for other in others:
            self._above[other] = first

    def _visit(self, scope: Scope, node: Any) -> None:
        if node.op == "TensorListSetItem" or (node.op == "Identity" and node.attr["T"].type == _VARIANT):
            self._join(scope.key(node.input[0]), scope.result(node, _OUTPUTS[node.op]))
        elif node.op in LOOPS:
            bodies = [self.scopes.get(node.attr[name].func.name) for name in ("body", "cond")]
            for index, kind in enumerate(node.attr["T"].list.type):
                if kind == _VARIANT:
                    here = scope.key(node.input[index])
                    self._join(here, scope.result(node, "output", index))
                    self._typed.append((here, node, "T", index))
                    self._through(bodies, "input_arg", index, here)
                    self._through(bodies[:1], "output_arg", index, here)
        elif node.op in CONDITIONS or node.op in CALLS:
            names = ("then_branch", "else_branch") if node.op in CONDITIONS else ("f",)
            bodies = [self.scopes.get(node.attr[name].func.name) for name in names]
            first = int(node.op in CONDITIONS)
            for index, kind in enumerate(node.attr["Tin"].list.type):
                if kind == _VARIANT:
                    here = scope.key(node.input[index + first])
                    self._typed.append((here, node, "Tin", index))
                    self._through(bodies, "input_arg", index, here)
            for index, kind in enumerate(node.attr["Tout"].list.type):
                if kind == _VARIANT:
                    here = scope.result(node, "output", index)
                    self._typed.append((here, node, "Tout", index))
                    self._through(bodies, "output_arg", index, here)

    def _through(self, bodies: Iterable[Scope | None], side: str, index: int, here: Key) -> None:
        for body in bodies:
            if body is None:
                continue
            arguments = getattr(body.function.signature, side)
            name = arguments[index].name
            there = body.key(name if side == "input_arg" else body.function.ret[name])
            self._join(here, there)
            self._arguments.append((here, body.function, arguments, index))


def _merged(shapes: Iterable[Sequence[int | None]]) -> list[int | None] | None:
    """Return the shape that several say a part of; None where they say nothing, or contradict each other."""
    merged: list[int | None] | None = None
    for shape in shapes:
        if merged is None:
            merged = list(shape)
        elif len(shape) != len(merged):
            return None
        else:
            merged = [one if one is not None else other for one, other in zip(merged, shape, strict=True)]
    return merged


def loops(flows: Flows) -> Iterator[tuple[Scope, Any]]:
    """Yield each loop with the scope that it is in."""
    for scope in flows.scopes.values():
        for node in scope.nodes:
            if node.op in LOOPS:
                yield scope, node
