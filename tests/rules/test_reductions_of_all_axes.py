"""Reductions of all axes for what crashes on these, or on more than two at once: of a list."""

from __future__ import annotations

from pathlib import Path

import onnx
import onnx.parser
import pytest

import padfix

TEXT = '<ir_version: 8, opset_import: ["" : 13]> g (float[%s] X) => (float Y) { Y = %s (X) }'


@pytest.mark.parametrize(
    ("lengths", "node", "expected"),
    [
        ("1,5,6,7", "ReduceSum <keepdims = 0>", ["ReduceSum"]),
        ("3,5,6", "ReduceSum <keepdims = 0>", ["ReduceSum"]),
        ("2,5,6", "ReduceMax <keepdims = 0>", ["Reshape", "ReduceMax"]),
        ("5,6", "ReduceMin <keepdims = 0>", ["Reshape", "ReduceMin"]),
    ],
)
def test_all_axes_are_reduced_at_once(lengths: str, node: str, expected: list[str], tmp_path: Path) -> None:
    source, result = tmp_path / "model.onnx", tmp_path / "result.onnx"
    model = onnx.parser.parse_model(TEXT % (lengths, node))
    onnx.save(model, source)
    padfix.convert(source, result, target="portable")
    assert [each.op_type for each in onnx.load(result).graph.node if each.op_type != "Constant"] == expected
    assert not {each.rule for each in padfix.check(result, target="portable").findings} & {"PF306"}


def test_what_reduces_nothing_is_an_identity(tmp_path: Path) -> None:
    source, result = tmp_path / "model.onnx", tmp_path / "result.onnx"
    model = onnx.parser.parse_model(TEXT.replace("13", "18") % ("1,5,6", "ReduceSum <noop_with_empty_axes = 1>"))
    onnx.save(model, source)
    padfix.convert(source, result, target="portable")
    assert "ReduceSum" not in {each.op_type for each in onnx.load(result).graph.node}
