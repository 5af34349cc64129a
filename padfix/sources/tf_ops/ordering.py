"""TopKV2 (``tf.math.top_k``, ``tf.sort``), LowerBound, UpperBound, Bucketize and InvertPermutation, in the own type.

tf2onnx sorts float64 as float32, lacks the next three, and takes int32 for int64 in the last.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from padfix.sources.tf_ops.tensor import INTEGER, Builder, Tensor, count_up, filled
from padfix.sources.tf_ops.windows import reduce

OPERATORS = ("TopKV2", "LowerBound", "UpperBound", "Bucketize", "InvertPermutation")

_SORTED = frozenset({"float32", "float64", "int32", "int64"})
"""What ONNX Runtime sorts."""


def convert(builder: Builder, node: Any) -> Tensor | Sequence[Tensor]:
    """Return the largest numbers with their places, or how many of a rising list are below each number."""
    data, *others = (builder.read(name) for name in node.input)
    if node.type == "TopKV2":
        return _largest(builder, node, data, others[0])
    result_type = builder.type_of(node.output[0])
    if node.type == "InvertPermutation":
        places = count_up(builder, data.lengths([0])[0], INTEGER)
        return filled(0, INTEGER, data.shape()).scattered(data.cast(INTEGER), places).cast(data.dtype)
    if node.type == "Bucketize":
        bounds = builder.constant(list(node.get_attr_value("boundaries", [])), np.float32)
        below = bounds.greater(data.cast(np.float32).unsqueeze([-1])).negated()
        return _count(below).cast(result_type)
    rising, values = data.unsqueeze([-2]), others[0].unsqueeze([-1])
    below = rising.less(values) if node.type == "LowerBound" else rising.greater(values).negated()
    return _count(below).cast(result_type)


def _largest(builder: Builder, node: Any, data: Tensor, count: Tensor) -> list[Tensor]:
    if data.dtype == np.uint64:
        raise ValueError(f"{node.name} sorts uint64, which ONNX Runtime has no kernel for")
    kind = data.dtype.name
    through = data.dtype if kind in _SORTED else np.dtype(np.int64 if data.dtype.kind in "iu" else np.float32)
    values, places = extremes(data.cast(through), count, sort=node.get_attr_value("sorted", True))
    return [values.cast(data.dtype), places.cast(builder.type_of(node.output[1]))]


def extremes(data: Tensor, count: Tensor, *, largest: bool = True, sort: bool = True) -> list[Tensor]:
    """Return the largest numbers along the last axis, or the smallest, and where they are."""
    inputs = [data, count.cast(INTEGER).reshape([1])]
    attributes = {"axis": -1, "largest": int(largest), "sorted": int(sort)}
    return data.builder.nodes("TopK", inputs, [data.dtype, INTEGER], attributes)


def _count(truths: Tensor) -> Tensor:
    return reduce("ReduceSum", truths.cast(INTEGER), [-1])
