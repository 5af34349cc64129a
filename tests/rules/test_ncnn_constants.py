"""What ncnn finds no constants of, or reads in the wrong precision."""

from __future__ import annotations

from pathlib import Path

import onnx
import onnx.parser
import pytest

import padfix
from padfix.errors import RefusedError

BRANCHES = """(float[2,3] X) => (float[2,3] Y) {{ c = Constant <value = bool {{{taken}}}> ()
r = If (c) <then_branch = t () => (float[2,3] a) <float[1] k = {{2}}> {{ a = Mul (X, k) }},
else_branch = e () => (float[2,3] b) {{ b = Neg (X) }}> Y = Sigmoid (r) }}"""
DOUBLES = (
    "(double[2,3] X, double[2,3] Z) => (double[2,3] Y) <double[3] k = {1, 2, 3}> { s = Mul (X, X) Y = %s (s, %s) }"
)


def converted(graph: str, folder: Path) -> set[str]:
    onnx.save(onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : 13]> g {graph}'), folder / "model.onnx")
    padfix.convert(folder / "model.onnx", folder / "result.onnx", target="ncnn")
    assert not padfix.check(folder / "result.onnx", target="ncnn").findings
    return {node.op_type for node in onnx.load(folder / "result.onnx").graph.node}


@pytest.mark.parametrize("taken", [0, 1])
def test_a_branch_with_initializers_takes_the_place_of_the_if(taken: int, tmp_path: Path) -> None:
    assert ("If" in converted(BRANCHES.format(taken=taken), tmp_path)) == (taken == 0)


def test_doubles_are_computed_with_no_constants(tmp_path: Path) -> None:
    for op_type in ("Max", "Min", "Sub"):
        assert converted(DOUBLES % (op_type, "Z"), tmp_path) == {"Mul", op_type}
        with pytest.raises(RefusedError, match=op_type):
            converted(DOUBLES % (op_type, "k"), tmp_path)


def test_an_output_gets_a_shape(tmp_path: Path) -> None:
    model = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["" : 13]> g (float[2,3,n] X) => (float[2,3,n] Y) { Y = Relu (X) }'
    )
    model.graph.output[0].type.tensor_type.ClearField("shape")
    onnx.save(model, tmp_path / "model.onnx")
    padfix.convert(tmp_path / "model.onnx", tmp_path / "result.onnx", target="ncnn")
    assert len(onnx.load(tmp_path / "result.onnx").graph.output[0].type.tensor_type.shape.dim) == 3
