"""Slice from a place that is computed, where tf2onnx adds up an end beyond the largest integer.

A size of -1 means all the rest. It adds the largest integer to that and then the place: from the third place on, the
sum is negative.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from padfix.sources.tf_ops.tensor import INTEGER, Builder

OPERATORS = ("Slice",)

_TO_THE_END = int(np.iinfo(np.int64).max)


def handle(ctx: Any, node: Any, name: str, args: Any) -> None:
    """Let tf2onnx convert a slice between constants, and write the others."""
    from tf2onnx.onnx_opset.tensor import Slice

    builder = Builder(ctx, node.name)
    data, begin, size = (builder.read(each) for each in node.input)
    if ctx.opset < 10 or (begin.array is not None and size.array is not None):
        Slice.version_1(ctx, node)
        return
    begin, size = begin.cast(INTEGER), size.cast(INTEGER)
    ends = builder.choose(size.equal(-1), _TO_THE_END, begin + size)
    builder.finish(builder.node("Slice", [data, begin, ends], data.dtype), node)
