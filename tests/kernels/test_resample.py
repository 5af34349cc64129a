"""Resampling against the brute-force legacy reading, exact formulas, and ONNX Runtime where that is right."""

from __future__ import annotations

import itertools

import numpy as np
import onnxruntime
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import helper, numpy_helper

from padfix.geometry.resampling import NEAREST_MODES
from padfix.kernels.resample import legacy_resize, resize
from tests.support import oracle

HALF_ELEMENTS = "tf_half_pixel_for_nn"
FACTORS = [1 / 7, 1 / 3, 0.29, 0.5, 0.6, 0.7, 1.0, 1.0001, 1.1, 1.5, 2.0, 2.7, 3.0]


def run_in_onnx_runtime(X, opset, scales=None, sizes=None, roi=None, **attributes):
    """Run one Resize node."""
    tensors = {
        "roi": roi,
        "scales": None if scales is None else np.array(scales, np.float32),
        "sizes": None if sizes is None else np.array(sizes, np.int64),
    }
    if opset == 10:
        del tensors["roi"], tensors["sizes"]
    names = [name if value is not None else "" for name, value in tensors.items()]
    while names and not names[-1]:
        names.pop()
    initializers = [numpy_helper.from_array(value, name) for name, value in tensors.items() if value is not None]
    node = helper.make_node("Resize", ["X", *names], ["Y"], **attributes)
    element = helper.np_dtype_to_tensor_dtype(X.dtype)
    graph = helper.make_graph(
        [node],
        "one",
        [helper.make_tensor_value_info("X", element, X.shape)],
        [helper.make_tensor_value_info("Y", element, None)],
        initializers,
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return session.run(None, {"X": X})[0]


def image(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


@settings(max_examples=150, deadline=None)
@given(st.lists(st.tuples(st.integers(1, 7), st.sampled_from(FACTORS)), min_size=1, max_size=3), st.booleans())
def test_legacy_against_brute_force(axes, nearest):
    sizes, scales = zip(*axes, strict=True)
    X = image(*sizes)
    if any(int(np.float32(n) * np.float32(s)) == 0 for n, s in axes):
        return
    mode = "nearest" if nearest else "linear"
    np.testing.assert_allclose(
        legacy_resize(X, scales, mode), oracle.legacy_resize(X, scales, mode), rtol=1e-6, atol=1e-6
    )


@pytest.mark.parametrize("mode", ["nearest", "linear"])
def test_legacy_against_onnx_runtime(mode):
    for height, width, up, across in itertools.product((2, 5), (3, 10), (0.5, 0.7, 1.0, 1.5, 2.0), (0.6, 1.0, 3.0)):
        X = image(1, 1, height, width)
        scales = [1, 1, up, across]
        got, want = legacy_resize(X, scales, mode), run_in_onnx_runtime(X, 10, scales, mode=mode)
        np.testing.assert_allclose(got, want, rtol=0, atol=0 if mode == "nearest" else 2e-6, err_msg=str(scales))


def test_legacy_integer_images_are_copied_exactly():
    X = np.arange(-6, 6, dtype=np.int64).reshape(3, 4)
    got = legacy_resize(X, [2.0, 0.6])
    np.testing.assert_array_equal(got, X[[0, 0, 1, 1, 2, 2]][:, [0, 2]])
    assert got.dtype == np.int64


def test_legacy_is_a_copy_when_no_length_changes():
    X = image(1, 1, 5, 4)
    np.testing.assert_array_equal(legacy_resize(X, [1, 1, 1.1, 1.0], "linear"), X)
    np.testing.assert_array_equal(legacy_resize(X, [1, 1, 1.1, 1.0]), X)


COORDINATES = ["half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners", "asymmetric"]


@pytest.mark.parametrize("coordinates", COORDINATES)
@pytest.mark.parametrize("nearest_mode", ["round_prefer_floor", "round_prefer_ceil", "floor", "ceil"])
def test_nearest_by_scales_against_onnx_runtime(coordinates, nearest_mode):
    for n, scale in itertools.product((1, 2, 5, 8), (0.4, 0.5, 0.7, 1.5, 2.0, 2.7)):
        if int(np.float32(n) * np.float32(scale)) in (0, n):  # ONNX Runtime copies when the length stays (1.31)
            continue
        X = np.arange(n, dtype=np.float32)
        attributes = {"coordinate_transformation_mode": coordinates, "nearest_mode": nearest_mode}
        want = run_in_onnx_runtime(X, 19, [scale], mode="nearest", **attributes)
        got = resize(X, scales=np.array([scale], np.float32), mode="nearest", **attributes)
        if coordinates == "align_corners":
            # Exact here; ONNX Runtime divides in float32 and may land beside a half.
            assert np.abs(got - want).max() <= 1
            continue
        np.testing.assert_array_equal(got, want, err_msg=f"{n} x {scale}")


@pytest.mark.parametrize("coordinates", COORDINATES)
@pytest.mark.parametrize(
    ("mode", "antialias", "exclude_outside"),
    # ONNX Runtime refuses exclude_outside with plain linear.
    [
        ("linear", 0, 0),
        ("linear", 1, 0),
        ("linear", 1, 1),
        ("cubic", 0, 0),
        ("cubic", 0, 1),
        ("cubic", 1, 0),
        ("cubic", 1, 1),
    ],
)
def test_interpolation_against_onnx_runtime(coordinates, mode, antialias, exclude_outside):
    attributes = {
        "coordinate_transformation_mode": coordinates,
        "mode": mode,
        "exclude_outside": exclude_outside,
        "antialias": antialias,
    }
    X = image(1, 1, 6, 7)
    for sizes in ([3, 14], [12, 4], [1, 10], [9, 5]):
        want = run_in_onnx_runtime(X, 19, sizes=[1, 1, *sizes], **attributes)
        got = resize(X, sizes=np.array([1, 1, *sizes]), **attributes)
        np.testing.assert_allclose(got, want, rtol=0, atol=5e-6, err_msg=str(sizes))
    for scales in ([1.5, 2.0], [0.5, 0.6], [0.3, 2.2]):
        want = run_in_onnx_runtime(X, 19, [1, 1, *scales], **attributes)
        got = resize(X, scales=np.array([1, 1, *scales], np.float32), **attributes)
        np.testing.assert_allclose(got, want, rtol=0, atol=5e-6, err_msg=str(scales))


@pytest.mark.parametrize("mode", ["nearest", "linear"])
def test_crop_and_resize_against_onnx_runtime(mode):
    X = image(1, 1, 6, 5)
    for box in ([0.1, 0.2, 0.8, 0.9], [-0.3, 0.0, 0.5, 1.4], [0.9, 0.7, 0.2, 0.1]):
        roi = np.array([0, 0, *box[:2], 1, 1, *box[2:]], np.float32)
        attributes = {"mode": mode, "coordinate_transformation_mode": "tf_crop_and_resize", "extrapolation_value": 7.0}
        want = run_in_onnx_runtime(X, 13, sizes=[1, 1, 4, 7], roi=roi, **attributes)
        got = resize(X, roi, sizes=np.array([1, 1, 4, 7]), **attributes)
        np.testing.assert_allclose(got, want, rtol=0, atol=1e-5, err_msg=str(box))


def test_crop_applies_on_an_axis_whose_length_stays():
    """ONNX Runtime 1.31 ignores the roi there."""
    X = np.arange(16, dtype=np.float32).reshape(4, 4)
    got = resize(
        X,
        np.array([0.5, 0, 1, 1], np.float32),
        sizes=np.array([4, 4]),
        mode="linear",
        coordinate_transformation_mode="tf_crop_and_resize",
    )
    np.testing.assert_allclose(got[:, 0], [6, 8, 10, 12])


def test_coordinates_apply_when_the_length_stays():
    """ONNX Runtime 1.31 copies there; the specification samples at i / 1.1."""
    X = np.arange(5, dtype=np.float32)
    got = resize(X, scales=np.array([1.1], np.float32), mode="linear", coordinate_transformation_mode="asymmetric")
    np.testing.assert_allclose(got, np.arange(5) / np.float32(1.1), rtol=1e-6)


def test_sizes_never_slip_an_index():
    """ONNX Runtime 1.31 picks 6 and not 7 for 14 -> 2."""
    attributes = {"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
    for size in (14, 21, 28, 35):
        got = resize(np.arange(size), sizes=np.array([size // 7]), **attributes)
        np.testing.assert_array_equal(got, np.arange(0, size, 7))


def test_align_corners_measures_whole_lengths():
    """onnx.reference 1.23 uses the fractional product instead."""
    X = np.arange(5, dtype=np.float32)
    scales = np.array([1.5], np.float32)
    got = resize(X, scales=scales, mode="linear", coordinate_transformation_mode="align_corners")
    np.testing.assert_allclose(got, np.linspace(0, 4, 7), rtol=1e-6)


def test_axes_may_be_negative_and_unordered():
    X = image(2, 3, 4)
    whole = resize(X, sizes=np.array([2, 6, 2]), mode="linear")
    np.testing.assert_array_equal(resize(X, sizes=np.array([2, 6]), axes=[-1, 1], mode="linear"), whole)


def test_aspect_ratio_policies():
    X = image(1, 1, 10, 20)
    for policy, lengths in (("not_larger", (5, 10)), ("not_smaller", (15, 30))):
        got = resize(X, sizes=np.array([5, 30]), axes=[2, 3], mode="linear", keep_aspect_ratio_policy=policy)
        assert got.shape == (1, 1, *lengths)
    want = run_in_onnx_runtime(X, 18, sizes=[5, 30], axes=[2, 3], mode="linear", keep_aspect_ratio_policy="not_larger")
    got = resize(X, sizes=np.array([5, 30]), axes=[2, 3], mode="linear", keep_aspect_ratio_policy="not_larger")
    np.testing.assert_allclose(got, want, atol=5e-6)


def test_half_pixel_for_nearest_is_half_pixel_rounded_up():
    for n, output in itertools.product(range(1, 12), range(1, 24)):
        X = np.arange(n)
        old = resize(
            X, sizes=np.array([output]), coordinate_transformation_mode="tf_half_pixel_for_nn", nearest_mode="floor"
        )
        new = resize(X, sizes=np.array([output]), nearest_mode="round_prefer_ceil")
        np.testing.assert_array_equal(old, new)


@pytest.mark.parametrize("words", [{"mode": "linear"}, *({"nearest_mode": each} for each in NEAREST_MODES)])
def test_axes_that_are_not_resized_stay_as_they_are_at_half_elements(words):
    X, empty, told = image(2, 3, 4, 5), np.zeros(0, np.float32), {"coordinate_transformation_mode": HALF_ELEMENTS}
    got = resize(X, sizes=np.array([2, 3, 9, 5]), **told, **words)
    want = run_in_onnx_runtime(X, 12, roi=empty, scales=empty, sizes=[2, 3, 9, 5], **told, **words)
    np.testing.assert_allclose(got, want, atol=1e-6)


def test_integers_are_cut_and_kept_in_range():
    X = np.array([2, 255], np.uint8)
    got = resize(X, sizes=np.array([8]), mode="linear")
    exact = resize(X.astype(np.float64), sizes=np.array([8]), mode="linear")
    np.testing.assert_array_equal(got, np.trunc(exact))
    assert resize(np.array([0, 255, 0, 255], np.uint8), sizes=np.array([16]), mode="cubic").dtype == np.uint8


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "either scales or sizes"),
        ({"scales": np.ones(2, np.float32), "sizes": np.array([2, 2])}, "either scales or sizes"),
        ({"scales": np.ones(3, np.float32)}, "don't fit"),
        ({"sizes": np.array([2, 2]), "mode": "area"}, "area"),
        ({"sizes": np.array([2, 2]), "antialias": 1}, "antialias"),
        ({"sizes": np.array([2, 2]), "coordinate_transformation_mode": "tf_crop_and_resize"}, "roi"),
        ({"scales": np.array([0, 1], np.float32)}, "above 0"),
    ],
)
def test_what_does_not_fit_is_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        resize(np.zeros((3, 4), np.float32), **arguments)
