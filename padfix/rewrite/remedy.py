"""What ``convert`` has to be told so that it rewrites what ``check`` found in a model, and what it says no to."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence

from padfix.errors import NotEquivalent, ProofUnavailableError, RefusedError
from padfix.results import ConvertReport, Disagreement, Finding, Severity, Verdict
from padfix.rules.base import Rule
from padfix.targets import Target

_OPTION_OF_FIELD = {"pads": "--pads", "minimum_opset": "--opset"}


def options_of_convert(found: Sequence[Finding], target: Target, asked: Sequence[Rule] = ()) -> tuple[str, ...] | None:
    """Return the options with which ``convert`` says yes to a model; None where an error keeps it from that.

    ``found`` are all findings, also those that nobody wants to see, and ``asked`` the rules that are asked though
    ``target`` itself has no objection (:attr:`Rule.opt_in`).
    """
    left = [finding.severity for finding in found if not finding.fixable]
    if Severity.ERROR in left or Severity.SILENT in left:
        return None
    words = [] if target.name == "onnx" else ["--target", target.name]
    for rule in asked:
        for field, value in rule.opt_in.items():
            # What convert writes out for other rules comes in the form that is asked for; an opset is there already.
            if field == "pads" or any(finding.rule == rule.code for finding in found):
                words += [_OPTION_OF_FIELD[field], str(value)]
    if any(finding.needs_specification for finding in found):
        words += ["--reference", "spec"]
    if Severity.WARNING in left:
        words.append("--partial")
    return tuple(words)


def require_all_rewritten(report: ConvertReport) -> None:
    """Raise :class:`RefusedError` where ``check`` would still have something to say of the result."""
    left = [refused for refused in report.refusals if refused.blocks]
    if not left:
        return
    finding = left[0].finding
    others = f", and {len(left) - 1} more" if len(left) > 1 else ""
    is_open = any("--shape" in refused.reason for refused in left)
    fixed = " Lengths that --shape NAME=LENGTHS fixes may give it a form;" if is_open else ""
    raise RefusedError(
        f"{finding.op_type} {finding.node!r} in {finding.graph} can't be rewritten ({finding.rule}){others}. "
        f"{left[0].reason}",
        f"Nothing was written.{fixed} --partial writes what could be rewritten.",
    )


def no_judge(contradictions: Sequence[Disagreement]) -> ProofUnavailableError:
    """Return the error for a model that ONNX Runtime can't judge."""
    listed = " ".join(each.sentence for each in contradictions)
    return ProofUnavailableError(
        f"ONNX Runtime can't be the judge of this model. {listed}",
        "Use --reference spec to hold the result against the ONNX specification instead. Nothing was written.",
    )


def by_the_specification(prove: Callable[[], Verdict], contradictions: Sequence[Disagreement], chosen: str) -> Verdict:
    """Return what the specification says of a model of which ONNX Runtime gave no number for some of the data.

    Raises:
        ProofUnavailableError: It can't tell, or finds the result unequal too, or the caller has ``chosen`` the judge.
    """
    if chosen != "auto":
        raise no_judge(contradictions)
    try:
        verdict = prove()
    except ProofUnavailableError as error:
        raise no_judge(contradictions) from error
    if not verdict.equivalent:
        raise no_judge(contradictions)
    note = "ONNX Runtime gives no number for some of the data: the whole was held against the specification."
    return dataclasses.replace(verdict, notes=(note, *verdict.notes))


def not_equivalent(verdict: Verdict, witness: str, faults: Sequence[str]) -> NotEquivalent:
    """Return the error for a failed proof; ``faults`` are those of the reference, which contradicts itself."""
    if faults:
        return NotEquivalent(
            f"{' '.join(faults)} {verdict.why_not}",
            "Nothing was written. The result follows the documentation: --reference spec proves it against that.",
        )
    from padfix.diagnose.place import origin
    from padfix.proof.empty_batch import hint_of

    where = origin(verdict) if witness == "tensorflow" else ""
    return NotEquivalent(f"{verdict.why_not} {where}".rstrip(), f"Nothing was written.{hint_of(verdict)}")
