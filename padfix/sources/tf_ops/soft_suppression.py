"""NonMaxSuppressionV5 with a sigma: boxes beside a better one lose part of their score, where others are dropped.

tf2onnx cuts the sigma down to a whole number, so that one below 1 does nothing. A sigma of 0 is left to it. TensorFlow
takes the best box, brings its score up to date with the boxes chosen since it was last looked at, and puts it back
where that changed it. So does the Loop here, which matters where scores are negative: these rise.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from padfix.sources.tf_ops.tensor import FLOAT, INTEGER, Builder, Tensor, concatenated, filled, join
from padfix.sources.tf_ops.windows import reduce

OPERATORS = ("NonMaxSuppressionV5",)

DROPS = "padfix_drops"
"""An attribute: boxes that share too much with a better one are dropped all the same, as by TensorFlow Lite."""

_LOWEST = float("-inf")
_BOOL = np.dtype(np.bool_)


def convert(builder: Builder, node: Any) -> list[Tensor] | None:
    """Return places, scores and how many they are; let tf2onnx convert the node where nothing is soft about it."""
    from tf2onnx.onnx_opset.tensor import NonMaxSuppression

    ctx = builder.ctx
    sigma = builder.read(node.input[5])
    if sigma.array is None:
        raise ValueError(f"the sigma of {node.name} is not known")
    if float(sigma.array) == 0:
        NonMaxSuppression.any_version(ctx.opset, ctx, node)
        return None
    if ctx.opset < 13:
        raise ValueError(f"{node.name} needs opset 13 or newer")
    return _chosen(builder, node, float(sigma.array))


def _chosen(builder: Builder, node: Any, sigma: float) -> list[Tensor]:
    boxes, scores, most, overlap, least = (builder.read(each) for each in node.input[:5])
    kept = scores.dtype
    boxes, scores, overlap, least = (each.cast(FLOAT) for each in (boxes, scores, overlap, least))
    most = most.cast(INTEGER).reshape([])
    corners = [boxes.take(edge, 1) for edge in range(4)]
    edges = [low.minimum(high) for low, high in (corners[::2], corners[1::2])]
    edges += [low.maximum(high) for low, high in (corners[::2], corners[1::2])]
    lined = concatenated([edge.unsqueeze([1]) for edge in edges], 1)

    waiting = builder.choose(scores.greater(least), scores, _LOWEST)
    begins = filled(0, INTEGER, scores.shape())
    start = _is_left(waiting, least) & most.greater(0)
    drops = bool(node.get_attr_value(DROPS, 0))
    carried = [waiting, begins, filled(0, INTEGER, builder.integers([0])), filled(0, FLOAT, builder.integers([0]))]
    _, _, chosen, reached = _loop(builder, start, carried, [lined, most, overlap, least], -0.5 / sigma, drops)

    count = chosen.lengths([0])[0]
    results = [chosen.cast(np.int32), reached.cast(kept)]
    if node.get_attr_value("pad_to_max_output_size", False):
        pads = join(builder, [0, (most - count).maximum(0)])
        results = [builder.node("Pad", [each, pads], each.dtype) for each in results]
    return [*results, count.cast(np.int32)]


def _is_left(waiting: Tensor, least: Tensor) -> Tensor:
    """Return whether any score is above the least one; none is where there are no boxes."""
    above = waiting.greater(least) & waiting.greater(_LOWEST)
    return reduce("ReduceSum", above.cast(INTEGER), [0]).greater(0)


def _loop(
    builder: Builder, start: Tensor, carried: list[Tensor], given: list[Tensor], factor: float, drops: bool
) -> list[Tensor]:
    """Return what is carried when the boxes are chosen: scores, how many each has seen, places, scores reached."""

    def turn(step: Tensor, goes_on: Tensor, *state: Tensor) -> list[Tensor]:
        inner = step.builder
        lined, most, overlap, least = (_within(inner, each) for each in given)
        return _step(inner, state, lined, most, overlap, least, factor, drops)

    lists = zip(("waiting", "begins", "chosen", "reached"), carried, strict=True)
    read = {"step": (INTEGER, []), "goes_on": (_BOOL, []), **{name: (each.dtype, [-1]) for name, each in lists}}
    inputs = [builder.integers(np.iinfo(np.int64).max), start, *carried]
    return builder.nodes("Loop", inputs, [each.dtype for each in carried], body=builder.body(read, turn))


def _within(inner: Builder, tensor: Tensor) -> Tensor:
    """Return a tensor of the graph around a body, as operands in the body read it."""
    return Tensor(inner, tensor.dtype, array=tensor.array, name=None if tensor.array is not None else tensor.name)


def _step(
    inner: Builder,
    state: Sequence[Tensor],
    boxes: Tensor,
    most: Tensor,
    overlap: Tensor,
    least: Tensor,
    factor: float,
    drops: bool,
) -> list[Tensor]:
    """Look at the best box: whether to go on, and the state with it chosen, put back or dropped."""
    waiting, begins, chosen, reached = state
    best = inner.node("ArgMax", [waiting], INTEGER, {"axis": 0, "keepdims": 1})
    score, count = waiting.take(best), chosen.lengths([0])[0].reshape([1])
    unseen = chosen.part(begins.take(best), count, 0)
    shared = _shared(boxes.take(best), boxes.take(unseen))
    weights = (shared * shared * factor).exponential()
    # A one ahead of them, because not every version reduces nothing.
    weights = concatenated([inner.floats([1]), weights])
    updated = score * reduce("ReduceProd", weights, [0])
    if drops:
        is_dropped = reduce("ReduceSum", shared.less(overlap).negated().cast(INTEGER), [0]).greater(0)
        updated = inner.choose(is_dropped, inner.floats(_LOWEST), updated)
    same = updated.equal(score)
    stays = (same | updated.greater(least).negated()).negated()
    waiting = waiting.scattered(best, inner.choose(stays, updated, _LOWEST))
    begins = begins.scattered(best, count)
    taken = [inner.node("Compress", [each, same], each.dtype, {"axis": 0}) for each in (best, score)]
    chosen = concatenated([chosen, taken[0]])
    reached = concatenated([reached, taken[1]])
    goes_on = _is_left(waiting, least) & chosen.lengths([0])[0].less(most)
    return [goes_on, waiting, begins, chosen, reached]


def _shared(one: Tensor, others: Tensor) -> Tensor:
    """Return the area that a box shares with each of others, as a part of what both cover."""
    top, left, bottom, right = (one.take(edge, 1) for edge in range(4))
    tops, lefts, bottoms, rights = (others.take(edge, 1) for edge in range(4))
    height = (bottom.minimum(bottoms) - top.maximum(tops)).maximum(0.0)
    width = (right.minimum(rights) - left.maximum(lefts)).maximum(0.0)
    area, areas = (bottom - top) * (right - left), (bottoms - tops) * (rights - lefts)
    both, is_there = height * width, area.greater(0.0) & areas.greater(0.0)
    return one.builder.choose(is_there, both / one.builder.choose(is_there, area + areas - both, 1.0), 0.0)
