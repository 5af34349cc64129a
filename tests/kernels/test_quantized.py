"""ConvInteger and QLinearConv by the specification: against plain loops, and against ONNX Runtime to the last bit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

from padfix.kernels.quantized import conv_integer, qlinear_average_pool, qlinear_conv
from padfix.proof.spec_executor import SpecExecutor
from tests.support import oracle
from tests.support.padding_models import session

TYPES = ((np.uint8, np.uint8), (np.uint8, np.int8), (np.int8, np.int8))


def whole_range(rng: np.random.Generator, dtype: Any, *shape: int) -> np.ndarray:
    return rng.integers(np.iinfo(dtype).min, np.iinfo(dtype).max + 1, shape).astype(dtype)


def some_weights(rng: np.random.Generator, dtype: Any, *shape: int) -> np.ndarray:
    """Return weights; signed ones of 7 bits, since ONNX Runtime saturates sums of two on processors without VNNI."""
    return rng.integers(-64, 64, shape).astype(dtype) if dtype is np.int8 else whole_range(rng, dtype, *shape)


def random_window(rng: np.random.Generator) -> dict[str, Any]:
    """Return attributes; no dilations beside auto_pad, which ONNX Runtime refuses."""
    window: dict[str, Any] = {"strides": [int(each) for each in rng.integers(1, 5, 2)]}
    if rng.random() < 0.6:
        window["auto_pad"] = str(rng.choice(["SAME_UPPER", "SAME_LOWER", "VALID"]))
    else:
        window["pads"] = [int(each) for each in rng.integers(0, 3, 4)]
        window["dilations"] = [int(each) for each in rng.integers(1, 3, 2)]
    return window


def qlinear_model(tensors: dict[str, np.ndarray], dtype: Any, window: dict[str, Any]) -> ModelProto:
    elem_type = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    names = ["X", *tensors]
    graph = helper.make_graph(
        [helper.make_node("QLinearConv", names, ["Y"], **window)],
        "quantized",
        [helper.make_tensor_value_info("X", elem_type, [1, 2, "h", "w"])],
        [helper.make_tensor_value_info("Y", elem_type, None)],
        [numpy_helper.from_array(value, name) for name, value in tensors.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)


@pytest.mark.parametrize("seed", range(24))
def test_qlinear_conv_is_the_arithmetic_and_what_onnx_runtime_gives(seed: int) -> None:
    rng = np.random.default_rng([11, seed])
    data, weights = TYPES[seed % 3]
    channels = 4 if seed % 2 else 1
    zeros = whole_range(rng, weights, channels) if weights is np.uint8 else np.zeros(channels, weights)
    # Powers of two make ties, which show how they are rounded; the others are as a quantizer writes them.
    scales = rng.choice([0.25, 0.125, 0.013, 0.21], channels).astype(np.float32)
    tensors = {
        "x_scale": np.array(rng.choice([0.5, 0.013]), np.float32),
        "x_zero": whole_range(rng, data)[()].reshape(()),
        "W": some_weights(rng, weights, 4, 2, 3, 2),
        "w_scale": scales if channels > 1 else scales[0].reshape(()),
        "w_zero": zeros if channels > 1 else zeros[0].reshape(()),
        "y_scale": np.array(rng.choice([32, 7.7]), np.float32),
        "y_zero": whole_range(rng, data).reshape(()),
    }
    if rng.random() < 0.5:
        tensors["B"] = rng.integers(-3000, 3000, 4).astype(np.int32)
    window = random_window(rng)
    X = whole_range(rng, data, 1, 2, int(rng.integers(5, 10)), 8)
    wanted = oracle.qlinear_conv(
        X,
        tensors["x_scale"],
        tensors["x_zero"],
        tensors["W"],
        np.broadcast_to(scales, 4),
        np.broadcast_to(zeros, 4),
        tensors["y_scale"],
        tensors["y_zero"],
        tensors.get("B"),
        **window,
    )
    np.testing.assert_array_equal(qlinear_conv(X, *tensors.values(), **window), wanted)
    model = qlinear_model(tensors, data, window)
    np.testing.assert_array_equal(SpecExecutor.of(model).run({"X": X})["Y"], wanted)
    for optimised in (False, True):
        np.testing.assert_array_equal(session(model, optimised=optimised).run(None, {"X": X})[0], wanted)


def test_ties_are_rounded_before_an_odd_zero_point_is_added() -> None:
    tensors = {
        "x_scale": np.float32(0.5),
        "x_zero": np.array(0, np.uint8),
        "W": np.ones((1, 2, 1, 1), np.uint8),
        "w_scale": np.float32(1),
        "w_zero": np.array(0, np.uint8),
        "y_scale": np.float32(1),
        "y_zero": np.array(1, np.uint8),
    }
    X = np.array([1, 3, 5, 7], np.uint8).reshape(1, 1, 2, 2) * np.array([1, 0], np.uint8).reshape(1, 2, 1, 1)
    model = qlinear_model({name: np.asarray(value) for name, value in tensors.items()}, np.uint8, {})
    wanted = [1, 3, 3, 5]  # 0.5, 1.5, 2.5 and 3.5 to even, then 1 more
    assert SpecExecutor.of(model).run({"X": X})["Y"].ravel().tolist() == wanted
    assert session(model, optimised=True).run(None, {"X": X})[0].ravel().tolist() == wanted
    assert ReferenceEvaluator(model).run(None, {"X": X})[0].ravel().tolist() != wanted  # why padfix has its own


def test_results_saturate_at_both_ends() -> None:
    arguments = (np.float32(1), np.array(0, np.int8), np.ones((1, 1, 1), np.int8), np.float32(1), np.array(0, np.int8))
    X = np.array([[[-128, -3, 3, 127]]], np.int8)
    Y = qlinear_conv(X, *arguments, np.float32(0.1), np.array(-5, np.int8))
    assert Y.dtype == np.int8
    assert Y.ravel().tolist() == [-128, -35, 25, 127]


@pytest.mark.parametrize("seed", range(12))
def test_conv_integer_is_the_arithmetic_and_what_onnx_runtime_gives(seed: int) -> None:
    rng = np.random.default_rng([12, seed])
    data, weights = TYPES[seed % 2]
    X, W = whole_range(rng, data, 1, 2, 7, 8), some_weights(rng, weights, 4, 2, 3, 2)
    window = random_window(rng)
    x_zero = whole_range(rng, data).reshape(()) if seed % 4 else None
    w_zero = whole_range(rng, weights).reshape(()) if weights is np.uint8 and x_zero is not None else None
    wanted = oracle.conv(X - float(x_zero or 0), W - float(w_zero or 0), **window)
    Y = conv_integer(X, W, x_zero, w_zero, **window)
    assert Y.dtype == np.int32
    np.testing.assert_array_equal(Y, wanted)
    tensors = {name: value for name, value in {"W": W, "x_zero": x_zero, "w_zero": w_zero}.items() if value is not None}
    model = qlinear_model(tensors, data, window)
    model.graph.node[0].op_type = "ConvInteger"
    model.graph.output[0].type.tensor_type.elem_type = TensorProto.INT32
    np.testing.assert_array_equal(SpecExecutor.of(model).run({"X": X})["Y"], wanted)
    for optimised in (False, True):
        np.testing.assert_array_equal(session(model, optimised=optimised).run(None, {"X": X})[0], wanted)


def test_conv_integer_takes_one_zero_point_a_channel() -> None:
    rng = np.random.default_rng(13)
    X, W = whole_range(rng, np.uint8, 1, 1, 4, 4), whole_range(rng, np.uint8, 3, 1, 2, 2)
    zeros = np.array([1, 100, 255], np.uint8)
    wanted = oracle.conv(X - 7.0, W - zeros.reshape(3, 1, 1, 1).astype(np.float64))
    np.testing.assert_array_equal(conv_integer(X, W, np.array(7, np.uint8), zeros), wanted)


def test_quantized_average_adds_the_zero_point_first_and_counts_whole_kernels() -> None:
    window = {"kernel_shape": [2], "strides": [2], "ceil_mode": 1, "count_include_pad": 1}
    X = np.array([[[4, 5, 7, 8, 9]]], np.uint8)
    arguments = (np.float32(1), np.array(0, np.uint8), np.float32(1), np.array(1, np.uint8))
    # 4.5 + 1, 7.5 + 1, and 9 / 2 + 1 where the last window reaches beyond the input
    assert qlinear_average_pool(X, *arguments, **window).ravel().tolist() == [6, 8, 6]
    tensors = dict(zip(("xs", "xz", "ys", "yz"), map(np.asarray, arguments), strict=True))
    model = qlinear_model(tensors, np.uint8, {**window, "domain": "com.microsoft"})
    model.graph.node[0].op_type = "QLinearAveragePool"
    model.graph.input[0].type.tensor_type.ClearField("shape")
    model.opset_import.append(helper.make_opsetid("com.microsoft", 1))
    assert SpecExecutor.of(model).run({"X": X})["Y"].ravel().tolist() == [6, 8, 6]
    for optimised in (False, True):
        assert session(model, optimised=optimised).run(None, {"X": X})[0].ravel().tolist() == [6, 8, 6]


@pytest.mark.parametrize("opset", [10, 13, 17, 19, 21])
@pytest.mark.parametrize("per_axis", [False, True])
def test_dequantize_linear_of_every_version_equals_onnx_runtime(opset: int, per_axis: bool) -> None:
    if per_axis and opset < 13:
        pytest.skip("DequantizeLinear-10 has no axis")
    rng = np.random.default_rng(opset)
    x = whole_range(rng, np.uint8, 2, 3, 4)
    count = (3,) if per_axis else ()
    scale, zero = rng.uniform(0.01, 0.1, count).astype(np.float32), whole_range(rng, np.uint8, *count)
    node = helper.make_node("DequantizeLinear", ["x", "scale", "zero"], ["y"], **({"axis": -2} if per_axis else {}))
    graph = helper.make_graph(
        [node],
        "dequantize",
        [helper.make_tensor_value_info("x", TensorProto.UINT8, [2, 3, 4])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [2, 3, 4])],
        [numpy_helper.from_array(np.asarray(scale), "scale"), numpy_helper.from_array(np.asarray(zero), "zero")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)
    expected = session(model, optimised=False).run(None, {"x": x})[0]
    np.testing.assert_array_equal(SpecExecutor.of(model).run({"x": x})["y"], expected)
