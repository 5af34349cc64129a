"""What half precision holds and what it does not: masks beside scores, and the squares of norms, for QNN."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnx.parser
import onnxruntime
import pytest

import padfix

GIVEN = "(float[1,2,3,4] S, float[1,1,1,4] M) => (float Y) { a = Add (S, M) Y = Softmax <axis = -1> (a) }"
MADE = """(float[1,2,3,4] X, bool[1,1,1,4] K) => (float Y)
<float[4,4] w = {1, 2, 3, 4, 5, 6, 7, 8, 9, 8, 7, 6, 5, 4, 3, 2},
 float o = {0}, float c = {%s}> {
  s = MatMul (X, w) m = Where (K, o, c) a = Add (%s) Y = Softmax <axis = %d> (a) }"""
BESIDE = """(float[1,2,3,4] X, int64[1,1,1,4] K) => (float Y)
<float[4,4] w = {1, 2, 3, 4, 5, 6, 7, 8, 9, 8, 7, 6, 5, 4, 3, 2},
 float[1,2,3,4] p = {1, 2, 3, 4, 5, 6, 7, 8, 9, 8, 7, 6, 5, 4, 3, 2, 1, 2, 3, 4, 5, 6, 7, 8}, float c = {-1000}> {
  s = MatMul (X, w) f = Cast <to = 1> (K) m = Mul (f, c) b = Add (p, m) a = Add (s, b) Y = Softmax <axis = -1> (a) }"""
SCALED = """(float[1,2,3,4] X, float[1,1,1,4] K) => (float Y)
<float[4,4] w = {1, 2, 3, 4, 5, 6, 7, 8, 9, 8, 7, 6, 5, 4, 3, 2}, float c = {%s}> {
  s = MatMul (X, w) m = Mul (K, c) a = Add (s, m) Y = Softmax <axis = -1> (a) }"""
SHIFTED = ["ReduceMax", "Max", "Sub"]


def types_of(folder: Path, graph: str, opset: int = 13) -> list[str]:
    source, result = folder / "model.onnx", folder / "result.onnx"
    onnx.save(onnx.parser.parse_model(f'<ir_version: 9, opset_import: ["" : {opset}]> g {graph}'), source)
    padfix.convert(source, result, target="qnn")
    assert not padfix.check(result, target="qnn").findings
    return [node.op_type for node in onnx.load(result).graph.node if node.op_type != "Constant"]


@pytest.mark.parametrize(
    ("graph", "found"),
    [
        (GIVEN, [*SHIFTED, "Max", "Add", "Softmax"]),
        (MADE % ("-10000", "s, m", -1), ["MatMul", "Where", *SHIFTED, "Add", "Softmax"]),
        (MADE % ("-1000", "m, s", 3), ["MatMul", "Where", *SHIFTED, "Add", "Softmax"]),
        (SCALED % "-65504", ["MatMul", "Mul", *SHIFTED, "Max", "Add", "Softmax"]),
        (BESIDE, ["MatMul", "Cast", "Mul", *SHIFTED, "Add", "Add", "Softmax"]),
    ],
)
def test_the_largest_that_masks_a_row_is_taken_off(graph: str, found: list[str], tmp_path: Path) -> None:
    assert types_of(tmp_path, graph) == found


@pytest.mark.parametrize(
    "graph",
    [
        MADE % ("-1000000000", "s, m", -1),
        MADE % ("-3.4e38", "s, m", -1),
        SCALED % "-1000000000",
        SCALED % "-3.4e38",
        "(float[1,2,3,4] X) => (float Y) <float[4] b = {-0.5, 1, 2, 3}> { a = Add (X, b) Y = Softmax <axis = -1> (a) }",
    ],
)
def test_what_loses_all_scores_or_none_stays(graph: str, tmp_path: Path) -> None:
    assert not set(types_of(tmp_path, graph)) & {"ReduceMax", "Sub"}


@pytest.mark.filterwarnings("error")
def test_a_model_in_half_precision_loses_scores_itself(tmp_path: Path) -> None:
    # The parser takes the bits of numbers of 16 bits: these are those of -10000.
    graph = """(float16[1,1,2,4] S) => (float16 Y) <float16[1,4] m = {61666, 61666, 61666, 61666}>
    { a = Add (S, m) Y = Softmax <axis = -1> (a) }"""
    assert types_of(tmp_path, graph) == ["Add", "Softmax"]


def test_what_masks_a_whole_row_leaves_its_shares(tmp_path: Path) -> None:
    types_of(tmp_path, GIVEN)
    scores, mask = np.arange(24, dtype=np.float32).reshape(1, 2, 3, 4) / 9, np.full((1, 1, 1, 4), -1e4, np.float32)
    sessions = [
        onnxruntime.InferenceSession(tmp_path / f"{name}.onnx", providers=["CPUExecutionProvider"])
        for name in ("model", "result")
    ]
    given, found = (session.run(None, {"S": scores, "M": mask})[0] for session in sessions)
    np.testing.assert_allclose(given, found, atol=5e-4)


@pytest.mark.parametrize(
    ("graph", "found"),
    [
        ("(uint8[2,3] X) => (uint8 Y) { Y = Concat <axis = 0> (X, X) }", ["Cast", "Cast", "Concat", "Cast"]),
        ("(uint8[2,3] X) => (uint8 Y) <int64[2] s = {4, 3}> { Y = Tile (X, s) }", None),
        ("(uint8[2,3] X, int64[2] I) => (uint8 Y) { Y = Gather (X, I) }", ["Cast", "Gather", "Cast"]),
        ("(bool[2,3] X, bool[2,3] Z) => (bool Y) { Y = Equal (X, Z) }", ["Cast", "Cast", "Equal"]),
    ],
)
def test_bytes_and_booleans_go_by_numbers_that_hold_them(graph: str, found: list[str] | None, tmp_path: Path) -> None:
    written = types_of(tmp_path, graph.replace("{4, 3}", "{2, 1}"))
    assert found is None or written == found
    assert not {"Tile"} & set(written)


SMALLER = ["Abs", "ReduceMax", "Greater", "Greater", "Where", "Where", "Mul"]
NORM = """(float[2,3,4] X) => (float Y) <float e = {0.00001}, float two = {2}> {
  q = %s m = ReduceMean <axes = [2]> (q) s = %s (m, e) r = Sqrt (s) Y = Div (X, r) }"""


@pytest.mark.parametrize(
    ("graph", "found"),
    [
        ("(float[2,3,4] X) => (float Y) { Y = ReduceL2 <axes = [-1]> (X) }", [*SMALLER, "ReduceL2", "Div"]),
        (
            "(float[2,3,4] X) => (float Y) { Y = ReduceL2 <axes = [1, 2], keepdims = 0> (X) }",
            [*SMALLER, "ReduceMax", "ReduceL2", "Div"],
        ),
        (
            "(float[1,2,4,4] X) => (float Y) { Y = LpPool <kernel_shape = [2, 2], strides = [2, 2]> (X) }",
            [*SMALLER, "LpPool", "Div"],
        ),
        (NORM % ("Mul (X, X)", "Add"), [*SMALLER, "Mul", "Mul", "Mul", "ReduceMean", "Add", "Sqrt", "Div", "Div"]),
        (NORM % ("Pow (X, two)", "Max"), [*SMALLER, "Mul", "Mul", "Mul", "ReduceMean", "Max", "Sqrt", "Div", "Div"]),
    ],
)
def test_squares_are_of_numbers_that_a_power_of_two_makes_smaller(graph: str, found: list[str], tmp_path: Path) -> None:
    assert sorted(types_of(tmp_path, graph)) == sorted(found)


@pytest.mark.parametrize(
    "graph",
    [
        "(float[2,3,4] X) => (float Y) { s = Sigmoid (X) Y = ReduceL2 <axes = [-1]> (s) }",
        "(float[1,2,4,4] X) => (float Y) { Y = LpPool <kernel_shape = [2, 2], strides = [2, 2], p = 1> (X) }",
        "(float[2,3] X) => (float Y) { Y = Sqrt (X) }",
    ],
)
def test_small_numbers_and_first_powers_stay(graph: str, tmp_path: Path) -> None:
    assert "Greater" not in types_of(tmp_path, graph)
