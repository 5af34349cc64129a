"""What became of findings, and where runtimes were found to disagree."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from padfix.results.findings import Finding, Severity
from padfix.results.record import Record


@dataclass(frozen=True)
class LocalProof(Record):
    """The proof of one rewrite on its own pair of tiny models; no cases for a correction that no computation sees.

    Attributes:
        cases: Number of (shape, data) cases that both models were run on.
        max_abs_diff: Largest absolute difference over all cases and witnesses.
        witnesses: Names of the executors that agreed, for example ``("spec", "onnxruntime")``.
    """

    cases: int
    max_abs_diff: float
    witnesses: tuple[str, ...]


@dataclass(frozen=True)
class Rewritten(Record):
    """A finding that was rewritten.

    Attributes:
        finding: As it was.
        proof: Of the rewrite on its own; None only with ``--no-verify``.
        before: The nodes that were there, a line each: operator and attributes, without names or weights.
        after: Those that took their place. Both empty for a correction of what a graph declares.
    """

    finding: Finding
    proof: LocalProof | None
    before: tuple[str, ...] = ()
    after: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return the finding's keys, ``proof``, ``before`` and ``after``."""
        content = super().to_dict()
        return {**content.pop("finding"), **content}


@dataclass(frozen=True)
class Refused(Record):
    """A finding that can't be rewritten exactly, with the reason."""

    finding: Finding
    reason: str

    @property
    def blocks(self) -> bool:
        """Whether it keeps ``convert`` from saying yes, as it would keep ``check`` from it."""
        return self.finding.severity.rank >= Severity.WARNING.rank

    def to_dict(self) -> dict[str, Any]:
        """Return the finding's keys and ``reason``."""
        return {**self.finding.to_dict(), "reason": self.reason}


@dataclass(frozen=True)
class Sample(Record):
    """A result by its shape and a few of its values, the first of them at ``position``, in row-major order."""

    shape: tuple[int, ...]
    position: tuple[int, ...]
    values: tuple[float, ...]


@dataclass(frozen=True)
class Disagreement(Record):
    """A node of the original that a runtime can't run, or runs to another result than the specification gives.

    Found by running the node on its own, with small inputs.

    Attributes:
        graph: Path of scopes; see :class:`Finding`.
        node: The node's name.
        op_type: Its operator.
        runtime: Name of the runtime, ``"onnxruntime"``.
        version: Its version.
        message: What it does, in one sentence; its own words where it refuses the node.
        input_shapes: The shapes that it was run with.
        specified: What the specification gives; None where the runtime refuses the node before it is run.
        found: What the runtime gives; None where it refuses the node.
        gives_none: Whether it gives no number (NaN) wherever it differs, and the specification a finite one there.
    """

    graph: str
    node: str
    op_type: str
    runtime: str
    version: str
    message: str
    input_shapes: tuple[tuple[int, ...], ...] = ()
    specified: Sample | None = None
    found: Sample | None = None
    gives_none: bool = False

    @property
    def refuses(self) -> bool:
        """Whether the runtime does not run the node on its own; a model around the node may yet be one that it runs."""
        return self.found is None

    @property
    def sentence(self) -> str:
        """The node and what the runtime does with it."""
        return f"{self.op_type} {self.node!r} in {self.graph}: {self.message}"
