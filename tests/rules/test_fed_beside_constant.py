"""What some runtimes take as constants alone, or all fed, where a part of it is; and open lengths beside constants."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from padfix.errors import RefusedError
from tests.support.proven import operators_for

OPENCV = "opencv@4.14.0"

APART = {"LayerNormalization": 1, "Mul": 1, "Reshape": 1, "Add": 1}
"""A norm with factors of 1."""


@pytest.mark.parametrize(
    ("fed", "text", "written"),
    [
        ("S, int8[2,3] X", "float", {"DequantizeLinear": 1}),
        ("S, int8 Z, int8[2,3] X", "float", {"DequantizeLinear": 1}),
        ("S, int8[2,3] X", "float <int8 Z = {4}>", {"Cast": 1, "Sub": 1, "Mul": 1}),
    ],
)
def test_a_zero_point_is_constant_where_the_scale_is(
    fed: str, text: str, written: dict[str, int], tmp_path: Path
) -> None:
    element, _, constants = text.partition(" ")
    zero = ", Z" if "Z" in fed + constants else ""
    graph = f"(float {fed}) => ({element}[2,3] Y) {constants} {{ Y = DequantizeLinear (X, S{zero}) }}"
    assert operators_for(graph, OPENCV, tmp_path, 19, 9) == Counter(written)


@pytest.mark.parametrize(
    ("fed", "constants", "written"),
    [
        ("S", "float[2] B = {1, 2}", APART),
        ("B", "float[2] S = {1, 2}", APART),
        ("S, float[2] B", "", {"LayerNormalization": 1}),
        ("", "float[2] S = {3, 4}, float[2] B = {1, 2}", {"LayerNormalization": 1}),
    ],
)
def test_a_scale_and_a_bias_are_both_constant_or_both_fed(
    fed: str, constants: str, written: dict[str, int], tmp_path: Path
) -> None:
    inputs = f", float[2] {fed}" if fed else ""
    graph = f"(float[3,2] X{inputs}) => (float[3,2] Y) <{constants}> {{ Y = LayerNormalization (X, S, B) }}"
    assert operators_for(graph, OPENCV, tmp_path, 17, 8) == Counter(written)


@pytest.mark.parametrize(
    ("operator", "written"),
    [("Add", {"Add": 1}), ("Mean", {"Add": 1, "Div": 1}), ("Div", {"Pow": 1, "Mul": 1})],
)
def test_open_rows_come_before_a_constant_matrix(operator: str, written: dict[str, int], tmp_path: Path) -> None:
    graph = f"(float[N,2] X) => (float[2,2] Y) <float[2,2] C = {{1, 2, 3, 4}}> {{ Y = {operator} (C, X) }}"
    assert operators_for(graph, OPENCV, tmp_path, 13, 8) == Counter(written)


@pytest.mark.parametrize(("axis", "lengths"), [(1, "N,2"), (0, "2,W")])
def test_elements_of_open_lengths_are_picked_along_their_own_axis_alone(
    axis: int, lengths: str, tmp_path: Path
) -> None:
    graph = "(float[%s] X) => (float[2,2] Y) <int64[2,2] I = {0, 1, 1, 0}> { Y = GatherElements <axis = %d> (X, I) }"
    with pytest.raises(RefusedError):
        operators_for(graph % (lengths, axis), OPENCV, tmp_path, 13, 8)
    assert operators_for(graph % (lengths, 1 - axis), OPENCV, tmp_path, 13, 8) == Counter(GatherElements=1)


@pytest.mark.parametrize("layer", ["GRU", "RNN"])
def test_a_recurrent_layer_with_a_fed_bias_is_written_step_by_step(layer: str, tmp_path: Path) -> None:
    gates = 3 if layer == "GRU" else 1
    weights = f"float[1,{gates},1] W = {{{', '.join(['1'] * gates)}}}"
    graph = (
        f"(float[2,1,1] X, float[1,{2 * gates}] B) => (float[2,1,1] Y) <{weights}, int64[1] A = {{1}}>"
        f" {{ Z = {layer} <hidden_size = 1> (X, W, W, B) Y = Squeeze (Z, A) }}"
    )
    assert layer not in operators_for(graph, "ncnn", tmp_path, 14, 8)


def test_a_group_norm_with_a_fed_scale_is_one_of_its_groups(tmp_path: Path) -> None:
    graph = "(float[1,4,3,2] X, float[4] S, float[4] B) => (float[1,4,3,2] Y) { Y = %s (X, S, B) }"
    written = operators_for(graph % "GroupNormalization <num_groups = 2>", "ncnn", tmp_path, 21, 10)
    assert "GroupNormalization" not in written


def test_a_shape_without_lengths_is_the_largest_of_one(tmp_path: Path) -> None:
    graph = "(float[1,1] X) => (float Y) <int64[0] S = {}> { Y = Reshape (X, S) }"
    assert operators_for(graph, "ncnn", tmp_path, 14, 8) == Counter(Reshape=1, ReduceMax=1)


def test_axes_of_one_element_are_known_to_openvino(tmp_path: Path) -> None:
    graph = "(float[%s,1,3] X) => (float[%s,3] Y) { Y = Squeeze (X) }"
    with pytest.raises(RefusedError):
        operators_for(graph % ("N", "N"), "openvino", tmp_path, 14, 8)
    assert operators_for(graph % (2, 2), "openvino", tmp_path, 14, 8) == Counter(Squeeze=1)


def test_bytes_are_not_laid_out_in_blocks_by_ncnn(tmp_path: Path) -> None:
    graph = '(%s[1,4,2,2] X) => (%s[1,1,4,4] Y) { Y = DepthToSpace <blocksize = 2, mode = "CRD"> (X) }'
    with pytest.raises(RefusedError):
        operators_for(graph % ("uint8", "uint8"), "ncnn", tmp_path, 13, 8)
    assert operators_for(graph % ("float", "float"), "ncnn", tmp_path, 13, 8) == Counter(DepthToSpace=1)


def test_places_that_are_cut_out_of_a_constant_are_written(tmp_path: Path) -> None:
    constants = "<int64[1,3] P = {0, 1, 2}, int64[1] S = {0}, int64[1] E = {2}, int64[1] A = {1}>"
    graph = f"(float[3,4] X) => (float[1,2,4] Y) {constants} {{ I = Slice (P, S, E, A) Y = Gather (X, I) }}"
    assert operators_for(graph, OPENCV, tmp_path, 13, 8) == Counter(Constant=1, Gather=1)


def test_heads_of_open_lengths_are_picked_from_what_a_split_gives(tmp_path: Path) -> None:
    graph = (
        "(float[N,S,6] X) => (float[N,T,1,2] Y) <int64[5] L = {0, -1, 3, 1, 2}>"
        " { R = Reshape (X, L) T = Transpose <perm = [2, 0, 1, 3, 4]> (R) A, B, C = Split <axis = 0> (T)"
        " D = Squeeze <axes = [0]> (A) E = Squeeze <axes = [0]> (B) F = Add (D, E) G = Squeeze <axes = [0]> (C)"
        " Y = Mul (F, G) }"
    )
    written = operators_for(graph, OPENCV, tmp_path, 12, 7)
    assert (written["Gather"], written["ReduceMax"]) == (3, 0)


@pytest.mark.parametrize(
    ("graph", "written"),
    [
        ("(float A, float B, float C) => (float Y) { Y = Sum (A, B, C) }", {"Add": 2}),
        (
            "(float[2,4,5] X, float[4] S, float[4] B) => (float[2,4,5] Y) { Y = InstanceNormalization (X, S, B) }",
            {"InstanceNormalization": 1, "Mul": 1, "Add": 1, "Reshape": 2},
        ),
        (
            "(float[2,4,5] X, float[5] S, float[5] B) => (float[2,4,5] Y) { Y = LayerNormalization (X, S, B) }",
            {"LayerNormalization": 1, "Mul": 1, "Add": 1},
        ),
    ],
)
def test_onnx2tf_adds_two_numbers_and_scales_by_constants(graph: str, written: dict[str, int], tmp_path: Path) -> None:
    assert operators_for(graph, "onnx2tf", tmp_path, 17, 8) == Counter(written)


def test_onnx2tf_cuts_pieces_of_constant_lengths(tmp_path: Path) -> None:
    with pytest.raises(RefusedError):
        operators_for(
            "(float[3,4] X, int64[2] L) => (float[3,A] Y, float[3,B] Z) { Y, Z = Split <axis = 1> (X, L) }",
            "onnx2tf",
            tmp_path,
            17,
            8,
        )
