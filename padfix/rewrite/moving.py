"""The plan of a move to another opset: what the rules must rewrite first, then what every other operator needs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from padfix.files.model import Model
from padfix.graph.scopes import DEFAULT_DOMAIN, Scope, normal_domain
from padfix.operators.refusal import Refusal
from padfix.results import Finding
from padfix.rewrite.matches import Match, rules_by_operator
from padfix.rules.base import Rewrite, Rule, Site
from padfix.rules.legacy_opset import LegacyOpset
from padfix.rules.opset_too_new import OpsetTooNew
from padfix.targets import Target


@dataclass(frozen=True)
class Edit:
    """One node that a move edits, why, and how; ``edits`` and ``must_run`` are those of an ``UpgradeStep``."""

    site: Site
    finding: Finding
    rewrite: Rewrite
    edits: bool = True
    must_run: bool = True


def plan_move(
    model: Model, scopes: Sequence[Scope], opset: int, rules: Sequence[Rule], target: Target
) -> list[Edit] | Refusal:
    """Plan the move of every scope to ``opset``, all of it or nothing; nothing is edited.

    Returns:
        The edits, each node's at most once; or why the model can't be moved, naming the node.
    """
    from padfix.rewrite.upgrade import upgrade

    first = _rewritten_first(scopes, opset, rules, target)
    if isinstance(first, Refusal):
        return first
    handled = frozenset((id(edit.site.scope), edit.site.index) for edit in first)
    steps = upgrade(model, scopes, opset, handled)
    if isinstance(steps, Refusal):
        return steps
    raised, lowered = LegacyOpset(), OpsetTooNew()
    moves = [
        Edit(
            step.site,
            (raised if step.site.opset < opset else lowered).step(step.site, opset),
            step.rewrite,
            step.edits,
            step.must_run,
        )
        for step in steps
    ]
    return [*first, *moves]


def set_opset(model: Model, opset: int) -> None:
    """Let the model and its functions import ``opset`` of the default domain, those that imported none of it, too."""
    for container in (model.proto, *model.proto.functions):
        entries = [entry for entry in container.opset_import if normal_domain(entry.domain) == DEFAULT_DOMAIN]
        for entry in entries or [container.opset_import.add(domain=DEFAULT_DOMAIN)]:
            entry.version = opset


def _rewritten_first(
    scopes: Sequence[Scope], opset: int, rules: Sequence[Rule], target: Target
) -> list[Edit] | Refusal:
    """Return the edits of nodes that lose their meaning on the way to ``opset``; or why one can't be rewritten."""
    asked = rules_by_operator([rule for rule in rules if type(rule).before_upgrade is not Rule.before_upgrade])
    edits: list[Edit] = []
    for scope in scopes:
        for index, node in enumerate(scope.nodes):
            concerned = asked.get((normal_domain(node.domain), node.op_type), ())
            if not concerned or scope.opset >= opset:
                continue
            edit = _edit_first(Site(scope, index, node, target), opset, concerned)
            if isinstance(edit, Refusal):
                return Refusal(f"{node.op_type} {edit.reason}")
            if edit is not None:
                edits.append(edit)
    return edits


def _edit_first(site: Site, opset: int, rules: Sequence[Rule]) -> Edit | Refusal | None:
    for rule in rules:
        finding = rule.before_upgrade(site, opset)
        if finding is None:
            continue
        match = Match(rule, site, finding)
        attempt = match.attempt
        if isinstance(attempt, Rewrite) and match.minimum_opset <= opset:
            return Edit(site, finding, attempt)
        reason = attempt.reason if isinstance(attempt, Refusal) else f"it needs opset {match.minimum_opset}."
        return Refusal(f"{site.label!r}: {reason}")
    return None
