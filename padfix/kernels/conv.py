"""Conv of any number of spatial axes, from the ONNX specification (versions 1, 11 and 22 mean the same)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import prod
from typing import Unpack

import numpy as np

from padfix.kernels.windows import Array, Window, WindowAxis, add_bias, pad, require_kernel_shape, resolve, view

LARGEST_COLUMNS = 1 << 23
"""Elements of the unfolded input that are held at a time (64 MiB of float64); larger inputs are walked in slabs."""


def conv(
    X: Array,
    W: Array,
    B: Array | None = None,
    *,
    kernel_shape: Sequence[int] | None = None,
    group: int = 1,
    **window: Unpack[Window],
) -> Array:
    """Return the convolution ``[N, M, *output]`` of ``X [N, C, *size]`` by ``W [M, C / group, *kernel]``.

    Sums are accumulated in float64 and cast to the dtype of ``X`` once, so the result is the specification's to the
    last rounding. ``auto_pad`` wins over ``pads``.

    Raises:
        ValueError: Shapes that don't fit together.
    """
    require_kernel_shape(W, kernel_shape)
    if X.ndim != W.ndim or X.shape[1] != W.shape[1] * group or W.shape[0] % group:
        raise ValueError(f"Weights {list(W.shape)} in {group} groups don't fit an input of shape {list(X.shape)}.")
    axes = resolve(X.shape[2:], W.shape[2:], **window)
    padded = pad(X.astype(np.float64), axes, 0.0)
    weights = W.astype(np.float64)
    result = np.empty((X.shape[0], W.shape[0], *(axis.output for axis in axes)), dtype=np.float64)
    for items, rows in _slabs(X.shape[0], X.shape[1], axes):
        first = replace(axes[0], output=rows.stop - rows.start)
        start = rows.start * first.stride
        part = padded[items, :, start : start + first.span]
        result[items, :, rows] = _contracted(part, weights, [first, *axes[1:]], group)
    return add_bias(result, B).astype(X.dtype)


def _slabs(items: int, channels: int, axes: Sequence[WindowAxis]) -> Iterator[tuple[slice, slice]]:
    """Cut the items and the first spatial axis so that one unfolded slab stays within :data:`LARGEST_COLUMNS`."""
    per_row = max(1, channels * prod(axis.kernel for axis in axes) * prod(axis.output for axis in axes[1:]))
    height = axes[0].output
    rows = max(1, min(height, LARGEST_COLUMNS // per_row))
    together = max(1, LARGEST_COLUMNS // (per_row * rows)) if rows == height else 1
    for item in range(0, items, together):
        for row in range(0, height, rows):
            yield slice(item, min(item + together, items)), slice(row, min(row + rows, height))


def _contracted(padded: Array, weights: Array, axes: Sequence[WindowAxis], group: int) -> Array:
    """View the input as ``[N, C, *kernel, *output]`` and contract channels and kernel: the definition itself."""
    outputs, contracted = weights.shape[0], prod(weights.shape[1:])
    kept = (padded.shape[0], *(axis.output for axis in axes))
    # All groups at once: a network's depthwise convolutions have hundreds.
    taps = np.moveaxis(view(padded, axes), 0, weights.ndim - 1).reshape(group, contracted, prod(kept))
    result = weights.reshape(group, outputs // group, contracted) @ taps
    return np.moveaxis(result.reshape(outputs, *kept), 0, 1)
