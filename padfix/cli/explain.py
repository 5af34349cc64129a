"""``padfix explain``: the documentation page of a rule."""

from __future__ import annotations

import inspect

import click

from padfix import errors


@click.command("explain")
@click.argument("code")
def command(code: str) -> int:
    """Explain the rule CODE (PF101, or its name): what it finds, why that is a problem, what padfix does about it."""
    from padfix.rules.registry import RULES

    wanted = code.strip().lower()
    rule = next((each for each in RULES if wanted in (each.code.lower(), each.name)), None)
    if rule is None:
        raise errors.UsageError(f"There is no rule {code!r}.", "`padfix rules` lists them all.")
    fixable = "padfix convert rewrites it" if rule.fixable else "report only"
    click.echo(f"{rule.code} {rule.name} ({rule.severity.value}; {fixable})\n")
    click.echo(inspect.cleandoc(type(rule).__doc__ or "No documentation."))
    return 0
