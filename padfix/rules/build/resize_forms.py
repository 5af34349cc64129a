"""Equal forms of a Resize: other words for the same samples, elements taken one by one, products with two matrices.

Which of them a runtime gets right is the target's to say; that they are equal is shown from the positions that are
sampled, for the very lengths where these are known, and proven by running as every rewrite is.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from itertools import product

import numpy as np
from onnx import helper

from padfix.geometry.interpolation import Interpolation, interpolation_matrix
from padfix.geometry.resampling import (
    Scale,
    aspect_ratio_output_size,
    aspect_ratio_scale,
    nearest_indices,
    output_size,
    scale_to,
    slips_by_the_inverse,
    slips_in_single_precision,
    source_coordinates,
)
from padfix.geometry.runtimes import MEASURED_MODES, runtime_nearest_indices
from padfix.graph import attributes
from padfix.operators.refusal import Refusal
from padfix.operators.resample import Resample
from padfix.operators.told_lengths import told_factors
from padfix.operators.traits import traits_of
from padfix.rules.base import Rewrite, Site
from padfix.rules.build.along_axes import (
    LONGEST,
    MOST_WEIGHTS,
    OUTSIDE,
    TAKING,
    multiplying,
    one_by_one,
    selection,
    weighed_and_summed,
    why_not_multiplied,
)
from padfix.rules.build.explicit_pads import copied
from padfix.rules.build.forms import Form, by_another_rule
from padfix.rules.build.modern_resize import ModernForm, modern_form
from padfix.rules.build.resize_factors import OMITTED_SINCE, SAID_ANEW, by_factors, why_not_by_factors
from padfix.rules.build.resize_trials import SCALES, SIZES, ResizedAxis, resize_trials, resized_axes
from padfix.rules.build.resized_lines import as_columns
from padfix.targets import Trait
from padfix.targets.traits import Traits

_COORDINATES = ("asymmetric", "half_pixel", "align_corners", "pytorch_half_pixel", "tf_half_pixel_for_nn")
_ROUNDINGS = ("floor", "round_prefer_floor", "round_prefer_ceil", "ceil")
"""In the order in which they are tried: the pair that most runtimes get right comes first."""

_REMOVED_SINCE = 13
_SAMPLE_LENGTHS = (1, 2, 3, 5, 8)


@dataclass(frozen=True)
class Axis:
    """One axis that is sampled: its number, lengths, and scale as the node has it."""

    number: int
    size: int
    output: int
    scale: Scale
    roi: tuple[float, float] = (0.0, 1.0)

    def indices(self, coordinates: str, rounding: str, scale: Scale) -> tuple[int, ...]:
        """Return the elements that mode nearest takes, by the specification."""
        return tuple(nearest_indices(coordinates, rounding, self.size, self.output, scale, self.roi))

    def taken(self, resize: Resample) -> tuple[int, ...]:
        """Return the elements that the node takes in mode nearest; :data:`OUTSIDE` where a crop leaves the image."""
        indices = self.indices(resize.coordinates, resize.nearest_mode, self.scale)
        if resize.coordinates != "tf_crop_and_resize":
            return indices
        places = self.positions(resize.coordinates, self.scale)
        last = self.size - 1
        return tuple(each if 0 <= at <= last else OUTSIDE for each, at in zip(indices, places, strict=True))

    def positions(self, coordinates: str, scale: Scale) -> tuple[float, ...]:
        """Return the positions that are sampled."""
        return tuple(map(float, source_coordinates(coordinates, self.size, self.output, scale, self.roi)))


@dataclass(frozen=True)
class Spelling:
    """Other attributes and amounts of a Resize for the same samples."""

    coordinates: str
    rounding: str
    by_sizes: bool


Axes = tuple[Axis, ...] | Refusal
"""What :func:`sampled_axes` gives."""


def resize_forms(site: Site, resize: Resample) -> Iterator[Form]:
    """Yield the forms of a Resize or Upsample, the nearest to what stands there first."""
    traits = traits_of(site.scope, site.node) or {}
    if resize.is_legacy:
        # Upsample and Resize-10 become a Resize with coordinates by another rule, and that one is asked about here.
        yield from _modern_forms(site, resize, traits)
        return
    axes = sampled_axes(site, resize)
    spelled = [(resize, spelling) for spelling in spellings(site, resize, axes)]
    if _repeats(resize, axes):
        nearest = dataclasses.replace(resize, mode="nearest", coordinates="asymmetric", nearest_mode="floor")
        spelled.append((nearest, Spelling("asymmetric", "floor", by_sizes=True)))
    factors = told_factors(site.scope, site.node, resize) if isinstance(axes, Refusal) else None
    for alike, spelling in spelled:
        name = f"{spelling.coordinates} with {spelling.rounding} by {'sizes' if spelling.by_sizes else 'scales'}"
        slips = _slips(spelling, alike, axes, traits)
        written = {**traits, **_traits_of_spelling(spelling, traits, axes), "mode": alike.mode, **slips}
        write, why_not = partial(respelled, site, alike, spelling, axes), _why_not_respelled(alike, spelling, axes)
        if factors and not spelling.by_sizes:
            words = spelling.coordinates, spelling.rounding
            written |= {"amounts": "scales", "factors": "whole", "steered-by-results": False}
            write, why_not = partial(by_factors, site, words, factors), why_not_by_factors(site)
        if spelling.by_sizes and site.opset < OMITTED_SINCE:
            yield Form(name, (("Resize", {**written, "empty-scales": True}),), write, why_not)
            yield Form(name, (("Resize", written),), write, why_not, OMITTED_SINCE)
        else:
            yield Form(name, (("Resize", written),), write, why_not)
    lengths = axes if isinstance(axes, Refusal) else None
    known = () if isinstance(axes, Refusal) else axes
    if resize.mode == "nearest":
        outside = any(OUTSIDE in axis.taken(resize) for axis in known)
        reason = Refusal("what lies outside the image is no element of it") if outside else lengths
        yield Form("one Gather an axis", TAKING, partial(gathered, site, resize, known), reason)
    why_not = lengths or why_not_multiplied(resize.elem_type, [(axis.size, axis.output) for axis in known])
    operators = multiplying([axis.number for axis in known], resize.shape or (), site)
    yield Form("products with matrices", operators, partial(weighed, site, resize, known), why_not)
    pairs = [(each.coordinates, each.rounding) for _, each in spelled if not each.by_sizes]
    yield from as_columns(site, resize.mode, partial(_words, site, resize), pairs)


def _words(site: Site, resize: Resample, coordinates: str, rounding: str) -> Traits:
    """Return what a Resize by scales is like in other words."""
    spelling = Spelling(coordinates, rounding, by_sizes=False)
    traits, axes = traits_of(site.scope, site.node) or {}, sampled_axes(site, resize)
    return {**traits, **_traits_of_spelling(spelling, traits, axes), **_slips(spelling, resize, axes, traits)}


def _repeats(resize: Resample, axes: Axes) -> bool:
    """Whether every element comes from the only one of its axes, however it is weighed."""
    if resize.mode == "nearest" or resize.coordinates == "tf_crop_and_resize" or isinstance(axes, Refusal):
        return False
    return bool(axes) and all(axis.size == 1 for axis in axes)


def _modern_forms(site: Site, resize: Resample, traits: Traits) -> Iterator[Form]:
    factors = resize.scales or ()
    rounding = "ceil" if min(factors, default=1.0) < 1 else "floor"
    modern: Traits = {
        **traits,
        "coordinates": "asymmetric",
        "coordinates-written": True,
        "nearest-mode": rounding,
        "empty-scales": False,
        "nearest-mode-written": True,
    }
    yield Form("a Resize of today", (("Resize", modern),), by_another_rule)
    # What that Resize becomes in turn needs the lengths.
    known = all(isinstance(each, int) for each in resize.shape or (None,))
    why_not = None if known else Refusal("an equal form needs the lengths of the input (--shape)")
    match modern_form(resize):
        case ModernForm.IDENTITY:
            yield Form("nothing that changes it", (), by_another_rule)
        case ModernForm.RESIZE:
            yield Form("a Resize of today", (("Resize", modern),), by_another_rule)
        case ModernForm.RESIZE_TWICE:
            grows = ("Resize", {**modern, "nearest-mode": "floor"})
            yield Form("two of today", (grows, ("Resize", modern)), by_another_rule)
        case ModernForm.GATHER:
            yield Form("one Gather an axis", TAKING, by_another_rule, why_not)
    # What that Resize becomes in turn needs the lengths.
    operators = multiplying((2,), resize.shape or (), site)
    yield Form("products with matrices or elements one by one", operators, by_another_rule, why_not)


def _traits_of_spelling(spelling: Spelling, traits: Traits, axes: Axes) -> Traits:
    changed: dict[str, Trait | None] = {
        "coordinates": spelling.coordinates,
        "coordinates-written": True,
        "nearest-mode": spelling.rounding,
        "nearest-mode-written": True,
        "mode-written": True,
        "exclude-outside": False,
        "antialias": False,
        "cubic-coefficient": "-0.75",
        "axes-listed": False,
        "axes-negative": False,
        "empty-scales": False,
    }
    if traits.get("amounts") != "run-time" or not isinstance(axes, Refusal):  # else they are handed on as they are
        changed["amounts"] = "sizes" if spelling.by_sizes else "scales"
    if spelling.by_sizes and traits.get("factors") == "inexact":
        changed["factors"] = "exact"
    return changed


def _slips(spelling: Spelling, resize: Resample, axes: Axes, traits: Traits) -> Traits:
    """Return what a spelling is like that has positions on the verge of another element."""
    names = ("slips", "slips-by-inverse")
    if isinstance(axes, Refusal):
        return {name: traits.get(name) for name in names}
    if resize.mode != "nearest":
        return dict.fromkeys(names, False)
    own = spelling.coordinates, spelling.rounding
    by_lengths = spelling.by_sizes or spelling.coordinates == "align_corners"
    scaled = [(axis, Fraction(axis.output, axis.size) if spelling.by_sizes else axis.scale) for axis in axes]
    found = (
        by_lengths and any(slips_in_single_precision(*own, axis.size, axis.output) for axis in axes),
        any(slips_by_the_inverse(*own, axis.size, axis.output, scale) for axis, scale in scaled),
    )
    return dict(zip(names, found, strict=True))


def _why_not_respelled(resize: Resample, spelling: Spelling, axes: Axes) -> Refusal | None:
    if isinstance(axes, Refusal):
        kept = resize.axes is None and spelling.by_sizes == (not resize.scales_name)
        return None if kept else axes
    if spelling.by_sizes:
        lengths = _lengths(resize, axes)
        return lengths if isinstance(lengths, Refusal) else None
    return None


def sampled_axes(site: Site, resize: Resample) -> Axes:
    """Return the axes on which something else than each element itself is sampled; lengths must be known."""
    axes = resized_axes(site)
    if isinstance(axes, Refusal):
        return axes
    scales = _scales(axes, resize)
    if isinstance(scales, Refusal):
        return scales
    found = []
    for number, (axis, (output, scale)) in enumerate(zip(axes, scales, strict=True)):
        roi = resize.roi_of(number)
        if not axis.named or (scale == 1 and output in (None, axis.length) and roi in (None, (0.0, 1.0))):
            continue
        if axis.length is None or output is None or axis.length < 1 or output < 1:
            return Refusal(f"An equal form needs the lengths of axis {number}: fix the input's size (--shape).")
        if max(axis.length, output) > LONGEST:
            return Refusal(f"Axis {number} is longer than {LONGEST} elements, more than is written out one by one.")
        if roi is None:
            return Refusal("The region of interest is only known at run time.")
        found.append(Axis(number, axis.length, output, scale, roi))
    return tuple(found)


def _scales(axes: Sequence[ResizedAxis], resize: Resample) -> list[tuple[int | None, Scale]] | Refusal:
    """Return the (new length, scale) of every axis."""
    named = [axis for axis in axes if axis.named]
    if resize.policy != "stretch" and not resize.scales_name:
        wanted = [(axis.length, axis.output) for axis in named]
        known = [(length, output) for length, output in wanted if length and output]
        if len(known) < len(wanted):
            return Refusal("Which length keeps the aspect ratio depends on lengths that are not known (--shape).")
        shared = aspect_ratio_scale(known, resize.policy)
        return [
            (aspect_ratio_output_size(axis.length, shared), shared) if axis.named and axis.length else (axis.length, 1)
            for axis in axes
        ]
    found: list[tuple[int | None, Scale]] = []
    for axis in axes:
        if not axis.named:
            found.append((axis.length, 1))
        elif axis.scale is not None:
            found.append((None if axis.length is None else output_size(axis.length, axis.scale), axis.scale))
        elif axis.output is None:
            return Refusal("The scales or sizes are only known at run time.")
        else:
            found.append((axis.output, Fraction(axis.output, axis.length) if axis.length else Fraction(0)))
    return found


def spellings(site: Site, resize: Resample, sampled: Axes) -> Iterator[Spelling]:
    """Yield other words for the same samples, the ones that most runtimes get right first."""
    is_plain = resize.coordinates != "tf_crop_and_resize" and resize.policy == "stretch" and not resize.antialias
    if resize.mode == "cubic" or not is_plain:
        roundings: tuple[str, ...] = ()
    else:
        roundings = _ROUNDINGS if resize.mode == "nearest" else ("floor",)
    axes = _axes_of_any_length(site, resize) if isinstance(sampled, Refusal) else sampled
    coordinates = [each for each in _COORDINATES if each != "tf_half_pixel_for_nn" or site.opset < _REMOVED_SINCE]
    own = Spelling(
        resize.coordinates, resize.nearest_mode if resize.mode == "nearest" else "floor", not resize.scales_name
    )
    for words in product(coordinates, roundings, (True, False)):
        spelling = Spelling(*words)
        if spelling == own or (axes and all(_is_equal(axis, resize, spelling) for axis in axes)):
            yield spelling


def _axes_of_any_length(site: Site, resize: Resample) -> tuple[Axis, ...]:
    """Return axes of sample lengths where whole scales suit every length; none where they don't."""
    axes, factors = resized_axes(site), told_factors(site.scope, site.node, resize) or {}
    if isinstance(axes, Refusal) or resize.policy != "stretch":
        return ()
    found = []
    for number, axis in enumerate(axes):
        if axis.is_kept:
            continue
        if number in factors:
            axis = dataclasses.replace(axis, scale=float(factors[number]))
        if axis.scale is None or axis.scale < 1 or not float(axis.scale).is_integer():
            return ()
        found += [Axis(number, size, size * int(axis.scale), axis.scale) for size in _SAMPLE_LENGTHS]
    return tuple(found)


def _is_equal(axis: Axis, resize: Resample, spelling: Spelling) -> bool:
    scale: Scale = axis.scale
    if spelling.by_sizes:
        scale = Fraction(axis.output, axis.size)
    elif isinstance(scale, Fraction):
        scale = scale_to(axis.size, axis.output)
        if output_size(axis.size, scale) != axis.output:
            return False
    if resize.mode == "nearest":
        meant = axis.indices(resize.coordinates, resize.nearest_mode, axis.scale)
        if axis.indices(spelling.coordinates, spelling.rounding, scale) != meant:
            return False
        if spelling.coordinates not in MEASURED_MODES:
            return True
        run = runtime_nearest_indices(
            spelling.coordinates, spelling.rounding, axis.size, axis.output, float(np.float32(float(scale)))
        )
        return tuple(run) == meant
    meant_at, found_at = axis.positions(resize.coordinates, axis.scale), axis.positions(spelling.coordinates, scale)
    last = axis.size - 1
    return np.allclose(np.clip(meant_at, 0, last), np.clip(found_at, 0, last), rtol=0, atol=1e-7 * max(1, last))


def respelled(site: Site, resize: Resample, spelling: Spelling, axes: Axes) -> Rewrite | Refusal:
    """Return the Resize in other words."""
    trials = resize_trials(site, as_declared=not isinstance(axes, Refusal))
    if isinstance(trials, Refusal):
        return trials
    node = copied(site.node, without=SAID_ANEW)
    attributes.set_text(node, "mode", resize.mode)
    attributes.set_text(node, "coordinate_transformation_mode", spelling.coordinates)
    attributes.set_text(node, "nearest_mode", spelling.rounding)
    builder = site.builder()
    rank = len(resize.shape or ())
    omitted = site.opset >= OMITTED_SINCE
    nothing = builder.input("") if omitted else builder.constant(np.zeros(0, np.float32), "empty")
    inputs = [builder.input(site.input_name(0)), nothing, nothing]
    if isinstance(axes, Refusal):
        place = SIZES if spelling.by_sizes else SCALES
        inputs = [*inputs[:2], *([nothing] if place == SIZES else []), builder.input(site.input_name(place))]
    elif spelling.by_sizes:
        lengths = _lengths(resize, axes)
        if isinstance(lengths, Refusal):
            return lengths
        given = site.constant(SIZES)
        if given is not None and given.tolist() == lengths:
            inputs.append(builder.input(site.input_name(SIZES)))
        else:
            inputs.append(builder.constant(np.array(lengths, np.int64), "sizes"))
    else:
        scales = np.ones(rank, np.float32)
        for axis in axes:
            by_length = isinstance(axis.scale, Fraction)
            scales[axis.number] = scale_to(axis.size, axis.output) if by_length else axis.scale
        inputs[SCALES] = builder.constant(scales, "scales")
    builder.output(site.node.output[0], builder.original(node, inputs))
    return Rewrite(builder.build(), trials, exact=site.text("mode", "nearest") == "nearest")


def _lengths(resize: Resample, axes: Sequence[Axis]) -> list[int] | Refusal:
    lengths = [each if isinstance(each, int) else None for each in resize.shape or ()]
    for axis in axes:
        lengths[axis.number] = axis.output
    if None in lengths:
        return Refusal("Sizes name the batch and the channels as well, and these are not known: fix them (--shape).")
    return [each for each in lengths if each is not None]


def gathered(site: Site, resize: Resample, axes: Sequence[Axis]) -> Rewrite | Refusal:
    """Return the very elements that mode nearest takes, by one Gather an axis."""
    trials = resize_trials(site, as_declared=True)
    if isinstance(trials, Refusal):
        return trials
    indices = {axis.number: axis.taken(resize) for axis in axes}
    return Rewrite(one_by_one(site, indices), trials, exact=True)


def weighed(site: Site, resize: Resample, axes: Sequence[Axis]) -> Rewrite | Refusal:
    """Return products of floats with one constant matrix an axis."""
    trials = resize_trials(site, as_declared=True)
    if isinstance(trials, Refusal):
        return trials
    dtype = helper.tensor_dtype_to_np_dtype(resize.elem_type)
    matrices = {axis.number: _matrix(site, resize, axis).astype(dtype) for axis in axes}
    value = attributes.find(site.node, "extrapolation_value")
    outside = None if value is None or not value.f else _outside(matrices, value.f, len(resize.shape or ()))
    if outside is not None and outside.size > MOST_WEIGHTS:
        return Refusal(f"What stands outside the image would be more than {MOST_WEIGHTS} numbers.")
    return Rewrite(weighed_and_summed(site, matrices, resize.shape or (), outside), trials, exact=False)


def _matrix(site: Site, resize: Resample, axis: Axis) -> np.ndarray:
    """Return the weights of one axis; rows of zeros stand for positions outside the image."""
    if resize.mode == "nearest":
        return selection(axis.taken(resize), axis.size)
    coefficient = attributes.find(site.node, "cubic_coeff_a")
    how = Interpolation(
        resize.mode, -0.75 if coefficient is None else coefficient.f, resize.exclude_outside, resize.antialias
    )
    return interpolation_matrix(how, resize.coordinates, axis.size, axis.output, axis.scale, axis.roi)


def _outside(matrices: Mapping[int, np.ndarray], value: float, rank: int) -> np.ndarray | None:
    """Return ``value`` wherever a position of any axis is outside the image, and 0 elsewhere; None where none is."""
    found = np.zeros((1,) * rank, bool)
    for number, matrix in matrices.items():
        found = found | ~matrix.any(axis=1).reshape([-1 if axis == number else 1 for axis in range(rank)])
    return np.where(found, value, 0).astype(next(iter(matrices.values())).dtype) if found.any() else None
