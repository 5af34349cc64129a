"""Boxes and scores at what a NonMaxSuppression decides by: between the limits that two models hold them against."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import numpy as np

from padfix.graph import attributes
from padfix.operators.suppression import OVERLAP, SCORE
from padfix.proof.constants import Constants
from padfix.proof.executors import Array
from padfix.proof.graph_view import NodeView

if TYPE_CHECKING:
    from padfix.proof.stretches import Stretch


def suppressing(
    stretch: Stretch, constants: tuple[Constants, Constants], values: Mapping[str, Array]
) -> Iterator[dict[str, Array]]:
    """Yield boxes and scores for a stretch that ends with a NonMaxSuppression, where it is fed both.

    First scores between both models' limits, all alike; then pairs of boxes that overlap by as much as lies between
    them, each pair far from all others, with scores above the limits. Where the limits are one, nothing lies between,
    and data at the limit itself would say how an overlap is rounded: then all boxes are kept that may be.
    """
    ends = [*stretch.nodes[-1:], *stretch.candidate_nodes[-1:]]
    if [each.op_type for each in ends] != ["NonMaxSuppression"] * 2 or not {*ends[0].inputs[:2]} <= values.keys():
        return
    node = ends[0]
    boxes, scores = (values[name] for name in node.inputs[:2])
    both = tuple(zip(ends, constants, strict=True))
    least, most = (pick(_limit(*each, SCORE) for each in both) for pick in (min, max))
    if least < most:
        yield {node.inputs[1]: np.full_like(scores, (least + most) / 2)}
    overlaps = {_limit(*each, OVERLAP) for each in both}
    overlap = sum(overlaps) / 2
    if 0 < overlap < 1 and boxes.size:
        above = np.linspace(max(1.0, most + 1), (most + max(1.0, most + 1)) / 2, scores.shape[-1])
        is_centred = node.proto is not None and attributes.integer(node.proto, "center_point_box", 0) == 1
        pairs = np.broadcast_to(_pairs(boxes.shape[1], overlap, is_centred), boxes.shape)
        yield {
            node.inputs[0]: pairs.astype(boxes.dtype),
            node.inputs[1]: np.broadcast_to(above, scores.shape).astype(scores.dtype),
        }


def _pairs(count: int, overlap: float, is_centred: bool) -> Array:
    """Return so many boxes, two and two over each other: one of height 1, and one of height ``overlap``."""
    number = np.arange(count)
    height, left, one = np.where(number % 2, overlap, 1.0), 2.0 * (number // 2), np.ones(count)
    if is_centred:
        return np.stack([left + 0.5, height / 2, one, height], axis=-1)
    return np.stack([np.zeros(count), left, height, left + 1], axis=-1)


def _limit(node: NodeView, constants: Constants, position: int) -> float:
    """Return a limit; 0 where there is none, or none that is known."""
    found = constants.find(node.inputs[position]) if position < len(node.inputs) else None
    return 0.0 if found is None or not found.size else float(found.ravel()[0])
