"""The list of rules as text, JSON and Markdown, from the rules themselves."""

from __future__ import annotations

import inspect
from collections.abc import Sequence

from padfix.reports.columns import aligned
from padfix.reports.json import document
from padfix.rules.base import Rule


def summary(rule: Rule) -> str:
    """Return the first sentence of the rule's docstring, on one line."""
    paragraph = inspect.cleandoc(type(rule).__doc__ or "").split("\n\n")[0]
    return " ".join(paragraph.split())


def text(rules: Sequence[Rule]) -> str:
    """Return one aligned line a rule."""
    rows = [
        (rule.code, rule.name, rule.severity.value, "fixable" if rule.fixable else "-", summary(rule)) for rule in rules
    ]
    return aligned(rows)


def json(rules: Sequence[Rule]) -> str:
    """Return ``{"schema": 1, "rules": [...]}``."""
    return document({"rules": [entry(rule) for rule in rules]})


def entry(rule: Rule) -> dict[str, object]:
    """Return what the list says of a rule, for programs."""
    return {
        "rule": rule.code,
        "name": rule.name,
        "severity": rule.severity.value,
        "fixable": rule.fixable,
        "summary": summary(rule),
    }


def markdown(rules: Sequence[Rule]) -> str:
    """Return a Markdown table, as it stands in the README."""
    lines = ["| Code | Name | Severity | Rewritten by `convert` | What it finds |", "|---|---|---|---|---|"]
    for rule in rules:
        sentence = summary(rule).replace("``", "`").replace("|", "\\|")
        lines.append(
            f"| {rule.code} | {rule.name} | {rule.severity.value} | {'yes' if rule.fixable else 'no'} | {sentence} |"
        )
    return "\n".join(lines) + "\n"
