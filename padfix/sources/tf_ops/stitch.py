"""DynamicStitch and ParallelDynamicStitch: rows of several tensors, each put where its index says.

tf2onnx takes for granted that the indices are those of all rows, each once; where one is left out, the result is longer
than the rows together. TensorFlow leaves such a row as it finds the memory; here it is zero.
"""

from __future__ import annotations

from typing import Any

from padfix.sources.tf_ops.tensor import INTEGER, Builder, Tensor, filled
from padfix.sources.tf_ops.windows import reduce

OPERATORS = ("DynamicStitch", "ParallelDynamicStitch")


def convert(builder: Builder, node: Any) -> Tensor:
    """Return the rows; of two for one place the last."""
    count = len(node.input) // 2
    indices = [builder.read(name) for name in node.input[:count]]
    data = [builder.read(name) for name in node.input[count:]]
    places, rows = [], []
    for index, name, values in zip(indices, node.input, data, strict=False):
        rank, whole = builder.ctx.get_rank(name), builder.ctx.get_rank(values.name)
        if rank is None or whole is None:
            raise ValueError(f"the number of axes of what {node.name} puts together is not known")
        places.append(index.cast(INTEGER).reshape([-1]))
        rest = values.shape()
        rest = builder.node("Slice", [rest, builder.integers([rank]), builder.integers([2**31 - 1])], INTEGER)
        length = builder.node(
            "Concat", [builder.node("Size", [index], INTEGER).reshape([1]), rest], INTEGER, {"axis": 0}
        )
        rows.append(builder.node("Reshape", [values, length], values.dtype, {"allowzero": 1}))
    every = builder.node("Concat", [builder.integers([-1]), *places], INTEGER, {"axis": 0})
    size = (reduce("ReduceMax", every, [0]) + 1).reshape([1])
    start = filled(_nothing(data[0]), data[0].dtype, builder.node("Concat", [size, rest], INTEGER, {"axis": 0}))
    what = builder.node("Concat", rows, data[0].dtype, {"axis": 0})
    where = builder.node("Concat", places, INTEGER, {"axis": 0}).reshape([-1, *[1] * (whole - rank)])
    # Not ScatterND, whose threads race for a row in ONNX Runtime 1.31.
    return builder.node("ScatterElements", [start, where.expand(what.shape()), what], data[0].dtype, {"axis": 0})


def _nothing(data: Tensor) -> Any:
    return "" if data.dtype.kind in "OSU" else 0
