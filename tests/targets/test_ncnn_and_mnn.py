"""What ncnn and MNN refuse or get wrong, and the form in which it is right, or that there is none."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnx.parser
import onnxruntime
import pytest

import padfix
from padfix.errors import RefusedError

TEXT = """
<ir_version: 8, opset_import: ["" : 17, "com.microsoft" : 1]> g (%s[1,3,4,5] X) => (%s Y)
<float one = {1}, float half = {0.5}, float two = {2}, float three = {3}, float below = {-2}, float root = {1.4142135},
 int64[8] P = {0, 0, 0, 0, 0, 0, 0, 0}, int64[4] S = {1, 3, 4, 5}, int64[2] M = {1, -1}, int64[1] z = {0},
 int64[2] P2 = {12, 5}, int64[1] z2 = {0}, int64[1] o2 = {2}, int64[1] e2 = {4}, int64[1] ax = {2}, int64[1] z9 = {99},
 int64[1] o = {1}, int64[3] G = {0, 1, 2}, int64[1] l = {-1}, float[1,0,4,5] E = {}, float[3,1,1] L = {1, 2, 3},
 float16[2,3,1,1] H = {1, 2, 3, 4, 5, 6}, float steps = {0.04},
 float wide = {0.05}, float[1,1,1,1] W1 = {3}, uint8 mid = {120}, uint8 low = {90}>
{ %s }
"""

MEASURED = """r = Relu (X) s = Shape (r) g = Gather (s, G) b = Slice (g, z, o) n = Concat <axis = 0> (b, l)
 Y = Reshape (r, n)"""
QUANTIZED = "q = QuantizeLinear (X, steps, mid) Y = DequantizeLinear (q, wide, mid)"
RECENTRED = "q = QuantizeLinear (X, steps, mid) Y = DequantizeLinear (q, wide, low)"
UNIT = """n = ReduceL2 <axes = [1], keepdims = 1> (X) c = Clip (n, steps) e = Expand (c, S) Y = Div (X, e)"""
ROTATED = """r = Relu (X) a = Slice (r, o2, e2, ax) b = Slice (r, z2, o2, ax) n = Neg (a) c = Concat <axis = 2> (n, b)
 p = Mul (r, half) q = Mul (c, root) Y = Add (p, q)"""
NORMALISED = """m = ReduceMean <axes = [2, 3]> (X) d = Sub (X, m) p = Pow (d, two) v = ReduceMean <axes = [2, 3]> (p)
 s = Sqrt (v) Y = Div (d, s)"""


def saved(nodes: str, folder: Path, given: str = "float", gives: str = "float") -> Path:
    place = folder / "model.onnx"
    onnx.save(onnx.parser.parse_model(TEXT % (given, gives, nodes)), place)
    return place


@pytest.mark.sweep(2)
@pytest.mark.parametrize(
    ("target", "nodes", "expected"),
    [
        ("ncnn", "Y = Identity (X)", ["Neg", "Neg"]),
        ("ncnn", "Y = Mul (X, one)", ["Neg", "Neg"]),
        ("ncnn", "Y = Pad (X, P)", ["Neg", "Neg"]),
        ("ncnn", "Y = Slice (X, z2, z9, ax)", ["Neg", "Neg"]),
        ("ncnn", "Y = Reshape (X, S)", ["Neg", "Neg"]),
        ("ncnn", "Y = Transpose <perm = [0, 1, 2, 3]> (X)", ["Neg", "Neg"]),
        ("ncnn", "Y = Concat <axis = 1> (X)", ["Neg", "Neg"]),
        ("ncnn", "r = Relu (X) Y = Mul (r, one)", ["Mul", "Relu"]),
        ("ncnn", "r = Relu (X) Y = Concat <axis = 1> (r, E, X)", ["Concat", "Relu"]),
        ("ncnn", "Y = Pow (X, three)", ["Mul", "Mul"]),
        ("ncnn", "Y = Pow (X, below)", ["Mul", "Reciprocal"]),
        ("ncnn", "Y = Pow (X, two)", ["Pow"]),
        ("ncnn", "a = Abs (X) Y = Pow (a, half)", ["Abs", "Sqrt"]),
        ("ncnn", "a = Exp (X) b = Add (a, one) Y = Pow (b, root)", ["Add", "Exp", "Pow"]),
        ("ncnn", "r = Relu (X) Y = Pow (r, root)", ["Abs", "Add", "Mul", "Pow", "Relu", "Sign", "Sub"]),
        (
            "mnn",
            "c = Constant <value_float = 2.0> () b = Add (X, c) Y = Pow (b, root)",
            ["Add", "Pow"],
        ),
        ("ncnn", "Y = Cast <to = 1> (X)", ["Neg", "Neg"]),
        ("ncnn", "Y = LpPool <kernel_shape = [2, 2], p = 1> (X)", ["Abs", "AveragePool", "Mul"]),
        (
            "ncnn",
            "Y = LpPool <kernel_shape = [3, 3], strides = [2, 2], pads = [1, 1, 1, 1]> (X)",
            ["AveragePool", "Mul", "Mul", "Sqrt"],
        ),
        (
            "ncnn",
            "Y = LpPool <kernel_shape = [2, 2], p = 3> (X)",
            ["Abs", "Abs", "Add", "AveragePool", "Mul", "Mul", "Mul", "Mul", "Pow", "Sign", "Sub"],
        ),
        (
            "ncnn",
            "Y = Hardmax <axis = 2> (X)",
            ["MatMul", "Mul", "ReduceMax", "Sign", "Sign", "Sub", "Sub", "Sub"],
        ),
        # What is worked out of lengths is never run.
        (
            "ncnn",
            MEASURED,
            ["Concat", "Gather", "Relu", "Reshape", "Shape", "Slice"],
        ),
        (
            "mnn",
            "d = Div (X, root) e = Erf (d) a = Add (e, one) m = Mul (X, a) Y = Mul (m, half)",
            ["Add", "Div", "Erf", "Mul", "Mul"],
        ),
        (
            "mnn",
            NORMALISED,
            ["Div", "Mul", "ReduceMean", "ReduceMean", "Sqrt", "Sub"],
        ),
        ("ncnn", QUANTIZED, ["Clip", "Div", "Mul", "Round"]),
        ("ncnn", RECENTRED, ["Add", "Clip", "Div", "Mul", "Round"]),
        ("mnn", QUANTIZED, ["Abs", "Add", "Clip", "Clip", "Div", "Mul", "Sub"]),
        ("mnn", "Y = Round (X)", ["Abs", "Abs", "Add", "Add", "Min", "Mul", "Sign", "Sub", "Sub"]),
        ("ncnn", ROTATED, ["Add", "Concat", "Mul", "Mul", "Neg", "Relu", "Slice", "Slice"]),
        ("ncnn", UNIT, ["Div", "Expand", "Max", "ReduceL2"]),
        ("ncnn", "t = Tanh (X) Y = Sub (X, t)", ["Add", "Neg", "Tanh"]),
        ("mnn", "t = Sub (W1, X) u = Add (W1, t) Y = Mul (X, u)", ["Add", "Mul", "Neg", "Sub"]),
        ("ncnn", "a = Abs (X) b = Add (a, one) Y = Div (X, b)", ["Abs", "Add", "Div"]),
        ("ncnn", "n = Neg (X) Y = Softmax <axis = 1> (n)", ["Mul", "Softmax"]),
        ("ncnn", "n = Neg (X) Y = Relu (n)", ["Neg", "Relu"]),
    ],
)
def test_a_form_is_written(target: str, nodes: str, expected: list[str], tmp_path: Path) -> None:
    source = saved(nodes, tmp_path)
    report = padfix.convert(source, tmp_path / "out.onnx", target=target)
    assert report.verdict is not None
    assert report.verdict.equivalent
    written = onnx.load(tmp_path / "out.onnx").graph.node
    assert sorted(each.op_type for each in written if each.op_type != "Constant") == expected
    assert not padfix.check(tmp_path / "out.onnx", target=target).findings


def test_the_terms_of_the_sum_in_a_gelu_are_exchanged_for_mnn(tmp_path: Path) -> None:
    nodes = "d = Div (X, root) e = Erf (d) a = Add (e, one) m = Mul (X, a) Y = Mul (m, half)"
    padfix.convert(saved(nodes, tmp_path), tmp_path / "out.onnx", target="mnn")
    (added,) = [each for each in onnx.load(tmp_path / "out.onnx").graph.node if each.op_type == "Add"]
    assert list(added.input) == ["one", "e"]


@pytest.mark.parametrize(
    ("target", "given", "gives", "nodes", "says"),
    [
        ("ncnn", "float16", "float16", "Y = Conv (X, H)", "half precision"),
        ("ncnn", "float", "float16", "r = Relu (X) Y = Cast <to = 10> (r)", "another type"),
        ("ncnn", "int32", "int32", "Y = Add (X, X)", "bits of integers"),
        ("ncnn", "int32", "int32", "Y = Sign (X)", "bits of integers"),
        ("ncnn", "int32", "int32", "Y = ReduceL1 <axes = [1]> (X)", "bits of integers"),
        ("ncnn", "float", "float", "Y = Pow (X, L)", "below 0"),
        ("ncnn", "float", "float", "r = Reshape (X, P2) Y = Softmax <axis = 0> (r)", "together"),
        ("ncnn", "float", "float", "r = Relu (X) Y = Identity (one)", "a constant"),
        ("ncnn", "float", "float", "m = Reshape (X, M) Y = Transpose (m)", "no matrix"),
        ("ncnn", "float", "float", "Y = com.microsoft.Inverse (X)", "operators of ONNX Runtime"),
        ("mnn", "float", "float", "Y = com.microsoft.Inverse (X)", "operator of ONNX Runtime"),
        ("mnn", "uint8", "uint8", "Y = MaxPool <kernel_shape = [2, 2], strides = [1, 1]> (X)", "maxima of bytes"),
    ],
)
def test_check_says_it(target: str, given: str, gives: str, nodes: str, says: str, tmp_path: Path) -> None:
    found = padfix.check(saved(nodes, tmp_path, given, gives), target=target).findings
    assert [each for each in found if says in each.message], found


def test_half_precision_is_declined_where_a_convolution_is_not_to_be_had(tmp_path: Path) -> None:
    with pytest.raises(RefusedError, match="No equal form"):
        padfix.convert(saved("Y = Conv (X, H)", tmp_path, "float16", "float16"), tmp_path / "out.onnx", target="ncnn")


def test_rows_of_a_matrix_of_weights_are_taken_by_what_may_be_below_0_for_ncnn(tmp_path: Path) -> None:
    place = tmp_path / "model.onnx"
    model = onnx.parser.parse_model("""<ir_version: 8, opset_import: ["" : 17]>
        g (int64[1,3] X) => (float[1,3,1] Y) <float[8,1] W = {1, 2, 3, 4, 5, 6, 7, 8}> { Y = Gather (W, X) }""")
    onnx.save(model, place)
    (found,) = padfix.check(place, target="ncnn").findings
    assert "the first row for every index below 0" in found.message


def test_a_constant_for_each_of_several_images_is_declined_for_ncnn(tmp_path: Path) -> None:
    place = tmp_path / "model.onnx"
    model = onnx.parser.parse_model("""<ir_version: 8, opset_import: ["" : 17]>
        g (float[2,3] X) => (float[2,3] Y) <float[2,1] C = {1, 2}> { Y = Mul (X, C) }""")
    onnx.save(model, place)
    assert ["numbers for each" in each.message for each in padfix.check(place, target="ncnn").findings] == [True]


@pytest.mark.parametrize(
    "text",
    [
        "(float[4,5,6] X) => (float Y) <float[2,1,1,1,1] C = {1, 2}> { Y = Mul (X, C) }",
        "(uint8[1,3,4] X) => (uint8 Y) { Y = ReduceMax <axes = [2]> (X) }",
        "(int32[1,3,4] X) => (int32 Y) { Y = Transpose <perm = [0, 2, 1]> (X) }",
    ],
)
def test_volumes_and_integers_that_are_given_are_declined_for_ncnn(text: str, tmp_path: Path) -> None:
    place = tmp_path / "model.onnx"
    onnx.save(onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : 17]> g {text}'), place)
    with pytest.raises(RefusedError):
        padfix.convert(place, tmp_path / "out.onnx", target="ncnn")


def test_a_cast_to_a_like_type_is_a_cast_for_ncnn(tmp_path: Path) -> None:
    place = tmp_path / "model.onnx"
    onnx.save(
        onnx.parser.parse_model("""<ir_version: 8, opset_import: ["" : 17]>
        g (float[1,3,4,5] X) => (float[1,3,4,5] Y) { r = Relu (X) Y = CastLike (r, X) }"""),
        place,
    )
    padfix.convert(place, tmp_path / "out.onnx", target="ncnn")
    assert [node.op_type for node in onnx.load(tmp_path / "out.onnx").graph.node] == ["Relu", "Cast"]


def test_factors_of_groups_are_no_factors_of_channels_for_ncnn(tmp_path: Path) -> None:
    place = tmp_path / "model.onnx"
    model = onnx.parser.parse_model("""<ir_version: 8, opset_import: ["" : 18]>
        g (float[1,4,3,3] X) => (float Y) <float[2] C = {1, 2}>
        { Y = GroupNormalization <num_groups = 2> (X, C, C) }""")
    onnx.save(model, place)
    padfix.convert(place, tmp_path / "out.onnx", target="ncnn")
    assert not padfix.check(tmp_path / "out.onnx", target="ncnn").findings


@pytest.mark.parametrize("target", ["ncnn", "mnn"])
def test_steps_of_channels_and_their_ties_are_rounded_as_bytes_are(target: str, tmp_path: Path) -> None:
    place = tmp_path / "model.onnx"
    model = onnx.parser.parse_model("""<ir_version: 8, opset_import: ["" : 13]>
        g (float[2,3,40] X) => (float Y) <float[3] s = {0.5, 0.3, 2}, int8[3] z = {-3, -3, -3}>
        { q = QuantizeLinear <axis = 1> (X, s, z) Y = DequantizeLinear <axis = -2> (q, s, z) }""")
    onnx.save(model, place)
    padfix.convert(place, tmp_path / "out.onnx", target=target)
    data = {"X": np.arange(-120, 120, dtype=np.float32).reshape(2, 3, 40) / 4 * np.float32(5)}
    before, after = (
        onnxruntime.InferenceSession(each, providers=["CPUExecutionProvider"]).run(None, data)[0]
        for each in (place, tmp_path / "out.onnx")
    )
    np.testing.assert_array_equal(before, after)


@pytest.mark.parametrize(
    ("text", "operators"),
    [
        ("(int8[1,2,3,4] X) => (int8 Y) { Y = Pad (X, pads, seven) }", None),
        ("(bool[2,3] C, int8[2,3] X) => (int8 Y) { Y = Where (C, X, seven) }", ["Cast", "Where", "Cast"]),
        ("(int8[4,3] X, int64[2,1] I) => (int8 Y) { Y = ScatterND (X, I, rows) }", ["Cast", "ScatterND", "Cast"]),
        ("(int8[4,3] X) => (int8 Y) { Y = Mod (X, seven) }", ["Cast", "Mod", "Cast"]),
        ("(int8[2,3] X) => (bool Y) { Y = Equal (X, rows) }", ["Cast", "Equal"]),
        ("(int8[2,3] X) => (bool Y) { g = Greater (X, rows) e = Equal (X, rows) Y = Or (g, e) }", None),
        ("(float[2,3] X) => (uint8 Y) { Y = Cast <to = 2> (X) }", ["Max", "Cast"]),
        ("(bool[2,3] X) => (uint8 Y) { Y = Cast <to = 2> (X) }", ["Cast", "Cast"]),
        ("(float[2,3] X) => (uint8 Y) { r = Relu (X) Y = Cast <to = 2> (r) }", ["Relu", "Cast"]),
    ],
)
def test_bytes_beside_constants_are_held_by_other_numbers_for_mnn(
    text: str, operators: list[str] | None, tmp_path: Path
) -> None:
    constants = "<int64[8] pads = {0, 0, 1, 1, 0, 0, 2, 2}, int8 seven = {7}, int8[2,3] rows = {1, 2, 3, 4, 5, 6}>"
    place, result = tmp_path / "model.onnx", tmp_path / "out.onnx"
    text = text.replace(") {", f") {constants} {{", 1)
    onnx.save(onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : 17]> g {text}'), place)
    padfix.convert(place, result, target="mnn")
    assert not padfix.check(result, target="mnn").findings
    found = [node.op_type for node in onnx.load(result).graph.node]
    assert operators is None or [each for each in found if each in operators] == operators


@pytest.mark.parametrize(
    "nodes",
    [
        "q = QuantizeLinear (X, steps, mid) r = Reshape (q, S) Y = DequantizeLinear (r, wide, mid)",
        "Y = QuantizeLinear (X, steps, mid)",
    ],
)
def test_bytes_that_are_read_as_bytes_are_declined(nodes: str, tmp_path: Path) -> None:
    gives = "uint8" if nodes.startswith("Y") else "float"
    with pytest.raises(RefusedError, match="No equal form"):
        padfix.convert(saved(nodes, tmp_path, gives=gives), tmp_path / "out.onnx", target="ncnn")


@pytest.mark.parametrize(
    ("nodes", "is_apart"),
    [
        ("c = ConvTranspose <kernel_shape = [3, 3, 3], strides = [1, 1, 1]> (V, W) Y = Relu (c)", True),
        ("c = Conv <kernel_shape = [3, 3, 3], strides = [1, 1, 1]> (V, W) Y = Clip (c, none, six)", True),
        ("c = Conv <kernel_shape = [3, 3, 3], strides = [1, 1, 1]> (V, W) Y = Clip (c, none, five)", False),
        ("c = Conv <kernel_shape = [3, 3, 3], strides = [1, 1, 1]> (V, W) r = Relu (c) Y = Neg (r)", False),
    ],
)
def test_a_relu_behind_a_volume_keeps_the_name_of_a_result_for_mnn(nodes: str, is_apart: bool, tmp_path: Path) -> None:
    source, result = tmp_path / "model.onnx", tmp_path / "out.onnx"
    held = f"float[1,1,3,3,3] W = {{{', '.join(map(str, range(-13, 14)))}}}, float none = {{0}}, float five = {{5}}, "
    text = f"g (float[1,1,4,5,6] V) => (float Y) <{held} float six = {{6}}> {{ {nodes} }}"
    onnx.save(onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : 13]> {text}'), source)
    padfix.convert(source, result, target="mnn")
    assert ("Identity" in [each.op_type for each in onnx.load(result).graph.node]) is is_apart


def test_a_slice_of_data_of_unknown_rank_goes_forwards(tmp_path: Path) -> None:
    place = tmp_path / "model.onnx"
    model = onnx.parser.parse_model("""<ir_version: 8, opset_import: ["" : 17]>
        g (float[n] X, int64[m] S) => (float[p] Y) <int64[1] a = {-1}, int64[1] b = {9}, int64[1] c = {0}>
        { r = Reshape (X, S) s = Slice (r, a, b, c) Y = Reshape (s, a) }""")
    onnx.save(model, place)
    assert not [each for each in padfix.check(place, target="mnn").findings if each.op_type == "Slice"]


@pytest.mark.parametrize(
    ("nodes", "is_refused"),
    [
        ("t = Transpose <perm = [0, 4, 1, 2, 3]> (X) Y = MaxPool <kernel_shape = [2, 2, 2]> (t)", False),
        ("t = Transpose <perm = [0, 4, 1, 2, 3]> (X) r = Tanh (t) Y = GlobalAveragePool (r)", False),
        ("t = Transpose <perm = [0, 4, 1, 2, 3]> (X) Y = Relu (t)", True),
    ],
)
def test_images_behind_a_turned_volume_tell_ncnn_its_batch(nodes: str, is_refused: bool, tmp_path: Path) -> None:
    text = f'<ir_version: 8, opset_import: ["" : 17]> g (float[2,4,6,5,3] X) => (float[M,N,O,P,Q] Y) {{ {nodes} }}'
    onnx.save(onnx.parser.parse_model(text), tmp_path / "model.onnx")
    found = [each.node for each in padfix.check(tmp_path / "model.onnx", target="ncnn").findings]
    assert bool(found) == is_refused


@pytest.mark.parametrize(
    ("nodes", "expected"),
    [
        ("Y = Transpose <perm = [0, 4, 1, 2, 3]> (X)", ["MaxPool", "Transpose"]),
        ('Y = Resize <mode = "linear"> (X, , z)', ["MatMul", "MatMul", "MatMul", "MaxPool"]),
        ('Y = Resize <mode = "nearest", nearest_mode = "floor"> (X, , z)', ["MatMul", "MatMul", "MatMul", "MaxPool"]),
        (
            "Y = LpPool <kernel_shape = [2, 3, 1], pads = [1, 0, 0, 0, 1, 0], dilations = [2, 1, 1]> (X)",
            ["MatMul", "MatMul", "MaxPool", "Sqrt"],
        ),
    ],
)
def test_volumes_go_by_products_and_a_pool_tells_ncnn_their_batch(
    nodes: str, expected: list[str], tmp_path: Path
) -> None:
    source, result = tmp_path / "model.onnx", tmp_path / "out.onnx"
    text = f"""<ir_version: 8, opset_import: ["" : 18]> g (float[2,4,6,5,3] X) => (float[M,N,O,P,Q] Y)
        <float[5] z = {{1, 1, 1.5, 2, 0.4}}>
        {{ {nodes} }}"""
    onnx.save(onnx.parser.parse_model(text), source)
    report = padfix.convert(source, result, target="ncnn")
    assert report.verdict is not None
    assert report.verdict.equivalent
    assert not padfix.check(result, target="ncnn").findings
    found = {each.op_type for each in onnx.load(result).graph.node}
    assert set(expected) <= found


def test_a_turned_volume_has_a_convolution_behind_it_where_a_runtime_pools_no_volumes(tmp_path: Path) -> None:
    text = """<ir_version: 8, opset_import: ["" : 17]> g (float[2,4,6,5,3] X) => (float[2,3,4,6,5] Y)
        { Y = Transpose <perm = [0, 4, 1, 2, 3]> (X) }"""
    onnx.save(onnx.parser.parse_model(text), tmp_path / "model.onnx")
    padfix.convert(tmp_path / "model.onnx", tmp_path / "out.onnx", target="portable")
    assert [each.op_type for each in onnx.load(tmp_path / "out.onnx").graph.node] == ["Transpose", "Conv"]


def test_sizes_for_several_images_become_scales_for_ncnn(tmp_path: Path) -> None:
    text = """<ir_version: 8, opset_import: ["" : 17]> g (float[2,3,5,4] X) => (float[2,3,10,8] Y)
     <int64[4] S = {2, 3, 10, 8}>
     { Y = Resize <coordinate_transformation_mode = "asymmetric", nearest_mode = "floor"> (X, , , S) }"""
    onnx.save(onnx.parser.parse_model(text), tmp_path / "model.onnx")
    padfix.convert(tmp_path / "model.onnx", tmp_path / "out.onnx", target="ncnn")
    (node,) = onnx.load(tmp_path / "out.onnx").graph.node
    assert [bool(each) for each in node.input] == [True, False, True]


@pytest.mark.parametrize(("version", "opset"), [(14, 17), (14, 28), (13, 17)])
def test_ncnn_is_given_no_file_newer_than_its_converter(version: int, opset: int, tmp_path: Path) -> None:
    text = f"""<ir_version: {version}, opset_import: ["" : {opset}]> g (float[1,2,3,4] X) => (float[1,2,3,4] Y) {{
        A = Relu (X) Y = Sin (A) }}"""
    onnx.save(onnx.parser.parse_model(text), tmp_path / "model.onnx")
    padfix.convert(tmp_path / "model.onnx", tmp_path / "out.onnx", target="ncnn")
    assert onnx.load(tmp_path / "out.onnx").ir_version == 13
    assert not padfix.check(tmp_path / "out.onnx", target="ncnn").findings


@pytest.mark.parametrize(
    ("nodes", "found"),
    [
        ('Y = Resize <mode = "linear"> (X, , by)', ["Neg", "Neg"]),
        ('Y = Resize <mode = "cubic"> (X, , , to)', ["Neg", "Neg"]),
        ('r = Relu (X) Y = Resize <mode = "linear"> (r, , by)', ["Relu", "Resize"]),
    ],
)
def test_ncnn_gets_no_resize_of_an_input_to_itself(nodes: str, found: list[str], tmp_path: Path) -> None:
    text = f"""<ir_version: 8, opset_import: ["" : 13]> g (float[1,2,7,9] X) => (float[1,2,7,9] Y)
     <float[4] by = {{1, 1, 1, 1}}, int64[4] to = {{1, 2, 7, 9}}> {{ {nodes} }}"""
    onnx.save(onnx.parser.parse_model(text), tmp_path / "model.onnx")
    padfix.convert(tmp_path / "model.onnx", tmp_path / "out.onnx", target="ncnn")
    assert [node.op_type for node in onnx.load(tmp_path / "out.onnx").graph.node] == found


@pytest.mark.parametrize(
    ("images", "value", "found"), [(1, 0, ["Pad"]), (2, 0, ["Pad"]), (1, 0.5, ["Pad", "Add"]), (2, 0.5, ["Pad", "Add"])]
)
def test_ncnn_pads_halves_with_no_value(images: int, value: float, found: list[str], tmp_path: Path) -> None:
    text = f"""<ir_version: 8, opset_import: ["" : 13]> g (float16[{images},3,5,6] X) => (float16[{images},3,7,9] Y)
     <int64[8] p = {{0, 0, 2, 0, 0, 0, 0, 3}}> {{ Y = Pad <mode = "constant"> (X, p, v) }}"""
    model = onnx.parser.parse_model(text)
    model.graph.initializer.append(onnx.numpy_helper.from_array(np.array(value, np.float16), "v"))
    onnx.save(model, tmp_path / "model.onnx")
    padfix.convert(tmp_path / "model.onnx", tmp_path / "out.onnx", target="ncnn")
    result = onnx.load(tmp_path / "out.onnx")
    assert [node.op_type for node in result.graph.node] == found
    assert not any(any(node.input[2:]) for node in result.graph.node)
    assert not padfix.check(tmp_path / "out.onnx", target="ncnn").findings


@pytest.mark.parametrize(("end", "kind"), [(2**63 - 1, "value"), (2**31, "value"), (2**31 - 1, "value_ints")])
def test_whole_numbers_beyond_32_bits_are_a_tensor_for_mnn(end: int, kind: str, tmp_path: Path) -> None:
    nodes = f"e = Constant <value_ints = [{end}]> () Y = Slice (X, o, e, ax)"
    padfix.convert(saved(nodes, tmp_path), tmp_path / "out.onnx", target="mnn")
    (constant, _) = onnx.load(tmp_path / "out.onnx").graph.node
    assert [each.name for each in constant.attribute] == [kind]
