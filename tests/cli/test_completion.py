"""The completion scripts, in the shells that they are for. A shell that is not there is skipped."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from padfix.cli.exits import run
from padfix.cli.group import COMMANDS, cli

ROOT = Path(__file__).parents[2]


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """An environment whose ``padfix`` is the one under test, whatever is installed."""
    program = tmp_path / "bin" / "padfix"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m padfix "$@"\n')
    program.chmod(0o755)
    home = {"HOME": str(tmp_path), "PYTHONPATH": str(ROOT), "TERM": "xterm"}
    return {**os.environ, **home, "PATH": f"{program.parent}{os.pathsep}{os.environ['PATH']}"}


def in_shell(shell: str, script: str, environment: dict[str, str]) -> list[str]:
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    plain = {"bash": ["--norc", "--noprofile"], "zsh": ["-f"], "fish": ["--no-config"]}[shell]
    done = subprocess.run(
        [shell, *plain, "-c", script], capture_output=True, text=True, env=environment, check=False, cwd=ROOT
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return sorted(done.stdout.split())


def bash(typed: str, environment: dict[str, str]) -> list[str]:
    """Return what bash offers for the last word of ``typed``."""
    words = typed.split(" ")
    script = (
        'eval "$(padfix completion bash)"\n'
        f"COMP_WORDS=({' '.join(repr(word) for word in words)}); COMP_CWORD={len(words) - 1}\n"
        "_padfix_completion padfix\n"
        'printf "%s\\n" "${COMPREPLY[@]}"\n'
    )
    return in_shell("bash", script, environment)


@pytest.mark.sweep(3)
@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("padfix ", sorted(COMMANDS)),
        ("padfix ch", ["check"]),
        ("padfix check --fo", ["--format"]),
        ("padfix check --format s", ["sarif"]),
        ("padfix check --select PF20", ["PF201", "PF202", "PF203", "PF204", "PF205", "PF206"]),
        ("padfix check --ignore PF101,implicit-v", ["PF101,implicit-valid-padding"]),
        ("padfix explain legacy-u", ["legacy-upsample"]),
        ("padfix convert --target onnx2", ["onnx2tf"]),
        ("padfix explain re", ["removed-resize-mode", "resize", "resize-runtime-slip"]),
        ("padfix targets porta", ["portable"]),
        ("padfix completion ", ["bash", "fish", "zsh"]),
    ],
)
def test_bash(typed: str, offered: list[str], environment: dict[str, str]) -> None:
    assert bash(typed, environment) == offered


def test_fish(environment: dict[str, str]) -> None:
    script = "padfix completion fish | source; complete -C 'padfix check --format s'"
    assert in_shell("fish", script, environment) == ["sarif"]


def test_zsh(environment: dict[str, str]) -> None:
    # Outside its line editor zsh can't complete, so what the function would offer is caught.
    script = """
        compdef() { print registered }
        compadd() { print -l -- ${(P)@[-1]} }
        _describe() { print -l -- ${${(P)@[3]}%%:*} }
        eval "$(padfix completion zsh)"
        words=(padfix ch); CURRENT=2; _padfix_completion
    """
    assert in_shell("zsh", script, environment) == ["check", "registered"]


def test_another_shell_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(cli, ["completion", "csh"]) == 2
    assert "'bash', 'zsh', 'fish'" in capsys.readouterr().err
