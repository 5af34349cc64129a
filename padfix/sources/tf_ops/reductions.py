"""EuclideanNorm (``tf.math.reduce_euclidean_norm``), L2Loss and CumulativeLogsumexp, which tf2onnx lacks, and Cumprod.

tf2onnx multiplies the numbers of a Cumprod in another order, and infinity by zero where that overflows.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from padfix.sources.tf_ops.tensor import END, INTEGER, Builder, Tensor, concatenated, count_up, filled
from padfix.sources.tf_ops.windows import reduce

OPERATORS = ("EuclideanNorm", "L2Loss", "CumulativeLogsumexp", "Cumprod")


def convert(builder: Builder, node: Any) -> Tensor:
    """Return the reduction of the first input along the second."""
    if node.type == "L2Loss":
        whole = builder.read(node.input[0]).reshape([-1])
        return reduce("ReduceSum", whole * whole, [0]) * 0.5
    data, axes = (builder.read(name) for name in node.input)
    if node.type == "EuclideanNorm":
        squares = (data * data).cast(np.float64 if data.dtype.kind in "iu" else data.dtype)
        keeps = {"keepdims": int(node.get_attr_value("keep_dims", False))}
        total = builder.node("ReduceSum", [squares, axes.cast(INTEGER).reshape([-1])], squares.dtype, keeps)
        return total.root().cast(data.dtype)
    rank = builder.ctx.get_rank(node.input[0])
    if axes.known is None or rank is None:
        raise ValueError(f"the axis of {node.name} is not known")
    along = _products if node.type == "Cumprod" else _logarithms
    return along(builder, node, data, axes.known % rank, rank)


def _products(builder: Builder, node: Any, data: Tensor, axis: int, rank: int) -> Tensor:
    """Return for each place the product up to it, multiplied in order."""

    def turn(product: Tensor, number: Tensor) -> list[Tensor]:
        following = product * number
        return [following, product if node.get_attr_value("exclusive", False) else following]

    body = builder.body(dict.fromkeys(("product", "number"), (data.dtype, [-1] * (rank - 1))), turn)
    way = int(node.get_attr_value("reverse", False))
    attributes = {"num_scan_inputs": 1, "scan_input_axes": [axis], "scan_output_axes": [axis]}
    attributes |= {"scan_input_directions": [way], "scan_output_directions": [way]}
    ones = filled(1, data.dtype, data.shape().take(np.array([place for place in range(rank) if place != axis])))
    is_open = not data.lengths([axis])[0].known
    if is_open:  # for a Scan of no rows fails in ONNX Runtime: one more, come to last
        rows = [data, ones.unsqueeze([axis])]
        data = concatenated(rows[::-1] if way else rows, axis)
    _, products = builder.nodes("Scan", [ones, data], [data.dtype] * 2, attributes, body=body)
    return products.part(*((1, END) if way else (0, -1)), axis) if is_open else products


def _logarithms(builder: Builder, node: Any, data: Tensor, axis: int, rank: int) -> Tensor:
    """Return for each place the logarithm of the sum of exponentials up to it, from the largest of these on."""
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
