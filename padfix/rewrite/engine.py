"""The rewriting pipeline: match, rewrite, prove each rewrite on its own, splice, until nothing is left to do."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from onnx import NodeProto, numpy_helper

from padfix.errors import UsageError
from padfix.files.model import Model
from padfix.graph import node_text
from padfix.graph.input_shapes import fix_input_shapes
from padfix.graph.scopes import DEFAULT_DOMAIN, Scope, label, normal_domain
from padfix.graph.splice import apply_splices, drop_unread, plan_splice
from padfix.operators.illustration import with_rewrite
from padfix.operators.inference import infer
from padfix.operators.reading import require_meaning
from padfix.operators.refusal import Refusal
from padfix.results import Disagreement, Finding, LocalProof, Refused, Rewritten
from padfix.rewrite.inlining import inline_functions
from padfix.rewrite.matches import Match, Matches, corrections
from padfix.rewrite.moving import Edit, plan_move, set_opset
from padfix.rewrite.specialise import function_of, specialise
from padfix.rules.base import Correction, Rewrite, Rule, Site
from padfix.rules.build.explicit_pads import copied
from padfix.rules.registry import RULES
from padfix.targets import Target, named

if TYPE_CHECKING:
    from padfix.proof.disagreement import RuntimeSlip

MAXIMUM_PASSES = 8
"""A rewrite may uncover another (a Pad behind a pool, say); more rounds than this mean that two rules disagree."""

Progress = Callable[[str], None]


@dataclass
class Rewriting:
    """What the pipeline did to a model.

    Attributes:
        rewrites: Applied rewrites, in the order of application.
        refusals: What the rules still find in the result, and why it could not be rewritten.
        notes: One sentence for each function that was copied for its calls.
        contradictions: The rewritten nodes that ONNX Runtime was found not to run, or to run against the specification.
        untouched_contradictions: The same for nodes that are only reported: the result holds them as they were.
        changed: Whether the model is not what it was, in whatever respect.
    """

    rewrites: list[Rewritten] = field(default_factory=list)
    refusals: list[Refused] = field(default_factory=list)
    contradictions: list[Disagreement] = field(default_factory=list)
    untouched_contradictions: list[Disagreement] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    changed: bool = False


def rewrite_model(
    model: Model,
    *,
    opset: int | None = None,
    shapes: Mapping[str, Sequence[int]] | None = None,
    prove: bool = True,
    target: Target | None = None,
    progress: Progress | None = None,
) -> Rewriting:
    """Rewrite ``model`` in place and return what was done.

    Args:
        model: The model; its skeleton is edited.
        opset: Lowest default-domain opset that the result must have; None keeps the model's own unless a rewrite or
            the target needs a newer one.
        shapes: Input shapes to fix before anything else.
        prove: Whether each rewrite is proven on its own pair of tiny models before it is applied.
        target: What the result has to suit; None for the default.
        progress: Called with a short sentence at each stage.

    Raises:
        SourceError: A node has no meaning.
        UsageError: ``opset`` is below the model's, or can't be reached, or ``shapes`` names an input that does not
            exist.
    """
    before = model.copy()
    if shapes:
        fix_input_shapes(model.proto, shapes)
    pipeline = _Pipeline(model, prove, target or named("onnx"), progress or (lambda stage: None))
    pipeline.run(opset)
    pipeline.result.rewrites.sort(key=pipeline.place_of)
    pipeline.result.changed = model.proto != before.proto
    return pipeline.result


class _Pipeline:
    def __init__(self, model: Model, prove: bool, target: Target, progress: Progress) -> None:
        self.model = model
        self.prove = prove
        self.target = target
        self.progress = progress
        self.result = Rewriting()
        self._matched: Matches | None = None
        self._blocked: dict[int, Refusal] = {}
        self._stays: Refusal | None = None
        self._places: dict[tuple[str, str], int] = {}

    def place_of(self, rewritten: Rewritten) -> int:
        """Return where the node stood among all nodes of the original; new ones stand behind them."""
        return self._places.get((rewritten.finding.graph, rewritten.finding.node), len(self._places))

    def run(self, opset: int | None) -> None:
        scopes = infer(self.model)
        require_meaning(scopes)
        for scope in scopes:
            for index, node in enumerate(scope.nodes):
                self._places.setdefault((scope.path, label(node, index)), len(self._places))
        current = scopes[0].opset
        if opset is not None and opset < current:
            raise UsageError(
                f"The model is written for opset {current}, which is newer than the requested {opset}.",
                f"Ask for --opset {current} or higher; only the ceiling of a --target lowers an opset.",
            )
        ceiling = self.target.maximum_opset
        if opset is not None and ceiling is not None and opset > ceiling:
            raise UsageError(
                f"Opset {opset} is above {ceiling}, the highest that the target {self.target.name} takes.",
                f"Ask for --opset {ceiling} or lower, or leave it out.",
            )
        if self.model.proto.functions:
            scopes = self._inline(scopes)
            scopes, notes = specialise(self.model, scopes, self._refused)
            self.result.notes.extend(notes)
        for _ in range(MAXIMUM_PASSES):
            self.progress("Looking for implicit pads and legacy resizes")
            self.result.refusals.clear()
            if not self._one_pass(scopes, opset):
                return
            scopes = infer(self.model)
        refused = {_what_and_where(each.finding) for each in self.result.refusals}
        for match in self._matches(scopes).found:
            if _what_and_where(match.finding) not in refused:
                again = f"What is written for it is found again, {MAXIMUM_PASSES} times."
                self._refuse(match.rule, match.finding, again)

    def _inline(self, scopes: list[Scope]) -> list[Scope]:
        """Put nodes in the place of the calls of functions where the target reads none; return the scopes as they are.

        First of all, because what a call hands over is known then.
        """
        wanted = [each for _, each in corrections(scopes, RULES, self.target) if each.inlines and each.apply is None]
        self._stays = inline_functions(self.model) if wanted else None
        if not wanted or self._stays is not None:
            return scopes
        for each in wanted:
            self._record_correction(each)
        return infer(self.model)

    def _place_bodies(self, found: Sequence[tuple[Rule, Correction]]) -> bool:
        """Put bodies in the place of what holds them where the target wants it; return whether there were any.

        Innermost first, so that none of the scopes goes before its own turn.
        """
        placing = [(each, each.apply) for _, each in found if each.inlines and each.apply is not None]
        for each, apply in reversed(placing):
            apply()
            self._record_correction(each)
        return bool(placing)

    def _one_pass(self, scopes: Sequence[Scope], opset: int | None) -> bool:
        """Correct, move and rewrite what can be; return whether anything was.

        Bodies take their places before anything else is looked at.
        """
        found = list(corrections(scopes, RULES, self.target))
        if self._place_bodies(found):
            return True
        changed, left = self._correct(found)
        for scope in scopes if changed else ():
            scope.traits.clear()  # corrections change what scopes declare without a word to them
        if any(each.moves and each.apply is not None for _, each in found):
            return True
        lowering = [each for each in left if each[1].lowers]
        left = [each for each in left if not each[1].lowers]
        if self._move(self._matches(scopes), opset, left):
            return True
        for rule, correction in left:
            blocked = self._stays if correction.inlines else self._blocked.get(correction.opset or 0)
            self._refuse(rule, correction.finding, blocked.reason if blocked else correction.finding.hint)
        # An opset is lowered last: what the rules rewrite for the target may be what the older opset can't say.
        return self._rewrite(self._matches(scopes)) or changed or self._lower(scopes, lowering)

    def _matches(self, scopes: Sequence[Scope]) -> Matches:
        """Return what the rules find; for the same scopes the same, as long as nothing is edited."""
        if self._matched is None or self._matched.scopes is not scopes:
            self._matched = Matches(scopes, RULES, self.target)
        return self._matched

    def _correct(self, found: Sequence[tuple[Rule, Correction]]) -> tuple[bool, list[tuple[Rule, Correction]]]:
        """Correct what the model declares wrongly; return whether that was anything, and what an edit can't mend.

        Nothing is computed otherwise, so that there is nothing to prove for a correction on its own.
        """
        changed, left = False, []
        for rule, correction in found:
            if correction.apply is None:
                left.append((rule, correction))
                continue
            correction.apply()
            self._record_correction(correction)
            changed = True
        return changed, left

    def _record_correction(self, correction: Correction) -> None:
        proof = LocalProof(0, 0.0, ()) if self.prove else None
        self.result.rewrites.append(Rewritten(correction.finding, proof))

    def _refuse(self, rule: Rule, finding: Finding, reason: str) -> None:
        self.result.refusals.append(Refused(finding, reason))

    def _refused(self, scopes: Sequence[Scope]) -> Iterator[tuple[Scope, NodeProto]]:
        """Yield the nodes of functions that match a rule and can't be rewritten as they stand."""
        for match in self._matches(scopes).found:
            inside = function_of(match.site.scope) is not None
            if inside and match.finding.fixable and isinstance(match.attempt, Refusal):
                yield match.site.scope, match.site.node

    def _move(self, matches: Matches, requested: int | None, left: Sequence[tuple[Rule, Correction]]) -> bool:
        """Move the model to the opset that the user, the target or a rewrite asks for; return whether it was moved.

        Raises:
            UsageError: The user asked for one that can't be reached.
        """
        opsets = [scope.opset for scope in matches.scopes]
        asked = max([requested or 1, *(correction.opset or 1 for _, correction in left)])
        goals = {asked, _opset_for_functions(matches), *_needed_opsets(matches)}
        for goal in sorted({max(asked, goal) for goal in goals}, reverse=True):
            # Functions may import another opset than the main graph; none of them is ever lowered.
            reached = max(goal, *opsets)
            if goal <= min(opsets) or reached in self._blocked:
                continue
            refusal = self._move_to(reached, matches.scopes)
            if refusal is None:
                for _, correction in left:
                    if correction.opset is not None:
                        self._record_correction(correction)
                return True
            self._blocked[reached] = refusal
        if requested is not None and requested > min(opsets):
            raise UsageError(
                f"The model can't be moved to opset {requested}: {self._why_not_moved()}",
                "Leave out --opset, or ask for a lower one.",
            )
        return False

    def _lower(self, scopes: Sequence[Scope], lowering: Sequence[tuple[Rule, Correction]]) -> bool:
        """Move the model down to the target's ceiling; return whether it was moved."""
        for rule, correction in lowering:
            assert correction.opset is not None
            refusal = Refusal(correction.finding.hint) if not correction.finding.fixable else None
            refusal = refusal or self._move_to(correction.opset, scopes)
            if refusal is None:
                for _, each in lowering:
                    self._record_correction(each)
                return True
            self._refuse(rule, correction.finding, refusal.reason)
        return False

    def _why_not_moved(self) -> str:
        return self._blocked[min(self._blocked)].reason if self._blocked else "no upgrade was possible."

    def _move_to(self, opset: int, scopes: Sequence[Scope]) -> Refusal | None:
        """Move every scope to ``opset``, all of it or nothing; return why it can't be done."""
        self.progress(f"Moving to opset {opset}")
        edits = plan_move(self.model, scopes, opset, RULES, self.target)
        if isinstance(edits, Refusal):
            return edits
        planned: dict[int, list[tuple[Edit, LocalProof | None]]] = {}
        for edit in edits:
            proof = self._prove(edit.site, edit.rewrite, must_run=edit.must_run)
            if isinstance(proof, Refusal):
                return Refusal(f"{edit.site.node.op_type} {edit.site.label!r}: {proof.reason}")
            if edit.edits:
                planned.setdefault(id(edit.site.scope), []).append((edit, proof))
        # Bodies lie inside nodes of the scopes around them, so the innermost scopes are edited first.
        for scope in reversed(scopes):
            here = sorted(planned.get(id(scope), []), key=lambda each: -each[0].site.index)
            read = {name for edit, _ in here for name in edit.site.node.input if name}
            for edit, proof in here:
                self.result.rewrites.append(_rewritten(edit.finding, edit.site, edit.rewrite, proof))
                plan_splice(scope, edit.site.index, edit.rewrite.after)
            apply_splices(scope)
            drop_unread(scope, read)
        set_opset(self.model, opset)
        return None

    def _rewrite(self, matches: Matches) -> bool:
        changed = False
        total = sum(len(matches.by_node(scope)) for scope in matches.scopes)
        number = 0
        for scope in reversed(matches.scopes):
            read: set[str] = set()
            for _, candidates in sorted(matches.by_node(scope).items(), reverse=True):
                number += 1
                if self._rewrite_first(candidates, f"{number} of {total}"):
                    changed = True
                    read.update(filter(None, candidates[0].site.node.input))
            apply_splices(scope)
            drop_unread(scope, read)  # last, because it moves the nodes behind
        return changed

    def _rewrite_first(self, candidates: Sequence[Match], which: str) -> bool:
        """Apply the first rule that can rewrite the node; note why the others before it could not."""
        for match in candidates:
            outcome = self._consider(match, which)
            if isinstance(outcome, Refusal):
                self._refuse(match.rule, match.finding, outcome.reason)
                continue
            rewrite, proof = outcome
            self.result.rewrites.append(_rewritten(match.finding, match.site, rewrite, proof))
            plan_splice(match.site.scope, match.site.index, rewrite.after)
            return True
        return False

    def _consider(self, match: Match, which: str) -> tuple[Rewrite, LocalProof | None] | Refusal:
        finding = match.finding
        if not finding.fixable:
            self._observe(match.rule, match.site)
            return Refusal(finding.hint or "padfix only reports this; it has no rewrite for it.")
        if match.minimum_opset > match.site.scope.opset:
            return Refusal(
                f"The rewrite needs opset {match.minimum_opset} and the model can't be moved there: "
                + self._why_not_moved()
            )
        self.progress(f"Proving {finding.rule} at {finding.node} ({which})")
        rewrite = match.attempt
        if isinstance(rewrite, Refusal):
            return rewrite
        proof = self._prove(match.site, rewrite)
        return proof if isinstance(proof, Refusal) else (rewrite, proof)

    def _prove(self, site: Site, rewrite: Rewrite, *, must_run: bool = True) -> LocalProof | Refusal | None:
        if not self.prove:
            return None
        from padfix.proof.local import prove

        given = {name for each in rewrite.after.nodes for name in each.output}
        # A rewrite may drop an output that nothing reads (the mask of a Dropout); all others must be there.
        outputs = [name for name in site.node.output if name and (name in given or site.scope.is_used(name))]
        before = [copied(each) for each in (*rewrite.replaces, site.node)]
        outcome = prove(before, site.scope.opsets, rewrite, outputs=outputs)
        if outcome.contradiction is not None:
            # What only moves to another opset is run as it was, rightly or not.
            is_as_it_was = any(_is_like(each, site.node) for each in rewrite.after.nodes)
            known = self.result.untouched_contradictions if is_as_it_was else self.result.contradictions
            self._note(known, site, outcome.contradiction)
        if must_run and outcome.short:
            raise MemoryError(outcome.failure)
        if outcome.failure is not None and (must_run or not outcome.untried):
            return Refusal(f"The rewrite could not be shown to be right on its own, and was dropped: {outcome.failure}")
        return outcome.proof

    def _observe(self, rule: Rule, site: Site) -> None:
        """Run a node that is only reported, for what the runtime and the specification make of it."""
        trials = rule.trials(site) if self.prove else ()
        if not trials:
            return
        from padfix.proof.local import prove

        node = copied(site.node)
        outcome = prove([node], site.scope.opsets, Rewrite(site.only(node), trials), outputs=list(node.output))
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
            **vars(slip),
        )
        if disagreement not in known:
            known.append(disagreement)


def _needed_opsets(matches: Matches) -> set[int]:
    """Return the opsets above the model's that possible rewrites need."""
    return {
        match.minimum_opset
        for match in matches.found
        if match.finding.fixable and match.minimum_opset > match.site.scope.opset and isinstance(match.attempt, Rewrite)
    }


def _opset_for_functions(matches: Matches) -> int:
    """Return the main graph's opset where a function has to move up to it, else 1.

    That is where a rewrite brings operators which the function's older opset and the model's define differently:
    runtimes read them by the model's, and checkers don't allow them.
    """
    current = matches.scopes[0].opset
    for match in matches.found:
        opset, node = match.site.scope.opset, match.site.node
        if opset >= current or not match.finding.fixable or match.minimum_opset > opset:
            continue
        if isinstance(match.attempt, Rewrite) and any(
            each.op_type != node.op_type and _is_other(each, opset, current) for each in match.attempt.after.nodes
        ):
            return current
    return 1


def _what_and_where(finding: Finding) -> tuple[str, str, str]:
    """Return what is found where; a second finding of the same is another pass's."""
    return finding.rule, finding.graph, finding.node


def _is_other(node: NodeProto, first: int, second: int) -> bool:
    """Whether two opsets define an operator of the default domain differently."""
    from onnx import defs

    if normal_domain(node.domain) != DEFAULT_DOMAIN or not defs.has(node.op_type):
        return False
    versions = [defs.get_schema(node.op_type, opset, DEFAULT_DOMAIN).since_version for opset in (first, second)]
    return versions[0] != versions[1]


def _rewritten(finding: Finding, site: Site, rewrite: Rewrite, proof: LocalProof | None) -> Rewritten:
    fragment, scope = rewrite.after, site.scope
    illustration = with_rewrite(finding.illustration, fragment.nodes, fragment.initializers)
    own = {tensor.name: tensor for tensor in fragment.initializers}

    def constant(name: str) -> np.ndarray | None:
        return numpy_helper.to_array(own[name]) if name in own else scope.constant(name)

    before = node_text.lines_of([*rewrite.replaces, site.node], scope.opset, scope.constant)
    after = node_text.lines_of(fragment.nodes, fragment.opset, constant)
    return Rewritten(dataclasses.replace(finding, illustration=illustration), proof, before, after)


def _is_like(node: NodeProto, other: NodeProto) -> bool:
    """Whether two nodes are the same but for what they read and give."""
    given, wanted = (sorted(each.SerializeToString() for each in one.attribute) for one in (node, other))
    return (node.domain, node.op_type, given) == (other.domain, other.op_type, wanted)
