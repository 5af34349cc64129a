"""Constants that are copied for as many images as there are, where a runtime counts them as one: OpenCV 4.14."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx.parser
import onnxruntime
import pytest

import padfix
from padfix.errors import RefusedError

MEASURED = "lengths = Shape (X) batch = Slice (lengths, nought, one)"
MINUS = "minus = Constant <value_ints = [-1]> ()"
KEPT = """three = Constant <value_ints = [3]> ()
    ones = ConstantOfShape <value = int64[1] {1}> (three) asked = Mul (ones, minus)
    is_kept = Equal (told, asked) shape = Where (is_kept, ones, told)"""
TOKEN = "float[1,1,2] token = {0.5, -0.0}"

COPIES: dict[str, tuple[str, str]] = {
    "Expand": (TOKEN, f"{MEASURED} shape = Concat <axis = 0> (batch, rest) T = Expand (token, shape)"),
    "Expand of fewer axes": (
        "float[2] token = {0.5, 2}",
        f"{MEASURED} shape = Concat <axis = 0> (batch, rest) T = Expand (token, shape)",
    ),
    "Expand that keeps axes": (
        TOKEN,
        f"{MEASURED} {MINUS} told = Concat <axis = 0> (batch, minus, minus) {KEPT} T = Expand (token, shape)",
    ),
    "Tile": (TOKEN, f"{MEASURED} times = Concat <axis = 0> (batch, one, one) T = Tile (token, times)"),
    "ConstantOfShape": (
        TOKEN,
        f"""{MEASURED} shape = Concat <axis = 0> (batch, rest)
        T = ConstantOfShape <value = float[1] {{0.25}}> (shape)""",
    ),
}


def model(constant: str, body: str, inputs: str = "float[N,3,2] X") -> onnx.ModelProto:
    return onnx.parser.parse_model(f"""<ir_version: 8, opset_import: ["" : 13]>
        main ({inputs}) => (float[N,4,2] Y)
        <int64[1] nought = {{0}}, int64[1] one = {{1}}, int64[2] rest = {{1, 2}}, {constant}>
        {{ {body} Y = Concat <axis = 1> (T, X) }}""")


@pytest.mark.parametrize("name", COPIES)
def test_a_constant_is_a_sum_with_zeros_of_the_images(name: str, tmp_path: Path) -> None:
    source, result = tmp_path / "model.onnx", tmp_path / "out.onnx"
    onnx.save(model(*COPIES[name]), source)
    padfix.convert(source, result, target="opencv@4.14")
    written = [node.op_type for node in onnx.load(result).graph.node if node.op_type != "Constant"]
    assert written == ["Reshape", "ReduceMax", "Equal", "Cast", "Mul", "Reshape", "Add", "Concat"]
    assert not padfix.check(result, target="opencv@4.14").findings
    odd = np.array([[[np.nan, np.inf], [1, 2], [3, 4]]], np.float32)
    for data in (np.ones((3, 3, 2), np.float32), odd, np.zeros((0, 3, 2), np.float32)):
        before, after = (onnxruntime.InferenceSession(str(path)).run(None, {"X": data})[0] for path in (source, result))
        np.testing.assert_array_equal(after, before)


@pytest.mark.parametrize(
    ("constant", "body", "inputs"),
    [
        # Nothing says how many images come by another input.
        (TOKEN, COPIES["Expand"][1].replace("Shape (X)", "Shape (Z)"), "float[N,3,2] X, float[N,M] Z"),
        # The token is another one for each of two images.
        ("float[2,1,2] token = {1, 2, 3, 4}", COPIES["Expand"][1], "float[N,3,2] X"),
    ],
)
def test_what_is_no_constant_for_each_image_is_declined(constant: str, body: str, inputs: str, tmp_path: Path) -> None:
    onnx.save(model(constant, body, inputs), tmp_path / "model.onnx")
    with pytest.raises(RefusedError):
        padfix.convert(tmp_path / "model.onnx", tmp_path / "out.onnx", target="opencv@4.14")
