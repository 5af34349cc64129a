"""Comparison: the same numbers pass, anything that a padding slip does fails."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from padfix.proof.compare import compare, default_rtol


def rng() -> np.random.Generator:
    return np.random.default_rng(0)


def test_equal_arrays_are_equivalent_with_no_difference() -> None:
    values = rng().standard_normal((2, 3)).astype(np.float32)
    found = compare("y", values, values.copy())
    assert found.equivalent
    assert found.max_abs_diff == 0
    assert found.tolerance > 0


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16, ml_dtypes.bfloat16])
def test_rounding_passes_and_a_shift_by_one_does_not(dtype: type) -> None:
    values = rng().standard_normal((1, 2, 16, 16))
    rounded = values + values * np.finfo(np.float64).eps
    assert compare("y", values.astype(dtype), rounded.astype(dtype)).equivalent
    assert not compare("y", values.astype(dtype), np.roll(values, 1, axis=3).astype(dtype)).equivalent


def test_shift_in_an_almost_constant_output_is_seen() -> None:
    # The softmax of an untrained network: a thousand values that are all about the same.
    values = (0.001 + 1e-5 * rng().standard_normal(1000)).astype(np.float32)
    found = compare("y", values, np.roll(values, 1))
    assert not found.equivalent
    assert compare("y", values, (values * np.float32(1 + 1e-6)).astype(np.float32)).equivalent


def test_one_wrong_element_is_named_by_position() -> None:
    values = rng().standard_normal((4, 5)).astype(np.float32)
    other = values.copy()
    other[2, 3] += 1
    found = compare("y", values, other)
    assert not found.equivalent
    assert "1 of 20" in found.detail
    assert "[2, 3]" in found.detail
    assert found.max_abs_diff == pytest.approx(1, rel=1e-5)


def test_nan_equals_nan_only_at_the_same_place() -> None:
    values = np.array([1, np.nan, 3], np.float32)
    assert compare("y", values, values.copy()).equivalent
    missing = compare("y", values, np.array([1, 2, 3], np.float32))
    assert not missing.equivalent
    assert "reference" in missing.detail
    added = compare("y", np.array([1, 2, 3], np.float32), values)
    assert not added.equivalent
    assert "candidate" in added.detail


def test_infinities_must_have_the_same_sign_and_place() -> None:
    values = np.array([1, np.inf, -np.inf], np.float32)
    assert compare("y", values, values.copy()).equivalent
    assert not compare("y", values, -values).equivalent
    assert not compare("y", values, np.array([1, np.finfo(np.float32).max, -np.inf], np.float32)).equivalent


def test_shape_type_and_absence_are_said_in_words() -> None:
    values = np.zeros((2, 3), np.float32)
    assert "shape [3, 2] instead of [2, 3]" in compare("y", values, values.T).detail
    assert "float64" in compare("y", values, values.astype(np.float64)).detail
    assert not compare("y", values, None).equivalent
    assert not compare("y", None, values).equivalent


def test_integers_and_booleans_are_exact() -> None:
    values = np.arange(6, dtype=np.uint8)
    other = values.copy()
    other[5] = 4
    found = compare("y", values, other, rtol=1.0, atol=10.0)
    assert not found.equivalent
    assert found.max_abs_diff == 1
    assert compare("y", values, values.copy()).equivalent
    assert not compare("y", np.array([True, False]), np.array([True, True])).equivalent
    big = np.array([2**62], np.int64)
    assert not compare("y", big, big + 1).equivalent


def test_strings_may_be_bytes_or_text() -> None:
    text = np.array(["a", "b"], dtype=object)
    assert compare("y", np.array([b"a", b"b"], dtype=object), text).equivalent
    assert not compare("y", text, np.array(["a", "c"], dtype=object)).equivalent


def test_tolerances_can_be_given() -> None:
    values = np.array([0.0, 100.0], np.float32)
    other = values + np.float32(0.5)
    assert not compare("y", values, other).equivalent
    assert compare("y", values, other, rtol=0.01).equivalent
    assert compare("y", values, other, atol=0.6, rtol=0).equivalent
    assert not compare("y", values, other, rtol=0, atol=0.4).equivalent


def test_all_zero_reference_still_has_a_tolerance() -> None:
    zeros = np.zeros(4, np.float32)
    assert compare("y", zeros, zeros + np.float32(1e-12)).equivalent
    assert not compare("y", zeros, zeros + np.float32(1e-6)).equivalent


def test_coarsest_float_type_decides() -> None:
    single, half = np.dtype(np.float32), np.dtype(np.float16)
    assert default_rtol(single) == 1e-4
    assert default_rtol(single, [half]) == default_rtol(half)
    assert default_rtol(np.dtype(np.float64), [single]) == default_rtol(single)
    assert default_rtol(single, [np.dtype(np.int64)]) == default_rtol(single)
    assert default_rtol(np.dtype(np.int64), [single]) == 0


def test_empty_and_scalar_outputs() -> None:
    assert compare("y", np.zeros((0, 3), np.float32), np.zeros((0, 3), np.float32)).equivalent
    assert compare("y", np.float32(2), np.float32(2)).equivalent
    assert not compare("y", np.float32(2), np.float32(3)).equivalent
