"""Roll, whose shifts may be a list of one, or computed, or along an axis of no length.

tf2onnx takes a list of one shift for a number, which can't be run, and divides by the length.
"""

from __future__ import annotations

from typing import Any

from padfix.sources.tf_ops.tensor import INTEGER, Builder, Tensor, concatenated

OPERATORS = ("Roll",)


def convert(builder: Builder, node: Any) -> Tensor:
    """Return along each axis, one after the other, what is behind the shift and then what is before it."""
    data, shifts, axes = (builder.read(name) for name in node.input)
    if axes.array is None:
        raise ValueError(f"the axes of {node.name} are not constant")
    shifts = shifts.cast(INTEGER).reshape([-1])
    for place, axis in enumerate(axes.array.reshape(-1)):
        length = data.lengths([axis])[0]
        start = length - shifts.take(place).modulo(length.maximum(1))
        behind, before = data.part(start, length, axis), data.part(0, start, axis)
        data = concatenated([behind, before], int(axis))
    return data
