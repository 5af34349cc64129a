"""What OpenCV 4.14 makes part of a layer before, and constants that it takes in once."""

from __future__ import annotations

from pathlib import Path

import onnx.parser
import pytest

import padfix

GROUPS = """(float[1,2,3,3] X) => (float[1,2,5,5] Y)
<float[2,1,3,3] w = {1, 2, 3, 4, 5, 6, 7, 8, 9, 9, 8, 7, 6, 5, 4, 3, 2, 1}, float[2] s = {2, 3}, float[2] v = {4, 1},
 float[1] low = {-9}> { c = ConvTranspose <group = %d> (X, w) %s }"""
NORMED = "Y = BatchNormalization (%s, s, s, s, v)"
SUM = """(float[2,2] X) => (float[1,2,2] Y)
<float[2,2] w = {1, 2, 3, 4}, float[1,%s] b = {%s}> { p = MatMul (X, w) Y = Add (p, b) }"""
JOINED = """(float[1,2] X) => (float[2,4] Y) <float[1,2] z = {0, 1}>
{ a = Concat <axis = 0> (X, z) b = Concat <axis = 0> (z, X) Y = Concat <axis = 1> (a, b) }"""


@pytest.mark.parametrize(
    ("graph", "written"),
    [
        (GROUPS % (2, NORMED % "c"), ["ConvTranspose", "Mul", "Add"]),
        (GROUPS % (2, f"m = Max (c, low) {NORMED % 'm'}"), ["ConvTranspose", "Max", "BatchNormalization"]),
        (SUM % ("1,2", "5, 6"), ["MatMul", "Sum"]),
        (SUM.replace("float[1,2,2] Y", "float[2,2] Y") % ("2", "5, 6"), ["MatMul", "Add"]),
        (JOINED, ["Concat", "Concat", "Concat"]),
    ],
)
def test_it_is_kept_apart(graph: str, written: list[str], tmp_path: Path) -> None:
    model = onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : 13]> g {graph}')
    onnx.save(model, tmp_path / "model.onnx")
    padfix.convert(tmp_path / "model.onnx", tmp_path / "result.onnx", target="opencv@4.14")
    result = onnx.load(tmp_path / "result.onnx")
    assert [node.op_type for node in result.graph.node if node.op_type != "Constant"] == written
    assert not padfix.check(tmp_path / "result.onnx", target="opencv@4.14").findings
    if graph == JOINED:
        first, second, _ = (node for node in result.graph.node if node.op_type == "Concat")
        assert not set(first.input) & set(second.input) - {"X"}
