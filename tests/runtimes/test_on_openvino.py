"""What OpenVINO gives beside what the model says: an axis too many, an input by another name; what it leaves out."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnx.parser
import pytest

import padfix
from padfix.runtimes.adapter import open_runtime

pytest.importorskip("openvino")

TEXT = """<ir_version: 8, opset_import: ["" : 17]> g (float[1,7,8,1] X) => (float[1,7,5,2] Y)
    { Y = DFT <axis = 2, onesided = 1> (X) }"""


def shape_of(file: Path) -> tuple[int, ...]:
    """Return the shape of what OpenVINO gives for a model of the result above."""
    data = np.ones((1, 7, 8, 1), np.float32)
    (found,) = open_runtime("openvino").run(file.read_bytes(), {"X": data}, [(1, 7, 5, 2)])
    assert isinstance(found, np.ndarray)
    return found.shape


def test_an_axis_of_one_element_too_many_is_a_difference(tmp_path: Path) -> None:
    source, result = tmp_path / "model.onnx", tmp_path / "result.onnx"
    onnx.save(onnx.parser.parse_model(TEXT), source)
    assert shape_of(source) == (1, 7, 5, 1, 2)
    padfix.convert(source, result, target="openvino")
    assert [node.op_type for node in onnx.load(result).graph.node] == ["DFT", "Slice"]
    assert shape_of(result) == (1, 7, 5, 2)


def test_an_input_that_nothing_reads_is_not_fed(tmp_path: Path) -> None:
    model = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["" : 17]> m (float[2,3] X, float[4] Z) => (float[2,3] Y) { Y = Relu (X) }'
    )
    onnx.save(model, tmp_path / "model.onnx")
    assert padfix.verify_on(tmp_path / "model.onnx", "openvino").agrees


def test_an_input_by_another_name_is_said(tmp_path: Path) -> None:
    text = "(float[2,3] X) => (float[2,3] Y) { Y = Dropout (X) }"
    model = onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : 17]> g {text}')
    found = open_runtime("openvino").run(model.SerializeToString(), {"X": np.ones((2, 3), np.float32)}, [(2, 3)])
    assert found == "it has an input by another name: Y"
    onnx.save(model, tmp_path / "model.onnx")
    padfix.convert(tmp_path / "model.onnx", tmp_path / "out.onnx", target="openvino")
    assert padfix.verify_on(tmp_path / "out.onnx", "openvino").agrees
