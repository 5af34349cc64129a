"""Resizes of images of unknown size give TensorFlow's numbers at every size, through both levels of ONNX Runtime.

At some ratios a float32 position lies on the very edge of a kernel or on the border of two pixels: its rounding decides
what is read. So one model is run at all lengths from 1 to 200 brought to all from 1 to 40; height and width are
different pairs of these.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from padfix.proof.executors import OnnxRuntimeExecutor
from padfix.sources.tf_ops import sampling
from padfix.sources.tf_ops.tensor import Builder
from tests.support.tf_conversion import convert

pytestmark = pytest.mark.tensorflow

LONGEST, LONGEST_RESULT = 200, 40
ON_THE_EDGE = [(13, 6), (13, 4), (26, 12), (39, 18), (14, 2), (45, 21), (2, 41), (90, 37), (7, 31)]
"""Pairs at which something was once off."""

TOLERANCE = 4e-6
"""Of the image's range: a few units in the last place, summed over the taps."""

POSITION = 3 * LONGEST * 2.0**-24
"""What a bilinear position is off in float32: it becomes an ONNX Resize, whose runtime computes it in its own way."""

FLAGS = [(False, False), (True, False), (False, True)]
"""align_corners and half_pixel_centers."""


def configurations() -> Iterator[Any]:
    for kernel in sampling.KERNELS:
        for antialias in (False, True):
            yield pytest.param("ScaleAndTranslate", (kernel, antialias), id=f"{kernel}-{antialias}")
    for operator in ("ResizeBilinear", "ResizeBicubic", "ResizeNearestNeighbor", "ResizeArea"):
        for align, half in FLAGS if operator != "ResizeArea" else FLAGS[:2]:
            yield pytest.param(operator, (align, half), id=f"{operator}-{align}-{half}")


def resized(tf: Any, operator: str, settings: tuple[Any, Any]) -> Callable[..., Any]:
    """Return a function of an image and a size."""
    if operator == "ScaleAndTranslate":
        kernel, antialias = settings

        def function(x: Any, size: Any) -> dict[str, Any]:
            scale = tf.cast(size, tf.float32) / tf.cast(tf.shape(x)[1:3], tf.float32)
            zeros = tf.zeros([2])
            return {
                "y": tf.raw_ops.ScaleAndTranslate(
                    images=x, size=size, scale=scale, translation=zeros, kernel_type=kernel, antialias=antialias
                )
            }

        return function
    flags = {"align_corners": settings[0]} | ({} if operator == "ResizeArea" else {"half_pixel_centers": settings[1]})
    return lambda x, size: {"y": getattr(tf.raw_ops, operator)(images=x, size=size, **flags)}


def pairs(count: int | None) -> list[tuple[int, int]]:
    """Return (length, length of the result): all, or the ones on the edge and ``count`` others."""
    found = [(size, result) for size in range(1, LONGEST + 1) for result in range(1, LONGEST_RESULT + 1)]
    chosen = random.Random(0)
    return chosen.sample(found, len(found)) if count is None else ON_THE_EDGE + chosen.sample(found, count)


def differences(
    tf: Any, function: Callable[..., Any], runs: Iterator[dict[str, Any]], tolerance: float = TOLERANCE
) -> list[Any]:
    """Return the runs at which the converted function gives other numbers, at either level of optimisation."""
    feed = next(runs)
    source = convert(tf, function, feed, free=True)
    content = source.model.proto.SerializeToString()
    candidates = [OnnxRuntimeExecutor(content, optimised=optimised) for optimised in (False, True)]
    assert source.executor is not None
    original = source.executor()
    wrong = []
    for run in runs:
        wanted = original.run(run)["y"]
        for candidate in candidates:
            found = candidate.run(run)["y"]
            if found.shape != wanted.shape or np.abs(found - wanted).max(initial=0) > tolerance:
                off = np.abs(found - wanted).max(initial=0) if found.shape == wanted.shape else found.shape
                wrong.append((run["x"].shape, *(run[name].tolist() for name in run if name != "x"), off))
    return wrong


def images(count: int | None) -> Iterator[dict[str, Any]]:
    lengths = pairs(count)
    generator = np.random.default_rng(0)
    for rows, columns in zip(lengths, [*lengths[len(lengths) // 2 :], *lengths[: len(lengths) // 2]], strict=True):
        image = generator.uniform(-0.5, 0.5, (1, rows[0], columns[0], 1)).astype(np.float32)
        yield {"x": image, "size": np.int32([rows[1], columns[1]])}


@pytest.mark.sweep(10)
@pytest.mark.parametrize("count", [50, pytest.param(None, marks=pytest.mark.slow)])
@pytest.mark.parametrize(("operator", "settings"), [*configurations()])
def test_every_size(tf: Any, operator: str, settings: tuple[Any, Any], count: int | None) -> None:
    tolerance = POSITION if operator == "ResizeBilinear" else TOLERANCE
    assert not differences(tf, resized(tf, operator, settings), images(count), tolerance)


def moved(count: int) -> Iterator[dict[str, Any]]:
    """Scales and translations that are small fractions, where ties are, and others."""
    generator = np.random.default_rng(1)
    for index in range(count):
        image = generator.uniform(-0.5, 0.5, (1, *generator.integers(1, 60, 2), 1)).astype(np.float32)
        if index % 2:
            scale = generator.integers(1, 12, 2) / generator.integers(1, 24, 2)
            translation = generator.integers(-24, 24, 2) / generator.integers(1, 12, 2)
        else:
            scale, translation = generator.uniform(0.05, 4, 2), generator.uniform(-20, 20, 2)
        yield {
            "x": image,
            "size": generator.integers(1, 40, 2).astype(np.int32),
            "scale": scale.astype(np.float32),
            "translation": translation.astype(np.float32),
        }


@pytest.mark.sweep(5)
@pytest.mark.parametrize("count", [50, pytest.param(5000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("antialias", [False, True])
@pytest.mark.parametrize("kernel", list(sampling.KERNELS))
def test_every_scale_and_translation(tf: Any, kernel: str, antialias: bool, count: int) -> None:
    def function(x: Any, size: Any, scale: Any, translation: Any) -> dict[str, Any]:
        result = tf.raw_ops.ScaleAndTranslate(
            images=x, size=size, scale=scale, translation=translation, kernel_type=kernel, antialias=antialias
        )
        return {"y": result}

    assert not differences(tf, function, moved(count))


@pytest.mark.sweep(5)
@pytest.mark.parametrize("antialias", [False, True])
@pytest.mark.parametrize("kernel", list(sampling.KERNELS))
def test_weights_of_known_sizes(tf: Any, kernel: str, antialias: bool) -> None:
    """What is folded to a constant has TensorFlow's taps: an identity matrix resized is the matrix of the weights."""
    builder = Builder(None, "")
    for size, count in pairs(150):
        scale = np.float32(count) / np.float32(size)
        matrix = sampling.filter_weights(
            kernel, antialias, builder.integers(size), builder.integers(count), builder.floats(scale), builder.floats(0)
        )
        wanted = tf.raw_ops.ScaleAndTranslate(
            images=np.eye(size, dtype=np.float32)[None, :, None],
            size=[count, 1],
            scale=[scale, 1.0],
            translation=[0.0, 0.0],
            kernel_type=kernel,
            antialias=antialias,
        )[0, :, 0].numpy()
        assert matrix.array is not None
        np.testing.assert_array_equal(matrix.array != 0, wanted != 0, err_msg=f"{size} to {count}")
        np.testing.assert_allclose(matrix.array, wanted, rtol=0, atol=3e-7, err_msg=f"{size} to {count}")


def test_a_pixel_on_the_edge_of_the_gauss_kernel(tf: Any) -> None:
    """At a width of 13 it was left out or not by the optimisation level: 0.5 to 1.4 % of the range."""

    def function(x: Any) -> dict[str, Any]:
        return {"y": tf.image.resize(x, (4, 6), method="gaussian", antialias=True)}

    generator = np.random.default_rng(0)
    widths = ({"x": generator.uniform(0, 1, (1, 9, width, 3)).astype(np.float32)} for width in range(1, 60))
    assert not differences(tf, function, widths)
