"""``padfix explain``: the documentation page of a rule, or of a topic."""

from __future__ import annotations

import click

from padfix import errors
from padfix.cli import options
from padfix.cli.sections import SectionedCommand

EXAMPLES = """
padfix explain PF101
padfix explain resize
padfix explain legacy-upsample --format markdown
"""


@click.command("explain", cls=SectionedCommand, epilog=EXAMPLES)
@click.argument("code", shell_complete=options.complete_pages)
@options.format_option(["text", "json", "markdown"], "Of the page.")
def command(code: str, report_format: str) -> int:
    """Explain the rule CODE (PF101, or its name).

    What it finds, why that is a problem, what padfix does about it and when it declines, an example and references.

    `padfix explain resize` prints what each resize of TensorFlow 1 and 2, PyTorch, OpenCV and Pillow is in ONNX.
    """
    if code.strip().lower() == "resize":
        return _resize(report_format)
    from padfix.errors import suggestion
    from padfix.reports import pages
    from padfix.rules.registry import RULES

    wanted = code.strip().lower()
    rule = next((each for each in RULES if wanted in (each.code.lower(), each.name)), None)
    if rule is None:
        known = [name for each in RULES for name in (each.code, each.name)]
        raise errors.UsageError(
            f"There is no rule {code!r}.",
            f"{suggestion(code, known)} `padfix rules` lists them; `resize` is a topic.",
        )
    click.echo(getattr(pages, report_format)(rule), nl=False)
    return errors.EXIT_YES


def _resize(report_format: str) -> int:
    from padfix.geometry.resize_table import RESIZES
    from padfix.reports import resizes

    click.echo(getattr(resizes, report_format)(RESIZES), nl=False)
    return errors.EXIT_YES
