"""Writes to variables that nothing reads, such as a counter of calls: what comes out is the same without them.

A variable is handed from function to function, through loops and conditions, so a handle is followed wherever it goes.
In a frozen graph it is the constant that the variable holds, and a read is an Identity of it.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Container, Iterable, Iterator, Sequence
from typing import Any

from padfix.graph.dependence import reached
from padfix.sources.list_flows import CONDITIONS, LOOPS
from padfix.sources.side_effects import called_by

_WRITES = re.compile(r"Assign(Add|Sub)?VariableOp|ResourceScatter.*|ResourceStridedSliceAssign")
"""What writes to the variable that is its first input, and gives nothing."""

_Tensor = tuple[str, str, int]
"""A function's name (nothing for the graph itself), a node or argument, and the number of its output."""


def drop(graph_def: Any, outputs: Sequence[str]) -> None:
    """Take out the writes to variables that ``outputs`` don't follow from, in place."""
    library = {function.signature.name: function for function in graph_def.library.function}
    scopes = reached([""], lambda name: _called((library[name].node_def if name else graph_def.node), library))
    handles = _Handles(library)
    for name in scopes:
        results = library[name].ret.values() if name else outputs
        handles.follow(name, library[name].node_def if name else graph_def.node, results)
    handles.reads.update(_tensor("", each) for each in outputs)
    for name in scopes:
        nodes = library[name].node_def if name else graph_def.node
        unread = {node.name for node in nodes if _is_write(node) and not handles.is_read(_tensor(name, node.input[0]))}
        if unread:
            _remove(nodes, unread)
        if unread and name:
            control = library[name].control_ret
            for key in [key for key, node in control.items() if node in unread]:
                del control[key]


class _Handles:
    """What is handed on as the same tensor, and what is read otherwise."""

    def __init__(self, library: dict[str, Any]) -> None:
        self.reads: set[_Tensor] = set()
        self._library = library
        self._same: dict[_Tensor, list[_Tensor]] = defaultdict(list)

    def is_read(self, handle: _Tensor) -> bool:
        """Whether something reads what ``handle`` refers to."""
        same: dict[_Tensor, None] = reached([handle], self._same.__getitem__)
        return not self.reads.isdisjoint(same)

    def follow(self, scope: str, nodes: Sequence[Any], results: Iterable[str]) -> None:
        """Note what each node of a function does with its inputs, on the way to its results and elsewhere."""
        needed = _computing(nodes, results)
        for node in nodes:
            given = [_tensor(scope, each) for each in node.input if not each.startswith("^")]
            called = list(_called([node], self._library))
            if called:
                self._hand_over(node, [(scope, node.name, port) for port in range(len(given))], given, called)
            elif node.op == "Identity":
                self._link(given[0], (scope, node.name, 0))
            elif node.name in needed:
                self.reads.update(given)

    def _hand_over(self, node: Any, results: list[_Tensor], given: list[_Tensor], called: Sequence[str]) -> None:
        """Link what a call is given with the arguments, and what it gives with the results."""
        if node.op in LOOPS:
            for before, after in zip(given, results, strict=True):
                self._link(before, after)
        elif node.op in CONDITIONS:
            self.reads.add(given[0])
            given = given[1:]
        for name in called:
            function = self._library[name]
            for tensor, argument in zip(given, function.signature.input_arg, strict=False):
                self._link(tensor, (name, argument.name, 0))
            is_condition = node.op in LOOPS and name == node.attr["cond"].func.name
            for port, result in enumerate(function.signature.output_arg):
                inner = _tensor(name, function.ret[result.name])
                if is_condition:
                    self.reads.add(inner)
                else:
                    self._link(inner, (results[0][0] if results else "", node.name, port))

    def _link(self, one: _Tensor, other: _Tensor) -> None:
        self._same[one].append(other)
        self._same[other].append(one)


def _computing(nodes: Sequence[Any], results: Iterable[str]) -> Container[str]:
    """Return the nodes that ``results`` follow from; control edges only say when something runs."""
    inputs = {node.name: [each.split(":")[0] for each in node.input if not each.startswith("^")] for node in nodes}
    return reached((each.split(":")[0] for each in results), lambda name: inputs.get(name, ()))


def _is_write(node: Any) -> bool:
    return bool(_WRITES.fullmatch(node.op))


def _called(nodes: Iterable[Any], library: dict[str, Any]) -> Iterator[str]:
    return (name for node in nodes for name in called_by(node) if name in library)


def _tensor(scope: str, reference: str) -> _Tensor:
    """Return what a NodeDef's input refers to: ``node``, ``node:1``, or ``node:output:1`` in a function."""
    name, *rest = reference.split(":")
    return scope, name, int(rest[-1]) if rest and rest[-1].isdigit() else 0


def _remove(nodes: Any, unread: set[str]) -> None:
    for index in reversed(range(len(nodes))):
        node = nodes[index]
        if node.name in unread:
            del nodes[index]
        elif not unread.isdisjoint(each.removeprefix("^") for each in node.input):
            node.input[:] = [each for each in node.input if each.removeprefix("^") not in unread]
