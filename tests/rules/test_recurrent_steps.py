"""A recurrent layer that a target gets wrong is written as its steps: equal, clean for the target, and once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

import padfix
from padfix.errors import PadfixError

GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}
READ, UNITS = 3, 4


def layer(
    op_type: str, given: str = "", shape: tuple[Any, ...] = (3, 2, READ), wanted: str = "yh", **settings: Any
) -> onnx.ModelProto:
    """Return a model of one layer with the inputs that ``given`` lists (B, h, c, P), and the outputs ``wanted``."""
    random = np.random.default_rng(len(op_type) + len(given))
    count = 2 if settings.get("direction") == "bidirectional" else 1
    gates, batch = GATES[op_type], shape[1]
    weights = {
        "W": (count, gates * UNITS, READ),
        "R": (count, gates * UNITS, UNITS),
        "B": (count, 2 * gates * UNITS),
        "P": (count, 3 * UNITS),
    }
    inputs = ["X", "W", "R", *(name if name in given else "" for name in ("B-hcP" if op_type == "LSTM" else "B-h"))]
    outputs = [f"last_{name}" if name in wanted else "" for name in "yhc"[: 3 if op_type == "LSTM" else 2]]
    states = [name for name in inputs if name in ("h", "c")]
    graph = helper.make_graph(
        [helper.make_node(op_type, inputs, outputs, name="layer", hidden_size=UNITS, **settings)],
        "layer",
        [
            helper.make_tensor_value_info("X", TensorProto.FLOAT, shape),
            *(helper.make_tensor_value_info(name, TensorProto.FLOAT, (count, batch, UNITS)) for name in states),
        ],
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in outputs if name],
        [
            numpy_helper.from_array(random.standard_normal(size).astype(np.float32), name)
            for name, size in weights.items()
            if name in inputs
        ],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 14)], ir_version=8)
    return onnx.shape_inference.infer_shapes(model)


@pytest.mark.sweep(6)
@pytest.mark.parametrize(
    ("model", "target"),
    [
        (layer("LSTM", "P"), "mnn"),
        (layer("LSTM", "BhcP", wanted="yhc", direction="bidirectional"), "mnn"),
        (layer("LSTM", "Bc", wanted="c", direction="reverse", input_forget=1), "opencv"),
        (layer("LSTM", "BP", shape=(1, "N", READ)), "mnn"),
        (layer("LSTM", "P", activations=["HardSigmoid", "Tanh", "Tanh"], wanted="h"), "openvino"),
        (layer("LSTM", "B", activations=["Sigmoid", "Elu", "Softsign"], activation_alpha=[0.7]), "openvino"),
        (layer("RNN", "B", activations=["ScaledTanh"], activation_alpha=[1.5], activation_beta=[0.3]), "tract"),
        (layer("LSTM", "Bh", shape=(3, 1, READ)), "opencv@4.14"),
        (layer("GRU", wanted="h"), "opencv"),
        (layer("GRU", "Bh", direction="bidirectional"), "mnn"),
        (layer("GRU", "B", clip=0.5, direction="reverse"), "tract"),
        (layer("RNN", "Bh", activations=["Relu"]), "tract"),
        (layer("RNN", "B", activations=["Relu", "Tanh"], direction="bidirectional"), "openvino"),
        (layer("GRU", "B", activations=["HardSigmoid", "Tanh"], activation_alpha=[0.3]), "onnx2tf"),
    ],
)
def test_a_layer_is_written_as_its_steps(model: onnx.ModelProto, target: str, tmp_path: Path) -> None:
    onnx.save(model, tmp_path / "in.onnx")
    padfix.convert(tmp_path / "in.onnx", tmp_path / "out.onnx", target=target)
    written = onnx.load(tmp_path / "out.onnx")
    assert not {node.op_type for node in written.graph.node} & set(GATES)
    onnx.checker.check_model(written, full_check=True)
    assert padfix.check(tmp_path / "out.onnx", target=target).findings == []
    random = np.random.default_rng(3)
    feeds = {
        each.name: random.standard_normal([d.dim_value or 2 for d in each.type.tensor_type.shape.dim]).astype(
            np.float32
        )
        for each in model.graph.input
    }
    before, after = (onnxruntime.InferenceSession(tmp_path / name).run(None, feeds) for name in ("in.onnx", "out.onnx"))
    for first, second in zip(before, after, strict=True):
        np.testing.assert_allclose(second, first, rtol=0, atol=2e-6)


@pytest.mark.parametrize(
    ("model", "words"),
    [
        (layer("LSTM", "P", shape=("T", 1, READ)), "it needs their number"),
        (layer("LSTM", "P", shape=(129, 1, READ)), "more than 128 steps"),
        (layer("LSTM", clip=0.5), "read in two ways"),
        (layer("LSTM", activations=["Affine", "Tanh", "Tanh"]), "activations are others"),
    ],
)
def test_other_layers_are_declined_with_the_reason(model: onnx.ModelProto, words: str, tmp_path: Path) -> None:
    onnx.save(model, tmp_path / "in.onnx")
    with pytest.raises(PadfixError, match=words):
        padfix.convert(tmp_path / "in.onnx", tmp_path / "out.onnx", target="mnn")
    assert not (tmp_path / "out.onnx").exists()


@pytest.mark.parametrize("op_type", list(GATES))
@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
@pytest.mark.parametrize(("given", "wanted"), [("", "y"), ("B", "h"), ("Bh", "yh"), ("Bhc", "yh")])
def test_a_layer_of_open_length_names_its_results(
    op_type: str, direction: str, given: str, wanted: str, tmp_path: Path
) -> None:
    reset = {"linear_before_reset": 1} if op_type == "GRU" else {}
    model = layer(op_type, given, ("T", "N", READ), wanted, direction=direction, **reset)
    onnx.save(model, tmp_path / "in.onnx")
    padfix.convert(tmp_path / "in.onnx", tmp_path / "out.onnx", target="mnn")
    assert padfix.check(tmp_path / "out.onnx", target="mnn").findings == []
    (found,) = (node for node in onnx.load(tmp_path / "out.onnx").graph.node if node.op_type == op_type)
    assert found.output[0] and (op_type != "LSTM" or (all(found.output[1:3]) and len(found.output) == 3))
    random = np.random.default_rng(3)
    for steps in (1, 4):
        feeds = {
            each.name: random.standard_normal(
                [steps if d.dim_param == "T" else d.dim_value or 2 for d in each.type.tensor_type.shape.dim]
            ).astype(np.float32)
            for each in model.graph.input
        }
        ran = (onnxruntime.InferenceSession(tmp_path / name).run(None, feeds) for name in ("in.onnx", "out.onnx"))
        for first, second in zip(*ran, strict=True):
            np.testing.assert_allclose(second, first, rtol=0, atol=2e-6)


def lasting(op_type: str, told: list[int] | None, direction: str = "forward") -> onnx.ModelProto:
    """Return a layer of two sequences, which last so many of three steps, or as many as the caller says."""
    model = layer(op_type, "B", direction=direction)
    model.graph.node[0].input[4] = "L"
    if told is None:
        model.graph.input.append(helper.make_tensor_value_info("L", TensorProto.INT32, (2,)))
    else:
        model.graph.initializer.append(numpy_helper.from_array(np.array(told, np.int32), "L"))
    return model


@pytest.mark.sweep(6)
@pytest.mark.parametrize("target", ["mnn", "qnn", "onnx2tf", "tract", "tvm"])
@pytest.mark.parametrize("told", [[1, 3], [2, 2], [3, 3], None])
@pytest.mark.parametrize(("op_type", "direction"), [("LSTM", "reverse"), ("GRU", "forward"), ("RNN", "bidirectional")])
def test_sequences_last_as_long_as_they_are_told_to(
    op_type: str, direction: str, told: list[int] | None, target: str, tmp_path: Path
) -> None:
    onnx.save(lasting(op_type, told, direction), tmp_path / "in.onnx")
    padfix.convert(tmp_path / "in.onnx", tmp_path / "out.onnx", target=target)
    written = onnx.load(tmp_path / "out.onnx")
    stays = any(node.op_type == op_type for node in written.graph.node)
    assert not stays or told == [3, 3]
    feeds = {"X": np.random.default_rng(3).standard_normal((3, 2, READ)).astype(np.float32)}
    feeds |= {} if told else {"L": np.array([3, 1], np.int32)}
    before, after = (onnxruntime.InferenceSession(tmp_path / name).run(None, feeds) for name in ("in.onnx", "out.onnx"))
    for first, second in zip(before, after, strict=True):
        np.testing.assert_allclose(second, first, rtol=0, atol=2e-6)


def test_steps_of_an_input_that_alone_are_open_are_declined(tmp_path: Path) -> None:
    onnx.save(layer("GRU", "B", ("T", 2, READ), linear_before_reset=1), tmp_path / "in.onnx")
    with pytest.raises(PadfixError, match="takes the open first axis of an input for one step"):
        padfix.convert(tmp_path / "in.onnx", tmp_path / "out.onnx", target="mnn")


KERAS_STATE = """
 lengths = Shape (X) batch = Slice (lengths, one, two, zero) sizes = Concat <axis = 0> (batch, units)
 filled = Expand (nothing, sizes) """


@pytest.mark.parametrize(
    "laid",
    [
        "state = Unsqueeze (filled, zero)",
        "state = Reshape (filled, laid)",
        "more = Unsqueeze (filled, zero) state = Pad (more, none)",
        "more = Unsqueeze (filled, zero) state = Slice (more, zero, two, zero)",
    ],
)
def test_a_state_of_zeros_is_left_out_however_it_was_laid(laid: str, tmp_path: Path) -> None:
    """As Keras makes it for an open batch; with it, the first step would be computed from constants of open lengths."""
    text = f"""<ir_version: 8, opset_import: ["" : 18]> layer (float[3,N,{READ}] X) => (float[1,N,{UNITS}] Y)
    <float nothing = {{0}}, int64[1] zero = {{0}}, int64[1] one = {{1}}, int64[1] two = {{2}},
     int64[1] units = {{{UNITS}}}, int64[3] laid = {{1, -1, {UNITS}}}, int64[6] none = {{0, 0, 0, 0, 0, 0}}>
    {{{KERAS_STATE}{laid} every, Y = GRU <hidden_size = {UNITS}> (X, W, R, , , state) }}"""
    model = onnx.parser.parse_model(text)
    random = np.random.default_rng(5)
    for name, size in (("W", (1, 3 * UNITS, READ)), ("R", (1, 3 * UNITS, UNITS))):
        model.graph.initializer.append(numpy_helper.from_array(random.standard_normal(size).astype(np.float32), name))
    onnx.save(model, tmp_path / "model.onnx")
    padfix.convert(tmp_path / "model.onnx", tmp_path / "written.onnx", target="opencv")
    written = onnx.load(tmp_path / "written.onnx").graph
    assert {"GRU", "Shape", "Expand", "Pad"}.isdisjoint(node.op_type for node in written.node)


def test_an_activation_that_a_target_lacks_has_a_form_of_its_own_in_the_steps(tmp_path: Path) -> None:
    source, result = tmp_path / "model.onnx", tmp_path / "result.onnx"
    onnx.save(layer("GRU", activations=["Softsign", "Tanh"]), source)
    padfix.convert(source, result, target="qnn")
    assert not {"GRU", "Softsign"} & {node.op_type for node in onnx.load(result).graph.node}
    assert not padfix.check(result, target="qnn").findings
