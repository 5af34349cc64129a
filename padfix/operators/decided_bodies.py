"""Bodies that are sure to run, and how often: branches that constants or lengths choose, and turns that are counted."""

from __future__ import annotations

from dataclasses import dataclass

from onnx import FunctionProto, NodeProto

from padfix.graph import attributes
from padfix.graph.scopes import Scope, all_nodes, bodies_of, normal_domain
from padfix.operators.constant_chains import worked_out
from padfix.operators.counted_turns import turns_of
from padfix.operators.sequences import listed
from padfix.operators.written import wrong_arity

MOST_NODES = 2000
"""Nodes that all turns of a body may have together, in the place of the one that holds it."""

_SCANS_WITHOUT_BATCH_SINCE = 9


@dataclass(frozen=True)
class Decided:
    """The body that is run, by its attribute, and how often."""

    attribute: str
    turns: int


def decided_body(scope: Scope, node: NodeProto) -> Decided | None:
    """Return which body of an If, Loop, Scan or SequenceMap is run, and how often; None where data decide, or never.

    None in a function as well, where calls decide.
    """
    if normal_domain(node.domain) or isinstance(scope.root.container, FunctionProto) or not any(node.output):
        return None
    if wrong_arity(node, scope.opset):
        return None
    match node.op_type:
        case "If":
            condition = worked_out(scope, node.input[0])
            if condition is None or condition.size != 1:
                return None
            return Decided("then_branch" if condition.reshape(-1)[0] else "else_branch", 1)
        case "Loop":
            decided = _counted(scope, node)
        case "Scan":
            decided = _scanned(scope, node)
        case "SequenceMap":
            decided = _mapped(scope, node)
        case _:
            return None
    bodies = dict(bodies_of(node))
    if decided is None or "body" not in bodies:
        return None
    return decided if decided.turns * len(list(all_nodes(bodies["body"].node))) <= MOST_NODES else None


def _counted(scope: Scope, node: NodeProto) -> Decided | None:
    """Return the turns of a Loop that are told beforehand."""
    body = next((each for each in scope.bodies if any(graph is each.container for _, graph in bodies_of(node))), None)
    if body is None or len(body.container.input) < 2:
        return None
    most = MOST_NODES // max(1, len(list(all_nodes(body.container.node))))
    turns = turns_of(scope, node, body, most)
    return Decided("body", turns) if turns else None


def _scanned(scope: Scope, node: NodeProto) -> Decided | None:
    """Return the turns of a Scan over an axis whose length is known."""
    scanned = attributes.integer(node, "num_scan_inputs", 0) or 0
    if scope.opset < _SCANS_WITHOUT_BATCH_SINCE or not 0 < scanned <= len(node.input):
        return None
    axis = (attributes.integers(node, "scan_input_axes") or [0])[0]
    known = scope.type_of(node.input[len(node.input) - scanned])
    if known is None or known.shape is None or not -len(known.shape) <= axis < len(known.shape):
        return None
    length = known.shape[axis]
    return Decided("body", length) if isinstance(length, int) and length > 0 else None


def _mapped(scope: Scope, node: NodeProto) -> Decided | None:
    """Return the turns of a SequenceMap over lists of which it is known what they hold."""
    lists = [name for name in node.input if name == node.input[0] or scope.type_of(name) is None]
    lengths = {None if (held := listed(scope, name)) is None else len(held.pieces) for name in lists}
    length = lengths.pop()
    return Decided("body", length) if length and not lengths else None
