"""PF308: operators of ONNX Runtime's own in those of ONNX, proven by running both."""

from __future__ import annotations

from pathlib import Path

import onnx
import onnx.parser
import pytest

import padfix
from padfix.errors import RefusedError

HEAD = '<ir_version: 8, opset_import: ["" : 17, "com.microsoft" : 1]>\n'
IMAGE, ROWS = "float[1,2,7,8] X", "float[2,5,6] X"
WEIGHTS = f"float[3,2,3,3] W = {{{', '.join(str(each % 7 - 3) for each in range(54))}}}, float[3] b = {{1, 2, 0}}"
BYTES = "float s = {0.02}, uint8 z = {120}, float t = {0.03}, uint8 v = {99}"
SIX = "float[6] a = {1, 2, 3, 1, 2, 3}, float[6] b = {0, 1, 0, 1, 2, 1}"
MATRIX = f"float[4,6] M = {{{', '.join(str(each % 5 - 2) for each in range(24))}}}"


@pytest.mark.parametrize(
    ("data", "constants", "node", "target", "expected"),
    [
        (
            f"{IMAGE}, float[1,3,4,4] Z",
            WEIGHTS,
            'FusedConv <auto_pad = "SAME_LOWER", strides = [2, 2], activation = "Relu"> (X, W, b, Z)',
            "opencv",
            ["Add", "Conv", "Relu"],
        ),
        (
            IMAGE,
            WEIGHTS,
            'FusedConv <activation = "Clip", activation_params = [-1.0, 6.0]> (X, W)',
            "tract",
            ["Clip", "Conv"],
        ),
        (
            IMAGE,
            WEIGHTS,
            'FusedConv <activation = "HardSigmoid", activation_params = [0.3, 0.4]> (X, W, b)',
            "mnn",
            ["Conv", "HardSigmoid"],
        ),
        (ROWS, MATRIX, "FusedMatMul <transB = 1, alpha = 0.5> (X, M)", "tract", ["MatMul", "Mul", "Transpose"]),
        (ROWS, "", "Gelu (X)", "mnn", ["Add", "Erf", "Mul", "Mul", "Mul"]),
        (ROWS, "", "QuickGelu <alpha = 1.5> (X)", "opencv@5.0.0.93", ["Mul", "Mul", "Sigmoid"]),
        (ROWS, SIX, "FastGelu (X, b)", "mnn", ["Add", "Add", "Add", *["Mul"] * 6, "Tanh"]),
        (
            f"{ROWS}, float[2,5,6] S",
            SIX,
            "SkipLayerNormalization (X, S, a, b, a)",
            "mnn",
            ["Add", "Add", "LayerNormalization"],
        ),
        (
            "uint8[1,7,8,2] X",
            "",
            'NhwcMaxPool <kernel_shape = [3, 2], strides = [2, 2], auto_pad = "SAME_LOWER"> (X)',
            "tract",
            ["MaxPool", "Transpose", "Transpose"],
        ),
        (
            "uint8[1,2,7,8] X",
            BYTES,
            "QLinearAveragePool <kernel_shape = [3, 2], strides = [2, 2], pads = [1, 0, 0, 1]> (X, s, z, t, v)",
            "tract",
            ["AveragePool", "DequantizeLinear", "QuantizeLinear"],
        ),
        (
            "uint8[1,2,7,8] X",
            BYTES,
            "QLinearGlobalAveragePool (X, s, z, t, v)",
            "openvino",
            ["DequantizeLinear", "GlobalAveragePool", "QuantizeLinear"],
        ),
    ],
)
def test_it_becomes_what_it_is(
    data: str, constants: str, node: str, target: str, expected: list[str], tmp_path: Path
) -> None:
    kind = "uint8" if data.startswith("uint8") else "float"
    text = f"{HEAD}g ({data}) => ({kind} Y) <{constants}> {{ Y = com.microsoft.{node} }}"
    onnx.save(onnx.parser.parse_model(text), tmp_path / "before.onnx")
    found = padfix.check(tmp_path / "before.onnx", target=target).findings
    assert "PF308" in {each.rule for each in found}
    report = padfix.convert(tmp_path / "before.onnx", tmp_path / "after.onnx", target=target)
    assert report.verdict is not None
    assert report.verdict.equivalent
    after = onnx.load(tmp_path / "after.onnx").graph.node
    assert sorted(each.op_type for each in after) == expected
    assert {each.domain for each in after} == {""}


def test_what_else_it_gives_is_not_left_out(tmp_path: Path) -> None:
    text = f"{HEAD}g ({ROWS}, float[2,5,6] S) => (float Y, float T) <{SIX}> {{"
    text += " Y, , , T = com.microsoft.SkipLayerNormalization (X, S, a) }"
    onnx.save(onnx.parser.parse_model(text), tmp_path / "before.onnx")
    with pytest.raises(RefusedError, match="more than its first output is read"):
        padfix.convert(tmp_path / "before.onnx", tmp_path / "after.onnx", target="mnn")


def test_bytes_are_declined_beforehand_where_a_target_takes_no_quantizers(tmp_path: Path) -> None:
    text = f"{HEAD}g (uint8[1,2,7,8] X) => (uint8 Y) <{BYTES}> {{"
    text += " Y = com.microsoft.QLinearGlobalAveragePool (X, s, z, t, v) }"
    onnx.save(onnx.parser.parse_model(text), tmp_path / "before.onnx")
    found = padfix.check(tmp_path / "before.onnx", target="mnn").findings
    assert ("PF308", False) in {(each.rule, each.fixable) for each in found}
