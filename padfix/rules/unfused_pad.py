"""A Pad that ONNX Runtime's PadFusion leaves alone.

PadFusion (on by default) moves the amounts of a constant Pad of zeros into the `pads` of the pool behind it. For a
MaxPool that changes the numbers, and where the sum is as long as the kernel the pool doesn't load.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from onnx import TensorProto, helper

if TYPE_CHECKING:
    from padfix.graph.fragment import FragmentBuilder

FLOATS = (TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.DOUBLE, TensorProto.BFLOAT16)


def minus_zero(builder: FragmentBuilder, elem_type: int, shape: tuple[int, ...] = ()) -> Any:
    """Return a constant -0.0: equal to 0 in every sum and maximum, and not what PadFusion takes for zero.

    Works for float types, from opset 11 on, where the padding value is an input.
    """
    return builder.constant(np.full(shape, -0.0, helper.tensor_dtype_to_np_dtype(elem_type)), "minus_zero")


def no_op_pad(builder: FragmentBuilder, padded: Any, rank: int, elem_type: int) -> Any:
    """Return ``padded`` behind a Pad of no elements; its value of 1, never used, keeps it from being fused.

    For integers and for opsets below 11, where there is no -0.0. ``rank`` counts all axes.
    """
    nothing = [0] * (2 * rank)
    if builder.opset < 11:
        name = "paddings" if builder.opset < 2 else "pads"
        return builder.op("Pad", [padded], {name: nothing, "value": 1.0})
    one = np.array(1, helper.tensor_dtype_to_np_dtype(elem_type or TensorProto.FLOAT))
    constants = [builder.constant(np.array(nothing, np.int64), "no_pads"), builder.constant(one, "one")]
    return builder.op("Pad", [padded, *constants])
