"""One model, several targets: a matrix, in every format."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

import onnx
import onnx.parser
import pytest

from padfix.cli.exits import run
from padfix.cli.group import cli

SAME = """<ir_version: 8, opset_import: ["" : 17]>
g (float[1,3,9,8] X, float[4,3,3,3] W) => (float[1,4,5,4] Y) {
   Y = Conv <auto_pad = "SAME_LOWER", strides = [2, 2]> (X, W)
}
"""
PLAIN = """<ir_version: 8, opset_import: ["" : 17]>
g (float[1,3,9,8] X, float[4,3,3,3] W) => (float[1,4,7,6] Y) { Y = Conv <kernel_shape = [3, 3]> (X, W) }
"""


@pytest.fixture
def models(tmp_path: Path) -> list[str]:
    for name, text in (("same", SAME), ("plain", PLAIN)):
        onnx.save(onnx.parser.parse_model(text), tmp_path / f"{name}.onnx")
    return [str(tmp_path / "same.onnx"), str(tmp_path / "plain.onnx")]


@pytest.mark.parametrize("told", [["openvino,opencv,ncnn"], ["openvino", "--target=opencv,ncnn"]])
def test_the_text_ends_with_a_matrix(told: list[str], models: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(cli, ["check", *models, "--target", *told]) == 1
    printed = capsys.readouterr().out
    assert f"{models[0]} for opencv\n" in printed
    lines = printed.splitlines()
    head = next(number for number, line in enumerate(lines) if line.split() == ["Model", "openvino", "opencv", "ncnn"])
    assert lines[head + 1].split(models[0])[1].split("  ")[1:] != []
    assert "1 silent, 1 warning" in lines[head + 1]
    assert "1 error, 1 warning" in lines[head + 1]
    assert lines[head + 2].split() == [models[1], "nothing", "nothing", "nothing"]
    assert "in 2 models for 3 targets" in lines[-1]


def test_other_formats_name_the_target(models: list[str], tmp_path: Path) -> None:
    wanted = {name: tmp_path / f"report.{name}" for name in ("json", "junit", "html", "markdown", "sarif")}
    reports = [f"--report={name}={file}" for name, file in wanted.items()]
    assert run(cli, ["check", *models, "--target", "openvino,opencv", "-q", *reports]) == 1
    document = json.loads(wanted["json"].read_text())
    assert document["targets"] == ["openvino", "opencv"]
    assert document["sources"] == models
    assert {(each["target"], each["severity"]) for each in document["findings"]} == {
        ("openvino", "warning"),
        ("opencv", "warning"),
        ("opencv", "silent"),
    }
    suites = [str(suite.get("name")) for suite in ElementTree.parse(wanted["junit"]).iter("testsuite")]
    assert suites == [f"{model} for {target}" for model in models for target in ("openvino", "opencv")]
    for name in ("html", "markdown"):
        text = wanted[name].read_text().replace("<wbr>", "").replace("\\_", "_")
        assert "1 silent, 1 warning" in text
        assert f"{models[0]} for opencv" in text
    results = json.loads(wanted["sarif"].read_text())["runs"][0]["results"]
    assert {each["properties"]["target"] for each in results} == {"openvino", "opencv"}


def test_a_name_that_is_wrong_is_said_once(models: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(cli, ["check", *models, "--target", "openvino,opencw"]) == 2
    assert capsys.readouterr().err.count("There is no target 'opencw'") == 1


def test_a_conversion_is_for_one_target(models: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(cli, ["convert", models[0], "-o", str(tmp_path / "out.onnx"), "--target", "opencv,ncnn"]) == 2
    assert "'opencv,ncnn' is more than one target" in capsys.readouterr().err
    assert not (tmp_path / "out.onnx").exists()


def test_one_target_is_reported_as_ever(models: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(cli, ["check", models[0], "--target", "opencv@4.14"]) == 1
    printed = capsys.readouterr().out
    assert printed.startswith(f"{models[0]}\n")
    assert "Model" not in printed
    assert "OpenCV 4.14.0 gets this Conv wrong, without a word" in printed
