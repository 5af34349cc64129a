"""Scopes: the main graph, the bodies of If, Loop and Scan, and model-local functions, seen alike.

A scope answers three questions about a name that is visible in it: its type, its constant value, and who uses it.
Bodies see the names of the scopes around them; functions see only their own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from onnx import (
    AttributeProto,
    FunctionProto,
    GraphProto,
    ModelProto,
    NodeProto,
    SparseTensorProto,
    TensorProto,
    numpy_helper,
)

from padfix.graph import attributes
from padfix.graph.sparse import dense

DEFAULT_DOMAIN = ""

OVERRIDABLE_SINCE = 4
"""The version of ONNX's files from which on an initializer that is also an input is a default."""

_CONSTANTS = {
    "value_float": ("f", np.float32),
    "value_floats": ("floats", np.float32),
    "value_int": ("i", np.int64),
    "value_ints": ("ints", np.int64),
}
"""Attributes of Constant that hold numbers: the field of them, and their type as a tensor."""

View = Callable[[TensorProto], "np.ndarray | None"]
"""Gives the elements of a tensor that are not in the graph itself; None where they can't be had."""

Dimension = int | str | None
"""A known length, a symbolic one by name, or unknown."""


@dataclass(frozen=True)
class ValueType:
    """Element type (``TensorProto.DataType``) and shape of a value; ``shape`` is None when the rank is unknown."""

    elem_type: int
    shape: tuple[Dimension, ...] | None

    @property
    def rank(self) -> int | None:
        """Number of axes, or None when unknown."""
        return None if self.shape is None else len(self.shape)

    @property
    def lengths(self) -> tuple[int, ...] | None:
        """The length of every axis, or None when not all of them are known."""
        known = tuple(each for each in self.shape or () if isinstance(each, int))
        return known if len(known) == self.rank else None

    @property
    def copied(self) -> tuple[int, ...] | None:
        """The lengths as a Reshape is told them, 0 for an open number of images; None when others are not known."""
        first, *rest = self.shape or (None,)
        known = [each for each in rest if isinstance(each, int)]
        return (first if isinstance(first, int) else 0, *known) if self.shape and len(known) == len(rest) else None


def normal_domain(domain: str) -> str:
    """Return ``""`` for both spellings of the default domain."""
    return DEFAULT_DOMAIN if domain == "ai.onnx" else domain


@dataclass(eq=False)
class Scope:
    """One list of nodes with the names that are visible to it.

    Attributes:
        path: ``"main"``, ``"main/<node>.<attribute>"`` for a body, ``"function:<domain>:<name>"`` for a function.
        container: The ``GraphProto`` or ``FunctionProto`` that holds the nodes; edits go here.
        parent: The scope around a body; None for the main graph and for functions.
        opsets: Imported opset version for each normalised domain.
        types: Inferred types of names defined in this scope; filled by :mod:`padfix.graph.shapes`.
        ir_version: The model's; below 4 an initializer that is also an input is a constant.
        readings: What readers of nodes have found, by the node's identity; theirs to fill, forgotten after edits.
        of_data: Of names that nodes give, whether data decide them, as far as somebody asked; kept as ``readings`` are.
        chained: Of such names, whether constants and lengths alone decide them, the open lengths counted in or not.
        traits: What nodes were found to be like, by their identity. The outermost scope has those of all inside: an
            edit of one of them counts in the others.
        bodies: The scopes of the bodies that its nodes hold, in their order.
        model: The model, of which only the main graph's scope knows.
        view: Gives the elements of a tensor that stay in a file; None where they can't be had.
        edits: What takes the place of nodes, by index, once :mod:`padfix.graph.splice` applies it; the questions about
            names are answered as if it were applied.
    """

    path: str
    container: GraphProto | FunctionProto
    parent: Scope | None
    opsets: Mapping[str, int]
    ir_version: int
    types: dict[str, ValueType] = field(default_factory=dict)
    readings: dict[int, object] = field(default_factory=dict)
    of_data: dict[str, bool] = field(default_factory=dict)
    chained: dict[tuple[str, bool], bool] = field(default_factory=dict)
    traits: dict[int, object] = field(default_factory=dict)
    edits: dict[int, list[NodeProto]] = field(default_factory=dict)
    bodies: list[Scope] = field(default_factory=list)
    model: ModelProto | None = None
    view: View | None = None

    @property
    def nodes(self) -> Any:
        """The nodes, in order; a live protobuf container."""
        return self.container.node

    @property
    def root(self) -> Scope:
        """The outermost scope around it: the main graph or a function."""
        return self if self.parent is None else self.parent.root

    @property
    def opset(self) -> int:
        """Version of the default domain; 1 when nothing imports it."""
        return self.opsets.get(DEFAULT_DOMAIN, 1)

    @cached_property
    def _initializers(self) -> dict[str, TensorProto]:
        return {} if isinstance(self.container, FunctionProto) else {t.name: t for t in self.container.initializer}

    @cached_property
    def _sparse_initializers(self) -> dict[str, SparseTensorProto]:
        if isinstance(self.container, FunctionProto):
            return {}
        return {t.values.name: t for t in self.container.sparse_initializer}

    @cached_property
    def inputs(self) -> frozenset[str]:
        """Names of the scope's formal inputs."""
        return frozenset(names_of(self.container.input))

    @cached_property
    def outputs(self) -> tuple[str, ...]:
        """Names of the scope's formal outputs."""
        return tuple(names_of(self.container.output))

    @cached_property
    def _output_names(self) -> frozenset[str]:
        return frozenset(self.outputs)

    @cached_property
    def _producers(self) -> dict[str, NodeProto]:
        return {name: node for node in self.nodes for name in node.output if name}

    @cached_property
    def _consumers(self) -> dict[str, dict[int, NodeProto]]:
        """The nodes that read each name, by identity: one name may have very many, and editing takes them out."""
        found: dict[str, dict[int, NodeProto]] = {}
        for node in self.nodes:
            _note_consumer(found, node)
        return found

    def refresh(self) -> None:
        """Forget what was derived from the nodes; call after an edit."""
        names = ("_initializers", "_sparse_initializers", "inputs", "outputs", "_output_names")
        for name in (*names, "_producers", "_consumers"):
            self.__dict__.pop(name, None)
        self.readings.clear()
        self.of_data.clear()
        self.chained.clear()
        self.root.traits.clear()

    def exchange(self, node: NodeProto, nodes: Iterable[NodeProto], tensors: Iterable[TensorProto]) -> None:
        """Answer from now on as if ``nodes`` stood in the place of ``node`` and ``tensors`` were initializers.

        What was derived from the other nodes stays, so that a thousand edits don't read the graph a thousand times.
        """
        self.root.traits.clear()
        producers, consumers = self._producers, self._consumers
        self._initializers.update((tensor.name, tensor) for tensor in tensors)
        for name in node.output:
            self.of_data.pop(name, None)
            for is_open in (False, True):
                self.chained.pop((name, is_open), None)
            if producers.get(name) is node:
                del producers[name]
        for name in {*node.input, *outer_names_of(node)}:
            consumers.get(name, {}).pop(id(node), None)
        for each in nodes:
            producers.update((name, each) for name in each.output if name)
            _note_consumer(consumers, each)

    def defines(self, name: str) -> bool:
        """Whether ``name`` is an input, an initializer or a node's output of this very scope."""
        return (
            name in self.inputs
            or name in self._initializers
            or name in self._sparse_initializers
            or name in self._producers
        )

    def is_initializer(self, name: str) -> bool:
        """Whether ``name`` is an initializer of this very scope, which may be the default of an input."""
        return name in self._initializers or name in self._sparse_initializers

    @property
    def takes_initializers(self) -> bool:
        """Whether constants can be initializers here: not in functions, nor where each would have to be an input."""
        return not isinstance(self.root.container, FunctionProto) and self.ir_version >= OVERRIDABLE_SINCE

    def is_fixed(self, name: str) -> bool:
        """Whether ``name`` is an initializer of this very scope, however large, that no caller can replace.

        Files of ONNX's third version and before list every initializer among the inputs.
        """
        return self.is_initializer(name) and (name not in self.inputs or self.ir_version < OVERRIDABLE_SINCE)

    def owner(self, name: str) -> Scope | None:
        """Return the innermost scope that defines ``name``, or None."""
        if self.defines(name):
            return self
        return None if self.parent is None else self.parent.owner(name)

    def producer(self, name: str) -> NodeProto | None:
        """Return the node that computes ``name``, in this scope or one around it."""
        owner = self.owner(name)
        return None if owner is None else owner._producers.get(name)

    def own_producer(self, name: str) -> NodeProto | None:
        """Return the node of this very scope that computes ``name``."""
        return self._producers.get(name)

    def consumers(self, name: str) -> list[NodeProto]:
        """Return the nodes of this scope that read ``name``, those whose bodies read it included."""
        return list(self._consumers.get(name, {}).values())

    def is_output(self, name: str) -> bool:
        """Whether ``name`` is a formal output of this scope."""
        return name in self._output_names

    def is_used(self, name: str) -> bool:
        """Whether something reads ``name``, or it is a formal output; an omitted output (``""``) is not used."""
        return bool(name) and (self.is_output(name) or bool(self._consumers.get(name)))

    def type_of(self, name: str) -> ValueType | None:
        """Return the type of ``name``, or None when nothing is known."""
        owner = self.owner(name)
        if owner is None:
            return None
        known = owner.types.get(name)
        if known is not None:
            return known
        tensor = owner._initializers.get(name)
        if tensor is not None:
            return ValueType(tensor.data_type, tuple(tensor.dims))
        sparse = owner._sparse_initializers.get(name)
        if sparse is not None:
            return ValueType(sparse.values.data_type, tuple(sparse.dims))
        producer = owner._producers.get(name)
        if producer is not None and producer.op_type == "Constant" and not producer.domain:
            value = attributes.find(producer, "value")
            if value is not None and value.type == AttributeProto.TENSOR:
                return ValueType(value.t.data_type, tuple(value.t.dims))
        return None

    def constant(self, name: str) -> np.ndarray | None:
        """Return the value of ``name`` when it can never be another: an initializer or a Constant node.

        None for everything else: overridable inputs, computed values, and payloads that can't be read or are very long.
        What stays in a file is mapped: it is read where somebody looks at the elements, and must not be written to.
        """
        owner = self.owner(name)
        if owner is None:
            return None
        tensor = owner._initializers.get(name)
        if tensor is not None:
            return self._array(tensor) if owner.is_fixed(name) else None
        sparse = owner._sparse_initializers.get(name)
        if sparse is not None:
            return dense(sparse, self._array) if owner.is_fixed(name) else None
        producer = owner._producers.get(name)
        if producer is None or producer.op_type != "Constant" or normal_domain(producer.domain):
            return None
        attribute = producer.attribute[0] if producer.attribute else None
        if attribute is None or attribute.ref_attr_name:
            return None
        if attribute.name == "value":
            return self._array(attribute.t)
        if attribute.name == "sparse_value":
            return dense(attribute.sparse_tensor, self._array)
        field_name, element = _CONSTANTS.get(attribute.name, ("", None))
        return np.array(getattr(attribute, field_name), element) if field_name else None

    def _array(self, tensor: TensorProto) -> np.ndarray | None:
        if tensor.data_type == TensorProto.STRING:
            return None
        if tensor.data_location == TensorProto.EXTERNAL:
            return None if self.view is None else self.view(tensor)
        try:
            return numpy_helper.to_array(tensor)
        except (ValueError, TypeError, RuntimeError, KeyError, OverflowError, MemoryError):
            return None  # what it holds does not fit its shape and type, or the type does not exist


def _note_consumer(consumers: dict[str, dict[int, NodeProto]], node: NodeProto) -> None:
    for name in {*node.input, *outer_names_of(node)}:
        if name:
            consumers.setdefault(name, {})[id(node)] = node


def weights_of(graph: GraphProto) -> list[TensorProto]:
    """Return the initializers of a graph; of a sparse one what it holds, which has its name."""
    return [*graph.initializer, *(sparse.values for sparse in graph.sparse_initializer)]


def names_of(values: Any) -> list[str]:
    """Return the names of a graph's or a function's inputs or outputs, or of other things that have one."""
    return [value if isinstance(value, str) else value.name for value in values]


def bodies_of(node: NodeProto) -> Iterator[tuple[str, GraphProto]]:
    """Yield (attribute name, graph) of every body that ``node`` holds."""
    for attribute in node.attribute:
        if attribute.type == AttributeProto.GRAPH:
            yield attribute.name, attribute.g
        elif attribute.type == AttributeProto.GRAPHS:
            for index, graph in enumerate(attribute.graphs):
                yield f"{attribute.name}[{index}]", graph


def all_nodes(nodes: Iterable[NodeProto]) -> Iterator[NodeProto]:
    """Yield every node and, after each, those in its bodies."""
    for node in nodes:
        yield node
        for _, graph in bodies_of(node):
            yield from all_nodes(graph.node)


def outer_names_of(node: NodeProto) -> set[str]:
    """Return the names that the bodies of ``node`` read from around them."""
    return set(outer_reads_of(node))


def outer_reads_of(node: NodeProto) -> list[str]:
    """Return the same, each once, in the order in which the bodies, by their attributes' names, read them."""
    names: dict[str, None] = {}
    for _, graph in sorted(bodies_of(node), key=lambda body: body[0]):
        own = {"", *names_of(graph.input), *names_of(weights_of(graph))}
        own.update(name for inner in graph.node for name in inner.output)
        for inner in graph.node:
            names.update((name, None) for name in (*inner.input, *outer_reads_of(inner)) if name not in own)
        names.update((name, None) for name in names_of(graph.output) if name not in own)
    return list(names)


def in_order(nodes: Sequence[NodeProto]) -> list[NodeProto]:
    """Return nodes so that each stands behind those that compute what it reads, and else as they stood.

    ONNX asks for it, but ONNX Runtime takes others as well, which onnxconverter-common writes for float16.
    """
    producers = {name: index for index, node in enumerate(nodes) for name in node.output if name}
    placed: dict[int, None] = {}
    begun: set[int] = set()
    for index in range(len(nodes)):
        waiting = [index]
        while waiting:
            read = (*nodes[waiting[-1]].input, *outer_reads_of(nodes[waiting[-1]]))
            missing = [producers[name] for name in read if name in producers and producers[name] not in placed]
            if missing and waiting[-1] not in begun:
                begun.add(waiting[-1])
                waiting.extend(reversed(missing))
            else:
                placed[waiting.pop()] = None
    return [nodes[index] for index in placed]


FunctionKey = tuple[str, str, str]
"""Normalised domain, name and overload."""


def function_key(function: FunctionProto) -> FunctionKey:
    """Return what a call of ``function`` names."""
    return (normal_domain(function.domain), function.name, function.overload)


def call_key(node: NodeProto) -> FunctionKey:
    """Return the key of the function that ``node`` would call."""
    return (normal_domain(node.domain), node.op_type, node.overload)


def label(node: NodeProto, index: int) -> str:
    """Return the node's name, or ``#<index>`` when it has none."""
    return node.name or f"#{index}"


def _imports(container: ModelProto | FunctionProto) -> dict[str, int]:
    return {normal_domain(entry.domain): entry.version for entry in container.opset_import}


def iterate_scopes(model: ModelProto, view: View | None = None) -> Iterator[Scope]:
    """Yield every scope of the model: the main graph, its bodies depth first, then functions and their bodies."""
    opsets = _imports(model)
    yield from _nested(Scope("main", model.graph, None, opsets, model.ir_version, model=model, view=view))
    for function in model.functions:
        path = f"function:{function.domain}:{function.name}" + (f":{function.overload}" if function.overload else "")
        yield from _nested(Scope(path, function, None, {**opsets, **_imports(function)}, model.ir_version, view=view))


def _nested(scope: Scope) -> Iterator[Scope]:
    yield scope
    for index, node in enumerate(scope.nodes):
        for name, graph in bodies_of(node):
            path = f"{scope.path}/{label(node, index)}.{name}"
            scope.bodies.append(Scope(path, graph, scope, scope.opsets, scope.ir_version, view=scope.view))
            yield from _nested(scope.bodies[-1])
