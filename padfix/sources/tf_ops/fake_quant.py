"""FakeQuantWithMinMaxArgs, -Vars and -VarsPerChannel as the arithmetic that TensorFlow does.

A value is clamped to the range, which is first moved so that zero is one of its steps, and rounded to a step, halves
up. tf2onnx writes QuantizeLinear and DequantizeLinear, which round halves to even, for 8 bits without a narrow range
only, and lacks the last of the three.
"""

from __future__ import annotations

from typing import Any

from padfix.sources.tf_ops.tensor import Builder, Tensor

OPERATORS = ("FakeQuantWithMinMaxArgs", "FakeQuantWithMinMaxVars", "FakeQuantWithMinMaxVarsPerChannel")


def convert(builder: Builder, node: Any) -> Tensor:
    """Return the input moved to the nearest steps of its range."""
    data = builder.read(node.input[0])
    if node.type == "FakeQuantWithMinMaxArgs":
        low = builder.floats(node.get_attr_value("min", -6.0))
        high = builder.floats(node.get_attr_value("max", 6.0))
    else:
        low, high = (builder.read(given) for given in node.input[1:3])
    first = 1.0 if node.get_attr_value("narrow_range", False) else 0.0
    last = float(2 ** node.get_attr_value("num_bits", 8) - 1)
    step = (high - low) / (last - first)
    zero = (low / step * -1.0 + first).maximum(first).minimum(last).round_away()
    begin, end = (zero * -1.0 + first) * step, (zero * -1.0 + last) * step
    # One kernel divides by the step, the others multiply by its inverse; at halves the last bit decides.
    inverse = None if node.type == "FakeQuantWithMinMaxVars" else builder.floats(last - first) / (high - low)
    origin = (_steps(begin * -1.0, step, inverse) + 0.5).floor()
    distance = data.minimum(end).maximum(begin) - begin
    result = (_steps(distance, step, inverse) - origin + 0.5).floor() * step
    if node.type == "FakeQuantWithMinMaxArgs":
        return result
    # Where the range is the single value zero, TensorFlow takes every value to it.
    return builder.choose(low.equal(0.0) & high.equal(0.0), 0.0, result)


def _steps(length: Tensor, step: Tensor, inverse: Tensor | None) -> Tensor:
    return length / step if inverse is None else length * inverse
