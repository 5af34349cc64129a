"""Reductions that tf2onnx lacks: EuclideanNorm (``tf.math.reduce_euclidean_norm``) and CumulativeLogsumexp."""

from __future__ import annotations

from typing import Any

import numpy as np

from padfix.sources.tf_ops.tensor import INTEGER, Builder, Tensor, count_up
from padfix.sources.tf_ops.windows import reduce

OPERATORS = ("EuclideanNorm", "CumulativeLogsumexp")


def convert(builder: Builder, node: Any) -> Tensor:
    """Return the reduction of the first input along the second."""
    data, axes = (builder.read(name) for name in node.input)
    if node.type == "EuclideanNorm":
        squares = (data * data).cast(np.float64 if data.dtype.kind in "iu" else data.dtype)
        keeps = {"keepdims": int(node.get_attr_value("keep_dims", False))}
        total = builder.node("ReduceSum", [squares, axes.cast(INTEGER).reshape([-1])], squares.dtype, keeps)
        return total.root().cast(data.dtype)
    return _cumulative(builder, node, data, axes)


def _cumulative(builder: Builder, node: Any, data: Tensor, axes: Tensor) -> Tensor:
    """Return for each place the logarithm of the sum of exponentials up to it, from the largest of these on."""
    rank = builder.ctx.get_rank(node.input[0])
    if axes.known is None or rank is None:
        raise ValueError(f"the axis of {node.name} is not known")
    axis = axes.known % rank
    last = [place for place in range(rank) if place != axis] + [axis]
    rows = data.transpose(last)
    place = count_up(builder, data.lengths([axis])[0], INTEGER)
    here, other = place.unsqueeze([1]), place.unsqueeze([0])
    here, other = (other, here) if node.get_attr_value("reverse", False) else (here, other)
    is_summed = other.less(here) if node.get_attr_value("exclusive", False) else other.greater(here).negated()
    least = float(np.finfo(data.dtype).min)
    # A square of all places, so that no sum holds what is taken out again: that would cancel.
    square = builder.choose(is_summed, rows.unsqueeze([rank - 1]), least)
    largest = reduce("ReduceMax", square, [rank])
    terms = builder.choose(is_summed, (square - largest.unsqueeze([rank])).exponential(), 0.0)
    sums = reduce("ReduceSum", terms, [rank]).logarithm() + largest
    return sums.transpose(list(np.argsort(last)))
