"""What lies inside a TensorFlow Lite file is fed and fetched, so that its proof goes by stretches."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from padfix.proof.executors import ExecutionFailed
from padfix.proof.inner import InnerExecutor, inner_of
from padfix.sources import open_source
from tests.support.lite_files import lite, prove, weights

pytestmark = pytest.mark.tensorflow


def steep(tf: Any, x: Any) -> Any:
    """A network that turns the last bits of its data into visible differences."""
    y = tf.nn.relu6(tf.nn.conv2d(x, weights(3, 3, 3, 8), 2, "SAME"))
    for _ in range(3):
        mean, variance = tf.nn.moments(y, [1, 2], keepdims=True)
        y = tf.sin((y - mean) / tf.sqrt(variance + 1e-12) * 40.0)
        y = tf.nn.conv2d(y, weights(3, 3, 8, 8), 1, "SAME")
    return {"picture": tf.sigmoid(y), "again": y}


@pytest.fixture(scope="module")
def file(tf: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("steep")
    return lite(tf, folder / "m.tflite", lambda x: steep(tf, x), tf.TensorSpec([1, 16, 16, 3], tf.float32, "x"))


@pytest.fixture(scope="module")
def inner(file: Path) -> InnerExecutor:
    source = open_source(file)
    assert source.executor is not None
    found = inner_of(source.executor())
    assert found is not None
    return found


def test_a_network_that_amplifies_rounding_is_proven_by_stretches(file: Path, tmp_path: Path) -> None:
    report = prove(file, tmp_path)
    assert report.verdict is not None and report.verdict.stretches is not None
    assert report.verdict.stretches.judged > 10
    assert any("amplifies rounding" in note for note in report.verdict.notes)


def test_tensors_inside_are_fed_and_fetched(inner: InnerExecutor) -> None:
    nodes = {node.name: node for node in inner.graph()}
    sine = next(node for node in nodes.values() if node.op_type == "SIN")
    x = np.random.default_rng(0).standard_normal((1, 16, 16, 3)).astype(np.float32)
    whole = inner.run_inner({"x": x}, [sine.name, *sine.inputs, "x"])
    np.testing.assert_array_equal(whole["x"], x)
    np.testing.assert_allclose(whole[sine.name], np.sin(whole[sine.inputs[0]]), atol=1e-5)
    fed = {sine.inputs[0]: np.full_like(whole[sine.inputs[0]], 0.5)}
    found = inner.run_inner({"x": x} | fed, [sine.name, sine.inputs[0]])
    np.testing.assert_allclose(found[sine.name], np.sin(0.5), atol=1e-6)
    np.testing.assert_array_equal(found[sine.inputs[0]], whole[sine.inputs[0]])
    with pytest.raises(ExecutionFailed, match="no tensor nothing"):
        inner.run_inner({"x": x}, ["nothing"])


def test_sizes_without_room(inner: InnerExecutor) -> None:
    names = [node.name for node in inner.graph() if node.op_type == "CONV_2D"]
    assert inner.has_elements({"x": np.zeros((1, 16, 16, 3), np.float32)}, names)
    assert not inner.has_elements({"x": np.zeros((1, 0, 16, 3), np.float32)}, names)
