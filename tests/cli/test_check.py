"""`padfix check` as a build calls it: many models, configuration, several reports, baselines, step summaries."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from padfix.cli.exits import run
from padfix.cli.group import cli

ROOT = Path(__file__).parents[2]
FIXTURES = ROOT / "fixtures" / "onnx"


def invoke(*arguments: object) -> int:
    return run(cli, [str(argument) for argument in arguments])


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("same_cnn", "explicit_cnn", "legacy_upsample"):
        shutil.copy(FIXTURES / f"{name}.onnx", tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("GITHUB_STEP_SUMMARY", raising=False)
    return tmp_path


def rules(shown: str) -> list[str]:
    return [each["rule"] for each in json.loads(shown)["findings"]]


def test_a_folder_in_one_call_and_by_several_processes(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "broken.onnx").write_bytes(b"\x08\x07\x3a\xff")
    assert invoke("check", ".", "--format", "json") == 2
    alone = capsys.readouterr()
    assert invoke("check", ".", "--format", "json", "--jobs", 2) == 2
    assert capsys.readouterr() == alone
    document = json.loads(alone.out)
    assert document["sources"] == ["explicit_cnn.onnx", "legacy_upsample.onnx", "same_cnn.onnx"]
    assert [each["source"] for each in document["errors"]] == ["broken.onnx"]
    assert "broken.onnx" in alone.err


def test_several_formats_in_one_run(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke("check", "same_cnn.onnx", "--report", "sarif=x.sarif", "--report", "junit=x.xml") == 1
    assert capsys.readouterr().out.startswith("same_cnn.onnx\n")
    assert len(json.loads((folder / "x.sarif").read_text())["runs"][0]["results"]) == 4
    assert 'failures="2"' in (folder / "x.xml").read_text()


@pytest.mark.parametrize("value", ["sarif", "sarif=", "pdf=x.pdf", "=x"])
def test_a_report_needs_a_known_format_and_a_file(folder: Path, value: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke("check", "same_cnn.onnx", "--report", value) == 2
    assert "FORMAT=FILE" in capsys.readouterr().err


def test_reports_never_overwrite_a_model_or_each_other(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = (folder / "same_cnn.onnx").read_bytes()
    assert invoke("check", ".", "--report", "sarif=same_cnn.onnx") == 2
    assert invoke("check", ".", "--write-baseline", "same_cnn.onnx") == 2
    assert invoke("check", ".", "--report", "sarif=x", "--output", "./x") == 2
    assert (folder / "same_cnn.onnx").read_bytes() == before
    assert not (folder / "x").exists()


def test_a_baseline_lets_what_is_known_pass(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke("check", ".", "--write-baseline", "known.json") == 0
    streams = capsys.readouterr()
    assert "wrote known.json with 5 findings" in streams.err
    assert streams.out == "", "what is known is not to be read"
    assert invoke("check", ".", "--baseline", "known.json") == 0
    assert capsys.readouterr().out == "No new findings in 3 models; 5 more in the baseline.\n"
    shutil.copy("explicit_cnn.onnx", "legacy_upsample.onnx")
    shutil.copy(FIXTURES / "dilated_same.onnx", folder)
    assert invoke("check", ".", "--baseline", "known.json") == 1
    streams = capsys.readouterr()
    assert streams.out.startswith("dilated_same.onnx\n")
    assert "1 entries of the baseline are fixed" in streams.err
    assert invoke("check", ".", "--baseline", "missing.json") == 2


def test_the_configuration_file_speaks_and_the_command_line_has_the_last_word(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("padfix.toml").write_text('ignore = ["PF103"]\nfail-on = "error"\n[per-node-ignores]\nstem = ["PF1"]\n')
    assert invoke("check", "same_cnn.onnx", "--format", "json") == 0
    assert rules(capsys.readouterr().out) == ["PF101", "PF101"]
    assert invoke("check", "same_cnn.onnx", "--format", "json", "--ignore", "PF101", "--fail-on", "warning") == 1
    assert rules(capsys.readouterr().out) == ["PF103"]
    Path("other.toml").write_text('exclude = ["same*"]\nbaseline = "known.json"\n')
    assert invoke("check", ".", "--config", "other.toml", "--write-baseline", "known.json") == 0
    assert "1 findings" in capsys.readouterr().err
    assert invoke("check", ".", "--config", "other.toml") == 0
    assert "No new findings in 2 models" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ('ingore = ["PF103"]', "Did you mean 'ignore'?"),
        ('ignore = ["implict-same-padding"]', "Did you mean 'implicit-same-padding'?"),
        ('target = "nothing"', "Targets: onnx"),
        ('[per-file-ignores]\n"*" = ["PF9"]', "A family is a prefix"),
    ],
)
def test_a_wrong_configuration_is_an_error(
    folder: Path, text: str, hint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("padfix.toml").write_text(text)
    assert invoke("check", "same_cnn.onnx") == 2
    assert hint in capsys.readouterr().err


def test_github_gets_annotations_and_a_step_summary(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    summary = folder / "summary.md"
    summary.write_text("before\n")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(summary))
    assert invoke("check", "same_cnn.onnx") == 1
    assert summary.read_text() == "before\n", "only with --format github"
    capsys.readouterr()
    assert invoke("check", "same_cnn.onnx", "--format", "github") == 1
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 4
    assert all(line.startswith("::warning file=same_cnn.onnx,line=1,title=PF10") for line in lines)
    assert summary.read_text().startswith("before\n## padfix check\n")


@pytest.mark.parametrize(
    ("variables", "coloured"),
    [({}, False), ({"FORCE_COLOR": "1"}, True), ({"FORCE_COLOR": "1", "NO_COLOR": "1"}, False)],
)
def test_colours(
    folder: Path,
    variables: dict[str, str],
    coloured: bool,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    for name in ("NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert invoke("check", "same_cnn.onnx") == 1
    assert ("\x1b[33m" in capsys.readouterr().out) is coloured


def test_quiet_leaves_the_answer_to_the_exit_code(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke("check", "-q", "same_cnn.onnx") == 1
    assert invoke("check", "--quiet", "explicit_cnn.onnx") == 0
    assert capsys.readouterr() == ("", "")
    assert invoke("check", "-q", "missing.onnx") == 2
    assert "missing.onnx" in capsys.readouterr().err


@pytest.mark.parametrize("word", ["pf1", "pf101,PF103", "implicit-SAME-padding"])
def test_rules_are_named_in_capitals_or_not(folder: Path, word: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke("check", "same_cnn.onnx", "--select", word, "--format", "json") == 1
    assert "PF101" in rules(capsys.readouterr().out)
    assert invoke("check", "same_cnn.onnx", "--ignore", "pf1") == 0
    Path("padfix.toml").write_text('ignore = ["pf1"]\n')
    assert invoke("check", "same_cnn.onnx") == 0


def test_standard_input_is_a_model(folder: Path) -> None:
    def check(*arguments: str, data: bytes) -> subprocess.CompletedProcess[bytes]:
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        command = [sys.executable, "-m", "padfix", "check", *arguments]
        return subprocess.run(command, input=data, capture_output=True, cwd=folder, check=False, env=environment)

    done = check("-", data=Path("same_cnn.onnx").read_bytes())
    assert (done.returncode, done.stderr) == (1, b"")
    assert done.stdout.startswith(b"standard input\n")
    assert check("-", "explicit_cnn.onnx", data=Path("explicit_cnn.onnx").read_bytes()).returncode == 0
    for data in (b"words", b""):
        done = check("-", data=data)
        assert (done.returncode, done.stdout) == (2, b"")
        assert b"standard input" in done.stderr


def test_backups_are_not_models(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke("convert", "-q", "--in-place", "same_cnn.onnx", "legacy_upsample.onnx") == 0
    assert invoke("check", ".", "--format", "json") == 0
    assert json.loads(capsys.readouterr().out)["sources"] == [
        "explicit_cnn.onnx",
        "legacy_upsample.onnx",
        "same_cnn.onnx",
    ]
    assert invoke("check", "same_cnn.onnx.bak") == 1, "what is named itself is checked"


@pytest.mark.parametrize("command", [["check"], ["convert", "-o", "out.onnx"]])
def test_a_file_that_is_not_there(command: list[str], folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke(*command, "missing.onnx") == 2
    assert "hint: Check the path." in capsys.readouterr().err
