"""The shape cases that a rewrite of a convolution or pool is proven on."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from onnx import TensorProto, helper

from padfix.geometry.padding import effective_kernel, same_output_size, window_output_size
from padfix.graph.lengths import known_residue
from padfix.graph.scopes import Dimension
from padfix.operators.window import Pair, Window
from padfix.operators.written import SAME
from padfix.rules.base import Site, Trial, TrialInput

_MOST_TRIALS = 12
_SCALES = (0.5, 0.27, 0.25, 4.0)
"""Of quantized data, results and weights. No power of two for a pool's result: ONNX Runtime rounds ties of a global
average in another way."""


_CHANNELS = 3
"""Channels of what stands for a pool's data."""


def trials(
    site: Site, window: Window, *, same: bool, as_declared: bool = False, channels: int | None = None
) -> tuple[Trial, ...]:
    """Return the shape cases to prove a rewrite on.

    Few channels unless a pool is to have a number of ``channels``; a known length is represented by a short one of
    the same residue modulo the stride; an unknown one by every residue (a choice of them when the stride is long),
    and by lengths below the kernel. Where positions are counted, or ``as_declared``, the known length itself is in
    the arithmetic, so nothing stands for it.
    """
    as_declared = as_declared or window.has_indices
    options = [
        [max(size, 1)]
        if isinstance(size, int) and as_declared
        else _lengths(size, taps or 3, stride, dilation, same=same)
        for size, taps, stride, dilation in window.axes
    ]
    count = min(_MOST_TRIALS, max(len(each) for each in options))
    if sum(len(each) > 1 for each in options) > 1:
        count = min(_MOST_TRIALS, count + 2)
    cases = []
    for case in range(count):
        # Axes walk through their lengths at different offsets, so that unequal residues meet.
        spatial = tuple(each[(case + axis * (case // len(each) + 1)) % len(each)] for axis, each in enumerate(options))
        cases.append(_trial(site, window, spatial, channels or _CHANNELS))
    return tuple(cases)


def _lengths(size: Dimension, taps: int, stride: int, dilation: int, *, same: bool) -> list[int]:
    span = effective_kernel(taps, dilation)
    enough = span + stride
    if isinstance(size, int):
        if size <= enough + stride:
            return [max(size, 1)]
        return [enough + (size - enough) % stride]
    residues: list[int] | range = range(stride)
    residue = known_residue(size, stride)
    if residue is not None and stride > 1:
        first = span + (residue - span) % stride
        return [first, first + stride, first + 2 * stride, *([residue or stride] if same and dilation == 1 else [])]
    if stride > 8:
        residues = sorted({0, 1, 2, stride // 2, stride - 2, stride - 1, span % stride, (span + 1) % stride})
    lengths = [span + (residue - span) % stride for residue in residues]
    lengths.append(enough + 1)
    if same and dilation == 1:
        lengths += sorted({1, max(1, taps - 1)} - set(lengths))
    return lengths


def _trial(site: Site, window: Window, spatial: tuple[int, ...], channels: int) -> Trial:
    node, operator = site.node, window.operator
    elem_type = window.elem_type or TensorProto.FLOAT
    inputs: dict[str, TrialInput] = {}
    maps = _CHANNELS
    if operator.weights is None:
        inputs[node.input[0]] = TrialInput(_data_shape(window, (2, channels), spatial), elem_type)
    else:
        group = window.written.group
        known = site.input_type(operator.weights)
        per_group = 2 if window.channels is None else min(window.channels // group, 2)
        per_map = min(window.maps // group, 2) if window.maps is not None and window.maps >= group else 2
        maps = group * per_map
        inputs[node.input[0]] = TrialInput(_data_shape(window, (1, group * per_group), spatial), elem_type)
        weight_type = known.elem_type if known is not None and known.elem_type else elem_type
        kernel = tuple(taps or 3 for taps in window.kernel)
        inputs[node.input[operator.weights]] = TrialInput((maps, per_group, *kernel), weight_type)
    for position, name in enumerate(node.input):
        if name and name not in inputs:
            inputs[name] = _side_input(site, window, position, maps, spatial)
    return inputs


def _data_shape(window: Window, leading: Pair, spatial: Sequence[int]) -> tuple[int, ...]:
    batch, channels = leading
    return (batch, *spatial, channels) if window.channels_last else (batch, channels, *spatial)


def _side_input(site: Site, window: Window, position: int, maps: int, spatial: Sequence[int]) -> TrialInput:
    """Bias, scales and zero points: a scale is a small positive number, a zero point the model's own if it is known."""
    operator = window.operator
    known = site.input_type(position)
    kind = known.elem_type if known is not None and known.elem_type else window.elem_type or TensorProto.FLOAT
    if position == operator.addend:
        return TrialInput(_data_shape(window, (1, maps), _output_sizes(window, spatial)), kind)
    dtype = helper.tensor_dtype_to_np_dtype(kind)
    if position == operator.mask:
        shape = _data_shape(window, (2, _CHANNELS), spatial)
        mask = (np.arange(int(np.prod(shape))) % 5 != 1).reshape(shape).astype(np.int32)
        return TrialInput.of(mask, constant=False)
    if position == operator.bias:
        quantized = np.arange(maps).astype(dtype) if np.issubdtype(dtype, np.integer) else None
        return TrialInput((maps,), kind, quantized, quantized is not None)
    if position in operator.scales:
        scales = (_SCALES[0], _SCALES[1]) if operator.is_pool else (_SCALES[0], _SCALES[2], _SCALES[3])
        return TrialInput.of(np.array(scales[operator.scales.index(position)], dtype))
    constant = site.constant(position)
    return TrialInput.of(np.array(3 if constant is None or constant.size == 0 else constant.reshape(-1)[0], dtype))


def _output_sizes(window: Window, spatial: Sequence[int]) -> list[int]:
    if window.auto_pad in SAME:
        return [same_output_size(size, stride) for size, stride in zip(spatial, window.strides, strict=True)]
    axes = zip(spatial, window.kernel, window.strides, window.dilations, window.explicit_pads, strict=True)
    return [window_output_size(size, taps or 3, stride, dilation, *pair) for size, taps, stride, dilation, pair in axes]
