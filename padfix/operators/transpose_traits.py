"""What a Transpose is like, in the words that targets state their facts in."""

from __future__ import annotations

from onnx import NodeProto

from padfix.graph import attributes
from padfix.graph.scopes import Scope
from padfix.operators.batches import is_of_another_batch
from padfix.operators.data_order import turns_alike_back, turns_back
from padfix.operators.long_results import turns_longs
from padfix.operators.picked_parts import is_taken_apart
from padfix.operators.picking_traits import ranked
from padfix.operators.reshape_traits import is_batch_told
from padfix.operators.shuffles import shuffles_pixels, turns_split_rows
from padfix.targets.traits import Traits


def transpose_traits(scope: Scope, node: NodeProto) -> Traits:
    """Return how a Transpose orders its axes, and what it is part of."""
    perm = attributes.integers(node, "perm")
    moves = not perm or perm[0] != 0
    return {
        **ranked(scope, node),
        "moves-images": moves and is_of_another_batch(scope, node.input[0]) is False,
        "turned-back": turns_back(scope, node),
        "turned-back-alike": turns_alike_back(scope, node),
        "batch-told": is_batch_told(scope, node),
        "taken-apart": is_taken_apart(scope, node),
        "shuffles": shuffles_pixels(scope, node),
        "turns-split-rows": turns_split_rows(scope, node),
        "moves-batch": moves,
        "turns-longs": turns_longs(scope, node),
        "order-unwritten": perm is None,
    }
