"""A STFT told all that it may leave unsaid, of a signal with other axes, and as a convolution."""

from __future__ import annotations

from pathlib import Path

import onnx
import onnx.parser
import pytest

import padfix

REAL, MATRIX, COMPLEX = "float[2,23,1] X", "float[2,23] X", "float[1,23,2] X"
WINDOW = "float[8] w = {0, 0.1, 0.5, 0.9, 1, 0.9, 0.5, 0.1}"
ALL = "(X, step, w, length)"
CONVOLVED = ["Reshape", "Conv", "Transpose", "Reshape"]


@pytest.mark.sweep(8)
@pytest.mark.parametrize(
    ("node", "signal", "target", "expected"),
    [
        (f"Y = STFT {ALL}", REAL, "opencv", CONVOLVED),
        (f"Y = STFT {ALL}", MATRIX, "opencv", CONVOLVED),
        ("Y = STFT <onesided = 0> (X, step, w)", REAL, "ncnn", CONVOLVED),
        ("Y = STFT <onesided = 0> (X, step, , length)", MATRIX, "tvm", CONVOLVED),
        (f"Y = STFT <onesided = 0> {ALL}", COMPLEX, "opencv@5.0.0.93", ["Transpose", "Conv", "Transpose", "Reshape"]),
        (f"Y = STFT {ALL}", "float[N,23,1] X", "opencv", CONVOLVED),
        (f"Y = STFT {ALL}", "float[2,L,1] X", "opencv@5.0.0.93", CONVOLVED),
        (f"Y = STFT {ALL}", "float[N,L,1] X", "opencv@5.0.0.93", ["Transpose", "Conv", "Transpose", "Reshape"]),
        (f"Y = STFT {ALL}", REAL, "onnx2tf", CONVOLVED),
        # told what they leave unsaid
        ("Y = STFT (X, step, w)", MATRIX, "openvino", ["STFT"]),
        ("Y = STFT (X, step, , length)", MATRIX, "openvino", ["STFT"]),
        (f"Y = STFT {ALL}", "float[N,L,1] X", "openvino", ["Squeeze", "STFT"]),
        (f"Y = STFT <onesided = 0> {ALL}", MATRIX, "openvino", CONVOLVED),
        (f"Y = STFT {ALL}", MATRIX, "tract", ["Unsqueeze", "STFT"]),
        (f"Y = STFT {ALL}", REAL, "qnn", ["STFT"]),
        (f"Y = STFT <onesided = 0> {ALL}", COMPLEX, "qnn", ["Transpose", "Conv", "Transpose", "Reshape"]),
    ],
)
def test_a_transform_of_frames(node: str, signal: str, target: str, expected: list[str], tmp_path: Path) -> None:
    constants = f"int64 step = {{3}}, int64 length = {{8}}, {WINDOW}"
    text = f'<ir_version: 8, opset_import: ["" : 17]> g ({signal}) => (float[A,B,C,D] Y) <{constants}> {{ {node} }}'
    source, result = tmp_path / "model.onnx", tmp_path / "result.onnx"
    onnx.save(onnx.parser.parse_model(text), source)
    assert "PF306" in [each.rule for each in padfix.check(source, target=target).findings]
    padfix.convert(source, result, target=target)
    assert not padfix.check(result, target=target).findings
    kept = [each.op_type for each in onnx.load(result).graph.node if each.op_type != "Constant"]
    assert kept == expected


@pytest.mark.parametrize(("target", "expected"), [("ncnn", CONVOLVED), ("tract", ["Unsqueeze", "STFT"])])
def test_a_window_that_its_own_operator_gives(target: str, expected: list[str], tmp_path: Path) -> None:
    text = f"""<ir_version: 8, opset_import: ["" : 17]>
    g ({MATRIX}) => (float[A,B,C,D] Y) <int64 step = {{3}}, int64 length = {{8}}> {{
      w = HannWindow (length) Y = STFT {ALL}
    }}"""
    onnx.save(onnx.parser.parse_model(text), tmp_path / "model.onnx")
    padfix.convert(tmp_path / "model.onnx", tmp_path / "result.onnx", target=target)
    kept = [each.op_type for each in onnx.load(tmp_path / "result.onnx").graph.node]
    assert [each for each in kept if each not in ("Constant", "HannWindow")] == expected


def test_a_step_that_is_computed_is_refused(tmp_path: Path) -> None:
    text = f"""<ir_version: 8, opset_import: ["" : 17]>
    g (float[2,23,1] X, int64 step) => (float[A,B,C,D] Y) <int64 length = {{8}}, {WINDOW}> {{ Y = STFT {ALL} }}"""
    onnx.save(onnx.parser.parse_model(text), tmp_path / "model.onnx")
    with pytest.raises(padfix.PadfixError, match="its step, its window, or how long that is, is not constant"):
        padfix.convert(tmp_path / "model.onnx", tmp_path / "result.onnx", target="opencv")


def test_frames_that_are_no_power_of_two_are_judged_by_what_their_angles_are_off_by(tmp_path: Path) -> None:
    text = """<ir_version: 8, opset_import: ["" : 17]>
    g (float[1,1000] X) => (float[1,A,B] Y) <int64 step = {160}, int64 length = {400}, int64[1] last = {-1}> {
      w = HannWindow (length) z = STFT (X, step, w, length) q = Mul (z, z) Y = ReduceSum <keepdims = 0> (q, last)
    }"""
    onnx.save(onnx.parser.parse_model(text), tmp_path / "model.onnx")
    padfix.convert(tmp_path / "model.onnx", tmp_path / "result.onnx", target="opencv")
    assert "Conv" in [each.op_type for each in onnx.load(tmp_path / "result.onnx").graph.node]
