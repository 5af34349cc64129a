"""Trials of operators whose inputs have a length in common that only one of them tells."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnx.parser
import pytest

import padfix


@pytest.mark.parametrize(
    ("graph", "weights"),
    [
        ("(float[N,K] X) => (float Y) { Y = Gemm <transA = 1, transB = 1> (X, w) }", (2, 4)),
        ("(float[K,4] X, float[1,5] Z) => (float Y) { Y = Gemm <transA = 1> (X, Z, w) }", (1,)),
        ("(int8[N,H,K] X) => (int32 Y) <uint8 z = {123}> { Y = MatMulInteger (X, w, , z) }", (2, 6)),
        (
            '(float[B,N,K] X) => (float Y) { P = MatMul (X, w) Y = Einsum <equation = "bnk, bjk -> bnj"> (P, w) }',
            (3, 5, 5),
        ),
        ("(float[N,K] X, float[M,3] Z) => (float Y) { Y = Concat <axis = 0> (X, Z, w) }", (2, 3)),
    ],
)
@pytest.mark.parametrize("target", ["mnn", "openvino", "opencv", "tract", "ncnn", "onnx2tf"])
def test_open_lengths_are_as_long_as_those_beside_them(
    graph: str, weights: tuple[int, ...], target: str, tmp_path: Path
) -> None:
    """Nothing is said to be wrong with a rewrite because its original was tried with lengths that it can't have."""
    model = onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : 17]> main {graph}')
    numbers = np.arange(np.prod(weights)).reshape(weights).astype(np.uint8 if "int8" in graph else np.float32)
    model.graph.initializer.append(onnx.numpy_helper.from_array(numbers, "w"))
    onnx.save(model, tmp_path / "m.onnx")
    try:
        padfix.convert(tmp_path / "m.onnx", tmp_path / "out.onnx", target=target)
    except padfix.PadfixError as error:
        assert "could not be shown" not in str(error)
