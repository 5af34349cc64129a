"""PF203: the coordinates that opset 13 removed are rewritten for every pair of lengths, or refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import parser

import padfix
from padfix.cli.exits import run
from padfix.cli.group import cli
from padfix.geometry.resampling import nearest_indices
from padfix.proof.spec_executor import SpecExecutor


def model(folder: Path, opset: int, size: int, output: int, rounding: str, mode: str = "nearest") -> Path:
    path = folder / "model.onnx"
    text = f"""<ir_version: 8, opset_import: ["": {opset}]>
    main (float[2,3,{size},2] X) => (float[2,3,{output},2] Y)
    <float[0] empty = {{}}, int64[4] sizes = {{2,3,{output},2}}> {{
      Y = Resize <coordinate_transformation_mode = "tf_half_pixel_for_nn", mode = "{mode}",
                  nearest_mode = "{rounding}"> (X, empty, empty, sizes)
    }}"""
    onnx.save(parser.parse_model(text), path)
    return path


@pytest.mark.parametrize("rounding", ["floor", "ceil", "round_prefer_floor", "round_prefer_ceil"])
@pytest.mark.parametrize(("size", "output"), [(5, 8), (14, 2), (9, 9), (1, 6), (13, 6)])
def test_every_rounding_keeps_its_elements(size: int, output: int, rounding: str, tmp_path: Path) -> None:
    source, result = model(tmp_path, 13, size, output, rounding), tmp_path / "result.onnx"
    data = np.arange(12 * size, dtype=np.float32).reshape(2, 3, size, 2)
    before = SpecExecutor(source).run({"X": data})["Y"]
    padfix.convert(source, result)
    assert padfix.check(result, ignore=["PF206"]).findings == []
    np.testing.assert_array_equal(SpecExecutor(result).run({"X": data})["Y"], before)


def test_rounded_down_it_is_half_pixel_for_every_pair_of_lengths() -> None:
    from fractions import Fraction

    for size in range(1, 40):
        for output in range(1, 40):
            for scale in (Fraction(output, size), float(np.float32(output / size))):
                lengths = (size, output, scale)
                removed = nearest_indices("tf_half_pixel_for_nn", "floor", *lengths)
                assert removed == nearest_indices("half_pixel", "round_prefer_ceil", *lengths)


@pytest.mark.parametrize("opset", [11, 12])
def test_where_it_is_legal_it_stays_until_the_model_moves(opset: int, tmp_path: Path) -> None:
    source, result = model(tmp_path, opset, 5, 8, "floor"), tmp_path / "result.onnx"
    assert padfix.check(source).findings == []
    padfix.convert(source, result)
    assert result.read_bytes() == source.read_bytes()
    report = padfix.convert(source, result, opset=18)
    assert [each.finding.rule for each in report.rewrites] == ["PF203", "PF204"]
    assert padfix.check(result).findings == []


def test_what_has_no_equal_stops_the_move(tmp_path: Path) -> None:
    source = model(tmp_path, 12, 5, 8, "floor", mode="linear")
    with pytest.raises(padfix.UsageError, match="tf_half_pixel_for_nn"):
        padfix.convert(source, tmp_path / "result.onnx", opset=13)


def test_what_has_no_equal_ends_with_no(tmp_path: Path) -> None:
    source, result = model(tmp_path, 13, 5, 8, "floor", mode="linear"), tmp_path / "result.onnx"
    assert run(cli, ["convert", str(source), "-o", str(result)]) == 1
    assert not result.exists()
    assert run(cli, ["convert", str(source), "-o", str(result), "--partial", "--no-verify"]) == 0
    assert [finding.rule for finding in padfix.check(result).findings] == ["PF203"]


def test_the_runtimes_own_warnings_stay_away(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    source = model(tmp_path, 13, 5, 8, "floor")
    assert run(cli, ["convert", str(source), "-o", str(tmp_path / "result.onnx"), "--reference", "spec", "-q"]) == 0
    assert capfd.readouterr() == ("", "")
