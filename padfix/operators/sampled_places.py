"""Where a GridSample takes elements."""

from __future__ import annotations

import numpy as np
from onnx import NodeProto

from padfix.graph import attributes
from padfix.graph.scopes import Scope
from padfix.operators.axis_order import places_are_moved
from padfix.operators.batches import gives_each_image_its_own
from padfix.operators.picking_traits import ranked
from padfix.targets.traits import Traits

_MOST_BEHIND = 16
"""Operators that count places from what was folded or rounded to elements."""

_FAR = 3
"""Where the first reflection of an image ends, whose own ends are -1 and 1."""

_NEAR_HALF = 1e-3
"""Elements; runtimes work out a place in an order of their own."""


def may_be_halfway(scope: Scope, node: NodeProto) -> bool:
    """Whether a place may be halfway between two elements: of constants, and of what is not counted from elements."""
    name, told = node.input[1], scope.constant(node.input[1])
    if told is not None:
        known = scope.type_of(node.input[0])
        lengths = None if known is None else known.lengths
        return lengths is None or _is_halfway(told, lengths[:1:-1], attributes.integer(node, "align_corners", 0) != 0)
    return not _is_made_by(scope, name, "Round", ("Add", "Identity", "Mul"))


def may_be_far(scope: Scope, node: NodeProto) -> bool:
    """Whether a place may lie behind the first reflection of an image: of constants, and of what is not folded."""
    name, told = node.input[1], scope.constant(node.input[1])
    if told is not None:
        return bool((np.abs(told) > _FAR).any())
    return not _is_made_by(scope, name, "Floor", ("Abs", "Add", "Identity", "Mul", "Round", "Sub"))


def _is_made_by(scope: Scope, name: str, op_type: str, through: tuple[str, ...]) -> bool:
    """Whether an operator gives what arithmetic over its first inputs makes the value of."""
    for _ in range(_MOST_BEHIND):
        producer = scope.own_producer(name)
        if producer is None or producer.op_type not in (op_type, *through):
            return False
        if producer.op_type == op_type:
            return True
        name = producer.input[0]
    return False


def _is_halfway(places: np.ndarray, lengths: tuple[int, ...], is_aligned: bool) -> bool:
    each = np.array(lengths, np.float64)
    counted = (places + 1) * (each - 1) / 2 if is_aligned else ((places + 1) * each - 1) / 2
    return bool((np.abs(np.abs(counted - np.floor(counted)) - 0.5) < _NEAR_HALF).any())


def sample_traits(scope: Scope, node: NodeProto) -> Traits:
    """Return of a GridSample how it takes elements, and whether its places may be where runtimes differ."""
    # Opset 20 gave the modes new names.
    mode = (attributes.text(node, "mode", "linear") or "linear").removeprefix("bi")
    outside = attributes.text(node, "padding_mode", "zeros") or "zeros"
    return {
        **ranked(scope, node),
        "mode": mode,
        "outside": outside,
        "aligned": attributes.integer(node, "align_corners", 0) != 0,
        "numbers-images": gives_each_image_its_own(scope, node),
        "maybe-halfway": mode == "nearest" and may_be_halfway(scope, node),
        "places-moved": places_are_moved(scope, node),
        "maybe-far": outside == "reflection" and may_be_far(scope, node),
    }
