"""Constants of channels that change reduced lines, which OpenVINO reads for other channels."""

from __future__ import annotations

from pathlib import Path

import onnx
import onnx.parser
import pytest

import padfix
from tests.support.outcomes import operators_written

CONSTANTS = """<float[2,1] k = {3, -2}, float[1] n = {2}, float[2] a = {1, 2}, float[2] v = {0.5, 1.5},
  float[2,1,1] q = {1, 2}>"""
LINES = "u = ReduceMean <axes = [2]> (X)"


@pytest.mark.parametrize(
    ("nodes", "expected"),
    [
        (f"{LINES} Y = Mul (u, k)", ["ReduceMean", "Max", "Mul"]),
        (f"{LINES} Y = Sub (k, u)", ["ReduceMean", "Max", "Sub"]),
        (f"{LINES} r = Relu (u) m = Mul (n, r) Y = Add (m, k)", ["ReduceMean", "Relu", "Mul", "Max", "Add"]),
        ("u = GlobalMaxPool (X) Y = Div (u, k)", ["GlobalMaxPool", "Max", "Div"]),
        ("u = ReduceMax <axes = [-1], keepdims = 0> (X) Y = BatchNormalization (u, a, a, a, v)", None),
        ("u = ReduceL2 <axes = [0], keepdims = 0> (X) Y = PRelu (u, k)", ["ReduceL2", "Max", "PRelu"]),
        (f"{LINES} m = Mul (u, k) Y = Add (m, k)", ["ReduceMean", "Max", "Mul", "Add"]),
    ],
)
def test_a_maximum_keeps_them_apart(nodes: str, expected: list[str] | None, tmp_path: Path) -> None:
    text = f"(float[3,2,4] X) => (float Y) {CONSTANTS} {{ {nodes} }}"
    written = operators_written(text, "openvino", tmp_path, 17, -3.0)
    assert written == expected or (expected is None and written[1] == "Max")


@pytest.mark.parametrize(
    ("nodes", "kept"),
    [
        ("Y = GlobalAveragePool (d)", False),
        ("Y = ReduceSum (d, one)", False),
        ("r = Relu (d) t = Transpose <perm = [0, 2, 1]> (r) Y = ReduceMean <axes = [2], keepdims = 0> (t)", False),
        ("Y = ReduceMax <axes = [2]> (d)", True),
        ("Y = ReduceMean <axes = [0]> (d)", True),
        ("t = Tanh (d) Y = GlobalAveragePool (t)", True),
    ],
)
def test_sums_of_dequantized_lines_are_kept_apart(nodes: str, kept: bool, tmp_path: Path) -> None:
    text = f"""(float[3,2,4] X) => (float Y) <float s = {{0.1}}, int8 z = {{0}}, int64[1] one = {{1}}>
      {{ q = QuantizeLinear (X, s, z) d = DequantizeLinear (q, s, z) {nodes} }}"""
    assert ("Max" not in operators_written(text, "openvino", tmp_path, 17, -3.0)) is kept


@pytest.mark.parametrize(
    ("data", "nodes"),
    [
        ("float[1,2,4]", f"{LINES} Y = Mul (u, k)"),
        ("float[3,2,4]", f"{LINES} Y = Mul (u, n)"),
        ("float[3,2,4]", "u = ReduceMean <axes = [1]> (X) Y = Mul (u, k)"),
        ("float[3,2,4]", f"{LINES} Y = Max (u, k)"),
        ("float[3,2,4]", f"{LINES} m = Mul (u, k) s = Neg (u) Y = Add (m, s)"),
        ("float[3,2,4,4]", "u = ReduceMean <axes = [3]> (X) Y = Mul (u, q)"),
    ],
)
def test_what_it_computes_is_left_alone(data: str, nodes: str, tmp_path: Path) -> None:
    text = f'<ir_version: 8, opset_import: ["" : 17]> g ({data} X) => (float Y) {CONSTANTS} {{ {nodes} }}'
    onnx.save(onnx.parser.parse_model(text), tmp_path / "model.onnx")
    found = padfix.check(tmp_path / "model.onnx", target="openvino").findings
    assert not [each for each in found if "reduced lines" in each.message]
