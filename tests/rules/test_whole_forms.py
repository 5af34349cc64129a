"""Whole numbers and booleans for a runtime that keeps fractions, whatever the type that they are cast to."""

from __future__ import annotations

from pathlib import Path

import onnx
import onnx.parser
import pytest

import padfix

CUT = ["Abs", "Cast", "Floor", "Mul", "Sign"]


def converted(nodes: str, given: str, gives: str, folder: Path) -> list[str]:
    """Return the operators of what is written for OpenCV 4.14, which finds nothing more in it."""
    source, result = folder / "model.onnx", folder / "result.onnx"
    more = ", float[2] two = {1, 2}, float[2,3] w = {1, 2, 3, 4, 5, 6}"
    graph = f"g ({given}[2,3] X) => ({gives}[2,3] Y) <int64 n = {{3}}{more}> {{ {nodes} }}"
    text = f'<ir_version: 8, opset_import: ["" : 17]> {graph}'
    onnx.save(onnx.parser.parse_model(text), source)
    padfix.convert(source, result, target="opencv@4.14")
    assert not padfix.check(result, target="opencv@4.14").findings
    return sorted(node.op_type for node in onnx.load(result).graph.node)


@pytest.mark.parametrize(
    ("nodes", "given", "gives", "expected"),
    [
        ("Y = Cast <to = 7> (X)", "float", "int64", CUT),
        ("c = Cast <to = 6> (X) Y = Cast <to = 1> (c)", "float", "float", sorted([*CUT, "Cast"])),
        ("Y = Cast <to = 9> (X)", "float", "bool", ["Abs", "Cast", "Sign"]),
        ("Y = Cast <to = 9> (X)", "int64", "bool", ["Abs", "Cast", "Sign"]),
        ("Y = Div (X, n)", "int64", "int64", ["Div", "Mod", "Sub"]),
        ("Y = And (X, X)", "bool", "bool", ["Cast", "Cast", "Greater", "Mul"]),
        ("Y = Or (X, X)", "bool", "bool", ["Cast", "Cast", "Greater", "Max"]),
        ("Y = Xor (X, X)", "bool", "bool", ["Abs", "Cast", "Cast", "Greater", "Sub"]),
    ],
)
def test_what_is_left_of_numbers_is_computed_before(
    nodes: str, given: str, gives: str, expected: list[str], tmp_path: Path
) -> None:
    assert converted(nodes, given, gives, tmp_path) == expected


@pytest.mark.parametrize(
    ("nodes", "given", "gives"),
    [
        ("f = Floor (X) m = Mul (f, f) Y = Cast <to = 7> (m)", "float", "int64"),
        ("b = Greater (X, X) Y = Cast <to = 7> (b)", "float", "int64"),
        ("Y = Cast <to = 1> (X)", "int64", "float"),
        ("Y = Div (X, X)", "float", "float"),
    ],
)
def test_nothing_is_cut_off_that_is_whole(nodes: str, given: str, gives: str, tmp_path: Path) -> None:
    assert len(converted(nodes, given, gives, tmp_path)) == nodes.count("=") - nodes.count("<")


@pytest.mark.parametrize(
    ("nodes", "given", "gives", "expected"),
    [
        ("Y = IsInf (X)", "float", "bool", ["Abs", "Equal"]),
        ("Y = IsInf <detect_positive = 0> (X)", "float", "bool", ["Equal"]),
        ("Y = IsNaN (X)", "float", "bool", ["Equal", "Not"]),
        ("o = OneHot (X, n, two) Y = ReduceMax <axes = [2], keepdims = 0> (o)", "int64", "float", ["Equal", "Where"]),
        ("t = Trilu (w) Y = Add (X, t)", "float", "float", ["Add"]),
    ],
)
def test_questions_are_comparisons(nodes: str, given: str, gives: str, expected: list[str], tmp_path: Path) -> None:
    assert set(expected) <= set(found := converted(nodes, given, gives, tmp_path))
    assert not {"IsInf", "IsNaN", "OneHot", "Trilu"} & set(found)
