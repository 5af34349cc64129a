"""Findings as GitHub Actions workflow commands, which the site shows as annotations."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from padfix.errors import PadfixError
from padfix.reports import sentences
from padfix.reports.characters import printable
from padfix.reports.paths import checkout_path
from padfix.results import CheckReport, Severity

_LEVELS = {Severity.SILENT: "error", Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "notice"}

MOST = 10
"""Annotations of one level that the site shows of a step; it drops the others without a word."""


def findings(reports: Sequence[CheckReport], failures: Sequence[tuple[str, PadfixError]] = ()) -> str:
    """Return one workflow command for each model that can't be read and each finding; empty when there are none.

    Where the site would drop some, the last that it shows says how many more there are.
    """
    levels: dict[str, list[str]] = {"error": [], "warning": [], "notice": []}
    for level, line in _annotations(reports, failures):
        levels[level].append(line)
    shown = []
    for level, lines in levels.items():
        if len(lines) > MOST:
            rest = sentences.count(len(lines) - (MOST - 1), level)
            lines = [*lines[: MOST - 1], f"::{level} title=padfix::{rest} more: see the summary of this step."]
        shown += lines
    return "".join(f"{line}\n" for line in shown)


def _annotations(
    reports: Sequence[CheckReport], failures: Sequence[tuple[str, PadfixError]]
) -> Iterator[tuple[str, str]]:
    for name, error in failures:
        place = f"file={_property(checkout_path(name))},line=1"
        yield "error", f"::error {place},title=padfix::{_message(str(error))}"
    for each in reports:
        for finding in each.findings:
            level = _LEVELS[finding.severity]
            title = _property(f"{finding.rule} {finding.name}")
            hint = f" Hint: {finding.hint}" if finding.hint else ""
            message = _message(f"{sentences.subject(finding)}: {finding.message}{hint}")
            place = f"file={_property(checkout_path(each.source))},line=1"
            yield level, f"::{level} {place},title={title}::{message}"


def _message(text: str) -> str:
    # Line breaks are already escaped by printable(), so that no name can start a workflow command of its own.
    return printable(text).replace("%", "%25")


def _property(text: str) -> str:
    return _message(text).replace(":", "%3A").replace(",", "%2C")
