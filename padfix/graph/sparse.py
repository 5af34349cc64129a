"""Sparse constants: what they hold, element by element."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from onnx import SparseTensorProto, TensorProto

LARGEST = 1 << 26
"""Constants of more elements stay sparse."""


def dense(sparse: SparseTensorProto, read: Callable[[TensorProto], np.ndarray | None]) -> np.ndarray | None:
    """Return all elements of a sparse tensor, of its own shape and type; those that it does not list are 0.

    Its places are counted in row-major order, or are told along each axis: one row an element.
    Source: https://onnx.ai/onnx/repo-docs/IR.html, ``SparseTensorProto`` in onnx.proto.

    Args:
        sparse: The tensor.
        read: Gives the elements of a tensor that may lie in another file; None where they can't be had.

    Returns:
        None where it can't be read, has places outside, or is very long.
    """
    shape = tuple(sparse.dims)
    values, places = read(sparse.values), read(sparse.indices)
    if values is None or places is None or math.prod(shape) > LARGEST or values.ndim != 1:
        return None
    result = np.zeros(shape, values.dtype)
    try:
        if places.ndim == 1:
            result.reshape(-1)[places] = values
        else:
            result[tuple(places.T)] = values
    except (IndexError, ValueError):
        return None
    return result
