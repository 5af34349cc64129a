"""Branches of conditions know the shapes of what they read from outside."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import padfix

pytestmark = pytest.mark.tensorflow


def by_weights(tf: Any, module: Any, x: Any) -> Any:
    return tf.nn.conv2d(x, module.weights, 2, "SAME") + module.offsets


def by_lengths(tf: Any, module: Any, x: Any) -> Any:
    return tf.repeat(x, 2, -1) * tf.cast(tf.size(module.weights) + 10 * tf.size(module.offsets), tf.float32)


@pytest.mark.parametrize("branch", [by_weights, pytest.param(by_lengths, marks=pytest.mark.slow)])
def test_what_a_branch_reads_from_outside_has_its_own_shape(
    tf: Any, branch: Callable[..., Any], tmp_path: Path
) -> None:
    def function(x: Any, number: Any) -> Any:
        return tf.cond(number > 0, lambda: branch(tf, module, x), lambda: tf.repeat(x, 2, -1) + module.offsets)

    module = tf.Module()
    module.weights = tf.Variable(np.random.default_rng(0).standard_normal((3, 3, 2, 4)).astype("f"))
    module.offsets = tf.Variable([1.0, 2.0, 3.0, 4.0])
    signature = [tf.TensorSpec([None, None, None, 2], tf.float32, "x"), tf.TensorSpec([], tf.int32, "number")]
    module.call = tf.function(function, input_signature=signature)
    tf.saved_model.save(module, str(tmp_path / "m"), signatures=module.call)
    report = padfix.convert(tmp_path / "m", tmp_path / "m.onnx")
    assert report.verdict is not None and report.verdict.equivalent
