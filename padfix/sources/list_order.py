"""Loops that write a TensorArray in another order than tf2onnx takes for granted, or not to its end.

tf2onnx stacks what each iteration writes, one behind the other, whatever the index. That is what TensorFlow does where
the index is the number of the iteration. A loop that begins elsewhere, counts down, skips or ends early would come out
with rows at other places, and where data has a single row nothing shows.
"""

from __future__ import annotations

from typing import Any

from padfix.errors import UnsupportedError
from padfix.sources.dense_lists import make_dense
from padfix.sources.list_flows import LOOPS, Flows, Key, Scope, loops
from padfix.sources.side_effects import every_node

_ADD = frozenset({"Add", "AddV2"})
_UNKNOWN_START = "from an index that is computed on"


def put_in_order(tensorflow: Any, graph_def: Any) -> None:
    """Make each list dense that a loop writes, or may write, in another order.

    Raises:
        UnsupportedError: One that is certain to be can't be made so; naming the loop and how it writes.
    """
    if not any(node.op in LOOPS for node in every_node(graph_def)):
        return
    flows = Flows(tensorflow, graph_def)
    found: dict[Key, tuple[str, str]] = {}
    for scope, loop in loops(flows):
        body = flows.scopes.get(loop.attr["body"].func.name)
        if body is not None:
            for write in body.nodes:
                if write.op == "TensorListSetItem" and (how := _disorder(flows, scope, loop, body, write)):
                    found.setdefault(flows.root(body.key(write.input[0])), (loop.name, how))
    for root, (loop_name, how) in found.items():
        flow = flows.flow(root)
        if flow.can_be_dense:
            make_dense(tensorflow, flow)
        elif how != _UNKNOWN_START:
            raise UnsupportedError(
                f"The loop {loop_name} writes a TensorArray {how} (TensorListSetItem), and tf2onnx knows only "
                "loops that write from the first element on, one after the other.",
                "Write from index 0 on in the model, and pad, reverse or spread the stacked result.",
            )


def _disorder(flows: Flows, outside: Scope, loop: Any, inside: Scope, write: Any) -> str:
    """Return how a loop departs from the order in one write, or nothing."""
    arguments = [argument.name for argument in inside.function.signature.input_arg]
    index = inside.seen_through(write.input[1])
    if index not in arguments:
        # What is only written at a fixed index is the last output of a layer, and tf2onnx makes an LSTM of it.
        is_carried = inside.integer(index) is not None and _is_read(flows, inside, write)
        return "at another index than its counter" if is_carried or _moves(inside, index, arguments) else ""
    place = arguments.index(index)
    start = outside.integer(loop.input[place])
    if start is None:
        return _UNKNOWN_START
    if start:
        return f"from index {start} on"
    after = inside.by_name.get(
        inside.seen_through(inside.function.ret[inside.function.signature.output_arg[place].name])
    )
    if after is not None and not _counts(inside, after, index):
        return "by other steps than one"
    if inside.seen_through(write.input[0]) not in arguments:
        return ""
    reserved = outside.by_name.get(
        outside.seen_through(loop.input[arguments.index(inside.seen_through(write.input[0]))])
    )
    length = outside.integer(reserved.input[1]) if reserved is not None and reserved.op == "TensorListReserve" else None
    last = _limit(flows, outside, loop, place)
    return "not to its end" if length is not None and last is not None and last < length else ""


def _limit(flows: Flows, outside: Scope, loop: Any, place: int) -> int | None:
    """Return the least number that the condition holds the loop's variable ``place`` below, where it is known."""
    scope = flows.scopes.get(loop.attr["cond"].func.name)
    if scope is None:
        return None
    arguments = [argument.name for argument in scope.function.signature.input_arg]
    limits = []
    for node in scope.nodes:
        if node.op != "Less" or scope.seen_through(node.input[0]) != arguments[place]:
            continue
        name = scope.seen_through(node.input[1])
        limits.append(outside.integer(loop.input[arguments.index(name)]) if name in arguments else scope.integer(name))
    known = [limit for limit in limits if limit is not None]
    return min(known, default=None)


def _is_read(flows: Flows, scope: Scope, write: Any) -> bool:
    """Whether the loop reads the list that it writes."""
    root = flows.root(scope.key(write.input[0]))
    return any(node.op == "TensorListGetItem" and flows.root(scope.key(node.input[0])) == root for node in scope.nodes)


def _moves(scope: Scope, index: str, arguments: list[str]) -> bool:
    node = scope.by_name.get(index)
    if node is None or node.op not in _ADD | {"Sub"}:
        return False
    return any(scope.seen_through(each) in arguments for each in node.input) and any(map(scope.integer, node.input))


def _counts(scope: Scope, node: Any, index: str) -> bool:
    if node.op not in _ADD:
        return False
    operands = list(node.input[:2])
    return any(
        scope.seen_through(one) == index and scope.integer(other) in (1, None)
        for one, other in (operands, reversed(operands))
    )
