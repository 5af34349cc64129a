"""TensorFlow Lite operators that tf2onnx 1.17 has no handler for: GELU and the two narrow rectifiers."""

from __future__ import annotations

import math
from typing import Any

from padfix.sources.tf_ops import Handlers, handlers_of
from padfix.sources.tf_ops.tensor import Builder, Tensor

_LIMITS = {"TFL_RELU_N1_TO_1": (-1.0, 1.0), "TFL_RELU_0_TO_1": (0.0, 1.0)}


def handlers() -> Handlers:
    """Return a handler by operator, as tf2onnx's ``custom_op_handlers`` takes them."""
    return handlers_of(_LIMITS, _clip, 8) | handlers_of(["TFL_GELU"], _gelu, 9)


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
