"""The whole proof: two models on the same probes, output by output."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from padfix.errors import ProofUnavailableError
from padfix.process import watch
from padfix.proof.compare import DEFAULT_ATOL, compare
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
from padfix.proof.facts import Control, cast_types, control_inputs, may_vary, quantizes, refine
from padfix.proof.leeway import within
from padfix.proof.matching import InputMatch, Order, blank, match_inputs, match_outputs, order_between, read_inputs
from padfix.proof.noise import FACTOR, STEPS, between_levels, floor, spread
from padfix.proof.probes import (
    KINDS,
    Probe,
    calmer,
    dynamic_sizes,
    every_small_size,
    is_dynamic,
    make_probe,
    with_shapes,
)
from padfix.results import FirstDifference, OutputDifference, ProofRun, Verdict

if TYPE_CHECKING:
    from padfix.proof.inside import Inside

Progress = Callable[[str], None]
Candidate = Executor | Callable[[], Executor]

SEARCH_SECONDS = 10.0
"""How long to look for a size that a model accepts, when it took none of the usual ones."""


def verify(
    reference: Executor,
    candidates: Sequence[Candidate],
    *,
    probes: Iterable[Probe] | Callable[[Sequence[InputMatch]], Iterable[Probe]] | None = None,
    shapes: Mapping[str, Sequence[int]] | None = None,
    rtol: float | None = None,
    atol: float | None = None,
    seed: int = 0,
    output_names: Mapping[str, str] | None = None,
    locate: bool = False,
    layers: bool = False,
    stand_in: Callable[[], Executor] | None = None,
    rewritten: bool = False,
    kinds: Sequence[str] = KINDS,
    progress: Progress | None = None,
) -> Verdict:
    """Run the original and the candidates on the same data and compare every output.

    Inputs and outputs are matched by name, else by position and type, and images in NHWC with images in NCHW where the
    lengths leave no other way (not where the candidate is the rewritten reference). Dynamic inputs are run at several
    sizes; where the reference refuses a size, others are tried, and the notes say which ran. One probe is in memory at
    a time.

    Args:
        reference: Runs the original; its results are what is right.
        candidates: Executors of the result, or functions that make one (a result that doesn't load is not equivalent).
        probes: The user's data under the reference's names or the candidate's, run before the generated probes; or a
            function that makes it, told how the first candidate's inputs were matched.
        shapes: Shapes that the user fixed, by input name of the reference (or of the candidate).
        rtol: Relative tolerance of float outputs, in place of the default of their type.
        atol: Absolute tolerance likewise.
        seed: Seed of the generated data.
        output_names: The candidate's name for an output of the reference, where names and positions don't tell.
        locate: Whether to look for the first tensor that differs when the models are not equal.
        layers: Whether to compare inner tensors as well, on one probe.
        stand_in: Makes an executor of the original as ONNX, whose inner tensors can be looked at where the
            reference's can't.
        rewritten: Whether the candidate is the reference rewritten node by node, so that every tensor whose name is
            in both must hold the same numbers.
        kinds: Which of :data:`padfix.proof.probes.KINDS` to generate.
        progress: Told a few words before each probe.

    Raises:
        ProofUnavailableError: The reference can't run the original, contradicts itself, or has other inputs.
        UsageError: ``shapes`` doesn't fit the inputs.
    """
    proof = _WholeProof(reference, rtol, atol, dict(output_names or {}), progress or (lambda words: None))
    proof.seed, proof.rewritten = seed, rewritten
    proof.load(candidates)
    proof.match()
    proof.run_given(probes)
    proof.run_generated(shapes, seed, kinds)
    proof.measure_noise()
    proof.compare_inside(stand_in)
    verdict = proof.verdict()
    if layers:
        verdict = proof.by_layer(verdict, stand_in)
    return verdict if verdict.equivalent or not locate else proof.locate(verdict, stand_in)


@dataclass
class _Run:
    """A run to look into: what it was fed, who ran it, and the names of the outputs on both sides."""

    probe: Probe
    candidate: Executor
    outputs: dict[str, str]
    types: list[np.dtype[Any]]


@dataclass
class _Worst:
    """The run that used most of its tolerance so far, with what the reference gave there."""

    share: float
    index: int
    probe: Probe
    results: Mapping[str, Array]


@dataclass
class _WholeProof:
    reference: Executor
    rtol: float | None
    atol: float | None
    output_names: Mapping[str, str]
    progress: Progress
    candidates: list[Executor] = field(default_factory=list)
    runs: list[ProofRun] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    is_consistent: bool = False
    rewritten: bool = False
    seed: int = 0
    computed: list[np.dtype[Any]] | None = None
    matches: dict[int, list[InputMatch]] = field(default_factory=dict)
    orders: dict[str, Order] = field(default_factory=dict)
    varies: dict[str, bool] = field(default_factory=dict)
    accepted: dict[str, tuple[int, ...]] | None = None
    failure: _Run | None = None
    sample: _Run | None = None
    inside: FirstDifference | None = None
    kept: list[Probe] = field(default_factory=list)
    worst: _Worst | None = None

    def load(self, candidates: Sequence[Candidate]) -> None:
        """Make the candidates that are still to be made; one that can't be is a run that failed."""
        for number, candidate in enumerate(candidates):
            try:
                executor = candidate if hasattr(candidate, "run") else candidate()
            except ExecutionFailed as failure:
                self._fail("load", f"candidate {number}", {}, f"it can't be loaded: {failure.message}")
            else:
                self.candidates.append(cast(Executor, executor))

    def verdict(self) -> Verdict:
        """Return what was found."""
        equivalent = bool(self.runs) and all(run.equivalent for run in self.runs)
        return Verdict(equivalent, self.reference.name, tuple(self.runs), tuple(self.notes), self.inside)

    def compare_inside(self, stand_in: Callable[[], Executor] | None) -> None:
        """Compare inner tensors where the outputs agree: those that the models compute in different ways."""
        constant = [name for name, varies in self.varies.items() if not varies]
        found: Inside | None = None
        if self.kept and self.runs and all(run.equivalent for run in self.runs):
            # The rewritten nodes were proven on their own before: one probe shows whether they are in their place.
            for probe in self.kept[:1] if self.rewritten else self.kept:
                found = self._compare_inside(probe, stand_in)
                if found is None or found.place is not None:
                    break
        if constant:
            words = ", which proves little about it"
            if found is not None and found.compared + found.alike > 0:
                words = (
                    f"; of the inner tensors that have one name in both models, {found.alike} are computed by the same "
                    f"nodes from the same weights, {found.compared} others agree"
                )
            self.notes.append(
                f"Output {', '.join(constant)} held one single value on every probe{words}. Real data (--probe) "
                "would say more."
            )

    def _compare_inside(self, probe: Probe, stand_in: Callable[[], Executor] | None) -> Inside | None:
        from padfix.proof.inner_tensors import exposable
        from padfix.proof.inside import compare_inside

        candidate = self.candidates[0]
        graph = graph_of(candidate)
        if self.reference.name != candidate.name and graph is not None and quantizes(graph):
            return None  # Two runtimes round to steps that may lie one apart.
        try:
            first = exposable(self.reference) or (exposable(stand_in()) if stand_in is not None else None)
            second = exposable(candidate)
            if first is None or second is None:
                return None
            self.progress("Comparing inner tensors")
            inside = compare_inside(
                first,
                second,
                (probe.arrays, self._feeds(candidate, probe)),
                _same_inputs(self.matches[id(candidate)]),
                rewritten=self.rewritten,
                quantized=graph is not None and quantizes(graph),
                rtol=self.rtol,
                atol=self.atol,
                types=self._types(probe),
            )
        except (ExecutionFailed, ProofUnavailableError):
            return None  # The stand-in can't run what the reference can; the outputs were compared all the same.
        if inside.place is not None:
            self.inside = inside.place
            detail = f"an inner tensor that the outputs hide: {inside.place.difference.detail}"
            difference = dataclasses.replace(inside.place.difference, detail=detail)
            self.runs.append(ProofRun(probe.name, label_of(candidate), probe.shapes, (difference,)))
        return inside

    def match(self) -> None:
        """Find for every candidate where each of its inputs comes from.

        Raises:
            ProofUnavailableError: The candidate wants an input that the reference doesn't have.
        """
        try:
            given = self._with_facts(self.reference.inputs, self.reference)
            for candidate in self.candidates:
                found = match_inputs(given, self._with_facts(read_inputs(candidate), candidate))
                if found and isinstance(found[0], str):
                    raise self._strange(candidate, found)
                self.matches[id(candidate)] = cast(list[InputMatch], found)
        except ExecutionFailed as failure:
            raise self._unavailable(failure.message) from None
        for match in self._first_matches():
            name, other = match.reference.name, match.candidate.name
            if match.order is not None:
                self.notes.append(
                    f"Input {name!r} has its axes in the order {list(match.order)} in the result ({other!r})."
                )
            if match.candidate.elem_type != match.reference.elem_type:
                self.notes.append(
                    f"Input {name!r} is of type {numpy_type(match.candidate.elem_type)} in the result, not "
                    f"{numpy_type(match.reference.elem_type)}; both are given numbers that both types hold."
                )

    def _with_facts(self, inputs: Sequence[TensorSpec], executor: Executor) -> list[TensorSpec]:
        graph = graph_of(executor) if is_dynamic(inputs) else None
        return refine(inputs, graph) if graph is not None else list(inputs)

    def _first_matches(self) -> list[InputMatch]:
        return self.matches[id(self.candidates[0])] if self.candidates else []

    def run_given(self, probes: Iterable[Probe] | Callable[[Sequence[InputMatch]], Iterable[Probe]] | None) -> None:
        """Run the user's probes; every one of them must run."""
        given = probes(self._first_matches()) if callable(probes) else probes or ()
        for probe in given:
            self.progress(f"Proving on {probe.name}")
            try:
                named = self._common(Probe(probe.name, self._for_reference(probe.arrays)))
                results = self._reference_run(named)
            except ExecutionFailed as failure:
                raise self._unavailable(failure.message) from None
            self._judge(named, results)

    def _common(self, probe: Probe) -> Probe:
        """Return the probe in numbers that both sides can hold."""
        arrays = dict(probe.arrays)
        for match in self._first_matches():
            if match.reference.name in arrays:
                arrays[match.reference.name] = match.common(arrays[match.reference.name])
        return Probe(probe.name, arrays)

    def run_generated(self, shapes: Mapping[str, Sequence[int]] | None, seed: int, kinds: Sequence[str]) -> None:
        """Run the generated probes; at least one must run unless the user's did."""
        failures: list[str] = []
        try:
            inputs, controls = self._inputs(shapes)
        except ExecutionFailed as failure:
            if not self.runs:
                raise self._unavailable(failure.message) from None
            self.notes.append(f"Only the given probes were run: {failure.message}")
            return
        dynamic = is_dynamic(inputs)
        ran: list[str] = []
        for kind in kinds:
            if ran and watch.time_is_short():
                self.notes.append(
                    f"Half of the time was spent after {len(ran)} of {len(KINDS)} kinds of data, and the others were "
                    "left out; --timeout SECONDS allows more."
                )
                break
            self.progress(f"Proving on {kind} data")
            found = self._first_that_runs(inputs, controls, kind, seed, failures)
            if found is None:
                # No size of any kind has run yet: the other kinds would only fail at the same sizes again.
                if not ran and dynamic:
                    break
                continue
            probe, results = found
            ran.append(f"{kind} at {_shapes_text(probe.shapes)}")
            self._judge(probe, results)
        if not ran and not self.runs:
            raise self._unavailable(failures[0] if failures else "there is nothing to run.", dynamic=dynamic)
        if dynamic and ran:
            self.notes.append(f"Sizes run: {'; '.join(ran)}.")
        if failures:
            self.notes.append(
                f"{label_of(self.reference)} refused {len(failures)} of the inputs tried; the first time: {failures[0]}"
            )

    def _inputs(self, shapes: Mapping[str, Sequence[int]] | None) -> tuple[list[TensorSpec], dict[str, Control]]:
        inputs = self.reference.inputs
        known = {spec.name for spec in inputs}
        named: dict[str, Sequence[int]] = {}
        for name, shape in (shapes or {}).items():
            named[name if name in known else self._reference_name(name)] = shape
        inputs = self._narrowed(with_shapes(inputs, named))
        controls: dict[str, Control] = {}
        if is_dynamic(inputs) or any(len(spec.shape or ()) == 1 for spec in inputs):
            for executor in (self.reference, *self.candidates):
                graph = graph_of(executor)
                if graph is not None:
                    inputs = refine(inputs, graph)
                    controls = {**control_inputs(graph), **controls}
        for spec in inputs:
            if spec.shape is None:
                raise ExecutionFailed(
                    f"The number of axes of input {spec.name!r} is not known; give --shape {spec.name}=..."
                )
        return inputs, controls

    def _narrowed(self, inputs: Sequence[TensorSpec]) -> list[TensorSpec]:
        """Return the inputs with the lengths that only the candidate fixes, and say which those are."""
        if self.rewritten:
            return list(inputs)
        found = []
        for spec in inputs:
            match = next((each for each in self._first_matches() if each.reference.name == spec.name), None)
            theirs = match.candidate.shape if match is not None else None
            if match is None or theirs is None or (spec.shape is not None and len(spec.shape) != len(theirs)):
                found.append(spec)
                continue
            if match.order is not None:
                theirs = tuple(theirs[int(axis)] for axis in np.argsort(match.order))
            mine = spec.shape or (None,) * len(theirs)
            shape = tuple(own if isinstance(own, int) else other for own, other in zip(mine, theirs, strict=True))
            fixed = [axis for axis, own in enumerate(mine) if not isinstance(own, int) and isinstance(shape[axis], int)]
            # A name stands for one length everywhere; where the candidate only has another name, ours stays.
            shape = tuple(shape[axis] if axis in fixed else mine[axis] for axis in range(len(mine)))
            if fixed:
                self.notes.append(
                    f"The result takes input {spec.name!r} only at {_lengths_text(shape)}, the original at any length "
                    f"of axis {', '.join(map(str, fixed))}; they were compared there."
                )
            found.append(dataclasses.replace(spec, shape=shape))
        return found

    def _reference_name(self, name: str) -> str:
        for candidate in self.candidates:
            for match in self.matches.get(id(candidate), ()):
                if match.candidate.name == name:
                    return match.reference.name
        return name

    def _first_that_runs(
        self,
        inputs: Sequence[TensorSpec],
        controls: Mapping[str, Control],
        kind: str,
        seed: int,
        failures: list[str],
    ) -> tuple[Probe, dict[str, Array]] | None:
        for shapes in self._sizes(inputs, kind):
            try:
                first = self._common(make_probe(inputs, shapes, kind, seed=seed, controls=controls))
            except ExecutionFailed as failure:
                failures.append(_sentence(failure.message))
                continue
            for probe in chain((first,), calmer(first, inputs)):
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
        """Return the types that the models compute in: those of the inputs, and what either casts to."""
        if self.computed is None:
            graphs = [graph for each in (self.reference, *self.candidates) if (graph := graph_of(each)) is not None]
            self.computed = [numpy_type(each) for each in sorted(set().union(*map(cast_types, graphs)))]
        return [*(array.dtype for array in probe.arrays.values()), *self.computed]

    def _require_repeatable(self, probe: Probe, results: Mapping[str, Array]) -> None:
        """Run the reference again: numbers that are others each time can't be compared with anything."""
        again = self.reference.run(probe.arrays)
        types = self._types(probe)
        different = [
            name
            for name, array in results.items()
            if not compare(name, array, again.get(name), rtol=self.rtol, atol=self.atol, input_types=types).equivalent
        ]
        if different:
            raise ProofUnavailableError(
                f"{label_of(self.reference)} gives other numbers each time the original is run "
                f"(output {', '.join(different)}); the model draws random numbers or keeps a state.",
                "Remove what is random (dropout in training mode, random initial states), fix a switch for it with "
                "--constant where the source is TensorFlow's, or use --no-verify.",
            )

    def _judge(self, probe: Probe, results: Mapping[str, Array]) -> None:
        if len(self.kept) < 2:
            self.kept.append(probe)
        types = self._types(probe)
        noise: dict[str, float] = {}
        for candidate in self.candidates:
            try:
                feeds = self._feeds(candidate, probe)
                found = candidate.run(feeds)
            except ExecutionFailed as failure:
                if failure.is_out_of_memory:
                    raise ProofUnavailableError(
                        f"Memory ran out in {label_of(candidate)}: {_sentence(failure.message)}", _memory_hint()
                    ) from None
                self._fail(probe.name, label_of(candidate), probe.shapes, f"it can't be run: {failure.message}")
                names = self._matched_outputs(results, dict.fromkeys(candidate.outputs))
                self._remember(probe, candidate, self.runs[-1].outputs, names, types)
                continue
            differences = self._compare(results, found, types)
            if not all(difference.equivalent for difference in differences):
                differences = self._like_with_like(candidate, probe, found, types) or differences
            if not all(difference.equivalent for difference in differences):
                differences = self._above_noise(probe, results, found, types, noise) or differences
            if not all(difference.equivalent for difference in differences):
                differences = self._within_leeway(probe, results, differences)
            if not all(difference.equivalent for difference in differences):
                differences = self._within_steps(probe, results, found, differences)
            share = max((each.share for each in differences if np.isfinite(each.share)), default=0.0)
            if share > (self.worst.share if self.worst is not None else 0.0):
                self.worst = _Worst(share, len(self.runs), probe, results)
            self.runs.append(ProofRun(probe.name, label_of(candidate), probe.shapes, differences))
            self.sample = self.sample or _Run(probe, candidate, self._matched_outputs(results, found), types)
            self._remember(probe, candidate, differences, self._matched_outputs(results, found), types)

    def measure_noise(self) -> None:
        """Put the run that comes closest to its tolerance, or exceeds it most, beside the reference's own noise."""
        if self.worst is None:
            return
        self.progress("Measuring the original's own rounding noise")
        probe, results = self.worst.probe, self.worst.results
        # One sample tells the order of magnitude; more where a verdict hangs on it.
        noise = floor(spread(self.reference, probe.arrays, results, self.seed, samples=1), results)
        run = self.runs[self.worst.index]
        outputs = (dataclasses.replace(each, noise=noise.get(each.name)) for each in run.outputs)
        self.runs[self.worst.index] = dataclasses.replace(run, outputs=tuple(outputs))

    def _remember(
        self,
        probe: Probe,
        candidate: Executor,
        differences: Sequence[OutputDifference],
        names: Mapping[str, str],
        types: list[np.dtype[Any]],
    ) -> None:
        """Keep the first run that failed, one without optimisations before one with them."""
        wrong = {each.name: names[each.name] for each in differences if not each.equivalent and each.name in names}
        optimised = bool(getattr(candidate, "optimised", False))
        earlier = self.failure
        if wrong and (earlier is None or (getattr(earlier.candidate, "optimised", False) and not optimised)):
            self.failure = _Run(probe, candidate, wrong, types)

    def by_layer(self, verdict: Verdict, stand_in: Callable[[], Executor] | None) -> Verdict:
        """Return ``verdict`` with the differences of inner tensors, where they can be looked at."""
        from padfix.proof.inner_tensors import exposable
        from padfix.proof.layers import layer_differences

        run = self.failure or self.sample
        if run is None:
            return verdict
        self.progress("Comparing layer by layer")
        first, second = exposable(self.reference), exposable(run.candidate)
        stands_in = first is None and stand_in is not None
        try:
            if stands_in and stand_in is not None:
                first = exposable(stand_in())
            if first is None or second is None:
                return verdict
            layers = layer_differences(
                first,
                second,
                (run.probe.arrays, self._feeds(run.candidate, run.probe)),
                run.outputs,
                rtol=self.rtol,
                atol=self.atol,
                types=run.types,
            )
        except ExecutionFailed as trouble:
            return _with_note(verdict, f"Inner tensors could not be compared: {trouble.message}")
        verdict = dataclasses.replace(verdict, layers=layers)
        if stands_in and layers:
            return _with_note(verdict, "Layer by layer, the original as ONNX, before any rewrite, was compared.")
        return verdict

    def locate(self, verdict: Verdict, stand_in: Callable[[], Executor] | None) -> Verdict:
        """Return ``verdict`` with the place where the models part, or with a note that says why there is none."""
        from padfix.proof.inner_tensors import exposable
        from padfix.proof.locate import first_difference

        failure = self.failure
        if failure is None:
            return verdict
        self.progress("Looking for the first tensor that differs")
        first = exposable(self.reference)
        stands_in = first is None and stand_in is not None
        try:
            if stands_in and stand_in is not None:
                first = exposable(stand_in())
            second = exposable(failure.candidate)
            if first is None or second is None:
                return _with_note(verdict, "The place of the difference is only looked for between ONNX models.")
            place = first_difference(
                first,
                second,
                (failure.probe.arrays, self._feeds(failure.candidate, failure.probe)),
                failure.outputs,
                rtol=self.rtol,
                atol=self.atol,
                types=failure.types,
                inputs=_same_inputs(self.matches[id(failure.candidate)]),
            )
        except ExecutionFailed as trouble:
            return _with_note(verdict, f"The place of the difference could not be looked for: {trouble.message}")
        if place is not None:
            return dataclasses.replace(verdict, first_difference=place)
        if stands_in:
            note = (
                "The original as ONNX, before any rewrite, gives the same numbers as the result: the difference arises "
                "in the conversion from TensorFlow."
            )
        elif getattr(failure.candidate, "optimised", False):
            note = (
                "The difference is there with all optimisations only, and not where inner tensors are looked at: a "
                "fusion of ONNX Runtime's optimiser."
            )
        else:
            note = "The difference is gone where the models are cut to look at their inner tensors."
        return _with_note(verdict, note)

    def _compare(
        self, results: Mapping[str, Array], found: Mapping[str, Array], types: Sequence[np.dtype[Any]]
    ) -> tuple[OutputDifference, ...]:
        names = self._matched_outputs(results, found)
        return tuple(
            compare(
                name,
                array,
                self._in_layout(name, array, found.get(names[name])),
                rtol=self.rtol,
                atol=self.atol,
                input_types=types,
            )
            for name, array in results.items()
        )

    def _within_leeway(
        self, probe: Probe, results: Mapping[str, Array], differences: tuple[OutputDifference, ...]
    ) -> tuple[OutputDifference, ...]:
        """Accept what the rounding of a quantised original leaves open; not where the user gave tolerances."""
        if self.rtol is not None or self.atol is not None:
            return differences
        judged, words = within(self.reference, probe.arrays, results, differences)
        note = f"Quantised numbers differ by their rounding on probe {probe.name!r}: {words}."
        if words and note not in self.notes:
            self.notes.append(note)
        return judged

    def _within_steps(
        self,
        probe: Probe,
        results: Mapping[str, Array],
        found: Mapping[str, Array],
        differences: tuple[OutputDifference, ...],
    ) -> tuple[OutputDifference, ...]:
        """Accept of two quantized models what either differs from itself at another optimisation level.

        Not where the result is the original rewritten, nor where the user gave tolerances.
        """
        reference, runners = self.reference, self.candidates[:2]
        if self.rewritten or self.rtol is not None or self.atol is not None or len(runners) < 2:
            return differences
        graphs = [graph for each in (reference, runners[0]) if (graph := graph_of(each)) is not None]
        if not isinstance(reference, OnnxRuntimeExecutor) or not any(map(quantizes, graphs)):
            return differences
        own, other = between_levels(
            [
                (reference, reference.optimised_twin, probe.arrays),
                (runners[0], runners[1], self._feeds(runners[0], probe)),
            ]
        )
        names = self._matched_outputs(results, found)
        judged = []
        for each in differences:
            allowed = STEPS * max(own.get(each.name, 0.0), other.get(names.get(each.name, ""), 0.0))
            if not each.equivalent and each.max_abs_diff <= allowed:
                each = dataclasses.replace(each, equivalent=True, tolerance=allowed, detail="")
                note = (
                    "The models are quantized: where a value lies between two steps, another order of sums takes the "
                    f"other one. {STEPS:.0f} times the distance between two optimisation levels of one model was "
                    "allowed."
                )
                if note not in self.notes:
                    self.notes.append(note)
            judged.append(each)
        return tuple(judged)

    def _above_noise(
        self,
        probe: Probe,
        results: Mapping[str, Array],
        found: Mapping[str, Array],
        types: Sequence[np.dtype[Any]],
        noise: dict[str, float],
    ) -> tuple[OutputDifference, ...] | None:
        """Compare again with the original's own spread on this probe allowed for, or return None.

        Not where the user gave tolerances. ``noise`` keeps the spread from one candidate to the next.
        """
        if self.rtol is not None or self.atol is not None:
            return None
        if not noise:
            self._require_repeatable(probe, results)
            noise.update(spread(self.reference, probe.arrays, results, self.seed))
        names = self._matched_outputs(results, found)
        differences = tuple(
            compare(
                name,
                array,
                self._in_layout(name, array, found.get(names[name])),
                atol=DEFAULT_ATOL + FACTOR * noise.get(name, 0.0),
                input_types=types,
            )
            for name, array in results.items()
        )
        if not all(difference.equivalent for difference in differences):
            return None
        worst = max(noise, key=lambda name: noise[name])
        self.notes.append(
            f"On probe {probe.name!r} the original itself moves by {noise[worst]:.2g} (output {worst!r}) when its "
            f"inputs move in their last bit; {FACTOR:.0f} times that was allowed for there."
        )
        return differences

    def _like_with_like(
        self, candidate: Executor, probe: Probe, found: Mapping[str, Array], types: Sequence[np.dtype[Any]]
    ) -> tuple[OutputDifference, ...] | None:
        """Judge the optimised run of a quantized model by the original's optimised run, or return None.

        Quantization turns a difference in the last bit into a whole step, and layers multiply it: ONNX Runtime's
        optimiser moves such a model far beyond any tolerance even when nothing was rewritten. So the result must equal
        the original level by level. Only for quantized models: elsewhere the optimiser's own slips must show.
        """
        reference = self.reference
        if not isinstance(reference, OnnxRuntimeExecutor) or reference.optimised:
            return None
        graph = graph_of(reference)
        if not getattr(candidate, "optimised", False) or graph is None or not quantizes(graph):
            return None
        try:
            results = reference.optimised_twin.run(probe.arrays)
        except ExecutionFailed:
            return None
        differences = self._compare(results, found, types)
        if not all(difference.equivalent for difference in differences):
            return None
        note = (
            "The model is quantized and ONNX Runtime's optimiser itself changes the original's numbers; "
            "the optimised result was compared with the optimised original."
        )
        if note not in self.notes:
            self.notes.append(note)
        return differences

    def _fail(self, probe: str, label: str, shapes: dict[str, tuple[int, ...]], detail: str) -> None:
        try:
            names = self.reference.outputs
        except ExecutionFailed:
            names = []
        outputs = [OutputDifference(name, float("inf"), float("inf"), 0.0, False, detail) for name in names or ["-"]]
        self.runs.append(ProofRun(probe, label, shapes, tuple(outputs)))

    def _matched_outputs(self, results: Mapping[str, Array], found: Mapping[str, object]) -> dict[str, str]:
        return match_outputs(results, found, self.output_names)

    def _in_layout(self, name: str, array: Array, found: Array | None) -> Array | None:
        """Return the candidate's output in the reference's layout, where its shape tells that it has another."""
        if found is None or self.rewritten:
            return found
        order = order_between(array.shape, found.shape) if array.shape != found.shape else None
        if order is not None and name not in self.orders:
            self.orders[name] = order
            self.notes.append(f"Output {name!r} has its axes in the order {list(order)} in the result.")
        order = self.orders.get(name)
        if order is None or len(order) != found.ndim or [array.shape[axis] for axis in order] != list(found.shape):
            return found
        return found.transpose(np.argsort(order))

    def _feeds(self, candidate: Executor, probe: Probe) -> dict[str, Array]:
        """Return the probe's arrays under the candidate's names, in its layout and types."""
        matches = self.matches[id(candidate)]
        feeds = {match.candidate.name: match.feed(probe.arrays[match.reference.name]) for match in matches}
        unread = (spec for spec in candidate.inputs if spec.name not in feeds)
        return {**feeds, **{spec.name: blank(spec) for spec in unread}}

    def _for_reference(self, arrays: Mapping[str, Array]) -> dict[str, Array]:
        """Return the user's arrays under the reference's names; they may bear the candidate's."""
        wanted = self.reference.inputs
        if all(spec.name in arrays for spec in wanted):
            return {spec.name: arrays[spec.name] for spec in wanted}
        renamed = {self._reference_name(name): array for name, array in arrays.items()}
        missing = [spec.name for spec in wanted if spec.name not in renamed]
        if missing:
            raise ProofUnavailableError(
                f"The probe has no array for input {missing[0]!r}.",
                f"The inputs are: {', '.join(spec.name for spec in wanted)}.",
            )
        return {spec.name: renamed[spec.name] for spec in wanted}

    def _strange(self, candidate: Executor, lost: Sequence[str]) -> ProofUnavailableError:
        listed = ", ".join(map(repr, lost[:4])) + (f" and {len(lost) - 4} others" if len(lost) > 4 else "")
        return ProofUnavailableError(
            f"The two models have different inputs: nothing fits {listed} of {label_of(candidate)}.",
            f"The reference has: {', '.join(spec.name for spec in self.reference.inputs) or 'no inputs'}.",
        )

    def _unavailable(self, message: str, *, dynamic: bool = False) -> ProofUnavailableError:
        hints = []
        if watch.memory_limit() and ExecutionFailed(message).is_out_of_memory:
            hints.append(_memory_hint())
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


def _same_inputs(matches: Sequence[InputMatch]) -> dict[str, str]:
    """Return the candidate's name for each input that both are given in the same layout and type."""
    return {
        match.reference.name: match.candidate.name
        for match in matches
        if match.order is None and match.reference.elem_type == match.candidate.elem_type
    }


def _memory_hint() -> str:
    limit = watch.memory_limit()
    return f"It may use {limit / 1024:.1f} GiB; allow more with --memory GIB." if limit else "Close other programs."


def _with_note(verdict: Verdict, note: str) -> Verdict:
    return dataclasses.replace(verdict, notes=(*verdict.notes, note))


def _says_something(array: Array) -> bool:
    """Whether a result is more than one value all over; single values and strings get the benefit of the doubt."""
    if array.dtype.kind in "OSU":
        return True
    finite = array[np.isfinite(array)]
    return finite.size > 0 and (array.size == 1 or bool(np.any(finite != finite[0])))


def _sentence(text: str) -> str:
    return text if text.endswith((".", "...")) else f"{text}."


def _lengths_text(shape: Sequence[int | str | None]) -> str:
    return f"[{', '.join('?' if length is None else str(length) for length in shape)}]"


def _shapes_text(shapes: Mapping[str, tuple[int, ...]]) -> str:
    return ", ".join(f"{name} {list(shape)}" for name, shape in shapes.items()) or "no inputs"
