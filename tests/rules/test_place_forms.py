"""Places of extremes: their axis counted from the begin."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest
from onnx import parser

import padfix


@pytest.mark.parametrize("operator", ["ArgMax", "ArgMin"])
@pytest.mark.parametrize(("keeps", "shape"), [(0, ""), (1, "[1]")])
def test_the_axis_of_a_list_is_counted_from_the_begin(operator: str, keeps: int, shape: str, tmp_path: Path) -> None:
    """OpenCV 4.14 gives a column, [5, 1], of the places of a list's extremes with axis -1."""
    text = f"""<ir_version: 8, opset_import: ["": 13]> g (float[5] X) => (int64{shape} Y)
        {{ Y = {operator} <axis = -1, keepdims = {keeps}> (X) }}"""
    onnx.save(parser.parse_model(text), tmp_path / "model.onnx")
    (finding,) = padfix.check(tmp_path / "model.onnx", target="opencv@4.14.0").findings
    assert finding.severity == "silent" and "column" in finding.message
    padfix.convert(tmp_path / "model.onnx", tmp_path / "result.onnx", target="opencv@4.14.0")
    assert not padfix.check(tmp_path / "result.onnx", target="opencv@4.14.0").findings
    (node,) = onnx.load(tmp_path / "result.onnx").graph.node
    assert onnx.helper.get_node_attr_value(node, "axis") == 0
    assert not padfix.check(tmp_path / "model.onnx", target="opencv@5.0.0.93").findings


@pytest.mark.parametrize(("axis", "expected"), [(-2, 0), (-1, -1), (0, 0)])
def test_the_first_axis_that_truths_take_is_counted_from_the_begin(axis: int, expected: int, tmp_path: Path) -> None:
    nodes = f"y = Compress <axis = {axis}> (x, c)"
    graph = f"g (float[4,5] x, bool[3] c) => (float[n,m] y) {{ {nodes} }}"
    onnx.save(onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : 17]> {graph}'), tmp_path / "a.onnx")
    padfix.convert(tmp_path / "a.onnx", tmp_path / "b.onnx", target="mnn")
    (node,) = onnx.load(tmp_path / "b.onnx").graph.node
    assert [each.i for each in node.attribute] == [expected]
