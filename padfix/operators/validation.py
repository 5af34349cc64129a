"""Nodes that no runtime can give a meaning to: a wrong number of inputs or axes, strides of 0, an unknown auto_pad."""

from __future__ import annotations

from collections.abc import Iterable

from onnx import NodeProto

from padfix.errors import SourceError
from padfix.graph.scopes import Scope, label, normal_domain
from padfix.operators.reading import read
from padfix.operators.refusal import Meaningless
from padfix.operators.written import wrong_arity


def why_meaningless(scope: Scope, node: NodeProto) -> str:
    """Return why a node of ``scope`` has no meaning; empty where it may have one."""
    reading = read(scope, node)
    if reading is None:
        return wrong_arity(node, scope.opsets.get(normal_domain(node.domain)))
    return reading.reason if isinstance(reading, Meaningless) else ""


def require_meaning(scopes: Iterable[Scope]) -> None:
    """Make sure that every node of a model can have a meaning.

    Raises:
        SourceError: Naming the first node that can't, and why.
    """
    for scope in scopes:
        for index, node in enumerate(scope.nodes):
            reason = why_meaningless(scope, node)
            if reason:
                raise SourceError(
                    f"{node.op_type} {label(node, index)!r} in {scope.path} has no meaning: {reason}",
                    "No runtime can run it; export the model again.",
                )
