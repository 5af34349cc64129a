"""What a resampling is like, in the words that targets state their facts in."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction

import numpy as np
from onnx import NodeProto

from padfix.geometry.resampling import (
    Scale,
    crop_slips,
    output_size,
    slips_by_the_inverse,
    slips_in_single_precision,
)
from padfix.graph import attributes
from padfix.graph.scopes import Scope
from padfix.operators.lists import depends_on_data
from padfix.operators.resample import Resample
from padfix.operators.shape_questions import any_of
from padfix.operators.told_lengths import told_sizes
from padfix.targets.traits import Traits

_Slip = Callable[[str, str, int, int, Scale], bool]

_JUST_SHORT = 0.001

_KEEPS_SEVERAL = 1.5
"""Scales from here on give more than two elements for two, so that they keep no length but that of one element."""

_LONG = 1024
"""In place of a length that is open: where no position slips by a given scale, none does in what is shorter."""


def resample_traits(scope: Scope, node: NodeProto, resize: Resample) -> Traits:
    """Return what a resampling is like."""
    axes = _changes(resize, told_sizes(scope, node, resize))
    changed = None if axes is None else [axis for axis in axes if axis.changes]
    rank = None if resize.shape is None else len(resize.shape)
    coefficient = attributes.find(node, "cubic_coeff_a")
    return {
        "mode": resize.mode,
        "mode-written": attributes.find(node, "mode") is not None,
        "coordinates": "legacy" if resize.is_legacy else resize.coordinates,
        "coordinates-written": attributes.find(node, "coordinate_transformation_mode") is not None,
        "nearest-mode": "legacy" if resize.is_legacy else resize.nearest_mode,
        "nearest-mode-written": attributes.find(node, "nearest_mode") is not None,
        "antialias": resize.antialias,
        "exclude-outside": resize.exclude_outside,
        "cubic-coefficient": _coefficient(-0.75 if coefficient is None else coefficient.f),
        "aspect-ratio-kept": resize.policy != "stretch",
        "axes-listed": resize.axes is not None,
        "axes-negative": any(axis < 0 for axis in resize.axes or ()),
        "amounts": "scales" if resize.scales else "sizes" if resize.sizes else "run-time",
        "amounts-of-data": any(name and depends_on_data(scope, name) for name in node.input[1:]),
        "numbers-images": _is_of_several(resize),
        "empty-scales": _has_empty_scales(scope, node, resize),
        "factors": None if changed is None else _factors(changed),
        "gives-one": None if changed is None else any_of([axis.gives_one for axis in changed]),
        "one-element": axes is not None and any(axis.gives_one for axis in axes[2:]),
        "keeps-a-length": _keeps_a_length(changed or ()),
        "keeps-all-lengths": False if axes is None else _keeps_all_lengths(axes),
        "just-short": any(axis.is_just_short for axis in changed or ()),
        "inferred-shorter": any(axis.is_inferred_shorter for axis in changed or ()),
        "from-one": axes is not None and any(axis.from_one and axis.changes for axis in axes[2:]),
        "slips": _slips_by_lengths(resize),
        "slips-by-inverse": _slips(resize, slips_by_the_inverse),
        "resized-axes": None if changed is None or not all(axis.is_told for axis in changed) else len(changed),
        "leaves-an-axis": None
        if axes is None
        else any_of([None if not axis.is_told else not axis.changes for axis in axes[2:]]),
        "outer-axes": None if axes is None else any_of([axis.changes if axis.is_told else None for axis in axes[:2]]),
        "rank": rank,
    }


def _is_of_several(resize: Resample) -> bool | None:
    """Whether it resizes several images, whose number stands among its sizes."""
    batch = resize.shape[0] if resize.shape else None
    return batch > 1 if isinstance(batch, int) else None


def _coefficient(value: float) -> str:
    for known in ("-0.75", "-0.5"):
        if np.float32(value) == np.float32(known):
            return known
    return "other"


def _has_empty_scales(scope: Scope, node: NodeProto, resize: Resample) -> bool:
    """Whether it has an input for scales that holds none, as opsets 11 and 12 leave them out."""
    if resize.is_legacy or len(node.input) < 3 or not node.input[2]:
        return False
    value = scope.constant(node.input[2])
    return value is not None and not value.size


class _Axis:
    """One axis of the data: what its length becomes, as far as that is known."""

    def __init__(self, size: int | None, scale: float | None, output: int | None) -> None:
        self.is_told = scale is not None or output is not None  # else its length is taken for another one
        self.changes = scale != 1 if output is None else size is None or output != size
        self.from_one = size == 1
        self.factor: str | None = None
        self.gives_one: bool | None = None
        self.keeps_length: bool | None = False  # though it is sampled
        self.is_just_short = False  # of one element more
        self.is_inferred_shorter = False  # than what it gives, since ONNX's inference multiplies in double precision
        if scale is not None:
            if size is not None:
                exact = size * float(np.float32(scale))
                self.is_just_short = 0 < -exact % 1 < _JUST_SHORT
                self.is_inferred_shorter = math.floor(exact) != output_size(size, scale)
            self.keeps_length = scale != 1 and output_size(size, scale) == size if size is not None else None
            if size is None and not 1 < scale < _KEEPS_SEVERAL:
                self.keeps_length = False
            if scale >= 1 and float(scale).is_integer():
                self.factor = "whole"
            elif size is not None:
                self.factor = "exact" if (np.float32(size) * np.float32(scale)).is_integer() else "inexact"
            output = output if size is None else output_size(size, scale)
        elif size and output is not None:
            self.factor = "whole" if Fraction(output, size).denominator == 1 else "exact"
        if output is not None:
            self.gives_one = output == 1


def _changes(resize: Resample, told: Mapping[int, int | None] | None) -> list[_Axis] | None:
    """Return every axis of the data; None where it is not known which lengths change, by what is ``told`` of them."""
    numbers = resize.resized_axes()
    if numbers is None or resize.shape is None:
        return None
    values: Sequence[float | None] | None = resize.scales or resize.sizes
    if told is not None:
        numbers, values = tuple(told), tuple(told.values())
    if values is None or len(values) != len(numbers):
        return None
    axes = [_Axis(length if isinstance(length, int) else None, 1.0, None) for length in resize.shape]
    for number, value in zip(numbers, values, strict=True):
        length = resize.shape[number]
        size = length if isinstance(length, int) else None
        output = None if resize.scales or value is None else int(value)
        axes[number] = _Axis(size, value if resize.scales else None, output)
    return axes


def _keeps_a_length(changed: Sequence[_Axis]) -> bool | None:
    """Whether a scale is too near to 1 to change the length of its axis, while others change."""
    kept = [axis.keeps_length for axis in changed]
    if None in kept:
        return None if len(kept) > 1 else False
    return any(kept) and not all(kept)


def _keeps_all_lengths(axes: Sequence[_Axis]) -> bool | None:
    """Whether scales are too near to 1 to change any length, so that ONNX Runtime copies what it is given."""
    kept = [axis.keeps_length for axis in axes if axis.changes]
    return False if not kept or False in kept else None if None in kept else True


def _by_lengths(coordinates: str, rounding: str, size: int, output: int, scale: Scale) -> bool:
    return slips_in_single_precision(coordinates, rounding, size, output)


def _slips_by_lengths(resize: Resample) -> bool | None:
    """Whether it takes other elements, or leaves the image elsewhere, where positions come of the lengths."""
    if resize.coordinates == "tf_crop_and_resize":
        return _crop_slips(resize)
    # Scales are single precision themselves, so that of these only aligned corners can slip.
    return _slips(resize, _by_lengths) if not resize.scales or resize.coordinates == "align_corners" else False


def _crop_slips(resize: Resample) -> bool | None:
    given: Sequence[float] | None = resize.scales or resize.sizes
    numbers = resize.resized_axes()
    if given is None or numbers is None or resize.shape is None:
        return None
    found: list[bool | None] = []
    for number, amount in zip(numbers, given, strict=False):
        size, roi = resize.shape[number], resize.roi_of(number)
        if roi == (0.0, 1.0):
            continue
        if not isinstance(size, int) or roi is None:
            found.append(None)
            continue
        output = output_size(size, amount) if resize.scales else int(amount)
        found.append(crop_slips(resize.nearest_mode if resize.mode == "nearest" else None, size, output, roi))
    return any_of(found)


def _slips(resize: Resample, slip: _Slip) -> bool | None:
    """Whether mode nearest takes other elements in a certain arithmetic; sizes of run time are taken for multiples.

    Of these none slips, but where it rounds up, or the corners are aligned.
    """
    given: Sequence[float] | None = resize.scales or resize.sizes
    if resize.mode != "nearest" or resize.is_legacy or resize.coordinates == "tf_crop_and_resize":
        return False
    if given is None:
        return None if resize.coordinates == "align_corners" or resize.nearest_mode == "ceil" else False
    numbers = resize.resized_axes()
    if numbers is None or resize.shape is None:
        return False
    found: list[bool | None] = []
    for number, amount in zip(numbers, given, strict=False):
        size = resize.shape[number]
        length = size if isinstance(size, int) else _LONG
        output = output_size(length, amount) if resize.scales else int(amount)
        scale = float(np.float32(amount)) if resize.scales else Fraction(output, max(length, 1))
        moves = slip(resize.coordinates, resize.nearest_mode, length, output, scale)
        if isinstance(size, int):
            found.append(moves)
        elif number > 0 and not (resize.scales and (amount == 1 or not moves)):
            found.append(None)
    return any_of(found)


def _factors(changed: Sequence[_Axis]) -> str | None:
    kinds = {axis.factor for axis in changed}
    if "inexact" in kinds:
        return "inexact"
    if None in kinds:
        return None
    return "exact" if "exact" in kinds else "whole"
