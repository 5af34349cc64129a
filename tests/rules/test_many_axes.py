"""Operators along several axes, or of more axes than a runtime knows, and what is written for them."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from padfix.rules.build.block_swaps import exchanges
from tests.support.proven import operators_for

OPENCV_5 = "opencv@5.0.0.93"
TURNED = (
    "(float[%s] X) => (float[%s] Y) <int64[%s] s = {%s}, int64[%s] t = {%s}> "
    "{ r = Reshape (X, s) p = Transpose <perm = [%s]> (r) Y = Reshape (p, t) }"
)
REDUCED = "(float[3,5,4,2] X) => (float[%s] Y) { Y = %s <axes = [%s]> (X) }"
PRODUCT = "(float[%s] A, float[%s] B) => (float[%s] Y) { Y = MatMul (A, B) }"
MOMENTS = (
    "(float[3,4,6] X) => (float[3,4,6] Y) <float e = {0.001}, float[6] g = {1, 2, 3, 4, 5, 6}, "
    "float[6] b = {6, 5, 4, 3, 2, 1}> { m = ReduceMean <axes = [1]> (X) a = Sub (X, m) %s "
    "v = ReduceMean <axes = [1]> (c) n = Add (v, e) d = Sqrt (n) r = Reciprocal (d) q = Mul (r, g) w = Mul (m, q) "
    "u = Sub (b, w) z = Mul (X, q) Y = Add (z, u) }"
)
COMPARED = "(float[2,1,2] X) => (bool[2,3,2] Y) <float[2,3,2] w = {0,1,0,1,0,1,0,1,0,1,0,1}> { Y = Greater (X, w) }"
BLOCKS = "(int8[4,2] X%s) => (float[4,2] Y) %s { Y = DequantizeLinear <axis = 0, block_size = 2> (X, s) }"


def turned(given: list[int], split: list[int], order: list[int], made: list[int]) -> str:
    """Return a Transpose between two Reshapes."""
    lists = [",".join(map(str, each)) for each in (given, made, split, made, order)]
    return TURNED % (lists[0], lists[1], len(split), lists[2], len(made), lists[3], lists[4])


@pytest.mark.parametrize(
    ("text", "swaps"),
    [
        (turned([1, 8, 3, 4], [1, 2, 2, 2, 3, 4], [0, 3, 4, 1, 5, 2], [1, 2, 6, 8]), 2),
        (turned([1, 8, 8, 4], [1, 2, 4, 2, 4, 4], [0, 1, 3, 2, 4, 5], [4, 16, 4]), 1),
        (turned([1, 12, 2, 3], [1, 2, 3, 2, 2, 3], [0, 2, 5, 3, 4, 1], [1, 12, 6]), 3),
    ],
)
def test_neighbours_change_places_for_ncnn(text: str, swaps: int, tmp_path: Path) -> None:
    made = operators_for(text, "ncnn", tmp_path, 13, 8)
    assert (made["Transpose"], made["Reshape"]) == (swaps, swaps + 1)


def test_what_shuffles_pixels_as_pytorch_does_stays_for_ncnn(tmp_path: Path) -> None:
    text = turned([1, 8, 3, 4], [1, 2, 2, 2, 3, 4], [0, 1, 4, 2, 5, 3], [1, 2, 6, 8])
    assert operators_for(text, "ncnn", tmp_path, 13, 8) == {"Reshape": 2, "Transpose": 1}


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 3, 0, 2), (4, 2, 0, 3, 1), (0,)])
def test_exchanges_of_neighbours_bring_axes_into_order(order: tuple[int, ...]) -> None:
    lengths = [2, 3, 5, 7, 11][: len(order)]
    now = [*range(len(order))]
    for before, first, second, behind in exchanges(lengths, order):
        assert before * first * second * behind == math.prod(lengths)
        starts = [math.prod(lengths[each] for each in now[:place]) for place in range(len(now) + 1)]
        one, two, three = (starts.index(each) for each in (before, before * first, before * first * second))
        now = [*now[:one], *now[two:three], *now[one:two], *now[three:]]
    assert tuple(now) == order


def test_axes_of_one_element_are_not_exchanged() -> None:
    assert exchanges((1, 4, 1, 6), (2, 1, 0, 3)) == []


@pytest.mark.parametrize(
    ("target", "operator", "axes", "made"),
    [
        (OPENCV_5, "ReduceMean", "0,1,2", {"ReduceMean": 2}),
        (OPENCV_5, "ReduceMean", "1,2,3", {"ReduceMean": 1}),
        (OPENCV_5, "ReduceLogSumExp", "1,2,3", {"ReduceSum": 2}),
        ("onnx2tf", "ReduceL2", "1,2,3", {"ReduceL2": 2}),
        ("onnx2tf", "ReduceL2", "2,3", {"ReduceL2": 1}),
    ],
)
def test_axes_are_reduced_step_by_step(
    target: str, operator: str, axes: str, made: dict[str, int], tmp_path: Path
) -> None:
    kept = [1 if str(axis) in axes else length for axis, length in enumerate((3, 5, 4, 2))]
    text = REDUCED % (",".join(map(str, kept)), operator, axes)
    assert made.items() <= operators_for(text, target, tmp_path, 11, 8).items()


@pytest.mark.parametrize(
    ("first", "second", "result", "is_repeated"),
    [
        ("1,2,3,4", "2,1,4,5", "2,2,3,5", True),
        ("2,3,4", "2,1,4,5", "2,2,3,5", True),
        ("2,1,3,4", "1,3,4,5", "2,3,3,5", False),
        ("2,2,3,4", "2,1,4,5", "2,2,3,5", False),
        ("2,3,4", "4", "2,3", False),
    ],
)
def test_matrices_are_repeated_where_both_factors_are_spread_alike(
    first: str, second: str, result: str, is_repeated: bool, tmp_path: Path
) -> None:
    assert ("Expand" in operators_for(PRODUCT % (first, second, result), "mnn", tmp_path, 13, 8)) is is_repeated


@pytest.mark.parametrize("square", ["c = Mul (a, a)", "o = Sub (X, m) c = Mul (a, o)"])
def test_the_square_of_a_variance_is_a_power_for_mnn(square: str, tmp_path: Path) -> None:
    made = operators_for(MOMENTS % square, "mnn", tmp_path, 11, 8)
    assert (made["Pow"], made["Sub"]) == (1, 2)


def test_data_take_the_shape_of_constants_behind_a_reshape_for_onnx2tf(tmp_path: Path) -> None:
    assert operators_for(COMPARED, "onnx2tf", tmp_path, 13, 8) == {"Reshape": 1, "Greater": 1}


@pytest.mark.parametrize(
    ("given", "constants", "there"),
    [(", float[2,2] s", "", "Expand"), ("", "<float[2,2] s = {1, 2, 3, 4}>", "Mul")],
)
def test_each_element_gets_the_scale_of_its_block_for_tract(
    given: str, constants: str, there: str, tmp_path: Path
) -> None:
    made = operators_for(BLOCKS % (given, constants), "tract", tmp_path, 21, 10)
    assert there in made
    assert "DequantizeLinear" not in made


@pytest.mark.parametrize(("first", "is_there"), [("2,3,4", True), ("1,2,3,4", False)])
def test_shares_have_as_many_axes_as_what_they_are_multiplied_by_for_openvino(
    first: str, is_there: bool, tmp_path: Path
) -> None:
    text = f"(float[{first}] A, float[1,2,4,5] B) => (float[1,2,3,5] Y) {{ p = Softmax (A) Y = MatMul (p, B) }}"
    assert ("Unsqueeze" in operators_for(text, "openvino", tmp_path, 13, 8)) is is_there
