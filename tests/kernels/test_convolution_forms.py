"""Conv agrees with plain loops over numbers, and ConvTranspose is the transpose of Conv."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from padfix.kernels import conv as conv_module
from padfix.kernels.conv import conv
from padfix.kernels.transpose import conv_transpose
from padfix.kernels.windows import pad, resolve
from tests.support.windows import data, windows

CHANNELS = st.sampled_from([(1, 1, 1), (1, 3, 2), (2, 2, 4), (3, 3, 6), (4, 4, 4)])


def conv_by_loops(X, W, group, **window):
    """Add up one product after the other; slow, and nothing to get wrong."""
    axes = resolve(X.shape[2:], W.shape[2:], **window)
    padded = pad(X, axes, 0.0)
    result = np.zeros((X.shape[0], W.shape[0], *(axis.output for axis in axes)))
    for item, channel, *window_place in np.ndindex(*result.shape):
        first = channel // (W.shape[0] // group) * W.shape[1]
        for inner, *taps in np.ndindex(*W.shape[1:]):
            place = [
                at * axis.stride + tap * axis.dilation for at, tap, axis in zip(window_place, taps, axes, strict=True)
            ]
            product = padded[(item, first + inner, *place)] * W[(channel, inner, *taps)]
            result[(item, channel, *window_place)] += product
    return result


@settings(max_examples=100, deadline=None)
@given(windows(), st.integers(0, 9), CHANNELS, st.integers(0, 3))
def test_conv_agrees_with_loops(window, seed, channels, batch):
    sizes, kernel, attributes = window
    group, inputs, outputs = channels
    X = data((batch, inputs, *sizes), seed, np.float64)
    W = data((outputs, inputs // group, *kernel), seed + 1, np.float64)
    loops = conv_by_loops(X, W, group, **attributes)
    np.testing.assert_allclose(conv(X, W, group=group, **attributes), loops, rtol=1e-12, atol=1e-12)


@settings(max_examples=60, deadline=None)
@given(windows(), st.integers(0, 9), CHANNELS)
def test_whole_numbers_agree_to_the_last_bit(window, seed, channels):
    """Sums of small integers are exact in float64, so that the order of the additions can't be an excuse."""
    sizes, kernel, attributes = window
    group, inputs, outputs = channels
    rng = np.random.default_rng(seed)
    X = rng.integers(-128, 128, (2, inputs, *sizes)).astype(np.float64)
    W = rng.integers(-128, 128, (outputs, inputs // group, *kernel)).astype(np.float64)
    np.testing.assert_array_equal(conv(X, W, group=group, **attributes), conv_by_loops(X, W, group, **attributes))


@pytest.mark.parametrize("elements", [1, 130, 400, 3000])
def test_slabs_of_items_and_of_rows_change_nothing(monkeypatch, elements):
    X, W = data((5, 4, 9, 6), 0), data((4, 2, 3, 2), 1)
    attributes = {"strides": [2, 1], "dilations": [2, 1], "auto_pad": "SAME_LOWER", "group": 2}
    whole = conv(X, W, **attributes)
    monkeypatch.setattr(conv_module, "LARGEST_COLUMNS", elements)
    np.testing.assert_allclose(conv(X, W, **attributes), whole, rtol=1e-6, atol=1e-6)


@settings(max_examples=80, deadline=None)
@given(windows(), st.integers(0, 9), st.sampled_from([(1, 1, 1), (1, 3, 2), (2, 2, 4)]))
def test_conv_transpose_is_the_transpose_of_conv(window, seed, channels):
    """``<conv(x), y> == <x, conv_transpose(y)>``, with output_padding for the elements that no window read."""
    sizes, kernel, attributes = window
    if attributes["auto_pad"] != "NOTSET":
        attributes["pads"] = [0] * len(attributes["pads"])
        attributes["auto_pad"] = "NOTSET"
    group, inputs, outputs = channels
    W = data((outputs, inputs // group, *kernel), seed, np.float64)
    X = data((2, inputs, *sizes), seed + 1, np.float64)
    try:
        forward = conv(X, W, group=group, **attributes)
    except ValueError:
        return  # without the pads of SAME the input may be too short
    if 0 in forward.shape:
        return
    Y = data(forward.shape, seed + 2, np.float64)
    rank, pads = len(sizes), attributes["pads"]
    unread = [
        size + pads[axis] + pads[axis + rank] - ((output - 1) * stride + (taps - 1) * dilation + 1)
        for axis, (size, output, stride, taps, dilation) in enumerate(
            zip(sizes, Y.shape[2:], attributes["strides"], kernel, attributes["dilations"], strict=True)
        )
    ]
    backward = conv_transpose(Y, W, group=group, output_padding=unread, **attributes)
    assert backward.shape == X.shape
    np.testing.assert_allclose((forward * Y).sum(), (X * backward).sum(), rtol=1e-9, atol=1e-9)
