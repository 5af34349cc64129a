"""Quantized to other types than bytes, sequences, and integers beyond 32 bits: a form, or no."""

from __future__ import annotations

from pathlib import Path

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

import padfix
from tests.support.outcomes import operators_written

WIDE = "int64[2] W = {3000000000, -5}"


def quantized(path: Path, dtype: type, *, is_constant: bool) -> Path:
    scale = numpy_helper.from_array(np.float32(0.25), "s")
    shape = [2, 3]
    values = numpy_helper.from_array(np.array([[1, 2, 3]]).astype(dtype), "w")
    zero = numpy_helper.from_array(np.array(0).astype(dtype), "z")
    first = helper.make_node("QuantizeLinear", ["X", "s", "z"], ["q"])
    nodes = [helper.make_node("DequantizeLinear", ["w" if is_constant else "q", "s", "z"], ["d"])]
    nodes = [*([] if is_constant else [first]), *nodes, helper.make_node("Add", ["X", "d"], ["Y"])]
    types = [helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, shape) for name in "XY"]
    graph = helper.make_graph(nodes, "g", types[:1], types[1:], [scale, zero, *([values] if is_constant else [])])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10), path)
    return path


@pytest.mark.parametrize("target", ["opencv", "tract", "mnn", "ncnn", "qnn"])
@pytest.mark.parametrize("dtype", [np.int16, np.uint16, ml_dtypes.int4, ml_dtypes.uint4, ml_dtypes.float8_e4m3fn])
def test_a_constant_of_other_steps_is_worked_out(dtype: type, target: str, tmp_path: Path) -> None:
    path = quantized(tmp_path / "m.onnx", dtype, is_constant=True)
    padfix.convert(path, tmp_path / "out.onnx", target=target)
    assert not padfix.check(tmp_path / "out.onnx", target=target).findings
    is_taken = target in ("ncnn", "qnn") or (target == "mnn" and np.dtype(dtype).itemsize == 2)
    operators = [node.op_type for node in onnx.load(tmp_path / "out.onnx").graph.node if node.op_type != "Constant"]
    assert operators in ([["Add"], ["DequantizeLinear", "Add"]] if is_taken else [["Add"]])


@pytest.mark.parametrize("target", ["opencv", "tract", "mnn"])
@pytest.mark.parametrize("dtype", [np.int16, np.uint16, ml_dtypes.int4, ml_dtypes.uint4])
def test_data_of_other_steps_are_rounded_in_floats(dtype: type, target: str, tmp_path: Path) -> None:
    path = quantized(tmp_path / "m.onnx", dtype, is_constant=False)
    padfix.convert(path, tmp_path / "out.onnx", target=target)
    operators = {node.op_type for node in onnx.load(tmp_path / "out.onnx").graph.node}
    assert {"Div", "Clip", "Mul", "Add"} <= operators and not operators & {"QuantizeLinear", "DequantizeLinear"}


@pytest.mark.parametrize("target", ["opencv", "tract", "mnn", "tvm", "qnn"])
def test_data_in_floats_of_a_byte_are_declined(target: str, tmp_path: Path) -> None:
    path = quantized(tmp_path / "m.onnx", ml_dtypes.float8_e4m3fn, is_constant=False)
    with pytest.raises(padfix.PadfixError, match="can't be rewritten"):
        padfix.convert(path, tmp_path / "out.onnx", target=target)


def test_openvino_quantizes_to_no_two_bytes(tmp_path: Path) -> None:
    for dtype, expected in ((np.int16, 2), (np.int8, 0)):
        path = quantized(tmp_path / "m.onnx", dtype, is_constant=False)
        found = padfix.check(path, target="openvino").findings
        assert sum("16 bits" in each.message for each in found) == expected


@pytest.mark.parametrize("target", ["opencv", "tract", "ncnn", "qnn"])
def test_sequences_of_which_data_pick_are_declined(target: str, tmp_path: Path) -> None:
    text = "(float[2,4] X, int64 i) => (float[2,2] Y) { s = SplitToSequence <axis = 1> (X, k) Y = SequenceAt (s, i) }"
    with pytest.raises(padfix.PadfixError, match="can't be rewritten"):
        text = text.replace("=> (float[2,2] Y)", "=> (float[2,2] Y) <int64 k = {2}>")
        operators_written(text, target, tmp_path, 17, -3)


@pytest.mark.parametrize("target", ["mnn", "openvino", "opencv@4.14", "qnn"])
def test_integers_beyond_32_bits_are_declined(target: str, tmp_path: Path) -> None:
    text = f"(int64[2] X) => (int64[2] Y) <{WIDE}> {{ Y = Add (X, W) }}"
    with pytest.raises(padfix.PadfixError, match="can't be rewritten"):
        operators_written(text, target, tmp_path, 17, -3)


@pytest.mark.parametrize("target", ["mnn", "openvino", "opencv@4.14"])
def test_the_end_of_all_is_no_integer_beyond_32_bits(target: str, tmp_path: Path) -> None:
    constants = "int64[2] W = {9223372036854775807, 5}"
    text = f"(int64[1,2] X) => (int64[1,2] Y) <{constants}> {{ Y = Max (X, W) }}"
    onnx.save(onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : 17]> g {text}'), tmp_path / "m.onnx")
    found = padfix.check(tmp_path / "m.onnx", target=target).findings
    assert not [each for each in found if "32 bits" in each.message]
