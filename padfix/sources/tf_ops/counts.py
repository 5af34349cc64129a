"""How often each number occurs, or what it weighs (Keras' ``IntegerLookup``), and how many numbers each bin holds.

tf2onnx takes the rows of a matrix for one list. Numbers beyond the size are left out, as in TensorFlow. It lacks
histograms, in which they count for the bins at both ends.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from padfix.sources.tf_ops.tensor import INTEGER, Builder, Tensor, filled, join

_DOUBLE = np.dtype(np.float64)

OPERATORS = ("Bincount", "DenseBincount", "HistogramFixedWidth")


def convert(builder: Builder, node: Any) -> Tensor:
    """Return the counts, for each row of a matrix by itself."""
    if node.type == "HistogramFixedWidth":
        return _histogram(builder, node)
    data, size, weights = (builder.read(name) for name in node.input)
    known = builder.ctx.get_shape(weights.name)
    if known is None:
        raise ValueError(f"whether {node.name} has weights is not known")
    if node.type == "Bincount":
        data = data.reshape([-1])
    shape = data.shape()
    kept, last = shape.part(0, -1, 0), shape.take(builder.integers([-1]))
    rows = builder.node("ReduceProd", [kept], INTEGER, {"keepdims": 1})
    numbers, count = data.cast(INTEGER).shaped(rows, last), size.cast(INTEGER).reshape([1])
    is_binary = bool(node.get_attr_value("binary_output", False))
    each = filled(1, weights.dtype, numbers.shape()) if is_binary or 0 in known else weights.shaped(rows, last)
    places = builder.choose(numbers.less(count), numbers, count)
    started = filled(0, weights.dtype, join(builder, [rows, count + 1]))
    whole = started.scattered(places, each, "" if is_binary else "add", axis=1)
    return whole.part(0, count, 1).shaped(kept, count)


def _histogram(builder: Builder, node: Any) -> Tensor:
    """Return how many numbers are in each bin, their quotients in float64 as in TensorFlow's kernel."""
    data, ends, bins = (builder.read(name) for name in node.input)
    number = bins.cast(INTEGER).reshape([])
    lowest = ends.take(0)
    width = (ends.take(1) - lowest).cast(_DOUBLE) / number.cast(_DOUBLE)
    distance = (data.reshape([-1]).maximum(lowest) - lowest).cast(_DOUBLE)
    places = (distance / width).minimum((number - 1).cast(_DOUBLE)).cast(INTEGER)
    each = filled(1, INTEGER, places.shape())
    held = filled(0, INTEGER, number.reshape([1])).scattered(places, each, "add")
    return held.cast(builder.type_of(node.output[0]))
