"""Reports for people at a terminal, and for the logs of builds: plain text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from padfix.errors import PadfixError
from padfix.reports import runtime_verdicts, sentences
from padfix.reports.characters import printable
from padfix.reports.columns import aligned
from padfix.reports.text_style import PLAIN, Style
from padfix.results import CheckReport, ConvertReport, Finding, RuntimesReport, Severity, Verdict

_LABEL = 11
"""Columns that the labels of a conversion take: ``  rewrote  ``."""

_NARROW = 60
"""Columns below which a label has no room beside it for what it is the label of."""


def report(result: ConvertReport | Verdict | RuntimesReport, *, verbose: bool = False, style: Style = PLAIN) -> str:
    """Return what ``convert`` or ``verify`` found; ``verbose`` lists every rewrite and every run."""
    if isinstance(result, RuntimesReport):
        return "".join(f"{line}\n" for line in runtime_verdicts.text(result, style))
    lines = _verdict(result, verbose, style) if isinstance(result, Verdict) else _conversion(result, verbose, style)
    return "\n".join(lines) + "\n"


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
    blocks = ["\n".join(_model(head, each, style)) for head, each in told]
    if sentences.is_about_targets(reports):
        head, rows = sentences.matrix(reports)
        blocks.append(aligned([tuple(map(printable, row)) for row in (head, *rows)]).rstrip("\n"))
    if reports:
        found = [finding for each in reports for finding in each.findings]
        good = not failures and all(finding.severity.rank < fail_on.rank for finding in found)
        blocks.append("\n".join(style.verdict(sentences.summary(reports), good=good)))
    return "\n\n".join(blocks) + "\n" if blocks else ""


def _model(head: str, report: CheckReport, style: Style) -> Iterator[str]:
    yield style.paint(printable(head), "strong")
    groups: dict[tuple[str, str], list[Finding]] = {}
    for finding in report.findings:
        groups.setdefault((finding.rule, finding.name), []).append(finding)
    for (rule, name), found in sorted(groups.items(), key=lambda group: (-_worst(group[1]).rank, group[0])):
        first, *rest = style.lines(f"{rule} {name}: {sentences.severities(found)}", first="  ", rest=4)
        yield f"  {style.paint(rule, _worst(found).value)}{first[2 + len(rule) :]}"
        yield from rest
        yield from _rows(found, style)
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


def _conversion(result: ConvertReport, verbose: bool, style: Style) -> list[str]:
    def labelled(label: str, text: str) -> list[str]:
        return style.lines(text, first=f"  {label:<7}  ", rest=_LABEL)

    lines = [f"{style.paint(printable(result.source), 'strong')}: {sentences.kind(result)}"]
    verb = "tried" if result.error else "rewrote"
    for (rule, name), rewrites in sentences.by_rule(result).items():
        lines.extend(labelled(verb, f"{rule} {name}: {sentences.operators(rewrites)}"))
        for each in rewrites if verbose else ():
            lines.extend(labelled("", f"{sentences.place(each.finding)}: {sentences.local_proof(each.proof)}"))
    if not result.rewrites:
        explicit = sentences.windows(result)
        lines.extend(labelled(verb, f"nothing; the conversion left {explicit}" if explicit else "nothing"))
    for refused in result.refusals:
        finding = refused.finding
        where = f"{finding.rule} {finding.name}: {sentences.place(finding)} ({printable(finding.op_type)})"
        lines.extend(labelled("refused", f"{where}: {printable(refused.reason)}"))
    for note in result.notes:
        lines.extend(labelled("note", printable(note)))
    if result.verdict is not None:
        lines.extend(_verdict(result.verdict, verbose, style, "  proof    "))
    for verdict in result.runtimes:
        lines.extend(runtime_verdicts.lines("  runtime  the result", verdict, style))
    good = (result.written or result.unchanged) and result.error is None
    return lines + style.verdict(sentences.outcome(result), good=good, first="  ")


def _verdict(result: Verdict, verbose: bool, style: Style, label: str = "") -> list[str]:
    is_narrow = style.width is not None and style.width < _NARROW
    margin = 2 if is_narrow and label else len(label)

    def below(text: str, more: int = 2) -> list[str]:
        return style.lines(text, first=" " * (margin + more), rest=margin + more + 2)

    said, *facts = sentences.verdict_parts(result)
    lines = style.verdict(said, good=result.equivalent, first=label)
    inside = sentences.stretches(result.stretches) if facts and result.stretches is not None else ""
    for fact in [*facts, inside.rstrip(".")]:
        lines.extend(below(fact) if fact else ())
    for run in result.runs if verbose else ():
        shapes = ", ".join(f"{printable(name)} {list(shape)}" for name, shape in run.shapes.items())
        lines.extend(below(f"probe {printable(run.probe)} on {printable(run.candidate)} ({shapes})"))
        for output in run.outputs:
            lines.extend(below(sentences.difference(output), 4))
    for run, output in sentences.failures(result) if not verbose else ():
        where = f"probe {printable(run.probe)} on {printable(run.candidate)}"
        lines.extend(below(f"{where}: output {sentences.difference(output)}"))
    for line in sentences.first_difference(result.first_difference) if result.first_difference is not None else ():
        lines.extend(below(line))
    for note in result.notes:
        lines.extend(below(f"note: {printable(note)}"))
    return lines
