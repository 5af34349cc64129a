"""A Pad before DequantizeLinear: right numbers, and ONNX Runtime still makes quantized operators of the result."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import ModelProto, TensorProto, helper, numpy_helper

import padfix
from tests.support.padding_models import session


def quantized_model(op_type: str, dtype: Any, zero: int, **attributes: Any) -> ModelProto:
    rng = np.random.default_rng(3)
    constants = {
        "x_scale": np.float32(0.05),
        "x_zero": dtype(zero),
        "y_scale": np.float32(0.05) if op_type == "MaxPool" else np.float32(0.3),
        "y_zero": dtype(zero),
        "W": rng.integers(-60, 60, (4, 3, 3, 3)).astype(np.int8),
        "w_scale": np.float32(0.01),
        "w_zero": np.int8(0),
    }
    nodes = [
        helper.make_node("QuantizeLinear", ["X", "x_scale", "x_zero"], ["q"]),
        helper.make_node("DequantizeLinear", ["q", "x_scale", "x_zero"], ["x"], name="dequantize"),
        helper.make_node("DequantizeLinear", ["W", "w_scale", "w_zero"], ["w"]),
        helper.make_node(op_type, ["x", "w"] if op_type == "Conv" else ["x"], ["y"], name="window", **attributes),
        helper.make_node("QuantizeLinear", ["y", "y_scale", "y_zero"], ["p"]),
        helper.make_node("DequantizeLinear", ["p", "y_scale", "y_zero"], ["Y"]),
    ]
    if op_type != "Conv":
        del nodes[2]
    used = {name for node in nodes for name in node.input}
    graph = helper.make_graph(
        nodes,
        "quantized",
        [helper.make_tensor_value_info("X", TensorProto.FLOAT, [1, 3, "h", "w_in"])],
        [helper.make_tensor_value_info("Y", TensorProto.FLOAT, [None] * 4)],
        [numpy_helper.from_array(np.asarray(value), name) for name, value in constants.items() if name in used],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def fused_operators(path: Path, folder: Path) -> list[str]:
    """Return the operators that ONNX Runtime makes of the model."""
    options = onnxruntime.SessionOptions()
    options.optimized_model_filepath = str(folder / "optimised.onnx")
    options.log_severity_level = 4
    onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    return [node.op_type for node in onnx.load(folder / "optimised.onnx").graph.node]


CASES = [("Conv", "QLinearConv", {}), ("AveragePool", "QLinearAveragePool", {"count_include_pad": 1})]


@pytest.mark.sweep(3)
@pytest.mark.parametrize("pads", ("attribute", "node"))
@pytest.mark.parametrize(("dtype", "zero"), [(np.uint8, 120), (np.int8, -7)])
@pytest.mark.parametrize(("op_type", "fused", "more"), [*CASES, ("MaxPool", "MaxPool", {})])
def test_the_pad_is_of_quantized_numbers(
    tmp_path: Path, op_type: str, fused: str, more: dict[str, int], dtype: Any, zero: int, pads: str
) -> None:
    kernel = {"kernel_shape": [3, 3], "strides": [2, 2], "auto_pad": "SAME_UPPER"}
    model = quantized_model(op_type, dtype, zero, **kernel, **more)
    onnx.save(model, tmp_path / "model.onnx")
    report = padfix.convert(tmp_path / "model.onnx", tmp_path / "out.onnx", pads=pads)
    assert report.refusals == []
    after = onnx.load(tmp_path / "out.onnx")
    (pad,) = [node for node in after.graph.node if node.op_type == "Pad"]
    assert pad.input[0] == "q"
    assert [node.op_type for node in after.graph.node].count("DequantizeLinear") == 2 + (op_type == "Conv")
    if dtype is np.uint8:  # of int8, ONNX Runtime's kernels for x86 only fuse what nothing stands between
        assert fused in fused_operators(tmp_path / "out.onnx", tmp_path)
    for height, width in ((8, 9), (7, 12)):
        X = np.random.default_rng(height).normal(-1, 2, (1, 3, height, width)).astype(np.float32)
        (wanted,) = session(model, optimised=False).run(None, {"X": X})
        (found,) = session(after, optimised=False).run(None, {"X": X})
        np.testing.assert_allclose(found, wanted, atol=1e-6)
    padfix.convert(tmp_path / "out.onnx", tmp_path / "again.onnx", pads=pads)
    assert onnx.load(tmp_path / "again.onnx").graph == after.graph


@pytest.mark.sweep(6)
@pytest.mark.parametrize("kernel", [2, 4])
@pytest.mark.parametrize("auto_pad", ["SAME_UPPER", "SAME_LOWER", "VALID"])
@pytest.mark.parametrize(("dtype", "zero"), [(np.uint8, 120), (np.int8, -7)])
@pytest.mark.parametrize("include", [0, 1])
def test_an_average_between_two_steps_may_take_either(
    tmp_path: Path, include: int, dtype: Any, zero: int, auto_pad: str, kernel: int
) -> None:
    """The mean of an even number of steps often lies between two of them, and fused kernels round elsewhere."""
    window = {"kernel_shape": [kernel, kernel], "strides": [2, 2], "auto_pad": auto_pad, "count_include_pad": include}
    model = quantized_model("AveragePool", dtype, zero, **window)
    step = next(tensor for tensor in model.graph.initializer if tensor.name == "y_scale")
    step.CopyFrom(numpy_helper.from_array(np.asarray(np.float32(0.05)), "y_scale"))
    onnx.save(model, tmp_path / "model.onnx")
    report = padfix.convert(tmp_path / "model.onnx", tmp_path / "out.onnx")
    assert report.verdict is not None
    assert report.verdict.equivalent
    for size in ((8, 9), (7, 12)):
        X = np.random.default_rng(kernel).normal(-1, 2, (1, 3, *size)).astype(np.float32)
        (wanted,) = session(model, optimised=False).run(None, {"X": X})
        for optimised in (False, True):
            (found,) = session(onnx.load(tmp_path / "out.onnx"), optimised=optimised).run(None, {"X": X})
            np.testing.assert_allclose(found, wanted, atol=0.0501)
            assert np.mean(np.abs(found - wanted) > 1e-5) < 0.5


def test_a_window_that_may_lie_in_the_padding_keeps_its_infinity(tmp_path: Path) -> None:
    model = quantized_model(
        "MaxPool", np.uint8, 120, kernel_shape=[2, 2], strides=[3, 3], dilations=[2, 2], auto_pad="SAME_UPPER"
    )
    onnx.save(model, tmp_path / "model.onnx")
    padfix.convert(tmp_path / "model.onnx", tmp_path / "out.onnx", reference="spec")
    (pad,) = [node for node in onnx.load(tmp_path / "out.onnx").graph.node if node.op_type == "Pad"]
    assert pad.input[0] == "x"


@pytest.mark.parametrize("what", ["a scale for each channel", "a computed zero point"])
def test_other_quantizations_are_padded_as_floats(tmp_path: Path, what: str) -> None:
    model = quantized_model("Conv", np.uint8, 120, kernel_shape=[3, 3], strides=[2, 2], auto_pad="SAME_UPPER")
    if what == "a scale for each channel":
        for name, value in (("x_scale", np.full(3, 0.05, np.float32)), ("x_zero", np.array([120, 119, 3], np.uint8))):
            (old,) = [tensor for tensor in model.graph.initializer if tensor.name == name]
            old.CopyFrom(numpy_helper.from_array(value, name))
    else:
        model.graph.node.insert(0, helper.make_node("Add", ["x_zero", "x_zero"], ["twice"]))
        model.graph.node[2].input[2] = model.graph.node[1].input[2] = "twice"
    onnx.save(model, tmp_path / "model.onnx")
    padfix.convert(tmp_path / "model.onnx", tmp_path / "out.onnx")
    (pad,) = [node for node in onnx.load(tmp_path / "out.onnx").graph.node if node.op_type == "Pad"]
    assert pad.input[0] == "x"
