"""Running sums of integers, which no product gives without a loss, and running products."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx.parser
import pytest
from onnx.reference import ReferenceEvaluator

import padfix
from tests.rules.test_defined_forms import converted


@pytest.mark.parametrize("elem_type", ["int32", "int64"])
@pytest.mark.parametrize(
    ("node", "target", "expected"),
    [
        ("Y = CumSum (X, a)", "onnx2tf", ["Slice", "Pad", "Add"] * 2),
        ("Y = CumSum <exclusive = 1, reverse = 1> (X, a)", "onnx2tf", ["Slice", "Pad"] + ["Slice", "Pad", "Add"] * 2),
        ("Y = CumSum <exclusive = 1> (X, a)", "qnn", ["Slice"] * 4 + ["Sub", "Add", "Add", "Concat"]),
        ("Y = CumSum <exclusive = 1, reverse = 1> (X, a)", "qnn", ["Slice"] * 4 + ["Sub", "Add", "Add", "Concat"]),
    ],
)
def test_integers_are_moved_and_added(
    node: str, target: str, expected: list[str], elem_type: str, tmp_path: Path
) -> None:
    text = f"({elem_type}[4,2,1] X) => ({elem_type}[4,2,1] Y) <int64 a = {{-3}}> {{ {node} }}"
    assert sorted(converted(text, target, tmp_path, 14)) == sorted(expected)


def test_a_sum_joined_with_what_is_moved_is_joined_as_rows_along_the_first_axis(tmp_path: Path) -> None:
    text = (
        "(float[4,2,1] X) => (float[4,2,1] Y) <int64[1] o = {0}, int64[1] i = {1}, int64[1] t = {2}, int64[1] e = {4}> "
        "{ p = Slice (X, o, i, o) q = Slice (X, i, t, o) r = Slice (X, t, e, o) s = Add (p, q) "
        "Y = Concat <axis = 0> (p, s, r) }"
    )
    found = converted(text, "onnx2tf", tmp_path, 17)
    assert found == ["Add", "Concat", "Reshape", "Reshape", "Reshape", "Reshape", "Slice", "Slice", "Slice"]


@pytest.mark.parametrize("elem_type", ["float", "int32"])
@pytest.mark.parametrize("target", ["openvino", "tract"])
@pytest.mark.parametrize(
    ("attributes", "expected"),
    [
        ("", ["Slice"] * 3 + ["Mul", "Mul", "Concat"]),
        ("<exclusive = 1, reverse = 1>", ["Slice"] * 3 + ["Add", "Concat", "Mul", "Sub"]),
    ],
)
def test_pieces_are_multiplied(
    attributes: str, expected: list[str], target: str, elem_type: str, tmp_path: Path
) -> None:
    text = f"({elem_type}[2,3] X) => ({elem_type}[2,3] Y) <int64 a = {{-1}}> {{ Y = CumProd {attributes} (X, a) }}"
    is_float = elem_type == "float" and "Sub" in expected
    # Infinite floats less themselves are no number, where an exclusive product begins with 1.
    written = [each for each in expected if each != "Sub"] + ["Equal", "Cast", "Mul"] if is_float else expected
    assert converted(text, target, tmp_path, 26) == sorted(written)


def test_an_exclusive_product_begins_with_one_whatever_its_data_are(tmp_path: Path) -> None:
    text = "(float[2,3] X) => (float[2,3] Y) <int64 a = {-1}> { Y = CumProd <exclusive = 1> (X, a) }"
    source = onnx.parser.parse_model(f'<ir_version: 9, opset_import: ["" : 26]> g {text}')
    onnx.save(source, tmp_path / "model.onnx")
    padfix.convert(tmp_path / "model.onnx", tmp_path / "out.onnx", target="openvino", reference="spec")
    data = np.array([[np.inf, 2, 3], [np.nan, 1, 2]], np.float32)
    (found,) = ReferenceEvaluator(str(tmp_path / "out.onnx")).run(None, {"X": data})
    np.testing.assert_array_equal(found, [[1, np.inf, np.inf], [1, np.nan, np.nan]])
