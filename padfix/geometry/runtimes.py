"""What ONNX Runtime 1.31.1 makes of SAME and of mode nearest, one axis at a time, where it is not the specification's.

Measured, not read: every kernel, stride and length, and every pair of lengths, of a sweep was run, and the arithmetic
below is the one that fits. Notation as in :mod:`padfix.geometry.padding` and :mod:`padfix.geometry.resampling`.
"""

from __future__ import annotations

import math

import numpy as np

from padfix.geometry.padding import effective_kernel, same_output_size, same_padding, window_output_size

ONNX_RUNTIME = "ONNX Runtime 1.31.1"
"""Its CPU kernels were run beside the specification's; a test measures them again on the installed version."""


def unclamped_total(size: int, span: int, stride: int) -> int:
    """Return the total of SAME before it is cut to 0, for a kernel that spans ``span`` elements."""
    return (same_output_size(size, stride) - 1) * stride + span - size


def begin_of_total(total: int, *, upper: bool, pool: bool) -> int:
    """Return the elements that ONNX Runtime pads at the begin; below 0 it skips as many.

    A negative total is not cut to 0 but halved towards 0; convolutions add one to it before that.
    """
    if total >= 0:
        return total // 2 if upper else total - total // 2
    raised = total + (0 if upper else 1) + (0 if pool else 1)
    return -(-raised // 2) if raised < 0 else 0


def pool_axis(
    size: int, kernel: int, stride: int, dilation: int, *, upper: bool, ceil_mode: bool = False
) -> tuple[int, int]:
    """Return the begin pad and the output length of a pool with SAME: pads are those of the undilated kernel."""
    total = unclamped_total(size, kernel, stride)
    begin = begin_of_total(total, upper=upper, pool=True)
    if -stride < size + total - effective_kernel(kernel, dilation) < 0:
        return begin, 1  # its division rounds towards 0
    return begin, window_output_size(size, kernel, stride, dilation, begin, total - begin, ceil_mode=ceil_mode)


def pool_agrees(
    size: int,
    kernel: int,
    stride: int,
    dilation: int,
    *,
    upper: bool,
    ceil_mode: bool = False,
    counts_pads: bool = False,
) -> bool:
    """Whether ONNX Runtime's pools give what the specification does on an axis with SAME.

    With ``counts_pads`` (count_include_pad) the elements that a window has within the pads count as well; those after a
    negative end pad don't.
    """
    begin, end = same_padding(size, kernel, stride, dilation, upper=upper)
    output = same_output_size(size, stride)
    if pool_axis(size, kernel, stride, dilation, upper=upper, ceil_mode=ceil_mode) != (begin, output):
        return False
    last = (output - 1) * stride - begin + effective_kernel(kernel, dilation)
    own_end = unclamped_total(size, kernel, stride) - begin
    return not counts_pads or last <= size + own_end or own_end == end


def convolution_agrees(size: int, kernel: int, stride: int, *, upper: bool) -> bool:
    """Whether ONNX Runtime's convolutions do so; with dilations they refuse to run."""
    begin, _ = same_padding(size, kernel, stride, upper=upper)
    return begin_of_total(unclamped_total(size, kernel, stride), upper=upper, pool=False) == begin


MEASURED_MODES = frozenset({"asymmetric", "half_pixel", "pytorch_half_pixel"})
"""Coordinate transformations whose arithmetic is known."""

_TIE = 1e-6


def runtime_nearest_indices(mode: str, nearest_mode: str, size: int, output: int, scale: float) -> list[int]:
    """Return the input index that each output index copies, for ``mode`` one of :data:`MEASURED_MODES`.

    Positions are computed in float32 from a float32 scale, also where the scale comes from ``sizes`` and is ``output /
    size``; those within a millionth of a half count as a half when they are rounded.
    """
    index, factor, half = np.arange(output, dtype=np.float32), np.float32(scale), np.float32(0.5)
    if mode == "asymmetric":
        position = index / factor
    elif mode == "pytorch_half_pixel" and output == 1:
        position = np.zeros(1, np.float32)
    else:
        position = (index + half) / factor - half
    return [min(max(_rounded(float(x), nearest_mode), 0), size - 1) for x in position]


def _rounded(x: float, nearest_mode: str) -> int:
    if nearest_mode == "floor":
        return math.floor(x)
    if nearest_mode == "ceil":
        return math.ceil(x)
    whole = math.floor(x)
    if abs(x - whole - 0.5) < _TIE:
        return whole + (nearest_mode == "round_prefer_ceil")
    return math.floor(x + 0.5)
