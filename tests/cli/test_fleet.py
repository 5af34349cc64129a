"""`padfix check` of many models: JSON lines, resumed runs, models that end their process, a cache."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import jsonschema
import pytest
from onnx import helper

import padfix
from padfix import api
from padfix.cli.exits import run
from padfix.cli.group import cli

ROOT = Path(__file__).parents[2]
FIXTURES = ROOT / "fixtures" / "onnx"
SCHEMA = json.loads((ROOT / "padfix/schemas/padfix-1.schema.json").read_text())


padfix.check(FIXTURES / "same_cnn.onnx")  # whoever is forked from this process has all modules


def invoke(*arguments: object) -> int:
    return run(cli, ["check", *map(str, arguments)])


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("same_cnn", "explicit_cnn", "legacy_upsample"):
        shutil.copy(FIXTURES / f"{name}.onnx", tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("padfix.process.workers._may_fork", lambda: True)  # so that workers see what a test replaced
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / ".cache"))
    return tmp_path


def lines(text: str) -> list[dict[str, object]]:
    found = [json.loads(line) for line in text.splitlines()]
    for each in found:
        jsonschema.validate(each, {"$ref": "#/$defs/line", "$defs": SCHEMA["$defs"]})
    return found


def no_checks(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("a model was checked")

    monkeypatch.setattr(api, "check_for", refuse)


def test_json_lines_say_what_the_json_report_says(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "broken.onnx").write_bytes(b"\x08\x07\x3a\xff")
    assert invoke(".", "--format", "json", "--target", "onnx,opencv") == 2
    document = json.loads(capsys.readouterr().out)
    for jobs in (1, 2):
        assert invoke(".", "--format", "jsonl", "--target", "onnx,opencv", "--jobs", jobs) == 2
        streams = capsys.readouterr()
        told = lines(streams.out)
        assert [each["source"] for each in told][1:] == [name for name in document["sources"] for _ in range(2)]
        assert [each["target"] for each in told] == [None, *["onnx", "opencv"] * 3]
        assert told[0]["error"]["message"] == document["errors"][0]["message"]  # type: ignore[index]
        listed = [
            {"source": each["source"], "target": each["target"], **finding}
            for each in told
            for finding in each["findings"]  # type: ignore[attr-defined]
        ]
        assert listed == document["findings"]
        assert "broken.onnx" in streams.err
    assert told[1]["size"] == (folder / "explicit_cnn.onnx").stat().st_size


def test_weights_are_no_part_of_the_digest_and_names_are(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def digest(node: str, value: float) -> object:
        tensor = helper.make_tensor("w", 1, [1, 1, 64, 64], [value] * 4096)
        graph = helper.make_graph(
            [helper.make_node("Conv", ["x", "w"], ["y"], name=node)],
            "g",
            [helper.make_tensor_value_info("x", 1, [1, 1, 99, 99])],
            [helper.make_tensor_value_info("y", 1, None)],
            [tensor],
        )
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
        (folder / "made.onnx").write_bytes(model.SerializeToString())
        invoke("made.onnx", "--format", "jsonl")
        (line,) = lines(capsys.readouterr().out)
        return line["digest"]

    assert digest("a", 1.0) == digest("a", 2.0) != digest("b", 1.0)


def test_a_run_that_was_cut_off_is_resumed(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert invoke(".", "--resume", "run.jsonl", "--no-cache") == 1
    whole = Path("run.jsonl").read_bytes()
    first, second, third = whole.splitlines(keepends=True)
    Path("run.jsonl").write_bytes(first + second + third[:40])
    assert invoke(".", "--resume", "run.jsonl", "--no-cache") == 1
    assert Path("run.jsonl").read_bytes() == whole
    assert "2 of 3 models were done before" in capsys.readouterr().err
    no_checks(monkeypatch)
    assert invoke(".", "--resume", "run.jsonl", "--no-cache", "--report", "json=all.json") == 1
    assert Path("run.jsonl").read_bytes() == whole
    assert len(json.loads(Path("all.json").read_text())["findings"]) == 5
    assert invoke("explicit_cnn.onnx", "--resume", "run.jsonl") == 0, "of the models that are named"


def test_what_changed_is_checked_again_and_not_doubled(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "broken.onnx").write_bytes(b"\x08\x07\x3a\xff")
    assert invoke(".", "--resume", "run.jsonl") == 2
    shutil.copy("explicit_cnn.onnx", "broken.onnx")
    shutil.copy("explicit_cnn.onnx", "same_cnn.onnx")
    assert invoke(".", "--resume", "run.jsonl") == 1
    told = lines(Path("run.jsonl").read_text())
    assert sorted((each["source"], len(each["findings"])) for each in told) == [  # type: ignore[arg-type]
        ("broken.onnx", 0),
        ("explicit_cnn.onnx", 0),
        ("legacy_upsample.onnx", 1),
        ("same_cnn.onnx", 0),
    ]
    assert invoke(".", "--resume", "run.jsonl", "--target", "opencv") in (0, 1)
    assert {each["target"] for each in lines(Path("run.jsonl").read_text())} == {"opencv"}


@pytest.mark.parametrize("content", [b"no json\n", b"{}\n", b'{"schema": 1, "source": "x"}\n'])
def test_another_file_is_not_resumed(content: bytes, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("other").write_bytes(content)
    assert invoke(".", "--resume", "other") == 2
    assert "Line 1 of other is none that padfix wrote." in capsys.readouterr().err
    assert Path("other").read_bytes() == content


def test_options_that_contradict_each_other(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke(".", "--resume", "a", "--output", "b") == 2
    assert invoke(".", "--resume", "a", "--format", "sarif") == 2
    assert invoke(".", "--cache-dir", "a", "--no-cache") == 2
    assert invoke(".", "--resume", "same_cnn.onnx") == 2
    assert not Path("a").exists()


def test_what_did_not_change_is_taken_from_the_cache(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    past = time.time() - 60
    for path in folder.glob("*.onnx"):
        os.utime(path, (past, past))
    monkeypatch.setattr("padfix.checking.cache.SETTLED", -1.0)
    assert invoke(".", "--format", "html") == 1
    page = capsys.readouterr().out
    no_checks(monkeypatch)
    assert invoke(".", "--format", "html") == 1
    assert capsys.readouterr().out == page, "pictures and maps too"
    for path in folder.glob("*.onnx"):  # as in a fresh checkout
        os.utime(path)
    assert invoke(".", "--format", "html") == 1
    assert capsys.readouterr().out == page
    assert sorted(path.name for path in folder.iterdir() if not path.suffix) == [".cache"]
    assert invoke(".", "--no-cache") == 2
    assert "a model was checked" in capsys.readouterr().err
    assert invoke(".", "--ignore", "PF103") == 2, "other options, another result"


def test_a_run_without_changes_loads_no_onnx(folder: Path) -> None:
    past = time.time() - 60
    code = """
import sys
from padfix.checking import cache
from padfix.cli.group import cli, run
cache.SETTLED = -1.0
assert run(cli, ["check", ".", "--format", "json"]) == 1
print("onnx" in sys.modules, "numpy" in sys.modules, file=sys.stderr)
"""
    for path in folder.glob("*.onnx"):
        os.utime(path, (past, past))
    done = [
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=folder)
        for _ in range(2)
    ]
    assert done[0].stdout == done[1].stdout
    assert done[1].stderr == "False False\n"


CRASHING = """
import os, signal, sys
import padfix
from padfix import api
from padfix.cli.group import cli, run
before = api.check_for
def check_for(source, *arguments, **options):
    if "same" in str(source):
        {what}
    return before(source, *arguments, **options)
api.check_for = check_for
sys.exit(run(cli, {arguments!r}))
"""


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_model_that_ends_its_process_is_named_and_the_rest_goes_on(jobs: int, folder: Path) -> None:
    code = CRASHING.format(
        what="os.kill(os.getpid(), signal.SIGSEGV)",
        arguments=["check", ".", "--format", "jsonl", "--jobs", str(jobs), "--no-cache"],
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert [each["source"] for each in lines(done.stdout)] == [
        "explicit_cnn.onnx",
        "legacy_upsample.onnx",
        "same_cnn.onnx",
    ]
    assert done.stderr.startswith(
        "padfix: error: padfix (checking same_cnn.onnx) crashed: a segmentation fault.\nhint: "
    )


def test_an_interrupt_leaves_whole_lines_and_no_process(folder: Path) -> None:
    code = CRASHING.format(what="__import__('time').sleep(600)", arguments=[]).replace(
        "sys.exit(run(cli, []))",
        """
from padfix.process.supervisor import supervised
arguments = ["check", ".", "--resume", "run.jsonl", "--jobs", "2", "--no-cache"]
sys.exit(supervised(lambda: run(cli, arguments), print))
""",
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code], stderr=subprocess.PIPE, text=True, start_new_session=True, cwd=folder
    )
    until = time.monotonic() + 60
    while not (Path("run.jsonl").exists() and Path("run.jsonl").read_text().count("\n") == 2):
        assert time.monotonic() < until
        time.sleep(0.05)
    os.killpg(process.pid, signal.SIGINT)
    _, said = process.communicate(timeout=30)
    assert process.returncode == 130
    assert said == "padfix: interrupted; run.jsonl has 2 more models, and --resume run.jsonl goes on\n"
    with pytest.raises(ProcessLookupError):
        os.killpg(process.pid, 0)
    assert len(lines(Path("run.jsonl").read_text())) == 2
