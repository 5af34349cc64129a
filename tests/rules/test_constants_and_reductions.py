"""What OpenCV computes of no constant, takes for a column, or ends over when all axes are listed."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import onnx
import pytest

from padfix.errors import RefusedError
from tests.support.proven import operators_for

OF_INTEGERS = """(float[%s] X) => (float[a,b] Y) <int64[2,3] c = {1, 0, 2, 4, 0, 5},
int64 k = {1}, int64[4] p = {0, 0, 0, 1},
int64[1] s = {1}> { %s f = Cast <to = 1> (d) Y = Mul (X, f) }"""
SUMMED = "(float[%s] X) => (float[%s] Y) <int64 a = {%d}> { Y = CumSum <reverse = 1> (X, a) }"
LISTED = "(%s[%s] X) => (%s[%s] Y) { Y = %s <axes = %s, keepdims = %d> (X) }"


@pytest.mark.parametrize(
    ("data", "nodes"),
    [
        ("2,3", "d = CumSum (c, k)"),
        ("2,4", "d = Pad (c, p)"),
        ("1,1", "d = ReduceSum (c)"),
        ("2,1", "d, i = TopK (c, s)"),
        ("1,3", "d = Gather (c, s)"),
        ("3,2", "d = Transpose (c)"),
        ("2,4", "d = NonZero (c)"),
    ],
)
def test_what_integers_are_computed_of_constants_is_a_constant(data: str, nodes: str, tmp_path: Path) -> None:
    found = operators_for(OF_INTEGERS % (data, nodes), "opencv@4.14.0", tmp_path, 13, 8)
    assert set(found) <= {"Constant", "Cast", "Mul"}


def test_a_list_is_cut_by_an_axis_from_the_begin(tmp_path: Path) -> None:
    for lengths, axis, written in (("3", -1, 0), ("3", 0, 0), ("2,3", -1, -1)):
        assert operators_for(SUMMED % (lengths, lengths, axis), "opencv@4.14.0", tmp_path, 14, 8) == Counter(CumSum=1)
        (told,) = onnx.load(tmp_path / "after.onnx").graph.initializer
        assert onnx.numpy_helper.to_array(told) == written
    for kept in (0, 1):
        text = LISTED % ("float", "5", "float", "1" if kept else "", "ReduceMax", "[-1]", kept)
        assert operators_for(text, "opencv@4.14.0", tmp_path, 11, 8) == Counter(ReduceMax=1)
        (node,) = onnx.load(tmp_path / "after.onnx").graph.node
        assert -1 not in [axis for each in node.attribute for axis in each.ints]


@pytest.mark.parametrize(
    ("numbers", "lengths", "is_listed"), [("double", "2,3", False), ("float", "2,3", True), ("int32", "5", True)]
)
def test_no_axes_are_listed_where_all_of_doubles_and_integers_are_reduced(
    numbers: str, lengths: str, is_listed: bool, tmp_path: Path
) -> None:
    axes = list(range(lengths.count(",") + 1))
    one = ",".join("1" for _ in axes)
    text = LISTED % (numbers, lengths, numbers, one, "ReduceSum", axes, 1)
    assert operators_for(text, "opencv@5.0.0.93", tmp_path, 11, 8) == Counter(ReduceSum=1)
    (node,) = onnx.load(tmp_path / "after.onnx").graph.node
    assert any(each.name == "axes" for each in node.attribute) == is_listed


@pytest.mark.parametrize("target", ["opencv@4.14.0", "opencv@5.0.0.93"])
def test_roots_of_integers_are_declined_and_sums_of_what_is_fed_are_not(target: str, tmp_path: Path) -> None:
    text = LISTED % ("int32", "5", "int32", "1", "%s", "[0]", 1)
    with pytest.raises(RefusedError, match="ReduceL2"):
        operators_for(text % "ReduceL2", target, tmp_path, 11, 8)
    assert operators_for(text % "ReduceSum", target, tmp_path, 11, 8) == Counter(ReduceSum=1)


@pytest.mark.parametrize("target", ["opencv@4.14.0", "opencv@5.0.0.93"])
@pytest.mark.parametrize("lengths", ["5", "3,5"])
def test_a_list_or_a_matrix_that_keeps_its_lengths_is_passed_on(lengths: str, target: str, tmp_path: Path) -> None:
    told = ", ".join("1" for _ in lengths.split(","))
    text = f"""(float[{lengths}] X) => (float[{lengths}] Y) <float[{told.count(",") + 1}] s = {{{told}}}>
    {{ Y = Resize <mode = "nearest"> (X, , s) }}"""
    assert operators_for(text.replace("X, ,", 'X, "",'), target, tmp_path, 13, 8) == Counter(Identity=1)
