"""Bytes that show what bytes by chance hide: means of planes, and the few with which a sum or product changes."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import onnx
import pytest
from onnx import ModelProto, numpy_helper

from padfix.proof.executors import OnnxRuntimeExecutor
from padfix.proof.whole import verify

SCALES = "x_scale, x_zero"
MEAN = "com.microsoft.QLinearGlobalAveragePool"
CASES = {
    "mean": f"Y = {MEAN} (X, {SCALES}, y_scale, y_zero)",
    "mean, channels last": f"Y = {MEAN} <channels_last = 1> (X, {SCALES}, y_scale, y_zero)",
    "means": f"Y = com.microsoft.QLinearAveragePool <kernel_shape = [2, 2]> (X, {SCALES}, y_scale, y_zero)",
    "product": f"Y = com.microsoft.QLinearMul (X, {SCALES}, b, b_scale, b_zero, y_scale, y_zero)",
    "product, data second": f"Y = com.microsoft.QLinearMul (b, b_scale, b_zero, X, {SCALES}, y_scale, y_zero)",
    "sum": f"Y = com.microsoft.QLinearAdd (X, {SCALES}, b, b_scale, b_zero, y_scale, y_zero)",
}


def quantised(body: str, change: Mapping[str, int]) -> ModelProto:
    model = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["" : 17, "com.microsoft" : 1]>'
        f" g (uint8[1,4,5,6] X) => (uint8[a,b,c,d] Y){{ {body} }}"
    )
    held = {
        "x_zero": np.uint8(204),
        "y_zero": np.uint8(100),
        "b_zero": np.uint8(130),
        "b": np.random.default_rng(4).integers(60, 200, (1, 4, 5, 6)).astype(np.uint8),
        "x_scale": np.float32(0.059),
        "y_scale": np.float32(0.0128),
        "b_scale": np.float32(0.0021),
    }
    for name, more in change.items():
        array = np.array(held[name])
        array.flat[array.size // 3] = int(array.flat[array.size // 3]) + more
        held[name] = array
    model.graph.initializer.extend(
        numpy_helper.from_array(np.asarray(value), name) for name, value in held.items() if name in body
    )
    return model


@pytest.mark.parametrize("kind", CASES)
def test_one_more_is_found(kind: str) -> None:
    def is_equal(change: Mapping[str, int]) -> bool:
        first, second = (quantised(CASES[kind], each).SerializeToString() for each in ({}, change))
        candidates = [OnnxRuntimeExecutor(second, optimised=each) for each in (False, True)]
        return verify(OnnxRuntimeExecutor(first, optimised=False), candidates).equivalent

    assert is_equal({})
    assert not is_equal({"x_zero": 1})
    assert not is_equal({"y_zero": -1})
    if "b," in CASES[kind]:
        assert not is_equal({"b": 1})
        assert not is_equal({"b": -1})
