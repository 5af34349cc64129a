"""Products with a constant matrix of one element, which ncnn takes for a number and gives no network of."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnx.parser
import pytest

import padfix
from tests.support.one_node import run


def both(folder: Path, graph: str, shape: tuple[int, ...]) -> list[str]:
    """Return the operators of what is written, after a comparison of what both models give."""
    model = onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : 17]> g {graph}')
    onnx.save(model, folder / "model.onnx")
    padfix.convert(folder / "model.onnx", folder / "result.onnx", target="ncnn")
    assert not padfix.check(folder / "result.onnx", target="ncnn").findings
    feeds = {"X": np.random.default_rng(0).standard_normal(shape).astype(np.float32)}
    result = onnx.load(folder / "result.onnx")
    np.testing.assert_allclose(run(result, feeds)[0], run(model, feeds)[0], atol=1e-6)
    return [node.op_type for node in result.graph.node]


@pytest.mark.parametrize(
    ("graph", "shape", "expected"),
    [
        ("(float[3,1] X) => (float Y) <float[1,1] w = {2.5}> { Y = MatMul (X, w) }", (3, 1), ["Mul"]),
        ("(float[1,1,4] X) => (float Y) <float[1,1] w = {2.5}> { Y = MatMul (w, X) }", (1, 1, 4), ["Mul"]),
        ("(float[3,1] X) => (float Y) <float[1] w = {2.5}> { Y = MatMul (X, w) }", (3, 1), ["Mul", "Squeeze"]),
        (
            '(float[3,1] X) => (float Y) <float[1,1] w = {2}> { Y = Einsum <equation="ab,bc->ac"> (X, w) }',
            (3, 1),
            ["Mul"],
        ),
        (
            "(float[3,1] X) => (float Y) <float[1,2] w = {2.5, 1}> { a, b = Split <axis = 1> (w) Y = MatMul (X, a) }",
            (3, 1),
            ["Split", "Reshape", "Mul"],
        ),
        (
            "(float[3,1] X) => (float Y) <float[1,1] w = {2.5}, float[1] b = {1}> { Y = Gemm (X, w, b) }",
            (3, 1),
            ["Gemm"],
        ),
    ],
)
def test_a_matrix_of_one_element_is_a_number(
    graph: str, shape: tuple[int, ...], expected: list[str], tmp_path: Path
) -> None:
    assert both(tmp_path, graph, shape) == expected
