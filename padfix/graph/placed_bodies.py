"""The nodes of a body in the place of the node that holds it, as often as it runs, or of both branches of an If."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from onnx import GraphProto, NodeProto, SparseTensorProto, TensorProto, helper, numpy_helper

from padfix.graph import attributes
from padfix.graph.scopes import Scope, bodies_of, names_of, outer_names_of, weights_of
from padfix.graph.sparse import dense
from padfix.graph.splice import NewNames, add_constants, drop_unread

_AXES_AS_INPUT_SINCE = 13


def rename(graph: GraphProto, names: Mapping[str, str]) -> None:
    """Give the tensors of a graph, and what its bodies read of them, other names."""
    for node in graph.node:
        _rename_in(node, names)
    for each in (*graph.input, *graph.output, *weights_of(graph)):
        each.name = names.get(each.name, each.name)


def _rename_in(node: NodeProto, names: Mapping[str, str]) -> None:
    for field in (node.input, node.output):
        field[:] = [names.get(name, name) for name in field]
    for _, body in bodies_of(node):
        rename(body, names)


def put_in_place(scope: Scope, output: str, attribute: str, turns: int) -> None:
    """Put the nodes of a body in the place of the node that holds it, and drop what that alone read.

    Args:
        scope: Where the node stands; its container is edited.
        output: An output of an If, Loop, Scan or SequenceMap.
        attribute: Which of its bodies.
        turns: How often this runs; once, of an If.
    """
    index, holder = _holder_of(scope, output)
    turned = _Turns(holder, dict(bodies_of(holder))[attribute], scope, _names_for(scope, holder))
    nodes = turned.nodes(turns)
    _replace(scope, index, holder, turned.tensors, nodes)


def put_all_in_place(scope: Scope, output: str) -> None:
    """Put the nodes of both branches in the place of an If, and choose among their results.

    Args:
        scope: Where the node stands; its container is edited.
        output: An output of it.
    """
    index, holder = _holder_of(scope, output)
    unique, bodies, given = _names_for(scope, holder), dict(bodies_of(holder)), list[NodeProto]()
    nodes, tensors = list[NodeProto](), list[TensorProto]()
    for attribute in ("then_branch", "else_branch"):
        given.append(_copy_of(holder))
        given[-1].output[:] = [name and unique(name) for name in holder.output]
        turned = _Turns(given[-1], bodies[attribute], scope, unique)
        nodes += turned.nodes(1)
        tensors += turned.tensors
    for name, chosen, other in zip(holder.output, *(each.output for each in given), strict=True):
        if name:
            choice = [holder.input[0], chosen, other]
            nodes.append(helper.make_node("Where", choice, [name], name=unique("Where")))
    _replace(scope, index, holder, tensors, nodes)


def _holder_of(scope: Scope, output: str) -> tuple[int, NodeProto]:
    """Return where a node stands that gives an output, and a copy of it."""
    nodes = scope.container.node
    index = next(place for place, node in enumerate(nodes) if output in node.output)
    return index, _copy_of(nodes[index])


def _names_for(scope: Scope, holder: NodeProto) -> NewNames:
    return NewNames(scope, holder.name or next(filter(None, holder.output)))


def _replace(
    scope: Scope, index: int, holder: NodeProto, tensors: Sequence[TensorProto], placed: Sequence[NodeProto]
) -> None:
    """Put nodes in the place of the one at ``index``, and drop what that alone read."""
    container = scope.container
    nodes = [*add_constants(scope, tensors), *placed, *map(_copy_of, container.node[index + 1 :])]
    del container.node[index:]
    container.node.extend(nodes)
    around: Scope | None = scope
    read: Collection[str] = {*holder.input, *outer_names_of(holder)}
    while around is not None:
        around.refresh()
        read, around = drop_unread(around, read), around.parent


class _Turns:
    """Writes the turns of a body one after the other, under names that nothing else has.

    Attributes:
        tensors: The constants that their nodes read.
    """

    def __init__(self, holder: NodeProto, body: GraphProto, scope: Scope, unique: NewNames) -> None:
        self.holder, self.body, self.opset = holder, body, scope.opset
        self._unique = unique
        self._shared = {tensor.name: self._unique(tensor.name) for tensor in weights_of(body)}
        self.tensors = [_renamed(tensor, self._shared[tensor.name]) for tensor in body.initializer]
        for sparse in body.sparse_initializer:
            self._write_out(sparse)
        results = names_of(body.output)
        self._scanned = attributes.integer(holder, "num_scan_inputs", 0) or 0
        match holder.op_type:
            case "Loop":
                self._states, self._results = list(holder.input[2:]), results[1:]
            case "Scan":
                self._states, self._results = list(holder.input[: len(holder.input) - self._scanned]), results
            case _:
                self._states, self._results = [], results
        self._lists = {name for name in holder.input if name == holder.input[0] or scope.type_of(name) is None}
        self._kept = len(results) if holder.op_type == "If" else len(self._states)

    def _write_out(self, sparse: SparseTensorProto) -> None:
        """Keep all elements of a sparse constant; its own list of them has the name that it had in the body."""
        whole = dense(sparse, numpy_helper.to_array)
        if whole is not None:
            self.tensors.append(numpy_helper.from_array(whole, self._shared[sparse.values.name]))

    def nodes(self, turns: int) -> list[NodeProto]:
        """Return the nodes of all turns, and what makes the outputs of the whole of theirs."""
        nodes: list[NodeProto] = []
        states, gathered = self._states, list[list[str]]()
        for turn in range(turns):
            read = self._read(states, turn, turns, nodes)
            names = {**self._shared, **dict(zip(names_of(self.body.input), read, strict=True))}
            if turn == turns - 1:
                names.update(self._last_names())
            for node in self.body.node:
                names.update((name, self._unique(name)) for name in node.output if name and name not in names)
                nodes.append(_copy_of(node))
                _rename_in(nodes[-1], names)
                nodes[-1].name = self._unique(node.name or node.op_type)
            found = [names.get(name, name) for name in self._results]
            states = found[: self._kept]
            gathered.append(found[self._kept :])
        for name, output in zip(states, self.holder.output, strict=False):
            if output and name != output:
                nodes.append(self._node("Identity", [name], output))
        for place, listed in enumerate(zip(*gathered, strict=True)):
            self._join(place, listed, nodes)
        return self._needed(nodes)

    def _needed(self, nodes: list[NodeProto]) -> list[NodeProto]:
        """Return the nodes that lead to an output; what only tells whether another turn follows is not needed."""
        wanted, needed = set(self.holder.output), list[NodeProto]()
        for node in reversed(nodes):
            if not wanted.isdisjoint(filter(None, node.output)):
                wanted.update(node.input, outer_names_of(node))
                needed.append(node)
        self.tensors = [tensor for tensor in self.tensors if tensor.name in wanted]
        return needed[::-1]

    def _last_names(self) -> Iterator[tuple[str, str]]:
        """Yield the results of the last turn that are the node's own outputs, under whose names they are computed."""
        computed = {name for node in self.body.node for name in node.output}
        named = set[str]()
        for name, output in zip(self._results[: self._kept], self.holder.output, strict=False):
            if output and name in computed and name not in named:
                named.add(name)
                yield name, output

    def _read(self, states: Sequence[str], turn: int, turns: int, nodes: list[NodeProto]) -> list[str]:
        """Return what one turn takes for the inputs of the body; ``nodes`` get those that compute some of it."""
        if self.holder.op_type == "Loop":
            # ONNX Runtime gives both in the shape that the body declares, and tf2onnx declares lists of one.
            steering = [
                value.reshape([1] * len(declared.type.tensor_type.shape.dim))
                for value, declared in zip([np.array(turn), np.array(True)], self.body.input, strict=False)
            ]
            given = [self._constant(value, name) for value, name in zip(steering, ("turn", "on"), strict=True)]
            return [*given, *states]
        if self.holder.op_type == "SequenceMap":
            return [self._held(name, turn, nodes) if name in self._lists else name for name in self.holder.input]
        axes = attributes.integers(self.holder, "scan_input_axes") or [0] * self._scanned
        backwards = attributes.integers(self.holder, "scan_input_directions") or [0] * self._scanned
        taken = list(states)
        for name, axis, is_backwards in zip(self.holder.input[len(states) :], axes, backwards, strict=False):
            index = self._constant(np.array(turns - 1 - turn if is_backwards else turn, np.int64), "place")
            taken.append(self._unique(name))
            nodes.append(self._node("Gather", [name, index], taken[-1], axis=axis))
        return taken

    def _held(self, name: str, turn: int, nodes: list[NodeProto]) -> str:
        """Return the tensor that a list holds at a place."""
        taken = self._unique(name)
        nodes.append(self._node("SequenceAt", [name, self._constant(np.array(turn, np.int64), "place")], taken))
        return taken

    def _join(self, place: int, listed: Sequence[str], nodes: list[NodeProto]) -> None:
        """Put what the turns give for one output side by side."""
        outputs = self.holder.output[self._kept :]
        if place >= len(outputs) or not outputs[place]:
            return
        if self.holder.op_type == "SequenceMap":
            nodes.append(self._node("SequenceConstruct", listed, outputs[place]))
            return
        axes = attributes.integers(self.holder, "scan_output_axes") or [0] * len(outputs)
        backwards = attributes.integers(self.holder, "scan_output_directions") or [0] * len(outputs)
        pieces = []
        for name in listed:
            pieces.append(self._unique(outputs[place]))
            if self.opset < _AXES_AS_INPUT_SINCE:
                nodes.append(self._node("Unsqueeze", [name], pieces[-1], axes=[axes[place]]))
            else:
                axis = self._constant(np.array([axes[place]], np.int64), "axis")
                nodes.append(self._node("Unsqueeze", [name, axis], pieces[-1]))
        ordered = pieces[::-1] if backwards[place] else pieces
        nodes.append(self._node("Concat", ordered, outputs[place], axis=axes[place]))

    def _node(self, op_type: str, inputs: Sequence[str], output: str, **given: Any) -> NodeProto:
        return helper.make_node(op_type, inputs, [output], name=self._unique(op_type), **given)

    def _constant(self, value: np.ndarray, name: str) -> str:
        self.tensors.append(numpy_helper.from_array(value, self._unique(name)))
        return self.tensors[-1].name


def _copy_of(node: NodeProto) -> NodeProto:
    copy = NodeProto()
    copy.CopyFrom(node)
    return copy


def _renamed(tensor: TensorProto, name: str) -> TensorProto:
    copy = TensorProto()
    copy.CopyFrom(tensor)
    copy.name = name
    return copy
