"""From a node where it stands to what a report draws of it. A picture is a help: where numbers lack there is none."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from fractions import Fraction

import numpy as np
from onnx import NodeProto, TensorProto, numpy_helper

from padfix.geometry import padding, resampling, transposed
from padfix.graph import attributes
from padfix.graph.scopes import Scope
from padfix.operators.reading import read
from padfix.operators.resample import Resample
from padfix.operators.transposed import TransposedWindow
from padfix.operators.window import Window
from padfix.operators.written import SAME
from padfix.results.illustration import Illustration, Samples, Sampling, WindowAxis, Windows

MOST_TAPS = 64
MOST_SAMPLES = 16
EXAMPLE_SIZE = 6

_ERRORS = (ValueError, ArithmeticError, IndexError, TypeError)
"""What nonsense in a model (infinite scales, modes that do not exist) may raise."""


def illustrate_window(window: Window) -> Windows | None:
    """Return what can be drawn of a window, wherever it was read, or None."""
    try:
        return _windows(window.op_type, [_window_axis(window, axis) for axis in range(window.rank)])
    except _ERRORS:
        return None


def illustrate(scope: Scope, node: NodeProto) -> Illustration | None:
    """Return what can be drawn of a node, or None."""
    try:
        match read(scope, node):
            case Window() as window:
                return illustrate_window(window)
            case TransposedWindow() as window:
                axes = [_transposed_axis(window, axis) for axis in range(window.rank)]
                return _windows(window.op_type, axes, is_transposed=True)
            case Resample() as resize:
                return _samples(resize)
    except _ERRORS:
        return None
    return None


def with_rewrite(
    before: Illustration | None, nodes: Sequence[NodeProto], tensors: Sequence[TensorProto]
) -> Illustration | None:
    """Return ``before`` with what the nodes that take the operator's place say."""
    if not isinstance(before, Samples):
        return before
    constants = {tensor.name: tensor for tensor in tensors}
    try:
        return dataclasses.replace(before, rewritten=_rewritten(before, nodes, constants))
    except _ERRORS:
        return before


def _windows(op_type: str, axes: Sequence[WindowAxis | None], *, is_transposed: bool = False) -> Windows | None:
    known = [axis for axis in axes if axis is not None]
    if len(known) < len(axes) or any(axis.windows < 1 or axis.size < 1 for axis in known):
        return None
    if all((axis.kernel, axis.begin, axis.end) == (1, 0, 0) for axis in known):
        return None  # windows of one element each, and no pads: nothing to see
    return Windows(op_type, tuple(known), is_transposed)


def _window_axis(window: Window, axis: int) -> WindowAxis | None:
    taps, stride, dilation, size = window.kernel[axis], window.strides[axis], window.dilations[axis], window.sizes[axis]
    if taps is None or taps > MOST_TAPS:
        return None
    is_example = not isinstance(size, int)
    if not isinstance(size, int):
        size = max(padding.effective_kernel(taps, dilation), 2 * stride) + 1
    if window.auto_pad in SAME:
        pair = padding.same_padding(size, taps, stride, dilation, upper=window.auto_pad == "SAME_UPPER")
        count = padding.same_output_size(size, stride)
    else:
        pair = window.explicit_pads[axis]
        ceil_mode = window.written.ceil_mode
        count = padding.window_output_size(size, taps, stride, dilation, *pair, ceil_mode=ceil_mode)
    return WindowAxis(size, taps, stride, dilation, *pair, count, is_example)


def _transposed_axis(window: TransposedWindow, axis: int) -> WindowAxis | None:
    taps, stride, dilation, size = window.kernel[axis], window.strides[axis], window.dilations[axis], window.sizes[axis]
    found = window.axis(axis)
    if taps is None or taps > MOST_TAPS or found is None:
        return None
    is_example = not isinstance(size, int)
    if not isinstance(size, int):
        size = 3
    cut = transposed.natural_output_size(size, taps, stride, dilation, found.begin, found.end)
    return WindowAxis(cut, taps, stride, dilation, found.begin, found.end, size, is_example)


def _samples(resize: Resample) -> Samples | None:
    factors = resize.factors()
    if factors is None and resize.shape is None and resize.axes is None:
        factors = resize.scales
    if not factors or not all(factor > 0 for factor in factors) or resize.coordinates == "tf_crop_and_resize":
        return None
    axis = max(range(len(factors)), key=lambda place: abs(math.log(factors[place])))
    scale = factors[axis]
    length = resize.shape[axis] if resize.shape is not None else None
    size = length if isinstance(length, int) and length > 0 else EXAMPLE_SIZE
    output = int(scale * size) if isinstance(scale, Fraction) else resampling.output_size(size, scale)
    if output < 1:
        return None
    default = None
    if resize.is_legacy:
        written = _legacy(resize, size, output, float(scale))
        default = _named("half_pixel", resize.mode, "round_prefer_floor", size, output, scale)
    else:
        written = _named(resize.coordinates, resize.mode, resize.nearest_mode, size, output, scale)
    return Samples(resize.op_type, axis, size, output, scale, written, None, default, size != length)


def _legacy(resize: Resample, size: int, output: int, scale: float) -> Sampling:
    shown = min(output, MOST_SAMPLES)
    positions = tuple(float(np.float32(index) / np.float32(scale)) for index in range(shown))
    if resize.mode == "linear":
        return Sampling(f"{resize.op_type}, linear", positions, tuple(_neighbours(x, size) for x in positions))
    reads = resampling.legacy_nearest_indices(size, scale, output)[:shown]
    rounding = "down" if scale >= 1 else "up"
    return Sampling(f"{resize.op_type}, nearest, rounded {rounding}", positions, tuple((each,) for each in reads))


def _of_node(node: NodeProto, size: int, output: int, scale: float | Fraction) -> Sampling | None:
    coordinates = attributes.text(node, "coordinate_transformation_mode", "half_pixel")
    if coordinates == "tf_crop_and_resize":
        return None
    mode = attributes.text(node, "mode", "nearest")
    return _named(coordinates, mode, attributes.text(node, "nearest_mode", "round_prefer_floor"), size, output, scale)


def _named(coordinates: str, mode: str, rounding: str, size: int, output: int, scale: float | Fraction) -> Sampling:
    # The coordinates of a few elements, which depend on the whole output's length in some modes.
    if output > 1 << 16:
        raise ValueError("too long to be drawn")
    all_positions = resampling.source_coordinates(coordinates, size, output, scale)[:MOST_SAMPLES]
    positions = tuple(float(x) for x in all_positions)
    if mode == "nearest":
        reads = tuple((resampling.nearest_index(x, rounding, size),) for x in all_positions)
        return Sampling(f"{coordinates}, {rounding}", positions, reads)
    taps = _cubic_taps if mode == "cubic" else _neighbours
    return Sampling(f"{coordinates}, {mode}", positions, tuple(taps(x, size) for x in positions))


def _neighbours(x: float, size: int) -> tuple[int, ...]:
    low = int(np.floor(x))
    both = (low,) if x == low else (low, low + 1)
    return tuple(dict.fromkeys(min(max(each, 0), size - 1) for each in both))


def _cubic_taps(x: float, size: int) -> tuple[int, ...]:
    low = int(np.floor(x))
    return tuple(dict.fromkeys(min(max(each, 0), size - 1) for each in range(low - 1, low + 3)))


def _rewritten(before: Samples, nodes: Sequence[NodeProto], constants: Mapping[str, TensorProto]) -> Sampling | None:
    resizes = [node for node in nodes if node.op_type == "Resize"]
    for node in resizes:
        # Of two resizes one grows and one shrinks; their roundings say which is which.
        if len(resizes) > 1 and (attributes.text(node, "nearest_mode") == "floor") != (before.scale >= 1):
            continue
        sampling = _of_node(node, before.size, before.output, before.scale)
        return sampling and dataclasses.replace(sampling, title=f"Resize, {sampling.title}")
    for node in nodes:
        if node.op_type == "Gather" and attributes.integer(node, "axis", 0) == before.axis:
            tensor = constants.get(node.input[1])
            if tensor is not None:
                indices = numpy_helper.to_array(tensor).ravel()[:MOST_SAMPLES]
                reads = tuple((int(index),) for index in indices)
                return Sampling("Gather with these indices", tuple(float(index) for index in indices), reads)
    return None
