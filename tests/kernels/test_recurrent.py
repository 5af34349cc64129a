"""Recurrent layers in NumPy against ONNX Runtime's: directions, lengths, states, activations, clips."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

from padfix.kernels.reference_ops import SpecEvaluator

GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}
STEPS, BATCH, READ, UNITS = 4, 3, 2, 3


def layer(op_type: str, given: str, opset: int = 14, **settings: Any) -> tuple[bytes, dict[str, np.ndarray]]:
    """Return a model of one layer with the inputs that ``given`` lists (B, L, h, c, P), and data for it."""
    random = np.random.default_rng(5)
    count = 2 if settings.get("direction") == "bidirectional" else 1
    gates = GATES[op_type]
    shapes = {
        "X": (STEPS, BATCH, READ),
        "W": (count, gates * UNITS, READ),
        "R": (count, gates * UNITS, UNITS),
        "B": (count, 2 * gates * UNITS),
        "h": (count, BATCH, UNITS),
        "c": (count, BATCH, UNITS),
        "P": (count, 3 * UNITS),
    }
    values = {name: random.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}
    values["L"] = np.array([4, 1, 2], np.int32)
    if settings.get("layout"):
        values.update({name: np.ascontiguousarray(values[name].swapaxes(0, 1)) for name in "Xhc"})
    taken = "BLhcP" if op_type == "LSTM" else "BLh"
    inputs = ["X", "W", "R", *(name if name in given else "" for name in taken)]
    outputs = ["Y", "Yh", "Yc"][: 3 if op_type == "LSTM" else 2]
    graph = helper.make_graph(
        [helper.make_node(op_type, inputs, outputs, hidden_size=UNITS, **settings)],
        "layer",
        [helper.make_tensor_value_info("X", TensorProto.FLOAT, values["X"].shape)],
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in outputs],
        [numpy_helper.from_array(values[name], name) for name in inputs[1:] if name],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)
    return model.SerializeToString(), {"X": values["X"]}


@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
@pytest.mark.parametrize(
    ("op_type", "given", "settings"),
    [
        ("LSTM", "", {}),
        ("LSTM", "BLhcP", {}),
        ("LSTM", "Bc", {"input_forget": 1}),
        ("LSTM", "P", {"activations": ["HardSigmoid", "Softsign", "Relu"]}),
        ("GRU", "", {}),
        ("GRU", "BLh", {"linear_before_reset": 1}),
        ("GRU", "B", {"clip": 0.4}),
        ("GRU", "Bh", {"activations": ["Sigmoid", "Elu"]}),
        ("RNN", "BLh", {}),
        ("RNN", "B", {"activations": ["LeakyRelu"], "clip": 0.5}),
        ("RNN", "B", {"activations": ["Affine"], "activation_alpha": [0.5], "activation_beta": [0.25]}),
        ("RNN", "B", {"activations": ["ScaledTanh"], "activation_alpha": [0.5], "activation_beta": [0.25]}),
        ("RNN", "B", {"activations": ["ThresholdedRelu"], "activation_alpha": [0.5], "activation_beta": [0.0]}),
    ],
)
def test_the_kernels_give_what_the_runtime_gives(
    op_type: str, given: str, settings: dict[str, Any], direction: str
) -> None:
    if direction == "bidirectional":
        settings = {name: each * 2 if isinstance(each, list) else each for name, each in settings.items()}
    model, feeds = layer(op_type, given, direction=direction, **settings)
    expected = onnxruntime.InferenceSession(model).run(None, feeds)
    for found, wanted in zip(SpecEvaluator(model).run(None, feeds), expected, strict=True):
        assert found.dtype == np.float32
        np.testing.assert_allclose(found, wanted, rtol=0, atol=2e-6)


def test_a_batch_that_comes_first_changes_the_order_of_axes_alone() -> None:
    steps_first, batch_first = (
        SpecEvaluator(model).run(None, feeds)
        for model, feeds in (layer("LSTM", "BhcP", direction="bidirectional", layout=each) for each in (0, 1))
    )
    last, state, cell = steps_first
    expected = (last.transpose(2, 0, 1, 3), state.swapaxes(0, 1), cell.swapaxes(0, 1))
    for given, wanted in zip(batch_first, expected, strict=True):
        np.testing.assert_array_equal(given, wanted)


@pytest.mark.parametrize(
    ("op_type", "settings", "words"),
    [("LSTM", {"clip": 0.5}, "two ways"), ("RNN", {"activations": ["Affine"]}, "no default")],
)
def test_what_the_specification_leaves_open_is_not_run(op_type: str, settings: dict[str, Any], words: str) -> None:
    model, feeds = layer(op_type, "", **settings)
    with pytest.raises(NotImplementedError, match=words):
        SpecEvaluator(model).run(None, feeds)
