"""The proof of a whole model: both models on the same probes, output by output, and the stretches between."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any, cast

from onnx import TensorProto

from padfix.errors import NowhereRunError, ProofUnavailableError, UnusableResultError
from padfix.process import deadline, watch
from padfix.proof.allowances import optimiser_failure
from padfix.proof.bodies import Bodies
from padfix.proof.compare import says_something
from padfix.proof.empty_batch import EmptyBatch, empty_probes
from padfix.proof.executors import Array, ExecutionFailed, Executor, graph_of, label_of, output_of
from padfix.proof.facts import drawing, may_vary
from padfix.proof.feeding import Feeding
from padfix.proof.generated import LEAST_PATIENCE, PATIENCE, Generated, sentence, shapes_text
from padfix.proof.matching import InputMatch
from padfix.proof.outputs import Outputs
from padfix.proof.probes import KINDS, Probe, is_dynamic, resolve
from padfix.proof.settings import Settings
from padfix.proof.verdict import Describe, Failure, Inside, Ran, conclude, look_inside
from padfix.proof.witnesses import refuses
from padfix.results import WITNESSES, OutputDifference, ProofRun, Verdict

Progress = Callable[[str], None]
Candidate = Executor | Callable[[], Executor]

_KEPT_BYTES = 256_000_000
"""Size of the probes that are kept for the stretches, and of the reference's results until they are compared."""

_DRAWN_AGAIN = 3
"""How often the original is run again on the same data where something in it draws random numbers."""


def verify(
    reference: Executor,
    candidates: Sequence[Candidate],
    *,
    probes: Iterable[Probe] | Callable[[Sequence[InputMatch]], Iterable[Probe]] | None = None,
    shapes: Mapping[str, Sequence[int]] | None = None,
    stand_in: Callable[[], Executor] | None = None,
    describe: Describe | None = None,
    progress: Progress | None = None,
    **settings: Any,
) -> Verdict:
    """Run the original and the candidates on the same data, and judge every stretch of them by itself.

    Inputs and outputs are matched by name, else by position and type, and images in NHWC with images in NCHW where the
    lengths leave no other way (not where the candidate is the rewritten reference). Dynamic inputs are run at several
    sizes; where the reference refuses a size, others are tried, and the notes say which ran.

    Args:
        reference: Runs the original; its results are what is right.
        candidates: Executors of the result, or functions that make one (a result that doesn't load is not equivalent).
        probes: The user's data under the reference's names or the candidate's, run before the generated probes; or a
            function that makes it, told how the first candidate's inputs were matched.
        shapes: Shapes that the user fixed, by input name of the reference (or of the candidate).
        stand_in: Makes an executor of the original as ONNX, for what can't be looked at in the reference.
        describe: Says where the models part, when they do.
        progress: Told a few words before each probe.
        settings: The fields of :class:`Settings`.

    Raises:
        ProofUnavailableError: The reference can't run the original, contradicts itself, or has other inputs; or nothing
            could be judged.
        NowhereRunError: ONNX Runtime refuses the candidate on data that it refuses the original on.
        UsageError: ``shapes`` doesn't fit the inputs.
    """
    proof = _WholeProof(reference, Settings(**settings), progress or (lambda words: None), stand_in)
    proof.load(candidates)
    proof.match()
    proof.run_given(probes)
    if proof.settings.probes_only and proof.ran:
        proof.notes.append("Judged by the given probes alone (--probes-only).")
    else:
        proof.run_generated(shapes)
    inside = proof.look_inside(shapes)
    verdict = conclude(proof.ran, inside, proof.failures, proof.notes, proof.settings, reference, describe)
    return replace(verdict, loosened=proof.outputs.loosened, ranges=dict(proof.settings.ranges))


@dataclass
class _WholeProof:
    reference: Executor
    settings: Settings
    progress: Progress
    stand_in: Callable[[], Executor] | None = None
    candidates: list[Executor] = field(default_factory=list)
    ran: list[Ran] = field(default_factory=list)
    failures: list[Failure] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    kept: list[Probe] = field(default_factory=list)
    results: list[tuple[Probe, dict[str, Array]]] = field(default_factory=list)
    is_consistent: bool = False
    is_endless: bool = False
    varies: dict[str, bool] = field(default_factory=dict)
    longest: float = 0.0
    feeding: Feeding = field(init=False)
    outputs: Outputs = field(init=False)

    def __post_init__(self) -> None:
        self.outputs = Outputs(self.reference, self.settings, self.notes)

    def load(self, candidates: Sequence[Candidate]) -> None:
        """Make the candidates that are still to be made; one that can't be is a run that failed."""
        for number, candidate in enumerate(candidates):
            try:
                executor = candidate if hasattr(candidate, "run") else candidate()
            except ExecutionFailed as failure:
                self._fail("load", f"candidate {number}", {}, f"it can't be loaded: {failure.message}")
            else:
                self.candidates.append(cast(Executor, executor))

    def match(self) -> None:
        """Find for every candidate where each of its inputs comes from.

        Raises:
            ProofUnavailableError: The candidate wants an input that the reference doesn't have.
        """
        try:
            self.feeding = Feeding(self.reference, self.candidates, rewritten=self.settings.rewritten)
        except ExecutionFailed as failure:
            raise self._unavailable(failure.message) from None
        self.notes += self.feeding.notes
        self._settle_ranges()

    def _settle_ranges(self) -> None:
        """Take the ranges under the original's names, and say so in the report.

        Raises:
            UsageError: A range of no input, or one that an input's type does not hold.
        """
        self.settings = self.feeding.with_ranges(self.settings)
        ranges = self.settings.ranges
        if ranges and not self.settings.probes_only:
            listed = ", ".join(f"{name!r} within {low:g}..{high:g}" for name, (low, high) in ranges.items())
            self.notes.append(f"Data was made for input {listed}, as asked for (--range).")

    def run_given(self, probes: Iterable[Probe] | Callable[[Sequence[InputMatch]], Iterable[Probe]] | None) -> None:
        """Run the user's probes; every one of them must run."""
        given = list(probes(self.feeding.first) if callable(probes) else probes or ())
        for number, probe in enumerate(given, 1):
            self.progress(f"Proving on {probe.name} ({number} of {len(given)})")
            try:
                named = self.feeding.common(Probe(probe.name, self.feeding.of_reference(probe.arrays)))
                results = self._reference_run(named)
            except ExecutionFailed as failure:
                raise self._unavailable(failure.message) from None
            self._keep(named, results)
        self._judge()

    def run_generated(self, shapes: Mapping[str, Sequence[int]] | None) -> None:
        """Run the generated probes; at least one must run unless the user's did."""
        try:
            inputs, controls, notes = self.feeding.generated(shapes)
            resolve(inputs, 1, (1,))  # or a rank is missing
        except ExecutionFailed as failure:
            if not self.ran:
                raise self._unavailable(failure.message) from None
            self.notes.append(f"Only the given probes were run: {failure.message}")
            return
        self.notes += notes
        data = Generated(
            self.reference, self.candidates, self.feeding, inputs, controls, self.settings, self._reference_run
        )
        ran: list[str] = []
        kinds = self.settings.kinds if inputs else self.settings.kinds[:1]
        for number, kind in enumerate(kinds, 1):
            if ran and watch.time_is_short():
                self.notes.append(
                    f"Half of the time was spent after {len(ran)} of {len(KINDS)} kinds of data, and the others were "
                    "left out; --timeout SECONDS allows more."
                )
                break
            self.progress(f"Proving on {kind} data ({number} of {len(kinds)})")
            found = data.first_that_runs(kind)
            if found is None:
                if data.is_hopeless:
                    break
                continue
            probe, results = found
            ran.append(f"{kind} at {shapes_text(probe.shapes)}")
            self._keep(probe, results)
            if watch.is_timed():
                self._judge()
        self._judge()
        can_judge = self.settings.rewritten and getattr(self.reference, "counts_rows", True)
        if data.made is not None and can_judge and not watch.time_is_short():
            ran += self._run_empty(map(data.steered, empty_probes(inputs, data.made)), data.made)
        failures = data.failures
        if not ran and not self.ran:
            raise self._unavailable(failures[0] if failures else "there is nothing to run.", dynamic=is_dynamic(inputs))
        if is_dynamic(inputs) and ran:
            self.notes.append(f"Sizes run: {'; '.join(ran)}.")
        if failures:
            self.notes.append(f"{len(failures)} of the inputs tried were left out; the first time: {failures[0]}")

    def _run_empty(self, probes: Iterable[Probe], made: Probe) -> list[str]:
        """Hold the candidates against the original without rows; return what agreed."""
        partners = self.outputs.partners or {name: name for name in self.reference.outputs}
        types = self.outputs.types(made)
        empty = EmptyBatch(
            self.reference,
            self.candidates,
            self.feeding,
            lambda results, found, names: self.outputs.compare(results, found, types, names),
            partners,
        )
        try:
            # Nothing is computed with, so that a first run needs no patience.
            with self._in_time(LEAST_PATIENCE):
                agreed = [each for each in probes if empty.agrees(each)]
        finally:
            empty.close()
        self.ran += empty.wrong
        self.notes += empty.notes
        return [f"{each.name} at {shapes_text(each.shapes)}" for each in agreed]

    def look_inside(self, shapes: Mapping[str, Sequence[int]] | None) -> Inside:
        """Judge the stretches on the probes that ran, and the bodies that none of them ran."""
        if not self.candidates or not self.kept:
            return Inside()
        constant = [name for name, varies in self.varies.items() if not varies]
        # Tolerances that are tighter than the defaults are about outputs: inside, the defaults are tighter still.
        settings = self.settings if self.outputs.loosened else replace(self.settings, rtol=None, atol=None)
        # What the runtime's optimiser breaks of the whole original says nothing of its parts either.
        labels = {each.run.candidate for each in self.ran}
        run = [each for each in self.candidates if label_of(each) in labels] or self.candidates
        if not self.outputs.partners and self.failures:  # no run told what the candidate's are
            self.outputs.match(self.failures[0].results, dict.fromkeys(run[0].outputs))
        with self._in_time():
            inside = look_inside(
                self.reference,
                run,
                self.feeding,
                {output_of(ours): output_of(theirs) for ours, theirs in self.outputs.partners.items()},
                self.kept,
                settings,
                self.stand_in,
                self.progress,
            )
        if inside.judge is not None and inside.outcome is not None:
            bodies = Bodies(inside.judge.cases, self.kept, is_dynamic(self.feeding.generated(shapes)[0]), self.settings)
            self.notes += bodies.judge(inside.outcome, partial(verify, shapes=shapes, progress=self.progress))
        if constant and self.reference.inputs:
            self.notes.append(
                f"Output {', '.join(constant)} held one single value on every probe, which proves little about it; "
                f"{inside.words()}. Real data (--probe) would say more."
            )
        return inside

    def _reference_run(self, probe: Probe) -> dict[str, Array]:
        """Run the reference; the first time twice, because a model that draws random numbers can't be compared."""
        begun = time.monotonic()
        results = self.reference.run(probe.arrays)
        self.longest = max(self.longest, time.monotonic() - begun)
        if not self.is_consistent:
            graph = graph_of(self.reference)
            if graph is None or may_vary(graph):
                self._require_repeatable(probe, results)
            self.is_consistent = not self._drawn
        for name, array in results.items():
            self.varies[name] = self.varies.get(name, False) or says_something(array)
        return results

    def _in_time(self, least: float | None = None) -> contextlib.AbstractContextManager[None]:
        """Let runs end that take many times as long as the original did, and longer than ``least`` seconds."""
        return deadline.each_run(max(self.settings.patience if least is None else least, PATIENCE * self.longest))

    @cached_property
    def _drawn(self) -> str:
        """The operators that draw random numbers in the original or in what was made of it."""
        graphs = filter(None, map(graph_of, (self.reference, *self.candidates)))
        drawn = sorted(set().union(*map(drawing, graphs)))
        return ", ".join((drawn and getattr(self.reference, "draws", ())) or drawn)

    def _require_repeatable(self, probe: Probe, results: Mapping[str, Array]) -> None:
        """Run the reference again: numbers that are others each time can't be compared with anything.

        Where something draws, one run that agrees says little.
        """
        own = {name: name for name in results}
        for _ in range(_DRAWN_AGAIN if self._drawn else 1):
            again = self.reference.run(probe.arrays)
            compared = self.outputs.compare(results, again, self.outputs.types(probe), own)
            different = ", ".join(each.name for each in compared if not each.equivalent)
            if different:
                raise ProofUnavailableError(
                    f"{self._judge_name} gives other numbers each time the original is run (output {different}): the "
                    f"model draws random numbers{f' ({self._drawn})' if self._drawn else ' or keeps a state'}.",
                    f"Remove what is random (dropout in training mode) or keeps a state.{self._switch_words()}",
                )

    def _keep(self, probe: Probe, results: dict[str, Array]) -> None:
        """Keep what the reference gives for a probe, to be held against the candidates."""
        size = sum(array.nbytes for each in (*self.kept, probe) for array in each.arrays.values())
        if not self.kept or size <= _KEPT_BYTES:
            self.kept.append(probe)
        self.results.append((probe, results))
        if sum(array.nbytes for _, arrays in self.results for array in arrays.values()) > _KEPT_BYTES:
            self._judge()

    def _judge(self) -> None:
        """Hold the candidates against what was kept, one after the other: large ones aren't in memory together."""
        before = len(self.ran)
        for number, candidate in enumerate(self.candidates):
            if self.results:
                self.progress(f"Running the result in {label_of(candidate)} ({number + 1} of {len(self.candidates)})")
            for probe, results in self.results:
                self._judge_one(number, candidate, probe, results)
        runs, count = self.ran[before:], len(self.results)
        self.ran[before:] = [run for position in range(count) for run in runs[position::count]]
        self.results.clear()

    def _judge_one(self, number: int, candidate: Executor, probe: Probe, results: dict[str, Array]) -> None:
        optimised = bool(getattr(candidate, "optimised", False))
        label = label_of(candidate)
        if self.is_endless:
            self._fail(probe.name, label, probe.shapes, "it was not run, because another run did not end")
            return
        try:
            with self._in_time():
                found = candidate.run(self.feeding.of_candidate(number, probe.arrays))
        except ExecutionFailed as failure:
            said = sentence(failure.message)
            if failure.is_out_of_memory:
                raise ProofUnavailableError(f"Memory ran out in {label}: {said}", watch.memory_hint()) from None
            if optimised and (own := optimiser_failure(self.reference, probe)):
                self.notes += [own] if own not in self.notes else []
                return
            if failure.loading:
                self._leave_out(f"The result can't be loaded in {label}: {said}", failure)
                return
            self.is_endless = failure.overdue
            is_spec = self.reference.name == "spec" != candidate.name
            if is_spec and self.stand_in is not None and refuses(self.stand_in, probe.arrays):
                raise NowhereRunError(f"ONNX Runtime runs neither the original nor the result: {said}") from None
            self._fail(probe.name, label, probe.shapes, f"it can't be run: {failure.message}")
            self.failures.append(Failure(probe, candidate, results, None, optimised))
            return
        partners = self.outputs.match(results, found)
        compared = self.outputs.compare(results, found, self.outputs.types(probe), partners)
        run = ProofRun(probe.name, label, probe.shapes, compared)
        self.ran.append(Ran(run, optimised))
        if not run.equivalent:
            self._require_repeatable(probe, results)
            if self._drawn:
                raise ProofUnavailableError(
                    f"The model draws random numbers ({self._drawn}); no two runs can be compared.",
                    f"Remove what is random (dropout in training mode).{self._switch_words()}",
                )
            self.failures.append(Failure(probe, candidate, results, dict(found), optimised))

    def _leave_out(self, message: str, failure: ExecutionFailed) -> None:
        """Go on without a candidate that can't be loaded, where another one has shown a difference.

        Raises:
            UnusableResultError: None has.
        """
        if all(each.run.equivalent for each in self.ran):
            hint = "It has no kernel for all that the model needs." if failure.unsupported else ""
            raise UnusableResultError(message, hint) from None
        self.notes += [message] if message not in self.notes else []

    def _fail(self, probe: str, label: str, shapes: dict[str, tuple[int, ...]], detail: str) -> None:
        try:
            names = self.reference.outputs
        except ExecutionFailed:
            names = []
        outputs = [OutputDifference(name, float("inf"), float("inf"), 0.0, False, detail) for name in names or ["-"]]
        self.ran.append(Ran(ProofRun(probe, label, shapes, tuple(outputs)), optimised=False, refused=True))

    def _unavailable(self, message: str, *, dynamic: bool = False) -> ProofUnavailableError:
        hints = []
        if watch.memory_limit() and ExecutionFailed(message).is_out_of_memory:
            hints.append(watch.memory_hint())
        if dynamic:
            hints.append(
                "Say which size it takes with --shape NAME=..., which numbers with --range NAME=LOW..HIGH, or give "
                "data with --probe FILE.npz."
            )
        if self.reference.name == "onnxruntime":
            hints.append("Use --reference spec to judge by the ONNX specification instead.")
        elif self.reference.name == "spec":
            hints.append("Use --reference onnxruntime to judge by ONNX Runtime instead.")
        if not hints:
            hints.append("Give data that it can be run on with --probe FILE.npz, or say which it takes with --range.")
        return ProofUnavailableError(f"{self._judge_name} can't run the original: {sentence(message)}", " ".join(hints))

    @property
    def _judge_name(self) -> str:
        return WITNESSES.get(self.reference.name, label_of(self.reference))

    def _switch_words(self) -> str:
        """Return how to fix inputs that may switch to training; nothing where there are none."""
        switches = {
            spec.name: "False" if spec.elem_type == TensorProto.BOOL else "VALUE"
            for spec in self.reference.inputs
            if spec.elem_type == TensorProto.BOOL or spec.shape == ()
        }
        if self.reference.name != "tensorflow" or not switches:
            return ""
        name, value = next(iter(switches.items()))
        return f" If the input {name} switches to training, fix it with --constant {name}={value}."
