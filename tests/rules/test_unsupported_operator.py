"""Operators beside convolutions, pools and resizes: what targets get wrong of them, and the forms that are right."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import onnx
import onnx.parser
import pytest

import padfix

GATED = "(float[1,3,8,8] X, float[1,3,1,1] S) => (float[1,3,8,8] Y)"
DEPTH = "(float[1,8,6,4] X) => (float[1,N,A,B] Y)"
VOLUME = "(float[1,3,4,5,6] X) => (float[1,3,1,1,1] Y)"
PLANE = "(float[1,3,4,5] X) => (float[1,3,1,1] Y)"


NORMALISED = (
    "(float[1,2,%s] X, float[2,2,%s] W, float[2] S, float[2] B) => (float[1,2,%s] Y) "
    "{ t = Conv (X, W) Y = InstanceNormalization (t, S, B) }"
)
LENGTHS = "(float[2,3,4,5] X) => (float[2,3,4,5] Y)"
OPEN = "(float[N,C,4,5] X) => (float[N,C,4,5] Y)"
UNRANKED = "(float[N] X, int64[K] s) => (float[A,B,C] Y)"
MEASURED = ["Flatten", "Shape", "Softmax", "Reshape"]
RANK = "(float[2,3,4,5] X) => (float Y)"
DEVIATION = ["ReduceMean", "Sub", "Mul", "ReduceMean", "Sqrt", "Add", "Div"]
LOGARITHM = ["ReduceMax", "ReduceMax", "Sub", "Exp", "ReduceSum", "Log", "Add"]
MINUEND = "(float[N,2,4,5] X, float[3,2,3,3] W) => (float[N,3,2,3] Y) <float[3,1,1] k = {1.5, -2, 3}>"
SOFTPLUS = ["Clip", "Sub", "Softplus", "Relu", "Add"]
GATE = "{ s = Softplus (X) t = Tanh (s) n = Neg (X) Y = Mul (n, t) }"
SHARES = ["ReduceMax", "Sub", "Exp", "ReduceSum", "Log", "Neg", "Add"]
GELU = ["Mul", "Mul", "Mul", "Add", "Mul", "Clip", "Tanh", "Mul", "Add", "Mul"]
CONDITION = "(bool[2,3,4,5] C, float[2,3,4,5] X) => (float[2,3,4,5] Y) <float[5] k = {1, 2, 3, 4, 5}>"
STEPS = (
    "(float[L,N,2] X) => (float[A,1,N,1] Y, float[1,N,1] H) <float[1,%s,2] W = {%s}, float[1,%s,1] R = {%s}>"
    '{ Y, H = %s <hidden_size = 1, direction = "reverse"> (X, W, R) }'
)
DENSE = (
    "(float[N,2] X) => (float[N,3] Y) <float[2,3] W = {1, -2, 3, 4, 5, 6}, float[3] b = {1, -2, 3}>"
    "{ Y = Gemm <%s> (X, W, b) }"
)
SIXTY = ", ".join(str(each / 20 - 1) for each in range(60))
NORM = f"<float[3,4,5] s = {{{SIXTY}}}, float[3,4,5] b = {{{SIXTY}}}> {{ Y = LayerNormalization <axis = %s> (X, s%s) }}"
BY_CHANNEL = (
    "(float[1,2,4,4,4] X, float[2,1,3,3,3] W) => (float[A,B,C,D,E] Y) { "
    "c = Conv <group = 2, kernel_shape = [3, 3, 3]> (X, W) Y = %s (c) }"
)
HALVED = (
    "(float[1,2,4,4,4] X, float[2,1,3,3,3] W) => (float[A,B,C,D,E] Y) <float two = {2}, float one = {1}> "
    "{ c = Conv <group = 2> (X, W) h = Div (c, two) "
)
ADDED = (
    "(float[1,2,4,4,4] X, float[2,2,1,1,1] W) => (float[A,B,C,D,E] Y)"
    "{ c = Conv <kernel_shape = [1, 1, 1]> (X, W) r = Relu (X) Y = Add (r, c) }"
)
SANDWICH = (
    "(float[1,2,%s] X) => (float[A,B,C,D] Y) { p = MaxPool <kernel_shape = [1, 1], strides = [1, 1]> (X)"
    "t = Transpose <perm = [0, 2, 3, 1]> (p) s = Sigmoid (t) m = Mul (s, t)"
    "Y = Transpose <perm = [0, 3, 1, 2]> (m) }"
)
BYTES = (
    "<float s = {0.1}, int8 z = {3}, float[1] t = {0.1}, int32[3] i = {1, 2, 3}, int32 n = {0}, "
    "int8[4,3] w = {1, 2, 3, 4, -5, 6, 7, 8, 9, 1, 2, 3}>"
)
SOFTENED = (
    f"(float[2,4] X) => (float[2,4] Y) {BYTES} {{ q = QuantizeLinear (X, s, z) d = DequantizeLinear (q, s, z)"
    "%s p = QuantizeLinear (m, s, z) Y = DequantizeLinear (p, s, z) }"
)
WEIGHED = (
    f"(float[2,4] X) => (float[2,3] Y) {BYTES} {{ q = QuantizeLinear (X, s, z) d = DequantizeLinear (q, s, z)"
    "k = DequantizeLinear (w, s, z) b = DequantizeLinear (i, %s) m = Gemm (d, k, b)"
    "p = QuantizeLinear (m, s, z) Y = DequantizeLinear (p, s, z) }"
)
ROUNDED = ["QuantizeLinear", "DequantizeLinear"]
ONE = "(float[1,1,1] X) => (float[1,1,1] Y) <float s = {0.1}, uint8 z = {3}> { q = QuantizeLinear (X, s, z) Y = %s }"
SLICED = (
    "(float[1,4,5,6] X) => (float[A,B,C,D] Y) <int64[2] s = {1, 2}, int64[2] e = {3, 5}, int64[2] a = {%s}> "
    "{ p = MaxPool <kernel_shape = [1, 1]> (X) Y = Slice (p, s, e, a) }"
)
SLICED_AS_WRITTEN = (
    "(float[1,4,5,6] X) => (float[A,B,C,D] Y) { Y = Slice <starts = [1, 2], ends = [3, 5], axes = [%s]> (X) }"
)
TURNED = "(float[N,2,L] X, float[2,2,3] W) => (float[A,2,C] Y) <float k = {2}>"
BOXES = "(float[1,2,8,8] X, float[2,4] B, int64[2] I) => (float[2,2,2,2] Y)"
AS_MATRIX = ["Mul", "Reshape", "MatMul", "Reshape"]


def steps(op_type: str, gates: int) -> str:
    """Return a recurrent layer of one number that runs backwards, and whose last state is read as well."""
    weights, states = (", ".join(str(each / 8 - 0.4) for each in range(length)) for length in (2 * gates, gates))
    return STEPS % (gates, weights, gates, states, op_type)


def saved(tmp_path: Path, text: str, opset: int = 17) -> Path:
    path = tmp_path / "model.onnx"
    onnx.save(onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : {opset}]>\nmain {text}'), path)
    return path


def converted(tmp_path: Path, text: str, target: str, opset: int = 17, **options: Any) -> list[str]:
    """Return the types of the nodes in the result, which a second conversion leaves as it is."""
    source, once, twice = saved(tmp_path, text, opset), tmp_path / "once.onnx", tmp_path / "twice.onnx"
    assert padfix.check(source, target=target).findings
    padfix.convert(source, once, target=target, **options)
    padfix.convert(once, twice, target=target)
    assert once.read_bytes() == twice.read_bytes()
    return [node.op_type for node in onnx.load(once).graph.node]


@pytest.mark.sweep(4)
@pytest.mark.parametrize(
    ("text", "target", "opset", "nodes"),
    [
        (
            GATED + "{ h = HardSigmoid <alpha = 0.16666667> (S) Y = Mul (X, h) }",
            "opencv",
            17,
            ["HardSigmoid", "Identity", "Mul"],
        ),
        (BY_CHANNEL % "Elu", "opencv@5.0", 17, ["Conv", "Identity", "Elu"]),
        (BY_CHANNEL % "Sigmoid", "opencv@5.0", 17, ["Conv", "Identity", "Sigmoid"]),
        (
            HALVED + "e = Erf (h) o = Add (e, one) Y = Mul (h, o) }",
            "opencv@5.0",
            17,
            ["Conv", "Div", "Identity", "Erf", "Add", "Mul"],
        ),
        (ADDED, "opencv@4.14", 17, ["Conv", "Relu", "Sum"]),
        (SLICED % "1, 3", "onnx2tf", 17, ["MaxPool", "Slice"]),
        (SOFTENED % "m = Softmax (d)", "tract", 17, [*ROUNDED, "Softmax", "Relu", *ROUNDED]),
        (
            WEIGHED % "s, n",
            "opencv@5.0",
            17,
            [*ROUNDED, "DequantizeLinear", "DequantizeLinear", "Identity", "Gemm", *ROUNDED],
        ),
        (
            WEIGHED.replace("p = QuantizeLinear (m, s, z) Y = DequantizeLinear (p, s, z)", "Y = Relu (m)") % "t, n",
            "opencv@5.0",
            17,
            [*ROUNDED, "DequantizeLinear", "DequantizeLinear", "Gemm", "Relu"],
        ),
        (
            ONE % "DequantizeLinear (q, s, z)",
            "opencv@5.0",
            17,
            ["Concat", "QuantizeLinear", "Slice", "DequantizeLinear"],
        ),
        (SLICED_AS_WRITTEN % "1, 3", "onnx2tf", 9, ["Slice"]),
        (
            SANDWICH % "2,3",
            "mnn",
            17,
            ["MaxPool", "Transpose", "Sigmoid", "Mul", "Transpose", "Transpose"],
        ),
        ("(float[1,2] X) => (float[1,2] Y) { Y = Clip <min = 0.0, max = 6.0> (X) }", "qnn", 10, ["Clip"]),
        (
            GATED + "{ s = Softplus (S) h = Tanh (s) Y = Mul (h, X) }",
            "opencv",
            17,
            [*SOFTPLUS, "Clip", "Tanh", "Mul"],
        ),
        (DEPTH + "{ Y = SpaceToDepth <blocksize = 2> (X) }", "ncnn", 17, ["Conv"]),
        (DEPTH + "{ Y = DepthToSpace <blocksize = 2> (X) }", "ncnn", 17, ["ConvTranspose"]),
        (VOLUME + "{ Y = GlobalAveragePool (X) }", "opencv", 17, ["Reshape", "GlobalAveragePool", "Reshape"]),
        (VOLUME + "{ Y = GlobalMaxPool (X) }", "opencv", 17, ["Reshape", "GlobalMaxPool", "Reshape"]),
        (VOLUME + "{ Y = GlobalLpPool <p = 1> (X) }", "opencv", 17, ["Reshape", "ReduceL1", "Reshape"]),
        (PLANE + "{ Y = GlobalLpPool (X) }", "opencv", 17, ["ReduceL2"]),
        (PLANE + "{ Y = GlobalLpPool (X) }", "opencv", 18, ["ReduceL2"]),
        (LENGTHS + "{ Y = Softmax <axis = 1> (X) }", "opencv", 11, ["Flatten", "Softmax", "Reshape"]),
        (LENGTHS + "{ Y = LogSoftmax <axis = 2> (X) }", "opencv", 7, SHARES),
        (LENGTHS + "{ Y = Softmax <axis = 0> (X) }", "openvino", 12, ["Flatten", "Softmax", "Reshape"]),
        (OPEN + "{ Y = Softmax <axis = 1> (X) }", "openvino", 11, MEASURED),
        (OPEN + "{ Y = Softmax <axis = 2> (X) }", "opencv", 9, [*SHARES[:4], "Reciprocal", "Mul"]),
        (LENGTHS + "{ Y = Softmax (X) }", "mnn", 11, ["Softmax"]),
        (LENGTHS + "{ Y = LogSoftmax (X) }", "mnn", 13, ["LogSoftmax"]),
        (
            NORMALISED % ("5", "1", "5"),
            "opencv@5.0.0.93",
            17,
            ["Conv", "Unsqueeze", "InstanceNormalization", "Squeeze"],
        ),
        (
            NORMALISED % ("2,3,4", "1,1,1", "2,3,4"),
            "opencv@5.0.0.93",
            17,
            ["Conv", "Reshape", "InstanceNormalization", "Reshape"],
        ),
        (
            "(float[N,2,5] X, float[2] S, float[2] B) => (float[N,2,5] Y) { Y = InstanceNormalization (X, S, B) }",
            "ncnn",
            13,
            ["Reshape", "Reshape", "Unsqueeze", "InstanceNormalization", "Squeeze", "Mul", "Add"],
        ),
        (RANK + "<int64[4] r = {1, 1, 1, 1}> { t = Tile (X, r) Y = Relu (t) }", "ncnn", 13, ["Identity", "Relu"]),
        (RANK + "<int64[4] r = {1, 2, 1, 3}> { Y = Tile (X, r) }", "ncnn", 13, ["Concat", "Concat"]),
        (RANK + "<int64[1] a = {1}> { Y = ReduceSumSquare (X, a) }", "ncnn", 18, AS_MATRIX),
        (LENGTHS + "{ Y = LRN <size = 3, alpha = 0.1, bias = 1.5> (X) }", "openvino", 13, ["LRN", "Mul"]),
        (LENGTHS + "{ Y = LpNormalization <axis = 1, p = 1> (X) }", "opencv", 9, ["ReduceL1", "Clip", "Div"]),
        (LENGTHS + "{ Y = LpNormalization <p = 2> (X) }", "tvm", 18, ["ReduceL2", "Clip", "Div"]),
        ("(float[3,1] X) => (float[3,1] Y) { Y = LpNormalization <p = 2> (X) }", "mnn", 13, ["Sign"]),
        (
            LENGTHS + "{ Y = LpNormalization <axis = 1, p = 1> (X) }",
            "openvino",
            13,
            ["Abs", *AS_MATRIX[1:], "Clip", "Div"],
        ),
        (LENGTHS + "{ Y = Tanh (X) }", "opencv", 13, ["Clip", "Tanh"]),
        (LENGTHS + "{ Y = Tanh (X) }", "opencv", 9, ["Clip", "Tanh"]),
        (LENGTHS + "{ Y = Softplus (X) }", "tract", 13, SOFTPLUS),
        (
            LENGTHS + "{ s = Softplus (X) t = Tanh (s) n = Neg (X) Y = Mul (n, t) }",
            "mnn",
            13,
            [*SOFTPLUS, "Tanh", "Neg", "Mul"],
        ),
        (LENGTHS + "{ Y = LogSoftmax (X) }", "opencv", 13, SHARES),
        (LENGTHS + "{ Y = LogSoftmax (X) }", "ncnn", 13, [each.replace("ReduceSum", "MatMul") for each in SHARES]),
        (LENGTHS + "{ Y = LogSoftmax <axis = 2> (X) }", "tract", 11, SHARES),
        (LENGTHS + "{ Y = Gelu (X) }", "mnn", 20, ["Mul", "Erf", "Mul", "Add", "Mul"]),
        (LENGTHS + '{ Y = Gelu <approximate = "tanh"> (X) }', "opencv", 20, GELU),
        (LENGTHS + "{ Y = Mish (X) }", "mnn", 18, ["Softplus", "Tanh", "Mul"]),
        (RANK + "{ Y = ReduceMean <axes = [1, -2, 3]> (X) }", "opencv", 13, ["ReduceMean", "ReduceMean"]),
        (RANK + "{ Y = ReduceMax <axes = [1, 2, 3], keepdims = 0> (X) }", "opencv", 13, ["ReduceMax", "ReduceMax"]),
        (RANK + "{ Y = ReduceSumSquare <axes = [0, 1, 2, 3]> (X) }", "opencv", 13, ["ReduceSumSquare"]),
        (RANK + "{ Y = ReduceSumSquare <axes = [0, 1, 2]> (X) }", "opencv", 13, ["Mul", "ReduceSum", "ReduceSum"]),
        ("(float[1,1,4] X) => (float Y) { Y = ReduceL2 <axes = [1]> (X) }", "opencv", 13, ["Mul", "ReduceSum", "Sqrt"]),
        (RANK + "{ Y = ReduceL1 <axes = [1]> (X) }", "openvino", 13, ["Abs", "ReduceSum"]),
        (RANK + "{ Y = ReduceLogSumExp <axes = [1], keepdims = 0> (X) }", "openvino", 13, LOGARITHM),
        (RANK + "<int64[1] a = {-1}> { Y = ReduceMean <keepdims = 0> (X, a) }", "ncnn", 18, ["MatMul", "Reshape"]),
        (RANK + "<int64[1] a = {1}> { Y = ReduceL2 (X, a) }", "ncnn", 18, [*AS_MATRIX, "Sqrt"]),
        (LENGTHS + "{ h = HardSigmoid <alpha = 0.16666667> (X) Y = Mul (X, h) }", "qnn", 17, ["HardSigmoid", "Mul"]),
        (LENGTHS + "<float[5] k = {1, 2, 3, 4, 5}> { Y = Sum (X, k, X) }", "mnn", 13, ["Add", "Add"]),
        (OPEN + "<float[5] k = {1, 2, 3, 4, 5}> { Y = Max (X, X, k) }", "ncnn", 13, ["Max", "Max"]),
        (OPEN + "<float[1] k = {1}> { Y = Mean (X, k) }", "mnn", 8, ["Add", "Div"]),
        (CONDITION + "{ Y = Where (C, X, k) }", "mnn", 13, ["Not", "Where"]),
        (DENSE % "alpha = 0.5, beta = 2.0", "ncnn", 13, ["Gemm"]),
        (DENSE % "transB = 0", "ncnn", 9, ["Gemm"]),
        (LENGTHS + NORM % ("1", ", b"), "ncnn", 17, ["Reshape", "LayerNormalization", "Reshape"]),
        (LENGTHS + NORM % ("-3", ""), "ncnn", 17, ["Reshape", "LayerNormalization", "Reshape"]),
        (
            LENGTHS + "<float[5] s = {1, 2, 3, 4, 5}> { Y = LayerNormalization (X, s) }",
            "ncnn",
            17,
            ["LayerNormalization"],
        ),
        (RANK + "<int64[2] i = {-1, 0}> { Y = Gather <axis = 1> (X, i) }", "ncnn", 13, AS_MATRIX[1:]),
        (steps("RNN", 1), "tract", 13, ["Slice", "RNN", "Slice"]),
        (steps("LSTM", 4), "tract", 11, ["Slice", "LSTM", "Slice"]),
        (steps("GRU", 3), "tract", 10, ["Slice", "GRU", "Slice"]),
        (
            BOXES + "{ Y = RoiAlign <output_height = 2, output_width = 2, spatial_scale = 0.5> (X, B, I) }",
            "tvm",
            16,
            ["Mul", "RoiAlign"],
        ),
        (
            TURNED + "{ c = Conv (X, W) t = Transpose <perm = [0, 2, 1]> (c) r = Relu (t) a = Mul (r, k) "
            "Y = Transpose <perm = [0, 2, 1]> (a) }",
            "openvino",
            17,
            ["Conv", "Transpose", "Relu", "Mul", "Unsqueeze", "Transpose", "Squeeze"],
        ),
        (MINUEND + "{ c = Conv (X, W) Y = Sub (k, c) }", "tract", 17, ["Conv", "Neg", "Add"]),
        (MINUEND + "{ c = Conv (X, W) a = Add (c, k) Y = Div (k, a) }", "tract", 17, ["Conv", "Add", "Neg", "Div"]),
    ],
)
def test_an_equal_form_is_found_and_proven(
    text: str, target: str, opset: int, nodes: list[str], tmp_path: Path
) -> None:
    assert converted(tmp_path, text, target, opset) == nodes


BEHIND = "(float[N,8,4,5%s] X) => (float[N,8,C,D] Y) <int64[4] s = {0, %s}> { c = %s (X) Y = Reshape (c, s) }"


@pytest.mark.parametrize(
    ("more", "lengths", "before", "expected"),
    [
        ("", "0, 2, -1", "MaxPool <kernel_shape = [1, 1]>", "0, 8, 2, -1"),
        ("", "0, 2, -1", "Relu", None),
        ("", "8, 2, -1", "MaxPool <kernel_shape = [1, 1]>", None),
        ("", "0, 0, -1", "MaxPool <kernel_shape = [1, 1]>", None),
        (", 6", "0, 0, -1", "MaxPool <kernel_shape = [1, 1, 1]>", "0, 8, 4, -1"),
    ],
)
def test_channels_that_a_window_keeps_in_blocks_are_told(
    more: str, lengths: str, before: str, expected: str | None, tmp_path: Path
) -> None:
    source = saved(tmp_path, BEHIND % (more, lengths, before))
    assert bool(padfix.check(source, target="opencv").findings) == (expected is not None)
    padfix.convert(source, tmp_path / "out.onnx", target="opencv")
    graph = onnx.load(tmp_path / "out.onnx").graph
    told = next(each for each in graph.initializer if each.name == graph.node[-1].input[1])
    expected = expected or f"0, {lengths}"
    assert ", ".join(map(str, onnx.numpy_helper.to_array(told))) == expected


@pytest.mark.parametrize("target", ["opencv", "tract", "mnn"])
def test_a_mish_in_three_operators_stays(target: str, tmp_path: Path) -> None:
    source = saved(tmp_path, LENGTHS + "{ s = Softplus (X) t = Tanh (s) Y = Mul (X, t) }")
    assert padfix.check(source, target=target).findings == []


SAMPLED = "(float[1,2,4,4] X, float[1,3,3,2] g) => (float[1,2,3,3] Y)"


def test_a_refusal_names_the_version_that_takes_the_node(tmp_path: Path) -> None:
    source = saved(tmp_path, "(float[2,4,4] X) => (float[2] Y) { Y = Det (X) }")
    with pytest.raises(padfix.PadfixError, match=r"OpenCV 5\.0\.0\.93 takes it as it is: --target opencv@5"):
        padfix.convert(source, tmp_path / "out.onnx", target="opencv")
    assert padfix.convert(source, tmp_path / "out.onnx", target="opencv@5.0.0.93").written


def test_a_softmax_of_the_last_axis_alone_is_right_everywhere(tmp_path: Path) -> None:
    source = saved(tmp_path, UNRANKED + "{ x = Reshape (X, s) Y = Softmax <axis = -1> (x) }", 11)
    findings = padfix.check(source, target="openvino").findings
    assert [each.op_type for each in findings] == ["Reshape"]  # of which only the data tell how many axes it gives


def test_a_pool_of_volumes_takes_an_empty_batch(tmp_path: Path) -> None:
    text = "(float[N,3,4,5,6] X) => (float[N,3,1,1,1] Y) { Y = GlobalAveragePool (X) }"
    assert converted(tmp_path, text, "mnn") == ["Reshape", "GlobalAveragePool", "Reshape"]


def test_a_deviation_is_written_out(tmp_path: Path) -> None:
    # ONNX Runtime computes it from the mean of squares, which is not a number where rounding makes that too small.
    text = LENGTHS + "{ Y = MeanVarianceNormalization <axes = [2, 3]> (X) }"
    assert converted(tmp_path, text, "opencv", 13, reference="spec") == DEVIATION


@pytest.mark.parametrize(
    "text",
    [
        GATED + "{ h = HardSigmoid (S) Y = Mul (X, h) }",
        GATED + "{ h = HardSigmoid <alpha = 0.16666667, beta = 0.4> (S) Y = Mul (X, h) }",
        "(float[1,3] X) => (float[1,3] Y) { h = HardSigmoid <alpha = 0.16666667> (X) Y = Mul (X, h) }",
        "(float[1,3] X) => (float[1,3] Y) { s = Softplus (X) h = Tanh (s) Y = Mul (X, h) }",
        PLANE + "{ Y = GlobalMaxPool (X) }",
    ],
)
def test_what_the_target_gets_right_is_left_alone(text: str, tmp_path: Path) -> None:
    assert not padfix.check(saved(tmp_path, text), target="opencv").findings


@pytest.mark.parametrize(
    ("text", "target", "reason"),
    [
        (
            "(float[1,1,1] X) => (float[1,1,1] Y) { Y = MeanVarianceNormalization <axes = [1, 2]> (X) }",
            "opencv",
            "one element",
        ),
        ("(float[1,C,6,4] X) => (float[1,N,A,B] Y) { Y = SpaceToDepth <blocksize = 2> (X) }", "ncnn", "channels"),
        ("(float[1,3,H,4] X) => (int64[4] Y) { Y = Shape (X) }", "opencv@4.14", "--shape"),
        ("(float[1,3,K,L] X) => (float[1,3,K,1] Y) <int64[1] a = {3}> { Y = ReduceMean (X, a) }", "ncnn", "--shape"),
        (
            BOXES + '{ Y = RoiAlign <mode = "max", output_height = 2, output_width = 2> (X, B, I) }',
            "openvino",
            "maximum",
        ),
        ("(float[1,3] X) => (uint8[1,3] Y) <float s = {0.1}> { Y = QuantizeLinear (X, s) }", "ncnn", "No equal form"),
        (
            "(double[1,3] X) => (double[1,3] Y) { i = Identity (X) Y = Mul (X, i) }",
            "onnxruntime-webgpu",
            "No equal form",
        ),
        ("(float[1,3] X) => (double[1,3] Y) { Y = Cast <to = 11> (X) }", "onnxruntime-webgpu", "No equal form"),
    ],
)
def test_what_has_no_equal_form_is_declined_with_a_reason(text: str, target: str, reason: str, tmp_path: Path) -> None:
    with pytest.raises(padfix.PadfixError) as caught:
        padfix.convert(saved(tmp_path, text, 18), tmp_path / "out.onnx", target=target)
    assert reason in str(caught.value)


def test_lengths_that_are_told_are_known(tmp_path: Path) -> None:
    text = "(float[N,3,H,4] X) => (float[N,3,H,4] Y) { s = Shape (X) a = Relu (X) Y = Reshape (a, s) }"
    padfix.convert(saved(tmp_path, text), tmp_path / "out.onnx", target="opencv@4.14", shapes={"X": (1, 3, 5, 4)})
    assert not padfix.check(saved(tmp_path, text.replace("H", "5").replace("N", "1")), target="opencv@4.14").findings


@pytest.mark.parametrize(
    ("text", "target"),
    [
        (BY_CHANNEL % "Relu", "opencv@5.0"),
        (BY_CHANNEL % "Elu", "opencv@4.14"),
        (
            BY_CHANNEL.replace("c = Conv <group = 2, ", "c = Conv <").replace("float[2,1", "float[2,2") % "Elu",
            "opencv@5.0",
        ),
        (ADDED.replace("Add", "Mul"), "opencv@4.14"),
        (SANDWICH % "3,2", "mnn"),
        (SANDWICH % "2,3", "opencv@5.0"),
        (SLICED % "2, 3", "onnx2tf"),
        (SLICED % "3, 1", "onnx2tf"),
        (SLICED % "1, 3", "openvino"),
        (SOFTENED % "m = Sigmoid (d)", "tract"),
        (SOFTENED % "r = Softmax (d) m = Relu (r)", "tract"),
        (WEIGHED % "s, n", "openvino"),
        (ONE.replace("uint8", "int8") % "DequantizeLinear (q, s, z)", "opencv@5.0"),
    ],
)
def test_what_looks_alike_and_is_right_stays(text: str, target: str, tmp_path: Path) -> None:
    assert not padfix.check(saved(tmp_path, text), target=target).findings


@pytest.mark.parametrize(
    ("operator", "target"),
    [
        ('h, c = LSTM <direction = "reverse", hidden_size = 3> (X, W, R) Y = Concat <axis = 0> (h, c)', "tract"),
        ('Y = Gelu <approximate = "tanh"> (X)', "opencv@4.14"),
    ],
    ids=["gates that are closed", "numbers far below 0"],
)
def test_what_a_formula_leaves_of_almost_nothing_is_no_other_number(operator: str, target: str, tmp_path: Path) -> None:
    """ONNX Runtime's own kernel gives 1.6 % less than 2e-11, and Gelu's cancels out to last bits of what it reads."""
    weights = [
        f"float[1,12,{size}] {name} = {{{', '.join(['0.1'] * 12 * size)}}}" for name, size in (("W", 5), ("R", 3))
    ]
    text = (
        f'<ir_version: 9, opset_import: ["" : 20]> g (float[3,4,5] X) => (float Y) <{", ".join(weights)}>'
        f" {{ {operator.replace('h, c =', 'y, h, c =')} }}"
    )
    onnx.save(onnx.parser.parse_model(text), tmp_path / "model.onnx")
    report = padfix.convert(tmp_path / "model.onnx", tmp_path / "result.onnx", target=target)
    assert report.verdict is not None and report.verdict.equivalent
    assert not padfix.check(tmp_path / "result.onnx", target=target, select=["PF306"]).findings


def test_a_reduction_of_no_axes_at_all_stays(tmp_path: Path) -> None:
    text = (
        '<ir_version: 8, opset_import: ["" : 13]> g (float[3,2,2] X) => (float Y) <int64[0] axes = {}>'
        " { Y = ReduceSum <noop_with_empty_axes = 1> (X, axes) }"
    )
    onnx.save(onnx.parser.parse_model(text), tmp_path / "model.onnx")
    assert not padfix.check(tmp_path / "model.onnx", target="opencv", select=["PF306"]).findings


LAYER = (
    '<ir_version: 8, opset_import: ["" : 17]> g (float[5,2,4] X, float[1,12,4] W, float[1,12,3] R, float[1,9] P, '
    "int32[2] lengths) => (float Y) {{ {} }}"
)


@pytest.mark.parametrize(
    ("layer", "silent", "refused"),
    [
        ("Y = LSTM <hidden_size = 3> (X, W, R)", {"ncnn"}, {"mnn", "opencv", "tvm"}),
        ('y, Y = LSTM <hidden_size = 3, direction = "reverse"> (X, W, R)', {"opencv", "ncnn", "mnn", "tract"}, {"tvm"}),
        ("y, h, Y = LSTM <hidden_size = 3> (X, W, R)", {"ncnn"}, {"opencv", "tvm"}),
        ('y, "", Y = LSTM <hidden_size = 3> (X, W, R)', {"opencv", "ncnn"}, {"tvm"}),
        ("Y = LSTM <hidden_size = 3, clip = 0.5> (X, W, R)", {"opencv", "ncnn", "mnn", "tract"}, {"tvm"}),
        (
            "Y = LSTM <hidden_size = 3, input_forget = 1> (X, W, R)",
            {"openvino", "opencv", "ncnn", "mnn", "tract"},
            {"tvm"},
        ),
        ("Y = LSTM <hidden_size = 3, layout = 1> (X, W, R)", {"openvino", "opencv", "mnn"}, {"ncnn", "tvm"}),
        (
            'Y = LSTM <hidden_size = 3> (X, W, R, "", "", "", "", P)',
            {"openvino", "opencv", "ncnn"},
            {"mnn", "tvm"},
        ),
        ('Y = LSTM <hidden_size = 3> (X, W, R, "", lengths)', {"ncnn", "mnn"}, {"opencv", "tract", "tvm"}),
        (
            'Y = LSTM <hidden_size = 3, activations = ["HardSigmoid", "Tanh", "Tanh"]> (X, W, R)',
            {"ncnn", "mnn", "tract"},
            {"openvino", "opencv", "tvm"},
        ),
        (
            'Y = LSTM <hidden_size = 3, activations = ["sigmoid", "Tanh", "tanh"]> (X, W, R)',
            {"ncnn"},
            {"mnn", "opencv", "tvm"},
        ),
    ],
)
def test_what_recurrent_layers_have_beside_their_weights_is_known(
    layer: str, silent: set[str], refused: set[str], tmp_path: Path
) -> None:
    onnx.save(onnx.parser.parse_model(LAYER.format(layer)), tmp_path / "model.onnx")
    found: dict[str, set[str]] = {"silent": set(), "error": set()}
    for target in ("openvino", "opencv", "ncnn", "mnn", "tract", "tvm"):
        for each in padfix.check(tmp_path / "model.onnx", target=target, select=["PF306"]).findings:
            found[each.severity.value].add(target)
    assert found == {"silent": silent, "error": refused}


def test_a_state_behind_the_other_end_is_that_of_what_is_turned_round(tmp_path: Path) -> None:
    weights = [
        f"float[1,12,{size}] {name} = {{{', '.join(['0.1'] * 12 * size)}}}" for name, size in (("W", 4), ("R", 3))
    ]
    text = (
        f'<ir_version: 8, opset_import: ["" : 17]> g (float[5,2,4] X) => (float[1,2,3] Y) <{", ".join(weights)}>'
        ' { "", Y = LSTM <hidden_size = 3, direction = "reverse"> (X, W, R) }'
    )
    onnx.save(onnx.parser.parse_model(text), tmp_path / "model.onnx")
    padfix.convert(tmp_path / "model.onnx", tmp_path / "result.onnx", target="opencv")
    assert not padfix.check(tmp_path / "result.onnx", target="opencv").findings
    assert [each.op_type for each in onnx.load(tmp_path / "result.onnx").graph.node if each.op_type != "Constant"] == [
        "Gather",
        "LSTM",
    ]


@pytest.mark.parametrize(
    ("perm", "back", "is_right"),
    [
        ("0, 2, 1, 3, 4", "{1, 6, 4, 5}", True),
        ("0, 2, 1, 3, 4", "{1, -1, 4, 5}", True),
        ("0, 2, 1, 3, 4", "{1, 6, 5, 4}", False),
        ("0, 2, 1, 4, 3", "{1, 6, 4, 5}", False),
        ("0, 1, 2, 3, 4", "{1, 6, 4, 5}", False),
    ],
)
def test_shuffled_channels_are_known(perm: str, back: str, is_right: bool, tmp_path: Path) -> None:
    text = (
        f"(float[1,6,4,5] X) => (float[1,6,M,N] Y) <int64[5] s = {{1, 3, 2, 4, 5}}, int64[4] t = {back}> "
        f"{{ b = Reshape (X, s) c = Transpose <perm = [{perm}]> (b) Y = Reshape (c, t) }}"
    )
    findings = padfix.check(saved(tmp_path, text), target="ncnn").findings
    assert ("Reshape" in {each.op_type for each in findings}) is not is_right


def test_a_norm_behind_a_product_is_a_product_and_a_sum(tmp_path: Path) -> None:
    text = (
        "(float[1,3,8] X) => (float[1,3,2] Y) <float[8,2] W = {1, 2, 3, 4, 5, 6, 7, 8, 8, 7, 6, 5, 4, 3, 2, 1}, "
        "float[3] s = {1, -2, 3}, float[3] v = {1, 2, 0.5}> "
        "{ m = MatMul (X, W) Y = BatchNormalization <epsilon = 0.01> (m, s, s, s, v) }"
    )
    assert converted(tmp_path, text, "ncnn") == ["MatMul", "Mul", "Add"]
    related = text.replace("Y = Batch", "r = Relu (m) Y = Batch").replace("(m, s,", "(r, s,")
    assert "PF306" not in {each.rule for each in padfix.check(saved(tmp_path, related), target="ncnn").findings}


@pytest.mark.parametrize(
    ("node", "expected"),
    [
        ("Y = CumSum (X, last)", ["MatMul"]),
        ("Y = CumSum <exclusive = 1, reverse = 1> (X, last)", ["MatMul"]),
        ("Y = CumSum <reverse = 1> (X, first)", ["Reshape", "MatMul", "Reshape"]),
        ("Y = Expand (X, twice)", ["Concat"]),
    ],
)
def test_sums_and_copies_are_written_out(node: str, expected: list[str], tmp_path: Path) -> None:
    constants = "int64 last = {-1}, int64 first = {1}, int64[4] twice = {2, 3, 4, 5}"
    lengths = "2,3,4,5" if "Expand" in node else "1,3,4,5"
    text = f"(float[1,3,4,5] X) => (float[{lengths}] Y) <{constants}> {{ {node} }}"
    assert converted(tmp_path, text, "ncnn") == expected


def test_an_average_of_open_lengths_is_divided_apart_from_its_windows(tmp_path: Path) -> None:
    pool = 'AveragePool <kernel_shape = [4, 2], strides = [2, 3], auto_pad = "SAME_LOWER"> (X)'
    found = converted(tmp_path, f"(float[1,2,H,W] X) => (float[1,2,A,B] Y) {{ Y = {pool} }}", "opencv@5.0.0.93")
    assert found.count("Identity") == 2
    assert found.count("AveragePool") == 2


def test_sizes_of_run_time_are_not_promised_a_form(tmp_path: Path) -> None:
    node = 'Y = Resize <mode = "linear"> (X, , , z)'
    source = saved(tmp_path, f"(float[1,2,4,4] X, int64[4] z) => (float[A,B,C,D] Y) {{ {node} }}")
    (found,) = padfix.check(source, target="tract").findings
    assert not found.fixable
    with pytest.raises(padfix.PadfixError, match="data tells"):
        padfix.convert(source, tmp_path / "out.onnx", target="tract")


def test_integers_are_not_added_up_by_a_sum_which_takes_none(tmp_path: Path) -> None:
    source = saved(tmp_path, "(int32[1,3] X, int32[1,3] Z) => (int32[1,3] Y) { Y = Add (X, Z) }", 17)
    with pytest.raises(padfix.PadfixError, match="a Sum: a Sum takes no integers"):
        padfix.convert(source, tmp_path / "out.onnx", target="portable")
