"""Erfc, the complementary error function, which TensorFlow's exact GELU is written with and tf2onnx lacks."""

from __future__ import annotations

from typing import Any

from padfix.sources.tf_ops.tensor import Builder, Tensor

OPERATORS = ("Erfc",)


def convert(builder: Builder, node: Any) -> Tensor:
    """Return ``1 - Erf(x)``.

    The absolute error is that of Erf. Far out on the right, where the result falls below the spacing of floats near 1,
    digits are lost; an activation has no use for them.
    """
    data = builder.read(node.input[0])
    return builder.constant(1, data.dtype) - builder.node("Erf", [data], data.dtype)
