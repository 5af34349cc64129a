"""Recurrent layers of an open batch: converted so that ONNX Runtime takes no rows as well."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest

import padfix

pytestmark = pytest.mark.tensorflow

LAYERS: dict[str, Callable[[Any, Any], Any]] = {
    "LSTM": lambda layers, x: layers.LSTM(5)(x),
    "all steps": lambda layers, x: layers.LSTM(5, return_sequences=True)(x),
    "states": lambda layers, x: layers.Concatenate()(layers.LSTM(4, return_state=True)(x)),
    "one behind another": lambda layers, x: layers.LSTM(3)(layers.LSTM(4, return_sequences=True)(x)),
    "both ways": lambda layers, x: layers.Bidirectional(layers.LSTM(4, return_sequences=True))(x),
    "GRU": lambda layers, x: layers.GRU(4)(x),
    "SimpleRNN": lambda layers, x: layers.SimpleRNN(4)(x),
}


def exported(name: str, folder: Path) -> Path:
    import keras

    keras.utils.set_random_seed(5)
    x = keras.Input((None, 3), name="x")
    keras.Model(x, LAYERS[name](keras.layers, x)).export(str(folder / "saved"), verbose=False)
    return folder / "saved"


@pytest.mark.sweep(8)
@pytest.mark.parametrize("name", LAYERS)
def test_no_rows_are_taken(name: str, tmp_path: Path) -> None:
    import tensorflow as tf

    source = exported(name, tmp_path)
    report = padfix.convert(source, tmp_path / "out.onnx")
    assert report.verdict is not None and report.verdict.equivalent
    assert not any("empty batch" in note and "can't" in note for note in report.verdict.notes)
    original = tf.saved_model.load(str(source)).signatures["serving_default"]
    session = onnxruntime.InferenceSession(str(tmp_path / "out.onnx"))
    for rows in (0, 1, 4):
        data = np.random.default_rng(rows).standard_normal((rows, 6, 3)).astype(np.float32)
        (expected,) = original(x=tf.constant(data)).values()
        (found,) = session.run(None, {session.get_inputs()[0].name: data})
        np.testing.assert_allclose(found, expected.numpy(), rtol=1e-5, atol=1e-6)


def operators(path: Path) -> set[str]:
    return {node.op_type for node in onnx.load(path).graph.node}


def test_a_batch_that_is_fixed_needs_no_row(tmp_path: Path) -> None:
    source = exported("both ways", tmp_path)
    padfix.convert(source, tmp_path / "out.onnx", shapes={"x": (2, 6, 3)})
    assert "LSTM" in operators(tmp_path / "out.onnx")
    assert "Pad" not in operators(tmp_path / "out.onnx")


def test_a_target_that_takes_no_computed_amounts_gets_none(tmp_path: Path) -> None:
    source = exported("LSTM", tmp_path)
    padfix.convert(source, tmp_path / "out.onnx", target="tract")
    assert "Pad" not in operators(tmp_path / "out.onnx")
