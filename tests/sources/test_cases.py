"""A choice among several branches by an index (``tf.switch_case``) comes out as conditions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import padfix
from padfix.proof.executors import OnnxRuntimeExecutor
from tests.support.tf_conversion import assert_same_numbers

pytestmark = pytest.mark.tensorflow

ROWS = np.random.default_rng(3).standard_normal((3, 4)).astype("f")
INDICES = [np.array(index, "i4") for index in (0, 1, 2, 3, 7, -1)]


@pytest.mark.parametrize("count", [1, 2, 4])
def test_each_index_leads_to_its_branch(tf: Any, count: int) -> None:
    def compute(x: Any, index: Any) -> dict[str, Any]:
        branches = [lambda: x, lambda: tf.sort(x), lambda: x[:, ::-1] * 2, lambda: tf.zeros_like(x)]
        return {"y": tf.switch_case(index, branches[:count]) + 1}

    assert_same_numbers(tf, compute, [{"x": ROWS, "index": index} for index in INDICES], free=False)


def test_a_choice_inside_of_another(tf: Any) -> None:
    def inner(x: Any, index: Any) -> Any:
        return tf.switch_case(index - 1, [lambda: x * 3, lambda: tf.nn.relu(x), lambda: x - 1])

    def compute(x: Any, index: Any) -> dict[str, Any]:
        outer = tf.switch_case(index, [lambda: x + 1, lambda: inner(x, index), lambda: inner(-x, index)])
        return {"y": outer}

    assert_same_numbers(tf, compute, [{"x": ROWS, "index": index} for index in INDICES], free=False)


def test_a_choice_in_a_loop(tf: Any) -> None:
    def turned(turn: Any, y: Any) -> Any:
        return turn + 1, tf.switch_case(turn - 1, [lambda: y * 3, lambda: tf.nn.relu(y), lambda: y - 1])

    assert_same_numbers(
        tf, lambda x: {"y": tf.while_loop(lambda turn, y: turn < 3, turned, [0, x])[1]}, [{"x": ROWS}], free=False
    )


def test_branches_with_weights_by_the_front_door(tf: Any, tmp_path: Path) -> None:
    module = tf.Module()
    module.weights = [tf.Variable(tf.random.stateless_normal([4, 2], [seed, 1])) for seed in range(3)]

    def compute(x: Any, index: Any) -> dict[str, Any]:
        return {"y": tf.switch_case(index, [lambda w=w: tf.matmul(x, w) for w in module.weights])}

    told = [tf.TensorSpec([None, 4], tf.float32, "x"), tf.TensorSpec([], tf.int32, "index")]
    module.run = tf.function(compute, input_signature=told)
    tf.saved_model.save(module, str(tmp_path / "m"), signatures=module.run)
    report = padfix.convert(tmp_path / "m", tmp_path / "m.onnx")
    assert report.verdict is not None and report.verdict.equivalent
    executor = OnnxRuntimeExecutor((tmp_path / "m.onnx").read_bytes(), optimised=False)
    for index in INDICES:
        expected = module.run(tf.constant(ROWS), tf.constant(index))["y"].numpy()
        np.testing.assert_allclose(executor.run({"x": ROWS, "index": index})["y"], expected, rtol=1e-5, atol=1e-6)
