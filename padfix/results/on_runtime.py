"""What a deployment runtime makes of a model, beside what it should."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from padfix.results.record import Record
from padfix.results.verdict import Failure, share_of


@dataclass(frozen=True)
class OnRuntime(Record):
    """One tensor as a runtime computed it.

    Attributes:
        name: The tensor.
        node: The node that computes it; empty for an output of the whole model.
        op_type: The node's operator.
        probe: The data.
        refused: In words why the runtime computed nothing; empty where it did.
        max_abs_diff: The largest difference; infinite for another shape.
        allowed: What rounding explains: a share of the largest magnitude.
        together: The nodes before it without which the runtime computes it as it should; empty where it is wrong by
            itself.
    """

    name: str
    node: str
    op_type: str
    probe: str
    refused: str = ""
    max_abs_diff: float = 0.0
    allowed: float = 0.0
    together: tuple[str, ...] = ()

    @property
    def share(self) -> float:
        """How much of what is allowed the difference uses: 1 at the limit."""
        return share_of(self.max_abs_diff, self.allowed)

    @property
    def agrees(self) -> bool:
        """Whether the runtime computed what it should."""
        return not self.refused and self.max_abs_diff <= self.allowed

    @property
    def difference(self) -> str:
        """How far it is off, and what is allowed, in words."""
        if self.max_abs_diff == float("inf"):
            return f"another shape or no number, on {self.probe} data"
        return f"{self.max_abs_diff:.3g} off, {self.allowed:.3g} allowed, on {self.probe} data"

    @property
    def found(self) -> str:
        """What was found of a node, in words."""
        before = self.together
        listed = f"{len(before)} others" if len(before) > 3 else ", ".join(f"'{name}'" for name in before)
        how = f"behind {listed}" if before else "by itself"
        return f"{how}: {f'refuses it: {self.refused}' if self.refused else self.difference}"


@dataclass(frozen=True)
class RuntimeVerdict(Record):
    """Whether a runtime computes what a model means.

    Attributes:
        runtime: Its name with the installed version.
        reference: Who said what is meant.
        outputs: Every output on every probe.
        nodes: The nodes that it computes otherwise or refuses, each fed with the right values, in the graph's order.
        looked_at: How many nodes were run so, in stretches of a few or by themselves.
        notes: Sentences worth saying.
    """

    runtime: str
    reference: str
    outputs: tuple[OnRuntime, ...]
    nodes: tuple[OnRuntime, ...] = field(default=())
    looked_at: int = 0
    notes: tuple[str, ...] = ()

    @property
    def agrees(self) -> bool:
        """Whether every output is what it should be, and no node was found to be otherwise."""
        return all(each.agrees for each in self.outputs) and not self.nodes

    @property
    def refused(self) -> bool:
        """Whether the runtime computed nothing at all."""
        return bool(self.outputs) and all(each.refused for each in self.outputs)

    @property
    def summary(self) -> str:
        """What the runtime makes of the model, behind "On NAME it ..."."""
        if self.agrees:
            closest = max(self.outputs, key=lambda each: each.share)
            probes = len({each.probe for each in self.outputs})
            return f"computes what it should ({probes} probes; {closest.difference})"
        wrong = [each for each in self.outputs if not each.agrees]
        if not wrong:
            return "NOT what it should compute: a node, though the outputs hide it on these data"
        if self.refused:
            return f"refuses it: {wrong[0].refused}"
        worst = max([each for each in wrong if not each.refused] or wrong, key=lambda each: each.max_abs_diff)
        return f"NOT what it should compute: output '{worst.name}' ({worst.difference})"

    @property
    def first_node(self) -> str:
        """The first node that the runtime computes otherwise, in a sentence; empty where none was found."""
        if not self.nodes:
            return ""
        node = self.nodes[0]
        return f"The first node that it computes otherwise is {node.op_type} '{node.node}' ({node.found})."

    def to_dict(self) -> dict[str, Any]:
        """Return the verdict as JSON-ready values."""
        return {**super().to_dict(), "agrees": self.agrees}


@dataclass(frozen=True)
class RuntimesReport(Record):
    """What ``padfix verify`` found on runtimes.

    Attributes:
        source: The model that was run.
        original: The model whose numbers are right; empty where that is the source.
        runtimes: What each runtime made of it.
        error: Why it could not be told; None where it could.
    """

    source: str
    original: str = ""
    runtimes: tuple[RuntimeVerdict, ...] = ()
    error: Failure | None = None

    @property
    def agrees(self) -> bool:
        """Whether every runtime computes what it should."""
        return self.error is None and all(each.agrees for each in self.runtimes)
