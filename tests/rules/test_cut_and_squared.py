"""What is cut off behind quantizers, counted from the end behind added axes, and squared: for who joins these."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnx.parser
import pytest

import padfix
from padfix.errors import RefusedError
from tests.support.padding_models import session

HEAD = '<ir_version: 8, opset_import: ["" : 13]> g %s'
QUANTIZED = """(float[%s] X) => (%s Y) <float S = {0.05}, int8 Z = {0}, uint8 M = {128}, float L = {-0.5},
float H = {0.8}> { Q = QuantizeLinear (X, S, Z) D = DequantizeLinear (Q, S, Z) %s }"""


def converted(text: str, target: str, folder: Path) -> tuple[onnx.ModelProto, onnx.ModelProto]:
    source, result = folder / "model.onnx", folder / "result.onnx"
    model = onnx.parser.parse_model(HEAD % text)
    onnx.save(model, source)
    padfix.convert(source, result, target=target)
    assert not {each.rule for each in padfix.check(result, target=target).findings} & {"PF306"}
    return model, onnx.load(result)


def operators(model: onnx.ModelProto) -> list[str]:
    return [node.op_type for node in model.graph.node if node.op_type != "Constant"]


@pytest.mark.parametrize(
    ("target", "gives", "nodes", "expected"),
    [
        ("openvino", "float[n,6]", "Y = Clip (D, L, H)", ["Max", "Clip"]),
        ("openvino", "float[n,6]", "C = Clip (D, L) Y = Clip (C, , H)", ["Max", "Clip", "Clip"]),
        (
            "openvino",
            "float[6,n]",
            "T = Transpose (D) U = Max (T, L) Y = Min (U, H)",
            ["Transpose", "Max", "Max", "Min"],
        ),
        ("openvino", "float[n,6]", "A = Abs (D) Y = Clip (A, L, H)", ["Abs", "Clip"]),
        ("openvino", "float[n,6]", "Y = Max (D, X)", ["Max"]),
        ("tract", "float[n,6]", "B = QuantizeLinear (D, S, M) Y = DequantizeLinear (B, S, M)", ["Max", *2 * ["Q"]]),
        ("tract", "uint8[n,6]", "A = Abs (D) Y = QuantizeLinear (A, S, M)", ["Abs", "Max", "Q"]),
        ("tract", "int8[n,6]", "A = Abs (D) Y = QuantizeLinear (A, S, Z)", ["Abs", "Q"]),
        ("tract", "uint8[n,6]", "A = Relu (D) Y = QuantizeLinear (A, S, M)", ["Relu", "Q"]),
    ],
)
def test_a_maximum_keeps_what_is_quantized_apart(
    target: str, gives: str, nodes: str, expected: list[str], tmp_path: Path
) -> None:
    model, result = converted(QUANTIZED % ("n,6", gives, nodes), target, tmp_path)
    quantizers = ("QuantizeLinear", "DequantizeLinear")
    assert ["Q" if each in quantizers else each for each in operators(result)[2:]] == expected
    X = np.random.default_rng(0).standard_normal((4, 6)).astype(np.float32)
    wanted = session(model, optimised=False).run(None, {"X": X})[0]
    for each in (False, True):
        np.testing.assert_array_equal(session(result, optimised=each).run(None, {"X": X})[0], wanted)


@pytest.mark.parametrize("operator", ["ReduceL2", "ReduceMean", "ReduceSumSquare"])
@pytest.mark.parametrize(
    ("added", "axes", "expected"),
    [("Unsqueeze (X, A)", "-3", [0]), ("Unsqueeze (X, A)", "-3, -2", [0, 1]), ("Reshape (X, R)", "-2, -3", [1, 0])],
)
def test_axes_are_counted_from_the_begin_behind_added_ones(
    operator: str, added: str, axes: str, expected: list[int], tmp_path: Path
) -> None:
    text = f"""(float[3,8] X) => (float Y) <int64[1] A = {{2}}, int64[3] R = {{3,8,1}}>
    {{ T = {added} Y = {operator} <axes = [{axes}], keepdims = 0> (T) }}"""
    _, result = converted(text, "openvino", tmp_path)
    (reduction,) = [node for node in result.graph.node if node.op_type == operator]
    (listed,) = [list(each.ints) for each in reduction.attribute if each.name == "axes"]
    assert listed == expected


@pytest.mark.parametrize(
    ("given", "node", "expected"),
    [
        ("int64[n]", "Mul (X, X)", ["Max", "Mul"]),
        ("int64[n]", "Pow (X, T)", ["Max", "Mul"]),
        ("int64[2,3]", "ReduceSumSquare <axes = [1]> (X)", ["Max", "Mul", "ReduceSum"]),
        ("int32[n]", "Mul (X, X)", ["Mul"]),
        ("int64[n]", "Mul (X, T)", ["Mul"]),
    ],
)
def test_long_integers_are_squared_as_two_factors(given: str, node: str, expected: list[str], tmp_path: Path) -> None:
    gives = given.replace("2,3", "2,1")
    _, result = converted(f"({given} X) => ({gives} Y) <int64[1] T = {{2}}> {{ Y = {node} }}", "tract", tmp_path)
    assert operators(result) == expected


@pytest.mark.parametrize(
    ("inputs", "node", "expected"),
    [
        ("float[1,4] X", "Mod <fmod = 1> (X, C)", ["Expand", "Max", "Mod"]),
        ("float[n,4] X", "Mod <fmod = 1> (D, X)", ["Shape", "Expand", "Max", "Mod"]),
        ("float[n,4] X", "Mod <fmod = 1> (X, D)", ["Mod"]),
    ],
)
def test_a_dividend_has_the_whole_shape(inputs: str, node: str, expected: list[str], tmp_path: Path) -> None:
    gives = "2" if "1,4" in inputs else "n"
    text = f"""({inputs}) => (float[{gives},4] Y)
    <float[2,4] C = {{1,2,3,4,5,6,7,8}}, float[4] D = {{1,2,3,4}}> {{ Y = {node} }}"""
    model, result = converted(text, "tract", tmp_path)
    assert operators(result) == expected
    X = np.array([[1.5, 2.5, -3.5, 7]], np.float32)
    wanted = session(model, optimised=False).run(None, {"X": X})[0]
    np.testing.assert_array_equal(session(result, optimised=True).run(None, {"X": X})[0], wanted)


@pytest.mark.parametrize(
    ("nodes", "expected"),
    [
        ("P = MatMul (X, W) Y = Mul (P, S)", ["MatMul", "Squeeze", "Mul"]),
        ("P = MatMul (X, W) Y = Div (P, S)", ["MatMul", "Squeeze", "Div"]),
        ("P = MatMul (X, W) Y = Add (P, S)", ["MatMul", "Add"]),
    ],
)
def test_volumes_are_multiplied_by_a_column_before_a_number(nodes: str, expected: list[str], tmp_path: Path) -> None:
    text = f"(float[n,5,3] X) => (float[n,5] Y) <float[3] W = {{1,2,3}}, float S = {{2}}> {{ {nodes} }}"
    _, result = converted(text, "openvino", tmp_path)
    assert operators(result) == expected


@pytest.mark.parametrize(("start", "end"), [("-2", "9223372036854775807"), ("0", "2"), ("-5", "9223372036854775807")])
def test_some_of_an_open_number_of_images_are_no_elements_of_each(start: str, end: str, tmp_path: Path) -> None:
    text = f"""(float[n,2,3,3] X) => (float[m,2,3,3] Y)
    <int64[2] S = {{-1,{start}}}, int64[2] E = {{-2147483648,{end}}}, int64[2] A = {{3,0}}, int64[2] P = {{-1,1}}>
    {{ Y = Slice (X, S, E, A, P) }}"""
    with pytest.raises(RefusedError, match="how many images there are"):
        converted(text, "mnn", tmp_path)


def test_elements_of_each_image_are_picked_of_an_open_number(tmp_path: Path) -> None:
    text = """(float[n,2,3,3] X) => (float[n,2,3,3] Y)
    <int64[2] S = {-1,0}, int64[2] E = {-2147483648,9223372036854775807}, int64[2] A = {3,0}, int64[2] P = {-1,1}>
    { Y = Slice (X, S, E, A, P) }"""
    _, result = converted(text, "mnn", tmp_path)
    assert operators(result) == ["Reshape", "Gather", "Reshape"]
    X = np.random.default_rng(0).standard_normal((7, 2, 3, 3)).astype(np.float32)
    for each in (False, True):
        np.testing.assert_array_equal(session(result, optimised=each).run(None, {"X": X})[0], X[..., ::-1])
