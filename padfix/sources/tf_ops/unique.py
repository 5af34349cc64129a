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
    data = builder.read(node.input[0])
    axes = builder.read(node.input[1]) if node.type.endswith("V2") else builder.integers([])
    if axes.array is None:
        raise ValueError(f"the axis of {node.name} is not a constant")
    # Only whether elements are equal counts, so that unsigned numbers may wrap around.
    through = (
        data.dtype if data.dtype.name in _COMPARED else np.dtype(np.float32 if data.dtype.kind == "f" else INTEGER)
    )
    attributes = {"sorted": 0, **({"axis": axes.known} if axes.array.size else {})}
    values, _, *found = builder.nodes("Unique", [data.cast(through)], [through, *[INTEGER] * 3], attributes)
    index_type = builder.type_of(node.output[1])
    return [values.cast(data.dtype), *(each.cast(index_type) for each in found)][: len(node.output)]
