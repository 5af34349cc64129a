"""What changes a result of the model one by one, where MNN moves that before the Reshape or product that gives it."""

from __future__ import annotations

from pathlib import Path

import onnx
import onnx.parser
import pytest

import padfix

CONSTANTS = "<int64[3] shape = {2, 2, 7}, float[7,2] w = {%s}, float[2] bias = {1, 2}, float[1] slope = {0.1}>"


def written(nodes: str, given: str, results: str, folder: Path) -> list[str]:
    constants = CONSTANTS % ", ".join(map(str, range(14)))
    text = f'<ir_version: 9, opset_import: ["" : 17]> g ({given}) => ({results}) {constants} {{ {nodes} }}'
    onnx.save(onnx.parser.parse_model(text), folder / "before.onnx")
    padfix.convert(folder / "before.onnx", folder / "after.onnx", target="mnn")
    return [each.op_type for each in onnx.load(folder / "after.onnx").graph.node]


@pytest.mark.parametrize(
    ("nodes", "expected"),
    [
        ("Y = Reshape (X, shape) Z = Tanh (Y)", ["Reshape", "Mul", "Tanh"]),
        ("Y = MatMul (X, w) Z = PRelu (Y, slope)", ["MatMul", "Mul", "PRelu"]),
        ("p = MatMul (X, w) Y = Add (p, bias) r = Flatten (Y) Z = Exp (r)", ["MatMul", "Add", "Flatten", "Mul", "Exp"]),
        ("p = Gemm (X, w) Y = Relu (p) Z = Sqrt (Y)", ["Gemm", "Relu", "Mul", "Sqrt"]),
        ('Y = Einsum <equation = "ij,jk->ik"> (X, w) Z = Sin (Y)', ["Einsum", "Mul", "Sin"]),
        ("Y = Reshape (X, shape) Z = Mul (Y, Y)", ["Reshape", "Mul", "Mul"]),
        ("Y = MatMul (X, w) r = Relu (Y) Z = Mul (r, r)", ["MatMul", "Mul", "Relu", "Mul", "Mul"]),
        ("Y = Reshape (X, shape) Z = Add (Y, Y)", ["Reshape", "Add"]),
        ("p = MatMul (X, w) Y = Tanh (p) Z = Sin (p)", ["MatMul", "Tanh", "Sin"]),
        ("Y = MatMul (X, w) Z = Softmax (Y)", ["MatMul", "Softmax"]),
        ("Y = Add (X, X) Z = Relu (Y)", ["Add", "Mul", "Relu"]),
        ("s = Sub (X, slope) Y = Identity (s) Z = Relu (s)", ["Sub", "Identity", "Mul", "Relu"]),
        ("Y = Mul (X, slope) Z = LeakyRelu (Y)", ["Mul", "LeakyRelu"]),
        ("s = Max (X, slope) Y = Neg (s) Z = Relu (s)", ["Max", "Neg", "Relu"]),
    ],
)
def test_a_product_with_one_lies_between(nodes: str, expected: list[str], tmp_path: Path) -> None:
    assert written(nodes, "float[4,7] X", "float Y, float Z", tmp_path) == expected


@pytest.mark.parametrize(
    ("operator", "expected"),
    [("Relu", ["Mul", "Relu"]), ("Sin", ["Mul", "Sin"]), ("Elu", ["Elu"]), ("Identity", ["Identity"])],
)
def test_a_product_with_one_lies_behind_a_transposed_convolution_of_volumes(
    operator: str, expected: list[str], tmp_path: Path
) -> None:
    nodes = f"Y = ConvTranspose (X, w) Z = {operator} (Y)"
    constants = f"<float[1,1,7,2,1] w = {{{', '.join(map(str, range(14)))}}}>"
    given, results = "float[2,1,2,4,3] X", "float[2,1,8,5,3] Y, float[2,1,8,5,3] Z"
    text = f'<ir_version: 9, opset_import: ["" : 17]> g ({given}) => ({results}) {constants} {{ {nodes} }}'
    onnx.save(onnx.parser.parse_model(text), tmp_path / "before.onnx")
    padfix.convert(tmp_path / "before.onnx", tmp_path / "after.onnx", target="mnn")
    operators = [each.op_type for each in onnx.load(tmp_path / "after.onnx").graph.node]
    assert operators[operators.index("ConvTranspose") + 1 :] == expected


def test_the_maxima_of_volumes_are_written_for_an_empty_batch_as_well(tmp_path: Path) -> None:
    nodes = "Y = MaxPool <kernel_shape = [1, 2, 2], strides = [1, 2, 2]> (X)"
    assert written(nodes, "float[N,6,3,4,4] X", "float Y", tmp_path).count("Reshape") == 3


@pytest.mark.parametrize(
    ("nodes", "expected"),
    [
        ("s = Squeeze (X, a) Y = Clip (s, l, h)", ["Squeeze", "Clip", "Identity"]),
        ("s = Squeeze (X, a) c = Clip (s, l, h) Y = Add (c, c)", ["Squeeze", "Clip", "Add"]),
        ("s = Flatten (X) Y = Clip (s, l, h)", ["Flatten", "Clip"]),
    ],
)
def test_a_clip_that_is_a_result_behind_a_squeeze_has_an_identity_behind_it(
    nodes: str, expected: list[str], tmp_path: Path
) -> None:
    text = f"""<ir_version: 9, opset_import: ["" : 17]> g (float[2,3,1,8] X) => (float Y)
        <int64[1] a = {{2}}, float l = {{-0.5}}, float h = {{0.75}}> {{ {nodes} }}"""
    onnx.save(onnx.parser.parse_model(text), tmp_path / "before.onnx")
    padfix.convert(tmp_path / "before.onnx", tmp_path / "after.onnx", target="mnn")
    assert [each.op_type for each in onnx.load(tmp_path / "after.onnx").graph.node] == expected
