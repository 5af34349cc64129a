"""One spelling of a converted model, whatever order tf2onnx came upon its nodes in.

tf2onnx numbers what it adds with a counter that runs as long as the process, and goes through sets, whose order is
another one in each process. Two conversions of one file should be the same bytes.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from itertools import count
from typing import Any

from onnx import GraphProto, ModelProto, NodeProto, ValueInfoProto

from padfix.graph.scopes import bodies_of

_NUMBER = re.compile(r"__(\d+)")
_OF_FUNCTION = re.compile(r"__inference_\w+")
"""TensorFlow names functions, and tf2onnx what it takes out of them, with a counter of the process as well."""


def settle(model: ModelProto, kept: Collection[str]) -> None:
    """Put nodes and weights in the order in which the outputs need them, and number names in that order, in place.

    Args:
        model: As tf2onnx wrote it.
        kept: Names of the source's own nodes and tensors; these are not changed.
    """
    _order(model.graph)
    _rename(model.graph, _Names(kept))


class _Names:
    """New names by old ones: each number of the counter becomes how many came before it."""

    def __init__(self, kept: Collection[str]) -> None:
        self.kept = set(kept)
        taken = [int(number) for name in self.kept for number in _NUMBER.findall(name)]
        self._numbers: dict[str, str] = {}  # those of functions begin with _
        self._next = count(max(taken, default=0) + 1)

    def __call__(self, name: str) -> str:
        if name in self.kept or name.rpartition(":")[0] in self.kept:
            return name
        numbered = _NUMBER.sub(lambda found: f"__{self._number(found[1])}", name)
        return _OF_FUNCTION.sub(self._function, numbered)

    def _function(self, found: re.Match[str]) -> str:
        return re.sub(r"(?<=_)\d+(?=_|$)", lambda number: self._number(f"_{number[0]}"), found[0])

    def _number(self, old: str) -> str:
        if old not in self._numbers:
            self._numbers[old] = str(next(self._next))
        return self._numbers[old]


def _reads(node: NodeProto) -> Iterator[str]:
    """Yield what a node reads, and all that is read in its bodies."""
    yield from node.input
    for _, body in bodies_of(node):
        for inner in body.node:
            yield from _reads(inner)
        yield from (value.name for value in body.output)


def _order(graph: GraphProto) -> None:
    for node in graph.node:
        for _, body in bodies_of(node):
            _order(body)
    producers = {name: index for index, node in enumerate(graph.node) for name in node.output if name}
    placed: dict[int, None] = {}
    begun: set[int] = set()
    pending = [producers[value.name] for value in reversed(graph.output) if value.name in producers]
    pending = [*reversed(range(len(graph.node))), *pending]  # what no output needs comes last, as it stood
    while pending:
        index = pending[-1]
        if index in begun:
            placed.setdefault(pending.pop())
            continue
        begun.add(index)
        above = [producers[name] for name in _reads(graph.node[index]) if name in producers]
        pending.extend(other for other in reversed(above) if other not in begun)
    arrange(graph.node, list(placed))
    places: dict[str, int] = {}
    for node in graph.node:
        for name in (*_reads(node), *node.output):
            places.setdefault(name, len(places))
    for values in (graph.initializer, graph.value_info):
        arrange(values, sorted(range(len(values)), key=lambda index: places.get(values[index].name, len(places))))


def arrange(items: Any, order: list[int]) -> None:
    """Put the messages of a repeated field in another order, without a copy of what they hold."""
    place = {old: new for new, old in enumerate(order)}
    if all(old == new for old, new in place.items()):
        return
    held = list(items)  # a message has one identity for as long as it is held
    keys = {id(item): place[index] for index, item in enumerate(held)}
    items.sort(key=lambda item: keys[id(item)])


def _rename(graph: GraphProto, names: _Names) -> None:
    for value in graph.input:
        _rename_value(value, names)
    for node in graph.node:
        for field in (node.input, node.output):
            for index, name in enumerate(field):
                field[index] = names(name)
        if node.name:
            node.name = _settled_name(node, names)
        for _, body in bodies_of(node):
            body.name = names(body.name)
            _rename(body, names)
    for tensor in graph.initializer:
        tensor.name = names(tensor.name)
    for value in (*graph.output, *graph.value_info):
        _rename_value(value, names)


def _settled_name(node: NodeProto, names: _Names) -> str:
    """Return the name of a node whose outputs are settled.

    Of two nodes that say the same, tf2onnx keeps the one that its sets bring first; what they give has one name.
    """
    first = next((name for name in node.output if name), "").removesuffix(":0")
    return names(node.name) if node.name in names.kept or not first or first in names.kept else first


def _rename_value(value: ValueInfoProto, names: _Names) -> None:
    value.name = names(value.name)
    for dimension in value.type.tensor_type.shape.dim:
        if dimension.HasField("dim_param"):
            dimension.dim_param = names(dimension.dim_param)
