"""From what was run to a verdict: outputs and stretches together.

Outputs and stretches agree: equal. A stretch disagrees: not equal, and it is the place. Only outputs disagree while
every stretch agrees: the original amplifies rounding, and the verdict names where. What can't be cut is judged by its
outputs alone; what nothing could judge is no verdict.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from padfix.errors import ProofUnavailableError
from padfix.proof.allowances import ALLOWANCES, interpreter_rounding, optimiser_rounding
from padfix.proof.compare import coarsest, compare, distance, is_real
from padfix.proof.executors import Array, ExecutionFailed, Executor, graph_of, label_of, numpy_type
from padfix.proof.facts import cast_types
from padfix.proof.feeding import Feeding
from padfix.proof.judging import StretchJudge
from padfix.proof.probes import Probe
from padfix.proof.setting_up import judge_of, optimised_form_agrees
from padfix.proof.settings import Settings
from padfix.proof.sides import side_of
from padfix.proof.stretches import Judged, Outcome, Stretches
from padfix.results import (
    FirstDifference,
    LayerDifference,
    OutputDifference,
    ProofRun,
    StretchSummary,
    Verdict,
)

OPTIMISER_FACTOR = 4.0
"""What is allowed of the distance between the original with and without the runtime's optimisations."""

IN_CONVERSION = "The original as ONNX, before any rewrite, gives the same numbers as the result."
"""The note on a difference that no rewrite made."""

REWRITTEN_PROBES = 2
"""Probes that the stretches of a rewritten model are judged on: each rewrite was proven on its own data before."""


@dataclass(frozen=True)
class Ran:
    """One probe through the original and one executor of the candidate; ``refused`` where that could not run it."""

    run: ProofRun
    optimised: bool
    refused: bool = False


@dataclass(frozen=True)
class Failure:
    """A run whose outputs disagree, with the numbers of both sides; ``found`` is None where the candidate refused."""

    probe: Probe
    candidate: Executor
    results: Mapping[str, Array]
    found: Mapping[str, Array] | None
    optimised: bool


@dataclass
class Inside:
    """What was seen inside: nothing where there is ``trouble``, or no judge of the stretches.

    Attributes:
        judge: Judges the stretches; None where one of the models can't be looked into.
        outcome: What was found of them.
        stands_in: Whether the original as ONNX, before any rewrite, was looked into, because the original can't be.
        trouble: Why nothing was seen.
        probes: What the stretches were judged on.
        outputs: The candidate's name for each output of the original.
    """

    judge: StretchJudge | None = None
    outcome: Outcome | None = None
    stands_in: bool = False
    trouble: str = ""
    probes: Sequence[Probe] = ()
    outputs: Mapping[str, str] = field(default_factory=dict)

    def words(self) -> str:
        """Return how many stretches are the same, and how many were compared."""
        if self.outcome is None:
            return "its inner tensors could not be compared"
        same, judged = self.outcome.same, len(self.outcome.judged)
        words = "1 stretch is" if same == 1 else f"{same} stretches are"
        parts = [f"{words} the same node by node and weight by weight"] if same else []
        if judged:
            bits = all(each.difference.max_abs_diff == 0 for each in self.outcome.judged)
            agree = "equal to the bit" if bits else "compared"
            one, many = ("other was", "others were") if same else ("stretch was", "stretches were")
            parts.append(f"{judged} {one if judged == 1 else many} fed the original's values and {agree}")
        return "; ".join(parts) or "there is nothing inside to compare"


Describe = Callable[[Inside, Failure | None], FirstDifference | None]


def look_inside(
    reference: Executor,
    candidates: Sequence[Executor],
    feeding: Feeding,
    outputs: Mapping[str, str],
    probes: Sequence[Probe],
    settings: Settings,
    stand_in: Callable[[], Executor] | None,
    progress: Callable[[str], None],
) -> Inside:
    """Judge the stretches between the original and the first candidate, which has no optimisations.

    ``probes`` are what the original ran on; ``stand_in`` makes an executor of the original as ONNX.
    """
    try:
        first = side_of(reference)
        stands_in = first is None and stand_in is not None
        if first is None and stand_in is not None:
            first = side_of(stand_in())
        second = side_of(candidates[0])
        if first is None or second is None:
            return Inside(trouble="one of the models can't be looked into.")
        judge = judge_of(first, second, candidates, feeding, outputs, settings, progress)
        chosen = probes[:REWRITTEN_PROBES] if settings.rewritten else probes
        return Inside(judge, judge.run(chosen), stands_in, probes=chosen, outputs=outputs)
    except ExecutionFailed as failure:
        return Inside(trouble=failure.message)
    except ProofUnavailableError as failure:  # the stand-in can't run what the original can
        return Inside(trouble=str(failure))


def conclude(
    ran: Sequence[Ran],
    inside: Inside,
    failures: Sequence[Failure],
    notes: Sequence[str],
    settings: Settings,
    reference: Executor,
    describe: Describe | None,
) -> Verdict:
    """Return the verdict; ``describe`` says where the models part.

    Raises:
        ProofUnavailableError: Outputs that say nothing, and stretches that no data could judge.
    """
    judge = _Judge(inside, failures, list(notes), settings, reference)
    runs = judge.runs(ran)
    judge.notes += getattr(reference, "remarks", list)()
    equivalent = bool(runs) and all(run.equivalent for run in runs)
    if equivalent and inside.outcome is not None and inside.outcome.unproven:
        listed = ", ".join(inside.outcome.unproven)
        raise ProofUnavailableError(
            f"The models differ in {listed}, which no data that was tried runs in the original.",
            "Give data that runs it with --probe FILE.npz, or judge by given data alone with --probes-only.",
        )
    place = None
    if not equivalent and describe is not None:
        place = judge.place(describe, failures)
    outcome = inside.outcome
    layers: tuple[LayerDifference, ...] = ()
    summary = None
    if outcome is not None and not inside.stands_in:
        every = [_layer(each) for each in outcome.judged]
        layers = tuple(every) if settings.layers else ()
        worst = max(every, key=lambda each: each.difference.share, default=None)
        largest = max((max(each.largest, each.difference.max_abs_diff) for each in outcome.judged), default=0.0)
        plain = max((each.unoptimised for each in outcome.judged), default=0.0)
        summary = StretchSummary(outcome.same, len(outcome.judged), worst, largest, plain)
    return Verdict(equivalent, reference.name, tuple(runs), tuple(judge.notes), place, layers=layers, stretches=summary)


def _first(failures: Sequence[Failure]) -> Failure:
    return min(failures, key=lambda each: each.optimised)


def _layer(judged: Judged) -> LayerDifference:
    last = judged.stretch.nodes[-1]
    return LayerDifference(last.name, last.op_type, judged.difference)


class _Judge:
    def __init__(
        self, inside: Inside, failures: Sequence[Failure], notes: list[str], settings: Settings, reference: Executor
    ) -> None:
        self.notes = notes
        self._inside = inside
        self._failures = failures
        self._settings = settings
        self._reference = reference
        self._amplified: dict[str, float] = {}
        self._rounding: dict[str, dict[str, float]] = {}
        self._amplifying: list[Failure] = []
        self._optimised_form: bool | None = None

    def runs(self, ran: Sequence[Ran]) -> list[ProofRun]:
        """Return the runs with what the stretches say of them."""
        outcome = self._inside.outcome
        runs = [each.run for each in ran]
        self._look_closer(runs)
        if outcome is not None and outcome.wrong:
            if all(run.equivalent for run in runs):
                runs.append(self._hidden(ran))
            return runs
        if outcome is not None:
            self._note_allowances(outcome)
        if self._settings.rtol is not None or self._settings.atol is not None:
            return runs
        found = [self._forgiven(each) if not each.run.equivalent and not each.refused else each.run for each in ran]
        self.note_amplification()
        return found

    def _look_closer(self, runs: Sequence[ProofRun]) -> None:
        """Where outputs disagree and every stretch agrees, ask each for what is small in it and enlarged behind it."""
        judge, outcome = self._inside.judge, self._inside.outcome
        is_judged = self._settings.rtol is None and self._settings.atol is None
        if judge is None or outcome is None or outcome.wrong or not is_judged or all(run.equivalent for run in runs):
            return
        failed = {run.probe for run in runs if not run.equivalent}
        outcome.wrong = judge.beyond_rounding(
            outcome.judged, [each for each in self._inside.probes if each.name in failed]
        )

    def _hidden(self, ran: Sequence[Ran]) -> ProofRun:
        assert self._inside.outcome is not None
        wrong = self._inside.outcome.wrong[0]
        words = "an inner tensor that the outputs hide"
        detail = f"{words}: {wrong.difference.detail}" if wrong.difference.detail else words
        difference = dataclasses.replace(wrong.difference, detail=detail)
        like = next((each.run for each in ran if each.optimised == wrong.optimised), None)
        same = next((each.run for each in ran if each.run.probe == wrong.data and not wrong.own), None)
        shapes = same.shapes if same is not None else {}
        return ProofRun(wrong.data, like.candidate if like is not None else "-", shapes, (difference,))

    def _note_allowances(self, outcome: Outcome) -> None:
        for allowance in ALLOWANCES:
            used = [each for each in outcome.judged if each.allowance == allowance.name]
            if used:
                listed = ", ".join(repr(each.stretch.name) for each in used[:3]) + (", ..." if len(used) > 3 else "")
                self.notes.append(f"{allowance.reason} ({allowance.name}: {listed})")

    def _forgiven(self, ran: Ran) -> ProofRun:
        """Return a run whose outputs disagree as equal, where every stretch agrees: the original amplifies rounding."""
        failure = next((each for each in self._failures if self._is_of(each, ran)), None)
        if failure is None or failure.found is None:
            return ran.run
        outputs = ran.run.outputs
        ask = getattr(self._reference, "leeway", None)
        if ask is not None:
            outputs = interpreter_rounding(ask(failure.probe.arrays, failure.results), outputs, self.notes)
        if not all(each.equivalent for each in outputs) and self._is_complete() and self._is_tied(failure):
            outputs = tuple(self._amplified_difference(each, failure) for each in outputs)
        return dataclasses.replace(ran.run, outputs=outputs)

    @staticmethod
    def _is_of(failure: Failure, ran: Ran) -> bool:
        return failure.probe.name == ran.run.probe and label_of(failure.candidate) == ran.run.candidate

    def _is_complete(self) -> bool:
        """Whether everything between inputs and outputs was seen to agree."""
        inside, outcome = self._inside, self._inside.outcome
        if outcome is None or inside.judge is None or inside.stands_in or outcome.wrong or outcome.unknown:
            return False
        view = inside.judge.stretches.sides[0].view
        return all(name in inside.judge.stretches.pairing.partners for name in view.outputs if name in view.producers)

    def _is_tied(self, failure: Failure) -> bool:
        """Whether what was looked into computes what the original computes: its pieces may run with other kernels."""
        judge = self._inside.judge
        assert judge is not None
        side = judge.stretches.sides[0]
        names = [name for name in failure.results if name in side.view.producers]
        try:
            found = side.values(failure.probe.arrays, names)
        except ExecutionFailed:
            return False
        for name in names:
            difference = compare(name, failure.results[name], found.get(name))
            if difference.equivalent:
                continue
            if not difference.max_abs_diff <= OPTIMISER_FACTOR * self._own_rounding(failure).get(name, 0.0):
                return False
        return True

    def _amplified_difference(self, difference: OutputDifference, failure: Failure) -> OutputDifference:
        if difference.equivalent or not np.isfinite(difference.max_abs_diff):
            return difference
        name = difference.name
        if failure.optimised:
            bound = max(self._amplified.get(name, 0.0), self._own_rounding(failure).get(name, 0.0))
            if difference.max_abs_diff > OPTIMISER_FACTOR * bound and not self._optimised_form_agrees(failure):
                return difference
        elif not self._has_rounding(failure):
            return difference
        else:
            self._amplified[name] = max(self._amplified.get(name, 0.0), difference.max_abs_diff)
        self._amplifying.append(failure)
        words = "beyond the tolerance for whole models; every stretch agrees, so the original amplifies rounding"
        return dataclasses.replace(difference, equivalent=True, detail=words)

    def _has_rounding(self, failure: Failure) -> bool:
        """Whether there is anything to amplify: what agrees to the bit everywhere agrees at the outputs.

        In 16 bits a runtime rounds between some operators and not between others, and otherwise where a model is cut.
        """
        outcome, graph = self._inside.outcome, graph_of(self._reference)
        cast = map(numpy_type, cast_types(graph)) if graph is not None else ()
        arrays = (*failure.probe.arrays.values(), *failure.results.values())
        is_judged = any(each.name == failure.probe.name for each in self._inside.probes)
        if not is_judged or outcome is None or coarsest([*cast, *(each.dtype for each in arrays)]) not in _WHOLE_WORDS:
            return True
        return any(each.largest > 0 for each in outcome.judged)

    def _own_rounding(self, failure: Failure) -> dict[str, float]:
        """Return how far the original moves by itself on a probe; measured once for all its outputs."""
        name = failure.probe.name
        if name not in self._rounding:
            self._rounding[name] = optimiser_rounding(self._reference, failure.probe, failure.results)
        return self._rounding[name]

    def _optimised_form_agrees(self, failure: Failure) -> bool:
        if self._optimised_form is None:
            assert self._inside.judge is not None
            self._optimised_form = optimised_form_agrees(
                self._inside.judge.stretches, failure.candidate, failure.probe, self._inside.outputs, self._settings
            )
        return self._optimised_form

    def note_amplification(self) -> None:
        """Say on which probes the original amplifies rounding, and where most."""
        judge, plain = self._inside.judge, [each for each in self._amplifying if not each.optimised]
        if not self._amplifying or judge is None:
            return
        agree = "every stretch agrees when it is fed the original's own values"
        names = ", ".join(dict.fromkeys(repr(each.probe.name) for each in plain or self._amplifying))
        if plain:
            found = amplifier(judge.stretches, plain[0].probe)
            where = f"most of all {found}" if found else "over many operators"
            self.notes.append(f"The original amplifies rounding (probe {names}), {where}: {agree}.")
        else:
            self.notes.append(
                "The original itself gives other numbers with ONNX Runtime's optimisations, by as much as the result "
                f"(probe {names}): {agree}."
            )

    def place(self, describe: Describe, failures: Sequence[Failure]) -> FirstDifference | None:
        """Return where the models part; the verdict stands without it where memory runs out over it."""
        try:
            place = describe(self._inside, _first(failures) if failures else None)
        except (MemoryError, ExecutionFailed) as error:
            if isinstance(error, ExecutionFailed) and not error.is_out_of_memory:
                raise
            self.notes.append("Memory ran out where the place of the difference was looked for; it is left out.")
            return None
        self.note_place(place, failures)
        return place

    def note_place(self, place: FirstDifference | None, failures: Sequence[Failure]) -> None:
        """Add why there is no place, where there is none, or where it lies."""
        inside = self._inside
        if inside.stands_in and place is None and inside.outcome is not None:
            self.notes.append(IN_CONVERSION)
        elif place is None and inside.trouble:
            self.notes.append(f"The place of the difference could not be looked for: {inside.trouble}")
        elif place is None and failures and all(each.optimised for each in failures):
            self.notes.append(
                "The difference is there with all optimisations only, and not where inner tensors are looked at: a "
                "fusion of ONNX Runtime's optimiser."
            )


_WHOLE_WORDS = ("float32", "float64")

_NOISE = 2.0**-22
"""Relative differences below this are the last bits themselves."""


def amplifier(stretches: Stretches, probe: Probe) -> str:
    """Return the node whose stretch amplifies most on a probe, and what it does to a difference.

    Empty where none does by itself, or nothing can be seen.
    """
    names = stretches.ends()
    apart: dict[str, float] = {}
    for start in range(0, len(names), 32):
        some = names[start : start + 32]
        try:
            ours = stretches.sides[0].values(probe.arrays, some)
            partners = [stretches.pairing.partners[name] for name in some]
            theirs = stretches.sides[1].values(stretches.translate(probe.arrays), partners)
        except ExecutionFailed:
            return ""
        for name, partner in zip(some, partners, strict=True):
            if name in ours and partner in theirs:
                other = stretches.layouts.to_reference(name, theirs[partner])
                apart[name] = _relative(ours[name], other)
    worst = max(apart.values(), default=0.0)
    best, words = 4.0, ""
    for name, after in apart.items():
        if after < worst / 100 or after <= _NOISE:
            continue
        stretch = stretches.stretch(name)
        before = max((apart.get(each, 0.0) for each in stretch.above), default=0.0)
        gain, node = after / max(before, _NOISE), stretch.nodes[-1]
        if gain > best or (gain == best and not words):
            best = gain
            words = f"{node.op_type} {node.name!r}, which makes {after:.2g} of its values of {before:.2g}"
    return words


def _relative(first: Array, second: Array) -> float:
    if first.shape != second.shape or not is_real(first.dtype):
        return 0.0
    usual = np.isfinite(first) & np.isfinite(second)
    apart = distance(first[usual], second[usual].astype(first.dtype))
    return apart.largest / apart.magnitude if apart.magnitude else 0.0
