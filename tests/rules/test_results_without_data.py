"""Results that depend on no data, for runtimes that give none: a part of what is joined with the data of an input."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnx.parser
import pytest

import padfix
from padfix.errors import RefusedError
from tests.support.one_node import run


def converted(folder: Path, result: str, target: str, opset: int = 17) -> Path:
    graph = "(float[1,n] X) => (float[1,n] Z, {type} Y) <float[1] c = {{1.5}}, float[4] d = {{-1, 0, 3.5, 7}}, "
    graph += "int64[2] s = {{2, 2}}, int64[1] one = {{1}}> {{ {result} Z = Abs (X) }}"
    kind = "int64[2]" if "Cast" in result else "float"
    text = f'<ir_version: 8, opset_import: ["" : {opset}]> g ' + graph.format(result=result, type=kind)
    onnx.save(onnx.parser.parse_model(text), folder / "model.onnx")
    padfix.convert(folder / "model.onnx", folder / "result.onnx", target=target)
    return folder / "result.onnx"


@pytest.mark.parametrize("target", ["ncnn", "opencv@4.14"])
@pytest.mark.parametrize(
    "result",
    [
        "Y = Expand (c, s)",
        "Y = Expand (c, one)",
        "Y = Neg (d)",
        "Y = Reshape (d, s)",
        "Y = Concat <axis = 0> (c, c)",
        "a, b = Split <axis = 0> (d) Y = Sub (a, b)",
        "Y = ConstantOfShape (s)",
        "Y = Constant <value = float[2] {1.5, 2}> ()",
    ],
)
def test_a_result_without_data_is_joined_with_data(result: str, target: str, tmp_path: Path) -> None:
    path = converted(tmp_path, result, target)
    nodes = [node.op_type for node in onnx.load(path).graph.node]
    assert nodes == ["Reshape", "Concat", "Slice", "Reshape", "Abs"]
    assert not padfix.check(path, target=target).findings
    for length in (1, 6):
        feeds = {"X": np.full((1, length), np.nan, np.float32)}
        expected = run(onnx.load(tmp_path / "model.onnx"), feeds)
        for found, one in zip(run(onnx.load(path), feeds), expected, strict=True):
            np.testing.assert_array_equal(found, one)


def test_integers_are_joined_with_what_a_cast_makes(tmp_path: Path) -> None:
    path = converted(tmp_path, "Y = Cast <to = 7> (s)", "opencv@4.14")
    assert "Cast" in [node.op_type for node in onnx.load(path).graph.node]
    with pytest.raises(RefusedError):
        converted(tmp_path, "Y = Cast <to = 7> (s)", "ncnn")


def test_what_has_open_lengths_has_no_such_form(tmp_path: Path) -> None:
    with pytest.raises(RefusedError, match="left open"):
        converted(tmp_path, "s1 = Shape (X) Y = Expand (c, s1)", "ncnn")
