"""A Softmax of opsets before 13 that takes the batch together with all else, of which there may be none."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnx.parser
import onnxruntime
import pytest

import padfix


@pytest.mark.parametrize("axis", [-3, 0])
@pytest.mark.parametrize("lengths", ["B,4,3", "B,4,W"])
def test_the_batch_is_left_to_count_behind_a_matrix_of_one_row(axis: int, lengths: str, tmp_path: Path) -> None:
    source, result = tmp_path / "model.onnx", tmp_path / "result.onnx"
    text = f'<ir_version: 8, opset_import: ["" : 11]> g (float[{lengths}] X) => (float[{lengths}] Y) '
    model = onnx.parser.parse_model(text + f"{{ Y = Softmax <axis = {axis}> (X) }}")
    onnx.save(model, source)
    padfix.convert(source, result, target="openvino")
    found = onnx.load(result)
    assert [node.op_type for node in found.graph.node[:2]] == ["Flatten", "Softmax"] or "W" in lengths
    session = onnxruntime.InferenceSession(result)
    for batch in (0, 2):
        assert session.run(None, {"X": np.ones((batch, 4, 3), np.float32)})[0].shape == (batch, 4, 3)
