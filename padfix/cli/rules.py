"""``padfix rules``: the list of rules."""

from __future__ import annotations

from pathlib import Path

import click

from padfix import errors
from padfix.cli import options
from padfix.cli.sections import SectionedCommand

EXAMPLES = """
padfix rules
padfix rules --format json
"""


@click.command("rules", cls=SectionedCommand, epilog=EXAMPLES)
@options.format_option(["text", "json", "markdown"], "Of the list.")
@click.option(
    "--write-pages",
    "folder",
    metavar="DIR",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Write the page of every rule to DIR instead, as Markdown.",
)
def command(report_format: str, folder: Path | None) -> int:
    """List every rule: code, name, severity, whether `padfix convert` rewrites it, and what it finds."""
    from padfix.reports import catalogue, pages
    from padfix.rules.registry import RULES

    if folder is not None:
        from padfix.cli.report_files import write

        for name, content in pages.files(RULES).items():
            write(folder / name, content)
        return errors.EXIT_YES
    click.echo(getattr(catalogue, report_format)(RULES), nl=False)
    return errors.EXIT_YES
