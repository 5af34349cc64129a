"""Means of many numbers come out as near as TensorFlow's, which ONNX Runtime's own sum of them is not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.support.tf_conversion import assert_same_numbers

pytestmark = pytest.mark.tensorflow


@pytest.mark.parametrize("free", [False, True], ids=["fixed", "open"])
@pytest.mark.parametrize("keeps", [True, False])
def test_moments_of_a_group(tf: Any, free: bool, keeps: bool) -> None:
    """A plain loop over numbers that are nearly equal is off by 1e-4 and more here."""
    image = np.full((2, 96, 96, 2, 16), 0.5197, np.float32)
    image[:, ::7, ::5, :, ::3] = 0.1
    image[1] *= 0.5

    def moments(x: Any) -> dict[str, Any]:
        mean, variance = tf.nn.moments(x, [1, 2, 4], keepdims=keeps)
        return {"mean": mean, "variance": variance, "sum": tf.reduce_sum(x, [1, 2, -1], keepdims=keeps)}

    assert_same_numbers(tf, moments, [{"x": image}], free=free)
