"""``padfix rules``: the list of rules."""

from __future__ import annotations

import click


@click.command("rules")
@click.option(
    "--format",
    "report_format",
    type=click.Choice(["text", "json", "markdown"]),
    default="text",
    show_default=True,
    help="Of the list.",
)
def command(report_format: str) -> int:
    """List every rule: code, name, severity, whether `padfix convert` rewrites it, and what it finds."""
    from padfix.reports import catalogue
    from padfix.rules.registry import RULES

    render = {"text": catalogue.text, "json": catalogue.json, "markdown": catalogue.markdown}[report_format]
    click.echo(render(RULES), nl=False)
    return 0
