"""The closed formulas of padding against windows that are laid and counted one at a time."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from padfix.geometry.padding import (
    effective_kernel,
    end_without_ceil_mode,
    has_window_in_padding,
    lasting_padding,
    residue_independent_padding,
    same_output_size,
    same_padding,
    same_total_padding,
    size_independent_padding,
    split_same_padding,
    window_output_size,
)
from tests.support import oracle

SIZES = st.integers(1, 40)
KERNELS = st.integers(1, 7)
STRIDES = st.integers(1, 6)
DILATIONS = st.integers(1, 4)


@settings(max_examples=300, deadline=None)
@given(SIZES, KERNELS, STRIDES, DILATIONS, st.booleans())
def test_same_padding_is_what_counting_gives(size, kernel, stride, dilation, upper):
    auto_pad = "SAME_UPPER" if upper else "SAME_LOWER"
    begin, end, output = oracle.window_axis(size, kernel, stride, dilation, auto_pad=auto_pad)
    assert same_padding(size, kernel, stride, dilation, upper=upper) == (begin, end)
    assert same_output_size(size, stride) == output
    assert same_total_padding(size, kernel, stride, dilation) == begin + end


@settings(max_examples=300, deadline=None)
@given(SIZES, KERNELS, STRIDES, DILATIONS, st.booleans())
def test_explicit_same_pads_give_the_same_number_of_windows(size, kernel, stride, dilation, upper):
    begin, end = same_padding(size, kernel, stride, dilation, upper=upper)
    for ceil_mode in (False, True):
        output = window_output_size(size, kernel, stride, dilation, begin, end, ceil_mode=ceil_mode)
        if not ceil_mode or begin + end > 0:
            assert output == same_output_size(size, stride)


@settings(max_examples=300, deadline=None)
@given(SIZES, KERNELS, STRIDES, DILATIONS)
def test_total_depends_on_the_residue_only(size, kernel, stride, dilation):
    total = same_total_padding(size, kernel, stride, dilation)
    assert same_total_padding(size % stride or stride, kernel, stride, dilation) == total


@settings(max_examples=200, deadline=None)
@given(KERNELS, STRIDES, DILATIONS, st.booleans())
def test_residue_independent_padding_tells_the_truth(kernel, stride, dilation, upper):
    seen = {same_padding(size, kernel, stride, dilation, upper=upper) for size in range(1, 3 * stride + 1)}
    found = residue_independent_padding(kernel, stride, dilation, upper=upper)
    assert (found is not None) == (len(seen) == 1)
    assert found is None or found in seen


@settings(max_examples=400, deadline=None)
@given(SIZES, KERNELS, STRIDES, DILATIONS, st.integers(0, 8), st.integers(0, 8), st.booleans())
def test_window_output_size_counts_windows(size, kernel, stride, dilation, begin, end, ceil_mode):
    if size + begin + end < effective_kernel(kernel, dilation):
        return
    counted = oracle.window_axis(size, kernel, stride, dilation, (begin, end), "NOTSET", ceil_mode)[2]
    assert window_output_size(size, kernel, stride, dilation, begin, end, ceil_mode=ceil_mode) == counted


@pytest.mark.parametrize(
    ("numbers", "upper", "expected"),
    [
        ((7, 3, 1, 2), True, (2, 2)),  # dilation counts
        ((8, 1, 4, 1), True, (0, 0)),  # kernel shorter than the stride: never below 0
        ((8, 1, 4, 1), False, (0, 0)),
        ((5, 2, 1, 1), True, (0, 1)),  # the odd element
        ((5, 2, 1, 1), False, (1, 0)),
        ((6, 3, 2, 1), True, (0, 1)),
        ((6, 3, 2, 1), False, (1, 0)),
        ((224, 3, 2, 1), True, (0, 1)),
        ((10, 2, 1, 3), True, (1, 2)),
    ],
)
def test_known_same_padding(numbers, upper, expected):
    assert same_padding(*numbers, upper=upper) == expected


def test_split_puts_the_odd_element_last_for_upper():
    assert split_same_padding(3, upper=True) == (1, 2)
    assert split_same_padding(3, upper=False) == (2, 1)


@given(st.integers(1, 40), KERNELS, st.integers(1, 5), DILATIONS, st.integers(0, 3), st.integers(0, 3))
def test_ceil_mode_is_a_longer_end_padding_where_it_drops_no_window(size, kernel, stride, dilation, begin, end):
    longer = end_without_ceil_mode(kernel, stride, dilation, end)
    if longer is not None and size + begin + end >= effective_kernel(kernel, dilation):
        windows = window_output_size(size, kernel, stride, dilation, begin, end, ceil_mode=True)
        assert window_output_size(size, kernel, stride, dilation, begin, longer) == windows


def test_ceil_mode_drops_a_window_that_starts_in_the_end_padding():
    assert window_output_size(5, 2, 2, ceil_mode=True) == 3
    assert window_output_size(4, 1, 3, 1, 0, 0, ceil_mode=True) == 2
    assert window_output_size(4, 2, 3, 1, 0, 2, ceil_mode=True) == 2


@settings(max_examples=400, deadline=None)
@given(KERNELS, STRIDES, DILATIONS, st.booleans())
def test_residue_independent_padding_is_what_all_residues_agree_on(kernel, stride, dilation, upper):
    every = {same_padding(size, kernel, stride, dilation, upper=upper) for size in range(1, 2 * stride + 1)}
    found = residue_independent_padding(kernel, stride, dilation, upper=upper)
    assert found == (every.pop() if len(every) == 1 else None)


@settings(max_examples=2000, deadline=None)
@given(SIZES, KERNELS, STRIDES, DILATIONS, st.integers(0, 12), st.integers(0, 12))
def test_windows_in_the_padding_are_those_that_a_walk_over_all_taps_finds(size, kernel, stride, dilation, begin, end):
    starts = range(-begin, size + end - effective_kernel(kernel, dilation) + 1, stride)
    walked = any(all(not 0 <= start + tap * dilation < size for tap in range(kernel)) for start in starts)
    assert has_window_in_padding(size, kernel, stride, dilation, begin, end) == walked


@settings(max_examples=400, deadline=None)
@given(KERNELS, STRIDES, DILATIONS, st.booleans())
def test_lasting_padding_lacks_nothing_but_the_begin(kernel, stride, dilation, upper):
    begin, end = lasting_padding(kernel, stride, dilation, upper=upper)
    lacking = set()
    for size in range(1, 3 * stride + effective_kernel(kernel, dilation)):
        wanted = same_padding(size, kernel, stride, dilation, upper=upper)
        assert begin <= wanted[0] and end >= wanted[1]
        lacking.add(wanted[0] - begin)
        counted = oracle.window_axis(size, kernel, stride, dilation, (wanted[0], end))[2]
        assert counted == same_output_size(size, stride)
    assert size_independent_padding(kernel, stride, dilation, upper=upper) == ((begin, end) if lacking == {0} else None)


def test_known_size_independent_padding():
    assert size_independent_padding(2, 2, upper=True) == (0, 1)
    assert size_independent_padding(2, 2, upper=False) is None
    assert size_independent_padding(3, 2, upper=True) is None
    assert size_independent_padding(3, 2, upper=False) == (1, 1)
    assert size_independent_padding(2, 3, upper=True) == (0, 1)
    assert size_independent_padding(3, 3, upper=True) is None


def test_astronomic_numbers_are_no_more_work():
    assert residue_independent_padding(3, 2**62) is None
    assert residue_independent_padding(2**62, 1, 2**62) == ((2**62 - 1) * 2**61, (2**62 - 1) * 2**61)
    assert has_window_in_padding(5, 2**30, 1, 2**31, 2**60, 2**60)
    assert not has_window_in_padding(2**31, 2**30, 1, 2**31, 2**60, 2**60)
