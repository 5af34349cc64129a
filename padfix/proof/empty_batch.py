"""Runs on no rows at all: a detector that finds nothing hands an empty batch to what comes behind it.

What the original takes then, the result has to take, and give the same. At such sizes runtimes crash here and there, so
both run in processes of their own. TensorFlow takes seconds to start there, and its rules of shapes tell what comes out
of most graphs; so it is only started where those leave something open, or the result, as it is written, does otherwise.
Other open axes are tried by themselves, of TensorFlow's models where its rules tell what comes out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np

from padfix.proof.alone import Alone
from padfix.proof.compare import is_real
from padfix.proof.empty_tensors import leaves_a_window_empty
from padfix.proof.executors import Array, ExecutionFailed, Executor, OnnxRuntimeExecutor, TensorSpec, label_of
from padfix.proof.feeding import Feeding
from padfix.proof.generated import sentence, shapes_text
from padfix.proof.probes import Probe
from padfix.proof.spec_executor import SpecExecutor
from padfix.proof.verdict import Ran
from padfix.results import OutputDifference, ProofRun, Verdict

PROBE = "empty batch"
_OTHER_AXIS = "empty axis"

Compare = Callable[[Mapping[str, Array], Mapping[str, Array], Mapping[str, str]], tuple[OutputDifference, ...]]

_MOST = 8
"""Ways to be empty that are tried."""


def empty_probes(inputs: Sequence[TensorSpec], probe: Probe) -> Iterator[Probe]:
    """Yield the probe without rows: of each open first axis by itself, then of all, then of each other open axis.

    A symbol is one length wherever it stands; axes without a name are each their own.
    """
    places: dict[object, list[tuple[str, int]]] = {}
    for spec in inputs:
        for axis, length in enumerate(spec.shape or ()):
            if not isinstance(length, int):
                places.setdefault(length or (spec.name, axis), []).append((spec.name, axis))
    rows = [key for key, axes in places.items() if any(axis == 0 for _, axis in axes)]
    others = [key for key in places if key not in rows]
    ways = [[key] for key in rows[:_MOST]] + ([rows] if len(rows) > 1 else []) + [[key] for key in others]
    for chosen in ways[: max(_MOST, len(rows[:_MOST]) + 1)]:
        arrays = dict(probe.arrays)
        for name, axis in (place for key in chosen for place in places[key]):
            arrays[name] = np.take(arrays[name], [], axis)
        yield Probe(PROBE if chosen[0] in rows else _OTHER_AXIS, arrays)


def hint_of(verdict: Verdict) -> str:
    """Return what can be done about a result that has no answer without rows, and only there; else nothing."""
    failed = {run.probe for run in verdict.runs if not run.equivalent}
    return " --shape fixes the batch of a model that is never fed an empty one." if failed == {PROBE} else ""


class EmptyBatch:
    """Holds a result against the original where there are no rows.

    Args:
        reference: Runs the original.
        candidates: Run the result.
        feeding: What both are fed.
        compare: Compares results of the original with others, under the names that these have.
        partners: The candidate's name for each output of the original.
    """

    def __init__(
        self,
        reference: Executor,
        candidates: Sequence[Executor],
        feeding: Feeding,
        compare: Compare,
        partners: Mapping[str, str],
    ) -> None:
        self._reference, self._candidates, self._feeding = reference, candidates, feeding
        self._original, *self._results = [Alone(each) for each in (reference, *candidates)]
        self._compare, self._partners = compare, partners
        self.wrong: list[Ran] = []
        self.notes: list[str] = []
        self._is_endless = False  # whether a run did not end: most likely no window of nothing does

    def agrees(self, probe: Probe) -> bool:
        """Whether the result gives on a probe what the original gives; also where that takes no such probe."""
        stated = self._stated(probe)
        if probe.name != PROBE and not self._is_defined(probe):
            return self._is_stated(probe, stated)
        found = [self._found(number, probe) for number in range(len(self._candidates))]
        as_stated = [bool(stated) and self._is_as_stated(each, stated) for each in found]
        if all(as_stated):
            return True
        if any(as_stated) and all(
            good or (isinstance(each, ExecutionFailed) and _is_optimised(candidate))
            for good, each, candidate in zip(as_stated, found, self._candidates, strict=True)
        ):
            self._note_optimiser(probe)
            return True
        try:
            expected = self._original.run(probe.arrays)
        except ExecutionFailed:
            return False
        if any(not _fits(array.shape, stated.get(name)) for name, array in expected.items()):
            return False  # kernels that break their own rules when they have nothing to do
        ran = [self._judged(number, probe, expected, each) for number, each in enumerate(found)]
        wrong = [each for each in ran if each is not None]
        if wrong and None in ran and all(each.optimised and each.refused for each in wrong):
            self._note_optimiser(probe)
            return True
        excuses = [
            self._excuse(number, probe, expected, found[number]) for number, each in enumerate(ran) if each is not None
        ]
        self.notes += dict.fromkeys(each for each in excuses if each is not None)
        self.wrong += [each for each, excuse in zip(wrong, excuses, strict=True) if excuse is None]
        return not wrong

    def _is_defined(self, probe: Probe) -> bool:
        """Whether ONNX Runtime runs the original, and no window of it reads nothing, where runtimes do as they like."""
        reference = self._reference
        return isinstance(reference, OnnxRuntimeExecutor) and not leaves_a_window_empty(
            reference.skeleton, probe.arrays
        )

    def _is_stated(self, probe: Probe, stated: Mapping[str, tuple[int | None, ...] | None]) -> bool:
        """Whether TensorFlow's rules tell what comes out, and the result gives that; TensorFlow is not started."""
        if not stated or self._is_endless:
            return False
        return all(self._is_as_stated(self._found(number, probe), stated) for number in range(len(self._candidates)))

    def _note_optimiser(self, probe: Probe) -> None:
        self.notes.append(
            f"What ONNX Runtime's optimiser makes of the result can't be run at {shapes_text(probe.shapes)}; "
            "as it is written, it can, and agrees."
        )

    def close(self) -> None:
        """End the processes."""
        for each in (self._original, *self._results):
            each.close()

    def _stated(self, probe: Probe) -> dict[str, tuple[int | None, ...] | None]:
        """Return what TensorFlow's rules say of the outputs' shapes; nothing where it is not the witness."""
        inner = getattr(self._reference, "inner", None)
        ask = getattr(inner, "shapes", None)
        return ask(probe.arrays, self._reference.outputs) if ask is not None else {}

    def _found(self, number: int, probe: Probe) -> dict[str, Array] | ExecutionFailed:
        try:
            return self._results[number].run(self._feeding.of_candidate(number, probe.arrays))
        except ExecutionFailed as failure:
            self._is_endless |= failure.overdue
            return failure

    def _is_as_stated(
        self, found: Mapping[str, Array] | ExecutionFailed, stated: Mapping[str, tuple[int | None, ...] | None]
    ) -> bool:
        """Whether shapes are what the rules say to the last axis, and nothing is in them that could differ."""
        if isinstance(found, ExecutionFailed):
            return False
        results = {name: found.get(self._partners.get(name, name)) for name in self._reference.outputs}
        return all(
            array is not None and array.size == 0 and array.shape == stated.get(name) for name, array in results.items()
        )

    def _judged(
        self, number: int, probe: Probe, expected: Mapping[str, Array], found: Mapping[str, Array] | ExecutionFailed
    ) -> Ran | None:
        """Return the run as one that failed, where it did."""
        candidate = self._candidates[number]
        label, where = label_of(candidate), f"at {shapes_text(probe.shapes)}"
        optimised = _is_optimised(candidate)
        if isinstance(found, ExecutionFailed):
            detail = f"{where} it can't be run: {sentence(found.message)}"
            outputs = tuple(OutputDifference(name, np.inf, np.inf, 0.0, False, detail) for name in expected)
            return Ran(ProofRun(probe.name, label, probe.shapes, outputs), optimised, refused=True)
        outputs = self._compare(expected, _where_defined(expected, found, self._partners), self._partners)
        run = ProofRun(probe.name, label, probe.shapes, outputs)
        return None if run.equivalent else Ran(run, optimised)

    def _excuse(
        self,
        number: int,
        probe: Probe,
        expected: Mapping[str, Array],
        failure: Mapping[str, Array] | ExecutionFailed,
    ) -> str | None:
        """Return what to say of a runtime that does not run the result, where that is no fault of a rewrite.

        What tf2onnx wrote often has no meaning without rows (a Reshape to a length that nothing tells), and whoever
        never feeds an empty batch needs the model all the same. Other numbers are never excused.
        """
        if not isinstance(failure, ExecutionFailed):
            return None
        where = f"at {shapes_text(probe.shapes)}"
        if probe.name != PROBE:
            return f"The original can be run {where}, the result can't: {sentence(failure.message)}"
        if not isinstance(self._reference, OnnxRuntimeExecutor | SpecExecutor):
            reason = "it crashes" if failure.crashed else sentence(failure.message).rstrip(".")
            return f"TensorFlow takes an empty batch, {where}; ONNX Runtime can't run the result there: {reason}."
        candidate = self._candidates[number]
        if failure.crashed and self._specification_agrees(candidate, number, probe, expected):
            crash = f"{label_of(candidate)} crashes {where}; the specification runs the result there, and agrees."
            return f"{crash[0].upper()}{crash[1:]}"
        return None

    def _specification_agrees(
        self, candidate: Executor, number: int, probe: Probe, expected: Mapping[str, Array]
    ) -> bool:
        if not isinstance(candidate, OnnxRuntimeExecutor):
            return False
        try:
            found = SpecExecutor(candidate.model).run(self._feeding.of_candidate(number, probe.arrays))
        except ExecutionFailed:
            return False
        compared = self._compare(expected, _where_defined(expected, found, self._partners), self._partners)
        return all(each.equivalent for each in compared)


def _is_optimised(candidate: Executor) -> bool:
    return bool(getattr(candidate, "optimised", False))


def _fits(shape: tuple[int, ...], stated: tuple[int | None, ...] | None) -> bool:
    if stated is None:
        return True
    return len(shape) == len(stated) and all(rule in (None, length) for length, rule in zip(shape, stated, strict=True))


def _where_defined(
    expected: Mapping[str, Array], found: Mapping[str, Array], partners: Mapping[str, str]
) -> dict[str, Array]:
    """Return results with the original's where it gives no number: the mean of nothing, say, is anything."""
    given = dict(found)
    for name, array in expected.items():
        other = given.get(partners.get(name, name))
        if is_real(array.dtype) and other is not None and other.shape == array.shape:
            given[partners.get(name, name)] = np.where(np.isnan(array), array, other).astype(other.dtype)
    return given
