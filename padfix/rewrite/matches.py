"""Which rules have something to say of which nodes: asked once for each state of the model, and kept for it."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

from padfix.graph.scopes import Scope, call_key, function_key, normal_domain
from padfix.operators.inference import is_against_definition
from padfix.operators.refusal import Refusal
from padfix.results import Finding
from padfix.rewrite.specialise import function_of
from padfix.rules.base import Correction, Rewrite, Rule, ScopeRule, Site
from padfix.rules.build.target_rule import TargetRule
from padfix.rules.decided_body import kept
from padfix.rules.registry import RULES
from padfix.targets import FUNCTION, Target, named

TOLD_EVERY = 10_000
"""Nodes between two words of progress."""


@dataclass
class Match:
    """A rule, a node that it has a finding about, and what it would do about it, worked out at most once.

    Valid until the model is edited anywhere else than at the node itself and the nodes after it in its scope.
    """

    rule: Rule
    site: Site
    finding: Finding

    @cached_property
    def minimum_opset(self) -> int:
        """The lowest version of the default domain that the rewrite can be written in."""
        return self.rule.minimum_opset(self.site)

    @cached_property
    def attempt(self) -> Rewrite | Refusal:
        """The rewrite, not yet proven, or the reason why there is none."""
        referenced = [attribute.name for attribute in self.site.node.attribute if attribute.ref_attr_name]
        if referenced:
            names = ", ".join(referenced)
            return Refusal(
                f"The function's caller decides the attribute {names} of this node, and it is not known what every "
                "call gives; delete the function if nothing calls it, or give the attribute a value in the body."
            )
        return self.rule.rewrite(self.site)


class Matches:
    """All that the rules have to say of the nodes of a model as it stands.

    Attributes:
        scopes: The model's scopes, with types.
        found: The matches, scope by scope in order of the nodes, and rule by rule in the order of the rules.
    """

    def __init__(
        self,
        scopes: Sequence[Scope],
        rules: Sequence[Rule] = RULES,
        target: Target | None = None,
        progress: Callable[[str], object] = lambda stage: None,
    ) -> None:
        wanted = target or named("onnx")
        total = sum(len(scope.nodes) for scope in scopes)
        number = 0
        asked = rules_by_operator(rules)
        self.scopes = scopes
        self._called = {call_key(node) for scope in scopes for node in scope.nodes}
        self.found: list[Match] = []
        for scope in kept(scopes, wanted):
            for index, node in enumerate(scope.nodes):
                number += 1
                if number % TOLD_EVERY == 0:
                    progress(f"{number:,} of {total:,} nodes matched")
                concerned = asked.get((normal_domain(node.domain), node.op_type))
                if concerned:
                    self.found.extend(self._sound_matches_at(Site(scope, index, node, wanted), concerned))

    def by_node(self, scope: Scope) -> dict[int, list[Match]]:
        """Return the matches of one scope by the index of their node."""
        return self._by_node.get(id(scope), {})

    def _sound_matches_at(self, site: Site, rules: Sequence[Rule]) -> list[Match]:
        """Return the matches at a node; none where a rule is at a loss in a model that no runtime loads.

        Asked only then: most models break no definition, and to make sure of it costs as much as all the rules do.
        """
        try:
            return self._matches_at(site, rules)
        except Exception:
            if self._is_against_definitions:
                return []
            raise

    @cached_property
    def _is_against_definitions(self) -> bool:
        """Whether an operator's definition rules out a node, which leaves the types of those behind it unknown too."""
        return any(is_against_definition(scope, node) for scope in self.scopes for node in scope.nodes)

    def _matches_at(self, site: Site, rules: Sequence[Rule]) -> list[Match]:
        found = [(rule, rule.match(site)) for rule in rules]
        matches = [Match(rule, site, self._promised(rule, site, each)) for rule, each in found if each is not None]
        fixing = next((each for each in matches if each.finding.fixable and isinstance(each.rule, TargetRule)), None)
        if fixing is None or function_of(site.scope) is not None:
            return matches
        return [match if match.finding.fixable else _made_up_for(match, fixing) for match in matches]

    def _promised(self, rule: Rule, site: Site, finding: Finding) -> Finding:
        """Return the finding, fixable only where convert has a rewrite for it, with the reason where it has none.

        In a function this is not decided here: convert gives it a body for each kind of call.
        """
        function = function_of(site.scope)
        if function is not None:
            by_caller = rule.fixable and any(each.ref_attr_name for each in site.node.attribute)
            if not by_caller:
                return finding
            if function_key(function) in self._called:
                hint = "padfix convert gives the function a body for each set of values that its calls give."
                return dataclasses.replace(finding, fixable=True, hint=hint)
            if site.target.knows_of(FUNCTION):
                hint = "Nothing calls the function, and padfix convert takes functions out for the target."
                return dataclasses.replace(finding, fixable=True, hint=hint)
            attempt = Match(rule, site, finding).attempt
            return dataclasses.replace(finding, hint=attempt.reason) if isinstance(attempt, Refusal) else finding
        refusal = rule.refusal(site) if finding.fixable else None
        return finding if refusal is None else dataclasses.replace(finding, fixable=False, hint=refusal.reason)

    @cached_property
    def _by_node(self) -> dict[int, dict[int, list[Match]]]:
        found: dict[int, dict[int, list[Match]]] = {}
        for match in self.found:
            found.setdefault(id(match.site.scope), {}).setdefault(match.site.index, []).append(match)
        return found


def _made_up_for(match: Match, fixing: Match) -> Match:
    """Return what is to be said of a node that a rule can't rewrite, where another rule rewrites it for the target.

    Fixable, too, where the nodes that take its place give the first rule nothing to find.
    """
    rewrite = fixing.attempt if match.rule.fixable else None
    if not isinstance(rewrite, Rewrite):
        return match
    written = (
        node for node in rewrite.after.nodes if (normal_domain(node.domain), node.op_type) in match.rule.operators
    )
    if any(match.rule.match(dataclasses.replace(match.site, node=node)) is not None for node in written):
        return match
    return dataclasses.replace(
        match, finding=dataclasses.replace(match.finding, fixable=True, hint=fixing.finding.hint)
    )


def rules_by_operator(rules: Sequence[Rule]) -> dict[tuple[str, str], list[Rule]]:
    """Return the rules that are to be asked about each (domain, operator), in their order."""
    return _by_operator(tuple(rules))


@lru_cache(maxsize=64)
def _by_operator(rules: tuple[Rule, ...]) -> dict[tuple[str, str], list[Rule]]:
    found: dict[tuple[str, str], list[Rule]] = {}
    for rule in rules:
        for key in rule.operators:
            found.setdefault(key, []).append(rule)
    return found


def corrections(
    scopes: Sequence[Scope], rules: Sequence[Rule] = RULES, target: Target | None = None
) -> Iterator[tuple[Rule, Correction]]:
    """Yield what the scopes declare wrongly, scope by scope, each with the rule that says so."""
    wanted = target or named("onnx")
    for scope in scopes:
        for rule in rules:
            if isinstance(rule, ScopeRule):
                for correction in rule.examine(scope, wanted):
                    yield rule, correction


def findings(
    scopes: Sequence[Scope],
    rules: Sequence[Rule] = RULES,
    target: Target | None = None,
    progress: Callable[[str], object] = lambda stage: None,
) -> Iterator[Finding]:
    """Yield every finding: those of nodes, then those of what scopes declare; tell how many nodes were matched."""
    yield from (match.finding for match in Matches(scopes, rules, target, progress).found)
    yield from (correction.finding for _, correction in corrections(scopes, rules, target))
