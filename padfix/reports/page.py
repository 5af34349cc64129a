"""What the HTML and Markdown reports say of a result, block by block; text from a model is made safe when rendered."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from padfix.errors import PadfixError
from padfix.process.version import __version__
from padfix.reports import map_section, runtime_verdicts, sentences
from padfix.reports.items import Listing, Told
from padfix.reports.pictures import layers, operators
from padfix.reports.sections import Block, Bullets, Command, Counts, Facts, Page, Pictures, Section, Table, Tone, Words
from padfix.results import (
    Certificate,
    CheckReport,
    ConvertReport,
    FileDigest,
    Finding,
    FirstDifference,
    Measured,
    OutputSummary,
    RuntimesReport,
    Severity,
    Verdict,
)

FEW = 3
"""So many models are shown unfolded."""


def of_result(result: ConvertReport | Verdict | RuntimesReport) -> Page:
    """Return the page of what ``convert`` or ``verify`` found."""
    if isinstance(result, RuntimesReport):
        return runtime_verdicts.page(result)
    if isinstance(result, Verdict):
        (equality,) = _equality(result)
        title = Words(f"{equality[0][0].upper()}{equality[0][1:]}.", equality[1], strong=True)
        head: tuple[Block, ...] = (title, *_headline(result), *_facts((), result.certificate))
        maps = map_section.of_maps(result.maps, {}, result.first_difference)
        proof = tuple(_verdict(result, is_headline=False))
        proven = (Section("Proof", proof),) if proof else ()
        return Page("padfix verify", head, (*_first_difference(result), *maps, *proven))
    return Page("padfix convert", tuple(_outcome(result)), tuple(_conversion(result)))


def of_findings(reports: Sequence[CheckReport], failures: Sequence[tuple[str, PadfixError]]) -> Page:
    """Return the page of what ``check`` found: a section for each model with findings, and what could not be read."""
    told = sentences.headed(reports)
    found = [report for _, report in told if report.findings]
    titles = [title for title, report in told if report.findings]
    clean = tuple(title for title, report in told if not report.findings)
    anchors = [f"m{number}" for number in range(1, len(found) + 1)]
    blocks: list[Block] = []
    if sentences.is_about_targets(reports):
        head, rows = sentences.matrix(reports)
        blocks.append(Section("Targets", (Table(head, tuple(rows)),)))
    elif len(found) > 1:
        blocks.append(_overview(found, anchors))
    for title, report, anchor in zip(titles, found, anchors, strict=True):
        folded = len(found) > FEW
        blocks.append(Section(title, tuple(_findings(report, anchor)), folded=folded, anchor=anchor))
    if clean:
        blocks.append(Section("Without findings", (Bullets(clean),), folded=len(clean) > 10))
    if failures:
        broken = tuple(f"{name}: {error}" for name, error in failures)
        blocks.append(Section("Not read", (Bullets(broken, Tone.BAD),)))
    return Page("padfix check", tuple(_summary(reports, failures)), tuple(blocks))


def _summary(reports: Sequence[CheckReport], failures: Sequence[tuple[str, PadfixError]]) -> Iterator[Block]:
    worst = next((Tone(each.value) for each in Severity if _number(reports, each)), Tone.of(bool(reports)))
    yield Words(sentences.summary(reports), Tone.BAD if failures else worst, strong=True)
    counts = [
        (sentences.counted(severity, number), Tone(severity.value))
        for severity in Severity
        if (number := _number(reports, severity))
    ]
    if failures:
        counts.append((f"{len(failures)} not read", Tone.BAD))
    if counts:
        yield Counts(tuple(counts))
    facts = [("padfix", __version__)]
    targets = ", ".join(dict.fromkeys(report.target for report in reports))
    if targets:
        facts.append(("Target", targets))
    asked = list(dict.fromkeys(code for report in reports for code in report.rules))
    if asked:
        facts.append(("Rules asked", f"{len(asked)} ({', '.join(asked)})"))
    yield Facts(tuple(facts))
    proofs = [report.proof for report in reports if report.proof is not None]
    for proof in proofs:
        yield Words(sentences.required_proof(proof), Tone.of(proof.proven))


def _number(reports: Sequence[CheckReport], severity: Severity) -> int:
    return sum(finding.severity is severity for report in reports for finding in report.findings)


def _overview(reports: Sequence[CheckReport], anchors: Sequence[str]) -> Table:
    """Return a line for each model with findings; what is silently wrong only where a target is known to do so."""
    shown = {each: head for each, head in _HEADS.items() if each is not Severity.SILENT or _number(reports, each)}
    rows = tuple(
        (report.source, *(str(_number([report], severity)) for severity in shown), str(report.fixable))
        for report in reports
    )
    return Table(("Model", *shown.values(), "Rewritten by convert"), rows, tuple(anchors))


_HEADS = {
    Severity.SILENT: "Silently wrong",
    Severity.ERROR: "Errors",
    Severity.WARNING: "Warnings",
    Severity.INFO: "Info",
}


def _findings(report: CheckReport, prefix: str) -> Iterator[Block]:
    """Yield what was found in one model: the command, the map, and a section for each rule."""
    command = sentences.fix(report)
    if command:
        yield Command(f"To {sentences.fix_title(report)}", command)
    listing = Listing(prefix)
    sections = tuple(listing.by_rule([Told.of(finding) for finding in report.findings]))
    marked = map_section.marks([(each, each.severity.value) for each in report.findings], listing.anchors)
    yield from map_section.of_maps(report.maps, marked)
    yield from sections
    yield from _not_drawn(listing)


def _not_drawn(listing: Listing) -> Iterator[Words]:
    if listing.left_out:
        yield Words(f"{sentences.count(listing.left_out, 'more picture')} left out, for the length of the page.")


def _outcome(result: ConvertReport) -> Iterator[Block]:
    """Yield what is to be read first of a conversion."""
    is_all = result.verdict is not None and not any(each.blocks for each in result.refusals)
    tone = Tone.BAD if result.error else Tone.GOOD if is_all else Tone.WARNING
    yield Words(sentences.outcome(result), tone, strong=True)
    if result.error is not None:
        yield Words(result.error.message, Tone.BAD)
        hint = result.error.hint.removeprefix("Nothing was written.").strip()  # said above
        if hint:
            yield Words(f"Hint: {hint}")
    verb = "tried" if result.error else "rewritten"
    counts = [(f"{len(result.rewrites)} {verb}", Tone.PLAIN)]
    if result.refusals:
        counts.append((f"{len(result.refusals)} refused", Tone.WARNING))
    equality = _equality(result.verdict) if result.verdict is not None else (("no proof", Tone.WARNING),)
    yield Counts((*counts, *equality))
    kind = f" ({sentences.kind(result)})" if result.source_kind else ""
    opset = f" (opset {result.opset})" if result.opset is not None else ""
    models = (("Source", f"{result.source}{kind}"), ("Result", f"{result.output}{opset}"), ("Target", result.target))
    yield from _facts(models, result.certificate)


def _equality(verdict: Verdict) -> tuple[tuple[str, Tone], ...]:
    if verdict.error is not None:
        return (("could not be told", Tone.BAD),)
    runs = f" in {sentences.count(len(verdict.runs), 'run')}" if verdict.runs else ""
    return ((f"equal{runs}" if verdict.equivalent else "NOT equal", Tone.of(verdict.equivalent)),)


def _conversion(result: ConvertReport) -> Iterator[Block]:
    if sentences.windows(result):
        yield Words(f"{sentences.windows(result)}.")
    verdict = result.verdict
    if verdict is not None:
        yield from _first_difference(verdict, [each.finding for each in result.rewrites])
    listing = Listing()
    rewrites = tuple(listing.by_rule([Told.of(each) for each in result.rewrites]))
    refusals = tuple(listing.by_rule([Told.of(each) for each in result.refusals]))
    told = [(each.finding, "tried" if result.error else "rewritten") for each in result.rewrites]
    told += [(each.finding, "refused") for each in result.refusals]
    marked = map_section.marks(told, listing.anchors)
    yield from map_section.of_maps(result.maps, marked, verdict.first_difference if verdict is not None else None)
    if rewrites:
        yield Section(sentences.rewrites_title(result), rewrites)
    if refusals:
        yield Section("Refused", refusals)
    yield from _not_drawn(listing)
    if result.notes:
        yield Section("Notes", (Bullets(tuple(result.notes)),))
    if verdict is not None:
        yield Section("Proof", tuple(_verdict(verdict)))
    yield from map(runtime_verdicts.section, result.runtimes)


def _first_difference(verdict: Verdict, rewritten: Sequence[Finding] = ()) -> Iterator[Section]:
    """Yield what a reader of a failed proof wants first, with the pictures of the node and of the layers."""
    place = verdict.first_difference
    if place is not None:
        told = Bullets(tuple(sentences.first_difference(place)))
        yield Section("First difference", (told, *_node(place, rewritten), *_layers(verdict)), anchor="first")


def _node(place: FirstDifference, rewritten: Sequence[Finding]) -> Iterator[Pictures]:
    """Yield the picture of the node where two models part, where it is one that was rewritten."""
    for finding in rewritten:
        if (finding.graph, finding.node) == ("main", place.node) and finding.illustration is not None:
            yield Pictures(
                ((f"{sentences.place(finding)}, as {finding.rule} reads it", operators.picture(finding.illustration)),)
            )
            return


def _layers(verdict: Verdict) -> Iterator[Pictures]:
    if verdict.layers:
        caption = "Error by layer: of each, the difference closest to its limit"
        yield Pictures(((caption, layers.picture(verdict.layers)),))


def _facts(models: tuple[tuple[str, str], ...], certificate: Certificate | None) -> Iterator[Facts]:
    """Yield both models, by their digests as well, and what the report was made with."""
    pairs = list(models)
    if certificate is not None:
        pairs += [(f"{what} SHA-256", _digest(file)) for what, files in _named(certificate) for file in files]
        pairs.append(("Date", certificate.date))
        pairs.append(("Versions", ", ".join(f"{name} {version}" for name, version in certificate.versions.items())))
        pairs.append(("Seed", str(certificate.seed)))
        for name, value in (("rtol", certificate.rtol), ("atol", certificate.atol)):
            if value is not None:
                pairs.append((name, f"{value:g}"))
    if pairs:
        yield Facts(tuple(pairs))


def _named(certificate: Certificate) -> tuple[tuple[str, tuple[FileDigest, ...]], ...]:
    return ("Source", certificate.source), ("Result", certificate.output), ("Probe", certificate.probes)


def _digest(file: FileDigest) -> str:
    return f"{file.sha256} ({file.name})"


def _headline(result: Verdict) -> Iterator[Words]:
    yield Words(sentences.verdict(result), Tone.of(result.equivalent))
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
