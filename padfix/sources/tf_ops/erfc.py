"""Erfc, the complementary error function, which TensorFlow's exact GELU is written with and tf2onnx lacks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

OPERATORS = ("Erfc",)


def convert(ctx: Any, node: Any, name: str, args: Sequence[Any]) -> None:
    """Replace ``node`` by ``1 - Erf(x)``.

    The absolute error is that of Erf. Far out on the right, where the result falls below the spacing of floats near 1,
    digits are lost; an activation has no use for them.
    """
    from tf2onnx import utils as tf2onnx_names

    output, data = node.output[0], node.input[0]
    dtype, shape = ctx.get_dtype(output), ctx.get_shape(output)
    one = np.array(1, tf2onnx_names.map_onnx_to_numpy_type(dtype))
    ctx.remove_node(node.name)
    error = ctx.make_node("Erf", [data], dtypes=[dtype], shapes=[shape]).output[0]
    constant = ctx.make_const(tf2onnx_names.make_name("one"), one).output[0]
    ctx.make_node("Sub", [constant, error], name=name, outputs=[output], dtypes=[dtype], shapes=[shape])
