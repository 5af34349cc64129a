"""What QNN's emulator computes otherwise, or refuses, at certain lengths and strides."""

from __future__ import annotations

from pathlib import Path

import onnx
import onnx.parser
import pytest
from onnx import TensorProto

import padfix

VOLUME = "(float[1,2,3,4,3] X) => (float Y) <float[2,1,1,1,1] w = {1, 2}> { Y = ConvTranspose <strides = [%s]> (X, w) }"
POOL = "(float[1,2,%s] X) => (float Y) { Y = AveragePool <kernel_shape = [2, 2]%s> (X) }"
SHARES = "(float[1,4,5] X) => (float Y) { Y = LogSoftmax <axis = %s> (X) }"
PRODUCT = "(float[%s,3] X) => (float Y) <float[3,2] w = {1, 2, 3, 4, 5, 6}> { Y = MatMul (X, w) }"


def saved(folder: Path, graph: str) -> Path:
    path = folder / "model.onnx"
    onnx.save(onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : 17]> g {graph}'), path)
    return path


BYTES = """(float[2,9] X) => (float Y) <float s = {0.04}, uint8 m = {128}, float t = {0.004}, uint8 z = {%d}> {
  q = QuantizeLinear (X, s, m) d = DequantizeLinear (q, s, m) p = Softmax <axis = -1> (d)
  r = QuantizeLinear (p, t, z) Y = DequantizeLinear (r, t, z) }"""


def test_a_softmax_of_bytes_is_read_for_what_it_is_where_0_is_another_byte_than_the_least(tmp_path: Path) -> None:
    padfix.convert(saved(tmp_path, BYTES % 30), tmp_path / "result.onnx", target="qnn")
    assert [each.op_type for each in onnx.load(tmp_path / "result.onnx").graph.node][2:4] == ["Softmax", "Relu"]


@pytest.mark.parametrize(
    ("graph", "gone"),
    [
        (VOLUME % "2, 2, 1", "ConvTranspose"),
        (POOL % ("14,9", ""), "AveragePool"),
        (SHARES % "0", "LogSoftmax"),
        (PRODUCT % "1,2,3,4", ""),
    ],
)
def test_it_is_written_otherwise(graph: str, gone: str, tmp_path: Path) -> None:
    source, result = saved(tmp_path, graph), tmp_path / "result.onnx"
    assert {"PF111", "PF306"} & {each.rule for each in padfix.check(source, target="qnn").findings}
    padfix.convert(source, result, target="qnn")
    types = [node.op_type for node in onnx.load(result).graph.node]
    assert gone not in types
    assert gone or types == ["Reshape", "MatMul", "Reshape"]


def test_bytes_are_cast_by_way_of_whole_numbers(tmp_path: Path) -> None:
    source, result = saved(tmp_path, "(uint8[2,3] X) => (float Y) { Y = Cast <to = 1> (X) }"), tmp_path / "result.onnx"
    padfix.convert(source, result, target="qnn")
    assert [node.attribute[0].i for node in onnx.load(result).graph.node] == [TensorProto.INT32, TensorProto.FLOAT]


@pytest.mark.parametrize(
    "graph",
    [
        BYTES % 0,
        "(int32[2,3] X) => (float Y) { Y = Cast <to = 1> (X) }",
        "(uint8[2,3] X) => (int32 Y) { Y = Cast <to = 6> (X) }",
        VOLUME % "1, 2, 2",
        POOL % ("13,9", ""),
        POOL % ("14,10", ""),
        POOL % ("28,9", ", strides = [2, 1]"),
        SHARES % "1",
        PRODUCT % "1,2,3",
    ],
)
def test_it_is_right_as_it_is(graph: str, tmp_path: Path) -> None:
    found = padfix.check(saved(tmp_path, graph), target="qnn").findings
    assert not {"PF111", "PF306"} & {each.rule for each in found}
