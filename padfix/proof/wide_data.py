"""Data for a stretch by itself: what the probes never bring to it, so that every branch of it is reached.

Probes go through the whole network, and what arrives inside is calm: no value above a Clip's limit, none below a Relu's
zero behind a normalisation, no variance so small that an epsilon counts. So a stretch that is not the same in both
models also sees wide numbers, long tails, small ones, nearly constant ones; in 16 bits zeros as well, and so few
others that each weight stands alone.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

import numpy as np
from onnx import AttributeProto

from padfix.proof.compare import is_real, largest_of
from padfix.proof.constants import Constants
from padfix.proof.executors import Array
from padfix.proof.graph_view import NodeView

LARGEST_LIMIT = 1e4
"""Constants of the graph above this are no limits of values (minus infinity of a mask, say)."""

TAIL = 6.0
"""Long tails reach from two to the power of minus this to two to the power of this."""


_APART = {"sparse": 37, "very sparse": 131}
"""How far numbers stand apart where all others are zero: what reads them gives its weights one by one."""

_PERIOD = 65_537
"""How many different numbers there are; a prime, so that they meet others in every row and channel."""


def wide_data(
    values: Mapping[str, Array], free: Collection[str], limit: float
) -> Iterator[tuple[str, dict[str, Array]]]:
    """Yield (words for the data, other floats for the tensors in ``free``).

    ``limit`` is the largest constant that values are held against in the stretch, so that data goes beyond it.
    """
    if not free:
        return
    random = np.random.default_rng([0, 7])
    normal = random.standard_normal(_PERIOD)
    signs = random.integers(0, 2, _PERIOD) * 2.0 - 1.0
    kinds = [
        ("wide", normal * 2 * limit),
        ("long-tailed", signs * 2.0 ** random.uniform(-TAIL, TAIL, _PERIOD)),
        ("small", normal * 1e-3),
        ("nearly constant", 1.0 + 1e-5 * normal),
        ("nearly constant negative", -1.0 + 1e-5 * normal),
    ]
    if any(values[name].dtype.itemsize < 4 for name in free):  # coarse units, under which small weights and biases hide
        kinds.append(("zero", np.zeros(_PERIOD)))
        kinds += [(words, np.where(np.arange(_PERIOD) % apart, 0.0, signs)) for words, apart in _APART.items()]
    for words, numbers in kinds:
        held = {dtype: _within(numbers, dtype) for dtype in {values[name].dtype for name in free}}
        yield words, {name: _filled(array, held[array.dtype], random) for name, array in values.items() if name in free}
    for words, factor in (("enlarged", 16), ("reversed", -1)):
        yield words, {name: _times(array, factor) for name, array in values.items() if name in free}


def _filled(array: Array, numbers: Array, random: np.random.Generator) -> Array:
    """Return an array like ``array`` of these numbers over and over, from a place of its own on."""
    start = int(random.integers(_PERIOD))
    return np.resize(np.roll(numbers, start)[: max(array.size, 1)], array.shape)


def _within(numbers: Array, dtype: np.dtype[Any]) -> Array:
    most = _most(dtype)
    clipped: Array = np.clip(numbers, -most, most).astype(dtype)
    return clipped


def _times(array: Array, factor: int) -> Array:
    most = _most(array.dtype)
    with np.errstate(over="ignore"):
        product: Array = np.clip(array * array.dtype.type(factor), -most, most).astype(array.dtype)
    return product


def _most(dtype: np.dtype[Any]) -> float:
    return largest_of(dtype) / 64


def is_filled(array: Array) -> bool:
    """Whether one number was filled in all over, as in initial states and masks."""
    if not array.size:
        return False
    first = array.reshape(-1)[0]
    return bool(np.all(array == first)) and (array.size > 1 or first in (0, 1))


ARITHMETIC = frozenset(
    {
        "Add", "Sub", "Mul", "Div", "Neg", "Abs", "Max", "Min", "Sqrt", "Relu", "LeakyRelu", "PRelu", "Clip", "Conv",
        "ConvTranspose", "Gemm", "MatMul", "BatchNormalization", "MaxPool", "AveragePool", "GlobalAveragePool",
        "ReduceMean", "ReduceSum", "ReduceMax", "Identity", "Reshape", "Flatten", "Squeeze", "Unsqueeze", "Transpose",
        "Pad", "Concat", "Slice", "Split", "Gather", "Expand", "Tile", "Cast", "Constant",
    }
)  # fmt: skip
"""Operators without a function that a runtime approximates: what they give is off by parts of what they read."""

_MOST_CONSTANTS = 4096
"""Elements of a constant that may be added somewhere; larger ones are weights."""


def is_arithmetic(nodes: Iterable[NodeView]) -> bool:
    """Whether no operator of a stretch is a function that a runtime approximates."""
    return all(node.is_standard and node.op_type in ARITHMETIC for node in nodes)


def size_read(nodes: Iterable[NodeView], constants: Constants | None, arrays: Iterable[Array]) -> float:
    """Return the largest number that ``nodes`` read.

    Args:
        nodes: Nodes of a stretch.
        constants: Constants of their graph.
        arrays: What the stretch is fed.
    """
    known = {name for node in nodes for name in node.inputs if constants is not None and name in constants}
    found = [
        _largest(array)
        for name in known
        if constants is not None and math.prod(constants.shape(name)) <= _MOST_CONSTANTS
        if (array := constants.find(name)) is not None
    ]
    return max([0.0, *found, *map(_largest, arrays)])


def _largest(array: Array) -> float:
    if not is_real(array.dtype):
        return 0.0
    size = max(float(array.max(initial=0)), -float(array.min(initial=0)))
    if math.isfinite(size):  # so that all numbers are, which most arrays' are
        return size
    return float(np.abs(array, where=np.isfinite(array), out=np.zeros_like(array)).max(initial=0))


def largest_limit(nodes: Iterable[NodeView], constants: Constants | None) -> float:
    """Return the largest number that ``nodes`` hold values against: scalar constants and attributes; at least 4."""
    found = [4.0]
    for node in nodes:
        if node.proto is None:
            continue
        attributes = node.proto.attribute
        found.extend(abs(attribute.f) for attribute in attributes if attribute.type == AttributeProto.FLOAT)
        for name in node.inputs:
            if constants is not None and name in constants and math.prod(constants.shape(name)) == 1:
                array = constants.find(name)
                if array is not None and is_real(array.dtype):
                    found.append(abs(float(array.reshape(-1)[0])))
    return max(value for value in found if value <= LARGEST_LIMIT)
