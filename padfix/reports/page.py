"""What the HTML and Markdown reports say of a result, block by block; text from a model is made safe when rendered."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from padfix import __version__
from padfix.errors import PadfixError
from padfix.reports import catalogue, sentences
from padfix.reports.pictures import selection
from padfix.reports.sections import Block, Bullets, Command, Facts, Page, Pictures, Section, Table, Tone, Words
from padfix.results import (
    Certificate,
    CheckReport,
    ConvertReport,
    FileDigest,
    Finding,
    Measured,
    OutputSummary,
    Refused,
    Rewritten,
    Verdict,
)
from padfix.results.illustration import Illustration
from padfix.rules.registry import RULES


def of_result(result: ConvertReport | Verdict) -> Page:
    """Return the page of what ``convert`` or ``verify`` found."""
    if isinstance(result, Verdict):
        told = (*_files(result.certificate), *_first_difference(result), *_verdict(result, is_headline=False))
        return Page("padfix verify", (*_headline(result), *told))
    return Page("padfix convert", tuple(_conversion(result)))


def of_findings(reports: Sequence[CheckReport], failures: Sequence[tuple[str, PadfixError]]) -> Page:
    """Return the page of what ``check`` found: a section for each model with findings, and what could not be read."""
    blocks: list[Block] = [Words(sentences.summary(reports), _tone(_is_clean(reports, failures)), strong=True)]
    targets = ", ".join(dict.fromkeys(report.target for report in reports))
    blocks.append(Facts((("padfix", __version__), *((("Target", targets),) if targets else ()))))
    proofs = [report.proof for report in reports if report.proof is not None]
    blocks += [Words(sentences.required_proof(proof), _tone(proof.proven)) for proof in proofs]
    blocks += [Section(report.source, tuple(_findings(report))) for report in reports if report.findings]
    clean = tuple(report.source for report in reports if not report.findings)
    if clean:
        blocks.append(Section("Without findings", (Bullets(clean),), folded=len(clean) > 10))
    if failures:
        broken = tuple(f"{name}: {error}" for name, error in failures)
        blocks.append(Section("Not read", (Bullets(broken, Tone.BAD),)))
    return Page("padfix check", tuple(blocks))


def _is_clean(reports: Sequence[CheckReport], failures: Sequence[tuple[str, PadfixError]]) -> bool:
    return bool(reports) and not failures and not any(report.findings for report in reports)


def _tone(good: bool) -> Tone:
    return Tone.GOOD if good else Tone.BAD


def _findings(report: CheckReport) -> Iterator[Block]:
    """Yield a section for each rule that found something, each with its findings in the order of the graph."""
    command = sentences.fix(report)
    if command:
        yield Command(f"To {sentences.fix_title(report)}", command)
    found: dict[str, list[Finding]] = {}
    for finding in report.findings:
        found.setdefault(f"{finding.rule} {finding.name}", []).append(finding)
    drawn: set[Illustration] = set()
    for title, findings in found.items():
        rows = tuple(
            (
                finding.severity.value,
                f"{finding.graph}/{finding.node}",
                finding.op_type,
                f"{finding.message} {finding.hint}".strip(),
            )
            for finding in findings
        )
        wanted = {each.illustration for each in findings if each.illustration is not None} - drawn
        pictures = _pictures([each for each in report.findings if each.illustration in wanted])
        drawn |= wanted
        table = Table(("Severity", "Node", "Operator", "Message"), rows)
        yield Section(title, (*_what_it_finds(findings[0].rule), table, *pictures))


def _what_it_finds(code: str) -> Iterator[Words]:
    for rule in RULES:
        if rule.code == code:
            yield Words(f"{catalogue.summary(rule).replace('`', '')} padfix explain {code} says more.")


def _place(finding: Finding) -> tuple[str, str, str]:
    return f"{finding.rule} {finding.name}", f"{finding.graph}/{finding.node}", finding.op_type


def _pictures(findings: Sequence[Finding]) -> Iterator[Pictures]:
    pictures, left_out = selection.of_findings(findings)
    if pictures:
        yield Pictures(tuple(pictures), left_out)


def _conversion(result: ConvertReport) -> Iterator[Block]:
    yield Words(sentences.outcome(result), _tone(result.error is None), strong=True)
    if result.error is not None:
        yield Words(result.error.message, Tone.BAD)
        if result.error.hint:
            yield Words(f"Hint: {result.error.hint}")
    kind = f" ({sentences.kind(result)})" if result.source_kind else ""
    opset = f" (opset {result.opset})" if result.opset is not None else ""
    models = (("Source", f"{result.source}{kind}"), ("Result", f"{result.output}{opset}"), ("Target", result.target))
    yield Facts(models)
    yield from _files(result.certificate)
    if sentences.windows(result):
        yield Words(f"{sentences.windows(result)}.")
    if result.verdict is not None:
        yield from _first_difference(result.verdict)
    if result.rewrites:
        yield Section(sentences.rewrites_title(result), tuple(_rewrites(result.rewrites)))
    if result.refusals:
        yield Section("Refused", tuple(_refusals(result.refusals)))
    if result.notes:
        yield Section("Notes", (Bullets(tuple(result.notes)),))
    if result.verdict is not None:
        yield Section("Proof", tuple(_verdict(result.verdict)))


def _first_difference(verdict: Verdict) -> Iterator[Section]:
    """Yield what a reader of a failed proof wants first, with the picture of the layers."""
    if verdict.first_difference is None:
        return
    told = Bullets(tuple(sentences.first_difference(verdict.first_difference)))
    yield Section("First difference", (told, *_layers(verdict)))


def _layers(verdict: Verdict) -> Iterator[Pictures]:
    pictures = selection.of_verdict(verdict)
    if pictures:
        yield Pictures(tuple(pictures))


def _rewrites(rewrites: Sequence[Rewritten]) -> Iterator[Block]:
    rows = tuple((*_place(each.finding), each.finding.message, sentences.local_proof(each.proof)) for each in rewrites)
    yield Table(("Rule", "Node", "Operator", "Finding", "Proof on its own"), rows)
    yield from _pictures([each.finding for each in rewrites])


def _refusals(refusals: Sequence[Refused]) -> Iterator[Block]:
    rows = tuple((*_place(each.finding), each.finding.message, each.reason) for each in refusals)
    yield Table(("Rule", "Node", "Operator", "Finding", "Reason"), rows)
    yield from _pictures([each.finding for each in refusals])


def _files(certificate: Certificate | None) -> Iterator[Facts]:
    """Yield both models by their digests, and what the report was made with."""
    if certificate is None:
        return
    pairs = [(f"{what} SHA-256", _digest(file)) for what, files in _named(certificate) for file in files]
    pairs.append(("Date", certificate.date))
    pairs.append(("Versions", ", ".join(f"{name} {version}" for name, version in certificate.versions.items())))
    pairs.append(("Seed", str(certificate.seed)))
    for name, value in (("rtol", certificate.rtol), ("atol", certificate.atol)):
        if value is not None:
            pairs.append((name, f"{value:g}"))
    yield Facts(tuple(pairs))


def _named(certificate: Certificate) -> tuple[tuple[str, tuple[FileDigest, ...]], ...]:
    return ("Source", certificate.source), ("Result", certificate.output), ("Probe", certificate.probes)


def _digest(file: FileDigest) -> str:
    return f"{file.sha256} ({file.name})"


def _headline(result: Verdict) -> Iterator[Words]:
    yield Words(sentences.verdict(result), _tone(result.equivalent), strong=True)
    if result.error is not None and result.error.hint:
        yield Words(f"Hint: {result.error.hint}")


def _verdict(result: Verdict, *, is_headline: bool = True) -> Iterator[Block]:
    if is_headline:
        yield from _headline(result)
    if result.outputs:
        head = ("Output", "Equal", "Closest to its limit", "Allowed there", "On", "Largest difference", "On", "Remark")
        yield Table(head, tuple(_output(output) for output in result.outputs))
    if result.first_difference is None:
        yield from _layers(result)
    if result.notes:
        yield Bullets(result.notes)
    if result.runs:
        yield Section(f"All {sentences.count(len(result.runs), 'run')}", (_runs(result),), folded=True)


def _output(output: OutputSummary) -> tuple[str, ...]:
    return (
        output.name,
        "yes" if output.equivalent else "NO",
        f"{output.closest.max_abs_diff:.3g}",
        f"{output.closest.tolerance:.3g}",
        _where(output.closest),
        f"{output.largest.max_abs_diff:.3g}",
        _where(output.largest),
        output.closest.detail,
    )


def _where(measured: Measured) -> str:
    return f"{measured.probe}, {measured.candidate}"


def _runs(result: Verdict) -> Table:
    rows = tuple(
        (
            run.probe,
            run.candidate,
            ", ".join(f"{name} {list(shape)}" for name, shape in run.shapes.items()),
            output.name,
            "yes" if output.equivalent else "NO",
            f"{output.max_abs_diff:.3g}",
            f"{output.tolerance:.3g}",
            output.detail,
        )
        for run in result.runs
        for output in run.outputs
    )
    head = ("Probe", "Run by", "Input shapes", "Output", "Equal", "Largest difference", "Allowed", "Remark")
    return Table(head, rows)
