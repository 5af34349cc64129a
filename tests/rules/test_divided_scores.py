"""Divided scores, of which OpenCV 5 makes an attention with biases, a number of heads and no computed mask."""

from __future__ import annotations

from pathlib import Path

import onnx
import onnx.parser
import pytest

import padfix

SIXES = ", ".join(["0.5"] * 16)


@pytest.mark.parametrize(
    ("shape", "biased", "mask", "moves"),
    [
        ("1, 3, -1, 2", True, "", True),
        ("0, 0, -1, 2", True, "", True),
        ("0, 0, 2, -1", True, "", False),
        ("1, 3, 2, 2", False, "", True),
        ("1, 3, 2, 2", True, "m = Mul (M, c)", True),
        ("1, 3, 2, 2", True, "m = Where (t, M, c)", True),
        ("1, 3, 2, 2", True, "M", False),
        ("1, 3, 2, 2", True, "c", False),
    ],
)
def test_scores_are_divided_before_their_product(
    shape: str, *, biased: bool, mask: str, moves: bool, tmp_path: Path
) -> None:
    parts = []
    for name, perm in (("q", "0, 2, 1, 3"), ("k", "0, 2, 3, 1")):
        bias = f"{name}1 = Add ({name}0, b)" if biased else f"{name}1 = Identity ({name}0)"
        made = f"{name}1" if biased else f"{name}0"
        parts.append(f"{name}0 = MatMul (X, w) {bias} {name}2 = Reshape ({made}, r)")
        parts.append(f"{name} = Transpose <perm = [{perm}]> ({name}2)")
    computed, scores = mask if "=" in mask else "", "e" if mask else "d"
    added = f"e = Add (d, {'m' if computed else mask})" if mask else ""
    text = f"""<ir_version: 8, opset_import: ["" : 17]> g (float[1,3,4] X, float[1,1,1,3] M) => (float Y)
    <bool t = {{1}}, float[4,4] w = {{{SIXES}}}, float[4] b = {{1, 2, 3, 4}}, int64[4] r = {{{shape}}}, float c = {{2}}>
    {{ {computed} {" ".join(parts)} s = MatMul (q, k) d = Div (s, c) {added} Y = Softmax ({scores}) }}"""
    onnx.save(onnx.parser.parse_model(text), tmp_path / "model.onnx")
    padfix.convert(tmp_path / "model.onnx", tmp_path / "result.onnx", target="opencv@5.0.0.93")
    nodes = [node.op_type for node in onnx.load(tmp_path / "result.onnx").graph.node]
    order = [each for each in nodes if each in ("Div", "MatMul", "Softmax")][-3:]
    assert order == (["Div", "MatMul", "Softmax"] if moves else ["MatMul", "Div", "Softmax"])
