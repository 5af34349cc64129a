"""The `fix:` line of check, pasted as it stands, does what it says."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from pathlib import Path

import onnx
import pytest

from padfix.cli.exits import run
from padfix.cli.group import cli
from tests.rules.renew_fixtures import CASES, load

FIX = re.compile(r"^  (fix|fix in part): (.*)$", re.MULTILINE)
ASKED = {"onnx": [], "portable": ["--target", "portable"], "node": ["--select", "pf106,PF1"], "own": []}


def invoke(*arguments: str) -> int:
    return run(cli, list(arguments))


def first_of_each_rule(folders: Sequence[Path]) -> list[object]:
    """Return the cases; of each rule the first two are run always, and the others are slow."""
    seen: dict[str, int] = {}
    cases: list[object] = []
    for folder in folders:
        seen[folder.parent.name] = seen.get(folder.parent.name, 0) + 1
        marks = [pytest.mark.slow] if seen[folder.parent.name] > 2 else []
        cases.append(pytest.param(folder, marks=marks, id=f"{folder.parent.name[:5]}-{folder.name}"))
    return cases


@pytest.mark.sweep(10)
@pytest.mark.parametrize("asked", ASKED)
@pytest.mark.parametrize("folder", first_of_each_rule(CASES))
def test_the_printed_command_leaves_nothing_to_find(
    folder: Path, asked: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    case, model = load(folder)
    onnx.save(model, "a model.onnx")
    own = case.get("target", "onnx")
    check = ["check", "a model.onnx", *(["--target", own] if asked == "own" else ASKED[asked])]
    invoke(*check)
    shown = capsys.readouterr().out
    command = FIX.search(shown)
    if "error" in case:
        assert command is None, "convert refuses a model without a meaning"
        assert "`padfix convert` rewrites" not in shown
    if command is None:
        told_otherwise = asked != ("onnx" if own == "onnx" else "own")
        assert told_otherwise or "finding" not in case or {"opset", "pads"} & case.keys()
        return
    program, *arguments = shlex.split(command.group(2))
    assert program == "padfix"
    assert invoke(*arguments) == 0, capsys.readouterr().err
    assert invoke(*check) == (0 if command.group(1) == "fix" else 1), capsys.readouterr().out


@pytest.mark.sweep(6)
@pytest.mark.parametrize("target", ["onnx", "portable"])
@pytest.mark.parametrize("folder", first_of_each_rule(CASES))
def test_what_convert_says_yes_to_is_clean(folder: Path, target: str, tmp_path: Path) -> None:
    onnx.save(load(folder)[1], tmp_path / "model.onnx")
    words = ["--target", target, "-q"]
    if invoke("convert", str(tmp_path / "model.onnx"), "-o", str(tmp_path / "result.onnx"), *words) == 0:
        assert invoke("check", str(tmp_path / "result.onnx"), *words) == 0


def test_what_can_be_rewritten_beside_what_cannot(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    model = onnx.parser.parse_model(
        """<ir_version: 8, opset_import: ["" : 9]>
        g (float[1,1,6,6] x) => (float[1,1,3,3] y) <float[4] half = {1, 1, 0.5, 0.5}> {
            padded = MaxPool<auto_pad="SAME_UPPER", kernel_shape=[2,2]>(x)
            y = Upsample<mode="nearest">(padded, half)
        }"""
    )
    onnx.save(model, "model.onnx")
    assert invoke("check", "model.onnx", "--target", "portable") == 1
    command = FIX.search(capsys.readouterr().out)
    assert command is not None
    assert command.group(1) == "fix in part"
    assert command.group(2) == "padfix convert --in-place --target portable --partial model.onnx"


def test_nobody_is_told_to_replace_standard_input(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    source = Path(__file__).parents[2] / "fixtures" / "onnx" / "same_cnn.onnx"
    with source.open("rb") as stream:
        monkeypatch.setattr("sys.stdin", type("Stream", (), {"buffer": stream}))
        assert invoke("check", "-") == 1
    assert FIX.search(capsys.readouterr().out) is None
