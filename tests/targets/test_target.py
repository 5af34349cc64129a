"""Targets: what their files may say, and what is said of a file that says something else."""

from __future__ import annotations

from pathlib import Path

import pytest

from padfix import targets
from padfix.cli.exits import run
from padfix.cli.group import cli
from padfix.errors import UsageError


def test_the_targets_that_there_are() -> None:
    assert targets.names() == ("onnx", "portable")
    assert targets.named("onnx").settings().keys() == {"description"}
    portable = targets.named("portable")
    assert (portable.minimum_opset, portable.maximum_opset, portable.pads) == (13, 17, "node")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("pad = 'node'", "no setting 'pad'"),
        ("pads = 1", "should be a string"),
        ("pads = 'beside'", "no way 'beside'"),
        ("minimum-opset = '13'", "whole number"),
        ("minimum-opset = true", "whole number"),
        ("minimum-opset = 18\nmaximum-opset = 17", "no opset at all"),
        ("minimum-opset", "not valid TOML"),
    ],
)
def test_a_wrong_file_is_named_with_what_is_wrong(text: str, words: str, tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(text)
    with pytest.raises(UsageError, match=words) as caught:
        targets.load(path)
    assert str(path) in str(caught.value)


def test_the_command_prints_what_a_target_asks_for(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(cli, ["targets", "portable"]) == 0
    printed = dict(line.split(maxsplit=1) for line in capsys.readouterr().out.splitlines())
    assert printed["minimum-opset"] == "13"
    assert run(cli, ["targets", "portabel"]) == 2
    assert "portable" in capsys.readouterr().err
