"""Functions by their definition, Einsum, triangles, products along axes, and indices that are counted from the end."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnx.parser
import pytest

import padfix
from tests.support.one_node import run

MATRICES = "(float[2,3,4] X, float[2,5,4] Z) => (float Y) { Y = Einsum <equation = %s> (X, Z) }"
GELU = """(float[2,5] X) => (float Y) <float s = {1.4142135}, float o = {1}, float h = {0.5}> {
  D = Div (X, s) E = Erf (D) A = Add (E, o) M = Mul (X, A) Y = Mul (M, h) }"""
PICKS = "(float[3,4] X, int64[3,2] I) => (float Y) { Y = GatherElements <axis = 1> (%s) }"


def saved(folder: Path, graph: str, opset: int = 18) -> Path:
    path = folder / "model.onnx"
    onnx.save(onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : {opset}]> g {graph}'), path)
    return path


def minded(path: Path) -> set[str]:
    return {each.rule for each in padfix.check(path, target="qnn").findings} & {"PF112", "PF306"}


def types_of(path: Path) -> list[str]:
    return [node.op_type for node in onnx.load(path).graph.node]


@pytest.mark.sweep(2)
@pytest.mark.parametrize(
    ("graph", "gone"),
    [
        *((f"(float[2,3] X) => (float Y) {{ Y = {each} (X) }}", each) for each in ("Acos", "Acosh", "Asin", "Asinh")),
        *((f"(float[2,3] X) => (float Y) {{ Y = {each} (X) }}", each) for each in ("Atanh", "Cosh", "Sinh")),
        ("(float[2,3] X) => (float Y) { Y = Shrink <lambd = 0.7, bias = 0.2> (X) }", "Shrink"),
        ("(float[2,3,4] X) => (float Y) { Y = Trilu (X) }", "Trilu"),
        ("(float[3,4] X) => (float Y) <int64 k = {-1}> { Y = Trilu <upper = 0> (X, k) }", "Trilu"),
        ("(float[3,4] X) => (float Y) { E = EyeLike <k = 1> (X) Y = Add (X, E) }", "EyeLike"),
        ("(float[2,8] X) => (float Y) <int64 n = {8}> { H = HannWindow (n) Y = Mul (X, H) }", "HannWindow"),
        ("(float[2,7,3] X) => (float Y) <int64[1] a = {1}> { Y = ReduceProd (X, a) }", "ReduceProd"),
        ("(float[2,5] X) => (float Y) { Y = ReduceProd <keepdims = 0> (X) }", "ReduceProd"),
        *((MATRICES % f'"{each}"', "Einsum") for each in ("bij,bkj->bki", "bij,bkj->ik", "bij,bkj->bikj", "bij,ckj")),
        ('(float[2,3,4] X) => (float Y) { Y = Einsum <equation = "bij->ji"> (X) }', "Einsum"),
        ('(float[3] X, float[3] Z) => (float Y) { Y = Einsum <equation = "i,i->"> (X, Z) }', "Einsum"),
        ("(float[3,4] X) => (float Y) { Y = Erf (X) }", "Erf"),
        ("(float[3,4] X, float A) => (float Y) { Y = Clip (X, A) }", "Clip"),
        ("(int64[3,4] X) => (bool Y) { Y = Cast <to = 9> (X) }", "Cast"),
        ("(int64[3,4] X) => (int64 Y) { Y = Neg (X) }", "Neg"),
        ("(int64[3,4] X) => (int64 Y) { Y = Sign (X) }", "Sign"),
        ("(float[2,5] X) => (float Y) { Y = Hardmax (X) }", "Hardmax"),
        ("(float[3,4] X) => (float Y) <float e = {2}> { Y = Pow (X, e) }", "Pow"),
        ("(float[3,4] X) => (float Y) <float e = {0.5}> { Z = Abs (X) Y = Pow (Z, e) }", "Pow"),
        ("(int64[2,3] X) => (int64 Y) <int64[4] p = {1, 0, 0, 2}, int64 v = {7}> { Y = Pad (X, p, v) }", "Pad"),
        ("(float[2,3] X) => (float Y) { Y = LpNormalization <p = 1> (X) }", "LpNormalization"),
        (
            "(float[2,4,3] X) => (float Y) <int64[2,2,1] i = {1, -2, 0, 3}> { Y = GatherND <batch_dims = 1> (X, i) }",
            "GatherND",
        ),
        ("(float[2,9] X) => (float Y) <int64[1] a = {1}> { Y = ReduceLogSumExp (X, a) }", "ReduceLogSumExp"),
        ("(float[4,3,2] X) => (float Y) <int64[3] n = {4, 2, 3}> { Y = ReverseSequence (X, n) }", "ReverseSequence"),
        ("(float[4,3] X) => (float Y) <bool[4] c = {1, 0, 1, 1}> { Y = Compress <axis = 0> (X, c) }", "Compress"),
        ("(float[3,2,5] X) => (float Y) <int64[3,1] i = {0, 2, 1}> { Y = GatherND (X, i) }", "GatherND"),
    ],
)
def test_it_is_written_by_other_operators(graph: str, gone: str, tmp_path: Path) -> None:
    source, result = saved(tmp_path, graph), tmp_path / "result.onnx"
    padfix.convert(source, result, target="qnn")
    assert gone not in types_of(result)
    assert not minded(result)


@pytest.mark.parametrize(
    ("graph", "left"),
    [
        ("(float[3,4] X, float[4,5] Z) => (float Y) { Y = Gemm <alpha = 0.5> (X, Z) }", ["MatMul", "Mul"]),
        ("(float[2,3,2,3,2] X) => (float Y) { Y = ReduceMax <axes = [2, 4]> (X) }", ["ReduceMax", "ReduceMax"]),
        ("(float[2,5] X) => (float Y) <int64 a = {1}> { Y = CumSum <exclusive = 1> (X, a) }", ["MatMul"]),
        ("(float[2,5] X) => (int64 Y) { Y = Cast <to = 7> (X) }", ["Cast", "Add"]),
        (PICKS % "X, I", ["Mod", "GatherElements"]),
        (
            "(float[3] X, int64[2] I, float[2] U) => (float Y) { Y = ScatterElements (X, I, U) }",
            ["Mod", "ScatterElements"],
        ),
    ],
)
def test_it_is_written_with_less(graph: str, left: list[str], tmp_path: Path) -> None:
    source, result = saved(tmp_path, graph, 13), tmp_path / "result.onnx"
    padfix.convert(source, result, target="qnn")
    assert types_of(result) == left
    assert not minded(result)


FALLING = "(float[2,3] X) => (float Y) { Y = %s (X) }"


@pytest.mark.parametrize("op_type", ["Exp", "Softplus", "Mish"])
def test_what_is_far_below_zero_is_taken_apart(op_type: str, tmp_path: Path) -> None:
    source, result = saved(tmp_path, FALLING % op_type), tmp_path / "result.onnx"
    padfix.convert(source, result, target="qnn")
    assert types_of(result).count("Clip") >= 2
    assert not minded(result)
    data = {"X": np.array([[-200, -120, -85], [-3, 0, 9]], np.float32)}
    np.testing.assert_allclose(run(onnx.load(result), data), run(onnx.load(source), data), rtol=1e-5, atol=0)


@pytest.mark.parametrize(
    "graph",
    [
        "(float[3,4] X, float[3,4] Z) => (float Y) { I = ArgMax <axis = 1> (Z) Y = GatherElements <axis = 1> (X, I) }",
        "(float[3,4] X) => (float Y) <int64[3,1] i = {-1, 0, 2}> { Y = GatherElements <axis = 1> (X, i) }",
        "(float[3,4] X) => (float Y) <float a = {0}, float b = {6}> { Y = Clip (X, a, b) }",
        "(float[3,4] X) => (int64 Y) { Y = ArgMax (X) }",
        MATRICES % '"bij,bkj->bik"',
        "(float[3,4] X, float[4,5] Z) => (float Y) { Y = Gemm (X, Z) }",
        GELU,
        "(float[2,3] X) => (float Y) <float a = {-50}, float b = {5}> { C = Clip (X, a, b) Y = Exp (C) }",
    ],
)
def test_it_is_right_as_it_is(graph: str, tmp_path: Path) -> None:
    assert not minded(saved(tmp_path, graph, 13))


def test_what_counts_from_the_end_is_picked_as_before(tmp_path: Path) -> None:
    source, result = saved(tmp_path, PICKS % "X, I"), tmp_path / "result.onnx"
    padfix.convert(source, result, target="qnn")
    data = {"X": np.arange(12, dtype=np.float32).reshape(3, 4), "I": np.array([[-1, 3], [-4, 0], [2, -3]])}
    np.testing.assert_array_equal(run(onnx.load(result), data), run(onnx.load(source), data))


@pytest.mark.parametrize(
    ("target", "given", "node", "written"),
    [
        ("mnn", "float[3,4] X, int64[3,2] I", "GatherElements <axis = -1> (X, I)", ["Mod", "GatherElements"]),
        ("mnn", "float[3,4] X, int32[3,2] I", "GatherElements <axis = 1> (X, I)", ["Mod", "GatherElements"]),
        ("mnn", "float[3,4] X, int64[3,2] I", "GatherND (X, I)", ["Mod", "GatherND"]),
        ("tract", "float[3,4] X, int64[3,2] I", "GatherND (X, I)", ["Mod", "GatherND"]),
        ("tract", "float[3,4] X, int64[2,1] I, float[2,4] U", "ScatterND (X, I, U)", ["Mod", "ScatterND"]),
        ("tract", "float[3,4] X, int64[3,2] I", "GatherElements <axis = 1> (X, I)", ["GatherElements"]),
        ("mnn", "float[3,N] X, int32[3,2] I", "GatherElements <axis = 1> (X, I)", ["Cast", "Add", "Mod"]),
        ("tract", "float[N,M] X, int64[3,2] I", "GatherND (X, I)", ["Shape", "Add", "Mod"]),
        ("mnn", "float[3,4] X, float[3,4] Z", "GatherElements <axis = 1> (X, A)", ["ArgMax", "GatherElements"]),
        ("mnn", "float[3,4] X, float[3,4] Z", "GatherElements <axis = 1> (X, E)", ["TopK", "GatherElements"]),
        ("mnn", "float[3,4] X, uint8[3,2] J", "GatherElements <axis = 1> (X, S)", ["Cast", "Add", "GatherElements"]),
    ],
)
def test_computed_indices_are_counted_from_the_begin(
    target: str, given: str, node: str, written: list[str], tmp_path: Path
) -> None:
    before = {
        "A)": "A = ArgMax <axis = 1> (Z)",
        "E)": "V, P = TopK <axis = 1> (Z, k) E = Expand (P, shape)",
        "S)": "J7 = Cast <to = 7> (J) S = Add (J7, one)",
    }.get(node[-2:], "")
    constants = "<int64[1] k = {1}, int64[2] shape = {3, 4}, int64 one = {1}>"
    source, result = (
        saved(tmp_path, f"({given}) => (float Y) {constants} {{ {before} Y = {node} }}"),
        tmp_path / "r.onnx",
    )
    padfix.convert(source, result, target=target)
    found = types_of(result)
    assert [each for each in found if each in written] == written
    assert ("Mod" in found) == ("Mod" in written)


PRODUCT = """(uint8[3,4] X) => (uint8 Y) <float s = {0.05}, uint8 z = {128}, uint8[4,2] w = {0, 9, 12, 99, 3, 7, 20, 8},
  float t = {0.01}, uint8 o = {127}, float r = {0.1}, uint8 p = {110}> { Y = QLinearMatMul (X, s, z, w, t, o, r, p) }"""


@pytest.mark.parametrize("target", ["qnn", "tvm"])
def test_a_product_of_bytes_is_one_of_what_they_stand_for(target: str, tmp_path: Path) -> None:
    padfix.convert(saved(tmp_path, PRODUCT), tmp_path / "result.onnx", target=target)
    assert types_of(tmp_path / "result.onnx") == ["DequantizeLinear", "DequantizeLinear", "MatMul", "QuantizeLinear"]


def test_an_image_of_columns_is_picked_by_lists(tmp_path: Path) -> None:
    graph = """(float[1,2,3,4] X) => (float Y) <int64[2,2] i = {0, 1, 1, 2}, int64[2,3] j = {0, 1, 2, 1, 2, 3}>
      { A = Gather <axis = 2> (X, i) B = Gather <axis = 4> (A, j) Y = ReduceMax <keepdims = 0> (B) }"""
    padfix.convert(saved(tmp_path, graph, 13), tmp_path / "result.onnx", target="qnn")
    assert types_of(tmp_path / "result.onnx")[:3] == ["Gather", "Reshape", "Gather"]


def test_a_pad_that_wraps_before_opset_19_is_written_for_tvm(tmp_path: Path) -> None:
    graph = '(float[1,2,3,4] X) => (float Y) <int64[8] p = {0,0,1,1,0,0,1,1}> { Y = Pad <mode = "wrap"> (X, p) }'
    padfix.convert(saved(tmp_path, graph), tmp_path / "result.onnx", target="tvm")
    assert "Pad" not in types_of(tmp_path / "result.onnx")


def test_an_attention_is_written_by_what_opset_22_has(tmp_path: Path) -> None:
    source = saved(tmp_path, "(float[1,2,4,8] X) => (float Y) { Y = Attention (X, X, X) }", 23)
    padfix.convert(source, tmp_path / "result.onnx", target="tvm")
    assert "Attention" not in types_of(tmp_path / "result.onnx")


def test_the_channels_of_a_thin_image_are_split_behind_a_flatten(tmp_path: Path) -> None:
    graph = """(float[1,4,1,1] X, float[8,4,1,1] w) => (float Y) <int64[5] s = {1, 2, 4, 1, 1}> {
      C = Conv (X, w) Y = Reshape (C, s) }"""
    padfix.convert(saved(tmp_path, graph), tmp_path / "result.onnx", target="qnn")
    assert types_of(tmp_path / "result.onnx") == ["Conv", "Flatten", "Reshape"]


def test_an_exponential_before_opset_11_is_taken_apart_in_opset_11(tmp_path: Path) -> None:
    padfix.convert(saved(tmp_path, FALLING % "Exp", 9), tmp_path / "result.onnx", target="qnn")
    assert types_of(tmp_path / "result.onnx").count("Clip") == 2


@pytest.mark.parametrize(
    ("data", "given", "axis", "constant"),
    [
        ((5, 3), (7, 3), 0, True),
        ((5, 3), (7, 3), 0, False),
        ((5,), (7,), 0, False),
        ((3, 5), (3, 8), -1, True),
        ((5, 3), (7, 2), 0, False),
        ((5, 3), (5, 3), 0, False),
    ],
)
def test_more_indices_than_data_put_into_more_rows(
    data: tuple[int, ...], given: tuple[int, ...], axis: int, constant: bool, tmp_path: Path
) -> None:
    lengths, wide = (",".join(map(str, each)) for each in (data, given))
    random = np.random.default_rng(0)
    feeds = {"X": random.normal(size=data), "U": random.normal(size=given)}
    feeds = {name: value.astype(np.float32) for name, value in feeds.items()}
    indices = random.integers(-data[axis], data[axis], given)
    told = f"<int64[{wide}] I = {{{', '.join(map(str, indices.reshape(-1)))}}}>" if constant else ""
    listed = "" if constant else f"int64[{wide}] I, "
    text = f"""(float[{lengths}] X, {listed}float[{wide}] U) => (float Y) {told} {{
        Y = ScatterElements <axis = {axis}, reduction = "add"> (X, I, U) }}"""
    source = saved(tmp_path, text)
    padfix.convert(source, tmp_path / "out.onnx", target="opencv")
    assert ("Concat" in types_of(tmp_path / "out.onnx")) == (given != data)
    assert not padfix.check(tmp_path / "out.onnx", target="opencv").findings
    if not constant:
        feeds["I"] = indices
    before, after = (run(onnx.load(path), feeds) for path in (source, tmp_path / "out.onnx"))
    np.testing.assert_allclose(after[0], before[0], atol=1e-6)


@pytest.mark.parametrize(
    ("given", "node", "written"),
    [
        ("int32[3,4]", "ArgMax <axis = 1> (X)", ["ReduceMax", "Equal", "Cast", "ArgMax"]),
        ("int64[N,3,4]", "ArgMin <axis = -2, keepdims = 0> (X)", ["ReduceMin", "Equal", "Cast", "ArgMax"]),
        ("int8[3,4]", "ArgMin <axis = 0, select_last_index = 1> (X)", ["ReduceMin", "Equal", "Cast", "Mul", "ArgMax"]),
        ("float[3,4]", "ArgMin <axis = 0> (X)", ["ArgMin"]),
    ],
)
def test_places_of_integers_are_those_of_what_equals_the_extreme(
    given: str, node: str, written: list[str], tmp_path: Path
) -> None:
    source, result = saved(tmp_path, f"({given} X) => (int64 Y) {{ Y = {node} }}", 13), tmp_path / "r.onnx"
    padfix.convert(source, result, target="mnn")
    assert [each for each in types_of(result) if each not in ("Squeeze", "Constant")] == written


@pytest.mark.parametrize(
    ("given", "nodes", "turned"),
    [
        (
            "float[N,4,9,4]",
            "R = GlobalMaxPool (X) S = Add (X, R) B = Conv (S, w) Y = Transpose <perm = [0, 3, 1, 2]> (B)",
            2,
        ),
        ("float[1,4,4,9]", "T = Transpose <perm = [0, 2, 3, 1]> (X) Y = Conv (T, w)", 2),
        ("float[1,4,4,9]", "T = Transpose <perm = [0, 2, 3, 1]> (X) Y = Relu (T)", 1),
        ("float[2,4,9,4]", "B = Conv (X, w) Y = Transpose <perm = [0, 3, 1, 2]> (B)", 1),
        ("float[1,4,9,5]", "B = Conv (X, w) Y = Transpose <perm = [0, 3, 1, 2]> (B)", 1),
        ("float[1,4,9,4]", "B = Conv (X, w) Y = Transpose <perm = [0, 2, 3, 1]> (B)", 1),
    ],
)
def test_one_image_is_turned_against_the_order_of_its_layers_in_two_steps(
    given: str, nodes: str, turned: int, tmp_path: Path
) -> None:
    weights = "<float[4,4,1,1] w = {1, 0, 2, 0, 0, 1, 0, 0, 3, 0, 1, 0, 0, 0, 4, 1}>"
    source = saved(tmp_path, f"({given} X) => (float Y) {weights} {{ {nodes} }}", 13)
    padfix.convert(source, tmp_path / "r.onnx", target="mnn")
    assert types_of(tmp_path / "r.onnx").count("Transpose") == turned


@pytest.mark.parametrize(
    ("given", "node", "written"),
    [
        ("float[N,1] X, float[1,4] Z", "Greater (X, Z)", ["Max", "Greater"]),
        ("float[3,1] X, float[4] Z", "GreaterOrEqual (X, Z)", ["Min", "GreaterOrEqual"]),
        ("float[3,1] X, float[1,4] Z", "LessOrEqual (X, Z)", ["Max", "LessOrEqual"]),
        ("float[2,1,4] X, float[1,3,1] Z", "Less (X, Z)", ["Max", "Greater"]),
        ("float[3,1] X, float[1,4] Z", "Equal (X, Z)", ["Min", "Max", "LessOrEqual"]),
        ("float[3,4] X, float[3,1] Z", "Greater (X, Z)", ["Greater"]),
        ("int32[3,1] X, int32[1,4] Z", "Greater (X, Z)", ["Greater"]),
        ("float[A,B] X, float[C,D] Z", "Greater (X, Z)", ["Max", "Greater"]),
    ],
)
def test_floats_that_are_both_broadcast_are_compared_by_their_extremes(
    given: str, node: str, written: list[str], tmp_path: Path
) -> None:
    source, result = saved(tmp_path, f"({given}) => (bool Y) {{ Y = {node} }}", 13), tmp_path / "r.onnx"
    padfix.convert(source, result, target="mnn")
    found = types_of(result)
    assert [each for each in found if each in ("Max", "Min", "Greater", "GreaterOrEqual", "LessOrEqual")] == written


@pytest.mark.parametrize(
    ("lengths", "maps", "number"),
    [("1,3,W", "6,1,3", 4), ("N,3,W", "6,1,3", 4), ("N,3,8", "6,1,3", 2), ("N,3,W", "3,1,3", 2)],
)
def test_several_maps_of_each_channel_of_open_lines_are_of_a_plane(
    lengths: str, maps: str, number: int, tmp_path: Path
) -> None:
    numbers = ", ".join(map(str, range(int(maps[0]) * 3)))
    text = f"""(float[{lengths}] X) => (float Y) <float[{maps}] w = {{{numbers}}}> {{
      a = Abs (X) c = Conv <group = 3, pads = [1, 1]> (a, w) Y = Tanh (c) }}"""
    padfix.convert(saved(tmp_path, text, 13), tmp_path / "r.onnx", target="mnn")
    nodes = onnx.load(tmp_path / "r.onnx").graph.node
    pads = [
        list(each.ints) for node in nodes if node.op_type == "Conv" for each in node.attribute if each.name == "pads"
    ]
    assert [len(each) for each in pads] == [number]


@pytest.mark.parametrize("zero", ["0", "5"])
@pytest.mark.parametrize("node", ["ConvInteger (X, w, , z)", "MatMulInteger (X, w, , z)"])
def test_a_zero_point_that_is_left_out_before_another_is_written(node: str, zero: str, tmp_path: Path) -> None:
    weights = "uint8[1,2,1,1] w = {7, 9}" if node.startswith("Conv") else "uint8[2,1] w = {7, 9}"
    shape = "1,2,3,2" if node.startswith("Conv") else "3,2"
    text = f"(uint8[{shape}] X) => (int32 Y) <{weights}, uint8 z = {{{zero}}}> {{ Y = {node} }}"
    source, result = tmp_path / "model.onnx", tmp_path / "result.onnx"
    onnx.save(onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : 17]> g {text}'), source)
    padfix.convert(source, result, target="openvino")
    assert all(onnx.load(result).graph.node[-1].input)


@pytest.mark.parametrize("opset", [7, 9])
def test_an_older_slice_has_its_axes_from_the_begin(opset: int, tmp_path: Path) -> None:
    text = "(float[2,3,4] X) => (float[2,2,1] Y) { Y = Slice <axes = [-1, 1], starts = [1, 0], ends = [2, -1]> (X) }"
    source, result = tmp_path / "model.onnx", tmp_path / "result.onnx"
    onnx.save(onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : {opset}]> g {text}'), source)
    padfix.convert(source, result, target="tract")
    (node,) = onnx.load(result).graph.node
    assert {each.name: list(each.ints) for each in node.attribute}["axes"] == [2, 1]


@pytest.mark.parametrize("opset", [10, 13])
def test_a_scale_for_each_column_is_a_product_of_numbers(opset: int, tmp_path: Path) -> None:
    text = """(int8[2,3,2] X) => (int8[2,3,3] Y) <float s = {0.1}, int8 z = {1}, int8[2,3] w = {1, -2, 3, 4, -5, 6},
      float[3] t = {0.01, 0.02, 0.03}, int8[3] o = {1, 2, 3}> { Y = QLinearMatMul (X, s, z, w, t, o, s, z) }"""
    source, result = tmp_path / "model.onnx", tmp_path / "result.onnx"
    onnx.save(onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : {opset}]> g {text}'), source)
    padfix.convert(source, result, target="openvino")
    assert "QLinearMatMul" not in {each.op_type for each in onnx.load(result).graph.node}
