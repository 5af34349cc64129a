"""Inputs times a number that get or lose five axes behind: QNN finds no memory for them."""

from __future__ import annotations

from pathlib import Path

import onnx
import onnx.parser
import pytest

import padfix


@pytest.mark.parametrize(
    ("given", "made", "nodes", "first"),
    [
        ([1, 4, 8, 16], [1, 1, 4, 8, 16], "m = Mul (X, number) Y = Unsqueeze (m, none)", "number"),
        ([1, 1, 4, 8, 16], [1, 4, 8, 16], "m = Mul (X, number) Y = Squeeze (m, none)", "number"),
        (
            [1, 4, 8, 6],
            [1, 1, 8, 6, 4],
            "m = Mul (X, number) t = Transpose <perm = [0, 2, 3, 1]> (m) Y = Unsqueeze (t, none)",
            "number",
        ),
        ([1, 4, 8], [1, 1, 4, 8], "m = Mul (X, number) Y = Unsqueeze (m, none)", "X"),
        ([1, 4, 8, 16], [1, 1, 4, 8, 16], "r = Relu (X) m = Mul (r, number) Y = Unsqueeze (m, none)", "r"),
    ],
)
def test_the_number_comes_first(given: list[int], made: list[int], nodes: str, first: str, tmp_path: Path) -> None:
    source, result = tmp_path / "model.onnx", tmp_path / "result.onnx"
    text = f'<ir_version: 8, opset_import: ["" : 17]> g (float{given} X) => (float{made} Y) '
    onnx.save(onnx.parser.parse_model(f"{text} <float number = {{2.5}}, int64[1] none = {{0}}> {{ {nodes} }}"), source)
    padfix.convert(source, result, target="qnn")
    product = next(node for node in onnx.load(result).graph.node if node.op_type == "Mul")
    assert product.input[0] == first
    assert not padfix.check(result, target="qnn").findings
