"""SplitV, whose list of lengths may leave one open: -1 is what is left of the axis.

tf2onnx knows that only where the list is constant and the axis' length is known.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from padfix.sources.tf_ops.tensor import INTEGER, Builder, Tensor
from padfix.sources.tf_ops.windows import reduce

OPERATORS = ("SplitV",)

_AS_INPUT = 13
"""The opset from which on the lengths are an input."""


def convert(builder: Builder, node: Any) -> Sequence[Tensor]:
    """Return the pieces."""
    data, sizes, axis = (builder.read(name) for name in node.input)
    if axis.known is None:
        raise ValueError(f"the axis of {node.name} is not a constant")
    sizes = sizes.cast(INTEGER)
    if sizes.array is None or (sizes.array < 0).any():
        rest = data.lengths([axis.known])[0] - _sum(sizes.maximum(0))
        sizes = builder.choose(sizes.less(0), rest, sizes)
    inputs, attributes = [data, sizes], {"axis": axis.known}
    if builder.ctx.opset < _AS_INPUT:
        if sizes.array is None:
            raise ValueError(f"{node.name} needs opset {_AS_INPUT} or newer, because its lengths are not constant")
        inputs, attributes = inputs[:1], {**attributes, "split": sizes.array.tolist()}
    return builder.nodes("Split", inputs, [data.dtype] * len(node.output), attributes)


def _sum(sizes: Tensor) -> Tensor:
    if sizes.array is not None:
        return sizes.builder.integers(sizes.array.sum())
    return reduce("ReduceSum", sizes, [0])
