"""Findings as SARIF 2.1.0, the format that code-scanning services and viewers read."""

from __future__ import annotations

import inspect
import json
from collections import Counter
from collections.abc import Sequence
from typing import Any
from urllib.parse import quote

from padfix.errors import PadfixError
from padfix.files.urls import is_url
from padfix.process.version import __version__
from padfix.reports import catalogue, sentences
from padfix.reports.characters import printable
from padfix.reports.paths import checkout_path
from padfix.results import CheckReport, Finding, Severity
from padfix.rules.base import Rule
from padfix.rules.registry import RULES

SCHEMA_URI = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
FINGERPRINT = "padfix/v1"

_LEVELS = {Severity.SILENT: "error", Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "note"}


def findings(reports: Sequence[CheckReport], failures: Sequence[tuple[str, PadfixError]] = ()) -> str:
    """Return one SARIF run: every rule with its page, every finding, and each model that could not be read.

    Rules that were asked of no model are listed as not enabled: that they found nothing says nothing.

    A model is binary, so the region is its first line; where in the graph a finding is, the logical location says.
    """
    rules = [_rule(rule) for rule in RULES]
    asked = {code for report in reports for code in report.rules}
    places = {rule["id"]: place for place, rule in enumerate(rules)}
    results = []
    seen: Counter[tuple[str, str]] = Counter()
    for report in reports:
        for finding in report.findings:
            if finding.rule not in places:
                places[finding.rule] = len(rules)
                rules.append({"id": finding.rule, "name": _pascal(finding.name)})
            own = report.source, finding.fingerprint  # of several targets, too
            seen[own] += 1
            results.append(_result(report, finding, places[finding.rule], seen[own]))
    document = {
        "$schema": SCHEMA_URI,
        "version": "2.1.0",
        "runs": [
            {
                "tool": {
                    "driver": {
                        "name": "padfix",
                        "version": __version__,
                        "semanticVersion": __version__,
                        "rules": rules,
                    }
                },
                "artifacts": [
                    {"location": _artifact(source)} for source in dict.fromkeys(each.source for each in reports)
                ],
                "invocations": [
                    {
                        "executionSuccessful": not failures,
                        "ruleConfigurationOverrides": [
                            {"descriptor": {"id": rule.code, "index": place}, "configuration": {"enabled": False}}
                            for place, rule in enumerate(RULES)
                            if rule.code not in asked
                        ],
                        "toolExecutionNotifications": [_notification(name, error) for name, error in failures],
                    }
                ],
                "columnKind": "unicodeCodePoints",
                "results": results,
            }
        ],
    }
    return json.dumps(document, indent=2, ensure_ascii=True) + "\n"


def _rule(rule: Rule) -> dict[str, Any]:
    page = inspect.cleandoc(type(rule).__doc__ or "")
    return {
        "id": rule.code,
        "name": _pascal(rule.name),
        "shortDescription": {"text": catalogue.summary(rule).replace("`", "")},
        "fullDescription": {"text": catalogue.summary(rule).replace("`", "")},
        "help": {"text": page, "markdown": page},
        "defaultConfiguration": {"level": _LEVELS[rule.severity]},
        "properties": {
            "tags": ["correctness", "onnx"],
            "problem.severity": "recommendation" if rule.severity is Severity.INFO else rule.severity.value,
            "precision": "very-high",
        },
    }


def _result(report: CheckReport, finding: Finding, rule_index: int, occurrence: int) -> dict[str, Any]:
    place = sentences.place(finding)
    text = f"{sentences.subject(finding)}: {printable(finding.message)}"
    if finding.hint:
        text += f" Hint: {printable(finding.hint)}"
    # Findings that the fingerprint can't tell apart are told apart by their order.
    own = f"{finding.fingerprint}:{occurrence}"
    return {
        "ruleId": finding.rule,
        "ruleIndex": rule_index,
        "level": _LEVELS[finding.severity],
        "kind": "fail",
        "message": {"text": text},
        "locations": [
            {
                "physicalLocation": {"artifactLocation": _artifact(report.source), "region": {"startLine": 1}},
                "logicalLocations": [
                    {"name": printable(finding.node), "fullyQualifiedName": place, "kind": "element"},
                ],
            }
        ],
        # The second is the name under which a widely used viewer looks for the identity of a result.
        "partialFingerprints": {FINGERPRINT: own, "primaryLocationLineHash": own},
        "properties": {"fixable": finding.fixable, "opType": printable(finding.op_type), "target": report.target},
    }


def _notification(name: str, error: PadfixError) -> dict[str, Any]:
    return {
        "level": "error",
        "message": {"text": printable(str(error))},
        "locations": [{"physicalLocation": {"artifactLocation": _artifact(name)}}],
    }


def _artifact(source: str) -> dict[str, str]:
    path = checkout_path(source)
    if path.startswith("/"):
        return {"uri": "file://" + quote(path, errors="surrogateescape")}
    if is_url(path):
        return {"uri": quote(path, safe=":/", errors="surrogateescape")}
    # A drive letter or a colon in the first part would read as a scheme, so every special character is escaped.
    return {"uri": quote(path, errors="surrogateescape")}


def _pascal(name: str) -> str:
    return "".join(word.capitalize() for word in printable(name).split("-"))
