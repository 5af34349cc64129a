"""Sampling positions against the specification's formulas in exact fractions, and against known traps."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from padfix.geometry.resampling import (
    Scale,
    aspect_ratio_output_size,
    aspect_ratio_scale,
    crop_slips,
    legacy_nearest_indices,
    nearest_index,
    nearest_indices,
    output_size,
    scale_to,
    slips_by_the_inverse,
    slips_in_single_precision,
    source_coordinates,
)

LENGTHS = st.integers(1, 48)


@settings(max_examples=300, deadline=None)
@given(LENGTHS, LENGTHS)
def test_exact_nearest_is_integer_arithmetic(size, output):
    scale = Fraction(output, size)
    floor = [i * size // output for i in range(output)]
    half = [((2 * i + 1) * size) // (2 * output) for i in range(output)]
    assert nearest_indices("asymmetric", "floor", size, output, scale) == floor
    # floor((i + 0.5) / scale) is half_pixel with halves rounded up.
    assert nearest_indices("half_pixel", "round_prefer_ceil", size, output, scale) == half
    assert nearest_indices("tf_half_pixel_for_nn", "floor", size, output, scale) == half


@settings(max_examples=200, deadline=None)
@given(LENGTHS, LENGTHS)
def test_symmetric_is_half_pixel_when_the_scale_is_exact(size, output):
    scale = Fraction(output, size)
    half_pixel = source_coordinates("half_pixel", size, output, scale)
    assert source_coordinates("half_pixel_symmetric", size, output, scale) == half_pixel
    # A mirror image samples mirrored positions.
    assert [size - 1 - x for x in reversed(half_pixel)] == half_pixel


@settings(max_examples=200, deadline=None)
@given(LENGTHS, st.integers(2, 48))
def test_align_corners_ends_on_the_corners(size, output):
    positions = source_coordinates("align_corners", size, output, 1.7)
    assert positions[0] == 0
    assert positions[-1] == size - 1
    steps = {after - before for before, after in itertools.pairwise(positions)}
    assert len(steps) == 1


@settings(max_examples=300, deadline=None)
@given(LENGTHS, st.floats(0.0625, 8, width=32))
def test_single_precision_is_close_to_the_formula(size, scale):
    output = output_size(size, scale)
    exact = [(i + 0.5) / scale - 0.5 for i in range(output)]
    got = source_coordinates("half_pixel", size, output, scale)
    np.testing.assert_allclose(got, exact, rtol=1e-5, atol=1e-5)
    got = source_coordinates("asymmetric", size, output, scale)
    np.testing.assert_allclose(got, [i / scale for i in range(output)], rtol=1e-5, atol=1e-5)


@settings(max_examples=300, deadline=None)
@given(LENGTHS, st.sampled_from([1 / 7, 1 / 3, 0.29, 0.5, 0.6, 0.7, 1.0, 1.0001, 1.1, 1.5, 2.0, 3.0, 2.7]))
def test_legacy_nearest_goes_down_when_growing_and_up_when_shrinking(size, scale):
    single = np.float32(scale)
    output = output_size(size, scale)
    expected = []
    for index in range(output):
        position = np.float32(index) / single
        rounded = math.floor(position) if single >= 1 else math.ceil(position)
        expected.append(min(max(rounded, 0), size - 1))
    assert legacy_nearest_indices(size, scale, output) == expected


def test_legacy_known_values():
    assert legacy_nearest_indices(4, 0.6, output_size(4, 0.6)) == [0, 2]  # [1, 2, 3, 4] -> [1, 3]
    assert legacy_nearest_indices(3, 2.0, 6) == [0, 0, 1, 1, 2, 2]
    assert legacy_nearest_indices(3, 1.0, 3) == [0, 1, 2]


@pytest.mark.parametrize(
    ("size", "scale", "expected"), [(10, 0.7, 7), (100, 0.29, 29), (50, 1.02, 51), (200, 1.005, 201)]
)
def test_output_size_is_the_single_precision_product(size, scale, expected):
    assert output_size(size, scale) == expected


def test_exact_scales_do_not_slip():
    for size in (14, 21, 28, 35):
        factor = size // 7
        indices = nearest_indices("asymmetric", "floor", size, factor, Fraction(factor, size))
        assert indices == [7 * i for i in range(factor)]


def test_rounding_of_halves_and_clipping():
    assert [nearest_index(x, "round_prefer_floor", 9) for x in (0.5, 1.5, 2.50001)] == [0, 1, 3]
    assert [nearest_index(x, "round_prefer_ceil", 9) for x in (0.5, 1.5, 2.49999)] == [1, 2, 2]
    assert nearest_index(float(np.float32(0.49999997)), "round_prefer_ceil", 9) == 0
    assert nearest_index(-0.5, "round_prefer_floor", 9) == 0
    assert nearest_index(Fraction(17, 2), "ceil", 9) == 8


def test_lengths_of_one():
    assert source_coordinates("pytorch_half_pixel", 4, 1, Fraction(1, 4)) == [0]
    assert source_coordinates("half_pixel", 4, 1, Fraction(1, 4)) == [Fraction(3, 2)]
    assert source_coordinates("align_corners", 4, 1, Fraction(1, 4)) == [0]
    assert source_coordinates("tf_crop_and_resize", 5, 1, Fraction(1, 5), (0.25, 0.75)) == [2.0]


def test_crop_reads_the_region_even_at_scale_one():
    positions = source_coordinates("tf_crop_and_resize", 4, 4, Fraction(1), (0.5, 1.0))
    assert positions == [1.5, 2.0, 2.5, 3.0]


def test_aspect_ratio():
    axes = [(10, 5), (20, 30)]
    assert aspect_ratio_scale(axes, "not_larger") == Fraction(1, 2)
    assert aspect_ratio_scale(axes, "not_smaller") == Fraction(3, 2)
    assert aspect_ratio_output_size(5, Fraction(1, 2)) == 3  # halves go up
    with pytest.raises(ValueError, match="not_larger"):
        aspect_ratio_scale(axes, "largest")


@pytest.mark.parametrize("scale", [2.0, Fraction(2)])
def test_unknown_modes_are_refused(scale):
    with pytest.raises(ValueError, match="unknown"):
        source_coordinates("half", 3, 6, scale)
    with pytest.raises(ValueError, match="nearest_mode"):
        nearest_index(0.5, "round", 3)


@pytest.mark.parametrize(
    ("mode", "rounding", "size", "output", "slips"),
    [
        ("asymmetric", "round_prefer_ceil", 13, 2, True),
        ("asymmetric", "floor", 21, 3, True),
        ("align_corners", "ceil", 15, 27, True),
        ("asymmetric", "floor", 8, 16, False),
        ("half_pixel", "round_prefer_ceil", 7, 7, False),
    ],
)
def test_which_lengths_single_precision_rounds_otherwise(
    mode: str, rounding: str, size: int, output: int, slips: bool
) -> None:
    assert slips_in_single_precision(mode, rounding, size, output) is slips


@pytest.mark.parametrize(
    ("mode", "rounding", "size", "scale", "slips"),
    [
        ("asymmetric", "floor", 15, 1.7, True),  # 17 / 1.7 is 10, and 17 times the inverse is less
        ("asymmetric", "floor", 9, 1.7, False),  # too short to come there
        ("asymmetric", "floor", 1024, 2.0, False),
        ("half_pixel", "floor", 9, 0.6, True),
        ("half_pixel", "floor", 9, 1.7, False),
        ("align_corners", "floor", 27, 1.7, True),
        ("asymmetric", "round_prefer_floor", 15, 1.7, False),
        ("asymmetric", "floor", 21, Fraction(12, 21), False),
        ("half_pixel", "floor", 5, Fraction(27, 5), True),
        ("asymmetric", "floor", 12, Fraction(12, 12), False),
    ],
)
def test_positions_by_the_inverse_of_a_scale(mode: str, rounding: str, size: int, scale: Scale, slips: bool) -> None:
    given = scale if isinstance(scale, Fraction) else float(np.float32(scale))
    output = output_size(size, scale) if isinstance(scale, float) else int(size * scale)
    assert slips_by_the_inverse(mode, rounding, size, output, given) is slips


@pytest.mark.parametrize(
    ("rounding", "size", "output", "roi", "slips"),
    [
        ("floor", 6, 12, (0.1, 1.2), True),
        (None, 6, 12, (0.1, 1.2), True),
        (None, 6, 12, (0.1, 1.1), False),
        ("floor", 11, 13, (0.2, 1.0), True),
        ("floor", 6, 11, (0.0, 1.0), False),
        ("round_prefer_floor", 5, 3, (0.0, 0.75), False),
        ("floor", 5, 1, (0.1, 1.2), False),
    ],
)
def test_a_position_in_a_region_that_another_order_of_operations_moves(
    rounding: str | None, size: int, output: int, roi: tuple[float, float], slips: bool
) -> None:
    assert crop_slips(rounding, size, output, roi) is slips


@given(st.integers(1, 4096), st.integers(1, 4096))
def test_a_written_scale_gives_the_length_in_single_and_in_double_precision(size: int, output: int) -> None:
    scale = scale_to(size, output)
    assert output_size(size, scale) == output
    assert int(size * scale) == output
    assert np.float32(scale) == scale
    assert abs(scale - output / size) <= np.spacing(np.float32(output / size))
