"""The local proof: one rewrite, as a pair of tiny models, run on every trial shape and several kinds of data.

What a rewrite keeps is the specification's meaning, so the judge is the specification's run of the original node.
Witnesses of the rewritten form are the specification again and ONNX Runtime without and with its optimiser.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from onnx import NodeProto

from padfix.proof.allowances import allowed_by
from padfix.proof.case import Case
from padfix.proof.compare import Distance, described, distance
from padfix.proof.disagreement import RuntimeSlip, difference
from padfix.proof.executors import Array, ExecutionFailed, Executor, OnnxRuntimeExecutor
from padfix.proof.rounding import tolerance
from padfix.proof.sides import side_of
from padfix.proof.spec_executor import SpecExecutor
from padfix.proof.trial_models import Question, feeds_of, groups, is_too_large, model_of
from padfix.results import LocalProof, OutputDifference
from padfix.rules.base import Rewrite, Trial

_MOST_CACHED = 20_000


@dataclass(frozen=True)
class LocalOutcome:
    """What the local proof of a rewrite says.

    Attributes:
        proof: The proof; None when it failed.
        failure: Why the rewrite is not proven, in one sentence; None when it is.
        contradiction: What happens when ONNX Runtime can't run the original node, or runs it against the specification.
            That is no fault of the rewrite, but then ONNX Runtime can't be the judge of the whole model.
        untried: Whether it failed because nothing can run the original on the trials: that says nothing of the rewrite.
        short: Whether that was for want of memory, which says nothing of the model either.
    """

    proof: LocalProof | None
    failure: str | None = None
    contradiction: RuntimeSlip | None = None
    untried: bool = False
    short: bool = False


_Loaded = TypeVar("_Loaded")

_CACHE: dict[bytes, LocalOutcome] = {}


def prove(
    before: Sequence[NodeProto],
    before_opsets: Mapping[str, int],
    rewrite: Rewrite,
    *,
    outputs: Sequence[str],
) -> LocalOutcome:
    """Prove that ``rewrite.after`` computes what ``before`` computes.

    Results are kept for the life of the process by content (names don't count), so that a network that repeats a
    convolution fifty times pays once.

    Args:
        before: The node or nodes that are replaced, as they stand in the host.
        before_opsets: Version of each domain that the host imports.
        rewrite: The replacement and the shapes to try.
        outputs: Names of the boundary outputs to compare; ``""`` is skipped.
    """
    names = [name for name in outputs if name]
    case = Question(before, dict(before_opsets), rewrite, names).canonical()
    key = case.digest()
    outcome = _CACHE.get(key)
    if outcome is None:
        if len(_CACHE) >= _MOST_CACHED:
            _CACHE.clear()
        outcome = _CACHE[key] = _prove(case)
    return outcome


def _prove(case: Question) -> LocalOutcome:
    references = sorted({a.ref_attr_name for node in case.before for a in node.attribute if a.ref_attr_name})
    if references:
        return LocalOutcome(
            None, f"attribute {references[0]!r} is given by the caller of the function, so it can't be run on its own."
        )
    if not case.rewrite.trials or not case.outputs:
        return LocalOutcome(None, "there is nothing to try it on.")
    if any(is_too_large(case.before, case.opsets, trial) for trial in case.rewrite.trials):
        return LocalOutcome(
            None, "running it takes too much memory or time, even on the smallest data that shows it.", untried=True
        )
    witnesses = _Witnesses(case)
    try:
        for trials in groups(case.rewrite.trials):
            witnesses.ask(trials)
    except _NotProvenError as failure:
        return LocalOutcome(None, str(failure), witnesses.contradiction, isinstance(failure, _UntriedError))
    except MemoryError:
        said = "there is not enough memory to try it."
        return LocalOutcome(None, said, witnesses.contradiction, untried=True, short=True)
    return witnesses.outcome()


class _NotProvenError(Exception):
    """The rewrite is not proven; the text is the failure sentence."""


class _UntriedError(_NotProvenError):
    """No witness can run the original on these trials."""


class _Witnesses:
    """Hears the witnesses on one case after another and keeps the score."""

    def __init__(self, case: Question) -> None:
        self.case = case
        self.cases = 0
        self.largest = 0.0
        self.contradiction: RuntimeSlip | None = None
        self.runtime_agreed = True
        self.spec_agreed = True

    def outcome(self) -> LocalOutcome:
        """Return the outcome when every trial went well."""
        witnesses = (["spec"] if self.spec_agreed else []) + (["onnxruntime"] if self.runtime_agreed else [])
        if not witnesses:
            return LocalOutcome(None, "no witness can run both forms.", self.contradiction, untried=True)
        return LocalOutcome(LocalProof(self.cases, self.largest, tuple(witnesses)), None, self.contradiction)

    def ask(self, trials: Sequence[Trial]) -> None:
        """Run one pair of models on all ``trials``.

        Raises:
            _NotProvenError: The two forms differ, or the new one can't be run.
        """
        case, first = self.case, trials[0]
        after = case.rewrite.after
        old = model_of(case.before, (), case.opsets, first, case)
        new = model_of(after.nodes, after.initializers, {**case.opsets, "": after.opset}, first, case)
        old_spec, _ = _load(lambda: SpecExecutor.of(old))
        new_spec, new_problem = _load(lambda: SpecExecutor.of(new))
        if old_spec is not None and new_spec is None:
            raise _NotProvenError(f"the specification can't run the new form: {_words(new_problem)}")
        old_bytes, new_bytes = old.SerializeToString(), new.SerializeToString()
        old_runtime, refusal = _load(lambda: OnnxRuntimeExecutor(old_bytes, optimised=False, threads=1))
        self._note_refusal(refusal)
        new_runtimes = []
        for optimised in (False, True):
            executor, problem = _load(partial(OnnxRuntimeExecutor, new_bytes, optimised=optimised, threads=1))
            if executor is not None:
                new_runtimes.append(executor)
            elif problem is not None and refusal is not None and problem.unsupported:
                # Neither form has a kernel for this element type or version: it says nothing about the rewrite.
                self.runtime_agreed = False
            else:
                raise _NotProvenError(f"ONNX Runtime can't load the new form: {_words(problem)}")
        for number, trial in enumerate(trials):
            for feeds in feeds_of(trial, number):
                self._judge(feeds, old_spec, old_runtime, new_spec, new_runtimes)

    def _judge(
        self,
        feeds: Mapping[str, Array],
        old_spec: SpecExecutor | None,
        old_runtime: OnnxRuntimeExecutor | None,
        new_spec: SpecExecutor | None,
        new_runtimes: Sequence[OnnxRuntimeExecutor],
    ) -> None:
        meant, problem = _run(old_spec, feeds)
        ran, refusal = _run(old_runtime, feeds)
        self._note_refusal(refusal)
        if old_spec is None or meant is None:
            self.spec_agreed = False
            if problem is not None and not problem.unsupported:
                raise _UntriedError(f"the specification can't run the original: {_words(problem)}{_at(feeds)}")
            if ran is None:
                raise _UntriedError(f"no witness can run the original{_at(feeds)}.")
        elif ran is not None:
            self._note_difference(meant, ran, feeds, old_spec)
        else:
            self._note_specified(meant, feeds)
        expected, reference = (ran, old_runtime) if meant is None else (meant, old_spec)
        assert expected is not None and reference is not None
        self.cases += 1
        if new_spec is not None and meant is not None:
            result, problem = _run(new_spec, feeds)
            if result is None:
                raise _NotProvenError(f"the specification can't run the new form: {_words(problem)}{_at(feeds)}")
            self._must_agree(expected, result, feeds, "spec", reference)
        is_refused = False  # for the reason for which the old form is: that says nothing about the rewrite
        for executor in new_runtimes:
            result, problem = _run(executor, feeds)
            if result is not None:
                apart = self._distances(expected, result)
                is_equal = self._difference(expected, result, feeds, apart) is None
                # A runtime that misreads both forms alike is the runtime's slip, not the rewrite's.
                both = ran if meant is not None and not is_equal else None
                if both is None or self._difference(both, result, feeds) is not None:
                    self._must_agree(expected, result, feeds, executor.label, reference, apart)
                continue
            # Optimised, a node may have another name in the runtime's words.
            is_refused = is_refused or str(problem) == str(refusal)
            if problem is not None and ran is None and (problem.unsupported or is_refused):
                self.runtime_agreed = False
            else:
                raise _NotProvenError(f"{executor.label} can't run the new form: {_words(problem)}{_at(feeds)}")

    def _must_agree(
        self,
        expected: Mapping[str, Array],
        result: Mapping[str, Array],
        feeds: Mapping[str, Array],
        label: str,
        reference: Executor,
        apart: Mapping[str, Distance] | None = None,
    ) -> None:
        apart = apart or self._distances(expected, result)
        found = self._difference(expected, result, feeds, apart, reference)
        if found is not None:
            detail = found.detail or f"differs by {found.max_abs_diff:g}"
            position = next(
                number
                for number, name in enumerate(self.case.outputs)
                if found.name == name or found.name.startswith(f"{name}[")  # a member of a sequence
            )
            raise _NotProvenError(f"output {position} of the new form in {label}: {detail}{_at(feeds)}.")
        self.largest = max((self.largest, *(each.largest for each in apart.values())))

    def _distances(self, expected: Mapping[str, Array], result: Mapping[str, Array]) -> dict[str, Distance]:
        """Return how far apart each tensor is; a sequence has as many as it has members."""
        return {name: distance(expected.get(name), result.get(name)) for name in {**expected, **result}}

    def _difference(
        self,
        expected: Mapping[str, Array],
        result: Mapping[str, Array],
        feeds: Mapping[str, Array],
        distances: Mapping[str, Distance] | None = None,
        reference: Executor | None = None,
        *,
        of_one_form: bool = False,
    ) -> OutputDifference | None:
        """Return the first output that is not equal, or None; ``distances`` are those of all outputs, where known.

        Rounding and, where ``reference`` is given, which gave ``expected``, the allowances are those of a stretch. An
        exact rewrite has neither, unless both ran the same form (``of_one_form``): it is the rewrite that is exact, not
        what the operator computes.
        """
        for name, apart in (distances or self._distances(expected, result)).items():
            first, second = expected.get(name), result.get(name)
            allowed = 0.0
            if first is not None and second is not None and (of_one_form or not self.case.rewrite.exact):
                types = (first.dtype, *(array.dtype for array in feeds.values()))
                allowed = tolerance(types, apart.magnitude) if apart.is_float else 0.0
                side = side_of(reference) if reference is not None and apart.largest > allowed else None
                if side is not None:
                    nodes = side.view.nodes
                    more = allowed_by(Case(side, feeds, {}, name, nodes, first, second, apart.magnitude, types))
                    allowed = allowed if more is None else max(allowed, more[1])
            found = described(name, apart, allowed, first, second)
            if not found.equivalent:
                return found
        return None

    def _note_refusal(self, refusal: ExecutionFailed | None) -> None:
        if refusal is not None and self.contradiction is None:
            version = OnnxRuntimeExecutor.version()
            self.contradiction = RuntimeSlip(f"ONNX Runtime {version} can't run it: {_words(refusal)}")

    def _note_specified(self, meant: Mapping[str, Array], feeds: Mapping[str, Array]) -> None:
        """Add what a node that the runtime refuses should have given."""
        known = self.contradiction
        if known is not None and known.specified is None:
            self.contradiction = difference(known.message, feeds, meant.get(self.case.outputs[0]), None)

    def _note_difference(
        self, meant: Mapping[str, Array], ran: Mapping[str, Array], feeds: Mapping[str, Array], reference: Executor
    ) -> None:
        known = self.contradiction
        if known is not None and known.found is not None and not known.gives_none:
            return  # a run to other numbers says more than a refusal, or than one to none
        found = self._difference(meant, ran, feeds, reference=reference, of_one_form=True)
        if found is not None:
            message = (
                f"ONNX Runtime {OnnxRuntimeExecutor.version()} runs it against the specification: "
                f"{found.detail or f'differs by {found.max_abs_diff:g}'}{_at(feeds)}."
            )
            slip = difference(message, feeds, meant.get(found.name), ran.get(found.name))
            self.contradiction = known if known is not None and slip.gives_none and known.gives_none else slip


def _words(problem: ExecutionFailed | None) -> str:
    message = problem.message if problem is not None else "no message"
    # The tiny models' own names say nothing to the user.
    message = re.sub(r" with name ''| in node \(\)| of input parameter \(\w+\)", "", message)
    return message if message.endswith(".") else f"{message}."


def _at(feeds: Mapping[str, Array]) -> str:
    """Return where: the shape of the first input, which is the data."""
    shapes = [list(array.shape) for array in feeds.values()]
    return f" (input {shapes[0]})" if shapes else ""


def _load(make: Callable[[], _Loaded]) -> tuple[_Loaded | None, ExecutionFailed | None]:
    try:
        return make(), None
    except ExecutionFailed as failure:
        return None, failure


def _run(
    executor: SpecExecutor | OnnxRuntimeExecutor | None, feeds: Mapping[str, Array]
) -> tuple[dict[str, Array] | None, ExecutionFailed | None]:
    if executor is None:
        return None, None
    try:
        return executor.run(feeds), None
    except ExecutionFailed as failure:
        return None, failure
