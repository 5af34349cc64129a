"""Baselines: the findings that a project knows of already, so that only new ones fail a build."""

from __future__ import annotations

import dataclasses
import json
import os
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from padfix.config.settings import Config
from padfix.errors import UsageError
from padfix.files.urls import is_url
from padfix.results import SCHEMA, CheckReport, Finding

KIND = "padfix-baseline"


def render(reports: Sequence[CheckReport], folder: Path) -> str:
    """Return the baseline file of all findings of ``reports``; its paths are relative to ``folder``.

    One finding a line, sorted, so that a change of the file reads well in a review.
    """
    entries = [
        {
            "source": _relative(each.source, folder),
            "rule": finding.rule,
            "graph": finding.graph,
            "node": finding.node,
            "op_type": finding.op_type,
            "message": finding.message,
            "fingerprint": finding.fingerprint,
        }
        for each in reports
        for finding in each.findings
    ]
    entries.sort(key=lambda entry: tuple(entry.values()))
    lines = ",\n".join("    " + json.dumps(entry) for entry in entries)
    body = f"\n{lines}\n  " if entries else ""
    return f'{{\n  "schema": {SCHEMA},\n  "kind": "{KIND}",\n  "findings": [{body}]\n}}\n'


class Baseline:
    """The findings that the baseline at ``path`` holds.

    Raises:
        UsageError: The file is missing or is no baseline.
    """

    def __init__(self, path: Path) -> None:
        self._folder = path.resolve().parent
        self._entries: dict[str, list[dict[str, Any]]] = {}
        for entry in _load(path):
            self._entries.setdefault(entry["source"], []).append(entry)

    @classmethod
    def read(cls, config: Config) -> Baseline:
        """Return the baseline that a configuration names."""
        return cls((config.folder or Path()) / (config.baseline or ""))

    def apply(self, reports: Sequence[CheckReport]) -> tuple[list[CheckReport], int]:
        """Take the findings that are held out of ``reports``.

        A finding is held when an entry of the same model has its fingerprint; each entry holds one finding. What is
        left is tried a second time, because its own node may have been renamed: an entry whose finding is gone holds
        one with the same rule, operator and message.

        Returns:
            The reports without the findings held, and the number of entries of their models that hold nothing now.
        """
        kept, stale = [], 0
        for report in reports:
            findings, left = _take(report.findings, self._entries.get(_relative(report.source, self._folder), []))
            stale += left
            kept.append(dataclasses.replace(report, findings=findings, baselined=len(report.findings) - len(findings)))
        return kept, stale


def _take(findings: Sequence[Finding], entries: Sequence[dict[str, Any]]) -> tuple[list[Finding], int]:
    exact: Counter[str] = Counter(entry["fingerprint"] for entry in entries)
    unknown = []
    for finding in findings:
        if exact[finding.fingerprint] > 0:
            exact[finding.fingerprint] -= 1
        else:
            unknown.append(finding)
    alike: Counter[tuple[str, str, str]] = Counter()
    for entry in entries:
        if exact[entry["fingerprint"]] > 0:
            exact[entry["fingerprint"]] -= 1
            alike[entry["rule"], entry["op_type"], entry["message"]] += 1
    new = []
    for finding in unknown:
        key = (finding.rule, finding.op_type, finding.message)
        if alike[key] > 0:
            alike[key] -= 1
        else:
            new.append(finding)
    return new, alike.total()


def _relative(source: str, folder: Path) -> str:
    if is_url(source):
        return source
    return Path(os.path.relpath(Path(source).resolve(), folder.resolve())).as_posix()


def _load(path: Path) -> list[dict[str, Any]]:
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(
            f"The baseline {path} can't be read: {error.strerror or error}.", "Make it with --write-baseline."
        ) from error
    except ValueError as error:
        raise UsageError(
            f"The baseline {path} is not JSON: {error}.", "Make it again with --write-baseline."
        ) from error
    if not isinstance(document, dict) or document.get("kind") != KIND:
        raise UsageError(f"{path} is not a padfix baseline.", "Make one with --write-baseline.")
    if document.get("schema") != SCHEMA:
        raise UsageError(f"{path} has schema {document.get('schema')!r}, not {SCHEMA}.", "Make it again.")
    entries = document.get("findings")
    keys = ("source", "rule", "op_type", "message", "fingerprint")
    if not isinstance(entries, list) or not all(
        isinstance(entry, dict) and all(isinstance(entry.get(key), str) for key in keys) for entry in entries
    ):
        raise UsageError(f"{path} has findings without {', '.join(keys)}.", "Make it again with --write-baseline.")
    return entries
