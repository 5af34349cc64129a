"""Types that runtimes take for others or have not: doubles that are rounded or skipped, and integers of odd widths."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np
import onnx
import onnx.parser
import onnxruntime
import pytest

import padfix
from padfix.errors import RefusedError

HALVES = [-2.5, -1.5, -0.5, 0.0, 0.5, 1.5, 2.5, 0.49999999999999994, 2.0**52 - 0.5, 1e17, -np.inf]


def converted(folder: Path, graph: str, target: str) -> Path:
    source, result = folder / "model.onnx", folder / "result.onnx"
    onnx.save(onnx.parser.parse_model(f'<ir_version: 9, opset_import: ["" : 13]> g {graph}'), source)
    padfix.convert(source, result, target=target)
    return result


def test_doubles_are_rounded_without_a_number_that_floats_lose_them_beside(tmp_path: Path) -> None:
    result = converted(tmp_path, "(double[11] X) => (double[11] Y) { Y = Round (X) }", "mnn")
    session = onnxruntime.InferenceSession(result, providers=["CPUExecutionProvider"])
    given = np.array(HALVES)
    np.testing.assert_array_equal(session.run(None, {"X": given})[0], np.round(given))
    if importlib.util.find_spec("MNN") is not None:
        assert padfix.verify_on(result, "mnn").agrees


@pytest.mark.parametrize(("bounds", "step"), [((1, 9), 3), ((-1, -99), -1)])
def test_doubles_of_every_so_many_are_gathered(bounds: tuple[int, int], step: int, tmp_path: Path) -> None:
    start, end = bounds
    graph = f"""(double[2,3,9] X) => (double[2,3,M] Y)
    <int64[1] a = {{{start}}}, int64[1] b = {{{end}}}, int64[1] c = {{2}}, int64[1] d = {{{step}}}>
    {{ Y = Slice (X, a, b, c, d) }}"""
    result = converted(tmp_path, graph, "opencv@5.0.0.93")
    assert [node.op_type for node in onnx.load(result).graph.node] == ["Gather"]
    if importlib.util.find_spec("cv2") is not None:
        assert padfix.verify_on(result, "opencv").agrees


@pytest.mark.parametrize(
    ("kind", "node", "target"),
    [
        ("double", "ScatterND (X, p, U)", "opencv@5.0.0.93"),
        ("int16", "ScatterND (X, p, U)", "opencv@5.0.0.93"),
        ("int16", "Concat <axis = 0> (X, U)", "qnn"),
        ("uint64", "Concat <axis = 0> (X, U)", "qnn"),
    ],
)
def test_types_that_nothing_holds_exactly_are_declined(kind: str, node: str, target: str, tmp_path: Path) -> None:
    with pytest.raises(RefusedError, match="No equal form is known"):
        converted(
            tmp_path, f"({kind}[4,3] X, {kind}[2,3] U) => ({kind} Y) <int64[2,1] p = {{2, 0}}> {{ Y = {node} }}", target
        )


def test_types_that_a_runtime_has_stay(tmp_path: Path) -> None:
    result = converted(tmp_path, "(int64[4,3] X, int64[2,3] U) => (int64 Y) { Y = Concat <axis = 0> (X, U) }", "qnn")
    assert [node.op_type for node in onnx.load(result).graph.node] == ["Concat"]


@pytest.mark.parametrize("node", ["Mul (D, c)", "Div (c, D)", "Less (D, c)"])
def test_doubles_that_a_cast_makes_of_floats_meet_constants_of_the_whole_shape(node: str, tmp_path: Path) -> None:
    nodes = f"D = Cast <to = 11> (X) C = {node} Y = Cast <to = 1> (C)"
    graph = f"(float[3,5] X) => (float[3,5] Y) <double[1] c = {{1.1}}> {{ {nodes} }}"
    result = converted(tmp_path, graph, "onnx2tf")
    assert [list(each.dims) for each in onnx.load(result).graph.initializer] == [[3, 5]]
    given = np.random.default_rng(0).normal(size=(3, 5)).astype(np.float32)
    before, after = (
        onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"]).run(None, {"X": given})[0]
        for path in (tmp_path / "model.onnx", result)
    )
    np.testing.assert_array_equal(after, before)


def test_doubles_that_a_cast_makes_of_floats_are_not_added_to(tmp_path: Path) -> None:
    graph = "(float[3,5] X) => (double[3,5] Y) <double[1] c = {1}> { D = Cast <to = 11> (X) Y = Add (D, c) }"
    with pytest.raises(RefusedError, match="its constants join what they meet"):
        converted(tmp_path, graph, "onnx2tf")


@pytest.mark.parametrize(("lengths", "extra"), [("3", []), ("n,3", ["Reshape", "Reshape"])])
def test_doubles_that_a_cast_makes_of_floats_are_multiplied_by_a_gemm(
    lengths: str, extra: list[str], tmp_path: Path
) -> None:
    nodes = "D = Cast <to = 11> (X) M = MatMul (D, w) Y = Cast <to = 1> (M)"
    graph = f"(float[{lengths},2] X) => (float[{lengths},2] Y) <double[2,2] w = {{1.1, -2, 3, 0.1}}> {{ {nodes} }}"
    result = converted(tmp_path, graph, "onnx2tf")
    assert sorted(node.op_type for node in onnx.load(result).graph.node) == ["Cast", "Cast", "Gemm", *extra]
    given = np.random.default_rng(0).normal(size=(*([3] if not extra else [2, 3]), 2)).astype(np.float32)
    before, after = (
        onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"]).run(None, {"X": given})[0]
        for path in (tmp_path / "model.onnx", result)
    )
    np.testing.assert_allclose(after, before, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("node", ["Sum (D, w)", "MatMul (w, D)", "Concat <axis = 0> (D, w)"])
def test_doubles_that_a_cast_makes_of_floats_are_not_joined_with_others(node: str, tmp_path: Path) -> None:
    nodes = f"D = Cast <to = 11> (X) M = {node} Y = Cast <to = 1> (M)"
    graph = f"(float[2,2] X) => (float Y) <double[2,2] w = {{1.1, -2, 3, 0.1}}> {{ {nodes} }}"
    with pytest.raises(RefusedError, match="its constants join what they meet"):
        converted(tmp_path, graph, "onnx2tf")


@pytest.mark.parametrize(
    ("node", "written"),
    [
        ("BatchNormalization (X, s, s, s, s)", ["Mul", "Add"]),
        ("LpNormalization (X)", ["ReduceL2", "Clip", "Div"]),
    ],
)
def test_doubles_are_normed_by_arithmetic_where_only_floats_are(node: str, written: list[str], tmp_path: Path) -> None:
    graph = f"(double[2,3] X) => (double[2,3] Y) <double[3] s = {{0.5, 1.5, 2.5}}> {{ Y = {node} }}"
    result = converted(tmp_path, graph, "opencv@5.0.0.93")
    assert [each.op_type for each in onnx.load(result).graph.node] == written
