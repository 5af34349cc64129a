"""``padfix targets``: what a model can be made for."""

from __future__ import annotations

import click

from padfix import errors
from padfix.cli import options


@click.command("targets")
@click.argument("name", required=False, shell_complete=options.complete_targets)
def command(name: str | None) -> int:
    """List the targets, or print what the target NAME asks for."""
    from padfix import targets
    from padfix.reports.columns import aligned

    if name is None:
        rows = [(each, targets.named(each).description) for each in targets.names()]
    else:
        rows = [(key, str(value)) for key, value in targets.named(name).settings().items()]
    click.echo(aligned(rows), nl=False)
    return errors.EXIT_YES
