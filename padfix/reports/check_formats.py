"""What ``padfix check`` found, in the format asked for."""

from __future__ import annotations

import importlib
from collections.abc import Sequence

from padfix.errors import PadfixError
from padfix.reports.text_style import PLAIN, Style
from padfix.results import CheckReport, Severity

FORMATS = ("text", "json", "sarif", "junit", "github", "gitlab", "markdown", "html", "jsonl")


def render(
    report_format: str,
    reports: Sequence[CheckReport],
    failures: Sequence[tuple[str, PadfixError]] = (),
    *,
    fail_on: Severity = Severity.WARNING,
    style: Style = PLAIN,
) -> str:
    """Return the findings of ``reports`` and the models that could not be read, as one of :data:`FORMATS`.

    Findings of severity ``fail_on`` and worse are the failures that ``junit`` and ``text`` mark; ``style`` is how
    ``text`` is shown. The format's module is imported here and no other.
    """
    module = importlib.import_module(f"padfix.reports.{report_format}")
    options: dict[str, dict[str, object]] = {
        "junit": {"fail_on": fail_on},
        "text": {"fail_on": fail_on, "style": style},
    }
    return str(module.findings(reports, failures, **options.get(report_format, {})))
