"""What runtimes make one layer of, or keep with its channels in blocks: the forms that tell them apart."""

from __future__ import annotations

from pathlib import Path

import onnx
import onnx.parser
import pytest

import padfix

WEIGHTS = ", ".join(str(each / 90 - 0.8) for each in range(144))
CONVOLUTION = f"float[4,4,3,3] W = {{{WEIGHTS}}}"
ATTENTION = "float[1,4,1,1] V = {1, -2, 3, 0.5}"
NORM = "float[4] s = {1, -2, 3, 0.5}, float[4] v = {1, 2, 0.5, 1}"
SPREAD = f"(float[1,4,6,5] X) => (float[1,4,H,L] Y) <{CONVOLUTION}, {ATTENTION}, float one = {{1}}>"
NORMALISED = f"(float[N,4,6,5] X) => (float[N,4,H,L] Y) <{CONVOLUTION}, {NORM}, float half = {{0.5}}>"
LINES = "(float[1,2,8] X) => (float[1,2,L] Y) <float[2,1] a = {0.5, 0.25}>"


def converted(folder: Path, text: str, target: str) -> list[str]:
    """Return the operators of the converted model, which has no finding left."""
    source, result = folder / "model.onnx", folder / "result.onnx"
    onnx.save(onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : 18]> g {text}'), source)
    padfix.convert(source, result, target=target)
    assert not padfix.check(result, target=target).findings
    return [each.op_type for each in onnx.load(result).graph.node if each.op_type != "Constant"]


@pytest.mark.parametrize(
    ("nodes", "expected"),
    [
        ("g = Sigmoid (n) Y = Mul (c, g)", ["Sigmoid", "Identity", "Mul"]),
        ("Y = Add (n, c)", ["Identity", "Add"]),
        ("Y = Max (n, c)", ["Identity", "Max"]),
        ("g = Identity (n) Y = Mul (c, g)", ["Identity", "Mul"]),
        ("r = Relu (X) p = Conv (r, W) Y = Add (c, p)", ["Relu", "Conv", "Add"]),
        ("Y = Sub (c, one)", ["Sub"]),
    ],
)
def test_channels_in_blocks_are_not_spread(nodes: str, expected: list[str], tmp_path: Path) -> None:
    text = f"{SPREAD} {{ c = Conv (X, W) n = Conv (c, V) {nodes} }}"
    assert converted(tmp_path, text, "opencv@5.0.0.93")[2:] == expected
    assert converted(tmp_path, text, "opencv@4.14.0").count("Identity") == nodes.count("Identity")


@pytest.mark.parametrize(
    ("nodes", "is_apart"),
    [
        ("a = Tanh (c)", True),
        ("g = Sigmoid (c) a = Mul (c, g)", True),
        ("q = Div (c, half) e = Erf (q) f = Add (e, half) m = Mul (c, f) a = Mul (m, half)", True),
        ("a = Relu (c)", False),
        ("h = Mul (c, half) a = Sigmoid (h)", False),
        ("g = Sigmoid (X) p = Conv (g, W) a = Mul (c, p)", False),
    ],
)
def test_a_norm_is_kept_from_an_activated_convolution(nodes: str, is_apart: bool, tmp_path: Path) -> None:
    text = f"{NORMALISED} {{ c = Conv (X, W) {nodes} Y = BatchNormalization (a, s, s, s, v) }}"
    assert (converted(tmp_path, text, "opencv")[-2] == "Identity") is is_apart


def test_a_norm_of_what_is_read_twice_stays(tmp_path: Path) -> None:
    text = f"{NORMALISED} {{ c = Conv (X, W) a = Tanh (c) n = BatchNormalization (a, s, s, s, v) Y = Sub (n, a) }}"
    assert "Identity" not in converted(tmp_path, text, "opencv")


def test_slopes_of_lines_are_kept_from_blocks(tmp_path: Path) -> None:
    text = f"{LINES} {{ p = MaxPool <kernel_shape = [2]> (X) Y = PRelu (p, a) }}"
    assert converted(tmp_path, text, "opencv@5.0.0.93")[-2:] == ["Identity", "PRelu"]
    elsewhere = text.replace("p = MaxPool <kernel_shape = [2]> (X)", "p = Neg (X)")
    assert converted(tmp_path, elsewhere, "opencv@5.0.0.93") == ["Neg", "PRelu"]


@pytest.mark.parametrize(("added", "expected"), [("k", ["Add", "Mul", "Add"]), ("X", ["Add", "BatchNormalization"])])
def test_a_norm_behind_a_dense_layer_is_a_product_and_a_sum(added: str, expected: list[str], tmp_path: Path) -> None:
    text = (
        "(float[1,3,3] X) => (float[1,3,3] Y) <float[3,3] W = {1, 2, 3, 4, 5, 6, 7, 8, 9}, float[3] k = {1, -2, 3}, "
        f"float[3] v = {{1, 2, 0.5}}> {{ m = MatMul (X, W) a = Add (m, {added}) "
        "Y = BatchNormalization (a, k, k, k, v) }"
    )
    assert converted(tmp_path, text, "ncnn") == ["MatMul", *expected]


@pytest.mark.parametrize(
    ("nodes", "is_found"),
    [
        ("g = Neg (s) m = Mul (s, g) Y = Conv <strides = [2, 2]> (m, V)", True),
        ("a = Conv <strides = [2, 2]> (s, V) b = Conv <strides = [2, 2]> (s, V) Y = Sub (a, b)", True),
        (
            "a = Conv <strides = [2, 2]> (s, V) b = Neg (s) d = MaxPool <kernel_shape = [2, 2]> (b) Y = Sub (a, d)",
            False,
        ),
    ],
)
def test_steps_are_taken_before_what_all_readers_leave_out(nodes: str, is_found: bool, tmp_path: Path) -> None:
    text = f"(float[1,4,6,6] X) => (float[1,A,B,C] Y) <{ATTENTION}> {{ s = Softmax <axis = 2> (X) {nodes} }}"
    onnx.save(onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : 17]> g {text}'), tmp_path / "model.onnx")
    found = {each.op_type for each in padfix.check(tmp_path / "model.onnx", target="tract").findings}
    assert ("Conv" in found) is is_found
