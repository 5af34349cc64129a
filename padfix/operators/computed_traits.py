"""What operators on constants alone are like, in the words that targets state their facts in."""

from __future__ import annotations

from onnx import NodeProto

from padfix.graph import attributes
from padfix.graph.scopes import Scope, normal_domain
from padfix.operators.constant_chains import is_of_data, readers_behind
from padfix.operators.fused_layers import MATRIX, made_by
from padfix.operators.held_lengths import reads_list_of_lengths
from padfix.operators.numbers import bytes_of, elements_of
from padfix.operators.positive import is_positive_for_certain
from padfix.operators.shape_questions import rank_of
from padfix.targets.traits import Traits

_MOST_READ = 64
"""What is computed of a constant that is looked at."""


def computed_traits(scope: Scope, node: NodeProto) -> Traits:
    """Return what a node is like that computes a constant."""
    known = scope.type_of(node.output[0])
    return {
        "of-constants": True,
        "before-einsum": _is_before_einsum(scope, node),
        "lengths-chosen": node.op_type == "Expand" and made_by(scope, node.input[1], "Where") is not None,
        "of-positive": all(is_positive_for_certain(scope, name, or_zero=True) for name in node.input),
        "reads-list-of-lengths": reads_list_of_lengths(scope, node),
        "rank": None if known is None else known.rank,
        "elements": elements_of(None if known is None else known.elem_type),
        "picks-of-stacks": node.op_type == "Gather" and _picks_of_stacks(scope, node),
        "order-unwritten": node.op_type == "Transpose" and attributes.find(node, "perm") is None,
        "bytes": bytes_of(scope, node.input[0] if node.input else ""),
    }


def _picks_of_stacks(scope: Scope, node: NodeProto) -> bool:
    """Whether a Gather picks from three axes or more by a number or a list."""
    return rank_of(scope, node.input[0]) > MATRIX and rank_of(scope, node.input[1]) < MATRIX


def _is_before_einsum(scope: Scope, node: NodeProto) -> bool:
    """Whether an Einsum of data reads what a node gives, or what is computed of that and other constants."""
    return any(
        reader.op_type == "Einsum" and not normal_domain(reader.domain) and is_of_data(scope, reader)
        for reader, _ in readers_behind(scope, node, _MOST_READ)
    )
