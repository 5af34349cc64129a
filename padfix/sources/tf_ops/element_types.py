"""Element types that tf2onnx or ONNX Runtime lacks for an operator, taken through a wider type that holds each exactly.

ONNX has pools for floats and 8-bit integers, and ONNX Runtime pads and convolves fewer types than TensorFlow. tf2onnx
takes what is missing through float32, where 2**24 + 1 becomes 2**24, leaves the value that a PadV2 fills with in the
old type, and takes bfloat16 for float16 altogether.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from padfix.errors import UnsupportedError

# TensorFlow's DataType numbers (types.proto).
_FLOAT, _DOUBLE, _INT32, _UINT8, _INT16, _INT8, _INT64 = 1, 2, 3, 4, 5, 6, 9
_BOOL, _BFLOAT16, _UINT16, _HALF, _UINT32, _UINT64 = 10, 14, 17, 19, 22, 23

_PADDED_AS = {
    **dict.fromkeys((_UINT8, _INT16, _INT8, _BOOL, _UINT16), _INT32),
    # Casts between 64-bit integers keep the bits, and a Pad only moves them.
    **dict.fromkeys((_UINT32, _UINT64), _INT64),
    **dict.fromkeys((_HALF, _BFLOAT16), _FLOAT),
}
_POOLED_AS = dict.fromkeys((_INT32, _INT16, _UINT16, _UINT32), _DOUBLE) | {_BFLOAT16: _FLOAT}
_SUMMED_AS = {_BFLOAT16: _FLOAT}

_WIDER: dict[str, tuple[dict[int, int], tuple[int, ...]]] = {
    "Pad": (_PADDED_AS, (0,)),
    "PadV2": (_PADDED_AS, (0, 2)),
    "MirrorPad": (_PADDED_AS, (0,)),
    "ExtractImagePatches": (_PADDED_AS, (0,)),
    "ExtractVolumePatches": (_PADDED_AS, (0,)),
    "MaxPool": (_POOLED_AS, (0,)),
    "MaxPoolV2": (_POOLED_AS, (0,)),
    "MaxPool3D": (_POOLED_AS, (0,)),
    "MaxPoolWithArgmax": (_POOLED_AS, (0,)),
    "AvgPool": (_SUMMED_AS, (0,)),
    "AvgPool3D": (_SUMMED_AS, (0,)),
    "Conv2D": (_SUMMED_AS, (0, 1)),
    "Conv3D": (_SUMMED_AS, (0, 1)),
    "DepthwiseConv2dNative": (_SUMMED_AS, (0, 1)),
    "Conv2DBackpropInput": (_SUMMED_AS, (1, 2)),
    "Conv3DBackpropInputV2": (_SUMMED_AS, (1, 2)),
    "DepthwiseConv2dNativeBackpropInput": (_SUMMED_AS, (1, 2)),
    "Dilation2D": (_SUMMED_AS, (0, 1)),
}
"""For each operator the type that stands in for a type, and the inputs of that type; the first output has it too."""

OPERATORS = frozenset(_WIDER)

_QUANTIZED = frozenset({11, 12, 13, 15, 16})
"""qint8, quint8, qint32, qint16, quint16: integers whose meaning is in separate tensors for the range."""


def refuse_quantized(graph_def: Any) -> None:
    """Refuse a GraphDef that computes on TensorFlow's quantized types.

    Raises:
        UnsupportedError: With the operators' names.
    """
    operators = {node.op for node in graph_def.node if any(value.type in _QUANTIZED for value in node.attr.values())}
    if operators:
        raise UnsupportedError(
            f"The graph computes on TensorFlow's quantized types ({', '.join(sorted(operators))}), whose ranges are "
            "tensors of their own and change from node to node; ONNX's quantized operators can't say that exactly.",
            "Convert the model from before its quantization, and quantize the ONNX file for its runtime.",
        )


def widen(graph_def: Any) -> None:
    """Put casts around the nodes of a GraphDef whose element type has to be taken through a wider one.

    Raises:
        UnsupportedError: Positions in a pool of 64-bit integers are asked for.
    """
    for node in [node for node in graph_def.node if node.op in OPERATORS]:
        wider, positions = _WIDER[node.op]
        narrow = node.attr["T"].type
        if node.op == "MaxPoolWithArgmax" and narrow in (_INT64, _UINT64):
            raise UnsupportedError(
                f"The node {node.name} finds positions among 64-bit integers, which ONNX has no exact form for.",
                "Cast its input to int32 in the model.",
            )
        if narrow not in wider:
            continue
        name, wide = node.name, wider[narrow]
        for position in positions:
            before = graph_def.node.add(name=f"{name}/padfix_widen_{position}", op="Cast", input=[node.input[position]])
            before.attr["SrcT"].type, before.attr["DstT"].type = narrow, wide
            node.input[position] = before.name
        after = graph_def.node.add(name=name, op="Cast", input=[f"{name}/padfix_wide"])
        after.attr["SrcT"].type, after.attr["DstT"].type = wide, narrow
        node.name = f"{name}/padfix_wide"
        for other in graph_def.node:
            for position, read in enumerate(other.input):
                if read == f"{name}:1":  # positions, which have a type of their own
                    other.input[position] = f"{node.name}:1"
        node.attr["T"].type = wide
        node.attr.pop("_output_shapes", None)


@contextlib.contextmanager
def bfloat16() -> Iterator[None]:
    """Let tf2onnx write bfloat16 where TensorFlow has it, for the time of one conversion."""
    import ml_dtypes
    from onnx import TensorProto
    from tf2onnx import tf_utils, utils

    known = tf_utils.TF_TO_ONNX_DTYPE.get(_BFLOAT16)
    tf_utils.TF_TO_ONNX_DTYPE[_BFLOAT16] = TensorProto.BFLOAT16
    utils.ONNX_TO_NUMPY_DTYPE[TensorProto.BFLOAT16] = ml_dtypes.bfloat16
    try:
        yield
    finally:
        del utils.ONNX_TO_NUMPY_DTYPE[TensorProto.BFLOAT16]
        if known is None:
            del tf_utils.TF_TO_ONNX_DTYPE[_BFLOAT16]
        else:
            tf_utils.TF_TO_ONNX_DTYPE[_BFLOAT16] = known
