"""Transposed padding against elements that are scattered one at a time."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from padfix.geometry.transposed import TransposedAxis, natural_output_size, output_shape_axis, same_axis
from tests.support import oracle

SMALL = st.integers(1, 5)


@settings(max_examples=150, deadline=None)
@given(SMALL, SMALL, st.integers(1, 4), st.integers(1, 3), st.integers(0, 3), st.booleans())
def test_same_is_size_times_stride_and_the_same_numbers(size, kernel, stride, dilation, extra, upper):
    X = np.arange(1, size + 1, dtype=np.float64).reshape(1, 1, -1)
    W = 10.0 ** np.arange(kernel).reshape(1, 1, -1)
    axis = same_axis(kernel, stride, dilation, extra, upper=upper)
    assert axis.begin >= 0
    assert axis.end >= 0
    assert natural_output_size(size, kernel, stride, dilation, *_numbers(axis)) == size * stride
    implicit = oracle.conv_transpose(
        X, W, None, [stride], [dilation], auto_pad="SAME_UPPER" if upper else "SAME_LOWER", output_padding=[extra]
    )
    explicit = oracle.conv_transpose(
        X, W, None, [stride], [dilation], [axis.begin, axis.end], output_padding=[axis.output_padding]
    )
    np.testing.assert_array_equal(explicit, implicit)


@settings(max_examples=150, deadline=None)
@given(SMALL, SMALL, st.integers(1, 4), st.integers(1, 3), st.integers(0, 3), st.integers(1, 24), st.booleans())
def test_output_shape_gives_that_length_and_the_same_numbers(size, kernel, stride, dilation, extra, wanted, upper):
    X = np.arange(1, size + 1, dtype=np.float64).reshape(1, 1, -1)
    W = 10.0 ** np.arange(kernel).reshape(1, 1, -1)
    axis = output_shape_axis(size, wanted, kernel, stride, dilation, extra, upper=upper)
    assert natural_output_size(size, kernel, stride, dilation, *_numbers(axis)) == wanted
    implicit = oracle.conv_transpose(
        X,
        W,
        None,
        [stride],
        [dilation],
        auto_pad="SAME_UPPER" if upper else "NOTSET",
        output_padding=[extra],
        output_shape=[wanted],
    )
    explicit = oracle.conv_transpose(
        X, W, None, [stride], [dilation], [axis.begin, axis.end], output_padding=[axis.output_padding]
    )
    np.testing.assert_array_equal(explicit, implicit)


def _numbers(axis: TransposedAxis) -> tuple[int, int, int]:
    return axis.begin, axis.end, axis.output_padding


@pytest.mark.parametrize(
    ("arguments", "upper", "expected"),
    [
        ((3, 2), True, TransposedAxis(0, 1, 0)),  # the commonest: a small head for SAME_UPPER
        ((3, 2), False, TransposedAxis(1, 0, 0)),
        ((2, 3), True, TransposedAxis(0, 0, 1)),  # kernel shorter than the stride: elements appended at the end
        ((3, 2, 1, 1), True, TransposedAxis(1, 1, 1)),  # output_padding widens the pads, the length stays
        ((3, 1, 2), True, TransposedAxis(2, 2, 0)),
    ],
)
def test_known_same_axes(arguments, upper, expected):
    assert same_axis(*arguments, upper=upper) == expected


def test_output_shape_has_a_big_head_unless_same_upper():
    assert output_shape_axis(3, 5, 4, upper=False) == TransposedAxis(1, 0, 0)
    assert output_shape_axis(3, 5, 4, upper=True) == TransposedAxis(0, 1, 0)
    assert output_shape_axis(3, 12, 4, 3, upper=True) == TransposedAxis(0, 0, 2)
