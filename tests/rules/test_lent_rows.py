"""Products that add a row which the model is fed or gives, and uses for more: QNN makes a bias of it."""

from __future__ import annotations

from pathlib import Path

import onnx
import onnx.parser
import pytest

import padfix

WEIGHTS = "<float[3,3] w = {1, 2, 3, 4, 5, 6, 7, 8, 9}, int64[1] first = {0}>"


@pytest.mark.parametrize(
    ("given", "made", "nodes", "lists"),
    [
        ("float[1,3] X", "float[1,3] Y", "m = MatMul (X, w) Y = Add (m, X)", 1),
        ("float[1,3] X", "float[1,3] Y", "m = MatMul (X, w) Y = Add (X, m)", 1),
        ("float[1,3] X", "float[1,3] Y", "Y = Gemm (X, w, X)", 1),
        ("float[2,3] X, float[1,3] c", "float[2,3] Y, float[1,3] Z", "Y = Gemm (X, w, c) Z = Tanh (c)", 1),
        ("float[2,3] X, float[1,3] C", "float[2,3] Y, float[1,3] c", "c = Abs (C) Y = Gemm (X, w, c)", 1),
        ("float[2,3] X, float[1,3] c", "float[2,3] Y", "m = Gemm (X, w, c) Y = Gemm (m, w, c)", 0),
        ("float[2,3] X, float[1,3] C", "float[2,3] Y", "c = Abs (C) m = Gemm (X, w, c) Y = Mul (m, c)", 0),
        ("float[2,3] X", "float[2,3] Y", "Y = Gemm (X, w, X)", 0),
        ("float[2,3] X, float[1,1] c", "float[2,3] Y, float[1,1] Z", "Y = Gemm (X, w, c) Z = Tanh (c)", 0),
        ("float[1,3] X", "float[1,3] Y, float[1,3] Z", "m = MatMul (X, w) Y = Add (m, X) Z = Tanh (m)", 0),
        ("float[1,1,3] X", "float[1,1,3] Y", "m = MatMul (X, w) Y = Add (m, X)", 0),
    ],
)
def test_the_row_is_added_as_a_list(given: str, made: str, nodes: str, lists: int, tmp_path: Path) -> None:
    source, result = tmp_path / "model.onnx", tmp_path / "result.onnx"
    text = f'<ir_version: 8, opset_import: ["" : 17]> g ({given}) => ({made}) {WEIGHTS} {{ {nodes} }}'
    onnx.save(onnx.parser.parse_model(text), source)
    padfix.convert(source, result, target="qnn")
    assert [node.op_type for node in onnx.load(result).graph.node].count("Squeeze") == lists
    assert not padfix.check(result, target="qnn").findings
