"""Fourier transforms of real and complex tensors, which are pairs of parts here.

From opset 17 on there is an operator for them, DFT. ONNX Runtime's is right to float32's last bits where the length is
a power of two, and wrong from the fourth digit on where it is not (by Bluestein's algorithm in float32). So lengths
that are known and no such power, and all known lengths before opset 17, are products with the matrix of the transform.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from padfix.sources.tf_ops.tensor import INTEGER, Builder, Tensor, concatenated, count_up

Parts = tuple[Tensor, Tensor]

_FIRST_OPSET = 17

_RANKS = {"": 1, "2D": 2, "3D": 3}

FORWARD = {f"{kind}{suffix}": rank for kind in ("FFT", "IFFT", "RFFT") for suffix, rank in _RANKS.items()}
"""Transforms with complex results, and how many of the last axes they go along."""

TO_REAL = {f"IRFFT{suffix}": rank for suffix, rank in _RANKS.items()}
"""Transforms back to real numbers, likewise."""


def transformed(builder: Builder, node: Any, read: Sequence[Sequence[Tensor]]) -> Parts:
    """Return a transform with a complex result: of complex numbers, back from them, or of real ones."""
    is_inverse, is_real = node.type.startswith("I"), node.type.startswith("R")
    parts: Sequence[Tensor] = read[0]
    axes = _axes(builder, node, FORWARD[node.type])
    for place, (axis, length) in enumerate(reversed(axes)):
        half = is_real and place == 0
        first, second = _along(builder, parts, axis, length, inverse=is_inverse, half=half)
        parts = first, _exactly_real(builder, second, axis, length) if half and length is not None else second
    return parts[0], parts[1]


def _exactly_real(builder: Builder, imaginary: Tensor, axis: int, length: Tensor) -> Tensor:
    """Return the imaginary parts of real numbers' spectrum with zeros where there is none: first, and in the middle.

    A rounding error there would turn the angle of a negative number around.
    """
    twice = count_up(builder, length / 2 + 1, INTEGER) * 2
    none = builder.choose(twice.equal(length), 0, twice).equal(0)
    return builder.choose(none.reshape([-1, *[1] * (-axis - 1)]), 0.0, imaginary)


def real_inverse(builder: Builder, node: Any, parts: Parts) -> Tensor:
    """Return the transform back from half a spectrum, whose other half is its mirror image."""
    *others, (axis, length) = _axes(builder, node, TO_REAL[node.type])
    for other, size in others:
        first, second = _along(builder, parts, other, size, inverse=True, half=False)
        parts = first, second
    assert length is not None
    if length.known is not None and not _is_for_the_operator(builder, length.known):
        kept = length.known // 2 + 1
        return _products(builder, parts, axis, *_back_from_half(length.known), kept)[0]
    place = count_up(builder, length, INTEGER)
    mirrored = length - place
    is_first = place.less(length - length / 2)
    index = builder.choose(is_first, place, mirrored)
    sign = builder.choose(is_first, builder.constant(1, parts[0].dtype), builder.constant(-1, parts[0].dtype))
    tail = [-1, *[1] * (-axis - 1)]
    whole = parts[0].take(index, axis), parts[1].take(index, axis) * sign.reshape(tail)
    return _along(builder, whole, axis, length, inverse=True, half=False)[0]


def _axes(builder: Builder, node: Any, rank: int) -> list[tuple[int, Tensor | None]]:
    """Return the axes of a transform, counted from the last, and the lengths along them; None for the whole axis."""
    if len(node.input) < 2:
        return [(axis, None) for axis in range(-rank, 0)]
    lengths = builder.read(node.input[1]).cast(INTEGER)
    return [(axis, lengths.take(axis + rank).reshape([])) for axis in range(-rank, 0)]


def _is_for_the_operator(builder: Builder, length: int) -> bool:
    return bool(builder.ctx.opset >= _FIRST_OPSET and length & (length - 1) == 0)


def _along(
    builder: Builder, parts: Sequence[Tensor], axis: int, length: Tensor | None, *, inverse: bool, half: bool
) -> Sequence[Tensor]:
    """Return the transform along one axis, counted from the last; of one part where the numbers are real."""
    known = length.known if length is not None else parts[0].lengths([axis])[0].known
    if known is not None and not _is_for_the_operator(builder, known):
        return _products(builder, parts, axis, *_matrix(known, inverse=inverse, half=half), known)
    if builder.ctx.opset < _FIRST_OPSET:
        raise ValueError("a Fourier transform of a length that is computed needs opset 17 or newer")
    packed = [part.unsqueeze([-1]) for part in parts]
    joined = packed[0] if len(packed) == 1 else concatenated(packed, -1)
    attributes = {"axis": axis - 1, "inverse": int(inverse), "onesided": int(half)}
    inputs = [joined] if length is None else [joined, length]
    result = builder.node("DFT", inputs, parts[0].dtype, attributes)
    return result.take(0, -1), result.take(1, -1)


def _matrix(length: int, *, inverse: bool, half: bool) -> tuple[Any, Any]:
    """Return the cosines and sines that a transform multiplies with, a column for each result."""
    rows, columns = np.arange(length), np.arange(length // 2 + 1 if half else length)
    angles = np.outer(rows, columns) % length * (2 * np.pi / length)  # whole turns are taken out exactly
    return (np.cos(angles) / length, np.sin(angles) / length) if inverse else (np.cos(angles), -np.sin(angles))


def _back_from_half(length: int) -> tuple[Any, Any]:
    """Return the same for a transform back to real numbers: all but the first and the middle row count twice."""
    rows = np.arange(length // 2 + 1)
    weights = np.where((rows == 0) | (2 * rows == length), 1, 2) / length
    angles = np.outer(rows, np.arange(length)) % length * (2 * np.pi / length)
    return weights[:, None] * np.cos(angles), weights[:, None] * np.sin(angles)


def _products(
    builder: Builder, parts: Sequence[Tensor], axis: int, cosines: Any, sines: Any, kept: int
) -> Sequence[Tensor]:
    """Return ``(a + bi)(C + Si)`` along an axis, of which ``kept`` entries count; what lacks there is zeros."""
    dtype = parts[0].dtype
    size = parts[0].lengths([axis])[0].known
    if size is None or size > kept:
        parts = [part.take(np.arange(kept), axis) for part in parts]
    elif size < kept:
        cosines, sines = cosines[:size], sines[:size]
    swapped = None
    if axis != -1:
        rank = builder.ctx.get_rank(parts[0].name)
        if rank is None:
            raise ValueError("a Fourier transform along an inner axis of a tensor of unknown rank")
        swapped = [*range(rank)]
        swapped[axis], swapped[-1] = swapped[-1], swapped[axis]
        parts = [part.transpose(swapped) for part in parts]
    first, second = builder.constant(cosines, dtype), builder.constant(sines, dtype)
    real, imaginary = parts[0].matmul(first), parts[0].matmul(second)
    if len(parts) > 1:
        real, imaginary = real - parts[1].matmul(second), imaginary + parts[1].matmul(first)
    return [part.transpose(swapped) if swapped else part for part in (real, imaginary)]
