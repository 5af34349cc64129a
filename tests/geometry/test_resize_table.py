"""The table of the frameworks' resizes, row by row, against the real packages."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from padfix.geometry import resampling
from padfix.geometry.resize_table import (
    GROWTH,
    MEASURED,
    OTHER_FACTORS,
    RESIZES,
    SHRINK,
    WHOLE_GROWTH,
    WHOLE_SHRINK,
    Row,
)
from padfix.kernels.pool import average_pool
from padfix.kernels.resample import resize
from tests.support.framework_resizes import every_resize, matrix, onnx_matrix, package, resolved

SMALL = list(itertools.product(range(1, 10), range(1, 10)))
LARGER = [(14, 2), (31, 7), (7, 31), (2, 41), (8, 47), (33, 32)]
HOLDS = {
    "": lambda n, o: True,
    WHOLE_SHRINK: lambda n, o: o < n and n % o == 0,
    WHOLE_GROWTH: lambda n, o: o >= n and o % n == 0,
    OTHER_FACTORS: lambda n, o: n % o and o % n,
    GROWTH: lambda n, o: o >= n,
    SHRINK: lambda n, o: o < n and n % o,
}
SPECIAL = ("scale_factor", "fx", "box", "reducing_gap", "preserve_aspect_ratio")


def is_special(row: Row) -> bool:
    """Whether a row is not a matter of two lengths alone; it has a test of its own."""
    return any(name in row.options for name in SPECIAL) or row.function.endswith(("crop_and_resize", ".reduce"))


def name_of(row: Row) -> str:
    return f"{row.function}-{row.call}".replace(" ", "_")


def pairs(row: Row, among: list[tuple[int, int]]) -> list[tuple[int, int]]:
    whole = row.function.endswith("UpSampling2D")
    return [(n, o) for n, o in among if HOLDS[row.when](n, o) and not (whole and o % n)]


PLAIN = [row for row in RESIZES if not is_special(row)]
WEIGHTED = [row for row in PLAIN if row.attributes and row.attributes["mode"] != "nearest"]
NEAREST = [row for row in PLAIN if row.attributes and row.attributes["mode"] == "nearest"]
AVERAGED = [row for row in PLAIN if row.attributes is None and row.when == WHOLE_SHRINK]
NOT_EXPRESSIBLE = [row for row in PLAIN if row.attributes is None]


@pytest.mark.sweep(8)
@pytest.mark.parametrize("row", WEIGHTED, ids=name_of)
def test_linear_and_cubic(row):
    assert row.attributes is not None
    tolerance = 7e-4 if "1/1024" in row.slips else 5e-6
    for n, o in pairs(row, SMALL + LARGER):
        want = onnx_matrix(tuple(row.attributes.items()), n, o)
        np.testing.assert_allclose(matrix(row, n, o), want, rtol=0, atol=tolerance, err_msg=f"{n} -> {o}")


def on_a_boundary(row: Row, n: int, o: int, i: int) -> bool:
    """Whether output element i samples exactly between two input elements, as the rounding of the row sees it."""
    assert row.attributes is not None
    mode, rounding = (str(row.attributes[each]) for each in ("coordinate_transformation_mode", "nearest_mode"))
    x = resampling.source_coordinates(mode, n, o, Fraction(o, n))[i]
    return (x + (Fraction(1, 2) if rounding.startswith("round") else 0)).denominator == 1


@pytest.mark.sweep(3)
@pytest.mark.parametrize("row", NEAREST, ids=name_of)
def test_nearest_departs_at_exact_boundaries_alone(row):
    """Rows without a remark never depart. Where one has a remark and nothing departs, the package was mended."""
    assert row.attributes is not None
    departures = 0
    for n, o in pairs(row, list(itertools.product(range(1, 33), (1, 2, 3, 5, 7, 12, 18, 22, 32, 41, 46, 47, 49, 58)))):
        got = matrix(row, n, o).argmax(axis=0)
        want = onnx_matrix(tuple(row.attributes.items()), n, o).argmax(axis=0)
        for i in np.flatnonzero(got != want):
            assert abs(int(got[i]) - int(want[i])) == 1
            assert on_a_boundary(row, n, o, int(i)), (n, o, i)
            departures += 1
    assert bool(departures) == bool(row.slips), (departures, MEASURED)


@pytest.mark.sweep(2)
@pytest.mark.parametrize("row", NOT_EXPRESSIBLE, ids=name_of)
def test_no_attributes_of_resize_give_the_same(row):
    chosen = pairs(row, [*SMALL, *LARGER])
    measured = {pair: matrix(row, *pair) for pair in chosen}
    for attributes in every_resize():
        different = (
            pair for pair, weights in measured.items() if np.abs(weights - onnx_matrix(attributes, *pair)).max() > 0.01
        )
        assert next(different, None), attributes


@pytest.mark.parametrize("row", AVERAGED, ids=name_of)
def test_a_whole_factor_is_an_average_pool(row):
    for n, o in pairs(row, SMALL + LARGER):
        pooled = average_pool(np.eye(n)[None], kernel_shape=[n // o], strides=[n // o])[0]
        np.testing.assert_allclose(matrix(row, n, o), pooled, atol=1e-6)


@pytest.mark.parametrize("row", [row for row in RESIZES if row.function.endswith("crop_and_resize")], ids=name_of)
def test_crop_and_resize(row):
    tf = package(row)
    assert row.attributes is not None
    rng, departures = np.random.default_rng(0), 0
    for n, o in itertools.product((2, 3, 5, 8), (1, 2, 4, 7)):
        image = rng.normal(size=(1, n, 6, 1)).astype(np.float32)
        for _ in range(8):
            box = (rng.integers(-2, 12, 4) / 8).astype(np.float32)
            got = np.asarray(tf.image.crop_and_resize(image, box[None], [0], (o, 5), **row.options))[0, :, :, 0]
            want = resize(image[0, :, :, 0], box, sizes=np.array([o, 5]), **row.attributes)
            if row.slips:
                departures += int((got != want).sum())
            else:
                np.testing.assert_allclose(got, want, rtol=0, atol=2e-5)
    assert departures < 60, "of 1,500 elements or so; eighths put many positions on a boundary"


@pytest.mark.parametrize("row", [row for row in RESIZES if "scale_factor" in row.options], ids=name_of)
def test_a_scale_factor_of_pytorch(row):
    torch = package(row)
    assert row.attributes is not None
    options = {name: value for name, value in row.options.items() if name != "scale_factor"}
    copied = 0
    for n, s in itertools.product(range(1, 13), (0.3, 0.5, 0.7, 1.1, 1.5, 2.0, 2.7)):
        output = math.floor(n * s)
        if output == 0:
            continue
        images = torch.eye(n).reshape(n, 1, 1, n)
        got = torch.nn.functional.interpolate(images, scale_factor=(1.0, s), **options).numpy().reshape(n, -1)
        given = {"scales": np.array([s], np.float32)} if row.lengths == "scales" else {"sizes": np.array([output])}
        want = resize(np.eye(n), axes=[1], **given, **row.attributes)
        if got.shape == want.shape and output == n and row.slips and not np.allclose(got, want, atol=5e-6):
            np.testing.assert_array_equal(got, np.eye(n))
            copied += 1
            continue
        np.testing.assert_allclose(got, want, rtol=0, atol=5e-6, err_msg=f"{n} x {s}")
    assert bool(copied) == bool(row.slips), MEASURED


@pytest.mark.parametrize("row", [row for row in RESIZES if "fx" in row.options], ids=name_of)
def test_a_factor_of_opencv(row):
    cv2 = package(row)
    departures = 0
    for n, s in itertools.product(range(1, 13), (0.25, 0.5, 0.75, 1.5, 2.0, 2.25)):
        if (n * s == int(n * s)) == (row.attributes is None) or round(n * s) == 0:
            continue
        got = cv2.resize(np.eye(n, dtype=np.float32), None, fx=s, fy=1, interpolation=cv2.INTER_LINEAR)
        attributes = row.attributes or {"mode": "linear"}
        want = resize(np.eye(n), scales=np.array([s], np.float32), axes=[1], **attributes)
        by_sizes = resize(np.eye(n), sizes=np.array([got.shape[1]]), axes=[1], **attributes)
        if row.attributes is not None:
            np.testing.assert_allclose(got, want, atol=2e-6, err_msg=f"{n} x {s}")
        elif got.shape != want.shape and np.abs(got - by_sizes).max() > 0.01:
            departures += 1
    assert bool(departures) == (row.attributes is None)


def pillow_row(option: str) -> Row:
    (row,) = (row for row in RESIZES if row.framework == "Pillow" and option in row.options)
    return row


def test_a_box_of_pillow_is_no_slice():
    """The filter reads on beyond the box."""
    image_module = package(pillow_row("box"))
    X = np.random.default_rng(0).normal(size=(1, 12)).astype(np.float32)
    bilinear = image_module.Resampling.BILINEAR
    boxed = np.asarray(image_module.fromarray(X).resize((9, 1), bilinear, box=(3, 0, 9, 1)))
    sliced = np.asarray(image_module.fromarray(X[:, 3:9]).resize((9, 1), bilinear))
    assert np.abs(boxed - sliced).max() > 0.01
    np.testing.assert_allclose(boxed[:, 1:-1], sliced[:, 1:-1], atol=1e-6)


def test_a_reducing_gap_of_pillow_is_two_resizes():
    image_module = package(pillow_row("reducing_gap"))
    bilinear = image_module.Resampling.BILINEAR
    image = image_module.fromarray(np.eye(24, dtype=np.float32))
    gap = np.asarray(image.resize((3, 24), bilinear, reducing_gap=2.0))
    plain = np.asarray(image.resize((3, 24), bilinear))
    assert np.abs(gap - plain).max() > 0.01
    reduced = image.reduce((4, 1))
    np.testing.assert_allclose(gap, np.asarray(reduced.resize((3, 24), bilinear)), atol=1e-6)


def test_reduce_of_pillow_is_an_average_pool():
    image_module = package(pillow_row("factor"))
    for n, k in itertools.product((1, 5, 8, 12), (1, 2, 3, 5)):
        got = np.asarray(image_module.fromarray(np.eye(n, dtype=np.float32)).reduce((k, 1)))
        want = average_pool(np.eye(n)[None], kernel_shape=[k], strides=[k], ceil_mode=1)[0]
        np.testing.assert_allclose(got, want, atol=1e-6)


def test_integer_images_of_tensorflow_become_float32_but_for_nearest():
    tf = pytest.importorskip("tensorflow", reason="tensorflow is not installed (extra tf)")
    images = np.arange(20, dtype=np.uint8).reshape(1, 4, 5, 1)
    for method in ("bilinear", "bicubic", "area", "lanczos3", "gaussian"):
        assert tf.image.resize(images, (3, 7), method=method).dtype == tf.float32
    assert tf.image.resize(images, (3, 7), method="nearest").dtype == tf.uint8


def test_the_aspect_ratio_of_tensorflow_is_kept_another_way():
    (row,) = (row for row in RESIZES if "preserve_aspect_ratio" in row.options)
    tf = package(row)
    X = np.random.default_rng(0).normal(size=(5, 10)).astype(np.float32)
    got = np.asarray(tf.image.resize(X[None, :, :, None], (9, 5), preserve_aspect_ratio=True))[0, :, :, 0]
    assert got.shape == (2, 5), "2.5 is rounded to the even number"
    policy = resize(X, sizes=np.array([9, 5]), mode="linear", keep_aspect_ratio_policy="not_larger")
    assert policy.shape == (3, 5), "ONNX rounds halves up"
    np.testing.assert_allclose(got, resize(X, sizes=np.array([2, 5]), mode="linear"), atol=1e-5)


def test_both_options_of_pytorch_are_half_pixel_positions_of_the_corner_factor():
    """What the table says of align_corners with antialias: of 2 -> 3 and the like, scales can say it."""
    row = next(row for row in RESIZES if row.framework == "PyTorch" and len(row.options) == 3 and not row.attributes)
    for n, o in ((4, 5), (5, 8), (7, 12)):
        scales = np.array([(o - 1) / (n - 1)])
        want = resize(np.eye(n), scales=scales, axes=[1], mode="linear", antialias=1, exclude_outside=1)
        assert want.shape == (n, o)
        np.testing.assert_allclose(matrix(row, n, o), want, atol=2e-6)


@pytest.mark.parametrize("framework", ["OpenCV", "Pillow", "PyTorch"])
def test_integer_images_are_within_a_step(framework):
    row = next(
        row
        for row in RESIZES
        if row.framework == framework and row.options.get("mode", "bilinear") == "bilinear"
        if row.attributes and row.attributes["mode"] == "linear"
    )
    module = package(row)
    X = np.random.default_rng(0).integers(0, 256, (9, 7)).astype(np.uint8)
    options = {name: resolved(module, value) for name, value in row.options.items()}
    for height, width in ((4, 5), (13, 20), (9, 3)):
        if framework == "OpenCV":
            got = module.resize(X, (width, height), **options)
        elif framework == "Pillow":
            got = np.asarray(module.fromarray(X).resize((width, height), **options))
        else:
            images = module.from_numpy(X)[None, None]
            got = module.nn.functional.interpolate(images, size=(height, width), **options).numpy()[0, 0]
        exact = resize(X.astype(np.float64), sizes=np.array([height, width]), **row.attributes)
        assert got.dtype == np.uint8
        assert np.abs(got.astype(np.float64) - exact).max() < 1


def test_rows_say_either_what_or_why_not():
    for row in RESIZES:
        assert (row.attributes is None) == bool(row.because), row
        assert row.attributes is not None or row.instead, row
        assert row.when in HOLDS or is_special(row), row
    keys = [(row.function, row.call) for row in RESIZES]
    assert len(set(keys)) == len(keys)
    assert {row.framework for row in RESIZES} == {"TensorFlow 1", "TensorFlow 2", "PyTorch", "OpenCV", "Pillow"}


@pytest.mark.parametrize("row", [row for row in RESIZES if row.attributes], ids=name_of)
def test_the_attributes_are_onnx_s(row):
    from onnx import defs

    assert row.opset is not None
    schema = defs.get_schema("Resize", row.opset, "")
    assert row.attributes.keys() <= schema.attributes.keys()
