"""Convolutions and pools on quantized integers, from the ONNX specification and ONNX Runtime's contrib operators.

A quantized value ``q`` stands for ``(q - zero_point) * scale``; padding stands for 0, so its value is the zero point.
Rounding is half to even and happens before the output's zero point is added: onnx.reference 1.23 adds it first, which
turns ``2.5`` into ``3`` instead of ``2`` where the zero point is odd.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from padfix.kernels.conv import conv
from padfix.kernels.pool import average_pool
from padfix.kernels.windows import Array, pad, resolve


def conv_integer(
    X: Array, W: Array, x_zero_point: Array | None = None, w_zero_point: Array | None = None, **attributes: Any
) -> Array:
    """Return the int32 convolution of ``X - x_zero_point`` by ``W - w_zero_point`` (8-bit integers).

    ``X`` is ``[N, C, *size]``, ``W`` ``[M, C / group, *kernel]``, and the window as :func:`padfix.kernels.conv.conv`
    takes it. ``w_zero_point`` is one number or one for each output channel; absent ones are 0. Sums beyond 32 bits wrap
    around.
    """
    return _accumulated(X, W, x_zero_point, w_zero_point, attributes).astype(np.int32)


def qlinear_conv(
    X: Array,
    x_scale: Array,
    x_zero_point: Array,
    W: Array,
    w_scale: Array,
    w_zero_point: Array,
    y_scale: Array,
    y_zero_point: Array,
    B: Array | None = None,
    **attributes: Any,
) -> Array:
    """Return ``saturate(round(sum * (x_scale * w_scale / y_scale)) + y_zero_point)`` in the type of ``y_zero_point``.

    ``w_scale`` and ``w_zero_point`` are one number or one for each output channel. The scales are multiplied in single
    precision, which is their type. ``B`` is int32 with the scale ``x_scale * w_scale`` and zero point 0.
    """
    total = _accumulated(X, W, x_zero_point, w_zero_point, attributes)
    if B is not None:
        total += _by_channel(B, total.ndim).astype(np.int64)
    scale = np.float32(x_scale).reshape(()) * np.asarray(w_scale, np.float32) / np.float32(y_scale).reshape(())
    scaled = total.astype(np.int32).astype(np.float32) * _by_channel(scale, total.ndim)
    return _saturated(scaled, y_zero_point)


def qlinear_average_pool(
    X: Array,
    x_scale: Array,
    x_zero_point: Array | None,
    y_scale: Array,
    y_zero_point: Array | None = None,
    **attributes: Any,
) -> Array:
    """Return the mean of each window of 8-bit ``X [N, C, *size]``, with the scale and zero point of the output.

    An operator of ONNX Runtime, with its ways: with ``count_include_pad`` a window counts as its whole kernel, whatever
    ceil mode lets it reach, and the output's zero point is added before rounding (half to even). Where one window is
    the whole input, ONNX Runtime adds it after rounding; the two differ on ties alone. Absent zero points are 0.
    """
    values = (X.astype(np.float32) - np.float32(_scalar(x_zero_point))) * np.float32(x_scale).reshape(())
    if attributes.pop("count_include_pad", 0):
        axes = resolve(X.shape[2:], **attributes)
        values = pad(values, axes, 0.0)
        attributes = {"kernel_shape": attributes["kernel_shape"], "strides": attributes.get("strides")}
    zero_point = np.zeros((), X.dtype) if y_zero_point is None else y_zero_point
    scaled = average_pool(values, **attributes) / np.float32(y_scale).reshape(())
    return _clipped(np.rint(scaled + np.float32(_scalar(zero_point))), zero_point.dtype)


def _accumulated(
    X: Array, W: Array, x_zero_point: Array | None, w_zero_point: Array | None, attributes: dict[str, Any]
) -> Array:
    """Return the sums as int64; float64 adds them up without rounding."""
    data = X.astype(np.float64) - _scalar(x_zero_point)
    weights = W.astype(np.float64)
    if w_zero_point is not None:
        weights -= _by_channel(w_zero_point, W.ndim, axis=0).astype(np.float64)
    return conv(data, weights, **attributes).astype(np.int64)


def _scalar(zero_point: Array | None) -> float:
    return 0.0 if zero_point is None else float(np.asarray(zero_point).reshape(()))


def _by_channel(values: Array, rank: int, axis: int = 1) -> Array:
    """Return one value, or one a channel, shaped to meet an array of ``rank`` axes with the channels on ``axis``."""
    values = np.asarray(values)
    if values.size == 1:
        return values.reshape(())
    return values.reshape([-1 if each == axis else 1 for each in range(rank)])


def _saturated(scaled: Array, zero_point: Array) -> Array:
    return _clipped(np.rint(scaled).astype(np.float64) + _scalar(zero_point), zero_point.dtype)


def _clipped(rounded: Array, dtype: np.dtype[Any]) -> Array:
    limits = np.iinfo(dtype)
    return np.clip(rounded, limits.min, limits.max).astype(dtype)


def dequantize_linear(x: Array, scale: Array, zero_point: Array | None = None, *, axis: int = 1) -> Array:
    """Dequantize as DequantizeLinear-10 and -13 do: ``(x - zero_point) * scale``, in the scale's dtype.

    Args:
        x: Any shape; int8, uint8 or int32.
        scale: A scalar, or one value for each entry of ``axis``.
        zero_point: The scale's shape and x's dtype; zero when absent.
        axis: The axis of values that are not scalars; may be negative.

    Returns:
        x's shape, the scale's dtype.
    """
    along = [1] * x.ndim
    if x.ndim and np.size(scale) > 1:
        along[axis] = -1
    difference = x.astype(np.int64) - (0 if zero_point is None else np.reshape(zero_point, along).astype(np.int64))
    result: Array = (difference.astype(scale.dtype) * np.reshape(scale, along)).reshape(x.shape)
    return result
