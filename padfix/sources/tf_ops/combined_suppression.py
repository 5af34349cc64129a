"""CombinedNonMaxSuppression (``tf.image.combined_non_max_suppression``): the best boxes of each class, then of all.

tf2onnx knows it where one set of boxes serves all classes. Here each class of each image is an image of its own for
ONNX's NonMaxSuppression, and a score that it did not choose is minus infinity for the TopK behind it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from padfix.sources.tf_ops.ordering import extremes
from padfix.sources.tf_ops.tensor import FLOAT, INTEGER, Builder, Tensor, concatenated, count_up, filled, join
from padfix.sources.tf_ops.windows import reduce

OPERATORS = ("CombinedNonMaxSuppression",)

_LOWEST = float("-inf")


def convert(builder: Builder, node: Any) -> list[Tensor]:
    """Return boxes, scores, classes and how many of them there are, by image."""
    boxes, scores, most, total, overlap, least = (builder.read(name) for name in node.input)
    images, count, classes = scores.lengths([0, 1, 2])
    most, total = (each.cast(INTEGER).reshape([]) for each in (most, total))
    if node.get_attr_value("pad_per_class", False):
        total = total.minimum(most * classes)

    by_class = boxes.transpose([0, 2, 1, 3]).expand(join(builder, [images, classes, count, 4]))
    flat = scores.transpose([0, 2, 1])
    rows, room = images * classes, images * classes * count
    given = [by_class.reshape([rows, count, 4]), flat.reshape([rows, 1, count]), most.reshape([1])]
    chosen = builder.node("NonMaxSuppression", [*given, overlap, least], INTEGER)
    places = chosen.take(0, 1) * count + chosen.take(2, 1)
    line = flat.reshape([room])
    kept = filled(_LOWEST, FLOAT, join(builder, [room])).scattered(places, line.take(places))
    by_image = kept.reshape([images, classes * count])
    lacking = (total - classes * count).maximum(0)
    pads = join(builder, [0, 0, 0, lacking])
    best, ranks = extremes(builder.node("Pad", [by_image, pads, builder.floats(_LOWEST)], FLOAT), total)

    is_chosen = best.greater(_LOWEST)
    begins = count_up(builder, images, INTEGER).reshape([-1, 1]) * (classes * count)
    given_boxes = concatenated([by_class.reshape([room, 4]), builder.floats(np.zeros((1, 4)))])
    found = given_boxes.take(builder.choose(is_chosen, begins + ranks, room))
    if node.get_attr_value("clip_boxes", True):
        found = found.maximum(0.0).minimum(1.0)
    owners = builder.choose(is_chosen, (ranks / count.maximum(1)).cast(FLOAT), 0.0)
    number = reduce("ReduceSum", is_chosen.cast(np.int32), [1])
    return [found, builder.choose(is_chosen, best, 0.0), owners, number]
