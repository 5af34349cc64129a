"""Conv of any number of spatial axes, from the ONNX specification (versions 1, 11 and 22 mean the same)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod

import numpy as np

from padfix.kernels.windows import Array, WindowAxis, pad, resolve, view

LARGEST_COLUMNS = 1 << 23
"""Elements of the unfolded input that are held at a time (64 MiB of float64); larger inputs are walked in slabs."""


def conv(
    X: Array,
    W: Array,
    B: Array | None = None,
    *,
    kernel_shape: Sequence[int] | None = None,
    strides: Sequence[int] | None = None,
    dilations: Sequence[int] | None = None,
    pads: Sequence[int] | None = None,
    auto_pad: str = "NOTSET",
    group: int = 1,
) -> Array:
    """Return the convolution ``[N, M, *output]`` of ``X [N, C, *size]`` by ``W [M, C / group, *kernel]``.

    Sums are accumulated in float64 and cast to the dtype of ``X`` once, so the result is the specification's to the
    last rounding. ``auto_pad`` wins over ``pads``.

    Raises:
        ValueError: Shapes that don't fit together.
    """
    if kernel_shape and list(kernel_shape) != list(W.shape[2:]):
        raise ValueError(f"kernel_shape {list(kernel_shape)} contradicts the weights of shape {list(W.shape)}.")
    if X.ndim != W.ndim or X.shape[1] != W.shape[1] * group or W.shape[0] % group:
        raise ValueError(f"Weights {list(W.shape)} in {group} groups don't fit an input of shape {list(X.shape)}.")
    axes = resolve(X.shape[2:], W.shape[2:], strides, dilations, pads, auto_pad)
    padded = pad(X.astype(np.float64), axes, 0.0)
    weights = W.astype(np.float64).reshape(group, W.shape[0] // group, -1)
    result = np.empty((X.shape[0], W.shape[0], *(axis.output for axis in axes)), dtype=np.float64)
    for part, rows in _slabs(X.shape[1], axes):
        for item in range(X.shape[0]):
            taps = view(padded[(item, slice(None), _extent(axes[0], rows))], [part, *axes[1:]])
            columns = taps.reshape(group, weights.shape[2], -1)
            result[(item, slice(None), rows)] = np.matmul(weights, columns).reshape(result[item][:, rows].shape)
    if B is not None:
        result += B.astype(np.float64).reshape(-1, *[1] * len(axes))
    return result.astype(X.dtype)


def _slabs(channels: int, axes: Sequence[WindowAxis]) -> list[tuple[WindowAxis, slice]]:
    """Cut the first spatial axis so that one slab's unfolded input stays within :data:`LARGEST_COLUMNS`."""
    per_row = channels * prod(axis.kernel for axis in axes) * prod(axis.output for axis in axes[1:])
    first = axes[0]
    rows = max(1, min(first.output, LARGEST_COLUMNS // max(1, per_row)))
    starts = range(0, first.output, rows)
    slices = [slice(start, min(start + rows, first.output)) for start in starts]
    return [(replace(first, output=each.stop - each.start), each) for each in slices]


def _extent(axis: WindowAxis, rows: slice) -> slice:
    """Return the elements of the padded first axis that the windows ``rows`` touch."""
    start = rows.start * axis.stride
    return slice(start, start + replace(axis, output=rows.stop - rows.start).span)
