"""What a proof found: every run, output by output, and the place where two models part."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import isnan
from typing import Any

from padfix.results.certificate import Certificate
from padfix.results.graph_map import GraphMap
from padfix.results.record import Record


def share_of(difference: float, tolerance: float) -> float:
    """Return how much of a tolerance a difference uses: 1 at the tolerance."""
    if not difference > 0:
        return 0.0
    return difference / tolerance if tolerance > 0 else float("inf")


@dataclass(frozen=True)
class OutputDifference(Record):
    """How far one output of the candidate is from the reference, for one probe.

    ``tolerance`` is the absolute difference allowed; it scales with the output's range. ``detail`` says in words what
    the numbers can't (different shapes, not-a-number in one of the two).
    """

    name: str
    max_abs_diff: float
    max_rel_diff: float
    tolerance: float
    equivalent: bool
    detail: str = ""

    @property
    def share(self) -> float:
        """How much of what is allowed the difference uses: 1 at the tolerance."""
        return share_of(self.max_abs_diff, self.tolerance)

    @property
    def words(self) -> str:
        """How far it is, for a sentence."""
        return self.detail or f"differs by {self.max_abs_diff:.3g}, {self.tolerance:.3g} allowed"


@dataclass(frozen=True)
class Measured(Record):
    """A difference with where it was measured.

    Attributes:
        max_abs_diff: The largest absolute difference of the output in that run.
        tolerance: What is allowed there; it scales with the output's range on that probe.
        probe: The data.
        candidate: Who ran the result.
        detail: What the numbers can't say.
    """

    max_abs_diff: float
    tolerance: float
    probe: str
    candidate: str
    detail: str = ""

    @property
    def share(self) -> float:
        """How much of what is allowed the difference uses: 1 at the tolerance."""
        return share_of(self.max_abs_diff, self.tolerance)


@dataclass(frozen=True)
class OutputSummary(Record):
    """One output over all runs.

    The run that comes closest to its limit, and the one with the largest difference, need not be the same: tolerances
    scale with the data.

    Attributes:
        name: The output.
        equivalent: Whether it is within its tolerance in every run.
        closest: The difference that uses most of its tolerance, or is furthest beyond it.
        largest: The largest difference.
    """

    name: str
    equivalent: bool
    closest: Measured
    largest: Measured

    @property
    def max_abs_diff(self) -> float:
        """The largest absolute difference over all runs."""
        return self.largest.max_abs_diff


@dataclass(frozen=True)
class ProofRun(Record):
    """One probe through the reference and one executor of the candidate."""

    probe: str
    candidate: str
    shapes: dict[str, tuple[int, ...]]
    outputs: tuple[OutputDifference, ...]

    @property
    def equivalent(self) -> bool:
        """Whether every output is within its tolerance."""
        return all(output.equivalent for output in self.outputs)


@dataclass(frozen=True)
class Difference(Record):
    """One position of a tensor with the value it should have and the one it has."""

    position: tuple[int, ...]
    expected: float
    found: float


@dataclass(frozen=True)
class FirstDifference(Record):
    """Where two models part: the first tensor that differs, everything that it is computed from being equal.

    Attributes:
        tensor: Its name in the original.
        candidate_tensor: Its name in the result.
        node: The node of the original that computes it.
        op_type: That node's operator.
        candidate_node: The node of the result that computes it.
        candidate_op_type: That node's operator.
        nodes: All nodes of the original since the last tensors that agree, the one above included.
        candidate_nodes: The same of the result.
        difference: How far it is.
        positions: The worst positions with both values.
        border: How many values of the border (the outermost ring of the axes from 2 on) differ, of how many; None
            where there is no border.
        interior: The same for what is not border.
        cause: What the difference looks like, in words; empty when nothing known fits.
        graph_differences: Sentences about what the two nodes, or their weights, say differently.
        complete: False when the search was cut short and an earlier tensor may differ as well.
    """

    tensor: str
    candidate_tensor: str
    node: str
    op_type: str
    candidate_node: str
    candidate_op_type: str
    nodes: tuple[str, ...]
    candidate_nodes: tuple[str, ...]
    difference: OutputDifference
    positions: tuple[Difference, ...] = ()
    border: tuple[int, int] | None = None
    interior: tuple[int, int] | None = None
    cause: str = ""
    graph_differences: tuple[str, ...] = ()
    complete: bool = True


@dataclass(frozen=True)
class LayerDifference(Record):
    """How far one inner tensor of the result is from the original's, where it comes closest to its limit.

    Attributes:
        node: The node of the original that computes the tensor.
        op_type: That node's operator.
        difference: How far it is; its ``name`` is the tensor's.
    """

    node: str
    op_type: str
    difference: OutputDifference


@dataclass(frozen=True)
class StretchSummary(Record):
    """What lies between the tensors that both models have.

    Attributes:
        same: Number of stretches that are the same node by node and weight by weight.
        judged: Number of others, each fed the original's own values and compared by itself.
        worst: That of them which uses most of its tolerance; not always the largest.
        largest: The largest absolute difference of them all.
        unoptimised: The same where the candidate runs without optimisations.
    """

    same: int
    judged: int
    worst: LayerDifference | None = None
    largest: float = 0.0
    unoptimised: float = 0.0


@dataclass(frozen=True)
class Failure(Record):
    """Why a command ended without a result.

    Attributes:
        message: What went wrong, in a sentence or two.
        hint: What to do about it; may be empty.
        exit_code: 1 for "no", 2 for "could not tell".
    """

    message: str
    hint: str
    exit_code: int


WITNESSES = {
    "onnxruntime": "ONNX Runtime",
    "spec": "the ONNX specification (NumPy)",
    "tensorflow": "TensorFlow",
}
"""What runs an original, in the words of a sentence."""


@dataclass(frozen=True)
class Verdict(Record):
    """The whole proof: whether two models agree, who judged, and every run.

    Attributes:
        equivalent: True when every output of every run is within its tolerance (and at least one run took place).
        reference: The witness that ran the original: ``"onnxruntime"``, ``"spec"`` or ``"tensorflow"``.
        runs: One entry for each probe and executor of the candidate.
        notes: Sentences worth saying (a witness that could not run, a runtime that contradicts the specification).
        first_difference: Where the models part; None when they agree, or when nobody looked.
        certificate: Which files the proof was about; only where :func:`padfix.verify` was asked for it.
        layers: The stretches that were compared, in the order of the original's nodes; only where it was asked for.
        stretches: How many stretches are the same, and how many were compared; None where nobody could look inside.
        error: Why it could not be told; ``equivalent`` is then False, as nothing was shown.
        loosened: Whether the user's tolerances allowed more of some output than the documented defaults.
        ranges: What the generated data of an input lay within, where the user or the configuration file told that.
    """

    equivalent: bool
    reference: str
    runs: tuple[ProofRun, ...] = ()
    notes: tuple[str, ...] = ()
    first_difference: FirstDifference | None = None
    certificate: Certificate | None = None
    layers: tuple[LayerDifference, ...] = ()
    stretches: StretchSummary | None = None
    loosened: bool = False
    ranges: dict[str, tuple[float, float]] = field(default_factory=dict)
    error: Failure | None = None
    maps: tuple[GraphMap, ...] = field(default=(), compare=False, repr=False)

    @property
    def outputs(self) -> tuple[OutputSummary, ...]:
        """Each output over all runs, in the order in which the runs name them."""
        seen: dict[str, list[tuple[ProofRun, OutputDifference]]] = {}
        for run in self.runs:
            for output in run.outputs:
                seen.setdefault(output.name, []).append((run, output))
        return tuple(_summary(name, measured) for name, measured in seen.items())

    @property
    def why_not(self) -> str:
        """Where the models are not equal, in one sentence; worth saying of a verdict that says no."""
        for run in self.runs:
            bad = [output for output in run.outputs if not output.equivalent]
            if bad:
                parts = ", ".join(f"{output.name} ({output.words})" for output in bad)
                return f"The result is not equal to the original on probe {run.probe!r} in {run.candidate}: {parts}."
        return "The result could not be shown to be equal to the original."

    def to_dict(self) -> dict[str, Any]:
        """Return the verdict as JSON-ready values, with the summary of each output."""
        return {**super().to_dict(), "outputs": [output.to_dict() for output in self.outputs]}


def _summary(name: str, measured: Sequence[tuple[ProofRun, OutputDifference]]) -> OutputSummary:
    closest = max(measured, key=lambda each: (not each[1].equivalent, each[1].share))
    largest = max(measured, key=lambda each: (isnan(each[1].max_abs_diff), each[1].max_abs_diff))
    equivalent = all(output.equivalent for _, output in measured)
    return OutputSummary(name, equivalent, *(_measured(*each) for each in (closest, largest)))


def _measured(run: ProofRun, output: OutputDifference) -> Measured:
    return Measured(output.max_abs_diff, output.tolerance, run.probe, run.candidate, output.detail)
