"""What ``convert`` has to be told so that it rewrites what ``check`` found in a model."""

from __future__ import annotations

from collections.abc import Sequence

from padfix.errors import SourceError
from padfix.graph.scopes import Scope
from padfix.operators.validation import require_meaning
from padfix.results import Finding, Severity
from padfix.rules.base import Rule
from padfix.rules.registry import RULES
from padfix.targets import Target

_OPTION_OF_FIELD = {"pads": "--pads", "minimum_opset": "--opset"}


def options_of_convert(
    scopes: Sequence[Scope], found: Sequence[Finding], target: Target, asked: Sequence[Rule] = ()
) -> tuple[str, ...] | None:
    """Return the options with which ``convert`` says yes to a model; None where it can't have a meaning.

    Args:
        scopes: The model's scopes.
        found: All findings, also those that nobody wants to see.
        target: What the model has to suit.
        asked: Rules with findings that ``target`` itself has no objection to (:attr:`Rule.opt_in`).
    """
    if any(finding.severity is Severity.ERROR and not finding.fixable for finding in found):
        try:
            require_meaning(scopes)
        except SourceError:
            return None
    words = [] if target.name == "onnx" else ["--target", target.name]
    for rule in asked:
        for field, value in rule.opt_in.items():
            words += [_OPTION_OF_FIELD[field], str(value)]
    rules = {rule.code: rule for rule in RULES}
    if any(finding.needs_specification for finding in found):
        words += ["--reference", "spec"]
    if any(_stays(finding, rules[finding.rule]) for finding in found):
        words.append("--partial")
    return tuple(words)


def _stays(finding: Finding, rule: Rule) -> bool:
    return not (finding.fixable or finding.severity is Severity.INFO or rule.advisory)
