"""Square weights that a layer takes turned and another as they are: OpenVINO lays them out once for both."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnx.parser
import onnxruntime
import openvino
import pytest
from onnx import numpy_helper

import padfix

RANDOM = np.random.default_rng(5)
MATRIX = RANDOM.standard_normal((6, 6)).astype(np.float32)
IMAGES = RANDOM.standard_normal((4, 4, 3, 3)).astype(np.float32)

WRONG = {
    "turned behind it": ("float[2,6] x", "y = MatMul (x, w) t = Transpose (w) z = MatMul (y, t)", MATRIX),
    "turned by an attribute": ("float[2,6] x", "y = MatMul (x, w) z = Gemm <transB = 1> (y, w)", MATRIX),
    "an equation": ("float[2,6] x", 'y = MatMul (x, w) z = Einsum <equation = "ij,kj->ik"> (y, w)', MATRIX),
    "views": (
        "float[2,6] x",
        "v = Reshape (w, s) y = MatMul (x, v) u = Reshape (w, s) z = Gemm <transB = 1> (y, u)",
        MATRIX,
    ),
    "images": ("float[1,4,6,6] x", "y = Conv (x, w) z = ConvTranspose (y, w)", IMAGES),
    "images, the other first": ("float[1,4,6,6] x", "y = ConvTranspose (x, w) z = Conv (y, w)", IMAGES),
}
RIGHT = {
    "the same way": ("float[2,6] x", "y = MatMul (x, w) z = Gemm (y, w)", MATRIX),
    "turned twice": ("float[2,6] x", "y = MatMul (x, w) t = Transpose (w) z = Gemm <transB = 1> (y, t)", MATRIX),
    "the first matrix": ("float[6,6] x", "y = MatMul (x, w) z = MatMul (w, y)", MATRIX),
    "not square": ("float[2,6] x", "y = MatMul (x, w) z = Gemm <transB = 1> (y, w)", MATRIX[:, :4]),
    "lines": ("float[1,4,6] x", "y = Conv (x, w) z = ConvTranspose (y, w)", IMAGES[..., 0]),
    "groups": ("float[1,4,6,6] x", "y = Conv <group = 4> (x, w) z = ConvTranspose <group = 4> (y, w)", IMAGES[:, :1]),
}


def saved(case: tuple[str, str, np.ndarray], path: Path) -> Path:
    inputs, nodes, weights = case
    model = onnx.parser.parse_model(
        f'<ir_version: 8, opset_import: ["" : 17]> g ({inputs}) => (float[unused] z) {{ {nodes} }}'
    )
    model.graph.output[0].type.tensor_type.ClearField("shape")
    constants = {"w": weights, "s": np.array([6, 6])}
    read = {name for node in model.graph.node for name in node.input}
    model.graph.initializer.extend(
        numpy_helper.from_array(each, name) for name, each in constants.items() if name in read
    )
    model = onnx.shape_inference.infer_shapes(model, strict_mode=True)
    onnx.save(model, path)
    return path


def on_openvino(path: Path, data: np.ndarray) -> np.ndarray:
    found: np.ndarray = openvino.Core().compile_model(str(path), "CPU", {"INFERENCE_PRECISION_HINT": "f32"})([data])[0]
    return found


@pytest.mark.parametrize("case", WRONG.values(), ids=WRONG)
def test_each_has_weights_of_its_own(case: tuple[str, str, np.ndarray], tmp_path: Path) -> None:
    path, result = saved(case, tmp_path / "model.onnx"), tmp_path / "result.onnx"
    found = padfix.check(path, target="openvino").findings
    assert {each.severity for each in found} == {"silent"}
    assert {each.rule for each in found} <= {"PF111", "PF306"}
    padfix.convert(path, result, target="openvino")
    assert not padfix.check(result, target="openvino").findings
    lengths = [each.dim_value for each in onnx.load(path).graph.input[0].type.tensor_type.shape.dim]
    data = np.random.default_rng(1).standard_normal(lengths).astype(np.float32)
    right = in_onnxruntime(path, data)
    np.testing.assert_allclose(on_openvino(result, data), right, rtol=1e-3, atol=1e-4)
    assert np.abs(on_openvino(path, data) - right).max() > 0.1, "what this is about"


def in_onnxruntime(path: Path, data: np.ndarray) -> np.ndarray:
    found: np.ndarray = onnxruntime.InferenceSession(path).run(None, {"x": data})[0]
    return found


@pytest.mark.parametrize("case", RIGHT.values(), ids=RIGHT)
def test_what_is_right_stays(case: tuple[str, str, np.ndarray], tmp_path: Path) -> None:
    assert not padfix.check(saved(case, tmp_path / "model.onnx"), target="openvino").findings
