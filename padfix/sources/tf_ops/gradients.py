"""Gradients of activations, which tf2onnx lacks: a model that differentiates holds them, for a saliency map, say."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from padfix.sources.tf_ops.arithmetic import SELU_ALPHA, SELU_SCALE
from padfix.sources.tf_ops.tensor import Builder, Tensor

_OF_RESULTS: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "ReciprocalGrad": lambda y, dy: dy * -1.0 * y * y,
    "RsqrtGrad": lambda y, dy: dy * -0.5 * (y * y * y),
    "SigmoidGrad": lambda y, dy: dy * y * (y * -1.0 + 1.0),
    "SqrtGrad": lambda y, dy: dy * 0.5 / y,
    "TanhGrad": lambda y, dy: dy * (y * y * -1.0 + 1.0),
}
"""Of what the function gave, and of the gradient behind it."""

_WITH_GRADIENTS: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "EluGrad": lambda dy, y: dy.builder.choose(y.less(0.0), dy * (y + 1.0), dy),
    "ReluGrad": lambda dy, x: dy.builder.choose(x.greater(0.0), dy, 0.0),
    "Relu6Grad": lambda dy, x: dy.builder.choose(x.greater(0.0) & x.less(6.0), dy, 0.0),
    "SeluGrad": lambda dy, y: dy.builder.choose(y.less(0.0), dy * (y + SELU_SCALE * SELU_ALPHA), dy * SELU_SCALE),
    "SoftplusGrad": lambda dy, x: dy / ((x * -1.0).exponential() + 1.0),
    "SoftsignGrad": lambda dy, x: dy / ((x.absolute() + 1.0) * (x.absolute() + 1.0)),
}
"""Of the gradient behind the function, and of what this took or, of Elu and Selu, gave."""

OPERATORS = (*_OF_RESULTS, *_WITH_GRADIENTS, "InvGrad", "LeakyReluGrad")


def convert(builder: Builder, node: Any) -> Tensor:
    """Return the gradient before the function."""
    first, second = (builder.read(name) for name in node.input)
    if node.type == "LeakyReluGrad":
        return builder.choose(second.greater(0.0), first, first * float(np.float32(node.get_attr_value("alpha", 0.2))))
    name = "ReciprocalGrad" if node.type == "InvGrad" else node.type
    return (_OF_RESULTS | _WITH_GRADIENTS)[name](first, second)
