"""What is a Reshape, or an operator between two, where onnx2tf takes elements in another order."""

from __future__ import annotations

from pathlib import Path

import onnx
import onnx.parser
import pytest

import padfix

DATA = """g (float[1,2,3,4] X) => (float Y)
<float[2,2,1,1] W = {1, -2, 3, 4}, int64[3] r = {2, 4, 3}, int64[2] from = {1, 0}, int64[2] to = {3, 1},
 int64[2] axes = {2, 1}>
"""


@pytest.mark.parametrize(
    ("nodes", "expected"),
    [
        ("Y = Flatten (X)", ["Reshape"]),
        ("Y = Flatten <axis = 2> (X)", ["Reshape"]),
        ("Y = Softmax <axis = 1> (X)", ["Reshape", "Softmax", "Reshape"]),
        ("c = Conv (X, W) Y = Flatten (c)", ["Conv", "Reshape"]),
        ("c = Conv (X, W) Y = Unsqueeze <axes = [1]> (c)", ["Conv", "Reshape"]),
        ("s = Reshape (X, r) Y = Slice (s, from, to, axes)", ["Reshape", "Slice"]),
    ],
)
def test_it_is_written_for_onnx2tf(nodes: str, expected: list[str], tmp_path: Path) -> None:
    assert converted(f"{DATA} {{ {nodes} }}", tmp_path) == expected


@pytest.mark.parametrize(
    "nodes", ["Y = Transpose <perm = [1, 0, 2, 3]> (X)", "Y = Transpose <perm = [2, 3, 0, 1]> (X)"]
)
def test_axes_of_one_element_move_as_a_reshape(nodes: str, tmp_path: Path) -> None:
    assert converted(f"g (float[1,1,5,5] X) => (float Y) {{ {nodes} }}", tmp_path) == ["Reshape"]


def test_factors_that_are_images_keep_their_axes_behind_a_reshape(tmp_path: Path) -> None:
    product = "g (float[1,2,3,4] X, float[1,2,4,3] Z) => (float Y) { Y = MatMul (X, Z) }"
    assert converted(product, tmp_path) == ["Reshape", "Reshape", "MatMul"]


def test_a_computed_matrix_of_indices_picks_as_a_list(tmp_path: Path) -> None:
    picked = "g (int64[4,3] I) => (float Y) <float[3,1] k = {1, 2, 3}> { Y = Gather (k, I) }"
    assert converted(picked, tmp_path) == ["Reshape", "Gather", "Reshape"]


def converted(graph: str, tmp_path: Path) -> list[str]:
    source, result = tmp_path / "model.onnx", tmp_path / "result.onnx"
    onnx.save(onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : 11]> {graph}'), source)
    assert "PF306" in {each.rule for each in padfix.check(source, target="onnx2tf").findings}
    padfix.convert(source, result, target="onnx2tf")
    return [node.op_type for node in onnx.load(result).graph.node if node.op_type != "Constant"]
