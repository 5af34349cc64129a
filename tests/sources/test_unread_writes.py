"""A variable that only its own writer reads, such as a counter of calls, keeps no model from being converted."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import padfix
from padfix.errors import UnsupportedError

pytestmark = pytest.mark.tensorflow


def saved(tf: Any, folder: Path, compute: Any) -> Path:
    """Save a function of one matrix and a module with the variables ``calls``, ``mean`` and ``weights``."""
    module = tf.Module()
    module.calls, module.mean = tf.Variable(0), tf.Variable(tf.zeros([3]))
    module.weights = tf.Variable(tf.ones([3, 4]))
    module.run = tf.function(
        lambda x: {"y": compute(module, x)}, input_signature=[tf.TensorSpec([None, 3], tf.float32, "x")]
    )
    tf.saved_model.save(module, str(folder), signatures=module.run)
    return folder


def test_a_counter_and_a_moving_mean_that_no_output_reads(tf: Any, tmp_path: Path) -> None:
    def compute(module: Any, x: Any) -> Any:
        module.calls.assign_add(1)
        module.mean.assign(0.9 * module.mean + 0.1 * tf.reduce_mean(x, 0))
        tf.print("calls:", module.calls)
        return tf.matmul(x, module.weights)

    report = padfix.convert(saved(tf, tmp_path / "m", compute), tmp_path / "m.onnx")
    assert report.verdict is not None and report.verdict.equivalent


def test_writes_in_loops_and_conditions(tf: Any, tmp_path: Path) -> None:
    def compute(module: Any, x: Any) -> Any:
        def step(turn: Any, y: Any) -> tuple[Any, Any]:
            module.calls.assign_add(1)
            return turn + 1, y * 2.0

        def reset() -> Any:
            module.calls.assign(7)
            return x

        _, y = tf.while_loop(lambda turn, y: turn < 3, step, (tf.constant(0), x))
        return y + tf.cond(tf.reduce_sum(x) > 0, reset, lambda: 2 * x)

    report = padfix.convert(saved(tf, tmp_path / "m", compute), tmp_path / "m.onnx")
    assert report.verdict is not None and report.verdict.equivalent


@pytest.mark.parametrize("place", ["here", "in a condition"])
def test_a_variable_that_an_output_reads_is_state(place: str, tf: Any, tmp_path: Path) -> None:
    def compute(module: Any, x: Any) -> Any:
        module.calls.assign_add(1)
        factor = lambda: tf.cast(module.calls, tf.float32)  # noqa: E731
        return x * (factor() if place == "here" else tf.cond(tf.reduce_sum(x) > 0, factor, lambda: tf.constant(1.0)))

    with pytest.raises(UnsupportedError, match="keeps state from one run to the next"):
        padfix.convert(saved(tf, tmp_path / "m", compute), tmp_path / "m.onnx")
