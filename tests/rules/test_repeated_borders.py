"""Forms for some place alone: borders of open lengths, booleans of a triangle, one axis of newer reductions."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnx.parser
import pytest

import padfix
from tests.support.one_node import run


def written(text: str, target: str, folder: Path, opset: int = 17, *, exact: bool = True) -> list[str]:
    """Return the operators of what is written, after a comparison of what both models give of three lengths."""
    model = onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : {opset}]> g {text}')
    onnx.save(model, folder / "model.onnx")
    padfix.convert(folder / "model.onnx", folder / "result.onnx", target=target)
    result = onnx.load(folder / "result.onnx")
    for length in (4, 7):
        feeds = {each.name: _data(each, length) for each in model.graph.input}
        for found, expected in zip(run(result, feeds), run(model, feeds), strict=True):
            np.testing.assert_allclose(found, expected, rtol=0 if exact else 1e-5, atol=0 if exact else 1e-5)
    return [node.op_type for node in result.graph.node if node.op_type != "Constant"]


def _data(value: onnx.ValueInfoProto, length: int) -> np.ndarray:
    shape = [each.dim_value or length for each in value.type.tensor_type.shape.dim]
    numbers = 9 * np.random.default_rng(length).standard_normal(shape) - 1
    dtype = onnx.helper.tensor_dtype_to_np_dtype(value.type.tensor_type.elem_type)
    return np.asarray(numbers > 0 if dtype == np.bool_ else numbers).astype(dtype)


PAD = "(float[%s] X) => (float Y) <int64[%d] p = {%s}> { Y = Pad <mode = %s> (X, p) }"


@pytest.mark.parametrize(
    ("shape", "pads", "mode", "expected"),
    [
        ("N,3,5", "0, 0, 2, 0, 0, 1", "edge", ["Gather"]),
        ("N,L,5", "0, 0, 2, 0, 0, 1", "reflect", ["Gather"]),
        ("N,3,L", "0, 0, 2, 0, 0, 1", "edge", ["Slice", "Slice", "Concat"]),
        ("N,3,L", "0, 0, 2, 0, 0, 1", "reflect", ["Slice", "Slice", "Slice", "Concat"]),
        ("N,L", "0, 0, 0, 3", "edge", ["Slice", "Concat"]),
        ("1,H,W", "0, 1, 1, 0, 0, 0", "reflect", ["Slice", "Concat", "Slice", "Concat"]),
    ],
)
def test_borders_of_any_length_are_slices(
    shape: str, pads: str, mode: str, expected: list[str], tmp_path: Path
) -> None:
    text = PAD % (shape, len(pads.split(",")), pads, f'"{mode}"')
    assert written(text, "opencv@4.14", tmp_path) == expected


@pytest.mark.parametrize(
    ("text", "target", "expected"),
    [
        (
            "(bool[4,4] X) => (float Y) { t = Trilu (X) Y = Cast <to = 1> (t) }",
            "opencv@4.14",
            ["Cast", "Mul", "Abs", "Sign", "Cast", "Cast"],
        ),
        ("(int32[2,4] X) => (int32[2,4] Y) { Y = Relu (X) }", "opencv@5.0.0.93", ["Max"]),
        ("(int32[2,4] X) => (int32[2,4] Y) { Y = Relu (X) }", "opencv@4.14", ["Relu"]),
        (
            '(float[3,4] X) => (float Y) { a, b = Split <axis = 1> (X) Y = Einsum <equation = "ij->ij"> (b) }',
            "openvino",
            ["Split", "Identity"],
        ),
        (
            '(float[3,4] X) => (float Y) { a, b = Split <axis = 1> (X) Y = Einsum <equation = "ij->ji"> (b) }',
            "openvino",
            ["Split", "Einsum"],
        ),
        ('(float[3,4] X) => (float Y) { b = Relu (X) Y = Einsum <equation = "ij->ij"> (b) }', "openvino", None),
        (
            "(float X) => (float[1] Y) <float[1] s = {0.5}> { Y = PRelu (X, s) }",
            "tract",
            ["Neg", "Relu", "Relu", "Neg", "Mul", "Add"],
        ),
        ("(float[2,3] X) => (float[2,3] Y) <float[1] s = {0.5}> { Y = PRelu (X, s) }", "tract", ["PRelu"]),
    ],
)
def test_it_is_written_otherwise(text: str, target: str, expected: list[str] | None, tmp_path: Path) -> None:
    assert written(text, target, tmp_path) == (expected or ["Relu", "Einsum"])


@pytest.mark.parametrize(("shape", "order", "is_copied"), [("4,N,3", "[1, 0, 2]", True), ("N,4,3", "[0, 1, 2]", False)])
def test_an_open_batch_behind_the_steps_is_copied(shape: str, order: str, *, is_copied: bool, tmp_path: Path) -> None:
    text = f"""(float[{shape}] X) => (float Y) {{ t = Transpose <perm = {order}> (X) a, b = Split <axis = 1> (t)
    c = Mul (a, b) Y = Concat <axis = 1> (a, c) }}"""
    assert ("Reshape" in written(text, "opencv@4.14", tmp_path)) == is_copied


LINES = "(float[2,3,4] X, float[2,3,4] Z) => (float Y) { Y = Einsum <equation = %s> (X, Z) }"


@pytest.mark.parametrize(
    ("text", "target", "expected"),
    [
        (LINES % '"abc,abc->abc"', "mnn", ["Mul"]),
        (LINES % '"abc,abc->acb"', "mnn", ["Transpose", "Transpose", "Mul"]),
        (LINES % '"abc,abc->bac"', "mnn", ["Einsum"]),
        (LINES % '"abc,abc->ab"', "mnn", ["Einsum"]),
        ('(float[2,3] X) => (float Y) { Y = Einsum <equation = "ab,ab,ab->ab"> (X, X, X) }', "mnn", ["Mul", "Mul"]),
    ],
)
def test_what_sums_nothing_is_a_product(text: str, target: str, expected: list[str], tmp_path: Path) -> None:
    assert written(text, target, tmp_path, exact=False) == expected


@pytest.mark.parametrize(
    ("node", "opset", "expected"),
    [
        ("LogSoftmax <axis = 1>", 13, ["ReduceMax", "Sub", "Exp", "MatMul", "Log", "Neg", "Add"]),
        (
            "LogSoftmax <axis = -1>",
            18,
            ["Reshape", "MaxPool", "Reshape", "Sub", "Exp", "MatMul", "Log", "Neg", "Add"],
        ),
        ("LpNormalization <axis = 1>", 13, ["ReduceL2", "Clip", "Div"]),
        ("LpNormalization <axis = 1>", 18, ["Mul", "MatMul", "Sqrt", "Clip", "Div"]),
        ("LpNormalization <axis = -1, p = 1>", 18, ["Abs", "MatMul", "Clip", "Div"]),
    ],
)
def test_no_axes_are_an_input_along_one_axis(node: str, opset: int, expected: list[str], tmp_path: Path) -> None:
    text = f"(float[N,3,5] X) => (float Y) {{ Y = {node} (X) }}"
    assert written(text, "ncnn", tmp_path, opset, exact=False) == expected


@pytest.mark.parametrize("target", ["mnn", "onnx2tf"])
def test_a_norm_of_zeros_is_zero(target: str, tmp_path: Path) -> None:
    text = "(float[2,3,5] X) => (float Y) { Y = LpNormalization <axis = -1> (X) }"
    assert written(text, target, tmp_path, exact=False) == ["ReduceL2", "Clip", "Div"]


LAYER = """(float[4,2,2] X) => (float Y, float Z) <int32[2] l = {%s}> {
w = Constant <value_floats = [0.5, -0.5, 1.0, 2.0]> () k = Constant <value_ints = [1, 2, 2]> ()
m = Reshape (w, k) Y, Z = RNN <hidden_size = 2, direction = "%s"> (X, m, m, , l) }"""


@pytest.mark.parametrize(
    ("lengths", "direction", "layer"),
    [("4, 4", "forward", "RNN"), ("3, 3", "forward", None), ("3, 3", "reverse", None), ("3, 4", "forward", None)],
)
def test_sequences_that_are_alike_need_no_lengths(
    lengths: str, direction: str, layer: str | None, tmp_path: Path
) -> None:
    found = written(LAYER % (lengths, direction), "mnn", tmp_path, exact=False)
    assert ("RNN" in found) == (layer is not None) or "Pad" in found


def test_boxes_by_centres_are_told_by_corners(tmp_path: Path) -> None:
    text = """(float[1,6,4] X, float[1,2,6] S) => (int64[n,3] Y) <int64[1] k = {3}, float[1] t = {0.3}> {
    B = Sigmoid (X) Y = NonMaxSuppression <center_point_box = %d> (B, S, k, t) }"""
    assert written(text % 1, "mnn", tmp_path) == ["Sigmoid", "MatMul", "Relu", "MatMul", "Add", "NonMaxSuppression"]
    assert written(text % 0, "mnn", tmp_path) == ["Sigmoid", "NonMaxSuppression"]


def test_bytes_without_a_zero_point_get_one_twice(tmp_path: Path) -> None:
    text = """(float[4,2] X) => (float[4,2] Y) <float s = {0.5}> {
    q = QuantizeLinear (X, s) Y = DequantizeLinear (q, s) }"""
    written(text, "opencv@4.14", tmp_path, 13)
    graph = onnx.load(tmp_path / "result.onnx").graph
    assert [len(node.input) for node in graph.node] == [3, 3]
