"""DynamicStitch and ParallelDynamicStitch: rows of several tensors, each put where its index says.

tf2onnx takes for granted that the indices are those of all rows, each once; where one is left out, the result is longer
than the rows together. TensorFlow leaves such a row as it finds the memory; here it is zero.
"""

from __future__ import annotations

from typing import Any

from padfix.sources.tf_ops.tensor import END, INTEGER, Builder, Tensor, concatenated, filled
from padfix.sources.tf_ops.windows import reduce

OPERATORS = ("DynamicStitch", "ParallelDynamicStitch")


def convert(builder: Builder, node: Any) -> Tensor:
    """Return the rows; of two for one place the last."""
    count = len(node.input) // 2
    indices = [builder.read(name) for name in node.input[:count]]
    data = [builder.read(name) for name in node.input[count:]]
    places, rows = [], []
    for index, name, values in zip(indices, node.input, data, strict=False):
        rank, whole = (builder.rank_of(each, f"what {node.name} puts together") for each in (name, values.name))
        places.append(index.cast(INTEGER).reshape([-1]))
        rest = values.shape().part(rank, END, 0)
        rows.append(values.shaped(builder.node("Size", [index], INTEGER).reshape([1]), rest))
    size = (reduce("ReduceMax", concatenated([builder.integers([-1]), *places]), [0]) + 1).reshape([1])
    start = filled(_nothing(data[0]), data[0].dtype, concatenated([size, rest]))
    what = concatenated(rows)
    where = concatenated(places).reshape([-1, *[1] * (whole - rank)])
    # Not ScatterND, whose threads race for a row in ONNX Runtime 1.31.
    return start.scattered(where.expand(what.shape()), what)


def _nothing(data: Tensor) -> Any:
    return "" if data.dtype.kind in "OSU" else 0
