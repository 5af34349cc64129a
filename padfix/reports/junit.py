"""Findings as JUnit XML: a suite a model, a case for each rule that was asked, as build servers show them."""

from __future__ import annotations

from collections.abc import Sequence
from xml.sax.saxutils import escape, quoteattr

from padfix.errors import PadfixError
from padfix.reports import sentences
from padfix.reports.characters import printable
from padfix.results import CheckReport, Finding, Severity
from padfix.rules.registry import RULES


def findings(
    reports: Sequence[CheckReport],
    failures: Sequence[tuple[str, PadfixError]] = (),
    *,
    fail_on: Severity = Severity.WARNING,
) -> str:
    """Return a ``testsuites`` document; a case fails when its rule found something of severity ``fail_on`` or worse.

    A rule that was not asked about a model has no case there: it did not pass. Lesser findings are the case's output. A
    model that could not be read is a suite with one case in error.
    """
    suites = [_suite(report, model, fail_on) for model, report in sentences.headed(reports)]
    tests, failed = sum(suite[0] for suite in suites), sum(suite[1] for suite in suites)
    head = (
        f'<testsuites name="padfix check" tests="{tests + len(failures)}" failures="{failed}" '
        f'errors="{len(failures)}" time="0">'
    )
    broken = [
        f'  <testsuite name={_value(name)} tests="1" failures="0" errors="1" skipped="0" time="0">\n'
        f'    <testcase classname={_value(name)} name="readable" time="0">\n'
        f"      <error message={_value(error.message)}>{_text(str(error))}</error>\n    </testcase>\n  </testsuite>"
        for name, error in failures
    ]
    lines = ['<?xml version="1.0" encoding="UTF-8"?>', head, *(suite[2] for suite in suites), *broken, "</testsuites>"]
    return "\n".join(lines) + "\n"


def _suite(report: CheckReport, model: str, fail_on: Severity) -> tuple[int, int, str]:
    """Return (cases, failed cases, XML) of one model, which is called ``model``."""
    names = {rule.code: rule.name for rule in RULES if rule.code in report.rules}
    names.update({finding.rule: finding.name for finding in report.findings})
    cases, failed = [], 0
    for code, name in names.items():
        found = [finding for finding in report.findings if finding.rule == code]
        bad = [finding for finding in found if finding.severity.rank >= fail_on.rank]
        opening = f"    <testcase classname={_value(model)} name={_value(f'{code} {name}')} " + 'time="0"'
        inner = []
        if bad:
            failed += 1
            message = f"{sentences.count(len(bad), 'finding')}: {_line(bad[0])}"
            kind = _value(bad[0].severity.value)
            inner.append(f"      <failure type={kind} message={_value(message)}>{_listed(bad)}</failure>")
        lesser = [finding for finding in found if finding not in bad]
        if lesser:
            inner.append(f"      <system-out>{_listed(lesser)}</system-out>")
        cases.append("\n".join([opening + ">", *inner, "    </testcase>"]) if inner else opening + "/>")
    head = (
        f'  <testsuite name={_value(model)} tests="{len(names)}" failures="{failed}" errors="0" skipped="0" time="0">'
    )
    return len(names), failed, "\n".join([head, *cases, "  </testsuite>"])


def _line(finding: Finding) -> str:
    return f"{sentences.subject(finding)}: {finding.message}"


def _listed(found: Sequence[Finding]) -> str:
    lines = []
    for finding in found:
        lines.append(_text(f"{finding.severity.value}: {_line(finding)}"))
        if finding.hint:
            lines.append(_text(f"  hint: {finding.hint}"))
    return "\n".join(lines)


def _text(words: str) -> str:
    return escape(printable(words))


def _value(words: str) -> str:
    return quoteattr(printable(words))
