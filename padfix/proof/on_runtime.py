"""One model on a deployment runtime, beside what it means: the outputs, and the nodes that the runtime gets wrong."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import ModelProto

from padfix.errors import ProofUnavailableError, SourceError
from padfix.files.model import Model
from padfix.proof.allowances import CONDITIONING_CAP, CONDITIONING_FACTOR
from padfix.proof.compare import is_float
from padfix.proof.executors import Array, ExecutionFailed, Executor, OnnxRuntimeExecutor
from padfix.proof.feeding import Feeding
from padfix.proof.generated import Generated
from padfix.proof.matching import InputMatch, match_outputs, order_between
from padfix.proof.probes import Probe
from padfix.proof.rounding import spread
from padfix.proof.runtime_nodes import NodeSearch, Repro
from padfix.proof.runtime_runs import (
    WHOLE,
    DeploymentRuntime,
    difference_of,
    judged,
    rounding_of,
    size_of,
    whole_share,
    with_shapes,
)
from padfix.proof.settings import Settings
from padfix.proof.sides import OnnxSide
from padfix.proof.spec_executor import SpecExecutor
from padfix.results.on_runtime import OnRuntime, RuntimeVerdict
from padfix.results.verdict import share_of

KINDS = ("normal", "ramp", "negative")

AMPLIFIED = (
    "Inputs moved in their last bits move the outputs by so much that a runtime's own rounding explains more here: %s."
)

Progress = Callable[[str], None]
OnnxExecutor = OnnxRuntimeExecutor | SpecExecutor
Given = Callable[[Sequence[InputMatch]], Iterable[Probe]] | None
"""What makes the user's probes, told how the inputs were matched; None where there are none."""


def prove_on(
    runtime: DeploymentRuntime,
    original: Executor,
    result: Executor,
    path: Path,
    *,
    probes: Given = None,
    shapes: Mapping[str, Sequence[int]] | None = None,
    progress: Progress | None = None,
    **settings: Any,
) -> tuple[RuntimeVerdict, list[Repro]]:
    """Return what the runtime makes of the ONNX file at ``path``, and a tiny model of each node that it gets wrong.

    Args:
        runtime: The runtime.
        original: Says which numbers are right.
        result: Runs the file itself, and says what its nodes compute; the original, where that is the file.
        path: The file.
        probes: The user's own data; else data is made.
        shapes: Fixed shapes of inputs.
        progress: Called with a short sentence at each stage.
        settings: The fields of :class:`Settings`; the kinds of data, which are few here, excepted.

    Raises:
        ProofUnavailableError: The original or the file itself can't be run, or they have other inputs or outputs.
        SourceError: The weights can't be read, or the model is too large to be handed on whole.
        UsageError: ``shapes`` or the data don't fit the inputs.
    """
    try:
        whole = onnx.load(path)
        whole.SerializeToString()
    except (OSError, ValueError) as error:
        raise SourceError(f"{path} can't be handed to a runtime whole: {error}") from error
    assert isinstance(result, OnnxRuntimeExecutor | SpecExecutor), "a runtime is given ONNX"
    try:
        proof = _OnRuntime(runtime, original, result, whole, Settings(**settings), progress or (lambda stage: None))
        return proof.run(probes, shapes)
    except ExecutionFailed as failure:
        other = "onnxruntime" if original.name == "spec" else "spec"
        raise ProofUnavailableError(
            f"The reference ({original.name}) can't run the model: {failure}", f"Use --reference {other}."
        ) from failure


@dataclass(frozen=True)
class _Case:
    """Data under the names of the file's inputs, and what is right, under the names and in the layout of its outputs.

    ``own`` is what the file itself gives where ONNX Runtime (or the specification) runs it.
    """

    probe: Probe
    expected: Mapping[str, Array]
    own: Mapping[str, Array]


class _OnRuntime:
    def __init__(
        self,
        runtime: DeploymentRuntime,
        original: Executor,
        result: OnnxExecutor,
        model: ModelProto,
        settings: Settings,
        tell: Progress,
    ) -> None:
        self.runtime, self.original, self.result, self.model, self.tell = runtime, original, result, model, tell
        others = [] if result is original else [result]
        self.feeding = Feeding(original, others, rewritten=settings.rewritten or not others)
        self.settings = replace(self.feeding.with_ranges(settings), kinds=KINDS)
        self.share = whole_share(model) if settings.rtol is None else settings.rtol

    def run(self, probes: Given, shapes: Mapping[str, Sequence[int]] | None) -> tuple[RuntimeVerdict, list[Repro]]:
        """Return the verdict, and the nodes that the runtime computes otherwise."""
        cases = [self._case(*each) for each in self._given(probes) or self._made(shapes)]
        sizes = {name: max(size_of(case.expected[name]) for case in cases) for name in cases[0].expected}
        outputs: list[OnRuntime] = []
        telling: list[tuple[bool, float, OnRuntime, Probe]] = []
        amplified: list[str] = []
        for number, case in enumerate(cases, 1):
            self.tell(f"Running it on {self.runtime.label}: data {number} of {len(cases)}")
            fixed = with_shapes(self.model, case.probe.arrays, case.own)
            places = [("", "")] * len(case.expected)
            found = judged(
                self.runtime, fixed, case.probe, case.expected, places, self.share, self.settings.atol or 0.0, sizes
            )
            for each in found:
                allowed = 0.0 if each.agrees or each.refused else self._amplified(case, each)
                if each.allowed < each.max_abs_diff <= allowed:
                    amplified.append(f"{each.name!r} on {each.probe} data, {allowed:.3g}")
                    each = replace(each, allowed=allowed)
                outputs.append(each)
                # Other data, on which the output is larger, hide what a node does to small numbers.
                size = max(size_of(case.expected[each.name]), WHOLE * sizes[each.name])
                telling.append((not each.agrees, share_of(each.max_abs_diff, size), each, case.probe))
        notes = (*self._notes(cases), *([AMPLIFIED % ", ".join(amplified)] if amplified else ()))
        verdict = RuntimeVerdict(self.runtime.label, self.original.name, tuple(outputs), notes=notes)
        if not outputs:
            return verdict, []
        is_wrong, _, suspicious, probe = max(telling, key=lambda each: each[:2])
        search = NodeSearch(self.runtime, OnnxSide(self.result), self.model, probe, self.tell)
        repros = search.found(is_wrong=is_wrong, is_refused=bool(suspicious.refused))
        nodes = tuple(repro.found for repro in repros)
        return replace(verdict, nodes=nodes, looked_at=search.looked_at), repros

    def _amplified(self, case: _Case, output: OnRuntime) -> float:
        """Return what the rounding of a runtime explains where the model amplifies that of its inputs."""
        array = case.own[output.name]
        moves = spread(self.result.run, case.probe.arrays, {output.name: array}).get(output.name, np.zeros(()))
        cap = CONDITIONING_CAP.get(array.dtype.name, 0.0) * size_of(array)
        return min(CONDITIONING_FACTOR * float(moves.max(initial=0.0)), cap)

    def _given(self, probes: Given) -> list[tuple[Probe, dict[str, Array]]]:
        found = []
        for probe in probes(self.feeding.first) if probes is not None else ():
            named = self.feeding.common(Probe(probe.name, self.feeding.of_reference(probe.arrays)))
            found.append((named, self.original.run(named.arrays)))
        return found

    def _made(self, shapes: Mapping[str, Sequence[int]] | None) -> list[tuple[Probe, dict[str, Array]]]:
        """Return data of each kind that the original runs on."""
        inputs, controls, _ = self.feeding.generated(shapes)
        others = [] if self.result is self.original else [self.result]
        # Where a window is longer than what it reads, runtimes do as they like.
        data = Generated(
            *(self.original, others, self.feeding, inputs, controls, self.settings, self._run),
            windows=lambda: Model(self.model),
        )
        found = [data.first_that_runs(kind) for kind in self.settings.kinds]
        cases = [case for case in found if case is not None]
        if not cases:
            raise ExecutionFailed(data.failures[-1] if data.failures else "No data could be made.")
        return cases

    def _run(self, probe: Probe) -> dict[str, Array]:
        return self.original.run(probe.arrays)

    def _case(self, probe: Probe, results: dict[str, Array]) -> _Case:
        """Return data and what is right in the terms of the file.

        Raises:
            ProofUnavailableError: The file has no such output.
        """
        if self.result is self.original:
            return _Case(probe, results, results)
        feeds = self.feeding.of_candidate(0, probe.arrays)
        own = self.result.run(feeds)
        partners = match_outputs(results, own, self.settings.output_names)
        lost = [name for name, partner in partners.items() if partner not in own]
        if lost:
            raise ProofUnavailableError(
                f"The two models have different outputs: nothing fits {lost[0]!r} of the original.",
                f"The other model gives: {', '.join(own)}.",
            )
        expected = dict(own)  # in the order of the file's outputs, those that the original lacks included
        for name, array in results.items():
            order = order_between(array.shape, own[partners[name]].shape)
            expected[partners[name]] = array if order is None else array.transpose(order)
        return _Case(Probe(probe.name, feeds), expected, own)

    def _notes(self, cases: Sequence[_Case]) -> tuple[str, ...]:
        """Say what no runtime can be held to: where the model gives no number, and where it is not the original."""
        notes = [
            f"On {case.probe.name} data output {name!r} is not a number in {np.isnan(array).sum()} of {array.size}"
            " places, which were not compared."
            for case in cases
            for name, array in case.expected.items()
            if is_float(array.dtype) and np.isnan(array).any()
        ]
        for case in cases:
            share = self.share * rounding_of(self.model, case.probe, case.expected)
            for name, array in case.expected.items():
                difference, allowed = difference_of(case.own[name], array, share, self.settings.atol or 0.0)
                if not difference <= allowed:
                    where = f"as {self.result.name} runs it on {case.probe.name} data: output {name!r}"
                    other = f"The model itself is not equal to the original, {where}; this is not the runtime's doing."
                    return (*notes, other)
        return tuple(notes)
