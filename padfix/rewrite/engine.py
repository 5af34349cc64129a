"""The rewriting pipeline: match, rewrite, prove each rewrite on its own, splice, until nothing is left to do."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from onnx import NodeProto

from padfix.errors import UsageError
from padfix.files.model import Model
from padfix.graph.scopes import DEFAULT_DOMAIN, Scope, normal_domain
from padfix.graph.shapes import fix_input_shapes, infer
from padfix.graph.splice import apply_splices, drop_unread, plan_splice
from padfix.operators.illustrate import redrawn
from padfix.results import Disagreement, Finding, LocalProof, Refused, Rewritten, Severity
from padfix.rewrite.specialise import function_of, specialise
from padfix.rules.base import Correction, Refusal, Rewrite, RewriteOptions, Rule, ScopeRule, Site
from padfix.rules.registry import RULES

if TYPE_CHECKING:
    from padfix.proof.disagreement import RuntimeSlip

MAXIMUM_PASSES = 8
"""A rewrite may uncover another (a Pad behind a pool, say); more rounds than this mean that two rules disagree."""

Progress = Callable[[str], None]
_DEFAULT_OPTIONS = RewriteOptions()


@dataclass
class Rewriting:
    """What the pipeline did to a model.

    Attributes:
        rewrites: Applied rewrites, in the order of application.
        refusals: Sites that still match and why they could not be rewritten.
        notes: One sentence for each function that was copied for its calls.
        contradictions: The rewritten nodes that ONNX Runtime was found not to run, or to run against the specification.
        untouched_contradictions: The same for nodes that are only reported: the result holds them as they were.
    """

    rewrites: list[Rewritten] = field(default_factory=list)
    refusals: list[Refused] = field(default_factory=list)
    contradictions: list[Disagreement] = field(default_factory=list)
    untouched_contradictions: list[Disagreement] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def changed(self) -> bool:
        """Whether the model was edited."""
        return bool(self.rewrites or self.notes)


def match_sites(
    scopes: Sequence[Scope], rules: Sequence[Rule] = RULES, options: RewriteOptions = _DEFAULT_OPTIONS
) -> Iterator[tuple[Rule, Site, Finding]]:
    """Yield every finding with its rule and site, scope by scope in order of the nodes."""
    for scope in scopes:
        for index, node in enumerate(scope.nodes):
            key = (normal_domain(node.domain), node.op_type)
            for rule in rules:
                if key in rule.operators:
                    site = Site(scope, index, node, options)
                    finding = rule.match(site)
                    if finding is not None:
                        yield rule, site, _of_caller(rule, site, finding)


def _of_caller(rule: Rule, site: Site, finding: Finding) -> Finding:
    """Return the finding; where it depends on what the calls of a function give, as one that convert deals with."""
    if finding.fixable or not rule.fixable or not any(each.ref_attr_name for each in site.node.attribute):
        return finding
    hint = "padfix convert gives the function a body for each set of values that its calls give."
    return dataclasses.replace(finding, fixable=True, hint=hint)


def corrections(scopes: Sequence[Scope], rules: Sequence[Rule] = RULES) -> Iterator[Correction]:
    """Yield what the scopes declare wrongly, scope by scope."""
    for scope in scopes:
        for rule in rules:
            if isinstance(rule, ScopeRule):
                yield from rule.examine(scope)


def findings(
    scopes: Sequence[Scope], rules: Sequence[Rule] = RULES, options: RewriteOptions = _DEFAULT_OPTIONS
) -> Iterator[Finding]:
    """Yield every finding: those of nodes, then those of what scopes declare."""
    yield from (finding for _, _, finding in match_sites(scopes, rules, options))
    yield from (correction.finding for correction in corrections(scopes, rules))


def rewrite_model(
    model: Model,
    *,
    opset: int | None = None,
    shapes: Mapping[str, Sequence[int]] | None = None,
    prove: bool = True,
    rules: Sequence[Rule] = RULES,
    options: RewriteOptions = _DEFAULT_OPTIONS,
    progress: Progress | None = None,
) -> Rewriting:
    """Rewrite ``model`` in place and return what was done.

    Args:
        model: The model; its skeleton is edited.
        opset: Lowest default-domain opset that the result must have; None keeps the model's own unless a rewrite
            needs a newer one.
        shapes: Input shapes to fix before anything else.
        prove: Whether each rewrite is proven on its own pair of tiny models before it is applied.
        rules: The rules to apply.
        options: What the result is to look like.
        progress: Called with a short sentence at each stage.

    Raises:
        UsageError: ``opset`` is below the model's, or ``shapes`` names an input that does not exist.
    """
    if shapes:
        fix_input_shapes(model.proto, shapes)
    pipeline = _Pipeline(model, prove, rules, options, progress or (lambda stage: None))
    pipeline.run(opset)
    return pipeline.result


class _Pipeline:
    def __init__(
        self, model: Model, prove: bool, rules: Sequence[Rule], options: RewriteOptions, progress: Progress
    ) -> None:
        self.model = model
        self.prove = prove
        self.rules = rules
        self.options = options
        self.progress = progress
        self.result = Rewriting()
        self._upgrade_refusal: Refusal | None = None
        self._passed_by: set[str] = set()

    def run(self, opset: int | None) -> None:
        scopes = infer(self.model)
        current = scopes[0].opset
        if opset is not None and opset < current:
            raise UsageError(
                f"The model is written for opset {current}, which is newer than the requested {opset}.",
                f"Ask for --opset {current} or higher; padfix never lowers an opset.",
            )
        self._correct(scopes)
        if self.model.proto.functions:
            scopes, notes = specialise(self.model, scopes, self._refused)
            self.result.notes.extend(notes)
        self._move_where_needed(scopes)
        if opset is not None and opset > current and self._upgrade_refusal is None:
            scopes = infer(self.model)
            if any(scope.opset < opset for scope in scopes):
                self._move_to(opset, scopes)
            if self._upgrade_refusal is not None:
                raise UsageError(
                    f"The model can't be moved to opset {opset}: {self._upgrade_refusal.reason}",
                    "Leave out --opset, or ask for a lower one.",
                )
        self._apply_rules()

    def _move_where_needed(self, scopes: Sequence[Scope]) -> bool:
        """Upgrade to what the possible rewrites need; return whether the model was touched."""
        needed = max(self._needed_opset(scopes), self._opset_for_functions(scopes))
        if self._upgrade_refusal is not None or needed <= min(scope.opset for scope in scopes):
            return False
        # Functions may import another opset than the main graph; none of them is ever lowered.
        self._move_to(max(needed, *(scope.opset for scope in scopes)), scopes)
        return self._upgrade_refusal is None

    def _correct(self, scopes: Sequence[Scope]) -> None:
        """Correct what the model declares wrongly; nothing is computed otherwise, so there is nothing to prove."""
        for correction in corrections(scopes, self.rules):
            correction.apply()
            self.result.rewrites.append(Rewritten(correction.finding, LocalProof(0, 0.0, ()) if self.prove else None))

    def _needed_opset(self, scopes: Sequence[Scope]) -> int:
        """Return the highest opset that a possible rewrite needs."""
        needed = 1
        for rule, site, finding in match_sites(scopes, self.rules, self.options):
            lowest = rule.minimum_opset(site)
            if (
                finding.fixable
                and lowest > max(needed, site.scope.opset)
                and isinstance(self._attempt(rule, site), Rewrite)
            ):
                needed = lowest
        return needed

    def _opset_for_functions(self, scopes: Sequence[Scope]) -> int:
        """Return the main graph's opset where a function has to move up to it, else 1.

        That is where a rewrite brings operators which the function's older opset and the model's define differently:
        runtimes read them by the model's, and checkers don't allow them.
        """
        current = scopes[0].opset
        for rule, site, finding in match_sites(scopes, self.rules, self.options):
            if site.scope.opset >= current or not finding.fixable or rule.minimum_opset(site) > site.scope.opset:
                continue
            rewrite = self._attempt(rule, site)
            if isinstance(rewrite, Rewrite) and any(
                node.op_type != site.node.op_type and _is_other(node, site.scope.opset, current)
                for node in rewrite.after.nodes
            ):
                return current
        return 1

    def _refused(self, scopes: Sequence[Scope]) -> Iterator[tuple[Scope, NodeProto]]:
        """Yield the nodes of functions that match a rule and can't be rewritten as they stand."""
        for rule, site, finding in match_sites(scopes, self.rules, self.options):
            inside = function_of(site.scope) is not None
            if inside and finding.fixable and isinstance(self._attempt(rule, site), Refusal):
                yield site.scope, site.node

    def _attempt(self, rule: Rule, site: Site) -> Rewrite | Refusal:
        referenced = [attribute.name for attribute in site.node.attribute if attribute.ref_attr_name]
        if referenced:
            names = ", ".join(referenced)
            return Refusal(
                f"The function's caller decides the attribute {names} of this node, and it is not known what every "
                "call gives; delete the function if nothing calls it, or give the attribute a value in the body."
            )
        return rule.rewrite(site)

    def _move_to(self, target: int, scopes: Sequence[Scope]) -> None:
        """Upgrade every scope to ``target``, legacy resampling operators by their own rules; all of it or nothing."""
        from padfix.rewrite.upgrade import upgrade

        self.progress(f"Upgrading to opset {target}")
        edits: dict[int, list[tuple[Site, Finding, Rewrite]]] = {}
        legacy = [
            (rule, site, finding)
            for rule, site, finding in match_sites(scopes, self.rules, self.options)
            if rule.code in {"PF201", "PF202"}
        ]
        for rule, site, finding in legacy:
            rewrite = self._attempt(rule, site)
            if isinstance(rewrite, Refusal):
                self._upgrade_refusal = Refusal(f"{site.node.op_type} {site.label!r}: {rewrite.reason}")
                return
            edits.setdefault(id(site.scope), []).append((site, finding, rewrite))
        steps = upgrade(
            self.model, list(scopes), target, frozenset((DEFAULT_DOMAIN, op) for op in ("Upsample", "Resize"))
        )
        if isinstance(steps, Refusal):
            self._upgrade_refusal = steps
            return
        for step in steps:
            edits.setdefault(id(step.site.scope), []).append(
                (step.site, _upgrade_finding(step.site, target), step.rewrite)
            )
        proofs = []
        for planned in edits.values():
            for site, _, rewrite in planned:
                proof = self._prove(site, rewrite)
                if isinstance(proof, Refusal):
                    self._upgrade_refusal = Refusal(f"{site.node.op_type} {site.label!r}: {proof.reason}")
                    return
                proofs.append(proof)
        # Bodies lie inside nodes of the scopes around them, so the innermost scopes are edited first.
        proven = iter(proofs)
        records = {
            id(rewrite): _rewritten(finding, rewrite, next(proven))
            for planned in edits.values()
            for _, finding, rewrite in planned
        }
        for scope in reversed(scopes):
            for site, _, rewrite in sorted(edits.get(id(scope), []), key=lambda edit: -edit[0].index):
                plan_splice(scope, site.index, rewrite.after)
                self.result.rewrites.append(records[id(rewrite)])
            apply_splices(scope)
        _set_opset(self.model, target)

    def _apply_rules(self) -> None:
        for number in range(MAXIMUM_PASSES):
            self.progress("Looking for implicit pads and legacy resizes")
            self.result.refusals.clear()
            scopes = infer(self.model)
            if number and self._move_where_needed(scopes):  # what the last pass wrote out may need a newer opset
                scopes = infer(self.model)
            if not self._one_pass(scopes):
                return

    def _one_pass(self, scopes: Sequence[Scope]) -> bool:
        changed = False
        matches: dict[int, dict[int, list[tuple[Rule, Site, Finding]]]] = {}
        for rule, site, finding in match_sites(scopes, self.rules, self.options):
            matches.setdefault(id(site.scope), {}).setdefault(site.index, []).append((rule, site, finding))
        for scope in reversed(scopes):
            self._passed_by.clear()
            for index in sorted(matches.get(id(scope), {}), reverse=True):
                changed |= self._rewrite_first(matches[id(scope)][index])
            apply_splices(scope)
            drop_unread(scope, self._passed_by)  # last, because it moves the nodes behind
        return changed

    def _rewrite_first(self, candidates: Sequence[tuple[Rule, Site, Finding]]) -> bool:
        """Apply the first rule that can rewrite the node; note why the others before it could not."""
        for rule, site, finding in candidates:
            outcome = self._consider(rule, site, finding)
            if isinstance(outcome, Refusal):
                if outcome.reason:
                    self.result.refusals.append(Refused(finding, outcome.reason))
                continue
            rewrite, proof = outcome
            plan_splice(site.scope, site.index, rewrite.after)
            self._passed_by.update(name for node in rewrite.replaces for name in node.output)
            self.result.rewrites.append(_rewritten(finding, rewrite, proof))
            return True
        return False

    def _consider(self, rule: Rule, site: Site, finding: Finding) -> tuple[Rewrite, LocalProof | None] | Refusal:
        if not finding.fixable:
            self._observe(rule, site)
            return Refusal(finding.hint or "padfix only reports this; it has no rewrite for it.")
        if rule.minimum_opset(site) > site.scope.opset:
            blocked = self._upgrade_refusal
            return Refusal(
                f"The rewrite needs opset {rule.minimum_opset(site)} and the model can't be moved there: "
                + (blocked.reason if blocked else "no upgrade was possible.")
            )
        self.progress(f"Proving {finding.rule} at {finding.node}")
        rewrite = self._attempt(rule, site)
        if isinstance(rewrite, Refusal):
            return rewrite
        proof = self._prove(site, rewrite)
        return proof if isinstance(proof, Refusal) else (rewrite, proof)

    def _prove(self, site: Site, rewrite: Rewrite) -> LocalProof | Refusal | None:
        if not self.prove:
            return None
        from padfix.proof.local import prove

        given = {name for each in rewrite.after.nodes for name in each.output}
        # A rewrite may drop an output that nothing reads (the mask of a Dropout); all others must be there.
        outputs = [
            name
            for name in site.node.output
            if name and (name in given or site.scope.is_output(name) or site.scope.consumers(name))
        ]
        before = []
        for each in (*rewrite.replaces, site.node):
            node = NodeProto()
            node.CopyFrom(each)
            before.append(node)
        outcome = prove(before, site.scope.opsets, rewrite, outputs=outputs)
        if outcome.contradiction is not None:
            self._note(self.result.contradictions, site, outcome.contradiction)
        if outcome.failure is not None:
            return Refusal(f"The rewrite could not be shown to be right on its own, and was dropped: {outcome.failure}")
        return outcome.proof

    def _observe(self, rule: Rule, site: Site) -> None:
        """Run a node that is only reported, for what the runtime and the specification make of it."""
        trials = rule.trials(site) if self.prove else ()
        if not trials:
            return
        from padfix.graph.fragment import Fragment
        from padfix.proof.local import prove

        node = NodeProto()
        node.CopyFrom(site.node)
        itself = Rewrite(Fragment((node,), (), site.scope.opset), trials)
        outcome = prove([node], site.scope.opsets, itself, outputs=list(node.output))
        if outcome.contradiction is not None:
            self._note(self.result.untouched_contradictions, site, outcome.contradiction)

    def _note(self, known: list[Disagreement], site: Site, slip: RuntimeSlip) -> None:
        from padfix.proof.executors import OnnxRuntimeExecutor

        disagreement = Disagreement(
            site.scope.path,
            site.label,
            site.node.op_type,
            OnnxRuntimeExecutor.name,
            OnnxRuntimeExecutor.version(),
            slip.message,
            slip.input_shapes,
            slip.specified,
            slip.found,
        )
        if disagreement not in known:
            known.append(disagreement)


def _is_other(node: NodeProto, first: int, second: int) -> bool:
    """Whether two opsets define an operator of the default domain differently."""
    from onnx import defs

    if normal_domain(node.domain) != DEFAULT_DOMAIN or not defs.has(node.op_type):
        return False
    versions = [defs.get_schema(node.op_type, opset, DEFAULT_DOMAIN).since_version for opset in (first, second)]
    return versions[0] != versions[1]


def _rewritten(finding: Finding, rewrite: Rewrite, proof: LocalProof | None) -> Rewritten:
    drawable = redrawn(finding.drawable, rewrite.after.nodes, rewrite.after.initializers)
    return Rewritten(dataclasses.replace(finding, drawable=drawable), proof)


def _upgrade_finding(site: Site, target: int) -> Finding:
    return Finding(
        "PF301",
        "legacy-opset",
        Severity.INFO,
        site.scope.path,
        site.label,
        site.node.op_type,
        f"{site.node.op_type} is written for opset {site.scope.opset}; another rewrite needs opset {target}.",
    )


def _set_opset(model: Model, target: int) -> None:
    for container in (model.proto, *model.proto.functions):
        for entry in container.opset_import:
            if normal_domain(entry.domain) == DEFAULT_DOMAIN:
                entry.version = target
