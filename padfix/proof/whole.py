"""The proof of a whole model: both models on the same probes, output by output, and the stretches between."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, islice
from typing import Any, cast

import numpy as np

from padfix.errors import ProofUnavailableError, UnusableResultError
from padfix.process import watch
from padfix.proof.compare import compare, loosens
from padfix.proof.empty_tensors import leaves_a_window_empty
from padfix.proof.executors import (
    Array,
    ExecutionFailed,
    Executor,
    OnnxRuntimeExecutor,
    TensorSpec,
    graph_of,
    label_of,
    numpy_type,
)
from padfix.proof.facts import Control, cast_types, may_vary
from padfix.proof.feeding import Feeding
from padfix.proof.matching import InputMatch, Order, match_outputs, order_between
from padfix.proof.probes import KINDS, Probe, dynamic_sizes, every_small_size, is_dynamic, make_probe, resolve
from padfix.proof.roles import Roles
from padfix.proof.verdict import Failure, Inside, Ran, conclude, look_inside
from padfix.results import FirstDifference, OutputDifference, ProofRun, Verdict

Progress = Callable[[str], None]
Candidate = Executor | Callable[[], Executor]
Describe = Callable[[Inside, Failure | None], FirstDifference | None]

SEARCH_SECONDS = 10.0
"""How long to look for a size that a model accepts, when it took none of the usual ones."""

_KEPT_BYTES = 256_000_000
"""Size of the probes that are kept for the stretches, and of the reference's results until they are compared."""


@dataclass(frozen=True)
class Settings:
    """How a proof is to go.

    Attributes:
        rtol: The user's relative tolerance; None for what rounding explains.
        atol: The user's absolute tolerance likewise.
        seed: Seed of the generated data.
        output_names: The candidate's name for an output of the reference, where names and positions don't tell.
        rewritten: Whether the candidate is the reference rewritten node by node, so that every tensor whose name is in
            both must hold the same numbers.
        kinds: Which of :data:`padfix.proof.probes.KINDS` to generate.
        probes_only: Whether the user's probes are all the data there is.
        layers: Whether the verdict is to list every stretch that was compared.
    """

    rtol: float | None = None
    atol: float | None = None
    seed: int = 0
    output_names: Mapping[str, str] = field(default_factory=dict)
    rewritten: bool = False
    kinds: Sequence[str] = KINDS
    probes_only: bool = False
    layers: bool = False


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
        UsageError: ``shapes`` doesn't fit the inputs.
    """
    proof = _WholeProof(reference, Settings(**settings), progress or (lambda words: None))
    proof.load(candidates)
    proof.match()
    proof.run_given(probes)
    if proof.settings.probes_only and proof.ran:
        proof.notes.append("Judged by the given probes alone (--probes-only).")
    else:
        proof.run_generated(shapes)
    proof.notes += getattr(reference, "remarks", list)()
    inside = proof.look_inside(stand_in)
    verdict = conclude(proof.ran, inside, proof.failures, proof.notes, proof.settings, reference, describe)
    return replace(verdict, loosened=proof.loosened)


@dataclass
class _WholeProof:
    reference: Executor
    settings: Settings
    progress: Progress
    candidates: list[Executor] = field(default_factory=list)
    ran: list[Ran] = field(default_factory=list)
    failures: list[Failure] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    kept: list[Probe] = field(default_factory=list)
    results: list[tuple[Probe, dict[str, Array]]] = field(default_factory=list)
    is_consistent: bool = False
    computed: list[np.dtype[Any]] | None = None
    orders: dict[str, Order] = field(default_factory=dict)
    varies: dict[str, bool] = field(default_factory=dict)
    outputs: dict[str, str] = field(default_factory=dict)
    accepted: dict[str, tuple[int, ...]] | None = None
    loosened: bool = False
    roles: Roles | None = None
    feeding: Feeding = field(init=False)

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

    def run_given(self, probes: Iterable[Probe] | Callable[[Sequence[InputMatch]], Iterable[Probe]] | None) -> None:
        """Run the user's probes; every one of them must run."""
        given = probes(self.feeding.first) if callable(probes) else probes or ()
        for probe in given:
            self.progress(f"Proving on {probe.name}")
            try:
                named = self.feeding.common(Probe(probe.name, self.feeding.of_reference(probe.arrays)))
                results = self._reference_run(named)
            except ExecutionFailed as failure:
                raise self._unavailable(failure.message) from None
            self._keep(named, results)
        self._judge()

    def run_generated(self, shapes: Mapping[str, Sequence[int]] | None) -> None:
        """Run the generated probes; at least one must run unless the user's did."""
        failures: list[str] = []
        try:
            inputs, controls, notes = self.feeding.generated(shapes)
            resolve(inputs, 1, (1,))  # or a rank is missing
        except ExecutionFailed as failure:
            if not self.ran:
                raise self._unavailable(failure.message) from None
            self.notes.append(f"Only the given probes were run: {failure.message}")
            return
        self.notes += notes
        dynamic = is_dynamic(inputs)
        ran: list[str] = []
        for kind in self.settings.kinds:
            if ran and watch.time_is_short():
                self.notes.append(
                    f"Half of the time was spent after {len(ran)} of {len(KINDS)} kinds of data, and the others were "
                    "left out; --timeout SECONDS allows more."
                )
                break
            self.progress(f"Proving on {kind} data")
            found = self._first_that_runs(inputs, controls, kind, failures)
            if found is None:
                # No size of any kind has run yet: the other kinds would only fail at the same sizes again.
                if not ran and dynamic:
                    break
                continue
            probe, results = found
            ran.append(f"{kind} at {_shapes_text(probe.shapes)}")
            self._keep(probe, results)
            if watch.is_timed():
                self._judge()
        self._judge()
        if not ran and not self.ran:
            raise self._unavailable(failures[0] if failures else "there is nothing to run.", dynamic=dynamic)
        if dynamic and ran:
            self.notes.append(f"Sizes run: {'; '.join(ran)}.")
        if failures:
            self.notes.append(f"{len(failures)} of the inputs tried were left out; the first time: {failures[0]}")

    def look_inside(self, stand_in: Callable[[], Executor] | None) -> Inside:
        """Judge the stretches on the probes that ran."""
        if not self.candidates or not self.kept:
            return Inside()
        constant = [name for name, varies in self.varies.items() if not varies]
        # Tolerances that are tighter than the defaults are about outputs: inside, the defaults are tighter still.
        settings = self.settings if self.loosened else replace(self.settings, rtol=None, atol=None)
        inside = look_inside(
            self.reference,
            self.candidates,
            self.feeding,
            self.outputs,
            self.kept,
            settings,
            stand_in,
            self.progress,
        )
        if constant:
            self.notes.append(
                f"Output {', '.join(constant)} held one single value on every probe, which proves little about it; "
                f"{inside.words()}. Real data (--probe) would say more."
            )
        return inside

    def _first_that_runs(
        self, inputs: Sequence[TensorSpec], controls: Mapping[str, Control], kind: str, failures: list[str]
    ) -> tuple[Probe, dict[str, Array]] | None:
        dynamic = is_dynamic(inputs)
        for shapes in self._sizes(inputs, kind):
            try:
                made = make_probe(inputs, shapes, kind, seed=self.settings.seed, controls=controls)
                first = self.feeding.common(made)
            except ExecutionFailed as failure:
                failures.append(_sentence(failure.message))
                continue
            if dynamic and self._finds_no_room(first):
                failures.append(f"At {_shapes_text(first.shapes)} a window is longer than what it reads.")
                continue
            self.roles = self.roles or Roles([self.reference, *self.candidates], inputs)
            suited = self.roles.suited(first, self.settings.seed + KINDS.index(kind))
            for probe in chain(map(self.feeding.common, suited), (first,)):
                try:
                    results = self._reference_run(probe)
                except ExecutionFailed as failure:
                    failures.append(_sentence(failure.message))
                    continue
                if results and all(array.size == 0 for array in results.values()):
                    failures.append(f"All outputs are empty at {_shapes_text(probe.shapes)}.")
                    continue
                self.accepted = probe.shapes
                return probe, results
        return None

    def _finds_no_room(self, probe: Probe) -> bool:
        """Whether a window of the result is longer than what it reads; ONNX Runtime says so by refusing."""
        if isinstance(self.reference, OnnxRuntimeExecutor):
            return False
        return any(
            isinstance(candidate, OnnxRuntimeExecutor)
            and leaves_a_window_empty(candidate.skeleton, self.feeding.of_candidate(number, probe.arrays))
            for number, candidate in enumerate(self.candidates[:1])
        )

    def _sizes(self, inputs: Sequence[TensorSpec], kind: str) -> Iterator[dict[str, tuple[int, ...]]]:
        """Yield sizes to try: the kind's own, the one the model took before, others, at last every small one."""
        sizes = dynamic_sizes(inputs, kind)
        # A few others first, so that a model that wants multiples of 32 is still seen at more than one size.
        yield from islice(sizes, 5)
        if self.accepted is not None:
            yield self.accepted
        yield from sizes
        if self.accepted is None and is_dynamic(inputs):
            deadline = time.monotonic() + SEARCH_SECONDS
            for shapes in every_small_size(inputs):
                if time.monotonic() > deadline:
                    return
                yield shapes

    def _reference_run(self, probe: Probe) -> dict[str, Array]:
        """Run the reference; the first time twice, because a model that draws random numbers can't be compared."""
        results = self.reference.run(probe.arrays)
        if not self.is_consistent:
            graph = graph_of(self.reference)
            if graph is None or may_vary(graph):
                self._require_repeatable(probe, results)
            self.is_consistent = True
        for name, array in results.items():
            self.varies[name] = self.varies.get(name, False) or _says_something(array)
        return results

    def _types(self, probe: Probe) -> list[np.dtype[Any]]:
        """Return the types that the original computes in: those of its inputs, and what it casts to."""
        if self.computed is None:
            graph = graph_of(self.reference)
            self.computed = [numpy_type(each) for each in sorted(cast_types(graph))] if graph is not None else []
        return [*(array.dtype for array in probe.arrays.values()), *self.computed]

    def _require_repeatable(self, probe: Probe, results: Mapping[str, Array]) -> None:
        """Run the reference again: numbers that are others each time can't be compared with anything."""
        again = self.reference.run(probe.arrays)
        own = {name: name for name in results}
        different = [
            each.name for each in self._compare(results, again, self._types(probe), own) if not each.equivalent
        ]
        if different:
            raise ProofUnavailableError(
                f"{label_of(self.reference)} gives other numbers each time the original is run "
                f"(output {', '.join(different)}); the model draws random numbers or keeps a state.",
                "Remove what is random (dropout in training mode, random initial states), fix a switch for it with "
                "--constant where the source is TensorFlow's.",
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
            for probe, results in self.results:
                self._judge_one(number, candidate, probe, results)
        runs, count = self.ran[before:], len(self.results)
        self.ran[before:] = [run for position in range(count) for run in runs[position::count]]
        self.results.clear()

    def _judge_one(self, number: int, candidate: Executor, probe: Probe, results: dict[str, Array]) -> None:
        optimised = bool(getattr(candidate, "optimised", False))
        label = label_of(candidate)
        try:
            found = candidate.run(self.feeding.of_candidate(number, probe.arrays))
        except ExecutionFailed as failure:
            said = _sentence(failure.message)
            if failure.is_out_of_memory:
                raise ProofUnavailableError(f"Memory ran out in {label}: {said}", memory_hint()) from None
            if failure.loading:
                hint = "It has no kernel for all that the model needs." if failure.unsupported else ""
                raise UnusableResultError(f"The result can't be loaded in {label}: {said}", hint) from None
            self._fail(probe.name, label, probe.shapes, f"it can't be run: {failure.message}")
            self.failures.append(Failure(probe, candidate, results, None, optimised))
            return
        partners = self._matched_outputs(results, found)
        self.outputs = self.outputs or partners
        run = ProofRun(probe.name, label, probe.shapes, self._compare(results, found, self._types(probe), partners))
        self.ran.append(Ran(run, optimised))
        if not run.equivalent:
            self._require_repeatable(probe, results)
            self.failures.append(Failure(probe, candidate, results, dict(found), optimised))

    def _compare(
        self,
        results: Mapping[str, Array],
        found: Mapping[str, Array],
        types: Sequence[np.dtype[Any]],
        partners: Mapping[str, str],
    ) -> tuple[OutputDifference, ...]:
        """Compare all outputs; ``partners`` says what each is called in ``found``."""
        told = {"rtol": self.settings.rtol, "atol": self.settings.atol}
        self.loosened |= any(loosens(array.dtype, types, **told) for array in results.values())
        return tuple(
            compare(name, array, self._in_layout(name, array, found.get(partners[name])), **told, input_types=types)
            for name, array in results.items()
        )

    def _fail(self, probe: str, label: str, shapes: dict[str, tuple[int, ...]], detail: str) -> None:
        try:
            names = self.reference.outputs
        except ExecutionFailed:
            names = []
        outputs = [OutputDifference(name, float("inf"), float("inf"), 0.0, False, detail) for name in names or ["-"]]
        self.ran.append(Ran(ProofRun(probe, label, shapes, tuple(outputs)), optimised=False, refused=True))

    def _matched_outputs(self, results: Mapping[str, Array], found: Mapping[str, object]) -> dict[str, str]:
        return match_outputs(results, found, self.settings.output_names)

    def _in_layout(self, name: str, array: Array, found: Array | None) -> Array | None:
        """Return the candidate's output in the reference's layout, where its shape tells that it has another."""
        if found is None or self.settings.rewritten:
            return found
        order = order_between(array.shape, found.shape) if array.shape != found.shape else None
        if order is not None and name not in self.orders:
            self.orders[name] = order
            self.notes.append(f"Output {name!r} has its axes in the order {list(order)} in the result.")
        order = self.orders.get(name)
        if order is None or len(order) != found.ndim or [array.shape[axis] for axis in order] != list(found.shape):
            return found
        return found.transpose(np.argsort(order))

    def _unavailable(self, message: str, *, dynamic: bool = False) -> ProofUnavailableError:
        hints = []
        if watch.memory_limit() and ExecutionFailed(message).is_out_of_memory:
            hints.append(memory_hint())
        if dynamic:
            hints.append("Say which size it takes with --shape NAME=..., or give data with --probe FILE.npz.")
        if self.reference.name == "onnxruntime":
            hints.append("Use --reference spec to judge by the ONNX specification instead.")
        elif self.reference.name == "spec":
            hints.append("Use --reference onnxruntime to judge by ONNX Runtime instead.")
        if not hints:
            hints.append("Give data that it can be run on with --probe FILE.npz.")
        return ProofUnavailableError(
            f"{label_of(self.reference)} can't run the original: {_sentence(message)}", " ".join(hints)
        )


def memory_hint() -> str:
    """Return what to do where memory ran out."""
    limit = watch.memory_limit()
    return f"It may use {limit / 1024:.1f} GiB; allow more with --memory GIB." if limit else "Close other programs."


def _says_something(array: Array) -> bool:
    """Whether a result is more than one value all over; single values and strings get the benefit of the doubt."""
    if array.dtype.kind in "OSU":
        return True
    finite = array[np.isfinite(array)]
    return finite.size > 0 and (array.size == 1 or bool(np.any(finite != finite[0])))


def _sentence(text: str) -> str:
    return text if text.endswith((".", "...")) else f"{text}."


def _shapes_text(shapes: Mapping[str, tuple[int, ...]]) -> str:
    return ", ".join(f"{name} {list(shape)}" for name, shape in shapes.items()) or "no inputs"
