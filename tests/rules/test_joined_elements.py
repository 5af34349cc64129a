"""What joins elements at places that data tell, several at one place among them, for a runtime that replaces them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnx.parser
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

import padfix

RANDOM = np.random.default_rng(5)
KINDS = {"f": TensorProto.FLOAT, "i": TensorProto.INT64}


def places(ends: list[int], *shape: int) -> np.ndarray:
    return np.stack([RANDOM.integers(-each, each, shape) for each in ends], -1).astype(np.int64)


def saved(
    op_type: str,
    data: list[int],
    indices: np.ndarray,
    updates: list[int | str],
    folder: Path,
    kind: str,
    **told: object,
) -> Path:
    places_as_told = told.pop("constant", False)
    listed = [updates[0], *indices.shape[1:]] if indices.ndim else []
    node = helper.make_node(op_type, ["D", "I", "U"], ["Y"], **told)
    inputs = [("D", KINDS[kind], data), ("I", TensorProto.INT64, listed), ("U", KINDS[kind], updates)]
    values = [helper.make_tensor_value_info(*each) for each in inputs if each[0] != "I" or not places_as_told]
    tensors = [numpy_helper.from_array(indices, "I")] if places_as_told else []
    graph = helper.make_graph([node], "g", values, [helper.make_tensor_value_info("Y", KINDS[kind], data)], tensors)
    model = helper.make_model(graph, ir_version=9, opset_imports=[helper.make_opsetid("", 18)])
    onnx.save(model, folder / "model.onnx")
    return folder / "model.onnx"


CASES = [
    ("ScatterND", [5, 3], places([5], 7), [7, 3], "f", "MatMul"),
    ("ScatterND", [5, 3], places([5], 7), ["E", 3], "f", "MatMul"),
    ("ScatterND", [3, 4], places([3, 4], 6), [6], "f", "MatMul"),
    ("ScatterND", [5, 3], places([5], 7), [7, 3], "i", "Where"),
    ("ScatterElements", [5], places([5], 8)[:, 0], [8], "f", "MatMul"),
    ("ScatterElements", [4, 3], RANDOM.integers(-4, 4, (6, 3)), [6, 3], "f", "Where"),
    ("ScatterElements", [4, 3], RANDOM.integers(-4, 4, (6, 3)), ["E", 3], "i", "Where"),
]


@pytest.mark.parametrize("reduction", ["add", "mul", "max", "min"])
@pytest.mark.parametrize(
    ("op_type", "data", "indices", "updates", "kind", "way", "constant"),
    [(*case, constant) for case in CASES for constant in (False, True) if "E" not in case[3] or not constant],
)
def test_several_are_joined_at_one_place(
    op_type: str,
    data: list[int],
    indices: np.ndarray,
    updates: list[int | str],
    kind: str,
    way: str,
    constant: bool,
    reduction: str,
    tmp_path: Path,
) -> None:
    source = saved(op_type, data, indices, updates, tmp_path, kind, reduction=reduction, constant=constant)
    result = tmp_path / "result.onnx"
    padfix.convert(source, result, target="mnn")
    assert not padfix.check(result, target="mnn").findings
    written = {each.op_type for each in onnx.load(result).graph.node}
    assert op_type not in written
    assert (way if reduction == "add" else "Where") in written
    dtype = np.float32 if kind == "f" else np.int64
    shape = [len(indices) if each == "E" else each for each in updates]
    feeds = {
        "D": (3 * RANDOM.standard_normal(data)).astype(dtype),
        "U": (3 * RANDOM.standard_normal(shape)).astype(dtype),
    }
    feeds |= {} if constant else {"I": indices}
    before, after = (onnxruntime.InferenceSession(each).run(None, feeds)[0] for each in (source, result))
    np.testing.assert_allclose(before, after, rtol=1e-5, atol=1e-5)


def test_places_that_are_copied_along_rows_are_read_once(tmp_path: Path) -> None:
    """As PyTorch writes scatter_add with an index for each edge."""
    text = """<ir_version: 9, opset_import: ["" : 18]> g (float[5,3] D, int64[7] I, float[7,3] U) => (float[5,3] Y)
      <int64[1] one = {1}, int64[2] whole = {7, 3}>
      { i = Unsqueeze (I, one) e = Expand (i, whole) Y = ScatterElements <axis = 0, reduction = "add"> (D, e, U) }"""
    onnx.save(onnx.parser.parse_model(text), tmp_path / "model.onnx")
    padfix.convert(tmp_path / "model.onnx", tmp_path / "result.onnx", target="mnn")
    written = [each.op_type for each in onnx.load(tmp_path / "result.onnx").graph.node]
    assert written.count("MatMul") == 1
    assert not {"Expand", "Where", "ScatterElements"} & set(written)
