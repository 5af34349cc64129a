"""What a NonMaxSuppression is like, in the words that targets state their facts in."""

from __future__ import annotations

import numpy as np
from onnx import NodeProto

from padfix.graph import attributes
from padfix.graph.dependence import reached
from padfix.graph.scopes import Scope
from padfix.operators.elementwise import MOVING
from padfix.targets.traits import Traits

OVERLAP, SCORE = 3, 4
"""Which inputs limit how much boxes may overlap, and how little one may count."""


_SHARES = ("Sigmoid", "Softmax")
_JOINING = ("Concat", "Mul")
"""Operators that give numbers above zero, and those that give such of nothing but such."""


def suppression_traits(scope: Scope, node: NodeProto) -> Traits:
    """Return the least score of a NonMaxSuppression, what its boxes are, and how its limits are told."""
    limits = [scope.type_of(name) for name in node.input[2:] if name]
    name = node.input[SCORE] if len(node.input) > SCORE else ""
    score = scope.constant(name) if name else None
    least = None if name and score is None else "none"
    if score is not None and score.size == 1:
        least = "below-zero" if score.reshape(-1)[0] < 0 else "others"
    return {
        "least-score": least,
        "boxes-by-centre": attributes.integer(node, "center_point_box", 0) == 1,
        "limits-as-numbers": any(each is not None and each.shape == () for each in limits),
        "of-positive": _is_share(scope, node.input[1]),
        "takes-no-overlap": _takes_no_overlap(scope, node),
        "open-images-alone": _are_images_open_alone(scope, node),
    }


def _are_images_open_alone(scope: Scope, node: NodeProto) -> bool:
    """Whether how many boxes an image has is told, and how many images there are is not."""
    boxes = scope.type_of(node.input[0])
    if boxes is None or not boxes.shape:
        return False
    images, *others = (isinstance(length, int) for length in boxes.shape)
    return not images and all(others)


def _takes_no_overlap(scope: Scope, node: NodeProto) -> bool | None:
    """Whether a NonMaxSuppression drops every box that overlaps a better one; None where the limit is computed."""
    name = node.input[OVERLAP] if len(node.input) > OVERLAP else ""
    limit = scope.constant(name) if name else np.zeros(1, np.float32)
    return None if limit is None else not limit.any()


def _is_share(scope: Scope, name: str) -> bool:
    """Whether numbers are what a Sigmoid or Softmax gives, moved about, joined, sorted or multiplied."""

    def made_of(given: str) -> list[str]:
        producer = scope.producer(given)
        if producer is None or producer.op_type in _SHARES:
            return []
        if producer.op_type in _JOINING:
            return [*producer.input]
        moves = producer.op_type in MOVING or (producer.op_type == "TopK" and given == producer.output[0])
        return [producer.input[0]] if moves else []

    found = reached([name], made_of)
    ends = [scope.producer(given) for given in found if not made_of(given)]
    return all(each is not None and each.op_type in _SHARES for each in ends)
