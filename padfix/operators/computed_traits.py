"""What operators on constants alone are like, in the words that targets state their facts in."""

from __future__ import annotations

from onnx import NodeProto

from padfix.graph.scopes import Scope
from padfix.operators.fused_layers import given_by
from padfix.operators.held_lengths import reads_list_of_lengths
from padfix.operators.numbers import bytes_of, elements_of
from padfix.operators.positive import is_positive_for_certain
from padfix.targets.traits import Traits


def computed_traits(scope: Scope, node: NodeProto) -> Traits:
    """Return what a node is like that computes a constant."""
    known = scope.type_of(node.output[0])
    return {
        "of-constants": True,
        "lengths-chosen": node.op_type == "Expand" and given_by(scope, node.input[1], "Where") is not None,
        "of-positive": all(is_positive_for_certain(scope, name, or_zero=True) for name in node.input),
        "reads-list-of-lengths": reads_list_of_lengths(scope, node),
        "rank": None if known is None else known.rank,
        "elements": elements_of(None if known is None else known.elem_type),
        "bytes": bytes_of(scope, node.input[0] if node.input else ""),
    }
