"""TensorFlow Lite operators that tf2onnx 1.17 has no handler for: GELU, the two narrow rectifiers, 16-bit steps."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from padfix.sources.tf_ops import Handlers, handlers_of
from padfix.sources.tf_ops.tensor import Builder, Tensor

_STEPPED: dict[str, Callable[[Any], str]] = {
    "TFL_QUANTIZE": lambda node: str(node.output[0]),
    "TFL_DEQUANTIZE": lambda node: str(node.input[0]),
}
"""The tensor of steps of the operators between steps and floats."""

_WIDE: dict[int, np.iinfo[Any]] = {5: np.iinfo(np.int16), 7: np.iinfo(np.int64)}
"""Limits of data, and of biases, of models that are quantised to 16 bits, by ``TensorProto.DataType``."""

_LIMITS = {"TFL_RELU_N1_TO_1": (-1.0, 1.0), "TFL_RELU_0_TO_1": (0.0, 1.0)}


def handlers() -> Handlers:
    """Return a handler by operator, as tf2onnx's ``custom_op_handlers`` takes them."""
    return handlers_of(_LIMITS, _clip, 8) | handlers_of(["TFL_GELU"], _gelu, 9)


def write_out_wide_steps(graph: Any, nodes: Sequence[Any]) -> Any:
    """Write the quantisation of a model of 16 bits, which ONNX has from opset 21 on, as arithmetic.

    This is a ``custom_rewriter`` of tf2onnx.
    """
    for node in list(nodes):
        stepped = _STEPPED.get(node.type, lambda node: None)(node)
        if stepped is None or "scale" not in node.attr:
            continue
        # Weights of 8 bits as well: ONNX Runtime's optimiser makes a product of them that quantises its data.
        limits = _WIDE.get(graph.get_dtype(stepped))
        if limits is None and not graph.get_node_by_output(stepped).is_const():
            continue
        builder = Builder(graph, node.name)
        data = builder.read(node.input[0])
        scale, zero = (np.asarray(node.get_attr_value(name), np.float32) for name in ("scale", "zero_point"))
        if scale.size > 1:
            along = [1] * graph.get_rank(stepped)
            along[node.get_attr_value("quantized_dimension", 0)] = -1
            scale, zero = scale.reshape(along), zero.reshape(along)
        if node.type == "TFL_DEQUANTIZE" or limits is None:
            result = (data.cast(np.float32) - zero) * scale
        else:
            steps = (data / scale).round_even() + zero
            result = steps.maximum(float(limits.min)).minimum(float(limits.max)).cast(limits.dtype)
        builder.finish(result, node)
    return graph.get_nodes()


def _clip(builder: Builder, node: Any) -> Tensor:
    low, high = _LIMITS[node.type]
    return builder.read(node.input[0]).maximum(low).minimum(high)


def _gelu(builder: Builder, node: Any) -> Tensor:
    """``x/2 (1 + erf(x / sqrt 2))``, or with tanh in place of the error function where the model says so."""
    x = builder.read(node.input[0])
    if node.get_attr_value("approximate", 0):
        bent = builder.node("Tanh", [(x + x * x * x * 0.044715) * math.sqrt(2 / math.pi)], x.dtype)
    else:
        bent = builder.node("Erf", [x * math.sqrt(0.5)], x.dtype)
    return x * 0.5 * (bent + 1.0)
