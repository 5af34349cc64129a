"""The sentences that the text, Markdown and HTML reports share; text from the model is made printable here."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from padfix.files.urls import HIDDEN, is_url
from padfix.reports.characters import printable
from padfix.results import Severity

if TYPE_CHECKING:
    from padfix.results import (
        CheckReport,
        ConvertReport,
        Fetched,
        Finding,
        FirstDifference,
        LocalProof,
        OutputDifference,
        OutputSummary,
        ProofCheck,
        ProofRun,
        Rewritten,
        StretchSummary,
        Verdict,
    )

KINDS = {
    "onnx": "ONNX",
    "saved_model": "SavedModel",
    "frozen_graph": "frozen TensorFlow graph",
    "keras": "Keras model",
    "keras_h5": "Keras model (HDF5)",
    "tflite": "TensorFlow Lite model",
}


def place(finding: Finding) -> str:
    """Return where a finding is: the path of scopes and the node, whose name may begin with a slash of its own."""
    return printable(f"{finding.graph}/{finding.node.removeprefix('/')}")


def subject(finding: Finding) -> str:
    """Return where a finding is, with the operator where there is one."""
    return f"{place(finding)} ({printable(finding.op_type)})" if finding.op_type else place(finding)


def fix(report: CheckReport) -> str:
    """Return the command that rewrites what can be rewritten in a model, ready to be pasted into a shell.

    Empty where there is nothing to rewrite.
    """
    if not report.fixable:
        return ""
    options = report.fix_options or ()
    if not is_url(report.source):
        return " ".join(["padfix convert --in-place", *options, _argument(report.source)])
    if HIDDEN in report.source:
        return ""  # what the store wants to see is not to be printed
    output = f"{Path(report.source.partition('::')[0]).stem}.fixed.onnx"
    return " ".join(["padfix convert", *options, _argument(report.source), "-o", _argument(output)])


def fix_title(report: CheckReport) -> str:
    """Return what the command does: fix the model, or a part of what was found in it."""
    return "fix in part" if "--partial" in (report.fix_options or ()) else "fix"


def _argument(words: str) -> str:
    return shlex.quote(printable(f"./{words}" if words.startswith("-") else words))


def kind(report: ConvertReport) -> str:
    """Return the kind of the source in words."""
    return KINDS.get(report.source_kind, printable(report.source_kind))


def count(number: int, noun: str) -> str:
    """Return ``"1 probe"`` or ``"2 probes"``."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}{'es' if noun.endswith('ch') else 's'}"


def by_rule(report: ConvertReport) -> dict[tuple[str, str], list[Rewritten]]:
    """Return the rewrites of each rule (code, name), in the order of the codes."""
    groups: dict[tuple[str, str], list[Rewritten]] = {}
    for each in sorted(report.rewrites, key=lambda each: each.finding.rule):
        groups.setdefault((each.finding.rule, each.finding.name), []).append(each)
    return groups


def operators(rewrites: Sequence[Rewritten]) -> str:
    """Return how many of each operator, ``"2 x Conv, 1 x MaxPool"``."""
    counted = Counter(printable(each.finding.op_type) for each in rewrites)
    return ", ".join(f"{number} x {op_type}" for op_type, number in sorted(counted.items()))


def windows(report: ConvertReport) -> str:
    """Return how many windows of the result are explicit; empty where nobody counted or there are none."""
    if report.windows is None or not report.windows.number:
        return ""
    return f"{count(report.windows.number, 'window')} explicit, {report.windows.asymmetric} of them asymmetric"


def summary(reports: Sequence[CheckReport]) -> str:
    """Return the count of findings in one line."""
    everything = [finding for each in reports for finding in each.findings]
    models = count(len({each.source for each in reports}), "model")
    if is_about_targets(reports):
        models += f" for {count(len({each.target for each in reports}), 'target')}"
    known = sum(each.baselined for each in reports)
    beside = f"; {known} more in the baseline" if known else ""
    beside += fetched([each for _, each in fetched_by(reports)])
    if not everything:
        return f"No {'new ' if known else ''}findings in {models}{beside}."
    parts = severities(everything)
    fixable = sum(each.fixable for each in reports)
    advice = f"; padfix convert rewrites {fixable}" if fixable else ""
    return f"{count(len(everything), 'finding')} ({parts}) in {models}{advice}{beside}."


def fetched_by(reports: Sequence[CheckReport]) -> list[tuple[str, Fetched]]:
    """Return what was fetched of each model; one that was checked for several targets was fetched once."""
    return [(each.source, each.fetched) for each in reports if each.fetched and each.target == reports[0].target]


def fetched(records: Sequence[Fetched]) -> str:
    """Return how much was fetched of files in stores, to be put behind a sentence; empty where none was."""
    if not records:
        return ""
    sizes = [each.size for each in records if each.size is not None]
    of = f" of {amount(sum(sizes))}" if len(sizes) == len(records) else ""
    requests = count(sum(each.requests for each in records), "request")
    whole = sum(each.whole for each in records)
    why = f" ({count(whole, 'file')} as a whole: the store sends no parts)" if whole else ""
    return f"; fetched {amount(sum(each.bytes for each in records))}{of} in {requests}{why}"


def amount(size: int) -> str:
    """Return a number of bytes in words, such as ``"1.5 GiB"``."""
    for power, unit in ((3, "GiB"), (2, "MiB"), (1, "KiB")):
        if size >= 1024**power:
            return f"{size / 1024**power:.1f} {unit}"
    return f"{size} bytes"


def is_about_targets(reports: Sequence[CheckReport]) -> bool:
    """Whether models were checked for several targets."""
    return len({each.target for each in reports}) > 1


def headed(reports: Sequence[CheckReport]) -> list[tuple[str, CheckReport]]:
    """Return each report with what it is headed: its model, with its target where there are several."""
    several = is_about_targets(reports)
    return [(f"{each.source} for {each.target}" if several else each.source, each) for each in reports]


def matrix(reports: Sequence[CheckReport]) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """Return a head and a row for each model: what each target has against it."""
    targets = tuple(dict.fromkeys(each.target for each in reports))
    found = {(each.source, each.target): severities(each.findings) or "nothing" for each in reports}
    sources = dict.fromkeys(each.source for each in reports)
    return ("Model", *targets), [(source, *(found[source, each] for each in targets)) for source in sources]


def severities(found: Sequence[Finding]) -> str:
    """Return how many findings of each severity, ``"1 error, 2 warnings"``."""
    numbers = Counter(finding.severity for finding in found)
    return ", ".join(counted(severity, numbers[severity]) for severity in Severity if numbers[severity])


def counted(severity: Severity, number: int) -> str:
    """Return how many findings of one severity there are."""
    plain = severity in (Severity.INFO, Severity.SILENT)
    return f"{number} {severity.value}" if plain else count(number, severity.value)


def outcome(report: ConvertReport) -> str:
    """Return the last word: what was written, or that nothing was."""
    if report.unchanged:
        return f"{printable(report.output)} is what it should be; it was not touched."
    if not report.written:
        return f"Nothing was written to {printable(report.output)}."
    proven = "" if report.verdict else ", WITHOUT PROOF (--no-verify)"
    return f"Wrote {printable(report.output)} (opset {report.opset}){proven}."


def rewrites_title(report: ConvertReport) -> str:
    """Return what the list of rewrites is one of: of a conversion that failed none of them is in a file."""
    return "Tried, and not written" if report.error else "Rewritten"


def local_proof(*proofs: LocalProof | None) -> str:
    """Return the proof of a rewrite in words; of several rewrites, that of each on its own and the worst of them."""
    proven = [proof for proof in proofs if proof is not None]
    if not proven:
        return "not proven on its own"
    first, several = proven[0], len(proven) > 1
    if not first.cases:
        return "changes no computation"
    agrees = f"{'each ' if several else ''}agrees on {count(first.cases, 'case')} ({', '.join(first.witnesses)})"
    worst = max(proof.max_abs_diff for proof in proven)
    return f"{agrees}, largest difference {'of all ' if several else ''}{worst:.3g}"


def difference(output: OutputDifference) -> str:
    """Return how far one output is, and how far it may be."""
    words = f"{printable(output.name)!r} differs by {output.max_abs_diff:.3g} ({output.tolerance:.3g} allowed)"
    return f"{words}: {printable(output.detail)}" if output.detail else words


def verdict(result: Verdict) -> str:
    """Return the verdict in one paragraph: reference, probes, and the worst output against its tolerance."""
    said, *facts = verdict_parts(result)
    inside = f" {stretches(result.stretches)}" if facts and result.stretches is not None else ""
    return f"{'; '.join([said, *facts])}.{inside}".rstrip() if facts else said


def verdict_parts(result: Verdict) -> list[str]:
    """Return what is said of the whole models: the verdict, and each fact that belongs to one that says equal."""
    from padfix.results import WITNESSES

    reference = WITNESSES.get(result.reference, printable(result.reference))
    if result.error is not None:
        return [f"Could not be told: {printable(result.error.message)}"]
    if not result.runs:
        return [f"{'Equal' if result.equivalent else 'Not shown to be equal'}; nothing had to be run."]
    if not result.equivalent:
        failed = sum(not run.equivalent for run in result.runs)
        beyond = max(result.outputs, key=_nearness, default=None)
        words = f" Furthest beyond its limit: {_closest(beyond)}." if beyond else ""
        runs = count(len(result.runs), "run")
        return [f"NOT equal to the original as run by {reference}: {failed} of {runs} differ.{words}"]
    probes = count(len({run.probe for run in result.runs}), "probe")
    candidates = ", ".join(dict.fromkeys(printable(run.candidate) for run in result.runs))
    equal = f"Equal to the original as run by {reference}: {probes}"
    return [equal, *_distances(result), f"result run by {candidates}"]


def _distances(result: Verdict) -> list[str]:
    """Return which output comes closest to its limit, and how far apart the numbers are at most."""
    if not result.outputs:
        return ["no outputs"]
    largest = max((output.largest for output in result.outputs), key=lambda each: each.max_abs_diff)
    at_most = f"largest difference: {largest.max_abs_diff:.3g}"
    if not largest.max_abs_diff > 0:
        return [at_most]
    return [f"closest to its limit: {_closest(max(result.outputs, key=_nearness))}", at_most]


def _closest(output: OutputSummary) -> str:
    """Return the difference of an output that uses most of what is allowed, and where that was."""
    closest = output.closest
    words = f"{closest.max_abs_diff:.3g} of {closest.tolerance:.3g} allowed"
    where = f"(output {printable(output.name)!r}, probe {printable(closest.probe)!r})"
    return f"{words} {where}" + (f", {printable(closest.detail)}" if closest.detail else "")


def stretches(summary: StretchSummary) -> str:
    """Return what lies between the tensors that both models have, in one sentence."""
    parts = []
    if summary.same:
        parts.append(f"{count(summary.same, 'stretch')} with the same nodes and weights")
    if summary.judged and summary.worst is not None:
        worst = summary.worst.difference
        how = "equal to the bit"
        if summary.largest > 0:
            exact = "" if summary.unoptimised else "equal to the bit without optimisations; with all, "
            limit = f"{worst.max_abs_diff:.3g} of {worst.tolerance:.3g} allowed ({printable(summary.worst.node)!r})"
            how = f"{exact}closest to its limit: {limit}, largest difference: {summary.largest:.3g}"
        number = count(summary.judged, "other" if summary.same else "stretch")
        parts.append(f"{number} judged on the original's own values: {how}")
    return f"Inside: {', '.join(parts)}." if parts else ""


def required_proof(proof: ProofCheck) -> str:
    """Return what a required proof says of a model, in one sentence."""
    report = printable(proof.report)
    if not proof.proven:
        return f"Not proven by {report}: {printable(proof.reason)}."
    source = f", equal to {printable(proof.source[0].name)} (SHA-256 {proof.source[0].sha256})" if proof.source else ""
    told = ", ".join(f"{printable(name)!r} within {low:g}..{high:g}" for name, (low, high) in proof.ranges.items())
    ranges = f"; on data for {told}" if told else ""
    signed = f"; signed by the key {proof.signer}" if proof.signer else ""
    return f"Proven by {report} of {printable(proof.date)}{source}{ranges}{signed}."


def failures(result: Verdict) -> list[tuple[ProofRun, OutputDifference]]:
    """Return every run and output that is outside its tolerance."""
    return [(run, output) for run in result.runs for output in run.outputs if not output.equivalent]


def first_difference(place: FirstDifference) -> list[str]:
    """Return where two models part, a sentence or two each: the node, the numbers, the likely cause."""
    first = f"{place.op_type} {place.node!r}"
    second = f"{place.candidate_op_type} {place.candidate_node!r}"
    nodes = first if first == second else f"{first}, in the result {second}"
    lines = [f"First difference: {place.tensor!r}, computed by {nodes}: {_how_far(place.difference)}."]
    for own, other in ((place.nodes, "original"), (place.candidate_nodes, "result")):
        if len(own) > 1:
            shown = ", ".join(repr(each) for each in own[:8]) + (", ..." if len(own) > 8 else "")
            lines.append(f"Nodes of the {other} since the last tensors that agree: {shown}.")
    if place.border is not None and place.interior is not None:
        lines.append(
            f"Border: {place.border[0]} of {place.border[1]} values differ; "
            f"interior: {place.interior[0]} of {place.interior[1]}."
        )
    lines.extend(
        f"At {list(each.position)}: {each.found:.6g} instead of {each.expected:.6g}." for each in place.positions
    )
    if place.cause:
        lines.append(f"It looks like this: {place.cause}.")
    lines.extend(place.graph_differences)
    if not place.complete:
        lines.append("The search was cut short; an earlier tensor may differ as well.")
    return [printable(line) for line in lines]


def _how_far(output: OutputDifference) -> str:
    if output.max_abs_diff == float("inf"):
        return output.detail
    return f"differs by {output.max_abs_diff:.3g} ({output.tolerance:.3g} allowed), {output.detail}"


def _nearness(output: OutputSummary) -> tuple[bool, float]:
    """Order outputs by how much of the allowed difference they use; those outside come last."""
    return (not output.equivalent, output.closest.share)
