"""A Pad that ONNX Runtime's PadFusion leaves alone.

PadFusion (on by default) moves the amounts of a constant Pad of zeros into the `pads` of the pool behind it. For a
MaxPool that changes the numbers, and where the sum is as long as the kernel the pool doesn't load.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from onnx import TensorProto, helper

if TYPE_CHECKING:
    from padfix.graph.fragment_builder import FragmentBuilder


def no_op_pad(builder: FragmentBuilder, padded: Any, rank: int, elem_type: int) -> Any:
    """Return ``padded`` behind a Pad of no elements; its value of 1, never used, keeps it from being fused.

    ``rank`` counts all axes. It costs one copy of the padded image. A value of -0.0 in the first Pad would stop the
    fusion for nothing, but the sign comes through the pool, and a Reciprocal behind turns it into another infinity.
    The input ``axes`` of Pad-18 would stop it as well, but ONNX Runtime 1.31 can't push a Transpose through such a Pad.
    """
    nothing = [0] * (2 * rank)
    if builder.opset < 11:
        name = "paddings" if builder.opset < 2 else "pads"
        return builder.op("Pad", [padded], {name: nothing, "value": 1.0})
    one = np.array(1, helper.tensor_dtype_to_np_dtype(elem_type or TensorProto.FLOAT))
    constants = [builder.constant(np.array(nothing, np.int64), "no_pads"), builder.constant(one, "one")]
    return builder.op("Pad", [padded, *constants])
