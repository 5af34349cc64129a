"""What is joined of unlike many axes, lists that become rows, and what is known before the model runs."""

from __future__ import annotations

from pathlib import Path

import onnx
import onnx.parser
import pytest

import padfix


def types_of(folder: Path, graph: str, target: str, opset: int = 13) -> list[str]:
    source, result = folder / "model.onnx", folder / "result.onnx"
    onnx.save(onnx.parser.parse_model(f'<ir_version: 9, opset_import: ["" : {opset}]> g {graph}'), source)
    padfix.convert(source, result, target=target)
    assert not padfix.check(result, target=target).findings
    return [node.op_type for node in onnx.load(result).graph.node]


@pytest.mark.parametrize(("inputs", "expected"), [("Z, X", ["Add", "Div"]), ("X, Z", ["Mean"])])
def test_a_mean_for_tract_begins_with_what_has_most_axes(inputs: str, expected: list[str], tmp_path: Path) -> None:
    graph = f"(float[1,3,4,6] X, float[4,6] Z) => (float Y) {{ Y = Mean ({inputs}) }}"
    assert types_of(tmp_path, graph, "tract") == expected


@pytest.mark.parametrize("target", ["tract", "opencv", "opencv@4.14"])
def test_the_factor_of_a_swish_is_written(target: str, tmp_path: Path) -> None:
    graph = "(float[1,3,4,6] X) => (float Y) { Y = Swish <alpha = 1.7> (X) }"
    assert types_of(tmp_path, graph, target, 24) == ["Mul", "Sigmoid", "Mul"]


@pytest.mark.parametrize(("lengths", "stays"), [("4", False), ("1,4", True)])
def test_a_list_that_is_compared_beforehand_is_a_constant(lengths: str, *, stays: bool, tmp_path: Path) -> None:
    graph = f"""(float[3,4] X) => (float Y) <float[{lengths}] w = {{0.5, 1.4, 0.7, 1.1}}, float v = {{1.0}}>
    {{ B = Less (w, v) Y = Where (B, X, w) }}"""
    assert ("Less" in types_of(tmp_path, graph, "opencv@4.14")) == stays


@pytest.mark.parametrize("nodes", ["A = ReduceMax <axes = [0]> (d)", "c = Abs (d) A = ReduceMean <axes = [0]> (c)"])
def test_a_list_is_a_row_for_opencv_where_axes_are_added_to_what_is_left_of_it(nodes: str, tmp_path: Path) -> None:
    graph = f"""(float[7] X) => (float Y) <int64[3] s = {{1, 1, 1}}, float k = {{3.3}}>
    {{ d = Mul (X, k) {nodes} Y = Reshape (A, s) }}"""
    assert types_of(tmp_path, graph, "opencv@4.14")[:3] == ["Reshape", "Mul", "Reshape"]


@pytest.mark.parametrize(("amount", "expected"), [(2, ["Pad"]), (3, ["Gather"])])
def test_edges_are_repeated_by_a_pad_of_opencv_as_often_as_there_are_elements(
    amount: int, expected: list[str], tmp_path: Path
) -> None:
    graph = f"""(float[1,1,2,8] X) => (float Y) <int64[8] p = {{0, 0, 0, 0, 0, 0, {amount}, 0}}>
    {{ Y = Pad <mode = "edge"> (X, p) }}"""
    assert types_of(tmp_path, graph, "opencv@4.14") == expected


@pytest.mark.parametrize("nodes", ["A = Where (c, X, z)", "d = Not (c) B = Neg (X) A = Where (d, X, B)"])
def test_a_truth_that_is_known_beforehand_is_a_number_for_ncnn(nodes: str, tmp_path: Path) -> None:
    graph = f"(float[1,3,4] X) => (float Y) <bool c = {{1}}, float z = {{2.5}}> {{ {nodes} Y = Relu (A) }}"
    assert not {"Where", "Not"} & set(types_of(tmp_path, graph, "ncnn"))


@pytest.mark.parametrize(
    ("given", "nodes"),
    [("value_float = 1.5", "Y = Mul (X, c)"), ("value_ints = [2, 12]", "Y = Reshape (X, c)")],
)
def test_constants_are_tensors_for_onnx2tf(given: str, nodes: str, tmp_path: Path) -> None:
    types_of(tmp_path, f"(float[2,3,4] X) => (float Y) {{ c = Constant <{given}> () {nodes} }}", "onnx2tf")
    told = [each for node in onnx.load(tmp_path / "result.onnx").graph.node for each in node.attribute]
    assert "value" in {each.name for each in told if each.name.startswith("value")} or not told


@pytest.mark.parametrize(("amount", "stays"), [(-2, False), (3, True)])
def test_the_rest_of_a_number_below_zero_is_a_constant_for_tract(amount: int, *, stays: bool, tmp_path: Path) -> None:
    graph = f"""(float[N,8,3] X) => (float Y) <int64[1] a = {{{amount}}}, int64[1] o = {{1}}, int64[1] t = {{2}}> {{
        S = Shape (X) L = Slice (S, o, t) M = Mod (a, L) B = Sub (L, M) Y = Slice (X, B, L, o) }}"""
    assert ("Mod" in types_of(tmp_path, graph, "tract")) == stays


@pytest.mark.parametrize(("told", "expected"), [("r, t", ["Identity"]), ("r", ["Dropout"])])
def test_a_dropout_is_not_told_for_onnx2tf_that_it_does_not_train(
    told: str, expected: list[str], tmp_path: Path
) -> None:
    graph = f"(float[3,4] X) => (float Y) <float r = {{0.3}}, bool t = {{0}}> {{ Y = Dropout (X, {told}) }}"
    assert types_of(tmp_path, graph, "onnx2tf") == expected
