"""TensorFlow's resizes come out as ONNX that gives TensorFlow's numbers, far below what a proof would let pass."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from onnx import ModelProto

from padfix.sources.tf_ops import sampling
from padfix.sources.tf_ops.sampling import Grid
from padfix.sources.tf_ops.tensor import Builder, Tensor
from tests.support.tf_conversion import assert_same_numbers, noise

pytestmark = pytest.mark.tensorflow

SIZES = [
    ((5, 7), (10, 14)),  # whole factors
    ((5, 7), (3, 4)),  # down
    ((6, 4), (3, 9)),  # mixed
    ((5, 7), (5, 7)),  # identity
    ((5, 7), (1, 1)),
    ((1, 1), (4, 3)),
    ((7, 11), (31, 13)),  # tf2onnx gives 30 and 12
    ((14, 9), (2, 9)),  # ONNX Runtime reads pixel 6, TensorFlow pixel 7
    ((2, 8), (41, 47)),  # TensorFlow's own float32 indices slip
    ((13, 90), (47, 133)),  # positions rounded in other ways differ by 1e-5 pixels
]
OPERATORS = ["ResizeBilinear", "ResizeNearestNeighbor", "ResizeBicubic", "ResizeArea"]
METHODS = ["bilinear", "nearest", "bicubic", "area", "lanczos3", "lanczos5", "gaussian", "mitchellcubic"]
KERNELS = ["lanczos1", "lanczos3", "lanczos5", "gaussian", "box", "triangle", "keyscubic", "mitchellcubic"]
TYPES = ["uint8", "int8", "int16", "int32", "int64", "float16", "float64"]
MODES = ["static", "dynamic", "computed", "input"]


def sample(cases: Iterator[tuple[Any, ...]], count: int) -> list[Any]:
    """Return all cases, the ones that a quick run leaves out marked as slow."""
    found = list(cases)
    quick = set(random.Random(7).sample(range(len(found)), count))
    return [
        pytest.param(*case, id="-".join(str(value) for value in case).replace(" ", ""))
        if index in quick
        else pytest.param(*case, marks=pytest.mark.slow, id="-".join(str(value) for value in case).replace(" ", ""))
        for index, case in enumerate(found)
    ]


def operators(model: ModelProto) -> set[str]:
    return {node.op_type for node in model.graph.node}


def grids() -> Iterator[tuple[Any, ...]]:
    for operator, align, half in itertools.product(OPERATORS, (False, True), (False, True)):
        if not (align and half) and not (half and operator == "ResizeArea"):
            for (sizes, counts), mode in itertools.product(SIZES, MODES):
                yield operator, align, half, sizes, counts, mode, "float32"


def typed() -> Iterator[tuple[Any, ...]]:
    for operator, dtype, mode in itertools.product(OPERATORS, TYPES, MODES):
        yield operator, False, False, (5, 7), (10, 4), mode, dtype


@pytest.mark.sweep(10)
@pytest.mark.parametrize(
    ("operator", "align", "half", "sizes", "counts", "mode", "dtype"), [*sample(grids(), 60), *sample(typed(), 20)]
)
def test_every_grid_size_and_type(
    tf: Any, operator: str, align: bool, half: bool, sizes: Any, counts: Any, mode: str, dtype: str
) -> None:
    flags = {"align_corners": align} | ({} if operator == "ResizeArea" else {"half_pixel_centers": half})
    factors = [max(1, count // size) for size, count in zip(sizes, counts, strict=True)]

    def function(x: Any, size: Any = None) -> dict[str, Any]:
        if mode == "computed":
            shape = tf.shape(x)
            size = tf.stack([shape[1] * factors[0], shape[2] * factors[1] + (2 if half else 0)])
        elif mode != "input":
            size = list(counts)
        return {"y": getattr(tf.raw_ops, operator)(images=x, size=size, **flags)}

    feeds = [{"x": noise((2, *sizes, 3), dtype)}]
    if mode != "static":
        feeds.append({"x": noise((1, sizes[0] + 3, sizes[1] + 1, 3), dtype)})
    if mode == "input":
        for index, feed in enumerate(feeds):
            feed["size"] = np.array([counts[0] + index, counts[1]], np.int32)
    assert_same_numbers(tf, function, feeds, free=mode != "static")


ROUNDINGS: dict[str, Callable[[Any, Any], Any]] = {
    "round": lambda tf, image: tf.cast(tf.round(image), tf.uint8),
    "cast": lambda tf, image: tf.cast(image, tf.uint8),
    "shifted": lambda tf, image: tf.saturate_cast(tf.clip_by_value(image, 0, 255) + 0.5, tf.uint8),
    "moved": lambda tf, image: tf.floor(tf.transpose(image, [0, 3, 1, 2]) / 2),
}


@pytest.mark.parametrize("rounding", ROUNDINGS)
@pytest.mark.parametrize("free", [False, True])
def test_bilinear_images_that_are_rounded_are_equal_to_the_last_bit(tf: Any, rounding: str, free: bool) -> None:
    """A plain image too, whose values a sum of weights that is just below one would cut to the number below."""

    def function(x: Any) -> dict[str, Any]:
        return {"y": ROUNDINGS[rounding](tf, tf.image.resize(x, [11, 14]))}

    image = np.random.default_rng(5).integers(0, 256, (8, 12, 5, 3), np.uint8)
    plain = np.broadcast_to(image[:1, :1, :1], (1, 12, 5, 3))
    feeds = [{"x": image}, *([{"x": plain}, {"x": image[:, :7]}, {"x": image[:0]}] if free else [])]
    assert "Resize" not in operators(assert_same_numbers(tf, function, feeds, free, tolerance=0))


def test_bilinear_images_that_are_not_rounded_stay_a_resize(tf: Any) -> None:
    def function(x: Any) -> dict[str, Any]:
        return {"y": tf.image.resize(x, [10, 14]) / 255, "z": tf.shape(x)[1] // 2}

    feed = {"x": np.random.default_rng(5).integers(0, 256, (2, 5, 7, 3), np.uint8)}
    assert "Resize" in operators(assert_same_numbers(tf, function, [feed], free=False))


def methods() -> Iterator[tuple[Any, ...]]:
    for method, antialias, (sizes, counts), free in itertools.product(METHODS, (False, True), SIZES, (False, True)):
        yield method, antialias, sizes, counts, free


@pytest.mark.sweep(5)
@pytest.mark.parametrize(("method", "antialias", "sizes", "counts", "free"), sample(methods(), 40))
def test_every_method_of_image_resize(
    tf: Any, method: str, antialias: bool, sizes: Any, counts: Any, free: bool
) -> None:
    def function(x: Any) -> dict[str, Any]:
        return {"y": tf.image.resize(x, counts, method, antialias=antialias)}

    feeds = [{"x": noise((2, *sizes, 3), "float32")}]
    if free:
        feeds.append({"x": noise((1, sizes[0] + 3, sizes[1] + 1, 3), "float32")})
    assert_same_numbers(tf, function, feeds, free)


@pytest.mark.sweep(3)
@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("antialias", [False, True])
@pytest.mark.parametrize("free", [False, True])
def test_every_kernel_of_scale_and_translate(tf: Any, kernel: str, antialias: bool, free: bool) -> None:
    """Scales both ways and translations that move part of the output off the image."""

    def with_inputs(x: Any, scale: Any, translation: Any) -> dict[str, Any]:
        result = tf.raw_ops.ScaleAndTranslate(
            images=x, size=[6, 13], scale=scale, translation=translation, kernel_type=kernel, antialias=antialias
        )
        return {"y": result}

    def with_constants(x: Any) -> dict[str, Any]:
        return with_inputs(x, [0.7, 1.9], [1.3, -2.0])

    feed = {"x": noise((2, 7, 9, 2), "float32")}
    if free:
        feed |= {"scale": np.float32([1.6, 0.45]), "translation": np.float32([-1.5, 2.25])}
        assert_same_numbers(tf, with_inputs, [feed], free)
    else:
        assert_same_numbers(tf, with_constants, [feed], free)


def crops() -> Iterator[tuple[Any, ...]]:
    sizes = [(4, 5), (5, 7), (5, 9), (1, 1), (3, 1)]
    yield from itertools.product(("bilinear", "nearest"), sizes, ("float32", "uint8"), (False, True))


@pytest.mark.sweep(3)
@pytest.mark.parametrize(("method", "crop", "dtype", "free"), sample(crops(), 16))
def test_crops(tf: Any, method: str, crop: Any, dtype: str, free: bool) -> None:
    boxes = np.float32(
        [[0, 0, 1, 1], [0.25, 0.75, 0.25, 0.75], [1, 1, 0, 0], [-0.3, 0.2, 0.6, 1.4], [0.5, 0, 1, 1], [2, 2, 3, 3]]
    )
    owners = np.int32([0, 1, 1, 0, 1, 0])

    def with_inputs(x: Any, boxes: Any, owners: Any) -> dict[str, Any]:
        return {"y": tf.image.crop_and_resize(x, boxes, owners, crop, method, extrapolation_value=-3.5)}

    def with_constants(x: Any) -> dict[str, Any]:
        return with_inputs(x, boxes, owners)

    feed = {"x": noise((2, 5, 7, 3), dtype)}
    if free:
        assert_same_numbers(tf, with_inputs, [feed | {"boxes": boxes, "owners": owners}], free)
    else:
        assert_same_numbers(tf, with_constants, [feed], free)


@pytest.mark.sweep(3)
@pytest.mark.parametrize("free", [False, True])
@pytest.mark.parametrize("method", ["bilinear", "nearest", "bicubic", "lanczos3"])
def test_resize_with_pad(tf: Any, method: str, free: bool) -> None:
    def function(x: Any) -> dict[str, Any]:
        return {"y": tf.image.resize_with_pad(x, 8, 12, method)}

    assert_same_numbers(tf, function, [{"x": noise((2, 9, 6, 3), "float32")}], free)


def results_of(model: Any) -> Callable[..., Any]:
    def function(x: Any) -> dict[str, Any]:
        return {"y": model(x)}

    return function


@pytest.mark.parametrize("library", ["keras", "tf_keras"])
@pytest.mark.parametrize("free", [False, True])
def test_keras_layers(tf: Any, library: str, free: bool) -> None:
    keras = pytest.importorskip(library)
    upsampling = keras.layers.UpSampling2D
    layers = [keras.layers.Resizing(5, 9, interpolation="bicubic"), upsampling((2, 3), interpolation="nearest")]
    if library == "tf_keras" or not free:  # Keras 3 itself can't build the other
        layers.append(upsampling((2, 3), interpolation="bilinear"))
    for layer in layers:
        inputs = keras.Input([None, None, 3] if free else [6, 8, 3])
        model = keras.Model(inputs, layer(inputs))

        assert_same_numbers(tf, results_of(model), [{"x": noise((2, 6, 8, 3), "float32")}], free)


def test_a_resize_stays_a_resize_where_that_is_exact(tf: Any) -> None:
    """Doubling with dynamic sizes is one Resize by constant scales; 14 to 2 needs TensorFlow's own index."""

    def doubled(x: Any) -> dict[str, Any]:
        return {"y": tf.raw_ops.ResizeNearestNeighbor(images=x, size=tf.shape(x)[1:3] * 2, half_pixel_centers=True)}

    model = assert_same_numbers(tf, doubled, [{"x": noise((1, 5, 6, 2), "float32")}], free=True)
    assert operators(model) == {"Transpose", "Resize"}

    def slipping(x: Any) -> dict[str, Any]:
        return {"y": tf.raw_ops.ResizeNearestNeighbor(images=x, size=[2, 2])}

    model = assert_same_numbers(tf, slipping, [{"x": noise((1, 14, 14, 2), "float32")}], free=False)
    assert operators(model) == {"Gather"}


def array(tensor: Tensor) -> np.ndarray[Any, Any]:
    assert tensor.array is not None
    return tensor.array


@pytest.mark.parametrize(("size", "count"), [(5, 3), (3, 5), (7, 7), (8, 2), (2, 9), (1, 4), (6, 1)])
def test_area_weights_are_overlaps(size: int, count: int) -> None:
    """Each weight is the part of an output pixel's box that lies in an input pixel, counted in exact fractions."""
    builder = Builder(None, "")
    found = array(sampling.area_weights(Grid(False, False), builder.integers(size), builder.integers(count)))
    scale = Fraction(size, count)
    for row, column in itertools.product(range(count), range(size)):
        overlap = min(column + 1, (row + 1) * scale) - max(column, row * scale)
        assert found[row, column] == pytest.approx(float(max(overlap, 0) / scale), abs=1e-6)


@pytest.mark.parametrize("half", [False, True])
@pytest.mark.parametrize(("size", "count"), [(9, 5), (5, 9), (4, 4), (1, 3)])
def test_rows_of_cubic_weights_sum_to_one(half: bool, size: int, count: int) -> None:
    builder = Builder(None, "")
    weights = array(sampling.cubic_weights(Grid(False, half), builder.integers(size), builder.integers(count)))
    np.testing.assert_allclose(weights.sum(axis=1), 1, atol=1e-6)
