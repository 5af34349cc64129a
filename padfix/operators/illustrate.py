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
from padfix.graph.scopes import Scope, normal_domain
from padfix.results.illustration import Drawable, Samples, Sampling, WindowAxis, Windows

MOST_TAPS = 64
MOST_SAMPLES = 16
EXAMPLE_SIZE = 6

_ERRORS = (ValueError, ArithmeticError, IndexError, TypeError)
"""What nonsense in a model (strides of 0, lists of a wrong length) may raise."""


def drawn(scope: Scope, index: int, node: NodeProto) -> Drawable | None:
    """Return what can be drawn of a node, or None."""
    try:
        if node.op_type in ("Resize", "Upsample") and normal_domain(node.domain) == "":
            return _samples(scope, node)
        return _windows(scope, index, node)
    except _ERRORS:
        return None


def redrawn(before: Drawable | None, nodes: Sequence[NodeProto], tensors: Sequence[TensorProto]) -> Drawable | None:
    """Return ``before`` with what the nodes that take the operator's place say."""
    if not isinstance(before, Samples):
        return before
    constants = {tensor.name: tensor for tensor in tensors}
    try:
        return dataclasses.replace(before, rewritten=_rewritten(before, nodes, constants))
    except _ERRORS:
        return before


def _windows(scope: Scope, index: int, node: NodeProto) -> Windows | None:
    from padfix.operators.inspection import record_of

    found = record_of(scope, index, node)
    if found is None:
        return None
    record, sizes = found
    if not record.kernel or record.strides is None or record.dilations is None or record.pads is None:
        return None
    is_transposed = node.op_type == "ConvTranspose"
    ceil_mode = attributes.integer(node, "ceil_mode", 0) == 1
    axes = []
    count = len(record.kernel)
    for place, kernel in enumerate(record.kernel):
        if kernel is None or not 0 < kernel <= MOST_TAPS:
            return None
        stride, dilation, size = record.strides[place], record.dilations[place], sizes[place]
        pair = record.pads[place], record.pads[place + count]
        taps = padding.effective_kernel(kernel, dilation)
        is_example = size is None
        if size is None:
            size = 3 if is_transposed else max(taps, 2 * stride) + 1
        if pair[0] is None or pair[1] is None:
            if is_transposed or not record.padding.startswith("SAME"):
                return None
            pair = padding.same_padding(size, kernel, stride, dilation, upper=record.padding == "SAME_UPPER")
        begin, end = pair
        assert begin is not None
        assert end is not None
        if is_transposed:
            full = transposed.natural_output_size(size, kernel, stride, dilation)
            axes.append(WindowAxis(full - begin - end, kernel, stride, dilation, begin, end, size, is_example))
            continue
        same = record.padding.startswith("SAME")
        windows = (
            padding.same_output_size(size, stride)
            if same
            else padding.window_output_size(size, kernel, stride, dilation, begin, end, ceil_mode=ceil_mode)
        )
        axes.append(WindowAxis(size, kernel, stride, dilation, begin, end, windows, is_example))
    if any(axis.windows < 1 or axis.size < 1 or axis.stride < 1 or axis.dilation < 1 for axis in axes):
        return None
    return Windows(node.op_type, tuple(axes), is_transposed)


def _samples(scope: Scope, node: NodeProto) -> Samples | None:
    opset = scope.opsets.get("", 1)
    modern = node.op_type == "Resize" and opset >= 11
    shape = None
    known = scope.type_of(node.input[0]) if node.input else None
    if known is not None:
        shape = known.shape
    scales = _scales(scope, node, modern, shape)
    if not scales:
        return None
    if not all(scale > 0 for scale in scales):
        return None
    axis = max(range(len(scales)), key=lambda place: abs(math.log(scales[place])))
    scale = scales[axis]
    length = shape[axis] if shape is not None and len(shape) == len(scales) else None
    size = length if isinstance(length, int) and length > 0 else EXAMPLE_SIZE
    output = int(scale * size) if isinstance(scale, Fraction) else resampling.output_size(size, scale)
    if output < 1:
        return None
    written = _sampling(node, size, output, scale) if modern else _legacy(node, size, output, float(scale))
    if written is None:
        return None
    default = None
    if not modern:
        mode = "linear" if "linear" in attributes.text(node, "mode", "nearest") else "nearest"
        default = _named("half_pixel", mode, "round_prefer_floor", size, output, scale)
    return Samples(node.op_type, axis, size, output, scale, written, None, default, size != length)


def _scales(
    scope: Scope, node: NodeProto, modern: bool, shape: Sequence[object] | None
) -> list[float] | list[Fraction] | None:
    place = 2 if modern else 1
    name = node.input[place] if len(node.input) > place else ""
    values = scope.constant(name) if name else None
    if values is not None and values.size:
        return [float(np.float32(value)) for value in values.ravel()]
    if modern:
        sizes = scope.constant(node.input[3]) if len(node.input) > 3 and node.input[3] else None
        if sizes is None or shape is None or len(shape) != sizes.size or attributes.integers(node, "axes"):
            return None
        lengths = [length if isinstance(length, int) else 0 for length in shape]
        if min(lengths, default=0) < 1:
            return None
        return [Fraction(int(size), length) for size, length in zip(sizes.ravel(), lengths, strict=True)]
    listed = attributes.find(node, "scales")
    if listed is not None:
        return list(listed.floats)
    height, width = attributes.find(node, "height_scale"), attributes.find(node, "width_scale")
    return None if height is None or width is None else [1.0, 1.0, height.f, width.f]


def _legacy(node: NodeProto, size: int, output: int, scale: float) -> Sampling:
    shown = min(output, MOST_SAMPLES)
    positions = tuple(float(np.float32(index) / np.float32(scale)) for index in range(shown))
    if "linear" in attributes.text(node, "mode", "nearest"):
        return Sampling(f"{node.op_type}, linear", positions, tuple(_neighbours(x, size) for x in positions))
    reads = resampling.legacy_nearest_indices(size, scale, output)[:shown]
    rounding = "down" if scale >= 1 else "up"
    return Sampling(f"{node.op_type}, nearest, rounded {rounding}", positions, tuple((each,) for each in reads))


def _sampling(node: NodeProto, size: int, output: int, scale: float | Fraction) -> Sampling | None:
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
        sampling = _sampling(node, before.size, before.output, before.scale)
        return sampling and dataclasses.replace(sampling, title=f"Resize, {sampling.title}")
    for node in nodes:
        if node.op_type == "Gather" and attributes.integer(node, "axis", 0) == before.axis:
            tensor = constants.get(node.input[1])
            if tensor is not None:
                indices = numpy_helper.to_array(tensor).ravel()[:MOST_SAMPLES]
                reads = tuple((int(index),) for index in indices)
                return Sampling("Gather with these indices", tuple(float(index) for index in indices), reads)
    return None
