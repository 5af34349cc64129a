"""Sparse weights of a TensorFlow Lite file, written out with their zeros.

The format is that of the file's schema: the axes of the tensor, cut into blocks where there are some, are walked in
``traversalOrder``. On a dense axis every position is there; on a sparse one (compressed rows) ``arraySegments`` says
where the positions of each row begin in ``arrayIndices``. The values stand one after the other in that order.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from padfix.sources.tflite_schema import add_buffer, lengths, numpy_type, operators

_DENSE = 0


def write_dense(model: Any) -> None:
    """Replace sparse tensors by dense ones, and let readers of a DENSIFY read its input, in place."""
    for graph in model.subgraphs:
        for tensor in graph.tensors:
            if tensor.sparsity is not None:
                tensor.buffer = add_buffer(model, _dense(model, tensor))
                tensor.sparsity = None
        kept = []
        for operator, name in operators(model, graph):
            if name == "DENSIFY":
                graph.tensors[operator.outputs[0]].buffer = graph.tensors[operator.inputs[0]].buffer
            else:
                kept.append(operator)
        graph.operators = kept


def _dense(model: Any, tensor: Any) -> Any:
    """Return the values of a sparse tensor with zeros between them."""
    sparsity, shape = tensor.sparsity, lengths(tensor)
    data = np.asarray(model.buffers[tensor.buffer].data, np.uint8)
    values = np.frombuffer(data.tobytes(), numpy_type(tensor.type))
    order = [int(axis) for axis in sparsity.traversalOrder]
    blocked = [int(axis) for axis in (sparsity.blockMap if sparsity.blockMap is not None else ())]
    sizes = [1] * len(shape)
    for level, axis in enumerate(order):
        if axis >= len(shape):
            sizes[blocked[axis - len(shape)]] = int(sparsity.dimMetadata[level].denseSize)
    position = [np.zeros((), np.int64)] * len(shape)
    for axis, index in zip(order, _places(sparsity.dimMetadata), strict=True):
        if axis < len(shape):
            position[axis] = position[axis] + index * sizes[axis]
        else:
            position[blocked[axis - len(shape)]] = position[blocked[axis - len(shape)]] + index
    dense = np.zeros(shape, values.dtype)
    dense[tuple(position)] = values[: position[0].size]
    return dense


def _places(levels: Sequence[Any]) -> list[Any]:
    """Return for each level the position of every value, in the order of the values."""
    rows, found = np.zeros(1, np.int64), list[Any]()
    for level in levels:
        if level.format == _DENSE:
            counts = np.full(rows.shape, level.denseSize)
            index = np.tile(np.arange(level.denseSize), len(rows))
            next_rows = np.repeat(rows * level.denseSize, counts) + index
        else:
            segments = np.asarray(level.arraySegments.values, np.int64)
            counts = segments[rows + 1] - segments[rows]
            begun = np.cumsum(counts) - counts
            next_rows = np.repeat(segments[rows] - begun, counts) + np.arange(int(counts.sum()))
            index = np.asarray(level.arrayIndices.values, np.int64)[next_rows]
        found = [*(np.repeat(each, counts) for each in found), index]
        rows = next_rows
    return found
