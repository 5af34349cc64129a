"""Unique and its kin: what occurs, in the order of the first time, where it occurs, and how often.

tf2onnx lacks the ones with an axis and counts, and gives a graph with a circle where all three results are read.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from padfix.sources.tf_ops.tensor import INTEGER, Builder, Tensor

OPERATORS = ("Unique", "UniqueV2", "UniqueWithCounts", "UniqueWithCountsV2")

_COMPARED = frozenset({"float32", "float64", "int64", "object"})
"""What ONNX Runtime has a Unique for and TensorFlow as well; text is of type object."""


def convert(builder: Builder, node: Any) -> list[Tensor]:
    """Return the distinct elements, or slices along an axis, which of them each one is, and their counts."""
    from tf2onnx import utils

    data = builder.read(node.input[0])
    axes = builder.read(node.input[1]) if node.type.endswith("V2") else builder.integers([])
    if axes.array is None:
        raise ValueError(f"the axis of {node.name} is not a constant")
    # Only whether elements are equal counts, so that unsigned numbers may wrap around.
    through = (
        data.dtype if data.dtype.name in _COMPARED else np.dtype(np.float32 if data.dtype.kind == "f" else INTEGER)
    )
    types = [utils.map_numpy_to_onnx_dtype(each) for each in (through, INTEGER, INTEGER, INTEGER)]
    attributes = {"sorted": 0, **({"axis": axes.known} if axes.array.size else {})}
    made = builder.ctx.make_node("Unique", [data.cast(through).name], attributes, output_count=4, dtypes=types)
    values, _, places, counts = made.output
    index_type = utils.map_onnx_to_numpy_type(builder.ctx.get_dtype(node.output[1]))
    found = [Tensor(builder, INTEGER, name=str(each)).cast(index_type) for each in (places, counts)]
    return [Tensor(builder, through, name=str(values)).cast(data.dtype), *found][: len(node.output)]
