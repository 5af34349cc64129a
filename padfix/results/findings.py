"""Findings of rules, and what became of them."""

from __future__ import annotations

import enum
import hashlib
import re
from dataclasses import dataclass, field
from typing import Any

from padfix.results.illustration import Illustration
from padfix.results.record import Record


def fingerprint(rule: str, graph: str, op_type: str, own: str) -> str:
    """Return 32 hexadecimal digits for a finding of ``rule``.

    Made from the rule, the kinds of the scopes around the node, its operator and what is its own: its name, or the
    first output of a node without a name, because a node's index moves with every node before it. Names of other nodes
    play no part, nor do numbers in messages: renaming, adding or removing other nodes changes nothing.
    """
    parts = (rule, _without_names(graph), op_type, own)
    return hashlib.sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()[:32]


def _without_names(graph: str) -> str:
    """Return ``"main/*.then_branch"`` for ``"main/If_3.then_branch"``; a function keeps its name."""
    return graph if graph.startswith("function:") else re.sub(r"/.*?\.(\w+)(?=/|$)", r"/*.\1", graph)


class Severity(enum.StrEnum):
    """How bad a finding is: silent runs and gives other numbers, an error breaks, a warning may, info is style."""

    SILENT = "silent"
    ERROR = "error"
    WARNING = "warning"
    INFO = "info"

    @property
    def rank(self) -> int:
        """0 for info, 1 for warning, 2 for error, 3 for silent."""
        return _RANKS[self]


_RANKS = {Severity.INFO: 0, Severity.WARNING: 1, Severity.ERROR: 2, Severity.SILENT: 3}


@dataclass(frozen=True)
class Finding(Record):
    """One place in a model where one rule has something to say.

    Attributes:
        rule: The rule's code, ``"PF101"``.
        name: The rule's name, ``"implicit-same-padding"``.
        severity: How bad it is.
        graph: Path of scopes, ``"main"``, ``"main/If_3.then_branch"`` or ``"function:domain:name"``.
        node: The node's name; when it has none, ``"#<index>"`` with its index in the scope.
        op_type: The node's operator type.
        message: One sentence: what is implicit, legacy or unsafe here, with the numbers.
        fixable: Whether ``convert`` is expected to rewrite it.
        hint: What the user can do.
        fingerprint: Tells this finding from others of the model, and stays when nodes around it are renamed, added or
            removed. Made from the node's name unless it is given.
        illustration: What a report can draw of the node; not part of what :meth:`to_dict` gives.
        needs_specification: Whether ``convert`` has to be told ``--reference spec``; not part of it either.
    """

    rule: str
    name: str
    severity: Severity
    graph: str
    node: str
    op_type: str
    message: str
    fixable: bool = True
    hint: str = ""
    fingerprint: str = ""
    illustration: Illustration | None = field(default=None, compare=False, repr=False)
    needs_specification: bool = field(default=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        """Fill in the fingerprint."""
        if not self.fingerprint:
            own = fingerprint(self.rule, self.graph, self.op_type, self.node)
            object.__setattr__(self, "fingerprint", own)


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

    @property
    def refuses(self) -> bool:
        """Whether the runtime does not run the node on its own; a model around the node may yet be one that it runs."""
        return self.found is None

    @property
    def sentence(self) -> str:
        """The node and what the runtime does with it."""
        return f"{self.op_type} {self.node!r} in {self.graph}: {self.message}"
