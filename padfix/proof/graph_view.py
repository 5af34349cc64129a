"""A main graph seen by its tensors: who computes a name, what it is computed from, and who reads it.

The proof pairs tensors of two graphs and cuts the graphs between them. An ONNX graph and a TensorFlow graph look alike
from here; only an ONNX graph also says what its nodes and weights are, so that two can be compared node by node.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from onnx import GraphProto, NodeProto

from padfix.graph.dependence import reached
from padfix.graph.scopes import DEFAULT_DOMAIN, label, normal_domain, outer_reads_of
from padfix.proof.inner import no_attribute

_OF_SHAPES = frozenset({"Shape", "ShapeN", "Size", "Rank", "ZerosLike", "OnesLike", "EyeLike", "SHAPE", "ZEROS_LIKE"})
"""Operators of all sources whose results don't depend on the numbers that they read."""


@dataclass(frozen=True)
class NodeView:
    """One node of a main graph.

    Attributes:
        index: Its place in the graph; nodes stand in topological order.
        name: Its name for people.
        op_type: Its operator.
        inputs: Names that it reads, in order; then those that its bodies read from outside, in order as well.
        outputs: Names that it computes; ``""`` where one is left out.
        proto: The node itself, where the graph is ONNX.
        attribute: Returns an attribute by name, None where there is none; of TensorFlow's operators.
    """

    index: int
    name: str
    op_type: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    proto: NodeProto | None = None
    attribute: Callable[[str], Any] = field(default=no_attribute, compare=False)

    @property
    def is_standard(self) -> bool:
        """Whether the operator is one of ONNX's own."""
        return self.proto is not None and normal_domain(self.proto.domain) == DEFAULT_DOMAIN


@dataclass(frozen=True)
class Border:
    """The names that end a stretch: all of some but those that it goes through."""

    names: Container[object]
    skipped: Container[object]

    def __contains__(self, name: object) -> bool:
        return name in self.names and name not in self.skipped


class GraphView:
    """A graph by its tensors: nodes in topological order, constants left out, and the node that computes each name."""

    def __init__(self, nodes: Sequence[NodeView], inputs: Iterable[str], outputs: Iterable[str]) -> None:
        self.nodes = tuple(nodes)
        self.inputs = tuple(inputs)
        self.outputs = tuple(outputs)
        self.producers = {name: node for node in self.nodes for name in node.outputs if name}

    @cached_property
    def readers(self) -> Mapping[str, list[NodeView]]:
        """The nodes that read each name, in order."""
        found: dict[str, list[NodeView]] = {}
        for node in self.nodes:
            for name in dict.fromkeys(node.inputs):
                if name:
                    found.setdefault(name, []).append(node)
        return found

    @cached_property
    def live(self) -> frozenset[str]:
        """Names that some output depends on, the outputs included."""
        return frozenset(self.needed(self.outputs))

    def needed(self, names: Iterable[str]) -> set[str]:
        """Return ``names`` and every computed name or input that they depend on."""
        producers = self.producers
        return set(reached(names, lambda name: filter(None, producers[name].inputs) if name in producers else ()))

    def dependent(self, names: Iterable[str]) -> set[str]:
        """Return ``names`` and every name that is computed from one of them."""
        found = set(names)
        for node in self.nodes:
            if not found.isdisjoint(node.inputs):
                found.update(node.outputs)
        return found - {""}

    def follows_from_numbers(self, name: str) -> bool:
        """Whether a name depends on what an input holds, and not on the shapes of inputs alone."""
        seen, rest = {name}, [name]
        while rest:
            each = rest.pop()
            if each in self.inputs:
                return True
            node = self.producers.get(each)
            if node is not None and node.op_type not in _OF_SHAPES:
                rest += [read for read in node.inputs if read and read not in seen]
                seen.update(node.inputs)
        return False

    def is_computed_from(self, name: str, others: Iterable[str]) -> bool:
        """Whether a name depends on another one of ``others``."""
        return not (self.needed([name]) - {name}).isdisjoint(others)

    def stretch(
        self, end: str, border: Container[object], *, most: int | None = None, of_numbers: bool = False
    ) -> tuple[list[str], list[NodeView]]:
        """Return the names of ``border`` next above ``end``, and the nodes between them and it, in order.

        After ``most`` nodes no more are looked for. ``of_numbers``, nor is what gives no more than its shape.
        """
        seen, nodes, above = {end}, dict[int, NodeView](), dict[str, None]()
        rest = [end]
        while rest and (most is None or len(nodes) <= most):
            node = self.producers.get(rest.pop())
            if node is None or node.index in nodes:
                continue
            nodes[node.index] = node
            for name in node.inputs:
                if not name or (of_numbers and node.op_type in _OF_SHAPES):
                    continue
                if name in border:
                    above[name] = None
                elif name not in seen:
                    seen.add(name)
                    rest.append(name)
        return list(above), [nodes[index] for index in sorted(nodes)]


def onnx_view(graph: GraphProto) -> GraphView:
    """Return the view of an ONNX graph; Constant nodes and initializers are no nodes of it."""
    constants = {tensor.name for tensor in graph.initializer}
    constants |= {tensor.values.name for tensor in graph.sparse_initializer}
    nodes = []
    for index, node in enumerate(graph.node):
        if node.op_type == "Constant":
            constants.update(node.output)
            continue
        read = (*node.input, *outer_reads_of(node))
        nodes.append(NodeView(index, label(node, index), node.op_type, read, tuple(node.output), node))
    inputs = (value.name for value in graph.input if value.name not in constants)
    return GraphView(nodes, inputs, (value.name for value in graph.output))
