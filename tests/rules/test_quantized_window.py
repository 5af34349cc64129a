"""A QLinearConv as a convolution of numbers, and positions of maxima by columns as those by rows."""

from __future__ import annotations

from pathlib import Path

import onnx
import onnx.parser
import pytest

import padfix
from padfix.errors import RefusedError

# Small enough that no processor's products of two bytes, which are summed in pairs of 16 bits, overflow.
WEIGHTS = f"int8[3,2,3,2] w = {{{', '.join(str(each % 120 - 60) for each in range(0, 36 * 7, 7))}}}"
HELD = f"{WEIGHTS}, float s = {{0.02}}, uint8 z = {{120}}, float t = {{0.3}}, uint8 v = {{99}}"
CHANNELS = "float[3] k = {0.01, 0.02, 0.015}, int8[3] o = {0, 0, 0}, int32[3] b = {100, -200, 300}"
LISTS = "float[1] k = {0.01}, int8[1] o = {3}, int32[3] b = {100, -200, 300}"


def operators(text: str, target: str, folder: Path, **options: str) -> list[str]:
    onnx.save(onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : 13]> {text}'), folder / "before.onnx")
    report = padfix.convert(folder / "before.onnx", folder / "after.onnx", target=target, **options)
    assert report.verdict is not None
    assert report.verdict.equivalent
    return sorted(each.op_type for each in onnx.load(folder / "after.onnx").graph.node)


@pytest.mark.parametrize("scales", [CHANNELS, LISTS])
@pytest.mark.parametrize(
    "pads", ["pads = [1, 0, 0, 1], strides = [2, 1]", 'auto_pad = "SAME_LOWER", dilations = [1, 1]']
)
def test_bytes_are_taken_for_the_numbers_that_they_stand_for(scales: str, pads: str, tmp_path: Path) -> None:
    node = f"Y = QLinearConv <kernel_shape = [3, 2], {pads}> (X, s, z, w, k, o, t, v, b)"
    text = f"g (uint8[1,2,7,8] X) => (uint8 Y) <{HELD}, {scales}> {{ {node} }}"
    expected = ["Conv", "DequantizeLinear", "DequantizeLinear", "QuantizeLinear"]
    assert operators(text, "openvino", tmp_path) == expected


def test_bytes_of_open_images_are_tried_with_as_many_channels_as_there_are_weights_for(tmp_path: Path) -> None:
    node = (
        'Y = QLinearConv <kernel_shape = [3, 2], auto_pad = "SAME_LOWER", strides = [2, 3]> (X, s, z, w, k, o, t, v, b)'
    )
    text = f"g (uint8[N,2,H,W] X) => (uint8 Y) <{HELD}, {CHANNELS}> {{ {node} }}"
    written = operators(text, "openvino", tmp_path)
    assert "QLinearConv" not in written
    assert "Conv" in written


NODE = "QLinearConv <kernel_shape = [3, 2]> (q, s, z, w, k, o, t, v, b)"
WITHIN = f"q = QuantizeLinear (X, s, z) r = {NODE} Y = DequantizeLinear (r, t, v)"
PAIR = "q = QuantizeLinear (X, s, z) r = DequantizeLinear (q, t, v) Y = Relu (r)"
FLOATS, BYTES = "float[1,2,7,8] X) => (float Y", "uint8[1,2,7,8] q) => (uint8 Y"
BY_SUM = ["Abs", "Add", "Clip", "Clip", "Div", "Sub"]


@pytest.mark.parametrize(
    ("target", "given", "nodes", "expected"),
    [
        ("ncnn", FLOATS, WITHIN, ["Conv", "DequantizeLinear", *["Clip", "Div", "Mul", "Round"] * 2]),
        ("mnn", FLOATS, WITHIN, ["Constant", "Conv", *[*BY_SUM, "Mul"] * 2]),
        ("mnn", BYTES, f"Y = {NODE}", ["Add", "Cast", "Cast", "Constant", "Conv", "Mul", "Sub", *BY_SUM]),
        ("onnx2tf", FLOATS, PAIR, ["Add", "Clip", "Div", "Mul", "Relu", "Round"]),
    ],
)
def test_bytes_are_numbers_that_are_rounded(
    target: str, given: str, nodes: str, expected: list[str], tmp_path: Path
) -> None:
    text = f"g ({given}) <{HELD}, {CHANNELS}> {{ {nodes} }}"
    assert operators(text, target, tmp_path, reference="spec") == sorted(expected)


def test_unsigned_bytes_of_a_caller_are_cast_where_they_are_taken_for_signed_ones(tmp_path: Path) -> None:
    text = f"g (uint8[1,2,7,8] X) => (uint8 Y) <{HELD}, {CHANNELS}> {{ Y = QLinearConv (X, s, z, w, k, o, t, v, b) }}"
    # ONNX Runtime's own sums overflow on some processors.
    assert {"Cast", "Conv", "Round"} <= set(operators(text, "opencv@4.14", tmp_path, reference="spec"))


@pytest.mark.parametrize("target", ["openvino", "opencv@5.0.0.93"])
def test_rows_and_columns_of_positions_are_exchanged(target: str, tmp_path: Path) -> None:
    node = "Y, I = MaxPool <kernel_shape = [3, 2], pads = [1, 0, 0, 1], strides = [2, 2], storage_order = 1> (X)"
    text = f"g (float[1,3,7,8] X) => (float Y, int64 I) {{ {node} }}"
    assert operators(text, target, tmp_path) == [
        "Add",
        "Add",
        "Div",
        "Div",
        "MaxPool",
        "Mul",
        "Mul",
        "Mul",
        "Sub",
        "Sub",
    ]


def test_positions_in_an_open_plane_are_declined(tmp_path: Path) -> None:
    node = "Y, I = MaxPool <kernel_shape = [2, 2], storage_order = 1> (X)"
    with pytest.raises(RefusedError, match="their lengths are not known"):
        operators(f"g (float[1,3,H,8] X) => (float Y, int64 I) {{ {node} }}", "openvino", tmp_path)


def test_bytes_within_a_model_of_numbers_are_right(tmp_path: Path) -> None:
    node = "q = QuantizeLinear (X, s, z) d = DequantizeLinear (q, s, z) Y = Relu (d)"
    text = f"g (float[1,2,7,8] X) => (float[1,2,7,8] Y) <float s = {{0.02}}, uint8 z = {{120}}> {{ {node} }}"
    assert operators(text, "opencv@4.14", tmp_path) == ["DequantizeLinear", "QuantizeLinear", "Relu"]
    assert operators(text.replace("d = D", "Y = D").replace(" Y = Relu (d)", ""), "opencv@4.14", tmp_path) == [
        "DequantizeLinear",
        "QuantizeLinear",
    ]
