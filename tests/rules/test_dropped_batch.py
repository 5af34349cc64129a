"""What ncnn needs to find images: where a reduction drops their axis, and where it lies behind one of one element."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnx.parser
import pytest
from onnx import numpy_helper

import padfix
from padfix.errors import RefusedError

POOL = "Y = MaxPool <kernel_shape = [2, 2]> (d)"


def written(nodes: str, folder: Path) -> list[str]:
    constants = "<int64[4] whole = {1, 4, 1, 1}>"
    text = f'<ir_version: 8, opset_import: ["" : 11]> g (float[1,4,9,4] X) => (float Y) {constants} {{ {nodes} }}'
    onnx.save(onnx.parser.parse_model(text), folder / "before.onnx")
    padfix.convert(folder / "before.onnx", folder / "after.onnx", target="ncnn")
    assert not padfix.check(folder / "after.onnx", target="ncnn").findings
    return [each.op_type for each in onnx.load(folder / "after.onnx").graph.node]


@pytest.mark.parametrize(
    ("operator", "expected"),
    [
        ("ReduceMean", ["ReduceMean", "Squeeze"]),
        ("ReduceMax", ["ReduceMax", "ReduceMax", "Squeeze"]),
        ("ReduceSumSquare", ["Mul", "ReduceSum", "Squeeze"]),
    ],
)
def test_the_axes_are_kept_and_squeezed(operator: str, expected: list[str], tmp_path: Path) -> None:
    nodes = f"m = {operator} <axes = [0, 2, 3], keepdims = 0> (X) r = Reshape (m, whole) d = Sub (X, r) {POOL}"
    operators = written(nodes, tmp_path)
    assert operators[-3:] == ["Reshape", "Sub", "MaxPool"]
    assert set(operators[:-3]) == set(expected)
    assert operators.count("Squeeze") == 1


def test_without_a_layer_of_images_it_is_left_as_it_is(tmp_path: Path) -> None:
    nodes = "m = ReduceMean <axes = [0, 2, 3], keepdims = 0> (X) r = Reshape (m, whole) Y = Sub (X, r)"
    assert written(nodes, tmp_path) == ["ReduceMean", "Reshape", "Sub"]


def test_a_matrix_is_declined(tmp_path: Path) -> None:
    sums = "k = ReduceSum <axes = [2, 3], keepdims = 0> (X) m = ReduceSum <axes = [0], keepdims = 0> (k)"
    with pytest.raises(RefusedError, match="batch"):
        written(f"{sums} r = Reshape (m, whole) d = Sub (X, r) {POOL}", tmp_path)


def test_images_behind_an_axis_of_one_element_are_not_counted(tmp_path: Path) -> None:
    nodes = (
        "t = Transpose <perm = [1, 0, 2]> (X) l = LSTM <hidden_size = 6> (t, W, R) "
        "u = Transpose <perm = [0, 2, 1, 3]> (l) r = Reshape (u, shape) Y = Transpose <perm = [1, 0, 2]> (r)"
    )
    graph = f"g (float[6,1,5] X) => (float[6,1,6] Y) <int64[3] shape = {{1, 6, 6}}> {{ {nodes} }}"
    model = onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : 17]> {graph}')
    weights = {"W": np.ones((1, 24, 5), np.float32), "R": np.ones((1, 24, 6), np.float32)}
    model.graph.initializer.extend(numpy_helper.from_array(each, name) for name, each in weights.items())
    onnx.save(model, tmp_path / "before.onnx")
    padfix.convert(tmp_path / "before.onnx", tmp_path / "after.onnx", target="ncnn")
    held = {each.name: numpy_helper.to_array(each) for each in onnx.load(tmp_path / "after.onnx").graph.initializer}
    assert [each.tolist() for each in held.values() if each.dtype == np.int64] == [[0, 0, 6]]
