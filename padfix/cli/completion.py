"""``padfix completion``: the script that lets a shell complete what is typed."""

from __future__ import annotations

import click

from padfix import errors
from padfix.cli.sections import SectionedCommand

SHELLS = ("bash", "zsh", "fish")

EXAMPLES = """
eval "$(padfix completion bash)"  # in ~/.bashrc
eval "$(padfix completion zsh)"  # in ~/.zshrc, after compinit
padfix completion fish > ~/.config/fish/completions/padfix.fish
"""


@click.command("completion", cls=SectionedCommand, epilog=EXAMPLES)
@click.argument("shell", type=click.Choice(SHELLS))
def command(shell: str) -> int:
    """Print the completion script of SHELL: commands, options, formats, rules, targets and files."""
    from click.shell_completion import get_completion_class

    from padfix.cli.group import cli

    completion = get_completion_class(shell)
    assert completion is not None
    click.echo(completion(cli, {}, "padfix", "_PADFIX_COMPLETE").source())
    return errors.EXIT_YES
