"""Pad of every version, from the ONNX specification; onnx.reference refuses the negative amounts that crop."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from padfix.kernels.windows import Array

_NUMPY_MODES: dict[str, Any] = {"edge": "edge", "reflect": "reflect", "wrap": "wrap"}


def pad_tensor(
    X: Array, pads: Sequence[int], value: Any = 0, axes: Sequence[int] | None = None, *, mode: str = "constant"
) -> Array:
    """Return ``X`` with ``pads`` (all begins, then all ends) added on ``axes``; negative amounts cut off first.

    Raises:
        ValueError: An unknown mode, or not two amounts an axis.
    """
    numbers = list(range(X.ndim)) if axes is None else [axis % X.ndim for axis in axes]
    if len(pads) != 2 * len(numbers):
        raise ValueError(f"{len(pads)} pads don't fit {len(numbers)} axes.")
    amounts = [(0, 0)] * X.ndim
    for place, number in enumerate(numbers):
        amounts[number] = int(pads[place]), int(pads[place + len(numbers)])
    kept = tuple(
        slice(max(0, -begin), max(0, size - max(0, -end))) for size, (begin, end) in zip(X.shape, amounts, strict=True)
    )
    added = [(max(0, begin), max(0, end)) for begin, end in amounts]
    if mode == "constant":
        return np.pad(X[kept], added, mode="constant", constant_values=np.asarray(value, dtype=X.dtype))
    if mode not in _NUMPY_MODES:
        raise ValueError(f"mode {mode!r} is not one of constant, edge, reflect, wrap.")
    return np.pad(X[kept], added, mode=_NUMPY_MODES[mode])
