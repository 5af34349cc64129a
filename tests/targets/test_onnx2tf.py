"""What onnx2tf refuses or gets wrong, and the form in which it is right, or that there is none."""

from __future__ import annotations

from pathlib import Path

import onnx
import onnx.parser
import pytest

import padfix
from padfix.errors import RefusedError

TEXT = """
<ir_version: 8, opset_import: ["" : 13]> g (float[1,2,4,4] X, float[1,2,4,4,4] V, float[1,4,4] Q,
 float[3,3] S, float[4,4] S4, float[1,2,2,3] T, float[8,4] Q2, int64[2,3] H) => (%s Y)
<float[1,2,1,1] C = {1, 2}, float[4] L = {1, 2, 3, 4},
 float[4,4] M = {1, 2, 3, 4, 5, 6, 7, 8, 9, 8, 7, 6, 5, 4, 3, 2}, float[4,1] B = {1, 2, 3, 4}, float[1] O = {0.5},
 int64[1] E = {-1}, int64[1] F = {-9}, int64[1] A = {2}, int64[1,2] I = {1, 0}, int64 axis = {3},
 int64[3] J = {3, 2, 2}, int64 D = {5}, float[2] VV = {0, 1}, int64[3] F4 = {2, 4, 4}, int64[2] F2 = {8, 4},
 int64[4] X4 = {1, 2, 4, 4},
 int64[8] P = {0, 0, 1, 0, 0, 0, 0, 2}, float v = {1.5}, int64[4] R = {1, 4, 2, 4},
 int64[1,1,2,3] G = {1, 0, 0, 1, 0, 1}, float[1,1,2,3] N = {7, 8, 9, 1, 2, 3},
 float[4,2,1,1] W = {1, 2, 3, 4, 5, 6, 7, 8},
 float[1,2,4,4] K = {1, 2, 3, 4, 5, 6, 7, 8, 9, 8, 7, 6, 5, 4, 3, 2, 1, 2, 3, 4, 5, 6, 7, 8, 9, 8, 7, 6, 5, 4, 3, 2}>
{ %s }
"""


def saved(node: str, folder: Path) -> Path:
    place, kind = folder / "model.onnx", "bool" if node.startswith("Less") else "float"
    onnx.save(onnx.parser.parse_model(TEXT % (kind, node if " Y = " in node else f"Y = {node}")), place)
    return place


@pytest.mark.sweep(2)
@pytest.mark.parametrize(
    ("node", "expected"),
    [
        ("Sum (X, C)", ["Add"]),
        ("Sum (X, X)", ["Sum"]),
        ("Slice (X, E, F, A, E)", ["Gather"]),
        ("Less (S, S)", ["Less"]),
        ("c = Conv (X, W) Y = Clip (c, v)", ["Clip", "Conv", "Neg", "Neg"]),
        ("c = Conv (X, W) r = Relu (c) Y = Max (r, O)", ["Conv", "Min", "Neg", "Neg", "Relu"]),
        ("c = Conv (X, W) s = Sigmoid (c) Y = Max (s, O)", ["Conv", "Max", "Sigmoid"]),
        ("Max (X, O)", ["Max"]),
        ("p = ArgMin <axis = 3> (X) Y = Cast <to = 1> (p)", ["ArgMin", "Cast"]),
        ("MaxPool <kernel_shape = [2, 2, 2]> (V)", ["MaxPool", "MaxPool"]),
        ("Transpose <perm = [3, 1, 0, 2]> (X)", ["Gather"]),
        ("Transpose (S)", ["Gather"]),
        ("Unsqueeze (X, A)", []),
        ("GatherElements <axis = 1> (T, G)", ["Gather"]),
        ("ScatterElements <axis = 1> (T, G, N)", ["ScatterElements"]),
        ("Squeeze (T)", []),
        ("Gather <axis = 1> (X, I)", ["Gather"]),
        ("MatMul (X, M)", ["MatMul"]),
        ("MatMul (M, X)", ["Gather", "Gather", "MatMul"]),
        ("MatMul (X, L)", ["MatMul"]),
        ("CumSum (X, axis)", ["MatMul"]),
        ("Add (X, B)", ["Add"]),
        ("Mul (X, O)", ["Mul"]),
        ("Sub (O, X)", ["Add", "Neg"]),
        ("Pad (X, P, v)", ["Add", "Pad"]),
        ("ReduceMax <axes = [1, 2]> (X)", ["ReduceMax", "ReduceMax"]),
        ("ReduceMax <axes = [0], keepdims = 0> (T)", ["ReduceMax"]),
        ("Z = Reshape (X, R) Y = ConvTranspose <kernel_shape = [1, 1]> (Z, W)", ["Conv", "ConvTranspose"]),
        ("Z = Softmax (X) Y = Sub (K, Z)", ["Neg", "Softmax", "Sub"]),
        ("Erf (X)", ["Add"] * 7 + ["Clip"] + ["Mul"] * 9 + ["Tanh"]),
        ("MaxPool <kernel_shape = [2, 2], dilations = [2, 2]> (X)", ["Gather", "Gather", "MaxPool"]),
        ("a = Constant <value = int64[1] {1}> () Y = Slice (X, a, A, A)", ["Slice"]),
        ("a = Constant <value = float {2}> () Y = Mul (X, a)", ["Mul"]),
        ("p = Pow (v, v) Y = Mul (X, p)", ["Mul"]),
        ("OneHot (H, D, VV)", ["Equal", "Equal", "Where", "Where"]),
        ("p = Neg (L) Y = Add (X, p)", ["Sub"]),
        ("Z = Reshape (Q2, F4) a = Tanh (Z) b = Reshape (a, F2) Y = Neg (b)", ["Neg", "Tanh"]),
        ("Z = Reshape (Q2, F4) Y = Softmax <axis = 1> (Z)", ["Gather", "Gather", "Softmax"]),
        ("Softmax <axis = 2> (X)", ["Gather", "Gather", "Softmax"]),
        ("Hardmax <axis = 2> (X)", ["ArgMax", "Cast", "Equal"]),
        ("Less (X, C)", ["Less"]),
        ("OneHot <axis = 0> (H, D, VV)", ["Equal", "Equal", "Where", "Where"]),
        ("MatMul (Q, M)", ["Conv", "MatMul"]),
        ("Tanh (Q)", ["Conv", "Tanh"]),
        ("Z = Reshape (Q2, X4) Y = Max (X, Z)", ["Max"]),
        ("Max (X, S4)", ["Max"]),
        ("Dropout (X)", ["Dropout"]),
        ("Concat <axis = 0> (S, S)", ["Concat"]),
        ("Concat <axis = -4> (T, T)", ["Concat"]),
        ("p = Abs (X) q = IsInf (p) Y = Cast <to = 1> (q)", ["Abs", "Abs", "Cast", "Greater"]),
        ("Z = Reshape (Q2, F4) Y = ReduceMax <axes = [2]> (Z)", ["ReduceMax"]),
        ("Z = Reshape (Q2, F4) m = MatMul (Z, Z) a = Reshape (m, F2) Y = Neg (a)", ["MatMul", "Neg"]),
        ("a = Constant <value = int64[1] {1}> () Z = ReduceMax <axes = [1]> (T) Y = Squeeze (Z, a)", ["ReduceMax"]),
        ("Z = ReduceMax <axes = [1]> (T) Y = Add (Z, C)", ["Add", "ReduceMax"]),
        ('Einsum <equation = "abcd,abed->abce"> (X, X)', ["MatMul", "Transpose"]),
        ("Z = Transpose <perm = [0, 2, 3, 1]> (T) Y = Reciprocal (Z)", ["Pow", "Transpose"]),
        ("Z = Transpose <perm = [0, 2, 3, 1]> (T) Y = Div (v, Z)", ["Mul", "Pow", "Transpose"]),
        ("Z = Transpose <perm = [0, 2, 3, 1]> (T) Y = Sub (v, Z)", ["Neg", "Sub", "Transpose"]),
        ("Z = Softmax (X) Y = Div (K, Z)", ["Mul", "Pow", "Softmax"]),
        ("Mod <fmod = 1> (X, v)", ["Abs", "Mod", "Mul", "Sign"]),
        ("a = Add (X, X) Y = LRN <size = 3> (a)", ["Add", "Conv", "LRN"]),
        ("a = Add (X, v) b = Relu (a) Y = Max (b, X)", ["Add", "Conv", "Max", "Relu"]),
        ("a = Add (T, T) Y = Concat <axis = 1> (a, T)", ["Add", "Concat", "Conv"]),
        ("a = Add (X, v) l = Less (a, X) Y = Where (l, a, X)", ["Add", "Less", "Where"]),
    ],
)
def test_a_form_is_written(node: str, expected: list[str], tmp_path: Path) -> None:
    result = tmp_path / "result.onnx"
    padfix.convert(saved(node, tmp_path), result, target="onnx2tf")
    left_out = {"Constant", "Reshape", "Unsqueeze", "Squeeze"}
    assert sorted(each.op_type for each in onnx.load(result).graph.node if each.op_type not in left_out) == expected
    assert not {each.rule for each in padfix.check(result, target="onnx2tf").findings} & {"PF111", "PF306"}


@pytest.mark.parametrize(
    "node",
    [
        "Transpose (Q)",
        "Add (Q, M)",
        "U = Reshape (T, J) Y = MaxPool <kernel_shape = [2]> (U)",
    ],
)
def test_what_has_no_form_is_declined(node: str, tmp_path: Path) -> None:
    with pytest.raises(RefusedError, match="No equal form is known to be right on onnx2tf"):
        padfix.convert(saved(node, tmp_path), tmp_path / "result.onnx", target="onnx2tf")


def test_weights_that_old_files_list_among_the_inputs_are_constants(tmp_path: Path) -> None:
    weights = onnx.helper.make_tensor("W", 1, [16, 4, 3, 3], [0.5] * 576)
    given = [onnx.helper.make_tensor_value_info("X", 1, [1, 4, 8, 7])]
    given.append(onnx.helper.make_tensor_value_info("W", 1, weights.dims))
    result = onnx.helper.make_tensor_value_info("Y", 1, [1, 16, 6, 5])
    node = onnx.helper.make_node("Conv", ["X", "W"], ["Y"], kernel_shape=[3, 3])
    graph = onnx.helper.make_graph([node], "g", given, [result], [weights])
    imports = [onnx.helper.make_opsetid("", 13)]
    for ir_version, expected in ((3, {"PF303"}), (8, {"PF111"})):
        model = onnx.helper.make_model(graph, opset_imports=imports, ir_version=ir_version)
        onnx.save(model, tmp_path / "model.onnx")
        found = padfix.check(tmp_path / "model.onnx", target="onnx2tf").findings
        assert {each.rule for each in found} == expected


def test_places_of_any_number_of_images_are_put_in_order(tmp_path: Path) -> None:
    text = "g (float[N,3,7,6] X, float[N,5,4,2] G) => (float[N,3,5,4] Y) { Y = GridSample (X, G) }"
    onnx.save(onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : 16]> {text}'), tmp_path / "model.onnx")
    padfix.convert(tmp_path / "model.onnx", tmp_path / "result.onnx", target="onnx2tf")
    nodes = onnx.load(tmp_path / "result.onnx").graph.node
    assert [each.op_type for each in nodes] == ["Reshape", "GridSample"]


def test_axes_longer_than_those_of_a_trial_are_written(tmp_path: Path) -> None:
    text = "g (float[1,3,7,9] X, float[7,9] M) => (float[1,3,7,9] Y) { Y = Max (X, M) }"
    onnx.save(onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : 16]> {text}'), tmp_path / "model.onnx")
    padfix.convert(tmp_path / "model.onnx", tmp_path / "result.onnx", target="onnx2tf")
    assert onnx.load(tmp_path / "result.onnx").graph.node[-1].op_type == "Max"


def test_constants_that_nodes_give_stand_in_the_way_of_no_other_form(tmp_path: Path) -> None:
    norm = "s = Constant <value = float[2] {1, 1}> () Y = InstanceNormalization (Z, s, s)"
    text = f"g (float[1,4,17] X) => (float[1,2,34] Y) <int64[3] R = {{0, 2, -1}}> {{ Z = Reshape (X, R) {norm} }}"
    onnx.save(onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : 17]> {text}'), tmp_path / "model.onnx")
    padfix.convert(tmp_path / "model.onnx", tmp_path / "result.onnx", target="onnx2tf")
    nodes = onnx.load(tmp_path / "result.onnx").graph.node
    assert [each.op_type for each in nodes] == ["Reshape", "Conv", "InstanceNormalization"]


def test_an_open_number_of_images_is_copied(tmp_path: Path) -> None:
    text = "g (float[N,4,6,6] X) => (float[N,6,6] Y) { Y = ReduceL2 <axes = [1], keepdims = 0> (X) }"
    onnx.save(onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : 13]> {text}'), tmp_path / "model.onnx")
    padfix.convert(tmp_path / "model.onnx", tmp_path / "result.onnx", target="onnx2tf")
    assert not padfix.check(tmp_path / "result.onnx", target="onnx2tf").findings


@pytest.mark.parametrize(
    ("graph", "expected"),
    [
        (
            (
                "(float[2,3,2,3] X, int64[2,3,2,3] I) => (float[2,3,4,6] Y) "
                "{ Y = MaxUnpool <kernel_shape = [2, 2], strides = [2, 2]> (X, I) }"
            ),
            ["Reshape", "Reshape", "Reshape", "ScatterElements"],
        ),
        (
            (
                "(float[1,3,4,5] X, float[2] U) => (float[1,3,4,5] Y) <int64[2,4] I = {0, 1, 2, 3, 0, 2, 0, 1}> "
                "{ Y = ScatterND (X, I, U) }"
            ),
            ["Reshape", "ScatterND"],
        ),
        (
            (
                "(float[3,5,2] X) => (float[3,5,2] Y) <int64[3] L = {2, 5, 3}> "
                "{ Y = ReverseSequence <batch_axis = 0, time_axis = 1> (X, L) }"
            ),
            ["Gather", "Reshape", "Reshape"],
        ),
        ("(float[n,3,4,5] X) => (float[n,60] Y) { Y = Flatten (X) }", ["Reshape"]),
        (
            (
                "(float[1,1,4,4] X) => (float[1,4,4,4] Y) <float[4,1,1,1] K = {1, 2, 3, 4}> "
                "{ c = Conv (X, K) Y = Transpose <perm = [0, 2, 3, 1]> (c) }"
            ),
            ["Conv", "Gather", "Reshape", "Reshape"],
        ),
        (
            (
                "(float[1,1,3,4] X) => (float[1,6,6,8] Y) "
                "<float[6,1,1,1] K = {1, 2, 3, 4, 5, 6}, float[4] S = {1, 1, 2, 2}> "
                '{ c = Conv (X, K) Y = Resize <mode = "cubic"> (c, , S) }'
            ),
            ["Conv", "MatMul", "MatMul", "Reshape", "Reshape", "Reshape", "Reshape"],
        ),
    ],
)
def test_what_reads_axes_of_images_otherwise(graph: str, expected: list[str], tmp_path: Path) -> None:
    onnx.save(onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : 13]> g {graph}'), tmp_path / "model.onnx")
    padfix.convert(tmp_path / "model.onnx", tmp_path / "result.onnx", target="onnx2tf")
    nodes = onnx.load(tmp_path / "result.onnx").graph.node
    assert sorted(each.op_type for each in nodes if each.op_type != "Constant") == expected
