"""Lengths and axes that a caller feeds, for a runtime that wants to know them beforehand."""

from __future__ import annotations

from pathlib import Path

import onnx
import onnx.parser
import pytest

import padfix
from padfix.errors import PadfixError


@pytest.mark.parametrize(
    ("lengths", "given", "nodes"),
    [
        ("4,6", "int64[2] s", "Y = Reshape (X, s)"),
        ("4,6", "int32[2] s", "t = Cast <to = 7> (s) Y = Reshape (X, t)"),
        ("4,6", "int64[1] s", "Y = Unsqueeze (X, s)"),
        ("4,1,6", "int64[1] s", "Y = Squeeze (X, s)"),
    ],
)
def test_qnn_is_not_given_what_a_caller_steers(lengths: str, given: str, nodes: str, tmp_path: Path) -> None:
    source, result = tmp_path / "model.onnx", tmp_path / "result.onnx"
    text = f'<ir_version: 8, opset_import: ["" : 17]> g (float[{lengths}] X, {given}) => (float Y) {{ {nodes} }}'
    model = onnx.parser.parse_model(text)
    model.graph.output[0].type.tensor_type.ClearField("shape")
    onnx.save(model, source)
    with pytest.raises(PadfixError, match=r"can't be rewritten"):
        padfix.convert(source, result, target="qnn")
    assert not result.exists()
