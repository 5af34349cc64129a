"""The command line: options reach the API, outcomes become exit codes, nothing ends in a traceback."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

import padfix
from padfix import api, errors, targets
from padfix.cli.exits import run
from padfix.cli.group import COMMANDS, cli
from padfix.reports import check_formats
from padfix.results import (
    CheckReport,
    ConvertReport,
    Failure,
    Finding,
    LocalProof,
    OutputDifference,
    ProofRun,
    Refused,
    Rewritten,
    Severity,
    Verdict,
)

FIXTURES = Path(__file__).parents[2] / "fixtures" / "onnx"


def invoke(*arguments: object) -> int:
    return run(cli, [str(argument) for argument in arguments])


def finding(severity: Severity = Severity.WARNING) -> Finding:
    return Finding(
        "PF101", "implicit-same-padding", severity, "main", "conv", "Conv", "SAME on 8x8.", True, "Convert it."
    )


def verdict(*, equivalent: bool = True) -> Verdict:
    output = OutputDifference("Y", 1e-7 if equivalent else 0.5, 1e-6, 1e-4, equivalent)
    return Verdict(equivalent, "onnxruntime", (ProofRun("normal", "onnxruntime", {"X": (1, 2)}, (output,)),))


def conversion(**changes: Any) -> ConvertReport:
    values: dict[str, Any] = {
        "source": "in.onnx",
        "output": "out.onnx",
        "source_kind": "onnx",
        "opset": 17,
        "rewrites": [Rewritten(finding(), LocalProof(4, 0.0, ("spec", "onnxruntime")))],
        "refusals": [Refused(finding(), "The size of the group is not known.")],
        "verdict": verdict(),
        "written": True,
    }
    return ConvertReport(**{**values, **changes})


def test_help_and_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke("--help") == 0
    shown = capsys.readouterr().out
    assert all(f"  {name} " in shown for name in COMMANDS)
    assert "Exit codes: 0 yes" in shown
    assert invoke("--version") == 0
    assert capsys.readouterr().out == f"padfix {padfix.__version__}\n"


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke(name, "--help") == 0
    assert f"padfix {name}" in capsys.readouterr().out


@pytest.mark.parametrize(
    "arguments",
    [
        ["nonsense"],
        ["check"],
        ["convert", "a.onnx"],
        ["convert", "a.onnx", "-o", "b.onnx", "--shape", "X"],
        ["convert", "a.onnx", "-o", "b.onnx", "--shape", "X=1,-2"],
        ["convert", "a.onnx", "-o", "b.onnx", "--shape", "X=1", "--shape", "X=2"],
        ["convert", "a.onnx", "-o", "b.onnx", "--report", "r.txt"],
        ["convert", "a.onnx", "-o", "b.onnx", "--reference", "torch"],
        ["convert", "a.onnx", "-o", "b.onnx", "--rtol", "-1"],
        ["convert", "a.onnx", "-o", "b.onnx", "--target", "onnx", "--target", "opencv"],
        ["check", "a.onnx", "--timeout", "5", "--timeout=9"],
        ["explain", "PF999"],
        ["targets", "nonsense"],
        ["check", "--fail-on", "never", "a.onnx"],
    ],
)
def test_wrong_usage_exits_2_with_a_sentence(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke(*arguments) == 2
    streams = capsys.readouterr()
    assert streams.err.strip()
    assert "Traceback" not in streams.err
    assert not streams.out


def test_convert_hands_every_option_to_the_api(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    seen: dict[str, Any] = {}

    def convert(source: Path, output: Path, **settings: Any) -> ConvertReport:
        seen.update(settings, source=source, output=output)
        return conversion()

    monkeypatch.setattr(api, "convert", convert)
    probe = tmp_path / "probe.npz"
    probe.write_bytes(b"")
    options = "--opset 18 --target portable --pads node --input a --input b:0 --output y --signature s --tag t"
    options += " --constant flag=False --constant a=b=0.5"
    options += " --shape X=1,3,8,8 --shape k=v=2 --shape scalar= --reference spec --rtol 1e-3 --atol 1e-4"
    options += " --seed 7 --prove-on onnxruntime --probes-only --range X=0..255 --range k=v=-1.5..2e3"
    assert invoke("convert", "in.onnx", "-o", "out.onnx", *options.split(), "--probe", probe, "--external-data") == 0
    assert callable(seen.pop("progress"))
    assert seen == {
        "source": Path("in.onnx"),
        "output": Path("out.onnx"),
        "opset": 18,
        "target": "portable",
        "pads": "node",
        "inputs": ["a", "b:0"],
        "outputs": ["y"],
        "constants": {"flag": "False", "a=b": "0.5"},
        "custom_objects": None,
        "signature": "s",
        "tag": "t",
        "shapes": {"X": (1, 3, 8, 8), "k=v": (2,), "scalar": ()},
        "reference": "spec",
        "rtol": 1e-3,
        "atol": 1e-4,
        "seed": 7,
        "probes": [probe],
        "probes_only": True,
        "ranges": {"X": (0, 255), "k=v": (-1.5, 2e3)},
        "prove_on": ["onnxruntime"],
        "partial": False,
        "verify": True,
        "external_data": True,
        "certificate": False,
        "layers": False,
        "trust": False,
    }
    shown = capsys.readouterr().out
    assert "rewrote  PF101 implicit-same-padding: 1 x Conv" in shown
    assert "refused  PF101 implicit-same-padding: main/conv (Conv): The size of the group is not known." in shown
    assert "  proof    Equal to the original as run by ONNX Runtime: 1 probe\n" in shown
    assert "             closest to its limit: 1e-07 of 0.0001" in shown
    assert "Wrote out.onnx (opset 17)." in shown


def test_convert_without_proof_says_so(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    seen: dict[str, Any] = {}
    monkeypatch.setattr(api, "convert", lambda *_, **settings: seen.update(settings) or conversion(verdict=None))
    assert invoke("convert", "in.onnx", "-o", "out.onnx", "--no-verify") == 0
    assert seen["verify"] is False
    assert "WITHOUT PROOF" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (errors.NotEquivalent("Y differs."), 1),
        (errors.ProofUnavailableError("No witness.", "Use --reference spec."), 2),
    ],
)
def test_a_failed_proof_still_writes_the_report(
    error: errors.PadfixError,
    code: int,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def convert(*_: Any, **__: Any) -> ConvertReport:
        failure = Failure(error.message, error.hint, error.exit_code)
        found = None if code == 2 else verdict(equivalent=False)
        error.report = conversion(verdict=found, error=failure, written=False)
        raise error

    monkeypatch.setattr(api, "convert", convert)
    for ending in ("json", "md", "html"):
        file = tmp_path / f"report.{ending}"
        assert invoke("convert", "in.onnx", "-o", "out.onnx", "--report", file) == code
        assert "PF101" in file.read_text(encoding="utf-8")
        streams = capsys.readouterr()
        assert "Nothing was written to out.onnx." in streams.out
        assert f"padfix: error: {error.message}" in streams.err


def test_convert_prints_json(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(api, "convert", lambda *_, **__: conversion())
    assert invoke("convert", "in.onnx", "-o", "out.onnx", "--format", "json") == 0
    document = json.loads(capsys.readouterr().out)
    assert next(iter(document)) == "schema"
    assert document["rewrites"][0]["proof"] == {"cases": 4, "max_abs_diff": 0.0, "witnesses": ["spec", "onnxruntime"]}


def test_quiet_prints_nothing(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(api, "convert", lambda *_, **__: conversion())
    assert invoke("convert", "in.onnx", "-o", "out.onnx", "--quiet") == 0
    streams = capsys.readouterr()
    assert (streams.out, streams.err) == ("", "")


def test_verbose_prints_stages_and_proofs(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def convert(*_: Any, progress: Any, **__: Any) -> ConvertReport:
        progress("Reading \x1b[31m")
        return conversion()

    monkeypatch.setattr(api, "convert", convert)
    assert invoke("convert", "in.onnx", "-o", "out.onnx", "-v") == 0
    streams = capsys.readouterr()
    assert streams.err == "padfix: Reading \\x1b[31m\n"
    assert "main/conv: agrees on 4 cases (spec, onnxruntime)" in streams.out


def test_the_report_never_overwrites_a_model(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = tmp_path / "model.json"
    source.write_bytes(b"x")
    assert invoke("convert", source, "-o", tmp_path / "out.onnx", "--report", source) == 2
    assert invoke("verify", source, source, "--report", source) == 2
    assert invoke("check", source, "--output", source) == 2
    assert source.read_bytes() == b"x"
    assert capsys.readouterr().err.count("padfix: error:") == 3


@pytest.mark.parametrize("equivalent", [True, False])
def test_verify_exits_by_its_verdict(
    equivalent: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(api, "verify", lambda *_, **__: verdict(equivalent=equivalent))
    assert invoke("verify", "a.onnx", "b.onnx") == (0 if equivalent else 1)
    shown = capsys.readouterr().out
    assert shown.startswith("Equal" if equivalent else "NOT equal")
    assert ("probe normal on onnxruntime" in shown) is not equivalent


@pytest.mark.parametrize(
    ("severity", "threshold", "code"),
    [
        ("warning", "warning", 1),
        ("warning", "error", 0),
        ("info", "warning", 0),
        ("info", "info", 1),
        ("error", "error", 1),
    ],
)
def test_check_fails_from_a_severity_on(
    severity: str, threshold: str, code: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    report = CheckReport("m.onnx", "onnx", [finding(Severity(severity))])
    monkeypatch.setattr(api, "check_for", lambda *_, **__: [report])
    assert invoke("check", "m.onnx", "--fail-on", threshold) == code
    shown = capsys.readouterr().out
    assert shown.startswith(f"m.onnx\n  PF101 implicit-same-padding: 1 {severity}\n    main/conv  Conv  ")


def test_check_reports_the_others_when_a_model_cannot_be_read(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def check_for(source: Path, targets: Sequence[str], **settings: Any) -> list[CheckReport]:
        assert settings["select"] == ("PF101", "PF2")
        if source.name == "broken.onnx":
            raise errors.SourceError("It is truncated.", "Fetch it again.")
        return [CheckReport(str(source), target, [finding()]) for target in targets]

    monkeypatch.setattr(api, "check_for", check_for)
    monkeypatch.setattr("padfix.process.workers._may_fork", lambda: True)  # so that workers see what was replaced
    arguments = ["check", "broken.onnx", "good.onnx", "--select", "PF101,PF2"]
    assert invoke(*arguments) == 2
    streams = capsys.readouterr()
    assert streams.out.startswith("good.onnx\n")
    assert streams.err == "padfix: error: broken.onnx: It is truncated.\nhint: Fetch it again.\n"
    assert invoke(*arguments, "--format", "json") == 2
    document = json.loads(capsys.readouterr().out)
    assert [each["source"] for each in document["findings"]] == ["good.onnx"]
    assert document["errors"] == [{"source": "broken.onnx", "message": "It is truncated.", "hint": "Fetch it again."}]


def test_check_writes_its_report_to_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "findings.md"
    assert invoke("check", FIXTURES / "same_cnn.onnx", "--format", "markdown", "--output", file) == 1
    assert capsys.readouterr().out == ""
    assert "| main/stem | Conv | warning |" in file.read_text(encoding="utf-8")
    assert invoke("check", FIXTURES / "same_cnn.onnx", "--output", tmp_path / "missing" / "x.txt") == 2
    assert "missing does not exist" in capsys.readouterr().err


def test_check_of_real_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke("check", FIXTURES / "explicit_cnn.onnx") == 0
    assert capsys.readouterr().out == "No findings in 1 model.\n"
    for name, content in (("empty.onnx", b""), ("random.onnx", bytes(range(256)) * 9)):
        (tmp_path / name).write_bytes(content)
        assert invoke("check", tmp_path / name) == 2
        assert capsys.readouterr().err.startswith("padfix: error: ")
    assert invoke("check", tmp_path / "missing.onnx") == 2


def test_an_unexpected_error_is_one_line_and_exit_2(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def explode(*_: Any, **__: Any) -> CheckReport:
        raise RuntimeError("surprise\nwith \x1b[2J")

    monkeypatch.setattr(api, "check_for", explode)
    monkeypatch.delenv("PADFIX_DEBUG", raising=False)
    assert invoke("check", "m.onnx") == 2
    shown = capsys.readouterr().err
    assert shown.startswith("padfix: internal error: RuntimeError: surprise\\nwith \\x1b[2J\nhint: ")
    assert "Traceback" not in shown
    monkeypatch.setenv("PADFIX_DEBUG", "1")
    assert invoke("check", "m.onnx") == 2
    assert "Traceback" in capsys.readouterr().err


def test_an_interrupt_exits_130(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def interrupt(*_: Any, **__: Any) -> CheckReport:
        raise KeyboardInterrupt

    monkeypatch.setattr(api, "check_for", interrupt)
    assert invoke("check", "m.onnx") == 130
    assert "interrupted" in capsys.readouterr().err


def test_names_of_a_model_are_never_echoed_raw(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    evil = Finding(
        "PF101", "n", Severity.ERROR, "main", "a\x1b]0;t\x07\u202eb\r\n::error::x", "Conv", "m\x00", True, "h\x9b"
    )
    monkeypatch.setattr(api, "check_for", lambda *_, **__: [CheckReport("m\x1b.onnx", "onnx", [evil])])
    for form in check_formats.FORMATS:
        assert invoke("check", "m.onnx", "--format", form) == 1
        shown = capsys.readouterr().out
        assert all(each.isprintable() or each == "\n" for each in shown)
        assert "\n::error::x" not in shown


def test_rules_and_explain(capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke("rules", "--format", "json") == 0
    listed = json.loads(capsys.readouterr().out)["rules"]
    assert {"PF101", "PF102", "PF103", "PF104"} <= {each["rule"] for each in listed}
    for each in listed:
        assert each["summary"].endswith("."), each
        assert invoke("explain", each["rule"].lower()) == 0
        by_code = capsys.readouterr().out
        assert invoke("explain", each["name"]) == 0
        assert capsys.readouterr().out == by_code
        assert by_code.startswith(f"{each['rule']} {each['name']} ({each['severity']}")


def test_targets(capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke("targets") == 0
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == list(targets.names())
    assert invoke("targets", "onnx") == 0
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == ["description", "empty-batch"]


def test_inspect_formats(capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke("inspect", FIXTURES / "same_cnn.onnx", "--format", "json") == 0
    document = json.loads(capsys.readouterr().out)
    assert [each["name"] for each in document["operators"]] == ["stem", "pool", "body", "average"]
    assert invoke("inspect", FIXTURES / "same_cnn.onnx", "--format", "config") == 0
    assert capsys.readouterr().out == (
        "type: MaxPool\nkernel_h: 3\nkernel_w: 3\npadding: SAME_UPPER\nstride_h: 2\nstride_w: 2\nlayout: NCHW\n"
        "\n"
        "type: AveragePool\nkernel_h: 2\nkernel_w: 2\npadding: VALID\nstride_h: 2\nstride_w: 2\nlayout: NCHW\n"
    )


def test_tensorflow_s_logs_come_through_with_verbose_only() -> None:
    from padfix.cli.progress import stages
    from padfix.sources import tensorflow_runtime

    for verbose in (False, True):
        with stages(verbose=verbose):
            assert tensorflow_runtime._talkative is verbose
        assert not tensorflow_runtime._talkative


def test_a_report_that_does_not_fit_is_left_out_with_a_note(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from padfix.reports import html

    def too_large(*arguments: object, **settings: object) -> str:
        raise MemoryError

    monkeypatch.setattr(html, "report", too_large)
    output, report = tmp_path / "out.onnx", tmp_path / "r.html"
    assert invoke("convert", FIXTURES / "same_cnn.onnx", "-o", output, "--report", report, "-q") == 0
    assert output.exists() and not report.exists()
    assert "was left out: there is not enough memory for it" in capsys.readouterr().err


@pytest.mark.parametrize(
    "words",
    [
        "convert model.onnx -o missing/out.onnx",
        "convert model.onnx -o out.onnx --report missing/report.html",
        "verify model.onnx model.onnx --report missing/report.html",
        "check model.onnx --output missing/report.txt",
        "check model.onnx --report json=missing/report.json",
        "check model.onnx --write-baseline missing/baseline.json",
    ],
)
def test_a_missing_folder_is_found_before_any_work(
    words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("model.onnx").write_bytes(b"never read")
    assert run(cli, words.split()) == 2
    told = capsys.readouterr().err
    assert "missing does not exist" in told
    assert "ake it first" in told
    assert [path.name for path in tmp_path.iterdir()] == ["model.onnx"]
