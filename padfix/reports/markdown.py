"""Reports as Markdown, for pull requests and build summaries."""

from __future__ import annotations

from collections.abc import Sequence

from padfix.errors import PadfixError
from padfix.reports import sentences
from padfix.reports.characters import printable
from padfix.reports.pictures import selection
from padfix.reports.text import summary
from padfix.results import CheckReport, ConvertReport, Finding, Verdict


def report(result: ConvertReport | Verdict, *, written: bool = False) -> str:
    """Return what ``convert`` or ``verify`` found."""
    lines = _verdict(result) if isinstance(result, Verdict) else _conversion(result, written)
    return "\n".join(lines) + "\n"


def findings(
    reports: Sequence[CheckReport], failures: Sequence[tuple[str, PadfixError]] = (), *, pictures: bool = True
) -> str:
    """Return what ``check`` found, a table with a row a finding, then pictures where they are wanted."""
    lines = ["## padfix check", "", escaped(summary(reports))]
    rows = [
        [
            each.source,
            f"{finding.rule} {finding.name}",
            finding.severity.value,
            f"{finding.graph}/{finding.node}",
            finding.op_type,
            finding.message,
        ]
        for each in reports
        for finding in each.findings
    ]
    if rows:
        lines += ["", *table(["Model", "Rule", "Severity", "Node", "Operator", "Message"], rows)]
    if pictures:
        for each in reports:
            below = _pictures(each.findings)
            lines += ["", f"### {escaped(each.source)}", *below] if below else []
    if failures:
        lines += ["", *(f"- Not read: {escaped(name)}: {escaped(str(error))}" for name, error in failures)]
    return "\n".join(lines) + "\n"


def escaped(text: str) -> str:
    """Return ``text`` as it should be read: nothing in it is Markdown or HTML."""
    return "".join(f"\\{each}" if each in "\\`*_{}[]()<>#|!~&" else each for each in printable(text))


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Return the lines of a table; every cell of ``rows`` is escaped."""
    lines = [f"| {' | '.join(head)} |", f"|{'---|' * len(head)}"]
    lines.extend(f"| {' | '.join(escaped(cell) for cell in row)} |" for row in rows)
    return lines


def _pictures(findings: Sequence[Finding]) -> list[str]:
    """Return pictures as images that hold all of themselves; where those are not shown, their words are."""
    pictures, left_out = selection.of_findings(findings)
    lines = []
    for caption, picture in pictures:
        lines += ["", f"{escaped(caption)}:", "", picture.image()]
    return [*lines, "", f"{left_out} more pictures are left out."] if left_out else lines


def _conversion(result: ConvertReport, written: bool) -> list[str]:
    lines = [
        "## padfix convert",
        "",
        escaped(f"{result.source} ({sentences.kind(result)}). {sentences.outcome(result, written=written)}"),
    ]
    if sentences.windows(result):
        lines += ["", f"{sentences.windows(result)}."]
    if result.rewrites:
        rows = [
            [
                f"{each.finding.rule} {each.finding.name}",
                f"{each.finding.graph}/{each.finding.node}",
                each.finding.op_type,
                sentences.local_proof(each.proof),
            ]
            for each in result.rewrites
        ]
        lines += ["", "### Rewritten", "", *table(["Rule", "Node", "Operator", "Proof"], rows)]
        lines += _pictures([each.finding for each in result.rewrites])
    if result.refusals:
        rows = [
            [
                f"{each.finding.rule} {each.finding.name}",
                f"{each.finding.graph}/{each.finding.node}",
                each.finding.op_type,
                each.reason,
            ]
            for each in result.refusals
        ]
        lines += ["", "### Refused", "", *table(["Rule", "Node", "Operator", "Reason"], rows)]
        lines += _pictures([each.finding for each in result.refusals])
    if result.notes:
        lines += ["", "### Notes", "", *(f"- {escaped(note)}" for note in result.notes)]
    if result.verdict is not None:
        lines += ["", "### Proof", "", *_verdict(result.verdict)]
    return lines


def _verdict(result: Verdict) -> list[str]:
    lines = [escaped(sentences.verdict(result))]
    if result.outputs:
        rows = [
            [
                output.name,
                "yes" if output.equivalent else "NO",
                f"{output.max_abs_diff:.3g}",
                f"{output.tolerance:.3g}",
                output.detail,
            ]
            for output in result.outputs
        ]
        lines += ["", *table(["Output", "Equal", "Largest difference", "Allowed", "Remark"], rows)]
    for caption, picture in selection.of_verdict(result):
        lines += ["", f"{escaped(caption)}:", "", picture.image()]
    if result.first_difference is not None:
        lines += ["", *(f"- {escaped(line)}" for line in sentences.first_difference(result.first_difference))]
    if result.notes:
        lines += ["", *(f"- {escaped(note)}" for note in result.notes)]
    return lines
