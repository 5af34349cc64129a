"""What is written to round without a Round, on the runtime that cancels sums with constants."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnx.parser
import onnxruntime
import pytest

import padfix

openvino = pytest.importorskip("openvino")

ROUND = "Y = Round (X)"
STEPS = "q = QuantizeLinear (X, s, z) Y = DequantizeLinear (q, s, z)"
TEXT = """<ir_version: 8, opset_import: ["" : 13]> g (float[1,3,4,5] X) => (float[1,3,4,5] Y)
<float s = {0.05}, uint8 z = {120}> { %s }"""


@pytest.mark.parametrize("nodes", [ROUND, STEPS])
def test_the_portable_form_is_right(nodes: str, tmp_path: Path) -> None:
    source, result = tmp_path / "model.onnx", tmp_path / "result.onnx"
    onnx.save(onnx.parser.parse_model(TEXT % nodes), source)
    padfix.convert(source, result, target="portable")
    assert "Round" not in {each.op_type for each in onnx.load(result).graph.node}
    data = np.random.default_rng(0).normal(size=(1, 3, 4, 5)).astype(np.float32) * 4
    (expected,) = onnxruntime.InferenceSession(source, providers=["CPUExecutionProvider"]).run(None, {"X": data})
    found = openvino.Core().compile_model(result, "CPU")({"X": data})[0]
    np.testing.assert_allclose(found, expected, atol=1e-6)
