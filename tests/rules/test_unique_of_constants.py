"""A Unique of constants whose elements something is counted by, for a runtime that does not finish it."""

from __future__ import annotations

from pathlib import Path

import onnx
import onnx.parser
import pytest

import padfix

HEAD = '<ir_version: 8, opset_import: ["" : 14]> g (float[7,3] X) => (float[N] Y) '
COUNTED = "u, _a, _b, often = Unique <axis = 0> (of) most = ReduceMax <axes = [0], keepdims = 1> (often) "


@pytest.mark.parametrize(
    ("told", "is_constant"),
    [
        ("Y = ConstantOfShape (most)", True),
        ("Y = Expand (one, most)", True),
        ("Y = Slice (flat, one_place, most)", False),
        ("of_it = Shape (u) Y = ConstantOfShape (of_it)", False),
    ],
)
def test_openvino_is_told_a_length_by_a_constant(told: str, is_constant: bool, tmp_path: Path) -> None:
    source, result = tmp_path / "model.onnx", tmp_path / "result.onnx"
    constants = "int64[5] of = {2, 0, 1, 0, 1}, float one = {1}, int64[1] one_place = {1}, int64[1] line = {-1}"
    text = f"{HEAD}<{constants}> {{ flat = Reshape (X, line) {COUNTED} {told} }}"
    onnx.save(onnx.parser.parse_model(text), source)
    padfix.convert(source, result, target="openvino")
    assert not padfix.check(result, target="openvino").findings
    assert any(node.op_type == "Unique" for node in onnx.load(result).graph.node) is not is_constant


@pytest.mark.parametrize(
    ("results", "read", "is_along"),
    [("Y", "Y", True), ("Y, places", "Y", True), ("Y, _a, each", "each", False), ("_y, _a, _b, Y", "Y", True)],
)
def test_openvino_keeps_an_order_along_an_axis(results: str, read: str, is_along: bool, tmp_path: Path) -> None:
    source, result = tmp_path / "model.onnx", tmp_path / "result.onnx"
    given = f"float[N] {read}" if results.startswith(read) else f"int64[N] {read}"
    text = f'<ir_version: 8, opset_import: ["" : 14]> g (float[2,3] X) => ({given}) '
    onnx.save(onnx.parser.parse_model(f"{text}{{ {results} = Unique <sorted = 0> (X) }}"), source)
    padfix.convert(source, result, target="openvino")
    found = [node for node in onnx.load(result).graph.node if node.op_type == "Unique"]
    assert [any(each.name == "axis" for each in node.attribute) for node in found] == [is_along]
