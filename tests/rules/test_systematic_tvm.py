"""Pads that wrap round what they cut off, and images resized along some axes, which TVM gets wrong or refuses."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from padfix.errors import RefusedError
from tests.support.proven import operators_for

WRAPPED = """(float[3,8] X) => (float[a,b] Y) <int64[4] p = {%s}> { Y = Pad <mode = "wrap"> (X, p) }"""
CORNERS = """(float[1,2,4,5] X) => (float[1,2,%s] Y) <int64[4] s = {1, 2, %s}>
{ Y = Resize <mode = "nearest", coordinate_transformation_mode = "align_corners"> (X, , , s) }"""
ERASED = """(float[3,4] X, float[1,4] Z) => (float[a,b] Y) <int64 p = {1}>
{ s = %s t = SequenceErase (s, p) Y = ConcatFromSequence <axis = 0> (t) }"""
HALVES = """(float[1,2,4,4] X) => (float[1,2,a,b] Y) <float[0] r = {}, float[4] s = {1, 1, %s}>
{ Y = Resize <mode = "%s", coordinate_transformation_mode = "tf_half_pixel_for_nn", nearest_mode = "%s"> (X, r, s) }"""

LATE = (
    "(float[1,3,H,4] X) => (float[1,3,G,4] Y) <int64[1] i = {2}, int64[2] n = {0, 0}, int64[3] m = {0, 0, 0}, "
    "int64[1] z = {0}, float h = {0.5}, float none = {0}, float most = {9}> "
    "{ s = Shape (X) a = Gather (s, i) b = Cast <to = 1> (a) f = Mul (b, h) %s e = Cast <to = 7> (d) "
    "p = Concat <axis = 0> (n, e, m, e, z) Y = Pad (X, p) }"
)
FED_LENGTHS = "(float[%s] X, int64[%s] p) => (float[A,B,C] Y) { Y = Expand (X, p) }"


@pytest.mark.parametrize(
    ("graph", "written"),
    [
        (WRAPPED % "0, -1, 0, 3", {"Slice": 1, "Pad": 1}),
        (WRAPPED % "0, 2, 0, -1", {"Slice": 1, "Pad": 1}),
        (WRAPPED % "0, 2, 0, 3", {"Pad": 1}),
    ],
)
def test_what_is_cut_off_is_cut_before_it_wraps(graph: str, written: dict[str, int], tmp_path: Path) -> None:
    assert operators_for(graph, "tvm", tmp_path, 19, 9) == Counter(written)


@pytest.mark.parametrize("sizes", ["1,1", "4,1", "1,5"])
def test_corners_of_one_element_are_not_aligned(sizes: str, tmp_path: Path) -> None:
    assert operators_for(CORNERS % (sizes, sizes), "tvm", tmp_path, 18, 8) == Counter(Resize=1)


@pytest.mark.parametrize(
    ("scales", "mode", "rounding", "written"),
    [
        ("2, 1", "linear", "floor", {"MatMul": 1}),
        ("1, 2", "nearest", "ceil", {"Gather": 1}),
        ("1, 2", "nearest", "floor", {"Resize": 1}),
        ("2, 2", "linear", "floor", {"Resize": 1}),
    ],
)
def test_an_axis_that_keeps_its_length_is_not_sampled(
    scales: str, mode: str, rounding: str, written: dict[str, int], tmp_path: Path
) -> None:
    found = operators_for(HALVES % (scales, mode, rounding), "tvm", tmp_path, 11, 8)
    assert found == Counter(written)


def test_sequences_that_are_constructed_are_erased_from(tmp_path: Path) -> None:
    found = operators_for(ERASED % "SequenceConstruct (X, Z)", "tvm", tmp_path, 17, 8)
    assert found == Counter(SequenceConstruct=1, SequenceErase=1, ConcatFromSequence=1)
    with pytest.raises(RefusedError):
        operators_for(ERASED % "SplitToSequence (X)", "tvm", tmp_path, 17, 8)


@pytest.mark.parametrize(
    ("made", "written"),
    [
        ("d = Relu (f)", {"Max": 1}),
        ("d = Clip (f, none, most)", {"Max": 1, "Min": 1}),
        ("d = Ceil (f)", {"Less": 1, "Add": 1}),
        ("d = Floor (f)", {"Less": 1, "Sub": 1}),
        ("d = Abs (f)", {"Abs": 1}),
    ],
)
def test_lengths_are_made_of_others_before_it_runs(made: str, written: dict[str, int], tmp_path: Path) -> None:
    found = operators_for(LATE % made, "tvm", tmp_path, 17, 8)
    given = Counter(Shape=1, Gather=1, Mul=1, Concat=1, Pad=1)
    assert {name: count for name, count in (found - given).items() if name != "Cast"} == written


@pytest.mark.parametrize(
    ("shape", "lengths", "is_written"),
    [("1,3,1", "3", True), ("2,3,1", "1", True), ("1,1,1", "3", False)],
)
def test_a_length_of_one_that_is_fed_keeps_longer_data(
    shape: str, lengths: str, is_written: bool, tmp_path: Path
) -> None:
    found = operators_for(FED_LENGTHS % (shape, lengths), "tvm", tmp_path, 17, 8)
    assert (found["Shape"] == 1) == is_written


@pytest.mark.parametrize("compared", ["c", "s"])
def test_lengths_are_compared_one_by_one(compared: str, tmp_path: Path) -> None:
    text = f"(float[A,3,B] X) => (bool[3] Y) <int64[1] c = {{1}}> {{ s = Shape (X) Y = Equal (s, {compared}) }}"
    found = operators_for(text, "tvm", tmp_path, 17, 8)
    assert found["Equal"] == 1 and found["Cast"] >= 1


@pytest.mark.parametrize("target", ["qnn", "tvm"])
def test_a_list_that_is_not_resized_is_as_it_is(target: str, tmp_path: Path) -> None:
    text = (
        "(float[5] X) => (float[5] Y) <float[0] r = {}, float[0] s = {}, int64[1] n = {5}> { Y = Resize (X, r, s, n) }"
    )
    assert operators_for(text, target, tmp_path, 13, 8) == Counter(Identity=1)


@pytest.mark.parametrize("op_type", ["Asin", "Acos", "Atan"])
def test_what_there_is_not_of_halves_is_of_floats(op_type: str, tmp_path: Path) -> None:
    text = f"(float16[2,3] X) => (float16[2,3] Y) {{ Y = {op_type} (X) }}"
    assert operators_for(text, "tvm", tmp_path, 17, 8) == Counter({"Cast": 2, op_type: 1})


@pytest.mark.parametrize(("mode", "casts"), [("linear", 3), ("cubic", 3), ("nearest", 0)])
def test_halves_are_sampled_in_single_precision(mode: str, casts: int, tmp_path: Path) -> None:
    text = (
        "(float16[1,2,5,6] X, float16[1,3,4,2] G) => (float16[1,2,3,4] Y) "
        f'{{ s = GridSample <mode = "{mode}"> (X, G) Y = Relu (s) }}'
    )
    assert operators_for(text, "tvm", tmp_path, 20, 9)["Cast"] == casts


def test_the_places_of_a_deformed_convolution_are_in_single_precision(tmp_path: Path) -> None:
    text = (
        "(float16[1,2,5,6] X, float16[1,2,5,6] O) => (float16[1,1,5,6] Y) <float16[1,2,1,1] w = {15360, 16384}> "
        "{ Y = DeformConv (X, w, O) }"
    )
    found = operators_for(text, "tvm", tmp_path, 19, 8)
    assert (found["Cast"], found["GridSample"], found["Conv"]) == (3, 1, 1)


def test_a_grid_is_as_long_as_a_shape_says(tmp_path: Path) -> None:
    text = "(float[2,2,3] T, float[2,3,A,B] X) => (float[2,C,D,2] Y) { s = Shape (X) Y = AffineGrid (T, s) }"
    assert operators_for(text, "tvm", tmp_path, 20, 9)["AffineGrid"] == 1
    with pytest.raises(RefusedError, match="its size is not constant"):
        operators_for(
            text.replace("float[2,3,A,B] X", "int64[4] s").replace("s = Shape (X) ", ""), "tvm", tmp_path, 20, 9
        )


def test_a_resize_by_scales_of_one_is_left_out(tmp_path: Path) -> None:
    text = (
        "(float[A,B,C] X) => (float[A,B,C] Y) <float[0] r = {}, float[3] s = {1, 1, 1}> "
        '{ Y = Resize <coordinate_transformation_mode = "align_corners", nearest_mode = "floor"> (X, r, s) }'
    )
    assert operators_for(text, "tvm", tmp_path, 13, 8) == Counter(Identity=1)


def test_an_input_that_is_left_out_stays_so_beside_a_list_of_lengths(tmp_path: Path) -> None:
    graph = "(float[N,3] X) => (float[7,3] Y) <int64[1] S = {7}> { Y = CenterCropPad <axes = [0]> (X, S) }"
    assert "CenterCropPad" not in operators_for(graph, "tvm", tmp_path, 18, 8)
