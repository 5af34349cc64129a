"""What QNN's emulator computes otherwise, or refuses, at certain lengths and strides."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnx.parser
import onnxruntime
import pytest
from onnx import TensorProto

import padfix

VOLUME = "(float[1,2,3,4,3] X) => (float Y) <float[2,1,1,1,1] w = {1, 2}> { Y = ConvTranspose <strides = [%s]> (X, w) }"
POOL = "(float[1,2,%s] X) => (float Y) { Y = AveragePool <kernel_shape = [2, 2]%s> (X) }"
SHARES = "(float[1,4,5] X) => (float Y) { Y = LogSoftmax <axis = %s> (X) }"
PRODUCT = "(float[%s,3] X) => (float Y) <float[3,2] w = {1, 2, 3, 4, 5, 6}> { Y = MatMul (X, w) }"


def saved(folder: Path, graph: str, opset: int = 17) -> Path:
    path = folder / "model.onnx"
    onnx.save(onnx.parser.parse_model(f'<ir_version: 9, opset_import: ["" : {opset}]> g {graph}'), path)
    return path


def types_of(path: Path) -> list[str]:
    return [node.op_type for node in onnx.load(path).graph.node if node.op_type != "Constant"]


TUPLES = "<int64[%s,2,2] i = {0, 1, 0, 2}>"
SLOPES = "(float[1,2,3,4,3] X) => (float Y) <float[%s] s = {0.5, 0.25}>"
NOT_LESS = "<%s> { g = LessOrEqual (X, Z) Y = Not (g) }"
TURNED_PLACES = ["ArgMax", "Transpose", "Add"]
COMPARED = "<int64[1,3] a = {0, 1, 2}, int64 n = {1}> { g = GreaterOrEqual (a, n) Y = And (g, X) }"
CURVE = "(float[1,2,3,%s3] X) => (float Y) { Y = %s (X) }"
LARGER = "(float[1,2,3,4,3] X) => (float Y) <float[1,1,1,1,1] k = {0.5}> { Y = Max (X, k) }"
CHOSEN = "(float[2,2,3,4,3] X) => (float Y) <int64[3] i = {0, 1, 0}> { Y = Gather <axis = %d> (X, i) }"
COLUMN = "(float[1,2,8,6] X) => (float Y) { Y = MaxPool <kernel_shape = [3, %d], strides = [2, 2]> (X) }"
LINE = """(float[1,2,9] X) => (float Y) <float[%d,1,3] w = {%s}> {
  Y = Conv <dilations = [2], group = 2, strides = [%d], pads = [2, 0]> (X, w) }"""
COMPUTED = """(float[1,2,9] X, float[2,1,3] w) => (float Y) {
  Y = Conv <dilations = [2], group = 2, strides = [2]> (X, w) }"""
SINGLE = """(float[1,1,9,7] X) => (float Y) <float[%d,1,1,2] w = {1, 2}> {
  Y = Conv <strides = [%d, 1]> (X, w) }"""
HALVES = """(float[1,2,5,6] X) => (float Y) <float[0] r = {}, float[4] s = {1, 1, 2, 2}> {
  Y = Resize <coordinate_transformation_mode = "tf_half_pixel_for_nn", nearest_mode = "%s"> (X, r, s) }"""
SQUARES = """(float[%d,2,3,4,2] X) => (float Y) <float[2,4] w = {1, 2, 3, 4, 5, 6, 7, 8}> { Y = MatMul (X, w) }"""
SAMPLED = """(float[1,2,3,4,3] X, float[1,2,3,2,3] G) => (float Y) {
  Y = GridSample <mode = "linear", padding_mode = "%s", align_corners = %d> (X, G) }"""
WINDOWED = """(float[%d,4,4,2] X) => (float Y) <int64[6] a = {%d, 2, 2, 2, 2, 2}, int64[4] b = {-1, 2, 2, 2}> {
  p = Reshape (X, a) t = Transpose <perm = [0, 1, 3, 2, 4, 5]> (p) Y = Reshape (t, b) }"""
BLOCKS = """(float[1,2,6,8] X) => (float Y) <int64[6] a = {1, 2, 3, 2, 4, 2}, int64[4] b = {1, 8, 3, 4}> {
  p = Reshape (X, a) t = Transpose <perm = [%s]> (p) Y = Reshape (t, b) }"""
BEHIND = """(float[1,2,5] X) => (float Y)
<float[2,2,2] w = {1, 2, 3, 4, 5, 6, 7, 8}, int64[6] p = {%s}, float v = {1}> {
  c = Conv (X, w) Y = Pad (c, p, v) }"""

TURNED = "(float[1,2,3,4] X) => (float Y) <float[2,2,1,1] w = {1, 2, 3, 4}> { c = Conv (X, w) Y = Tanh (c) }"
GATED = """(float[2,3] X) => (float Y) <float[3,2] w = {1, 2, 3, 4, 5, 6}, float[2] b = {1, 2}> {
  p = MatMul (X, w) q = Add (p, b) Y = Sigmoid (q) }"""
ANGLE = "(float[2,3] X) => (float Y) { Y = %s (X) }"
WITHOUT_TURNS = ["Mul", "Round", "Mul", "Mul", "Mul", "Sub", "Sub", "Sub", "Clip"]
CLASSES = """(float[1,2,4,5] X) => (int64 Y) <float[3,2,1,1] w = {1, 2, 3, 4, 5, 6}> {
  c = Conv (X, w) Y = ArgMax <axis = %d, keepdims = %d> (c) }"""
PLACES = "(float[1,%d,6] X) => (int64 Y) { V, Y = MaxPool <kernel_shape = [2]> (X) }"
TAPS = ["Conv", "Reshape", "ReduceMax", "ArgMax", "Reshape", "Cast", "Add", "Reshape", "Cast", "Add"]
TOP = "(float[2,5,3] X) => (float Y) <int64[1] k = {2}> { Y, I = TopK <axis = %d> (X, k) }"
CUT_RELU = "(float[2,3] X) => (float Y) <float a = {-3}, float b = {%s}> { r = Relu (X) Y = Clip (r, a, b) }"
COPIED = "(float[%s] X, float[%s] Z) => (float Y) { Y = MatMul (X, Z) }"
BY_LIST = "(float[1,2,3,2,3] X) => (float Y) <float[3] w = {1, 2, 3}> { Y = MatMul (X, w) }"
CUT_OFF = "(float[2,3] X) => (float Y) { i = Cast <to = 7> (X) Y = Cast <to = 1> (i) }"
BACK = """(float[1,2,2] X) => (float Y)
<int64[2] m = {1, 4}, int64[3] s = {1, 2, 2}, float[4,4] w = {1, 2, 3, 4, 5, 6, 7, 8, 9, 1, 2, 3, 4, 5, 6, 7}> {
  a = Reshape (X, m) b = MatMul (a, w) Y = Reshape (b, s) }"""
FALLS_BY_HALVES = ["Clip", "Sub", "Neg", "Exp", "Clip", "Clip", "Sub", "Exp", "Exp", "Clip", "Mul"]
POWERS = ["Abs", "Relu", "Reshape", "Neg", "Reshape", "Clip", "Sub", "Exp", "Clip", "Exp", "Mul", "Add", "Div", "Mul"]
MISH = "(float[1,2,3,4] X) => (float Y) { Y = Mish (X) }"

SHARES_OF_BYTES = """(float[2,9] X) => (float Y)
<float s = {0.04}, uint8 m = {128}, float t = {0.004}, uint8 z = {%d}> {
  q = QuantizeLinear (X, s, m) d = DequantizeLinear (q, s, m) p = Softmax <axis = -1> (d)
  r = QuantizeLinear (p, t, z) Y = DequantizeLinear (r, t, z) }"""


WEIGHED = """(float[1,2,6,6] X) => (float Y)
<float s = {0.04}, uint8 m = {128}, int8[2,2,1,1] w = {1, 2, 3, 4}, float[2] t = {0.513, 0.257}, int8[2] z = {0, 0},
 float[2] b = {0.5, -0.7}, float k = {0}, float six = {6}> {
  q = QuantizeLinear (X, s, m) d = DequantizeLinear (q, s, m) v = DequantizeLinear <axis = 0> (w, t, z) %s }"""


def test_a_softmax_of_bytes_is_read_for_what_it_is_where_0_is_another_byte_than_the_least(tmp_path: Path) -> None:
    padfix.convert(saved(tmp_path, SHARES_OF_BYTES % 30), tmp_path / "result.onnx", target="qnn")
    types = [each.op_type for each in onnx.load(tmp_path / "result.onnx").graph.node]
    assert types[types.index("Softmax") + 1] == "Relu"


@pytest.mark.parametrize(
    ("graph", "gone"),
    [
        (VOLUME % "2, 2, 1", "ConvTranspose"),
        (POOL % ("14,9", ""), "AveragePool"),
        (SHARES % "0", "LogSoftmax"),
        (PRODUCT % "1,2,3,4", ""),
    ],
)
def test_it_is_written_otherwise(graph: str, gone: str, tmp_path: Path) -> None:
    source, result = saved(tmp_path, graph), tmp_path / "result.onnx"
    assert {"PF111", "PF306"} & {each.rule for each in padfix.check(source, target="qnn").findings}
    padfix.convert(source, result, target="qnn")
    types = [node.op_type for node in onnx.load(result).graph.node]
    assert gone not in types
    assert gone or types == ["Reshape", "MatMul", "Reshape"]


def test_bytes_are_cast_by_way_of_whole_numbers(tmp_path: Path) -> None:
    source, result = saved(tmp_path, "(uint8[2,3] X) => (float Y) { Y = Cast <to = 1> (X) }"), tmp_path / "result.onnx"
    padfix.convert(source, result, target="qnn")
    assert [node.attribute[0].i for node in onnx.load(result).graph.node] == [TensorProto.INT32, TensorProto.FLOAT]


@pytest.mark.parametrize(
    "graph",
    [
        SHARES_OF_BYTES % 0,
        "(int32[2,3] X) => (float Y) { Y = Cast <to = 1> (X) }",
        "(uint8[2,3] X) => (int32 Y) { Y = Cast <to = 6> (X) }",
        VOLUME % "1, 2, 2",
        POOL % ("13,9", ""),
        POOL % ("14,10", ""),
        POOL % ("28,9", ", strides = [2, 1]"),
        SHARES % "1",
        PRODUCT % "1,2,3",
    ],
)
def test_it_is_right_as_it_is(graph: str, tmp_path: Path) -> None:
    found = padfix.check(saved(tmp_path, graph), target="qnn").findings
    assert not {"PF111", "PF306"} & {each.rule for each in found}


@pytest.mark.parametrize(
    ("graph", "written", "opset"),
    [
        (CURVE % ("4,", "Tanh"), ["Reshape", "Tanh", "Reshape"], 17),
        (LARGER, ["Reshape", "Reshape", "Max", "Reshape"], 17),
        (CHOSEN % 0, ["Reshape", "MatMul", "Reshape"], 17),
        (COLUMN % 1, ["Gather", "MaxPool"], 17),
        (LINE % (2, "1, 2, 3, 4, 5, 6", 2), ["Conv"], 17),
        (COMPUTED, ["Conv", "Slice"], 17),
        (SINGLE % (1, 3), ["Conv", "Slice"], 17),
        (HALVES % "round_prefer_floor", ["Gather", "Gather"], 11),
        ("(float[1,2,9,4] X) => (float Y) { Y = HardSigmoid (X) }", ["Mul", "Add", "Clip"], 17),
        (CUT_OFF, ["Abs", "Sign", "Floor", "Mul", "Cast", "Cast"], 17),
        (BACK, ["Reshape", "MatMul", "Max", "Reshape"], 17),
        (TURNED, ["Conv", "Max", "Tanh"], 17),
        (CLASSES % (1, 1), ["Conv", "Reshape", "ArgMax", "Reshape"], 13),
        (CLASSES % (-1, 0), ["Conv", "Reshape", "ArgMax", "Reshape"], 13),
        (PLACES % 1, TAPS, 13),
        (PLACES % 2, TAPS, 13),
        (TOP % -2, ["TopK"], 17),
        (CUT_RELU % "-1", ["Relu", "Max", "Clip"], 17),
        (COPIED % ("3,1,2,4,5", "1,2,1,5,6"), ["Reshape", "MatMul"], 17),
        (COPIED % ("1,2,2,4,5", "3,2,2,5,6"), ["Reshape", "MatMul"], 17),
        (COPIED % ("3,2,2,4,5", "1,5,6"), ["Reshape", "Reshape", "MatMul", "Reshape"], 17),
        (BY_LIST, ["Reshape", "MatMul", "Reshape", "Squeeze"], 17),
        (GATED, ["MatMul", "Add", "Max", "Sigmoid"], 17),
        (ANGLE % "Sin", [*WITHOUT_TURNS, "Sin"], 17),
        (ANGLE % "Cos", [*WITHOUT_TURNS, "Cos"], 9),
        (MISH, [*FALLS_BY_HALVES, *["Exp", "Mul", "Mul", "Add", "Mul", "Mul", "Add", "Div", "Mul"]], 18),
        (SQUARES % 2, ["Transpose", "MatMul", "Transpose"], 17),
        (SQUARES % 1, ["Transpose", "MatMul", "Transpose"], 17),
        (PRODUCT % "2,3,4,5", ["Reshape", "MatMul", "Reshape"], 17),
        (
            CURVE % ("4,", "Softplus"),
            [*POWERS, *["Mul", "Add"] * 9],
            17,
        ),
        (WINDOWED % (2, 2), ["Reshape", "Reshape", "Transpose", "Reshape", "Reshape"], 17),
        (BEHIND % "0, 0, 0, 0, 1, 0", ["Conv", "Pad", "Gather"], 17),
        (BEHIND % "0, 0, 0, 0, 1, 1", ["Conv", "Pad", "Gather", "Gather"], 17),
    ],
)
def test_what_it_refuses_by_axes_lengths_or_strides_has_a_form(
    graph: str, written: list[str], opset: int, tmp_path: Path
) -> None:
    source, result = saved(tmp_path, graph, opset), tmp_path / "result.onnx"
    assert {"PF111", "PF112", "PF205", "PF306"} & {each.rule for each in padfix.check(source, target="qnn").findings}
    padfix.convert(source, result, target="qnn")
    assert [node.op_type for node in onnx.load(result).graph.node] == written
    assert not padfix.check(result, target="qnn").findings


@pytest.mark.parametrize("outside", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("aligned", [0, 1])
def test_a_volume_is_sampled_by_a_product(outside: str, aligned: int, tmp_path: Path) -> None:
    source, result = saved(tmp_path, SAMPLED % (outside, aligned), 20), tmp_path / "result.onnx"
    padfix.convert(source, result, target="qnn")
    types = {node.op_type for node in onnx.load(result).graph.node}
    assert "MatMul" in types
    assert "GridSample" not in types


@pytest.mark.parametrize(
    "graph",
    [
        CURVE % ("", "Tanh"),
        CURVE % ("4,", "Relu"),
        CLASSES % (1, 0),
        CUT_RELU % "1",
        TOP % -1,
        COPIED % ("3,2,2,4,5", "3,1,1,5,6"),
        COPIED % ("3,2,4,5", "1,2,5,6"),
        "(float[1,2,4,5] X) => (int64 Y) { Y = ArgMax <axis = 1> (X) }",
        "(float[2,3] X, float[2,3] Z) => (float Y) { s = Add (X, Z) Y = Sigmoid (s) }",
        CHOSEN % 1,
        CHOSEN.replace("int64[3] i = {0, 1, 0}", "int64 i = {1}") % 0,
        COLUMN % 3,
        SINGLE % (1, 2),
        LINE % (2, "1, 2, 3, 4, 5, 6", 1),
        LINE % (4, "1, 2, 3, 4, 5, 6, 1, 2, 3, 4, 5, 6", 2),
        WINDOWED % (1, 1),
        BEHIND % "0, 0, 0, 0, 0, 0",
        BEHIND % "0, 1, 0, 0, 1, 0",
    ],
)
def test_what_it_takes_stays(graph: str, tmp_path: Path) -> None:
    found = padfix.check(saved(tmp_path, graph), target="qnn").findings
    assert not {"PF111", "PF112", "PF306"} & {each.rule for each in found}


@pytest.mark.parametrize(("order", "axes"), [("0, 1, 3, 5, 2, 4", 5), ("0, 3, 5, 1, 2, 4", 4), ("0, 1, 2, 4, 3, 5", 6)])
def test_blocks_that_become_channels_are_moved_in_fewer_axes(order: str, axes: int, tmp_path: Path) -> None:
    padfix.convert(saved(tmp_path, BLOCKS % order), tmp_path / "result.onnx", target="qnn")
    (moved,) = (each for each in onnx.load(tmp_path / "result.onnx").graph.node if each.op_type == "Transpose")
    assert len(moved.attribute[0].ints) == axes


BYTES = ["QuantizeLinear", "DequantizeLinear"]
ROUND = "r = QuantizeLinear (c, s, m) Y = DequantizeLinear (r, s, m)"
CUT = "p = QuantizeLinear (n, s, m) o = DequantizeLinear (p, s, m) c = Clip (o, k, six) "
BIASED = "n = Conv (d, v, b) c = Relu (n) "


@pytest.mark.parametrize(
    ("then", "written"),
    [
        ("Y = Conv (d, v)", ["Conv"]),
        ("n = Conv (X, v) Y = Relu (n)", ["Conv", "Relu"]),
        ("c = Conv (d, v) " + ROUND, ["DequantizeLinear", "Conv", *BYTES]),
        (BIASED + ROUND, ["DequantizeLinear", "Conv", *BYTES, "Relu", *BYTES]),
        ("n = Conv (d, v, b) c = Clip (n, k, six) " + ROUND, ["Conv", "Max", "Min", "Clip", *BYTES]),
        ("n = Conv (d, v) " + CUT + ROUND, ["DequantizeLinear", "Conv", *BYTES, "Max", "Min", "Clip", *BYTES]),
    ],
)
def test_bytes_are_multiplied_as_it_takes_them(then: str, written: list[str], tmp_path: Path) -> None:
    result = tmp_path / "result.onnx"
    padfix.convert(saved(tmp_path, WEIGHED % then), result, target="qnn")
    assert types_of(result) == BYTES + written


STEPPED = ["Div", "Clip", "Round", "Mul"]
AMONG = """(float[1,2,6,6] X) => (float Y)
<float s = {0.04}, uint8 m = {128}, float[2,2,1,1] w = {1, 2, 3, 4}> {
  %s q = QuantizeLinear (n, s, m) d = DequantizeLinear (q, s, m) %s }"""


@pytest.mark.parametrize(
    ("before", "behind", "written"),
    [
        ("n = Neg (X)", "Y = Softmax (d)", ["Neg", *STEPPED, "Softmax"]),
        ("n = Neg (X)", "t = Transpose (d) Y = Relu (t)", ["Neg", *STEPPED, "Transpose", "Relu"]),
        ("n = Neg (X)", "Y = MaxPool <kernel_shape = [2, 2]> (d)", ["Neg", "Clip", *BYTES, "MaxPool"]),
        ("n = Neg (X)", "a = Abs (d) b = QuantizeLinear (a, s, m) Y = DequantizeLinear (b, s, m)", []),
        ("n = Neg (X)", "Y = Conv (d, w)", ["Neg", "Clip", *BYTES, "Conv"]),
        ("n = Conv (X, w)", "Y = Neg (d)", ["Conv", *BYTES, "Neg"]),
    ],
)
def test_quantization_among_floats_is_rounded_and_cut_off_in_floats(
    before: str, behind: str, written: list[str], tmp_path: Path
) -> None:
    """QNN leaves it out where no layer of images, and nothing of bytes, is beside it."""
    padfix.convert(saved(tmp_path, AMONG % (before, behind)), tmp_path / "result.onnx", target="qnn")
    assert types_of(tmp_path / "result.onnx") == (written or ["Neg", "Clip", *BYTES, "Abs", *BYTES])


@pytest.mark.parametrize("lengths", ["1,2,6,6", "2,2,4,8", "3,50", "1,2,8,8", "6,2,8,8", "2,64", "3,4,32"])
def test_the_rest_of_a_row_of_floats_is_rounded_as_bytes_are(lengths: str, tmp_path: Path) -> None:
    """QNN quantizes 128 at a time, and rounds what is left over down where nothing cuts it off before."""
    counted = [int(each) for each in lengths.split(",")]
    graph = f"""(float[{lengths}] X) => (int8 Y) <float s = {{0.05}}, int8 m = {{3}}>
                {{ a = Neg (X) Y = QuantizeLinear (a, s, m) }}"""
    source, result = saved(tmp_path, graph), tmp_path / "result.onnx"
    padfix.convert(source, result, target="qnn")
    leaves_some = np.prod(counted[1:] if len(counted) > 3 else counted) % 128 != 0
    assert types_of(result) == ["Neg", *(["Clip"] if leaves_some else []), "QuantizeLinear"]
    data = np.linspace(-9, 9, int(np.prod(counted)), dtype=np.float32).reshape(counted)
    given, written = (onnxruntime.InferenceSession(each).run(None, {"X": data})[0] for each in (source, result))
    np.testing.assert_array_equal(written, given)


@pytest.mark.parametrize(
    ("behind", "written"),
    [
        ("Y = Identity (d)", [*STEPPED, "Identity"]),
        ("a = Add (d, X) Y = Relu (a)", [*STEPPED, "Add", "Relu"]),
        ("t = Transpose (d) b = QuantizeLinear (t, s, m) Y = DequantizeLinear (b, s, m)", None),
        ("Y = MaxPool <kernel_shape = [2, 2]> (d)", [*BYTES, "MaxPool"]),
        ("Y = Conv (d, w)", [*BYTES, "Conv"]),
    ],
)
def test_what_a_caller_gives_is_rounded_in_floats(behind: str, written: list[str] | None, tmp_path: Path) -> None:
    graph = AMONG.replace("QuantizeLinear (n", "QuantizeLinear (X", 1) % ("", behind)
    padfix.convert(saved(tmp_path, graph), tmp_path / "result.onnx", target="qnn")
    assert types_of(tmp_path / "result.onnx") == (written or [*STEPPED, "Transpose", "Clip", *BYTES])


@pytest.mark.parametrize("opset", [7, 9])
def test_axes_that_are_attributes_are_counted_from_the_begin(opset: int, tmp_path: Path) -> None:
    graph = "(float[2,3,8,8] X) => (float Y) { Y = Slice <axes = [2, -1], starts = [1, 2], ends = [5, 7]> (X) }"
    padfix.convert(saved(tmp_path, graph, opset), tmp_path / "result.onnx", target="qnn")
    (node,) = onnx.load(tmp_path / "result.onnx").graph.node
    assert [list(each.ints) for each in node.attribute if each.name == "axes"] == [[2, 3]]


@pytest.mark.parametrize(
    ("attributes", "lengths", "outputs", "is_written"),
    [
        ("", "3,5", "V, Y", True),
        ("<axis = 0, largest = 0>", "5,3", "V, Y", True),
        ("<axis = 1>", "2,5,3,2", "V, Y", True),
        ("", "7", "V, Y", True),
        ("<axis = 1>", "3,5", "Y, V", False),  # the values alone
        ("<axis = 1, sorted = 0>", "3,5", "V, Y", False),
    ],
)
@pytest.mark.parametrize("opset", [10, 11, 18])
def test_places_of_equal_numbers_are_counted(
    attributes: str, lengths: str, outputs: str, is_written: bool, opset: int, tmp_path: Path
) -> None:
    if opset == 10 and ("largest" in attributes or "sorted" in attributes):
        pytest.skip("opset 10 has no such attributes")
    kind = "float" if outputs.startswith("Y") else "int64"
    named = ",".join("ABCD"[: lengths.count(",") + 1])
    graph = (
        f"(float[{lengths}] X) => ({kind}[{named}] Y) <int64[1] k = {{3}}> {{ {outputs} = TopK {attributes} (X, k) }}"
    )
    source = saved(tmp_path, graph, opset)
    padfix.convert(source, tmp_path / "out.onnx", target="qnn")
    assert ("CumSum" in types_of(tmp_path / "out.onnx")) == is_written
    X = np.random.default_rng(0).integers(-1, 2, [int(each) for each in lengths.split(",")]).astype(np.float32)
    results = [onnxruntime.InferenceSession(each).run(None, {"X": X})[0] for each in (source, tmp_path / "out.onnx")]
    np.testing.assert_array_equal(*results)
    assert not padfix.check(tmp_path / "out.onnx", target="qnn").findings


@pytest.mark.parametrize(
    ("row", "taps", "attribute", "expected"),
    [
        ("", 5, "pads = [2, 2]", 6),
        ("", 3, "pads = [4, 4], dilations = [4]", 4),
        ("", 5, 'auto_pad = "SAME_UPPER"', 6),
        ("1,", 5, "pads = [0, 2, 0, 2]", 6),
        ("", 5, "pads = [1, 3]", 5),
        ("", 3, "pads = [1, 1]", 3),
        ("", 5, "pads = [2, 2], strides = [2]", 5),
        ("2,", 5, "pads = [0, 2, 0, 2]", 5),
    ],
)
def test_a_line_of_eights_that_keeps_its_length_gets_a_further_tap(
    row: str, taps: int, attribute: str, expected: int, tmp_path: Path
) -> None:
    weights = ", ".join(map(str, range(4 * taps)))
    text = f"""(float[1,2,{row}8] X) => (float Y) <float[2,2,{"1," if row else ""}{taps}] w = {{{weights}}}>
    {{ Y = Conv <{attribute}> (X, w) }}"""
    source, result = saved(tmp_path, text), tmp_path / "result.onnx"
    padfix.convert(source, result, target="qnn")
    model = onnx.load(result)
    (conv,) = (node for node in model.graph.node if node.op_type == "Conv")
    (written,) = (each for each in model.graph.initializer if each.name == conv.input[1])
    assert written.dims[-1] == expected
    feeds = {"X": np.random.default_rng(0).normal(size=(1, 2, *([int(row[0])] if row else []), 8)).astype(np.float32)}
    before, after = (onnxruntime.InferenceSession(str(path)).run(None, feeds)[0] for path in (source, result))
    np.testing.assert_allclose(after, before, rtol=1e-5, atol=1e-4)


def test_a_pad_before_a_line_of_eights_counts_as_its_own(tmp_path: Path) -> None:
    weights = ", ".join(map(str, range(20)))
    text = f"""(float[1,2,8] X) => (float Y) <float[2,2,5] w = {{{weights}}}, int64[6] p = {{0, 0, 2, 0, 0, 2}}>
    {{ Z = Pad (X, p) Y = Conv (Z, w) }}"""
    assert "PF111" in {each.rule for each in padfix.check(saved(tmp_path, text), target="qnn").findings}


MASKED = """(float[2,3] X, %s) => (float Y) <float least = {%s}, float none = {0}, bool[1,3] part = {1, 0, 1},
float[2,3] rows = {%s}> { %s Y = Softmax <axis = -1> (s) }"""


@pytest.mark.parametrize(
    ("inputs", "least", "rows", "nodes", "is_declined"),
    [
        ("bool[2,3] M", "-inf", "0, 0, 0, 0, 0, 0", "s = Where (M, X, least)", True),
        ("bool[2,3] M", "-inf", "0, 0, 0, 0, 0, 0", "m = Where (M, none, least) s = Add (X, m)", True),
        ("bool[2,3] M", "-1e9", "0, 0, 0, 0, 0, 0", "s = Where (M, X, least)", False),
        ("float[2,3] M", "-inf", "0, 0, 0, -inf, -inf, -inf", "s = Add (M, rows)", True),
        ("float[2,3] M", "-inf", "0, 0, 0, -inf, 0, -inf", "s = Add (M, rows)", False),
        ("float[2,3] M", "-inf", "0, 0, 0, 0, 0, 0", "s = Where (part, X, least)", False),
    ],
)
def test_rows_that_infinities_leave_out_are_declined(
    inputs: str, least: str, rows: str, nodes: str, *, is_declined: bool, tmp_path: Path
) -> None:
    source = saved(tmp_path, MASKED % (inputs, least, rows, nodes))
    found = [each.message for each in padfix.check(source, target="qnn").findings]
    assert any("left out by infinities" in each for each in found) == is_declined


@pytest.mark.parametrize(
    ("nodes", "is_declined"),
    [("IsNaN (X)", True), ("Equal (X, X)", True), ("GreaterOrEqual (X, X)", True), ("Equal (X, Z)", False)],
)
def test_what_asks_for_no_numbers_is_declined(nodes: str, *, is_declined: bool, tmp_path: Path) -> None:
    source = saved(tmp_path, f"(float[2,3] X, float[2,3] Z) => (bool Y) {{ Y = {nodes} }}")
    found = [each.message for each in padfix.check(source, target="qnn").findings]
    assert any("what is no number" in each for each in found) == is_declined


@pytest.mark.parametrize(
    ("text", "opset", "expected"),
    [
        ("(bool[1,2,3,2,2] X) => (bool Y) { Y = Not (X) }", 17, ["Reshape", "Not", "Reshape"]),
        ("(bool[1,2,3,2,2] X) => (float Y) { Y = Cast <to = 1> (X) }", 17, ["Reshape", "Cast", "Reshape"]),
        ("(float[1,2,3,2,2] X) => (int32 Y) { Y = Cast <to = 6> (X) }", 17, ["Cast"]),
        ("(float[2,6] X) => (float[2,3] Y) { Y, I = TopK <axis = 1, k = 3> (X) }", 9, ["TopK"]),
        (f"(bool[1,3] X) => (bool Y) {TUPLES % '1'} {{ Y = GatherND (X, i) }}", 17, ["Reshape", "Gather", "Reshape"]),
        (
            f"(float[1,3] X) => (float Y) {TUPLES % '1,1,1'} {{ Y = GatherND (X, i) }}",
            17,
            ["Reshape", "Gather", "Reshape"],
        ),
        (f"(float[1,3] X) => (float Y) {TUPLES % '1,1'} {{ Y = GatherND (X, i) }}", 17, ["GatherND"]),
        (f"(bool[1,3] X) => (bool Y) {COMPARED}", 14, ["And"]),
        (f"(bool[1,3] X) => (bool Y) {COMPARED}", 16, ["GreaterOrEqual", "And"]),
        (f"(float[2,3] X, float[3] Z) => (bool Y) {NOT_LESS % ''}", 12, ["Less", "Equal", "Or", "Not"]),
        (f"(float[2,3] X, float[3] Z) => (bool Y) {NOT_LESS % 'bool[2,3] g'}", 12, ["LessOrEqual", "Not"]),
        ("(float[2,3] X, float[3] Z) => (bool Y) { Y = LessOrEqual (X, Z) }", 12, ["LessOrEqual"]),
        (
            "(float[2,3,4] X) => (int64 Y) { p = ArgMax <axis = 2> (X) Y = Transpose <perm = [1, 0, 2]> (p) }",
            13,
            TURNED_PLACES,
        ),
        (
            "(float[2,3,4] X) => (int64 Y) { t = Transpose <perm = [1, 0, 2]> (X) Y = ArgMin <axis = 2> (t) }",
            13,
            ["Transpose", "ArgMin", "Add"],
        ),
        ("(int64[2,3] X) => (int64 Y) { Y = Transpose <perm = [1, 0]> (X) }", 13, ["Transpose", "Add"]),
        ("(float16[2,3] X, float16[2,3] Z) => (float16 Y) { Y = Mean (X, Z) }", 13, ["Add", "Div"]),
        (f"{SLOPES % '1,2,1,1,1'} {{ Y = PRelu (X, s) }}", 16, ["PRelu"]),
        (
            "(int64[2,3] X) => (float Y) { t = Transpose <perm = [1, 0]> (X) Y = Cast <to = 1> (t) }",
            13,
            ["Transpose", "Cast"],
        ),
    ],
)
def test_booleans_tuples_of_five_axes_and_what_early_opsets_say_are_written_otherwise(
    text: str, opset: int, expected: list[str], tmp_path: Path
) -> None:
    source, result = saved(tmp_path, text, opset), tmp_path / "result.onnx"
    padfix.convert(source, result, target="qnn")
    assert types_of(result) == expected
    assert not padfix.check(result, target="qnn").findings


def test_integers_of_64_bits_of_five_axes_are_declined(tmp_path: Path) -> None:
    source = saved(tmp_path, "(int64[1,2,3,2,2] X) => (float Y) { Y = Cast <to = 1> (X) }")
    with pytest.raises(padfix.PadfixError, match="64 bits of more than four axes"):
        padfix.convert(source, tmp_path / "result.onnx", target="qnn")


@pytest.mark.parametrize(("length", "ratio", "is_found"), [(12, 17 / 12, True), (12, 1.5, False), (10, 1.7, False)])
def test_a_resize_that_inference_counts_shorter_is_by_no_scales(
    length: int, ratio: float, *, is_found: bool, tmp_path: Path
) -> None:
    scale = np.float32(ratio)
    text = f"""(float[1,2,{length},{length}] X) => (float Y) <float[4] s = {{1, 1, {scale!s}, {scale!s}}}> {{
        Y = Resize <mode = "linear"> (X, , s) }}"""
    source = saved(tmp_path, text)
    padfix.convert(source, tmp_path / "out.onnx", target="qnn")
    graph = onnx.load(tmp_path / "out.onnx").graph
    by_scales = [node for node in graph.node if node.op_type == "Resize" and node.input[2]]
    assert bool(by_scales) != is_found
    data = np.arange(2 * length * length, dtype=np.float32).reshape(1, 2, length, length)
    before, after = (
        onnxruntime.InferenceSession(str(path)).run(None, {"X": data})[0] for path in (source, tmp_path / "out.onnx")
    )
    np.testing.assert_allclose(after, before, rtol=1e-4)


@pytest.mark.parametrize(
    ("nodes", "found"),
    [
        ("d = DequantizeLinear (X, s) Y = Sigmoid (d)", ["Cast", "Mul", "Sigmoid"]),
        ("Y = DequantizeLinear (X, s, z)", ["Cast", "Mul"]),
        ("n = Abs (X) d = DequantizeLinear <axis = 0> (n, t) Y = Sigmoid (d)", ["Abs", "Cast", "Mul", "Sigmoid"]),
        ("c = DequantizeLinear (k, s) f = Cast <to = 1> (X) Y = Add (f, c)", ["Cast", "Add"]),
    ],
)
def test_integers_of_32_bits_are_cast_and_multiplied(nodes: str, found: list[str], tmp_path: Path) -> None:
    given = "float s = {0.5}, int32 z = {0}, float[2] t = {0.5, 0.25}, int32[3] k = {1, 2, 3}"
    source = saved(tmp_path, f"(int32[2,3] X) => (float Y) <{given}> {{ {nodes} }}")
    padfix.convert(source, tmp_path / "out.onnx", target="qnn")
    assert types_of(tmp_path / "out.onnx") == found
    assert not padfix.check(tmp_path / "out.onnx", target="qnn").findings


@pytest.mark.parametrize("axis", [-2, 1])
def test_places_along_an_inner_axis_are_counted_however_it_is_told(axis: int, tmp_path: Path) -> None:
    text = "(float[2,5,3] X) => (float V, int64 P) <int64[1] k = {2}> { V, P = TopK <axis = %d> (X, k) }"
    source, result = saved(tmp_path, text % axis), tmp_path / "result.onnx"
    padfix.convert(source, result, target="qnn")
    assert "CumSum" in types_of(result)
    assert not padfix.check(result, target="qnn").findings
