"""BatchNormalization, LRN, LpNormalization and Softmax's family, where onnx.reference departs from the specification.

It normalises BatchNormalization-7 and -9 by the batch's own statistics even at inference, forgets most channels in LRN,
adds up numbers with their signs for the first norm of LpNormalization, and gives Softmax before version 13 the meaning
of version 13. Legacy models hold all of them.
"""

from __future__ import annotations

import numpy as np

from padfix.kernels.windows import Array

EPSILON = float(np.float32(1e-5))
"""What a norm adds to the variance where it doesn't say: attributes are of single precision, whatever the data are."""


def batch_normalization(
    X: Array, scale: Array, B: Array, mean: Array, variance: Array, *, epsilon: float = EPSILON
) -> Array:
    """Return ``(X - mean) / sqrt(variance + epsilon) * scale + B`` (inference), computed in float64.

    The parameters hold one number a channel, or (version 7 with ``spatial`` 0) one an element of ``[C, *size]``.
    """
    ones = [1] * (X.ndim - 1 - scale.ndim)
    factor, shift, centre, spread = (
        each.astype(np.float64).reshape(*each.shape, *ones) for each in (scale, B, mean, variance)
    )
    factor = factor / np.sqrt(spread + float(epsilon))
    return ((X.astype(np.float64) - centre) * factor + shift).astype(X.dtype)


def training_batch_normalization(
    X: Array, scale: Array, B: Array, mean: Array, variance: Array, *, epsilon: float = EPSILON, momentum: float = 0.9
) -> tuple[Array, Array, Array]:
    """Return the output and the running mean and variance of BatchNormalization-14 in training mode."""
    axes = (0, *range(2, X.ndim))
    wide = X.astype(np.float64)
    centre, spread = wide.mean(axis=axes), wide.var(axis=axes)
    normalised = batch_normalization(X, scale, B, centre, spread, epsilon=epsilon)
    keep = float(momentum)
    return (
        normalised,
        (mean * keep + centre * (1 - keep)).astype(mean.dtype),
        (variance * keep + spread * (1 - keep)).astype(variance.dtype),
    )


def batch_statistics(X: Array, *, epsilon: float = EPSILON) -> tuple[Array, Array]:
    """Return the mean of each channel, and the inverse of its deviation, as ONNX Runtime saves them."""
    axes, wide = (0, *range(2, X.ndim)), X.astype(np.float64)
    inverse = 1 / np.sqrt(wide.var(axis=axes) + epsilon)
    return wide.mean(axis=axes).astype(X.dtype), inverse.astype(X.dtype)


def local_response_normalization(
    X: Array, *, size: int, alpha: float = 1e-4, beta: float = 0.75, bias: float = 1.0
) -> Array:
    """Return ``X / (bias + alpha / size * sum(X ** 2 over size neighbouring channels)) ** beta``, in float64.

    Of an even ``size`` the window reaches one channel further up than down.
    """
    wide = X.astype(np.float64)
    below, above = (size - 1) // 2, size // 2
    padded = np.pad(wide**2, [(0, 0), (below, above)] + [(0, 0)] * (X.ndim - 2))
    total = np.zeros_like(wide)
    for offset in range(size):
        total += padded[:, offset : offset + X.shape[1]]
    return np.asarray(wide / (float(bias) + float(alpha) / size * total) ** float(beta)).astype(X.dtype)


def lp_normalization(X: Array, *, axis: int = -1, p: int = 2) -> Array:
    """Return ``X`` divided by its norm along one axis, in float64; zeros where that is 0."""
    wide = X.astype(np.float64)
    norm = np.linalg.norm(wide, ord=p, axis=axis, keepdims=True)
    return np.asarray(np.divide(wide, norm, out=np.zeros_like(wide), where=norm != 0)).astype(X.dtype)


def flatten_from(X: Array, axis: int) -> Array:
    """Return ``X`` as the matrix that Softmax, LogSoftmax and Hardmax before version 13 work on, row by row."""
    axis = axis % X.ndim if X.ndim else 0
    return X.reshape(int(np.prod(X.shape[:axis], dtype=np.int64)), -1)


def softmax(X: Array, axis: int = -1) -> Array:
    """Return the softmax along one axis, in float64 and cast back."""
    wide = X.astype(np.float64)
    powers = np.exp(wide - wide.max(axis=axis, keepdims=True))
    return np.asarray(powers / powers.sum(axis=axis, keepdims=True)).astype(X.dtype)


def log_softmax(X: Array, axis: int = -1) -> Array:
    """Return the logarithm of the softmax along one axis, in float64 and cast back."""
    wide = X.astype(np.float64)
    shifted = wide - wide.max(axis=axis, keepdims=True)
    return np.asarray(shifted - np.log(np.exp(shifted).sum(axis=axis, keepdims=True))).astype(X.dtype)


def hardmax(X: Array, axis: int = -1) -> Array:
    """Return 1 at the first maximum along one axis and 0 elsewhere."""
    result = np.zeros_like(X)
    np.put_along_axis(result, np.expand_dims(X.argmax(axis=axis), axis), 1, axis=axis)
    return result
