"""Reports for people at a terminal: plain text, one fact a line."""

from __future__ import annotations

from collections.abc import Sequence

from padfix.errors import PadfixError
from padfix.reports import sentences
from padfix.reports.characters import printable
from padfix.reports.columns import aligned
from padfix.results import CheckReport, ConvertReport, Verdict


def report(result: ConvertReport | Verdict, *, verbose: bool = False) -> str:
    """Return what ``convert`` or ``verify`` found; ``verbose`` lists every rewrite and every run."""
    lines = _verdict(result, verbose) if isinstance(result, Verdict) else _conversion(result, verbose)
    return "\n".join(lines) + "\n"


def findings(
    reports: Sequence[CheckReport], failures: Sequence[tuple[str, PadfixError]] = (), *, colour: bool = False
) -> str:
    """Return what ``check`` found, grouped by model: aligned findings, their hints, the command that fixes them.

    A hint stands below the last finding that it is for. Ends with the count; empty when no model could be read.
    ``colour`` adds the escape sequences of a terminal. Models that can't be read are not text's to name: standard error
    has them.
    """
    blocks = [_model(each, colour) for each in reports if each.findings or each.proof is not None]
    if reports:
        blocks.append(f"{sentences.summary(reports)}\n")
    return "\n".join(blocks)


_CODES = {"silent": "1;35", "error": "1;31", "warning": "33", "info": "36", "strong": "1", "faint": "2"}
"""Of a terminal's escape sequences."""


def _model(report: CheckReport, colour: bool) -> str:
    def style(text: str, name: str) -> str:
        return f"\x1b[{_CODES[name]}m{text}\x1b[0m" if colour else text

    found = report.findings
    rows = aligned(
        [
            (
                finding.severity.value,
                f"{finding.rule} {finding.name}",
                sentences.place(finding),
                printable(finding.op_type),
                printable(finding.message),
            )
            for finding in found
        ]
    ).splitlines()
    last = {(finding.rule, finding.hint): place for place, finding in enumerate(found)}
    lines = [style(printable(report.source), "strong")]
    for place, (finding, row) in enumerate(zip(found, rows, strict=True)):
        severity = finding.severity.value
        lines.append(f"  {style(severity, severity)}{row[len(severity) :]}")
        if finding.hint and last[finding.rule, finding.hint] == place:
            lines.append(style(f"    hint: {printable(finding.hint)}", "faint"))
    if report.proof is not None and report.proof.proven:
        lines.append(f"  {sentences.required_proof(report.proof)}")
    command = sentences.fix(report)
    if command:
        lines.append(f"  {sentences.fix_title(report)}: {style(command, 'strong')}")
    return "".join(f"{line}\n" for line in lines)


def _conversion(result: ConvertReport, verbose: bool) -> list[str]:
    lines = [f"{printable(result.source)}: {sentences.kind(result)}"]
    verb = "tried  " if result.error else "rewrote"
    for (rule, name), rewrites in sentences.by_rule(result).items():
        lines.append(f"  {verb}  {rule} {name}: {sentences.operators(rewrites)}")
        if verbose:
            lines.extend(
                f"           {sentences.place(each.finding)}: {sentences.local_proof(each.proof)}" for each in rewrites
            )
    if not result.rewrites:
        explicit = sentences.windows(result)
        lines.append(f"  {verb}  nothing; the conversion left {explicit}" if explicit else f"  {verb}  nothing")
    for refused in result.refusals:
        finding = refused.finding
        lines.append(
            f"  refused  {finding.rule} {finding.name}: {sentences.place(finding)} ({printable(finding.op_type)}): "
            f"{printable(refused.reason)}"
        )
    lines.extend(f"  note     {printable(note)}" for note in result.notes)
    if result.verdict is not None:
        first, *rest = _verdict(result.verdict, verbose)
        lines.append(f"  proof    {first}")
        lines.extend(f"         {line}" for line in rest)
    lines.append(f"  {sentences.outcome(result)}")
    return lines


def _verdict(result: Verdict, verbose: bool) -> list[str]:
    lines = [sentences.verdict(result)]
    if verbose:
        for run in result.runs:
            shapes = ", ".join(f"{printable(name)} {list(shape)}" for name, shape in run.shapes.items())
            lines.append(f"  probe {printable(run.probe)} on {printable(run.candidate)} ({shapes})")
            lines.extend(f"    {sentences.difference(output)}" for output in run.outputs)
    else:
        lines.extend(
            f"  probe {printable(run.probe)} on {printable(run.candidate)}: output {sentences.difference(output)}"
            for run, output in sentences.failures(result)
        )
    if result.first_difference is not None:
        lines.extend(f"  {line}" for line in sentences.first_difference(result.first_difference))
    lines.extend(f"  note: {printable(note)}" for note in result.notes)
    return lines
