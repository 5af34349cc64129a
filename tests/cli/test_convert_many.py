"""`padfix convert` in place, of many sources, and through a pipe."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import onnx
import pytest

import padfix
from padfix import errors
from padfix.cli.exits import run
from padfix.cli.group import cli

ROOT = Path(__file__).parents[2]
FIXTURES = ROOT / "fixtures" / "onnx"


def invoke(*arguments: object) -> int:
    return run(cli, [str(argument) for argument in arguments])


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("same_cnn", "explicit_cnn"):
        shutil.copy(FIXTURES / f"{name}.onnx", tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_in_place_keeps_the_original_and_its_permissions(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = folder / "same_cnn.onnx"
    model.chmod(0o640)
    before = model.read_bytes()
    assert invoke("convert", "--in-place", "same_cnn.onnx") == 0
    shown = capsys.readouterr().out
    assert "note     The original is kept as same_cnn.onnx.bak." in shown
    assert shown.endswith("Wrote same_cnn.onnx (opset 17).\n")
    assert (folder / "same_cnn.onnx.bak").read_bytes() == before
    assert padfix.check(model).findings == []
    assert model.stat().st_mode & 0o777 == 0o640
    assert names(folder) == ["explicit_cnn.onnx", "same_cnn.onnx", "same_cnn.onnx.bak"]
    after, times = model.read_bytes(), model.stat()
    assert invoke("convert", "--in-place", "same_cnn.onnx") == 0
    assert capsys.readouterr().out.endswith("same_cnn.onnx is what it should be; it was not touched.\n")
    assert (model.read_bytes(), model.stat().st_ino) == (after, times.st_ino)
    assert len(names(folder)) == 3


def test_an_earlier_backup_is_never_replaced(folder: Path) -> None:
    (folder / "same_cnn.onnx.bak").write_bytes(b"precious")
    before = (folder / "same_cnn.onnx").read_bytes()
    assert invoke("convert", "--in-place", "same_cnn.onnx", "-q") == 0
    assert (folder / "same_cnn.onnx.bak").read_bytes() == b"precious"
    assert (folder / "same_cnn.onnx.bak.1").read_bytes() == before


def test_a_file_system_without_links_gets_a_copy(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError(1, "no links here")

    before = (folder / "same_cnn.onnx").read_bytes()
    monkeypatch.setattr(os, "link", refuse)
    assert invoke("convert", "--in-place", "same_cnn.onnx", "-q") == 0
    assert (folder / "same_cnn.onnx.bak").read_bytes() == before


def test_without_backup_and_through_a_link(folder: Path) -> None:
    (folder / "link.onnx").symlink_to("same_cnn.onnx")
    assert invoke("convert", "--in-place", "--no-backup", "link.onnx", "-q") == 0
    assert (folder / "link.onnx").is_symlink()
    assert padfix.check(folder / "same_cnn.onnx").findings == []
    assert names(folder) == ["explicit_cnn.onnx", "link.onnx", "same_cnn.onnx"]


@pytest.mark.parametrize("failing", ["proof", "replace"])
def test_a_failure_leaves_the_original_and_no_backup(
    folder: Path, failing: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    before = (folder / "same_cnn.onnx").read_bytes()
    if failing == "proof":
        code = 1
        monkeypatch.setattr(
            "padfix.proof.result.verify", lambda *_, **__: padfix.Verdict(False, "onnxruntime", (), ("made to fail",))
        )
    else:
        code = 2

        def refuse(*_: object) -> None:
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(os, "replace", refuse)
    assert invoke("convert", "--in-place", "same_cnn.onnx") == code
    assert capsys.readouterr().err.startswith("padfix: error:")
    assert (folder / "same_cnn.onnx").read_bytes() == before
    assert names(folder) == ["explicit_cnn.onnx", "same_cnn.onnx"]


def test_only_onnx_is_replaced(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(errors.UsageError, match="the output is the source"):
        padfix.convert("same_cnn.onnx", "other.onnx", in_place=True)
    with pytest.raises(errors.OutputError, match="part of the source"):
        padfix.convert("same_cnn.onnx", "same_cnn.onnx")


@pytest.mark.tensorflow
def test_a_tensorflow_source_is_not_replaced(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.copy(ROOT / "fixtures" / "quickstart" / "small_cnn.pb", folder)
    assert invoke("convert", "--in-place", "small_cnn.pb") == 2
    assert "is not ONNX, so it can't be replaced" in capsys.readouterr().err


def test_data_files_of_the_source_stay(folder: Path) -> None:
    model = onnx.load("same_cnn.onnx")
    onnx.save(model, "big.onnx", save_as_external_data=True, location="weights.bin", size_threshold=0)
    before = (folder / "weights.bin").read_bytes()
    assert invoke("convert", "--in-place", "big.onnx", "-q") == 0
    assert (folder / "weights.bin").read_bytes() == before
    assert padfix.check("big.onnx").findings == []
    assert padfix.verify("same_cnn.onnx", "big.onnx").equivalent


def test_many_sources_to_a_folder(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "out").mkdir()
    (folder / "broken.onnx").write_bytes(b"\x08\x07\x3a\xff")
    arguments = ["convert", "same_cnn.onnx", "broken.onnx", "explicit_cnn.onnx", "--output-dir", "out"]
    assert invoke(*arguments) == 2
    streams = capsys.readouterr()
    assert streams.err.count("padfix: error: broken.onnx is not a model") == 1
    assert "Wrote out/same_cnn.onnx" in streams.out
    assert names(folder / "out") == ["explicit_cnn.onnx", "same_cnn.onnx"]
    assert (folder / "out" / "explicit_cnn.onnx").read_bytes() == (folder / "explicit_cnn.onnx").read_bytes()
    assert invoke(*arguments, "--format", "json") == 2
    document = json.loads(capsys.readouterr().out)
    assert [each["output"] for each in document["conversions"]] == ["out/same_cnn.onnx", "out/explicit_cnn.onnx"]
    assert [each["source"] for each in document["errors"]] == ["broken.onnx"]


@pytest.mark.parametrize(
    "arguments",
    [
        ["same_cnn.onnx"],
        ["same_cnn.onnx", "-o", "x.onnx", "--in-place"],
        ["same_cnn.onnx", "explicit_cnn.onnx", "-o", "x.onnx"],
        ["same_cnn.onnx", "sub/same_cnn.onnx", "--output-dir", "."],
        ["same_cnn.onnx", "--output-dir", "explicit_cnn.onnx/below"],
        ["-", "--in-place"],
        ["-", "--output-dir", "."],
        ["same_cnn.onnx", "-o", "x.onnx", "--no-backup"],
        ["same_cnn.onnx", "explicit_cnn.onnx", "--in-place", "--report", "r.json"],
    ],
)
def test_what_contradicts_itself_is_refused_before_any_work(
    folder: Path, arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert invoke("convert", *arguments) == 2
    assert "hint: " in capsys.readouterr().err
    assert names(folder) == ["explicit_cnn.onnx", "same_cnn.onnx"]


def pipe(arguments: list[str], data: bytes, folder: Path) -> subprocess.CompletedProcess[bytes]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "padfix", "convert", *arguments]
    return subprocess.run(command, input=data, capture_output=True, cwd=folder, check=False, env=environment)


def test_through_a_pipe(folder: Path) -> None:
    data = (folder / "same_cnn.onnx").read_bytes()
    done = pipe(["-", "-o", "-"], data, folder)
    assert done.returncode == 0, done.stderr
    assert b"Wrote standard output (opset 17)." in done.stderr
    (folder / "piped.onnx").write_bytes(done.stdout)
    assert padfix.check("piped.onnx").findings == []
    padfix.convert("same_cnn.onnx", "plain.onnx")
    assert (folder / "plain.onnx").read_bytes() == done.stdout
    done = pipe(["-", "-o", "-"], b"not a model", folder)
    assert (done.returncode, done.stdout) == (2, b"")
    assert done.stderr.startswith(b"padfix: error: standard input is ")
    assert pipe(["-", "-o", "x.onnx"], b"", folder).returncode == 2
    done = pipe(["same_cnn.onnx", "-o", "-", "--external-data"], b"", folder)
    assert (done.returncode, done.stdout) == (2, b"")


def test_a_file_that_was_not_touched_is_certified_too(folder: Path) -> None:
    assert invoke("convert", "--in-place", "same_cnn.onnx", "-q", "--report", "first.json") == 0
    assert invoke("convert", "--in-place", "same_cnn.onnx", "-q", "--report", "second.json") == 0
    for report in ("first.json", "second.json"):
        assert invoke("check", "same_cnn.onnx", "--require-proof", report) == 0
    assert invoke("check", "same_cnn.onnx.bak", "--require-proof", "second.json", "--fail-on", "error") == 1


def test_the_folder_for_the_results_is_made(folder: Path) -> None:
    assert invoke("convert", "-q", "same_cnn.onnx", "--output-dir", "new/deep") == 0
    assert names(folder / "new" / "deep") == ["same_cnn.onnx"]


@pytest.mark.parametrize("command", [["check"], ["convert", "--output-dir", "out", "-q"]])
def test_a_file_is_named_once_in_an_error(folder: Path, command: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "words.txt").write_text("words")
    assert invoke(*command, "missing.onnx", "words.txt") == 2
    shown = [line for line in capsys.readouterr().err.splitlines() if line.startswith("padfix: error: ")]
    assert [line.count("missing.onnx") + line.count("words.txt") for line in shown] == [1, 1]
    assert not any(str(folder) in line for line in shown), "named as the user wrote it"


def test_several_processes_write_and_say_what_one_does(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "broken.onnx").write_bytes(b"\x08\x07\x3a\xff")
    names = ("same_cnn.onnx", "broken.onnx", "explicit_cnn.onnx")
    assert invoke("convert", *names, "--output-dir", "out") == 2
    alone = capsys.readouterr()
    written = {path.name: path.read_bytes() for path in Path("out").iterdir()}
    shutil.rmtree("out")
    assert invoke("convert", *names, "--output-dir", "out", "--jobs", 2) == 2
    assert capsys.readouterr() == alone
    assert {path.name: path.read_bytes() for path in Path("out").iterdir()} == written
    assert sorted(written) == ["explicit_cnn.onnx", "same_cnn.onnx"]


def test_an_internal_error_over_one_source_leaves_the_others(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    convert = padfix.api.convert

    def explode(source: Path, *arguments: Any, **settings: Any) -> padfix.ConvertReport:
        if "same" in str(source):
            raise RuntimeError("surprise")
        return convert(source, *arguments, **settings)

    monkeypatch.setattr(padfix.api, "convert", explode)
    monkeypatch.delenv("PADFIX_DEBUG", raising=False)
    assert invoke("convert", "same_cnn.onnx", "explicit_cnn.onnx", "--output-dir", "out") == 2
    assert names(folder / "out") == ["explicit_cnn.onnx"]
    shown = capsys.readouterr().err
    assert "padfix: error: same_cnn.onnx: internal error: RuntimeError: surprise" in shown
    assert "Traceback" not in shown
    monkeypatch.setenv("PADFIX_DEBUG", "1")
    assert invoke("convert", "same_cnn.onnx", "explicit_cnn.onnx", "--output-dir", "out") == 2
    assert "Traceback" in capsys.readouterr().err


def test_a_source_that_ends_its_process_is_named_and_leaves_nothing(folder: Path) -> None:
    code = """
import os, signal, sys
from padfix import api
from padfix.cli.group import cli, run
before = api._Conversion._prove
def prove(self, candidate):
    if "same" in str(self.source):
        os.kill(os.getpid(), signal.SIGSEGV)
    return before(self, candidate)
api._Conversion._prove = prove
sys.exit(run(cli, ["convert", "same_cnn.onnx", "explicit_cnn.onnx", "--output-dir", "out", "--jobs", "2"]))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd=folder)
    assert done.returncode == 2
    assert done.stderr.startswith("padfix: error: padfix (same_cnn.onnx: "), done.stderr
    assert " crashed: a segmentation fault." in done.stderr
    assert [path.name for path in (folder / "out").iterdir()] == ["explicit_cnn.onnx"]
