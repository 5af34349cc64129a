"""Images that are turned, sheared and moved come out with TensorFlow's numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.support.tf_conversion import assert_same_numbers

pytestmark = pytest.mark.tensorflow

RANDOM = np.random.default_rng(5)
IMAGE = RANDOM.random((3, 5, 6, 2)).astype("f")
MAPS = np.concatenate(
    [
        RANDOM.standard_normal((12, 8)) * [1, 1, 4, 1, 1, 4, 0.1, 0.1],
        [[1, 0, -0.5, 0, 1, -0.5, 0, 0], [1, 0, 0.5, 0, 1, 1.5, 0, 0], [1, 0, 0, 0, 1, 0, -0.5, 0]],
        [[0, 1, 2, 1, 0, -40, 0, 0], [1, 0, 0, 0, 1, 0, 0, -1], [3, 0, -9, 0, -2, 7, 0, 0]],
    ]
)[:, None].astype("f")


@pytest.mark.sweep(10)
@pytest.mark.parametrize("mode", ["CONSTANT", "NEAREST", "REFLECT", "WRAP"])
@pytest.mark.parametrize("interpolation", ["NEAREST", "BILINEAR"])
@pytest.mark.parametrize("dtype", ["float32", "uint8", "int64", "float16", "float64"])
def test_every_way_to_fill(tf: Any, dtype: str, interpolation: str, mode: str) -> None:
    image = (IMAGE * 200).astype(dtype) if dtype.lstrip("u").startswith("int") else IMAGE.astype(dtype)

    def moved(x: Any, m: Any) -> Any:
        return {
            "y": tf.raw_ops.ImageProjectiveTransformV3(
                images=x,
                transforms=m[:, 0],
                output_shape=[7, 4],
                fill_value=3.0,
                interpolation=interpolation,
                fill_mode=mode,
            )
        }

    feeds = [{"x": image, "m": MAPS[first : first + 3]} for first in range(0, len(MAPS), 3)]
    feeds += [{"x": image, "m": MAPS[:1]}, {"x": image[:1], "m": MAPS[:1]}, {"x": image[:0], "m": MAPS[:0]}]
    assert_same_numbers(tf, moved, feeds, free=True)


@pytest.mark.parametrize("mode", ["REFLECT", "WRAP"])
def test_an_image_of_one_pixel(tf: Any, mode: str) -> None:
    def moved(x: Any, m: Any) -> Any:
        shape = tf.shape(x)[1:3] * 2
        return {
            "y": tf.raw_ops.ImageProjectiveTransformV2(
                images=x, transforms=m[:, 0], output_shape=shape, interpolation="BILINEAR", fill_mode=mode
            )
        }

    assert_same_numbers(tf, moved, [{"x": IMAGE[:, :1, :1], "m": MAPS[:3]}, {"x": IMAGE, "m": MAPS[6:9]}], free=True)
