"""What ``padfix check`` found, in the format asked for."""

from __future__ import annotations

import importlib
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
    module = importlib.import_module(f"padfix.reports.{report_format}")
    options: dict[str, dict[str, object]] = {"junit": {"fail_on": fail_on}, "text": {"colour": colour}}
    return str(module.findings(reports, failures, **options.get(report_format, {})))
