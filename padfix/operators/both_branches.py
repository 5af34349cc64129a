"""Whether both branches of an If can be run, whatever decides, so that their results can be chosen from."""

from __future__ import annotations

from collections.abc import Mapping

from onnx import FunctionProto, NodeProto

from padfix.graph.scopes import Scope, bodies_of, normal_domain
from padfix.operators.branches import branch_traits
from padfix.operators.constant_chains import STEERED, has_chain, is_constant
from padfix.operators.decided_bodies import MOST_NODES
from padfix.operators.numbers import numbers_of
from padfix.operators.written import wrong_arity

_CHOOSING_SINCE = 9
"""The first opset with a Where."""

_BY_VALUES: Mapping[str, tuple[int, ...]] = {
    **STEERED,
    **dict.fromkeys(("Compress", "Gather", "GatherElements", "GatherND", "ReverseSequence"), (1,)),
    **dict.fromkeys(("OneHot", "ScatterElements", "ScatterND", "CumSum", "Trilu"), (1,)),
}
"""What may fail, or give another number of elements, for some values of inputs, and the positions of those."""

_NEVER = ("Bernoulli", "Dropout", "Loop", "MaxUnpool", "Multinomial", "Scan", "Scatter", "StringNormalizer")
"""What draws numbers, may run for ever, or fails for data that are not told here."""


def both_can_run(scope: Scope, node: NodeProto) -> bool:
    """Whether data decide an If whose branches give values of one shape, and neither can fail for any data.

    Divisions of whole numbers by 0 and places that there are not end a run: an If may keep them from it.
    """
    if node.op_type != "If" or normal_domain(node.domain) or scope.opset < _CHOOSING_SINCE or not any(node.output):
        return False
    if isinstance(scope.root.container, FunctionProto) or wrong_arity(node, scope.opset):
        return False
    told, held = branch_traits(scope, node), [graph for _, graph in bodies_of(node)]
    if told["decided-by"] != "data" or told["branches"] != "alike":
        return False
    bodies = [body for body in scope.bodies if any(graph is body.container for graph in held)]
    if len(bodies) != len(held) or sum(len(body.nodes) for body in bodies) > MOST_NODES:
        return False
    condition, ranks = scope.type_of(node.input[0]), [_rank_of(body, name) for body in bodies for name in body.outputs]
    if condition is None or condition.rank is None or None in ranks:
        return False
    return min(rank or 0 for rank in ranks) >= condition.rank and all(
        _always_runs(body, each) for body in bodies for each in body.nodes
    )


def _rank_of(scope: Scope, name: str) -> int | None:
    """Return how many axes a value has whose lengths are known; None where they are not."""
    known = scope.type_of(name)
    if known is None or known.shape is None or not known.elem_type:
        return None
    return len(known.shape) if all(isinstance(each, int) for each in known.shape) else None


def _always_runs(scope: Scope, node: NodeProto) -> bool:
    """Whether a node gives the same number of elements for all data, and fails for none."""
    if node.op_type == "If":
        return both_can_run(scope, node)
    if normal_domain(node.domain) or node.op_type in _NEVER or node.op_type.startswith("Random"):
        return False
    if any(_rank_of(scope, name) is None for name in node.output if name):
        return False
    places = _BY_VALUES.get(node.op_type, ())
    if node.op_type in ("Div", "Mod") and numbers_of(scope, node.input[0]) == "integer":
        divisor = scope.constant(node.input[1])
        return divisor is not None and bool(divisor.all())
    return all(_is_told(scope, node.input[place]) for place in places if place < len(node.input) and node.input[place])


def _is_told(scope: Scope, name: str) -> bool:
    """Whether no data go into a value."""
    producer = scope.producer(name)
    return is_constant(scope, name) or (producer is not None and has_chain(scope, producer))
