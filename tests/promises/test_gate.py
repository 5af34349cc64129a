"""What exit code 0 of convert promises: the written model is proven, whatever was edited, and clean under check."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest
from onnx import parser

import padfix
from padfix.cli.exits import run
from padfix.cli.group import cli

REFUSED = """<ir_version: 8, opset_import: ["": 17]>
main (float[1,1,8,8] X, float[1,1,3,3] W) => (float[1,1,a,b] Z) {
  [good] Y = Conv <auto_pad = "SAME_UPPER", kernel_shape = [3, 3]> (X, W)
  [bad] Z = Conv <auto_pad = "SAME_UPPER", pads = [0, 0, 0, 0], kernel_shape = [3, 3]> (Y, W)
}"""
MOVED = """<ir_version: 8, opset_import: ["": 17]>
main (float[1,4] X) => (float[1,4] Y) {
  Y = Relu (X)
}"""
STALE = """<ir_version: 8, opset_import: ["": 17]>
main (float[1,1,8,8] X) => (float[1,1,6,6] Y) <float[1,1,8,8] pooled> {
  pooled = MaxPool <kernel_shape = [3, 3]> (X)
  Y = Relu (pooled)
}"""


def saved(folder: Path, text: str) -> Path:
    path = folder / "model.onnx"
    onnx.save(parser.parse_model(text), path)
    return path


@pytest.fixture
def refused(tmp_path: Path) -> Path:
    """Return a model with one node that can be rewritten and one whose pads contradict each other."""
    return saved(tmp_path, REFUSED)


def test_a_refusal_ends_with_no_and_nothing_is_written(refused: Path, tmp_path: Path) -> None:
    result = tmp_path / "result.onnx"
    assert run(cli, ["convert", str(refused), "-o", str(result)]) == 1
    assert not result.exists()
    with pytest.raises(padfix.RefusedError, match="bad") as caught:
        padfix.convert(refused, result, verify=False)
    assert caught.value.report is not None
    assert [each.finding.node for each in caught.value.report.refusals] == ["bad"]


def test_partial_writes_the_rest(refused: Path, tmp_path: Path) -> None:
    result = tmp_path / "result.onnx"
    report = padfix.convert(refused, result, partial=True, verify=False)
    assert [each.finding.node for each in report.rewrites] == ["good"]
    assert [finding.node for finding in padfix.check(result).findings] == ["bad"]


@pytest.mark.parametrize(("text", "settings"), [(MOVED, {"opset": 18}), (STALE, {})], ids=["opset", "declaration"])
def test_whatever_changes_the_file_is_proven(text: str, settings: dict[str, int], tmp_path: Path) -> None:
    report = padfix.convert(saved(tmp_path, text), tmp_path / "result.onnx", **settings)
    assert report.verdict is not None
    assert report.verdict.runs


def test_what_changes_nothing_is_a_copy_of_the_bytes(tmp_path: Path) -> None:
    source, result = saved(tmp_path, MOVED), tmp_path / "result.onnx"
    report = padfix.convert(source, result)
    assert report.verdict is not None
    assert not report.verdict.runs
    assert result.read_bytes() == source.read_bytes()


def test_what_is_written_for_a_target_is_clean_for_it(tmp_path: Path) -> None:
    text = """<ir_version: 6, opset_import: ["": 11]>
    main (float[1,3,8,8] X) => (float[1,2,4,4] Y) <float[2,3,2,2] W = {%s}> {
      Y = Conv <auto_pad = "SAME_UPPER", kernel_shape = [2, 2], strides = [2, 2]> (X, W)
    }"""
    text %= ", ".join(str(number) for number in range(24))
    source, result = saved(tmp_path, text), tmp_path / "result.onnx"
    found = {finding.rule for finding in padfix.check(source, target="portable").findings}
    assert found == {"PF101", "PF111", "PF301"}
    assert run(cli, ["convert", str(source), "-o", str(result), "--target", "portable"]) == 0
    assert run(cli, ["check", str(result), "--target", "portable"]) == 0
    after = onnx.load(result)
    assert after.opset_import[0].version == 13
    assert [node.op_type for node in after.graph.node] == ["Conv"]


def test_an_opset_above_the_ceiling_is_lowered_or_refused(tmp_path: Path) -> None:
    source, result = saved(tmp_path, MOVED.replace("17", "18")), tmp_path / "result.onnx"
    assert [finding.rule for finding in padfix.check(source, target="portable").findings] == ["PF302"]
    assert padfix.check(source).findings == []
    report = padfix.convert(source, result, target="portable")
    assert report.verdict is not None
    assert report.verdict.equivalent
    assert onnx.load(result).opset_import[0].version == 17
    source = saved(tmp_path, MOVED.replace("17", "18").replace("float", "int32").replace("Relu", "BitwiseNot"))
    result.unlink()
    with pytest.raises(padfix.RefusedError, match=r"BitwiseNot '#0' is in no opset up to 17"):
        padfix.convert(source, result, target="onnx2tf")
    assert not result.exists()
