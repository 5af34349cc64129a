"""Range of floats, whose length and values TensorFlow computes in the floats' own type.

ONNX Runtime counts in float64 and adds up steps, so that a number more or less comes out where rounding decides.
"""

from __future__ import annotations

from typing import Any

from padfix.sources.tf_ops.tensor import INTEGER, Builder, Tensor, count_up

OPERATORS = ("Range",)


def convert(builder: Builder, node: Any) -> Tensor:
    """Return the numbers from the start on, below the limit."""
    start, limit, step = (builder.read(name) for name in node.input)
    if start.dtype.kind not in "f":
        wide = [bound.cast(INTEGER) for bound in (start, limit, step)]
        return builder.node("Range", wide, INTEGER).cast(start.dtype)
    size = ((limit - start) / step).absolute().ceil()
    return start + count_up(builder, size.cast(INTEGER), INTEGER).cast(start.dtype) * step
