"""The windowed operators of ONNX Runtime's domain com.microsoft as operators of onnx.reference.

They have no specification but ONNX Runtime's documentation and behaviour, so that is what they mean here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from onnx.reference.op_run import OpRun

from padfix.geometry.transposed import clamped_same_axis
from padfix.kernels.conv import conv
from padfix.kernels.pool import max_pool
from padfix.kernels.quantized import qlinear_average_pool, qlinear_conv
from padfix.kernels.transpose import conv_transpose
from padfix.kernels.windows import Array
from padfix.kernels.wrapping import CONVOLUTION, WINDOW, operator

_ACTIVATIONS: dict[str, Callable[..., Array]] = {
    "": lambda x: x,
    "Relu": lambda x: np.maximum(x, 0),
    "Tanh": np.tanh,
    "Sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "LeakyRelu": lambda x, alpha: np.where(x < 0, alpha * x, x),
    "Clip": lambda x, low, high: np.clip(x, low, high),
    "HardSigmoid": lambda x, alpha, beta: np.clip(alpha * x + beta, 0, 1),
}


def _in_layout(
    kernel: Callable[..., Array], X: Array, *inputs: Array | None, channels_last: int = 0, **window: Any
) -> Array:
    """Run ``kernel`` on ``[N, C, *size]``, or with ``channels_last`` on ``[N, *size, C]``; weights stay as they are."""
    if not channels_last:
        return kernel(X, *inputs, **window)
    return np.ascontiguousarray(np.moveaxis(kernel(np.moveaxis(X, -1, 1), *inputs, **window), 1, -1))


def _fused_conv(
    X: Array,
    W: Array,
    B: Array | None = None,
    Z: Array | None = None,
    *,
    activation: str = "",
    activation_params: Sequence[float] = (),
    channels_last: int = 0,
    **window: Any,
) -> Array:
    """Return the convolution, then an optional addition of ``Z``, then an optional activation."""
    total = _in_layout(conv, X.astype(np.float64), W, B, channels_last=channels_last, **window)
    if activation not in _ACTIVATIONS:
        raise NotImplementedError(
            f"The activation {activation!r} of a fused convolution has no reference implementation."
        )
    return _ACTIVATIONS[activation](total if Z is None else total + Z, *activation_params).astype(X.dtype)


def _conv_transpose_with_dynamic_pads(
    X: Array, W: Array, pads: Array | None = None, B: Array | None = None, *, auto_pad: str = "NOTSET", **window: Any
) -> Array:
    """Return the ConvTranspose whose pads are an input. SAME overrides that input; VALID does not."""
    if auto_pad.startswith("SAME"):
        given: Sequence[int] = _same_pads(X.ndim - 2, W.shape[2:], window, upper=auto_pad == "SAME_UPPER")
    elif pads is None:
        raise ValueError("ConvTransposeWithDynamicPads has no pads.")
    else:
        given = [int(each) for each in pads]
    return conv_transpose(X, W, B, pads=given, **window)


def _same_pads(rank: int, kernel: Sequence[int], window: dict[str, Any], *, upper: bool) -> list[int]:
    ones, zeros = [1] * rank, [0] * rank
    columns = zip(
        kernel,
        window.get("strides", ones),
        window.get("dilations", ones),
        window.get("output_padding", zeros),
        strict=True,
    )
    axes = [clamped_same_axis(*numbers, upper=upper) for numbers in columns]
    return [axis.begin for axis in axes] + [axis.end for axis in axes]


_contrib = partial(operator, domain="com.microsoft")
_POOL = ("kernel_shape", "strides", "pads", "auto_pad", "ceil_mode")
_FUSED = (*CONVOLUTION, "activation", "activation_params")

CONTRIB_OPS: list[type[OpRun]] = [
    _contrib("QLinearConv", partial(_in_layout, qlinear_conv), *CONVOLUTION, "channels_last"),
    _contrib(
        "QLinearAveragePool", partial(_in_layout, qlinear_average_pool), *_POOL, "count_include_pad", "channels_last"
    ),
    _contrib("NhwcMaxPool", partial(_in_layout, max_pool, channels_last=1), *WINDOW, "ceil_mode"),
    _contrib("NhwcConv", partial(_in_layout, conv, channels_last=1), *CONVOLUTION),
    _contrib("FusedConv", _fused_conv, *_FUSED),
    _contrib("NhwcFusedConv", partial(_fused_conv, channels_last=1), *_FUSED),
    _contrib(
        "ConvTransposeWithDynamicPads",
        _conv_transpose_with_dynamic_pads,
        *("kernel_shape", "strides", "dilations", "output_padding", "group", "auto_pad"),
    ),
]
"""A part of ``padfix.kernels.reference_ops.SPEC_OPS``."""
