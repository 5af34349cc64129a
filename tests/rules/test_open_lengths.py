"""What onnx2tf tells by lengths alone, where these are left open and may be equal when it is run."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx.parser
import onnxruntime
import pytest

import padfix

EIGHT = "{1, 2, 3, 4, 5, 6, 7, 8}"
POOLED = "P = MaxPool <kernel_shape = [1, 1]> (X)"

HEAD = '<ir_version: 8, opset_import: ["" : 13]> m '

CASES: dict[str, tuple[str, list[str]]] = {
    "the batch behind channels": (
        "(float[N,3,4] X) => (float[3,N,4] Y) { Y = Transpose <perm = [1, 0, 2]> (X) }",
        ["Concat", "Reshape", "Reshape", "Reshape", "Reshape", "Reshape", "Split"],
    ),
    "an open length to the front": (
        "(float[2,N,3,4] X) => (float[N,3,2,4] Y) { Y = Transpose <perm = [1, 2, 0, 3]> (X) }",
        ["Concat", "Reshape", "Reshape", "Reshape", "Reshape", "Split", "Transpose"],
    ),
    "a square matrix turned": (
        "(float[N,2] X) => (float[2,N] Y) { Y = Transpose <perm = [1, 0]> (X) }",
        ["Concat", "Reshape", "Reshape", "Reshape", "Reshape", "Split"],
    ),
    "rows joined": ("(float[N,2] X, float[N,3] Z) => (float[N,5] Y) { Y = Concat <axis = 1> (X, Z) }", ["Concat"]),
    "rows of any length": ("(float[N,L,8] X) => (float[N,L,8] Y) { Y = Relu (X) }", ["AveragePool", "Relu"]),
    "colours": ("(float[N,3,H,W] X) => (float[N,3,H,W] Y) { Y = Relu (X) }", ["Relu"]),
    "channels": ("(float[N,8,H,W] X) => (float[N,8,H,W] Y) { Y = Relu (X) }", ["Conv", "Relu"]),
    "a product": (
        f"(float[N,L,8] X) => (float[N,L,1] Y) <float[8,1] w = {EIGHT}> {{ P = MatMul (X, w) Y = Sigmoid (P) }}",
        ["AveragePool", "MatMul", "Reshape", "Sigmoid"],
    ),
    "factors of channels": (
        f"(float[N,8,H,W] X) => (float[N,8,H,W] Y) <float[8,1,1] f = {EIGHT}> {{ {POOLED} Y = Mul (P, f) }}",
        ["Conv", "MaxPool"],
    ),
    "terms of channels": (
        f"(float[N,8,H,W] X) => (float[N,8,H,W] Y) <float[1,8,1,1] f = {EIGHT}> {{ {POOLED} Y = Add (f, P) }}",
        ["Conv", "MaxPool"],
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_what_is_right_for_all_lengths_is_written(name: str, tmp_path: Path) -> None:
    text, expected = CASES[name]
    source, result = tmp_path / "model.onnx", tmp_path / "out.onnx"
    onnx.save(onnx.parser.parse_model(HEAD + text), source)
    padfix.convert(source, result, target="onnx2tf")
    model = onnx.load(result)
    assert sorted(node.op_type for node in model.graph.node if node.op_type != "Constant") == expected
    for length in (1, 3, 8):
        shapes = [
            [each.dim_value or length for each in value.type.tensor_type.shape.dim] for value in model.graph.input
        ]
        feeds = {
            value.name: np.random.default_rng(0).normal(size=shape).astype(np.float32)
            for value, shape in zip(model.graph.input, shapes, strict=True)
        }
        before, after = (onnxruntime.InferenceSession(str(path)).run(None, feeds)[0] for path in (source, result))
        np.testing.assert_allclose(after, before, rtol=1e-6)


@pytest.mark.parametrize(
    "text",
    [
        "(float[N,L,4] X) => (float[N,4,L] Y) { Y = Transpose <perm = [0, 2, 1]> (X) }",
        "(float[N,L,8] X) => (float[N,L,8] Y) <float[8] b = {1, 2, 3, 4, 5, 6, 7, 8}> { Y = Add (X, b) }",
    ],
)
def test_what_has_no_form_for_all_lengths_is_declined(text: str, tmp_path: Path) -> None:
    source = tmp_path / "model.onnx"
    onnx.save(onnx.parser.parse_model(HEAD + text), source)
    with pytest.raises(padfix.PadfixError, match="--shape"):
        padfix.convert(source, tmp_path / "out.onnx", target="onnx2tf")
    padfix.convert(source, tmp_path / "out.onnx", target="onnx2tf", shapes={"X": (2, 3, int("84"["4] X" in text]))})
