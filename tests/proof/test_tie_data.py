"""Bytes whose sums lie next to a tie: the least change of what quantised operators hold is found."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import ModelProto, numpy_helper

from padfix.proof.executors import OnnxRuntimeExecutor
from padfix.proof.whole import verify

READ = "x_scale, x_zero, w, w_scale, w_zero"
GIVEN = "y_scale, y_zero"
CASES = {
    "conv": (f"Y = QLinearConv <pads = [1, 1, 1, 1]> (X, {READ}, {GIVEN}, b)", (2, 9, 8), (4, 2, 3, 3)),
    "groups": (
        f"Y = QLinearConv <group = 2, strides = [2, 1], dilations = [2, 1]> (X, {READ}, {GIVEN}, b)",
        (4, 9, 8),
        (4, 2, 3, 3),
    ),
    "same": (f'Y = QLinearConv <auto_pad = "SAME_LOWER"> (X, {READ}, {GIVEN}, b)', (2, 7, 3), (4, 2, 4, 4)),
    "few": (f"Y = QLinearConv (X, {READ}, {GIVEN}, b)", (3, 2, 2), (4, 3, 1, 1)),
    "gemm": (f"Y = com.microsoft.QGemm <transB = 1> (X, {READ}, b, {GIVEN})", (), (4, 60)),
    "matmul": (f"Y = QLinearMatMul (X, {READ}, {GIVEN})", (), (60, 4)),
}
"""What a node is written as, the lengths of what it reads but for the batch, and those of its weights."""


def quantised(kind: str, w_scale: float, bias: int = 0, weight: int = 0) -> ModelProto:
    """Return a network of one quantised operator, one bias and one weight of which are so much more."""
    body, lengths, shape = CASES[kind]
    model = onnx.parser.parse_model(
        f'<ir_version: 8, opset_import: ["" : 17, "com.microsoft" : 1]> g (uint8[1] X) => (uint8[1] Y){{ {body} }}'
    )
    model.graph.output[0].type.tensor_type.ClearField("shape")
    dims = model.graph.input[0].type.tensor_type.shape.dim
    for length in lengths or (60,):
        dims.add(dim_value=length)
    random = np.random.default_rng(5)
    weights = random.integers(-100, 101, shape).astype(np.int8)
    biases = random.integers(-2000, 2000, 4).astype(np.int32)
    biases[2] += bias
    weights.flat[7] += weight
    held = {"w": weights, "b": biases, "x_zero": np.uint8(128), "w_zero": np.int8(0), "y_zero": np.uint8(120)}
    scales = {"x_scale": 0.1, "w_scale": w_scale, "y_scale": 0.1}
    for name, value in {**held, **{name: np.float32(each) for name, each in scales.items()}}.items():
        if name in body:
            model.graph.initializer.append(numpy_helper.from_array(np.asarray(value), name))
    return model


def is_equal(kind: str, w_scale: float, **change: int) -> bool:
    first, second = (quantised(kind, w_scale, **each).SerializeToString() for each in ({}, change))
    candidates = [OnnxRuntimeExecutor(second, optimised=each) for each in (False, True)]
    return verify(OnnxRuntimeExecutor(first, optimised=False), candidates).equivalent


@pytest.mark.sweep(5)
@pytest.mark.parametrize("w_scale", [7e-5, 9e-4, 6e-3])
@pytest.mark.parametrize("kind", CASES)
def test_one_more_is_found_however_long_a_step_is(kind: str, w_scale: float) -> None:
    assert is_equal(kind, w_scale)
    changes = [{"weight": 1}] if kind == "matmul" else [{"weight": 1}, {"bias": 1}, {"bias": -1}]
    for change in changes:
        assert not is_equal(kind, w_scale, **change), change
