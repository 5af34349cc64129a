"""Operators of other projects in TensorFlow Lite files, written as TensorFlow Lite's own.

TensorFlow's interpreter has no kernel for them, so what runs as the original is the file with these operators written
out, and the conversion starts from the same. MediaPipe's Convolution2DTransposeBias is a copy of TensorFlow Lite's
reference kernel of TRANSPOSE_CONV with a bias (mediapipe/util/tflite/operations/transpose_conv_bias.cc): options are
three int32, padding (1 for SAME), and the strides along x and y; its inputs are data, weights and bias. Its size comes
from its data alone: ``stride * (in - 1) + kernel`` along each axis, of which SAME cuts off
``max(0, kernel - (in - 1) % stride - 1)``, the smaller half of it in front.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from padfix.errors import SourceError, UnsupportedError
from padfix.sources.tflite_schema import (
    constant,
    custom_operators,
    float_copy,
    lengths,
    operator,
    operators,
)

_TRANSPOSED = "Convolution2DTransposeBias"
_KNOWN_TO_TF2ONNX = frozenset({"TFLite_Detection_PostProcess"})
_SAME, _VALID = 1, 1
"""Values of TensorFlow Lite's C structure, and of its schema."""


def write_out(model: Any) -> bool:
    """Write custom operators as TensorFlow Lite's own, in place; return whether there were any.

    Raises:
        UnsupportedError: There are custom operators whose meaning is not known.
        SourceError: One of them has no options.
    """
    found = custom_operators(model)
    unknown = [
        name for name in found if name not in _KNOWN_TO_TF2ONNX and name != _TRANSPOSED and not name.startswith("Flex")
    ]
    if unknown:
        raise UnsupportedError(
            f"These custom operators are no part of TensorFlow Lite, and have no ONNX form: {', '.join(unknown)}.",
            "Give padfix a model without them: the parts before and after, each exported on its own, say.",
        )
    if _TRANSPOSED not in found:
        return False
    for graph in model.subgraphs:
        written: list[Any] = []
        for each, name in operators(model, graph):
            written.extend(_transposed(model, graph, each) if name == _TRANSPOSED else [each])
        graph.operators = written
    return True


def _transposed(model: Any, graph: Any, custom: Any) -> list[Any]:
    """Return a TRANSPOSE_CONV of the whole size, and what cuts off the padding."""
    if custom.customOptions is None or len(custom.customOptions) < 12:
        raise SourceError(f"A {_TRANSPOSED} in this file has no options.", "Fetch or export it again.")
    held = bytes(bytearray(custom.customOptions))[:12]
    padding, stride_x, stride_y = (int(each) for each in np.frombuffer(held, "<i4"))
    data, weights, bias = (int(index) for index in custom.inputs)
    result = int(custom.outputs[0])
    signature = graph.tensors[data].shapeSignature
    if signature is not None and any(length < 0 for length in signature):
        raise UnsupportedError(
            f"A {_TRANSPOSED} of an open size is not converted: its size has to be written down.",
            "Export the model with fixed sizes.",
        )
    kernels, strides = lengths(graph.tensors[weights])[1:3], (stride_y, stride_x)
    spatial = list(zip(lengths(graph.tensors[data])[1:3], kernels, strides, strict=True))
    whole = [stride * (size - 1) + kernel for size, kernel, stride in spatial]
    cut = [max(0, kernel - (size - 1) % stride - 1) if padding == _SAME else 0 for size, kernel, stride in spatial]
    batch, channels = lengths(graph.tensors[data])[0], lengths(graph.tensors[weights])[0]
    kept = [size - less for size, less in zip(whole, cut, strict=True)]
    graph.tensors[result].shape = np.asarray([batch, *kept, channels], np.int32)
    end = result
    if any(cut):
        end = float_copy(graph, result)
        graph.tensors[end].shape = np.asarray([batch, *whole, channels], np.int32)
    sizes = constant(model, graph, np.asarray([batch, *whole, channels], np.int32))
    options = {"padding": _VALID, "strideW": stride_x, "strideH": stride_y}
    inputs = [sizes, weights, data, bias]
    convolution = operator(model, "TRANSPOSE_CONV", inputs, end, "TransposeConvOptions", **options)
    code = model.operatorCodes[convolution.opcodeIndex]
    code.version = max(code.version, 3)  # the first with a bias
    if end == result:
        return [convolution]
    begin = constant(model, graph, np.asarray([0, *(less // 2 for less in cut), 0], np.int32))
    size = constant(model, graph, np.asarray([batch, *kept, channels], np.int32))
    return [convolution, operator(model, "SLICE", [end, begin, size], result, "SliceOptions")]
