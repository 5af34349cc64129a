"""Norms of all axes that PyTorch spells out, which pnnx takes for LayerNormalizations and ncnn for those of rows."""

from __future__ import annotations

from pathlib import Path

import onnx
import onnx.parser
import pytest

import padfix


@pytest.mark.parametrize(
    ("lengths", "axes", "added", "is_left"),
    [
        ("1,6,8,8", "-3, -2, -1", "v, tiny", False),
        ("2,6,8", "1, 2", "v, tiny", False),
        ("1,3,4,5,6", "1, 2, 3, 4", "v, tiny", False),
        ("1,6,8", "0, 1, 2", "v, tiny", False),
        ("1,6,8,8", "2, 3", "v, tiny", True),
        ("1,6,8,8", "1, 2, 3", "tiny, v", True),
        ("1,6", "1", "v, tiny", True),
    ],
)
def test_the_square_of_a_whole_norm_is_a_product(
    lengths: str, axes: str, added: str, is_left: bool, tmp_path: Path
) -> None:
    mean = f"ReduceMean <axes = [{axes}]>"
    nodes = f"m = {mean} (X) d = Sub (X, m) s = Pow (d, two) v = {mean} (s) e = Add ({added}) r = Sqrt (e)"
    constants = "<float two = {2}, float tiny = {0.001}>"
    graph = f"g (float[{lengths}] X) => (float[{lengths}] Y) {constants} {{ {nodes} Y = Div (d, r) }}"
    onnx.save(onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : 14]> {graph}'), tmp_path / "a.onnx")
    padfix.convert(tmp_path / "a.onnx", tmp_path / "b.onnx", target="ncnn")
    operators = [node.op_type for node in onnx.load(tmp_path / "b.onnx").graph.node]
    assert ("Pow" in operators) is is_left
