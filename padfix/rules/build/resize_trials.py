"""The shape cases that a rewrite of a modern Resize is proven on."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from onnx import helper

from padfix.operators.reading import read_resample
from padfix.operators.refusal import Refusal
from padfix.operators.resample import Resample
from padfix.operators.told_lengths import told_sizes
from padfix.rules.base import Site, Trial, TrialInput

SCALES, SIZES = 2, 3
"""Positions of the two inputs of Resize that say how far."""

_LONGEST = 96
"""Resized axes that are longer are represented by shorter ones, unless the rewrite holds for one length only."""

_UNCHANGED = 2
"""Length that stands for an axis that keeps its length."""


@dataclass(frozen=True)
class ResizedAxis:
    """One axis of the input of a Resize: its length, and the scale or the new length; None for what is not known.

    An axis that the node does not name among its ``axes`` is not sampled at all.
    """

    length: int | None
    scale: float | None = None
    output: int | None = None
    named: bool = True

    @property
    def is_kept(self) -> bool:
        """Whether the axis is known to keep its length."""
        return not self.named or self.scale == 1 or (self.output is not None and self.output == self.length)


def is_empty(site: Site, position: int) -> bool:
    """Whether an input is there and holds no elements, whatever its values are said to be."""
    known = site.input_type(position)
    return known is not None and known.shape is not None and 0 in known.shape


def resized_axes(site: Site) -> list[ResizedAxis] | Refusal:
    """Return every axis of the input of a Resize of opset 11 or newer; or why that can't be said."""
    resize = read_resample(site.scope, site.node)
    if isinstance(resize, Refusal):
        return resize
    given: Sequence[float] | None = resize.scales if resize.scales_name else resize.sizes
    if resize.shape is not None:
        lengths = [each if isinstance(each, int) else None for each in resize.shape]
    elif given is not None and resize.axes is None:
        lengths = [None] * len(given)
    else:
        return Refusal("The rank of the input is not known: declare its shape (--shape).")
    rank = len(lengths)
    axes = [axis % rank for axis in resize.axes or range(rank) if -rank <= axis < rank]
    if given is not None and len(given) != len(axes):
        return Refusal(f"{len(given)} scales or sizes for {len(axes)} axes: correct the node.")
    found = [ResizedAxis(length, named=False) for length in lengths]
    told = told_sizes(site.scope, site.node, resize)
    if told is not None:
        for axis, length in told.items():
            found[axis] = ResizedAxis(lengths[axis], output=length)
        return found
    for axis, value in zip(axes, [None] * len(axes) if given is None else given, strict=True):
        if resize.scales_name:
            found[axis] = ResizedAxis(lengths[axis], scale=value)
        else:
            found[axis] = ResizedAxis(lengths[axis], output=None if value is None else int(value))
    return found


def resize_trials(site: Site, *, as_declared: bool = False) -> tuple[Trial, ...] | Refusal:
    """Return shape cases for a Resize of opset 11 or newer.

    Axes that keep their length are short. The others have their own lengths where they are known and not too long, or,
    ``as_declared``, however long; where they are not known, two lengths that grow and shrink.
    """
    axes, resize = resized_axes(site), read_resample(site.scope, site.node)
    if isinstance(axes, Refusal):
        return axes
    assert isinstance(resize, Resample)
    places = [axis % len(axes) for axis in resize.axes or range(len(axes))]
    uses_scales = bool(resize.scales_name)
    trials = []
    for number in range(1 if as_declared else 2):
        cases = [
            _case(axis, number, axis_is_last=place >= len(axes) - 2, as_declared=as_declared)
            for place, axis in enumerate(axes)
        ]
        amounts: Sequence[float] = [cases[place][1 if uses_scales else 2] for place in places]
        trials.append(_trial(site, [case[0] for case in cases], amounts, uses_scales=uses_scales))
    return tuple(trials)


def _case(axis: ResizedAxis, number: int, *, axis_is_last: bool, as_declared: bool) -> tuple[int, float, int]:
    """Return a length, a scale and a new length that stand for an axis."""
    if axis.is_kept or (axis.scale is None and axis.output is None and not axis_is_last):
        length = axis.length if as_declared and axis.length is not None else _UNCHANGED
        return length, 1.0, length
    if axis.scale is not None:
        enough = math.ceil(1 / axis.scale) + 2 + number if axis.scale > 0 else 1
        length = axis.length if axis.length is not None and (as_declared or axis.length <= _LONGEST) else enough
        return length, axis.scale, 0
    length = 4 + 3 * number if axis.length is None else axis.length
    output = 6 - number if axis.output is None else axis.output
    longest = max(length, output)
    if longest > _LONGEST and not as_declared:
        length, output = (max(1, each * _LONGEST // longest) for each in (length, output))
    return length, 2.0 - 0.5 * number, output


def _trial(site: Site, shape: Sequence[int], amounts: Sequence[float], *, uses_scales: bool) -> Trial:
    trial: dict[str, TrialInput] = {site.input_name(0): TrialInput(tuple(shape), site.elem_type(0))}
    for position in range(1, len(site.node.input)):
        name = site.input_name(position)
        if not name or name in trial:
            continue
        constant = site.constant(position)
        if position == (SCALES if uses_scales else SIZES):
            value = np.array(amounts, np.float32 if uses_scales else np.int64)
        elif constant is not None:
            value = constant
        else:
            dtype = helper.tensor_dtype_to_np_dtype(site.elem_type(position))
            value = np.zeros(0, dtype) if is_empty(site, position) else np.array([0, 1], dtype).repeat(len(shape))
        trial[name] = TrialInput.of(value, constant=constant is not None)
    return trial
