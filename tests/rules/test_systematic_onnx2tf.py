"""What onnx2tf takes otherwise of shapes, bounds and blocks that few models have, and what is written for it."""

from __future__ import annotations

from pathlib import Path

import onnx
import onnx.parser
import pytest

import padfix
from padfix.errors import RefusedError
from tests.support.proven import operators_for

SUM = "(float[%s] A, float[%s] B) => (float[%s] Y) { Y = Add (A, B) }"
BESIDE_A_LIST = "(float[2,4,3,5] X, float[%s] B) => (float[2,4,3,5] Y) { n = Neg (B) Y = Mul (X, n) }"
FED = "(float[%s] X, float[%s] B) => (float[%s] Y) { Y = %s }"
ADDED = "(float[%s] X, float[4,5] W) => (float[%s] Y) <float[1] b = {2}> { m = MatMul (X, W) Y = Add (m, b) }"
QUOTIENT = "(int32[2,3,5] X) => (int32[2,3,5] Y) <int32[5] c = {5, -2, -4, 4, 3}> { Y = Div (X, c) }"


@pytest.mark.parametrize(
    ("text", "made"),
    [
        # Its first two lengths behind the batch come again.
        (SUM % ("2,3,4,3,4", "2,3,4,3,4", "2,3,4,3,4"), {"Neg": 1, "Sub": 1}),
        (SUM % ("2,3,4,3,4", "3,4", "2,3,4,3,4"), {"Neg": 1, "Reshape": 1, "Sub": 1}),
        (SUM % ("2,3,4,3,5", "2,3,4,3,5", "2,3,4,3,5"), {"Add": 1}),
        (
            "(float[2,3,4,3,4] X) => (float[2,3,4,3,4] Y) <float c = {3}> { Y = Add (X, c) }",
            {"Sub": 1},
        ),
        (
            "(int32[2,3,4,3,4] A, int32[2,3,4,3,4] B) => (int32[2,3,4,3,4] Y) { Y = Add (A, B) }",
            {"Reshape": 3, "Add": 1},
        ),
        # Several axes of a term fit elsewhere.
        (SUM % ("2,2,4,2,5", "2,2,1,2,1", "2,2,4,2,5"), {"Neg": 1, "Sub": 1}),
        (SUM % ("3,1,1,4", "1,4,1,4", "3,4,1,4"), {"Neg": 1, "Sub": 1}),
        (BESIDE_A_LIST % "5", {"Neg": 1, "Reshape": 1, "Mul": 1}),
        (BESIDE_A_LIST % "1", {"Neg": 1, "Mul": 1}),
        ("(float[2,3,4] X, float a, float b) => (float[2,3,4] Y) { Y = Clip (X, a, b) }", {"Max": 1, "Min": 1}),
        ("(float[2,3,4] X, float a) => (float[2,3,4] Y) { Y = Clip (X, a) }", {"Max": 1}),
        ("(float[2,3,4,5] X) => (float[2,3,4,5] Y) { Y = DepthToSpace <blocksize = 1> (X) }", {"Identity": 1}),
        ("(float[2,3,4,5] X) => (float[2,3,4,5] Y) { Y = SpaceToDepth <blocksize = 1> (X) }", {"Identity": 1}),
        ("(float[2,3,2,2] X) => (float[2,3] Y) { Y = Det (X) }", {"Reshape": 2, "Det": 1}),
        (QUOTIENT, {"Reshape": 1, "Div": 1}),
        (FED % ("2,5,4,5", "5", "2,5,4,5", "Mul (X, B)"), {"Reshape": 1, "Mul": 1}),
        (FED % ("2,3,4,5", "5", "2,3,4,5", "Mul (X, B)"), {"Mul": 1}),
        (FED % ("2,3,4,5", "5", "2,3,4,5", "Sub (B, X)"), {"Reshape": 1, "Sub": 1}),
        (FED % ("2,3,4,5", "4,5", "2,3,4,5", "Div (B, X)"), {"Reshape": 1, "Div": 1}),
        (ADDED % ("3,4", "3,5"), {"MatMul": 1, "Add": 1}),
        (ADDED % ("2,3,4", "2,3,5"), {"MatMul": 1, "Add": 1}),
    ],
)
def test_onnx2tf_is_given_forms_that_it_gets_right(text: str, made: dict[str, int], tmp_path: Path) -> None:
    assert operators_for(text, "onnx2tf", tmp_path, 17, 8) == made


@pytest.mark.parametrize("op_type", ["And", "Or", "Xor"])
def test_truths_of_axes_that_lengths_dont_tell_apart_are_declined(op_type: str, tmp_path: Path) -> None:
    text = f"(bool[%s] A, bool[%s] B) => (bool[%s] Y) {{ Y = {op_type} (A, B) }}"
    assert operators_for(text % (("2,3,4",) * 3), "onnx2tf", tmp_path, 17, 8) == {op_type: 1}
    with pytest.raises(RefusedError):
        operators_for(text % (("2,3,3",) * 3), "onnx2tf", tmp_path, 17, 8)


def test_a_number_is_added_to_a_product_as_a_number(tmp_path: Path) -> None:
    source, result = tmp_path / "model.onnx", tmp_path / "result.onnx"
    text = "(float[3,4] X, float[4,5] W) => (float[3,5] Y) <float[1] b = {2}> { Y = Gemm (X, W, b) }"
    onnx.save(onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : 17]> g {text}'), source)
    padfix.convert(source, result, target="onnx2tf")
    assert [list(each.dims) for each in onnx.load(result).graph.initializer] == [[]]


@pytest.mark.parametrize(
    ("after", "gives"),
    [
        ("Concat <axis = 1> (S, S)", "2,6,6"),
        ("Pad (S, P)", "2,6,6"),
        ("Concat <axis = 1> (S, S, S)", "2,9,6"),
    ],
)
def test_a_sum_is_laid_out_anew_where_all_lengths_become_equal(after: str, gives: str, tmp_path: Path) -> None:
    constants = "<float[1] C = {0.5}, int64[6] P = {0, 1, 0, 0, 2, 0}>"
    graph = f"(float[2,3,6] X) => (float[{gives}] Y) {constants} {{ S = Add (X, C) Y = {after} }}"
    written = operators_for(graph, "onnx2tf", tmp_path, 17, 8)
    assert bool({"Conv", "Reshape"} & set(written)) == (gives == "2,6,6")
