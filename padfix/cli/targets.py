"""``padfix targets``: what a model can be made for."""

from __future__ import annotations

import click

from padfix import errors
from padfix.cli import options
from padfix.cli.sections import SectionedCommand

EXAMPLES = """
padfix targets
padfix targets portable
"""


@click.command("targets", cls=SectionedCommand, epilog=EXAMPLES)
@click.argument("name", required=False, shell_complete=options.complete_targets)
@options.format_option(("text", "markdown"), "Of the list; markdown has every fact.")
def command(name: str | None, report_format: str) -> int:
    """List the targets, or print what the target NAME asks for and what is known of it."""
    from padfix import targets
    from padfix.reports.columns import aligned

    if report_format == "markdown":
        from padfix.reports import target_facts

        wanted = targets.names() if name is None else (name,)
        click.echo(target_facts.page([targets.named(each) for each in wanted]), nl=False)
        return errors.EXIT_YES
    if name is None:
        click.echo(aligned([(each, targets.named(each).description) for each in targets.names()]), nl=False)
        return errors.EXIT_YES
    target = targets.named(name)
    click.echo(aligned([(key, str(value)) for key, value in target.settings().items()]), nl=False)
    if target.facts and not target.joins:
        from padfix.reports import target_facts

        click.echo(f"\n{target_facts.text(target)}", nl=False)
    return errors.EXIT_YES
