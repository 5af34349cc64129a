"""What ``padfix check`` found, in the format asked for."""

from __future__ import annotations

from collections.abc import Sequence

from padfix.errors import PadfixError
from padfix.results import CheckReport, Severity

FORMATS = ("text", "json", "sarif", "junit", "github", "markdown", "html")


def render(
    report_format: str,
    reports: Sequence[CheckReport],
    failures: Sequence[tuple[str, PadfixError]] = (),
    *,
    fail_on: Severity = Severity.WARNING,
    colour: bool = False,
) -> str:
    """Return the findings of ``reports`` and the models that could not be read, as one of :data:`FORMATS`.

    Args:
        report_format: The format; its module is imported here and no other.
        reports: One for each model that could be read.
        failures: (Path, error) of each model that could not.
        fail_on: The least severity that is a failure; ``junit`` marks those.
        colour: Whether ``text`` has the escape sequences of a terminal.
    """
    match report_format:
        case "json":
            from padfix.reports import json

            return json.findings(reports, failures)
        case "sarif":
            from padfix.reports import sarif

            return sarif.findings(reports, failures)
        case "junit":
            from padfix.reports import junit

            return junit.findings(reports, failures, fail_on=fail_on)
        case "github":
            from padfix.reports import github

            return github.findings(reports, failures)
        case "markdown":
            from padfix.reports import markdown

            return markdown.findings(reports, failures)
        case "html":
            from padfix.reports import html

            return html.findings(reports, failures)
    from padfix.reports import text

    return text.findings(reports, colour=colour)
