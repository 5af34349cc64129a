"""Pieces of a Split whose length is told, or counted as the model runs; and what is picked behind a Reshape."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest

from tests.rules.test_repeated_borders import written

COUNTED = ["Shape", "Slice", "Add", "Div", "Mul", "Mul", "Mul", "Slice", "Slice"]


@pytest.mark.parametrize("target", ["openvino", "mnn"])
@pytest.mark.parametrize(
    ("shape", "axis", "pieces", "expected"),
    [
        ("5,3", 0, 2, ["Split"]),
        ("4,3", 0, 2, ["Split"]),
        ("N,3", 0, 2, COUNTED),
        ("N,3", -2, 2, COUNTED),
        ("N,4", 1, 2, ["Split"]),
    ],
)
def test_pieces_are_told_or_counted(
    shape: str, axis: int, pieces: int, expected: list[str], target: str, tmp_path: Path
) -> None:
    text = f"""(float[{shape}] X) => (float Y) {{ x = Abs (X)
    a, b = Split <axis = {axis}, num_outputs = {pieces}> (x) Y = Concat <axis = {axis % 2}> (b, a) }}"""
    found = written(text, target, tmp_path, 18)
    assert [each for each in found if each not in ("Abs", "Concat")] == expected


def test_a_piece_without_elements_is_told_as_well(tmp_path: Path) -> None:
    text = """(float[4,N] X) => (float Y) {
    a, b, c = Split <axis = 0, num_outputs = 3> (X) Y = Concat <axis = 0> (c, b, a) }"""
    assert written(text, "openvino", tmp_path, 18) == ["Split", "Concat"]


PICKED = """(float[%s,5] X, float[%s,5] V) => (float Y) <int64[1] a = {1}> {
r = ArgMax <axis = 1, keepdims = %d> (V) %s Y = GatherElements <axis = 1> (X, i) }"""


@pytest.mark.parametrize(
    ("rows", "keepdims", "between", "reshapes"),
    [("N", 0, "i = Unsqueeze (r, a)", True), ("N", 1, "i = Identity (r)", False), ("4", 1, "i = Identity (r)", False)],
)
def test_all_inputs_are_behind_a_reshape_where_one_is(
    rows: str, keepdims: int, between: str, reshapes: bool, tmp_path: Path
) -> None:
    text = PICKED % (rows, rows, keepdims, between)
    found = written(text, "opencv@4.14", tmp_path)
    assert (found[-3:] == ["Reshape", "Reshape", "GatherElements"]) == reshapes


@pytest.mark.parametrize("op_type", ["Add", "Sub", "Mul", "Div"])
def test_a_list_beside_open_rows_has_its_length_told(op_type: str, tmp_path: Path) -> None:
    text = f"(float[N,5] X, float[5] V) => (float[N,5] Y) {{ Y = {op_type} (X, V) }}"
    assert written(text, "opencv@4.14", tmp_path) == ["Reshape", op_type]
    shape = onnx.load(tmp_path / "result.onnx").graph.initializer[0]
    np.testing.assert_array_equal(onnx.numpy_helper.to_array(shape), [1, 5])


@pytest.mark.parametrize(("pieces", "expected"), [("2, 0, 2", "Split"), ("4, 0, 0", "Identity")])
def test_a_piece_without_elements_is_none_for_ncnn(pieces: str, expected: str, tmp_path: Path) -> None:
    text = f"""(float[1,4,3,5] X) => (float[1,4,3,5] Y) <int64[3] k = {{{pieces}}}> {{
      p, q, r = Split <axis = 1> (X, k) Y = Concat <axis = 1> (r, q, p)
    }}"""
    assert expected in written(text, "ncnn", tmp_path, 17)
