"""Which results of a TensorFlow graph are rounded, so that their last bit decides on a whole number."""

from __future__ import annotations

from typing import Any

import numpy as np

_ROUNDS = frozenset({"Round", "Rint", "Floor", "Ceil", "FloorDiv", "FloorMod"})
_PASSES_ON = frozenset(
    {
        *("Add", "AddV2", "Sub", "Mul", "Div", "RealDiv", "Minimum", "Maximum", "ClipByValue", "Neg", "Abs", "Relu"),
        *("Identity", "Reshape", "Squeeze", "ExpandDims", "Transpose", "ReverseV2", "Slice", "StridedSlice", "Split"),
        *("ConcatV2", "Pack", "Unpack", "Pad", "PadV2", "Select", "SelectV2", "GatherV2", "Cast"),
    }
)
"""What computes each of its values from one of the input's, or nearly so, before tf2onnx has handled it."""


def is_rounded(ctx: Any, output: str) -> bool:
    """Whether a tensor of a tf2onnx graph is rounded behind operators that move its values or compute with each."""
    from tf2onnx import utils

    waiting, seen = [output], {output}
    while waiting:
        for reader in ctx.find_output_consumers(waiting.pop()):
            if reader.type in _ROUNDS:
                return True
            if reader.type not in _PASSES_ON:
                continue
            if reader.type == "Cast":
                dtype = utils.map_onnx_to_numpy_type(ctx.get_dtype(reader.output[0]))
                if np.issubdtype(dtype, np.integer):
                    return True
            new = set(reader.output) - seen
            seen |= new
            waiting += sorted(new)
    return False
