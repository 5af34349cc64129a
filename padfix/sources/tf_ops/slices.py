"""Slice from a place that is computed, where tf2onnx adds up an end beyond the largest integer.

A size of -1 means all the rest. It adds the largest integer to that and then the place: from the third place on, the
sum is negative.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from padfix.sources.tf_ops.tensor import INTEGER, Builder, Tensor

OPERATORS = ("Slice",)

_TO_THE_END = int(np.iinfo(np.int64).max)


def convert(builder: Builder, node: Any) -> Tensor | None:
    """Return a slice between limits that are computed; let tf2onnx convert one between constants."""
    from tf2onnx.onnx_opset.tensor import Slice

    data, begin, size = (builder.read(each) for each in node.input)
    if builder.ctx.opset < 10 or (begin.array is not None and size.array is not None):
        Slice.version_1(builder.ctx, node)
        return None
    begin, size = begin.cast(INTEGER), size.cast(INTEGER)
    ends = builder.choose(size.equal(-1), _TO_THE_END, begin + size)
    return builder.node("Slice", [data, begin, ends], data.dtype)
