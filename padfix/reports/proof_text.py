"""What ``convert`` and ``verify`` found, for people at a terminal and for the logs of builds: plain text."""

from __future__ import annotations

from padfix.reports import runtime_verdicts, sentences
from padfix.reports.characters import printable
from padfix.reports.text_style import PLAIN, Style
from padfix.results import ConvertReport, RuntimesReport, Verdict

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
