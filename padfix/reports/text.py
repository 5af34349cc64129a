"""What ``check`` found, for people at a terminal and for the logs of builds: plain text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from padfix.errors import PadfixError
from padfix.reports import sentences
from padfix.reports.characters import printable
from padfix.reports.columns import aligned
from padfix.reports.text_style import PLAIN, Style
from padfix.results import CheckReport, Finding, Severity


def findings(
    reports: Sequence[CheckReport],
    failures: Sequence[tuple[str, PadfixError]] = (),
    *,
    fail_on: Severity = Severity.WARNING,
    style: Style = PLAIN,
) -> str:
    """Return what ``check`` found, grouped by model and by rule: findings, their hints, the command that fixes them.

    The worst rules come first. A hint stands below the last finding that it is for. Ends with the count, which stands
    out as good where nothing is of severity ``fail_on`` or worse; empty when no model could be read. Models that can't
    be read are not text's to name: standard error has them.
    """
    told = [(head, each) for head, each in sentences.headed(reports) if each.findings or each.proof is not None]
    laid_out: dict[int, list[str]] = {}  # the lines of findings that many models share, which a cache gives once
    blocks = []
    for head, each in told:
        lines = laid_out.get(id(each.findings))
        if lines is None:
            lines = laid_out[id(each.findings)] = list(_found(each.findings, style))
        blocks.append("\n".join([style.paint(printable(head), "strong"), *lines, *_behind(each, style)]))
    if sentences.is_about_targets(reports):
        titles, rows = sentences.matrix(reports)
        blocks.append(aligned([tuple(map(printable, row)) for row in (titles, *rows)]).rstrip("\n"))
    if reports:
        found = [finding for each in reports for finding in each.findings]
        good = not failures and all(finding.severity.rank < fail_on.rank for finding in found)
        blocks.append("\n".join(style.verdict(sentences.summary(reports), good=good)))
    return "\n\n".join(blocks) + "\n" if blocks else ""


def _found(findings: Sequence[Finding], style: Style) -> Iterator[str]:
    groups: dict[tuple[str, str], list[Finding]] = {}
    for finding in findings:
        groups.setdefault((finding.rule, finding.name), []).append(finding)
    for (rule, name), found in sorted(groups.items(), key=lambda group: (-_worst(group[1]).rank, group[0])):
        first, *rest = style.lines(f"{rule} {name}: {sentences.severities(found)}", first="  ", rest=4)
        yield f"  {style.paint(rule, _worst(found).value)}{first[2 + len(rule) :]}"
        yield from rest
        yield from _rows(found, style)


def _behind(report: CheckReport, style: Style) -> Iterator[str]:
    if report.proof is not None and report.proof.proven:
        yield from style.lines(sentences.required_proof(report.proof), first="  ", rest=4)
    command = sentences.fix(report)
    if command:  # one line, however long: it is to be pasted
        yield f"  {sentences.fix_title(report)}: {style.paint(command, 'strong')}"


def _worst(found: Sequence[Finding]) -> Severity:
    return max((finding.severity for finding in found), key=lambda severity: severity.rank)


def _rows(found: Sequence[Finding], style: Style) -> Iterator[str]:
    """Yield a finding a line, aligned; each message below its place on a terminal where it has no room beside it."""
    places = aligned([(sentences.place(each), printable(each.op_type), "|") for each in found]).splitlines()
    beside = len(places[0]) + 3
    is_narrow = style.width is not None and beside > style.width // 2
    last = {each.hint: number for number, each in enumerate(found)}
    for number, (finding, place) in enumerate(zip(found, places, strict=True)):
        message = printable(finding.message)
        if is_narrow:
            yield "    " + "  ".join(place[:-1].split())
            yield from style.lines(message, first="      ", rest=6)
        else:
            yield from style.lines(message, first=f"    {place[:-1]}", rest=beside)
        if finding.hint and last[finding.hint] == number:
            hint = style.lines(f"hint: {printable(finding.hint)}", first="    ", rest=6)
            yield from (style.paint(line, "faint") for line in hint)
