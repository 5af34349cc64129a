"""Answers for operators of sparse and ragged tensors: coordinates, lengths, where rows begin and which they are."""

from __future__ import annotations

import math

import numpy as np

from padfix.proof.executors import Array
from padfix.proof.questions import Answer, Question

PARTITIONS = 3
"""Where the partitions of RaggedTensorToTensor begin among its inputs."""

_MOST_ROOM = 1 << 20
"""Elements of a dense tensor of which places are chosen."""

_MOST_AXES = 16


def dense_shape(question: Question) -> Array | None:
    """Return lengths of a tensor that has room for as many elements as are given."""
    indices = question.shape()
    if indices is None or not question.array.size:
        return None
    least = math.ceil((indices[0] if indices else 1) ** (1 / question.array.size))
    return question.filled(least + 1, least + 3)


def same_dense_shape(question: Question) -> Array | None:
    """Return another shape of as many elements: that of the sparse tensor, its last lengths multiplied."""
    shape, count = question.other(1), question.array.size
    if shape is None or not count:
        return None
    lengths = [int(length) for length in shape.reshape(-1)]
    kept = lengths[: count - 1]
    return np.array([*kept, math.prod(lengths[len(kept) :]), *[1] * (count - len(kept) - 1)])


def coordinates(place: int) -> Answer:
    """Return what gives rising coordinates, each once, in the shape that the operator reads at ``place``."""

    def answer(question: Question) -> Array | None:
        shape, indices = question.other(place), question.array
        if shape is None or not shape.size or (shape < 1).any() or not indices.size:
            return None
        lengths = [int(length) for length in shape.reshape(-1)]
        number, room = indices.size // len(lengths), math.prod(lengths)
        if number > room or room > _MOST_ROOM or len(lengths) > _MOST_AXES or indices.size % len(lengths):
            return None
        chosen = np.sort(question.random.choice(room, number, replace=False))
        return np.stack(np.unravel_index(chosen, lengths), 1).reshape(indices.shape)

    return answer


def splits(question: Question) -> Array | None:
    """Return where rows begin and end: of the next splits, or of the values, which come behind the last."""
    node, count = question.use.node, question.array.size
    is_gather = node.op_type == "RaggedGather"
    place = question.use.position + 1
    values = len(node.inputs) - (2 if is_gather else 1)
    shape = question.shape(place)
    if not count or not shape or place > values:
        return None
    rows = shape[0] - (place < values)
    inner = np.sort(question.random.integers(0, rows + 1, max(0, count - 2)))
    return np.array([0, *inner, rows][:count])


def partition(question: Question) -> Array | None:
    """Return where rows begin and end, or the row of each value, for RaggedTensorToTensor; values come before them."""
    node, place, count = question.use.node, question.use.position, question.array.size
    kinds = node.attribute("row_partition_types") or ()
    if kinds[place - PARTITIONS :][:1] == [b"VALUE_ROWIDS"]:
        before = question.other(place - 1)
        if before is None:
            return None
        rows = int(before.reshape(-1)[0]) if place == PARTITIONS + 1 and before.size else before.size
        return np.sort(question.below(rows), None).reshape(question.array.shape)
    is_last = place + 1 == len(node.inputs)
    shape = question.shape(1 if is_last else place + 1)
    if question.array.ndim != 1 or not count or not shape:
        return None
    rows = shape[0] - (not is_last)
    return np.array([0, *np.sort(question.random.integers(0, rows + 1, max(0, count - 2))), rows][:count])


def ragged_row(question: Question) -> Array | None:
    shape = question.shape()
    return question.below(shape[0] - 1) if shape else None


def stitched(question: Question) -> Array | None:
    """Return places behind those of the indices before."""
    before = 0
    for place in range(question.use.position):
        shape = question.shape(place)
        if shape is None:
            return None
        before += math.prod(shape)
    places = before + question.random.permutation(question.array.size)
    return np.asarray(places.reshape(question.array.shape))
