"""The command ``padfix`` itself; its subcommands are imported only when they are called."""

from __future__ import annotations

import importlib
import sys

import click

import padfix
from padfix.cli.exits import print_error, run
from padfix.cli.sections import WIDEST
from padfix.process.supervisor import supervised

# Name -> one line of help. Kept here so that ``padfix --help`` imports no command.
COMMANDS: dict[str, str] = {
    "convert": "Make every pad and resize explicit, prove that nothing changed, then write.",
    "check": "Say what is implicit, legacy or unsafe in ONNX models.",
    "verify": "Prove that two models give the same numbers.",
    "inspect": "List every windowed or resampling operator of a model.",
    "explain": "Explain a rule.",
    "rules": "List the rules.",
    "targets": "List the targets.",
    "completion": "Print a script for bash, zsh or fish that completes what is typed.",
}


class LazyGroup(click.Group):
    """A group whose commands live in ``padfix.cli.<name>`` as an attribute called ``command``."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names in the order of the main job, not of the alphabet."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import and return one command, or None when there is no such name."""
        if cmd_name not in COMMANDS:
            return None
        command = importlib.import_module(f"padfix.cli.{cmd_name}").command
        assert isinstance(command, click.Command)
        return command

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[click.shell_completion.CompletionItem]:
        """Return the commands that begin with ``incomplete``, importing none of them."""
        from click.shell_completion import CompletionItem

        named = [CompletionItem(name, help=line) for name, line in COMMANDS.items() if name.startswith(incomplete)]
        return named + click.Command.shell_complete(self, ctx, incomplete)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of commands from :data:`COMMANDS`, importing none of them."""
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


@click.group(
    cls=LazyGroup,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": WIDEST},
)
@click.version_option(padfix.__version__, prog_name="padfix", message="%(prog)s %(version)s")
def cli() -> None:
    """Make every pad and every resize of a model explicit, prove it, and only then write.

    Exit codes: 0 yes (clean, converted, equal), 1 no (findings, not equal, nothing written), 2 could not tell.
    """


def main(arguments: list[str] | None = None) -> None:
    """Run the command line in a process of its own, and leave this one with its exit code."""
    sys.exit(supervised(lambda: run(cli, arguments), print_error))
