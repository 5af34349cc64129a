"""Element types that tf2onnx or ONNX Runtime lacks for an operator, taken through a wider type that holds each exactly.

ONNX has pools for floats and 8-bit integers, and ONNX Runtime pads and convolves fewer types than TensorFlow. tf2onnx
takes what is missing through float32, where 2**24 + 1 becomes 2**24, leaves the value that a PadV2 fills with in the
old type, and takes bfloat16 for float16 altogether.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any
from unittest import mock

from onnx import TensorProto

from padfix.errors import UnsupportedError
from padfix.sources.side_effects import every_node

_FLOAT, _DOUBLE, _INT32, _INT64 = TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.INT32, TensorProto.INT64
_BFLOAT16, _UINT64 = TensorProto.BFLOAT16, TensorProto.UINT64
_INTEGERS = frozenset({_INT32, _INT64, TensorProto.UINT32, _UINT64})

_PADDED_AS: dict[int, int] = {
    **dict.fromkeys((TensorProto.UINT8, TensorProto.INT8, TensorProto.BOOL), _INT32),
    **dict.fromkeys((TensorProto.UINT16, TensorProto.INT16), _INT32),
    # Casts between 64-bit integers keep the bits, and a Pad only moves them.
    **dict.fromkeys((TensorProto.UINT32, _UINT64), _INT64),
    **dict.fromkeys((TensorProto.FLOAT16, _BFLOAT16), _FLOAT),
}
_POOLED_AS: dict[int, int] = {
    **dict.fromkeys((_INT32, TensorProto.INT16, TensorProto.UINT16, TensorProto.UINT32), _DOUBLE),
    _BFLOAT16: _FLOAT,
}
_SUMMED_AS: dict[int, int] = {_BFLOAT16: _FLOAT}
_COMPARED_AS: dict[int, int] = {
    **dict.fromkeys((TensorProto.INT16, TensorProto.UINT16), _INT32),
    TensorProto.UINT32: _INT64,
}
# ONNX Runtime sums integers in float64 and stops at the limits of their type, where TensorFlow cuts to its bits.
_ADDED_AS: dict[int, int] = dict.fromkeys((TensorProto.INT8, TensorProto.UINT8, *_COMPARED_AS), _INT64)
_RECTIFIED_AS: dict[int, int] = {**_COMPARED_AS, TensorProto.UINT8: _INT32}

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
    "Sum": (_ADDED_AS | {_INT32: _INT64}, (0,)),
    "Cumsum": (_ADDED_AS | {_UINT64: _INT64}, (0,)),
    **dict.fromkeys(("Max", "Min", "ArgMax", "ArgMin"), (_COMPARED_AS, (0,))),
    **dict.fromkeys(("Maximum", "Minimum"), (_COMPARED_AS, (0, 1))),
    **dict.fromkeys(("Relu", "Relu6"), (_RECTIFIED_AS, (0,))),
}
"""For each operator the type that stands in for a type, and the inputs of that type.

The first output has it too, unless it holds places.
"""

OPERATORS = frozenset(_WIDER)

_OF_ANY_TYPE = frozenset({"Cast", "Const", "Identity", "Placeholder", "PlaceholderWithDefault", "NoOp"})
"""What ONNX Runtime has for bfloat16 as well; everything else TensorFlow computes in float32 and rounds, too."""

_TENSORFLOW_BFLOAT16 = 14  # TensorFlow's DataType number (types.proto)

_QUANTIZED = frozenset({11, 12, 13, 15, 16})
"""qint8, quint8, qint32, qint16, quint16: integers whose meaning is in separate tensors for the range."""


def refuse_quantized(graph_def: Any) -> None:
    """Refuse a GraphDef that computes on TensorFlow's quantized types.

    Raises:
        UnsupportedError: With the operators' names.
    """
    operators = {
        node.op for node in every_node(graph_def) if any(value.type in _QUANTIZED for value in node.attr.values())
    }
    if operators:
        raise UnsupportedError(
            f"The graph computes on TensorFlow's quantized types ({', '.join(sorted(operators))}), whose ranges are "
            "tensors of their own and change from node to node; ONNX's quantized operators can't say that exactly.",
            "Convert the model from before its quantization, and quantize the ONNX file for its runtime.",
        )


def widen(ctx: Any) -> None:
    """Put casts around the nodes of a tf2onnx graph whose element type has to be taken through a wider one.

    Raises:
        UnsupportedError: Positions in a pool of 64-bit integers are asked for.
    """
    for node in list(ctx.get_nodes()):
        narrow = ctx.get_dtype(node.output[0]) if node.output else None
        if node.type == "MaxPoolWithArgmax" and narrow in (_INT64, _UINT64):
            raise UnsupportedError(
                f"The node {node.name} finds positions among 64-bit integers, which ONNX has no exact form for.",
                "Cast its input to int32 in the model.",
            )
        wider, positions = _WIDER.get(node.type, ({}, (0,)))
        given = ctx.get_dtype(node.input[positions[0]]) if len(node.input) > positions[0] else None
        if given in wider:
            _through(ctx, node, wider[given], positions, [0] if narrow == given else [])
        elif node.type not in _OF_ANY_TYPE and not node.get_body_graphs():
            read, made = (
                [position for position, name in enumerate(names) if ctx.get_dtype(name) == _BFLOAT16]
                for names in (node.input, node.output)
            )
            if read or made:
                _through(ctx, node, _FLOAT, read, made)


def transpose_integers(ctx: Any) -> None:
    """Write the adjoint of integers, of which tf2onnx knows none, as the transpose that it is."""
    for node in ctx.get_nodes():
        if node.type.startswith("BatchMatMul") and ctx.get_dtype(node.output[0]) in _INTEGERS:
            for adjoint, transposed in (("adj_x", "transpose_a"), ("adj_y", "transpose_b")):
                node.set_attr(transposed, node.get_attr_value(adjoint, 0))
                node.set_attr(adjoint, 0)


def _through(ctx: Any, node: Any, wide: int, read: Sequence[int], made: Sequence[int]) -> None:
    """Let a node compute in ``wide``: casts go before the inputs ``read`` and behind the outputs ``made``."""
    from tf2onnx import utils

    inputs, outputs = list(node.input), list(node.output)
    shapes, dtypes = node.output_shapes, node.output_dtypes
    for position in read:
        before = ctx.make_node("Cast", [inputs[position]], {"to": wide}, name=utils.make_name(f"{node.name}_widen"))
        inputs[position] = before.output[0]
    name = utils.make_name(f"{node.name}_wide")
    results = [f"{name}:{port}" if port in made else output for port, output in enumerate(outputs)]
    types = [wide if port in made else dtype for port, dtype in enumerate(dtypes)]
    ctx.remove_node(node.name)
    ctx.make_node(
        node.type,
        inputs,
        node.attr,
        outputs=results,
        name=name,
        shapes=shapes,
        dtypes=types,
        skip_conversion=False,
    )
    for port in made:
        told = {"outputs": [outputs[port]], "shapes": [shapes[port]], "dtypes": [dtypes[port]]}
        ctx.make_node(
            "Cast", [results[port]], {"to": dtypes[port]}, name=f"{node.name}_{port}" if port else node.name, **told
        )


@contextlib.contextmanager
def bfloat16() -> Iterator[None]:
    """Let tf2onnx write bfloat16 where TensorFlow has it, for the time of one conversion."""
    import ml_dtypes
    from tf2onnx import tf_utils, utils

    with (
        mock.patch.dict(tf_utils.TF_TO_ONNX_DTYPE, {_TENSORFLOW_BFLOAT16: _BFLOAT16}),
        mock.patch.dict(utils.ONNX_TO_NUMPY_DTYPE, {_BFLOAT16: ml_dtypes.bfloat16}),
    ):
        yield
