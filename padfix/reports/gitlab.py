"""Findings as GitLab's Code Quality report, which a merge request shows beside the changes."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence

from padfix.errors import PadfixError
from padfix.reports import sentences
from padfix.reports.characters import printable
from padfix.reports.paths import checkout_path
from padfix.results import CheckReport, Severity

_SEVERITIES = {Severity.SILENT: "blocker", Severity.ERROR: "critical", Severity.WARNING: "major", Severity.INFO: "info"}


def findings(reports: Sequence[CheckReport], failures: Sequence[tuple[str, PadfixError]] = ()) -> str:
    """Return one entry a finding, and one for each model that can't be read.

    A model is binary, so the place is its first line. Fingerprints tell entries apart, also those that a model has
    twice, and stay while other nodes of the model come and go.
    """
    entries = []
    seen: dict[tuple[str, str], int] = {}
    for report in reports:
        for finding in report.findings:
            path = checkout_path(report.source)
            key = (path, finding.fingerprint)
            seen[key] = seen.get(key, 0) + 1
            hint = f" {finding.hint}" if finding.hint else ""
            entries.append(
                _entry(
                    f"{sentences.subject(finding)}: {printable(f'{finding.message}{hint}')}",
                    finding.rule,
                    f"{finding.fingerprint}\0{seen[key]}",
                    _SEVERITIES[finding.severity],
                    path,
                )
            )
    for name, error in failures:
        entries.append(_entry(printable(str(error)), "padfix", "", "blocker", checkout_path(name)))
    return json.dumps(entries, indent=2, ensure_ascii=True) + "\n"


def _entry(description: str, rule: str, own: str, severity: str, path: str) -> dict[str, object]:
    fingerprint = hashlib.sha256(f"{path}\0{rule}\0{own}".encode("utf-8", "surrogatepass")).hexdigest()
    return {
        "description": description,
        "check_name": rule,
        "fingerprint": fingerprint,
        "severity": severity,
        "location": {"path": printable(path), "lines": {"begin": 1}},
    }
