"""PF204 on the command line: what tf2onnx writes comes out clean, and what is required stays."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest
from onnx import parser

import padfix
from padfix.cli.exits import run
from padfix.cli.group import cli

MODEL = """<ir_version: 8, opset_import: ["": {opset}]>
main (float[1,2,5,7] X) => (float[1,2,8,6] Y)
<float[0] empty = {{}}, int64[4] sizes = {{1,2,8,6}}> {{
  Y = Resize <mode = "linear"> (X, empty, empty, sizes)
}}"""


def saved(folder: Path, opset: int) -> Path:
    path = folder / "model.onnx"
    onnx.save(parser.parse_model(MODEL.format(opset=opset)), path)
    return path


def test_the_command_line_leaves_them_out(tmp_path: Path) -> None:
    source, result = saved(tmp_path, 13), tmp_path / "result.onnx"
    assert run(cli, ["check", str(source)]) == 1
    assert run(cli, ["convert", str(source), "-o", str(result)]) == 0
    assert list(onnx.load(result).graph.node[0].input) == ["X", "", "", "sizes"]
    assert run(cli, ["check", str(result)]) == 0


@pytest.mark.parametrize("opset", [11, 12])
def test_where_they_are_required_they_stay(opset: int, tmp_path: Path) -> None:
    source, result = saved(tmp_path, opset), tmp_path / "result.onnx"
    assert padfix.check(source).findings == []
    padfix.convert(source, result)
    assert result.read_bytes() == source.read_bytes()


def test_a_model_that_moves_to_a_newer_opset_loses_them(tmp_path: Path) -> None:
    source, result = saved(tmp_path, 11), tmp_path / "result.onnx"
    report = padfix.convert(source, result, opset=13)
    assert [each.finding.rule for each in report.rewrites] == ["PF204"]
    assert padfix.check(result).findings == []
