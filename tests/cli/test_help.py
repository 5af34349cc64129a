"""What ``--help`` prints: options under the headings that they belong to, and examples that can be pasted."""

from __future__ import annotations

import re
import shlex

import click
import pytest

from padfix.cli.exits import run
from padfix.cli.group import COMMANDS, cli
from padfix.cli.sections import SECTIONS


def command(name: str) -> click.Command:
    with click.Context(cli) as context:
        found = cli.get_command(context, name)
    assert found is not None
    return found


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_stands_under_one_heading(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(cli, [name, "--help"]) == 0
    shown = capsys.readouterr().out
    listed = [each for names in SECTIONS.values() for each in names]
    assert len(listed) == len(set(listed))
    for param in command(name).params:
        if isinstance(param, click.Option):
            assert param.name in listed
            assert (
                len(re.findall(rf"^  (?:-\w, )?{re.escape(max(param.opts, key=len))}(?= |$)", shown, re.MULTILINE)) == 1
            )
    other = shown.partition("\nOther:\n")[2].partition("\n\n")[0]
    assert other.split()[:2] == ["-h,", "--help"]
    assert len(other.splitlines()) == 1


def test_no_heading_is_of_nothing() -> None:
    names = {param.name for name in COMMANDS for param in command(name).params}
    assert {each for section in SECTIONS.values() for each in section} <= names


@pytest.mark.parametrize("name", COMMANDS)
def test_examples_are_right(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Each is parsed as it would be; what it is about need not be there."""
    assert run(cli, [name, "--help"]) == 0
    examples = capsys.readouterr().out.partition("\nExamples:\n")[2].splitlines()
    assert examples
    for example in examples:
        (words,) = re.findall(r"padfix ([^)]*?)(?:\)| > |$)", example)
        first, *rest = shlex.split(words)
        assert first == name
        command(name).make_parser(click.Context(command(name))).parse_args(rest)
