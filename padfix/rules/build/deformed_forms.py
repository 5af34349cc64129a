"""A DeformConv as a convolution of the elements that a GridSample takes from where its offsets say."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from onnx import TensorProto, helper

from padfix.graph import attributes
from padfix.operators.reading import read
from padfix.operators.refusal import Refusal
from padfix.operators.window import Window
from padfix.rules.base import Rewrite, Site
from padfix.rules.build.along_axes import FLOATS
from padfix.rules.build.forms import Form
from padfix.rules.build.node_trials import as_declared

if TYPE_CHECKING:
    from padfix.graph.fragment_builder import FragmentBuilder

_LINEAR_SINCE = 20
"""The first opset whose GridSample calls its modes after one axis."""

_WEIGHTS, _OFFSETS, _BIAS, _MASK = range(1, 5)

_PLANE = 2
"""Axes of images; neither ONNX Runtime nor the specification's reference runs others."""


@dataclass(frozen=True)
class _Deformed:
    """A DeformConv: its window, the lengths of its image, its weights and its result, its channels and groups."""

    window: Window
    sizes: tuple[int, ...]
    weights: tuple[int, ...]
    places: tuple[int, ...]
    channels: int
    groups: int

    @property
    def taps(self) -> int:
        return math.prod(self.weights[2:])

    @property
    def begin(self) -> np.ndarray:
        """Where each tap meets the image at each place without an offset, by axis."""
        taps, along = self.weights[2:], []
        window = self.window
        for axis, (pads, stride, dilation) in enumerate(
            zip(window.explicit_pads, window.strides, window.dilations, strict=True)
        ):
            each = np.arange(taps[axis])[:, None] * dilation + np.arange(self.places[axis]) * stride - pads[0]
            shape = [1] * (2 * _PLANE)
            shape[axis], shape[_PLANE + axis] = each.shape
            along.append(np.broadcast_to(each.reshape(shape), (*taps, *self.places)))
        return np.stack(along).astype(np.float64).reshape(_PLANE, self.taps, -1)


def deformed_forms(site: Site) -> Iterator[Form]:
    """Yield a GridSample that takes an element of each channel for each tap, and a convolution of one tap.

    Both take what lies outside the image for zeros, element by element. Halves are made floats of single precision,
    since the places of an image are finer than halves are.
    """
    found = _read(site)
    is_of_halves = site.elem_type(0) == TensorProto.FLOAT16

    def write() -> Rewrite:
        assert isinstance(found, _Deformed)
        builder, ones = site.builder(), [1] * _PLANE
        sampled = builder.reshaped(_sampled(site, builder, found), [-1, found.channels * found.taps, *found.places])
        flat, told = [found.weights[0], found.weights[1] * found.taps, *ones], site.constant(_WEIGHTS)
        weights = (
            builder.reshaped(_floats(site, builder, _WEIGHTS), flat)
            if told is None
            else builder.constant(told.reshape(flat).astype(_dtype(site)), "weights")
        )
        biases = [_floats(site, builder, _BIAS)] if site.input_name(_BIAS) else []
        settings = {"group": found.window.written.group, "kernel_shape": ones}
        result = builder.op("Conv", [sampled, weights, *biases], settings)
        if is_of_halves:
            result = builder.op("Cast", [result], {"to": TensorProto.FLOAT16})
        builder.output(site.node.output[0], result)
        return Rewrite(builder.build(), (as_declared(site),))  # offsets are for each place of the image

    # Other parts are for the rules about these to judge.
    yield Form("a convolution of sampled elements", (), write, found if isinstance(found, Refusal) else None)


def _read(site: Site) -> _Deformed | Refusal:
    window = read(site.scope, site.node)
    weights, offsets = site.input_type(_WEIGHTS), site.input_type(_OFFSETS)
    if not isinstance(window, Window) or window.rank != _PLANE:
        return Refusal("it is of no planes")
    lengths = None if weights is None else weights.lengths
    sizes, places = _told(window.sizes), _told(() if offsets is None or offsets.shape is None else offsets.shape[2:])
    if not lengths or not sizes or not places or not window.data_channels:
        return Refusal("it needs the lengths of its inputs (--shape)")
    if site.elem_type(0) not in FLOATS:
        return Refusal("its data are no floats")
    groups = attributes.integer(site.node, "offset_group", 1) or 1
    return _Deformed(window, sizes, tuple(lengths), places, window.data_channels, groups)


def _dtype(site: Site) -> np.dtype[Any]:
    """Return the type of the floats that places are computed in."""
    dtype = helper.tensor_dtype_to_np_dtype(site.elem_type(0))
    return np.dtype(np.float32) if dtype == np.float16 else dtype


def _floats(site: Site, builder: FragmentBuilder, place: int) -> Any:
    """Return an input in these floats."""
    value = builder.input(site.input_name(place))
    is_half = site.elem_type(place) == TensorProto.FLOAT16
    return builder.op("Cast", [value], {"to": TensorProto.FLOAT}) if is_half else value


def _told(lengths: Sequence[int | str | None]) -> tuple[int, ...]:
    """Return lengths; none where one is not known."""
    told = tuple(each for each in lengths if isinstance(each, int))
    return told if len(told) == len(lengths) and all(told) else ()


def _sampled(site: Site, builder: FragmentBuilder, found: _Deformed) -> Any:
    """Return what each tap meets at each place, behind the channels; each group of offsets has channels of its own."""
    taps, count = found.taps, math.prod(found.places)
    dtype = _dtype(site)
    # From the middle of the image, in halves of it: the last axis comes first.
    sizes = np.array(found.sizes, np.float64)
    halves = builder.constant(np.diag(2 / sizes)[:, ::-1].astype(dtype), "halves")
    middle = ((2 * found.begin + 1) / sizes[:, None, None] - 1)[::-1].transpose(1, 2, 0)
    without = builder.constant(middle[None].astype(dtype), "taps")
    mode = "linear" if builder.opset >= _LINEAR_SINCE else "bilinear"

    def sampled(data: Any, offsets: Any, mask: Any | None = None) -> Any:
        offsets = builder.turned(builder.reshaped(offsets, [-1, taps, _PLANE, count]), 4)
        grid = builder.op("Add", [builder.op("MatMul", [offsets, halves]), without])
        result = builder.op("GridSample", [data, grid], {"mode": mode, "padding_mode": "zeros", "align_corners": 0})
        return result if mask is None else builder.op("Mul", [result, builder.reshaped(mask, [-1, 1, taps, count])])

    lengths = {0: found.channels // found.groups, _OFFSETS: taps * _PLANE, _MASK: taps}
    given = [
        builder.split(_floats(site, builder, place), 1, [length] * found.groups)
        for place, length in lengths.items()
        if site.input_name(place)
    ]
    pieces = [sampled(*each) for each in zip(*given, strict=True)]
    return pieces[0] if found.groups == 1 else builder.op("Concat", pieces, {"axis": 1})
