"""What most models have as constants, and others compute or are given: slopes, biases, norms, pads, and bytes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnx.parser
import pytest
from onnx import TensorProto, helper, numpy_helper

import padfix
from padfix.errors import RefusedError
from tests.support.outcomes import operators_written

OLD, NEW = "opencv@4.14", "opencv@5"
CONSTANTS = (
    "<float[2,3,1,1] w = {1, 2, 3, -1, -2, 0.5}, float[3,2,1,1] t = {1, 2, 3, -1, -2, 0.5}, float[3] k = {1, 2, 3}, "
    "int64[8] p = {0, 0, 1, 1, 0, 0, 2, 1}, uint8[1,3,1,5] bytes = {1, 2, 3, 250, 5, 6, 7, 8, 9, 128, 1, 2, 3, 4, 5}, "
    "bool yes = {1}, uint8 fill = {200}>"
)
X = "float[1,3,4,5] X"


def outcome(nodes: str, given: str, target: str, folder: Path, gives: str = "float", opset: int = 17) -> list[str]:
    """Return the operators of what is written for ``target``, which computes the same and in which nothing is found."""
    text = f"({given}) => ({gives} Y) {CONSTANTS} {{ {nodes} }}"
    return operators_written(text, target, folder, opset, least=0.2)


@pytest.mark.parametrize("target", [OLD, NEW, "ncnn"])
@pytest.mark.parametrize("slopes", ["float[3,1,1] s", "float[1,3,4,5] s"])
def test_slopes_may_be_given(slopes: str, target: str, tmp_path: Path) -> None:
    assert "PRelu" not in outcome("Y = PRelu (X, s)", f"{X}, {slopes}", target, tmp_path)


@pytest.mark.parametrize("target", ["mnn", OLD])
@pytest.mark.parametrize(
    ("nodes", "given"),
    [
        ("Y = Conv (X, w, b)", "float[2] b"),
        ("b = Neg (c) Y = Conv (X, w, b)", "float[2] c"),
        ("Y = ConvTranspose (X, t, b)", "float[2] b"),
    ],
)
def test_a_bias_may_be_given(nodes: str, given: str, target: str, tmp_path: Path) -> None:
    assert outcome(nodes, f"{X}, {given}", target, tmp_path)[-1] == "Add"
    (window,) = [each for each in onnx.load(tmp_path / "result.onnx").graph.node if each.op_type.startswith("Conv")]
    assert len(window.input) == 2


@pytest.mark.parametrize("target", ["mnn", OLD, "tract", "ncnn", "qnn"])
@pytest.mark.parametrize("numbers", ["s, k, k, k", "k, k, k, s", "s, u, k, k"])
def test_a_batch_norm_may_be_given_its_numbers(numbers: str, target: str, tmp_path: Path) -> None:
    given = f"{X}, float[3] s" + (", float[3] u" if "u" in numbers else "")
    found = outcome(f"Y = BatchNormalization (X, {numbers})", given, target, tmp_path)
    assert "BatchNormalization" not in found and found[-1] == "Add"


def test_an_instance_norm_may_be_given_its_numbers(tmp_path: Path) -> None:
    found = outcome("Y = InstanceNormalization (X, s, k)", f"{X}, float[3] s", "ncnn", tmp_path)
    assert found[-3:] == ["InstanceNormalization", "Mul", "Add"]


@pytest.mark.parametrize("target", ["openvino", "tract", OLD, "ncnn", "tvm", "qnn"])
@pytest.mark.parametrize("value", ["", "v = ReduceMin <keepdims = 0> (X) "])
def test_a_pad_may_be_given_what_it_fills_in(value: str, target: str, tmp_path: Path) -> None:
    given = X if value else f"{X}, float[1] v"
    found = outcome(f"{value}Y = Pad (X, p, v)", given, target, tmp_path)
    assert "Pad" not in found and "Concat" in found


def test_a_value_of_another_type_first_is_a_constant(tmp_path: Path) -> None:
    nodes = "c = Constant <value_float = 1.5> () v = CastLike (c, X) Y = Pad (X, p, v)"
    assert outcome(nodes, X, "tract", tmp_path)[-1] == "Pad"


@pytest.mark.parametrize("target", ["opencv", OLD, "tract"])
@pytest.mark.parametrize(
    ("nodes", "given", "gives"),
    [
        ("Y = Concat <axis = 2> (X, bytes)", "uint8[1,3,4,5] X", "uint8"),
        ("Y = Less (X, bytes)", "uint8[1,3,4,5] X", "bool"),
        ("Y = Max (X, bytes)", "uint8[1,3,4,5] X", "uint8"),
        ("Y = Pad (X, p, fill)", "uint8[1,3,4,5] X", "uint8"),
        ("b = Greater (X, V) q = Pad (b, p, yes) Y = Cast <to = 1> (q)", f"{X}, {X.replace('X', 'V')}", "float"),
    ],
)
def test_bytes_and_booleans_are_held_by_floats(nodes: str, given: str, gives: str, target: str, tmp_path: Path) -> None:
    outcome(nodes, given, target, tmp_path, gives)


def test_integers_are_resized_element_by_element_and_negated_by_a_difference(tmp_path: Path) -> None:
    text = 'r = Resize <coordinate_transformation_mode = "asymmetric", nearest_mode = "floor"> (X, , s) Y = Neg (r)'
    nodes = f"s = Constant <value: tensor = float[4] {{1, 1, 2, 2}}> () {text}"
    found = outcome(nodes, X.replace("float", "int32"), NEW, tmp_path, "int32")
    assert not {"Resize", "Neg"} & set(found)


def test_a_top_k_has_its_number_as_an_input(tmp_path: Path) -> None:
    assert outcome("Y, i = TopK <axis = 3, k = 2> (X)", X, "tract", tmp_path, opset=9)[-1] == "TopK"
    node = onnx.load(tmp_path / "result.onnx").graph.node[-1]
    assert len(node.input) == 2


def test_a_constant_is_a_tensor_for_tvm(tmp_path: Path) -> None:
    outcome("c = Constant <value_floats = [1.0, 2.0, 3.0, 4.0, 5.0]> () Y = Mul (X, c)", X, "tvm", tmp_path)
    constants = [each for each in onnx.load(tmp_path / "result.onnx").graph.node if each.op_type == "Constant"]
    assert all(attribute.name == "value" for each in constants for attribute in each.attribute)


def quantized(largest: int, kind: str, zero: int = 0) -> onnx.ModelProto:
    """Return a product or convolution of dequantized data with weights up to ``largest``, in more than one Conv."""
    random = np.random.default_rng(1)
    shape = [4, 3, 1, 1] if kind == "Conv" else [5, 6]
    weights = random.integers(-largest, largest + 1, shape).astype(np.int8)
    weights.reshape(-1)[0] = largest
    arrays = {
        "sx": np.array(0.02, np.float32),
        "zx": np.array(120, np.uint8),
        "w": weights,
        "sw": np.array(0.01, np.float32),
        "zw": np.array(zero, np.int8),
    }
    nodes = [
        helper.make_node("QuantizeLinear", ["X", "sx", "zx"], ["q"]),
        helper.make_node("DequantizeLinear", ["q", "sx", "zx"], ["d"]),
        helper.make_node("MaxPool", ["d"], ["m"], kernel_shape=[1, 1]),
        helper.make_node("DequantizeLinear", ["w", "sw", "zw"], ["f"]),
        helper.make_node(kind, ["m", "f"], ["Y"]),
    ]
    types = [
        helper.make_tensor_value_info("X", TensorProto.FLOAT, [1, 3, 4, 5]),
        helper.make_tensor_value_info(
            "Y", TensorProto.FLOAT, [1, 4 if kind == "Conv" else 3, 4, 5 if kind == "Conv" else 6]
        ),
    ]
    tensors = [numpy_helper.from_array(array, name) for name, array in arrays.items()]
    graph = helper.make_graph(nodes, "g", types[:1], types[1:], tensors)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)


@pytest.mark.parametrize("kind", ["Conv", "MatMul"])
@pytest.mark.parametrize(("largest", "zero", "cut_off"), [(127, 0, True), (64, 0, False), (127, 3, False)])
def test_weights_of_bytes_are_set_apart_where_their_sums_are_cut_off(
    kind: str, largest: int, zero: int, cut_off: bool, tmp_path: Path
) -> None:
    onnx.save(quantized(largest, kind, zero), tmp_path / "model.onnx")
    findings = padfix.check(tmp_path / "model.onnx", target="openvino").findings
    assert [each.op_type for each in findings] == ["DequantizeLinear"] * cut_off
    padfix.convert(tmp_path / "model.onnx", tmp_path / "result.onnx", target="openvino")
    nodes = onnx.load(tmp_path / "result.onnx").graph.node
    assert ("Max" in {each.op_type for each in nodes}) == cut_off
    assert not padfix.check(tmp_path / "result.onnx", target="openvino").findings


def test_scales_that_change_no_length_are_no_resize_to_onnx_runtime(tmp_path: Path) -> None:
    nodes = 'Y = Resize <mode = "linear"> (X, , s)'
    text = (
        f'<ir_version: 8, opset_import: ["" : 13]> g ({X}) => (float Y) <float[4] s = {{1, 1, 1.1, 1.1}}> {{ {nodes} }}'
    )
    onnx.save(onnx.parser.parse_model(text), tmp_path / "model.onnx")
    for target, expected in (("mnn", ["silent"]), ("openvino", [])):
        findings = padfix.check(tmp_path / "model.onnx", target=target).findings
        assert [str(each.severity) for each in findings if each.rule == "PF205"] == expected


@pytest.mark.parametrize("bounds", ["X, s", "X, , s"])
@pytest.mark.parametrize("target", [OLD, "ncnn"])
def test_bounds_may_be_computed(bounds: str, target: str, tmp_path: Path) -> None:
    nodes = f"s = ReduceMean <keepdims = 0> (X) Y = Clip ({bounds})"
    assert "Clip" not in outcome(nodes, X, target, tmp_path)


@pytest.mark.parametrize("target", ["tvm", "qnn", "tract", OLD])
def test_axes_that_data_tell_are_declined(target: str, tmp_path: Path) -> None:
    with pytest.raises(RefusedError):
        outcome("Y = ReduceMax (X, a)", f"{X}, int64[1] a", target, tmp_path, opset=18)


@pytest.mark.parametrize(("divisor", "is_written_out"), [(4, True), (3, False)])
def test_a_divisor_is_one_for_each_element_where_qnn_shifts(divisor: int, is_written_out: bool, tmp_path: Path) -> None:
    nodes = f"c = Constant <value: tensor = int32 {{{divisor}}}> () Y = Div (X, c)"
    outcome(nodes, "int32[2,3] X", "qnn", tmp_path, "int32")
    found = {tuple(each.dims) for each in onnx.load(tmp_path / "result.onnx").graph.initializer}
    assert ((2, 3) in found) == is_written_out


def test_weights_that_are_normed_are_worked_out(tmp_path: Path) -> None:
    nodes = (
        "r = Relu (k) all = ReduceSum <keepdims = 0> (r) d = Div (r, all) a, b, c = Split <axis = 0> (d) Y = Mul (X, a)"
    )
    assert outcome(nodes, X, OLD, tmp_path)[-1] == "Mul"
    assert {each.op_type for each in onnx.load(tmp_path / "result.onnx").graph.node} <= {"Constant", "Mul"}


@pytest.mark.parametrize("target", ["mnn", OLD, "openvino", "tvm"])
@pytest.mark.parametrize("op_type", ["ReduceL1", "ReduceL2", "ReduceLogSum"])
def test_what_reduces_no_axis_still_does_something_to_each_element(op_type: str, target: str, tmp_path: Path) -> None:
    outcome(f"Y = {op_type} <noop_with_empty_axes = 1> (X)", X, target, tmp_path, opset=18)


def test_mnn_makes_booleans_of_signs(tmp_path: Path) -> None:
    found = outcome("b = Cast <to = 9> (X) Y = Cast <to = 1> (b)", X, "mnn", tmp_path)
    assert {"Abs", "Sign"} <= set(found)


@pytest.mark.parametrize("equation", ["bij,bjk", "ij,jk", "ji"])
def test_mnn_is_told_the_result_of_an_equation(equation: str, tmp_path: Path) -> None:
    first, second = ("float[2,3,4] X", "float[2,4,5] B") if "b" in equation else ("float[3,4] X", "float[4,5] B")
    is_product = "," in equation
    nodes = f'Y = Einsum <equation = "{equation}"> (X{", B" if is_product else ""})'
    outcome(nodes, f"{first}, {second}" if is_product else first, "mnn", tmp_path)


def test_opencv_takes_no_share_of_doubles_for_a_softmax(tmp_path: Path) -> None:
    found = outcome("Y = Softmax (X)", "double[2,3] X", NEW, tmp_path, "double")
    assert "Reciprocal" in found and "Softmax" not in found
