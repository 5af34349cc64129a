"""Windows of one column with pads at their begin and strides of 2: QNN gives other numbers, for bytes as well."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnx.parser
import pytest
from onnx import numpy_helper

import padfix

NODE = "Conv <pads = [%s], strides = [%s], kernel_shape = [3, 1]>"
FLOATS = "(float[1,2,8,8] X) => (float Y) <float[3,2,3,1] w = {%s}> { Y = NODE (X, w) }"
BYTES = (
    "(float[1,2,8,8] X) => (float Y) <uint8[3,2,3,1] w = {%s}, float s = {0.05}, uint8 z = {120}, "
    "float[3] t = {0.01, 0.02, 0.03}, uint8[3] m = {128, 128, 128}, float r = {0.5}> "
    "{ q = QuantizeLinear (X, s, z) d = DequantizeLinear (q, s, z) v = DequantizeLinear <axis = 0> (w, t, m) "
    "c = NODE (d, v) p = QuantizeLinear (c, r, z) Y = DequantizeLinear (p, r, z) }"
)
QLINEAR = BYTES[: BYTES.index("d =")] + "p = QLinearNODE (q, s, z, w, t, m, r, z) Y = DequantizeLinear (p, r, z) }"


def kernel_of(text: str, pads: str, strides: str, folder: Path) -> np.ndarray:
    source, result = folder / "model.onnx", folder / "result.onnx"
    whole = text.replace("NODE", NODE % (pads, strides)) % ", ".join(str(each) for each in range(100, 118))
    onnx.save(onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : 17]> g {whole}'), source)
    padfix.convert(source, result, target="qnn")
    assert not padfix.check(result, target="qnn").findings
    graph = onnx.load(result).graph
    return next(array for each in graph.initializer if (array := numpy_helper.to_array(each)).ndim == 4)


@pytest.mark.parametrize("text", [FLOATS, BYTES, QLINEAR])
def test_there_is_a_further_column_of_zeros(text: str, tmp_path: Path) -> None:
    kernel = kernel_of(text, "0, 1, 0, 0", "2, 2", tmp_path)
    assert kernel.shape == (3, 2, 3, 2)
    assert (kernel[..., 1] == (0 if text == FLOATS else 128)).all()


@pytest.mark.parametrize("text", [FLOATS, BYTES, QLINEAR])
@pytest.mark.parametrize(("pads", "strides"), [("0, 0, 0, 1", "2, 2"), ("0, 1, 0, 0", "3, 3"), ("1, 0, 1, 0", "2, 2")])
def test_others_are_right_as_they_are(text: str, pads: str, strides: str, tmp_path: Path) -> None:
    assert kernel_of(text, pads, strides, tmp_path).shape == (3, 2, 3, 1)


@pytest.mark.parametrize(("channels", "strides", "columns"), [(32, 2, 10), (31, 2, 9), (32, 1, 9)])
def test_strided_windows_of_nine_columns_get_a_tenth(channels: int, strides: int, columns: int, tmp_path: Path) -> None:
    source, result = tmp_path / "model.onnx", tmp_path / "result.onnx"
    node = f"Y = Conv <group = {channels}, strides = [{strides}, {strides}], pads = [4, 4, 4, 4]> (X, w)"
    text = f'<ir_version: 8, opset_import: ["" : 17]> g (float[1,{channels},16,16] X) => (float Y) {{ {node} }}'
    model = onnx.parser.parse_model(text)
    weights = np.random.default_rng(0).standard_normal((channels, 1, 9, 9)).astype(np.float32)
    model.graph.initializer.append(numpy_helper.from_array(weights, "w"))
    onnx.save(model, source)
    padfix.convert(source, result, target="qnn")
    assert numpy_helper.to_array(onnx.load(result).graph.initializer[0]).shape[-1] == columns
    assert not padfix.check(result, target="qnn").findings
