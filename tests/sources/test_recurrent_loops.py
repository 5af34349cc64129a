"""Recurrent layers of Keras 3 are one operator each; what is not quite such a layer stays a Loop."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.support.tf_conversion import assert_same_numbers, noise

pytestmark = pytest.mark.tensorflow

BIAS = {"bias_initializer": "random_normal"}
Layer = Callable[[Any], Any]
LAYERS: dict[str, tuple[str, Layer]] = {
    "GRU": ("GRU", lambda layers: layers.GRU(3, return_sequences=True, **BIAS)),
    "GRU, its last step": ("GRU", lambda layers: layers.GRU(3, **BIAS)),
    "GRU without bias": ("GRU", lambda layers: layers.GRU(3, use_bias=False)),
    "resets before": ("GRU", lambda layers: layers.GRU(3, reset_after=False, return_sequences=True, **BIAS)),
    "resets before, relu, backwards": (
        "GRU",
        lambda layers: layers.GRU(3, reset_after=False, activation="relu", go_backwards=True, **BIAS),
    ),
    "resets before, no bias": ("GRU", lambda layers: layers.GRU(3, reset_after=False, use_bias=False)),
    "SimpleRNN": ("RNN", lambda layers: layers.SimpleRNN(3, return_sequences=True, **BIAS)),
    "SimpleRNN without bias": ("RNN", lambda layers: layers.SimpleRNN(3, use_bias=False)),
    "as many units as data": ("RNN", lambda layers: layers.SimpleRNN(4, **BIAS)),
    "other gates": ("Loop", lambda layers: layers.GRU(3, reset_after=False, recurrent_activation="relu")),
    "another activation": ("Loop", lambda layers: layers.SimpleRNN(3, activation="exponential")),
}
SEQUENCES = [{"x": noise((2, 5, 4), "float32")}]


@pytest.mark.sweep(3)
@pytest.mark.parametrize("case", LAYERS)
def test_a_layer_is_one_operator(tf: Any, case: str) -> None:
    operator, make = LAYERS[case]
    layer = make(tf.keras.layers)
    layer.build((None, 5, 4))
    model = assert_same_numbers(tf, lambda x: {"y": layer(x)}, SEQUENCES, True)
    found = [node.op_type for node in model.graph.node if node.op_type in ("GRU", "RNN", "Loop")]
    assert found == [operator]


@pytest.mark.parametrize("each_step", [False, True])
@pytest.mark.parametrize("name", ["LSTM", "GRU", "SimpleRNN"])
def test_a_layer_of_a_batch_of_one_is_one_operator(tf: Any, name: str, each_step: bool) -> None:
    """Keras 3 adds what has one row as a bias."""
    layer = getattr(tf.keras.layers, name)(3, return_sequences=each_step, **BIAS)
    layer.build((1, 5, 4))
    model = assert_same_numbers(tf, lambda x: {"y": layer(x)}, [{"x": noise((1, 5, 4), "float32")}], False)
    found = [node.op_type for node in model.graph.node if node.op_type in ("GRU", "RNN", "LSTM", "Loop")]
    assert found == [name.removeprefix("Simple")]


def test_states_that_are_given_and_read_are_those_of_the_operator(tf: Any) -> None:
    layer = tf.keras.layers.GRU(3, reset_after=False, return_sequences=True, return_state=True, **BIAS)
    layer.build((None, 5, 4))

    def run(x: Any, h: Any) -> dict[str, Any]:
        sequence, state = layer(x, initial_state=h)
        return {"y": sequence, "s": state}

    model = assert_same_numbers(tf, run, [{**SEQUENCES[0], "h": noise((2, 3), "float32")}], False)
    assert [node.op_type for node in model.graph.node if node.op_type in ("GRU", "Loop")] == ["GRU"]
