"""A Flatten that takes elements in another order, and a Softmax of axes that are taken together."""

from __future__ import annotations

from pathlib import Path

import onnx
import onnx.parser
import pytest

import padfix

DATA = "g (float[1,2,3,4] X, float[2,2,1,1] W) => (float Y)"


@pytest.mark.parametrize(
    ("nodes", "expected"),
    [
        ("Y = Flatten (X)", ["Reshape"]),
        ("Y = Flatten <axis = 2> (X)", ["Reshape"]),
        ("Y = Softmax <axis = 1> (X)", ["Reshape", "Softmax", "Reshape"]),
        ("c = Conv (X, W) Y = Flatten (c)", ["Conv", "Reshape"]),
    ],
)
def test_it_is_written_for_onnx2tf(nodes: str, expected: list[str], tmp_path: Path) -> None:
    source, result = tmp_path / "model.onnx", tmp_path / "result.onnx"
    onnx.save(onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : 11]> {DATA} {{ {nodes} }}'), source)
    assert "PF306" in {each.rule for each in padfix.check(source, target="onnx2tf").findings}
    padfix.convert(source, result, target="onnx2tf")
    assert [node.op_type for node in onnx.load(result).graph.node if node.op_type != "Constant"] == expected
