"""What runtimes refuse of single operators: types, powers, norms with statistics, and one input."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest

import padfix
from padfix.errors import RefusedError
from tests.rules.test_definitions_and_indices import saved, types_of
from tests.support.one_node import run

NORM = """(float[2,3,5] X) => (float Y, float M, float D) <float[%s] s = {%s}> {
  Y, M, D = LayerNormalization <axis = %d, epsilon = 0.01> (X, s) }"""
AVERAGE = "(float[1,%d,20,20] X) => (float[1,%d,N,N] Y) { Y = %s <kernel_shape = [3, 3], pads = [%s]> (X) }"
ONE_HOT = ["Unsqueeze", "Equal", "Equal", "Where", "Where"]
PUT = """(float[3,4] X, float[1,4] U) => (float Y) <int64[1,4] i = {0, 2, 1, 1}> {
  Y = ScatterElements <reduction = "%s"> (X, i, U) }"""

PUT_ROWS = """(float[4,3] X, float[2,3] U) => (float Y) <int64[2,1] i = {1, -1}> {
  Y = ScatterND <reduction = "%s"> (X, i, U) }"""


CHOSEN = "(float[3,4] X, bool[3,4] C) => (float Y) <float f = {%s}> { Y = Where (%s) }"
_PICKED = "(float[2,5,7] X, int64[3] I) => (float Y) { Y = Gather <axis = %d> (X, I) }"
TABLE = ") => (float Y) <float[9,2] t = {1, 2, 3, 4, 5, 6, 7, 8, 9, 1, 2, 3, 4, 5, 6, 7, 8, 9}> {"


@pytest.mark.parametrize(
    ("graph", "target", "types"),
    [
        ("(float[3,4] X) => (float Y) { Y = Max (X) }", "qnn", ["Identity"]),
        ("(float[3,4] X) => (float Y) { Z = Relu (X) Y = Dropout (Z) }", "qnn", ["Relu", "Identity"]),
        ("(float[3,4] X) => (float Y) <int64 e = {3}> { Y = Pow (X, e) }", "tvm", ["Pow"]),
        ("(float[3,4] X, int64[4] E) => (float Y) { Y = Pow (X, E) }", "tvm", ["Cast", "Pow"]),
        (PUT % "max", "tvm", ["ScatterElements"]),
        (PUT % "add", "mnn", ["ScatterElements", "Add"]),
        ("(int32[3,4] X) => (int32 Y) { Y = Clip (X) }", "onnx2tf", ["Identity"]),
        ("(float[2,6] X) => (float[2,3] Y, float[2,3] Z) { Y, Z = Split <axis = 1> (X) }", "onnx2tf", ["Split"]),
        (PUT % "mul", "qnn", ["ScatterElements", "Mul"]),
        (
            "(bool[3,4] C, float[1,4] X, float[3,1] Z) => (float Y) { Y = Where (C, X, Z) }",
            "mnn",
            ["Where", "Not", "Where", "Add"],
        ),
        (f"(int32[5] I{TABLE} Y = Gather (t, I) }}", "onnx2tf", ["Cast", "Gather"]),
        (f"(int32[2,3] I{TABLE} Y = Gather (t, I) }}", "onnx2tf", ["Cast", "Reshape", "Gather", "Reshape"]),
        (f"(int64[2,3] I{TABLE} Y = Gather (t, I) }}", "onnx2tf", ["Reshape", "Gather", "Reshape"]),
        *((_PICKED % axis, "onnx2tf", ["Transpose", "Gather", "Transpose"]) for axis in (1, -2)),
        ("(float[2,5,7] X, int64 I) => (float Y) { Y = Gather <axis = 1> (X, I) }", "onnx2tf", ["Transpose", "Gather"]),
        (CHOSEN % ("-inf", "C, X, f"), "onnx2tf", ["Cast", "Log", "Add"]),
        (CHOSEN % ("-inf", "C, f, X"), "onnx2tf", ["Not", "Cast", "Log", "Add"]),
        (CHOSEN % ("inf", "C, X, f"), "onnx2tf", ["Cast", "Log", "Sub"]),
        ("(float[2,6] X) => (bool Y) { Z, Y = Dropout (X) }", "openvino", ["Identity", "Identity"]),
        (PUT_ROWS % "add", "onnx2tf", ["ScatterND", "Add"]),
        (PUT_ROWS % "mul", "onnx2tf", ["ScatterND", "Mul"]),
        ("(float[3,4] X) => (bool Y) { Y = IsInf <detect_positive = 0> (X) }", "onnx2tf", ["Less"]),
        ("(float[3,4] X) => (bool Y) <float i = {inf}> { Y = Equal (X, i) }", "onnx2tf", ["Greater"]),
        ("(float[3,4] X) => (int64 Y) { Y = Shape (X) }", "tvm", ["Constant"]),
        ("(int64[3] X) => (float Y) <float d = {4}, float[2] v = {0, 1}> { Y = OneHot (X, d, v) }", "tvm", ONE_HOT),
        ("(int32[3,4] X) => (float Y) { Y = EyeLike <dtype = 1> (X) }", "tvm", ["Constant"]),
        ("(float[3,4] X) => (bool Y) { Y = IsInf <detect_negative = 0> (X) }", "tvm", ["Equal"]),
    ],
)
def test_it_is_written_as_the_target_has_it(graph: str, target: str, types: list[str], tmp_path: Path) -> None:
    source, result = saved(tmp_path, graph, 17), tmp_path / "result.onnx"
    assert {each.rule for each in padfix.check(source, target=target).findings} & {"PF305", "PF306"}
    padfix.convert(source, result, target=target)
    assert types_of(result) == types
    assert not padfix.check(result, target=target).findings


@pytest.mark.parametrize(
    ("lengths", "opset", "types"),
    [
        ("split = [4, 4]", 11, ["Slice", "Slice"]),
        ("axis = -1", 11, ["Slice", "Slice"]),
        ("split = [3, 5]", 11, ["Split"]),
        ("num_outputs = 2", 18, ["Split"]),
    ],
)
def test_pieces_of_one_length_that_are_results(lengths: str, opset: int, types: list[str], tmp_path: Path) -> None:
    """onnx2tf gives those names of its own where no input of the Split tells the length."""
    written = "" if "axis" in lengths else "axis = -1, "
    graph = f"(float[2,8] X) => (float Y, float Z) {{ Y, Z = Split <{written}{lengths}> (X) }}"
    source, result = saved(tmp_path, graph, opset), tmp_path / "result.onnx"
    padfix.convert(source, result, target="onnx2tf")
    assert types_of(result) == types
    assert not padfix.check(result, target="onnx2tf").findings
    assert opset < 18 or len(onnx.load(result).graph.node[0].input) == 2


def test_a_convolution_with_ones_has_all_channels_where_it_is_tried(tmp_path: Path) -> None:
    graph = """(float[N,3,16,16] X) => (float Y) <float[3,3,1,1] w = {1, 2, 3, 4, 5, 6, 7, 8, 9}>
    { c = Conv (X, w) t = Transpose <perm = [0, 2, 3, 1]> (c) Y = Softmax <axis = 3> (t) }"""
    source, result = saved(tmp_path, graph, 11), tmp_path / "result.onnx"
    padfix.convert(source, result, target="onnx2tf")
    assert types_of(result) == ["Conv", "Transpose", "Conv", "Softmax"]


@pytest.mark.parametrize("reduction", ["max", "min"])
def test_the_larger_of_what_is_put_apart_is_the_same(reduction: str, tmp_path: Path) -> None:
    source, result = saved(tmp_path, PUT % reduction, 18), tmp_path / "result.onnx"
    padfix.convert(source, result, target="onnx2tf")
    assert types_of(result) == ["ScatterElements", reduction.capitalize()]
    random = np.random.default_rng(1)
    data = {"X": random.normal(size=(3, 4)).astype(np.float32), "U": random.normal(size=(1, 4)).astype(np.float32)}
    np.testing.assert_array_equal(run(onnx.load(result), data), run(onnx.load(source), data))


def test_the_axes_that_a_pad_lists_are_known_not_to_be_the_batch(tmp_path: Path) -> None:
    pad = """(float[1,2,4,5,5] X) => (float Y) <int64[4] p = {1, -1, 0, 2}, float v = {-2}, int64[2] a = {2, -2}> {
      Z = Relu (X) Y = Pad (Z, p, v, a) }"""
    padfix.convert(saved(tmp_path, pad, 18), tmp_path / "result.onnx", target="mnn")
    assert types_of(tmp_path / "result.onnx") == ["Relu", "Slice", "Pad"]


@pytest.mark.parametrize(
    ("target", "pads", "types"),
    [
        ("ncnn", [0, 1, 0, 0, 1, 0, 0, 0, 0, 0], ["Conv", "Concat", "Concat"]),
        ("ncnn", [0, 0, 1, 0, 1, 0, 0, 2, 0, 0], ["Conv", "Pad"]),
        ("mnn", [0, 1, 0, 0, -1, 0, 0, 0, 0, 2], ["Conv", "Slice", "Pad"]),
        ("mnn", [0, 1, 1, 1, 0, 0, 0, 0, 0, 0], ["Conv", "Pad", "Add"]),
    ],
)
def test_the_channels_of_a_volume_are_padded(target: str, pads: list[int], types: list[str], tmp_path: Path) -> None:
    pad = """(float[1,2,4,5,5] X) => (float Y) <float[2,2,1,1,1] w = {1, 2, 3, 4}, int64[10] p = {%s}, float v = {-2}> {
      Z = Conv <kernel_shape = [1, 1, 1]> (X, w) Y = Pad <mode = "constant"> (Z, p, v) }"""
    padfix.convert(saved(tmp_path, pad % ", ".join(map(str, pads)), 17), tmp_path / "result.onnx", target=target)
    assert types_of(tmp_path / "result.onnx") == types


@pytest.mark.parametrize("target", ["qnn", "tvm"])
@pytest.mark.parametrize(("opset", "axis"), [(17, 2), (18, 2), (18, 1), (17, 0)])
def test_a_norm_has_its_mean_and_deviation_beside_it(opset: int, axis: int, target: str, tmp_path: Path) -> None:
    count = int(np.prod((2, 3, 5)[axis:]))
    shape = ",".join(map(str, (2, 3, 5)[axis:]))
    source = saved(tmp_path, NORM % (shape, ", ".join(["1.5"] * count), axis), opset)
    padfix.convert(source, tmp_path / "result.onnx", target=target)
    assert types_of(tmp_path / "result.onnx").count("ReduceMean") == 2
    assert not padfix.check(tmp_path / "result.onnx", target=target).findings


SMALLER = ["Abs", "ReduceMax", "Greater", "Greater", "Where", "Where", "Mul"]


@pytest.mark.parametrize(
    ("size", "counts", "stays"),
    [("1,9", 1, False), ("9,1", 0, False), ("9,2", 0, False), ("9,2", 1, True), ("2,9", 0, True), ("9,9", 1, True)],
)
def test_an_average_that_gives_a_line_is_no_pool_with_pads_for_qnn(
    size: str, counts: int, stays: bool, tmp_path: Path
) -> None:
    pool = f"AveragePool <kernel_shape = [3, 3], pads = [1, 1, 1, 1], count_include_pad = {counts}>"
    path = saved(tmp_path, f"(float[1,32,{size}] X) => (float[1,32,{size}] Y) {{ Y = {pool} (X) }}", 17)
    padfix.convert(path, tmp_path / "out.onnx", target="qnn")
    assert (types_of(tmp_path / "out.onnx") == ["AveragePool"]) is stays


@pytest.mark.parametrize(
    ("op_type", "types"),
    [
        ("AveragePool", ["AveragePool", "Mul"]),
        ("LpPool", [*SMALLER, "Mul", "AveragePool", "Mul", "Sqrt", "Div"]),
    ],
)
def test_an_average_of_few_channels_counts_its_pads(op_type: str, types: list[str], tmp_path: Path) -> None:
    source, result = saved(tmp_path, AVERAGE % (3, 3, op_type, "1, 1, 1, 1"), 13), tmp_path / "result.onnx"
    padfix.convert(source, result, target="qnn")
    assert types_of(result) == types
    data = {"X": np.random.default_rng(1).standard_normal((1, 3, 20, 20)).astype(np.float32)}
    np.testing.assert_allclose(run(onnx.load(result), data), run(onnx.load(source), data), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(("channels", "pads"), [(32, "1, 1, 1, 1"), (3, "0, 0, 0, 0")])
def test_an_average_of_many_channels_or_without_pads_is_right(channels: int, pads: str, tmp_path: Path) -> None:
    assert not padfix.check(
        saved(tmp_path, AVERAGE % (channels, channels, "AveragePool", pads), 13), target="qnn"
    ).findings


@pytest.mark.parametrize(
    ("graph", "target", "reason"),
    [
        ("(double[3,4] X) => (double Y) { Y = Relu (X) }", "qnn", "takes no doubles"),
        ("(float[1,2,1,2,1,3] X) => (float Y) { Y = Relu (X) }", "qnn", "more than five axes"),
        (
            "(float[4,6] X) => (float Y) <int64[6] s = {1,2,2,1,2,3}> { Y = Reshape (X, s) }",
            "qnn",
            "more than five axes",
        ),
        ("(uint8[3,4] X, uint8[3,4] Z) => (uint8 Y) { Y = Add (X, Z) }", "qnn", "integers of 32 bits"),
        ("(float[3,4] X) => (double Y) { Y = Cast <to = 11> (X) }", "qnn", "gives no doubles"),
        ("(float[1,3,8,8] X) => (float Y) { Y = LpPool <kernel_shape = [3, 3], p = 3> (X) }", "qnn", "powers above 2"),
        ("(int64[2] S) => (float[4,N] Y) { Y = ConstantOfShape (S) }", "qnn", "a shape that the model computes"),
        ("(int32[3,4] X, int32[4] E) => (int32 Y) { Y = Pow (X, E) }", "tvm", "raises no integers"),
        (
            "(float[3,2] X) => (float Y) <float[2] z = {0, 1}> { Y = Div (X, z) }",
            "onnx2tf",
            "in place of dividing by 0",
        ),
        (
            '(float[N,4] X, int64[2,1] i, float[2,4] U) => (float Y) { Y = ScatterND <reduction = "add"> (X, i, U) }',
            "onnx2tf",
            "replaces where it should add",
        ),
    ],
)
def test_what_has_no_such_form_is_refused(graph: str, target: str, reason: str, tmp_path: Path) -> None:
    source = saved(tmp_path, graph, 17)
    assert reason in " ".join(each.message for each in padfix.check(source, target=target).findings)
    with pytest.raises(RefusedError):
        padfix.convert(source, tmp_path / "result.onnx", target=target)


def test_a_maximum_that_is_asked_for_infinity_is_infinite(tmp_path: Path) -> None:
    graph = "(float[2,3] X) => (bool[2,1] Y) <int64[1] a = {1}> { M = ReduceMax (X, a) Y = IsInf (M) }"
    of_two = graph.replace("2,3", "2,1,3").replace("2,1]", "2,1,1]").replace("int64[1] a = {1", "int64[2] a = {1, 2")
    data = np.array([[-np.inf] * 3, [0, -np.inf, 1]], np.float32)
    for each, shape in ((graph, (2, 1)), (of_two, (2, 1, 1))):
        source, result = saved(tmp_path, each), tmp_path / "result.onnx"
        padfix.convert(source, result, target="tvm")
        assert "Where" in types_of(result)
        given = {"X": data.reshape(2, *shape[2:], 3)}
        np.testing.assert_array_equal(run(onnx.load(result), given), np.array([True, False]).reshape(shape))


def test_a_mask_of_booleans_that_may_leave_a_row_out_is_refused(tmp_path: Path) -> None:
    graph = "(float[1,2,2,8] X, bool[2,2] M) => (float Y) { Y = Attention (X, X, X, M) }"
    with pytest.raises(padfix.PadfixError):
        padfix.convert(saved(tmp_path, graph, 23), tmp_path / "result.onnx", target="qnn")


@pytest.mark.parametrize(
    "graph",
    [
        "(float[5,7] X, int64[3] I) => (float Y) { Y = Gather <axis = 1> (X, I) }",
        "(float[2,5,7] X, int64[3] I) => (float Y) { Y = Gather (X, I) }",
        "(float[5,7] X, int64[3,2] I) => (float Y) { Y = GatherND (X, I) }",
        "(float[5,7] X) => (float Y) <int64 a = {1}> { Y = CumSum (X, a) }",
    ],
)
def test_lists_and_matrices_stay_for_onnx2tf(graph: str, tmp_path: Path) -> None:
    found = padfix.check(saved(tmp_path, graph, 14), target="onnx2tf").findings
    assert "PF306" not in {each.rule for each in found}
