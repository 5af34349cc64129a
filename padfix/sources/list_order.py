"""Loops that write a TensorArray in another order than tf2onnx takes for granted.

tf2onnx stacks what each iteration writes, one behind the other, whatever the index. That is what TensorFlow does where
the index is the number of the iteration. A loop that begins elsewhere, counts down or skips would come out with rows at
other places, and where data has a single row nothing shows.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from padfix.errors import UnsupportedError

_LOOPS = frozenset({"While", "StatelessWhile"})
_ADD = frozenset({"Add", "AddV2"})


def refuse_out_of_order(tensorflow: Any, graph_def: Any) -> None:
    """Refuse a GraphDef with a loop that is known to write a TensorArray in another order.

    Raises:
        UnsupportedError: Naming the loop and how it writes.
    """
    functions = {function.signature.name: function for function in graph_def.library.function}
    for body in (graph_def.node, *(function.node_def for function in functions.values())):
        outside = _Scope(tensorflow, {node.name: node for node in body})
        for loop in body:
            if loop.op not in _LOOPS or loop.attr["body"].func.name not in functions:
                continue
            how = _disorder(tensorflow, functions[loop.attr["body"].func.name], loop, outside)
            if how:
                raise UnsupportedError(
                    f"The loop {loop.name} writes a TensorArray {how} (TensorListSetItem), and tf2onnx knows only "
                    "loops that write from the first element on, one after the other.",
                    "Write from index 0 on in the model, and pad, reverse or spread the stacked result.",
                )


class _Scope:
    """The nodes of one graph or function, seen through what hands on a tensor."""

    def __init__(self, tensorflow: Any, nodes: Mapping[str, Any]) -> None:
        self._tensorflow, self.nodes = tensorflow, nodes

    def name(self, reference: str) -> str:
        name = reference.split(":")[0]
        while name in self.nodes and self.nodes[name].op == "Identity":
            name = self.nodes[name].input[0].split(":")[0]
        return name

    def value(self, reference: str) -> int | None:
        """Return the integer that a tensor holds, where it is a constant."""
        node = self.nodes.get(self.name(reference))
        if node is None or node.op != "Const":
            return None
        array = self._tensorflow.make_ndarray(node.attr["value"].tensor)
        return int(array.item()) if array.size == 1 and array.dtype.kind in "iu" else None


def _disorder(tensorflow: Any, body: Any, loop: Any, outside: _Scope) -> str:
    """Return how a loop departs from the order, or nothing."""
    inside = _Scope(tensorflow, {node.name: node for node in body.node_def})
    arguments = [argument.name for argument in body.signature.input_arg]
    for write in body.node_def:
        if write.op != "TensorListSetItem":
            continue
        index = inside.name(write.input[1])
        if index not in arguments:
            if _moves(inside, index, arguments):
                return "at another index than its counter"
            continue
        place = arguments.index(index)
        start = outside.value(loop.input[place])
        if start:
            return f"from index {start} on"
        after = inside.nodes.get(inside.name(body.ret[body.signature.output_arg[place].name]))
        if after is not None and not _counts(inside, after, index):
            return "by other steps than one"
    return ""


def _moves(scope: _Scope, index: str, arguments: list[str]) -> bool:
    node = scope.nodes.get(index)
    if node is None or node.op not in _ADD | {"Sub"}:
        return False
    return any(scope.name(each) in arguments for each in node.input) and any(scope.value(each) for each in node.input)


def _counts(scope: _Scope, node: Any, index: str) -> bool:
    if node.op not in _ADD:
        return False
    operands = list(node.input[:2])
    return any(
        scope.name(one) == index and scope.value(other) in (1, None) for one, other in (operands, reversed(operands))
    )
