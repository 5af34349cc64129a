"""Models that users really have: each goes through the command line with default options, and is judged from outside.

That is: the exit code, what check says of the result, and its numbers beside those of the original in its own runtime,
on data of the model's own kind, none of which the proof inside padfix has seen. ``--slow`` fetches the packages.
"""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest

from tests.support.packaged_models import ONNX_MODELS, TENSORFLOW_MODELS, PackagedModel

ROOT = Path(__file__).parents[2]
TOLERANCE = 1e-3
"""Of an output's largest value: the runtimes sum in other orders, and some models take logarithms of silence."""


def padfix(*arguments: object) -> subprocess.CompletedProcess[str]:
    """Run the command line in a process of its own."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "padfix", *map(str, arguments)]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


def by_onnx_runtime(path: Path, feeds: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    names = [each.name for each in session.get_outputs()]
    return dict(zip(names, session.run(names, dict(feeds)), strict=True))


def by_tensorflow(path: Path, feeds: Mapping[str, np.ndarray], outputs: list[str]) -> dict[str, np.ndarray]:
    """Run the original as its own package does."""
    import tensorflow as tf

    v1: Any = tf.compat.v1
    if path.is_dir():
        signature = tf.saved_model.load(str(path)).signatures["serving_default"]
        return {name: each.numpy() for name, each in signature(**{k: tf.constant(v) for k, v in feeds.items()}).items()}
    if path.suffix == ".pb":
        graph_def = v1.GraphDef.FromString(path.read_bytes())
        with tf.Graph().as_default() as graph:
            tf.import_graph_def(graph_def, name="")
        fed = {name if ":" in name else f"{name}:0": value for name, value in feeds.items()}
        if "training" in {node.name for node in graph_def.node}:
            fed["training:0"] = np.array(False)
        with v1.Session(graph=graph) as session:
            found = session.run([f"{name}:0" for name in outputs], fed)
        return dict(zip(outputs, found, strict=True))
    import keras

    model = keras.models.load_model(path, compile=False)
    found = model.predict(next(iter(feeds.values())), verbose=0)
    return dict(zip(outputs, found if isinstance(found, list) else [found], strict=True))


def require_equal(expected: Mapping[str, np.ndarray], found: Mapping[str, np.ndarray]) -> None:
    assert set(expected) == set(found)
    for name, array in expected.items():
        assert array.shape == found[name].shape
        if array.dtype.kind in "bOSU":
            np.testing.assert_array_equal(found[name], array)
            continue
        difference = np.abs(found[name].astype(np.float64) - array.astype(np.float64)).max(initial=0)
        assert difference <= TOLERANCE * max(np.abs(array).max(initial=0), 1e-30), (name, difference)
        assert np.ptp(array) > 0 or array.size == 1, f"{name} says nothing"


def converted(model: PackagedModel, folder: Path) -> tuple[Path, Path, dict[str, np.ndarray]]:
    """Convert a model; return it, the result, and data for its inputs."""
    source, result = model.fetch(), folder / "result.onnx"
    done = padfix("convert", source, "-o", result)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stderr == ""
    checked = padfix("check", result)
    assert checked.returncode == 0, checked.stdout
    graph = onnx.load(result, load_external_data=False).graph
    held = {tensor.name for tensor in graph.initializer}
    inputs = [value.name for value in graph.input if value.name not in held]
    random = np.random.default_rng(2026)
    data = {name or inputs[0]: make(random) for name, make in model.data.items()}
    assert set(data) == set(inputs)
    return source, result, data


@pytest.mark.slow
@pytest.mark.parametrize("model", ONNX_MODELS, ids=str)
def test_an_onnx_file_of_a_package(model: PackagedModel, tmp_path: Path) -> None:
    source, result, data = converted(model, tmp_path)
    require_equal(by_onnx_runtime(source, data), by_onnx_runtime(result, data))


@pytest.mark.slow
@pytest.mark.tensorflow
@pytest.mark.skipif(importlib.util.find_spec("tensorflow") is None, reason="needs padfix[tf]")
@pytest.mark.parametrize("model", TENSORFLOW_MODELS, ids=str)
def test_a_tensorflow_file_of_a_package(model: PackagedModel, tmp_path: Path) -> None:
    source, result, data = converted(model, tmp_path)
    found = by_onnx_runtime(result, data)
    require_equal(by_tensorflow(source, data, list(found)), found)
