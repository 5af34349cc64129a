"""What a deployment runtime makes of a model, beside what it should."""

from __future__ import annotations

from dataclasses import dataclass, field

from padfix.results.record import Record


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
    """

    name: str
    node: str
    op_type: str
    probe: str
    refused: str = ""
    max_abs_diff: float = 0.0
    allowed: float = 0.0

    @property
    def agrees(self) -> bool:
        """Whether the runtime computed what it should."""
        return not self.refused and self.max_abs_diff <= self.allowed


@dataclass(frozen=True)
class RuntimeVerdict(Record):
    """Whether a runtime computes what a model means.

    Attributes:
        runtime: Its name with the installed version.
        reference: Who said what is meant.
        outputs: Every output on every probe.
        nodes: The nodes that it computes otherwise or refuses, each fed with the right values, in the graph's order;
            looked for where an output is further off than a single node may be.
        looked_at: How many nodes were run by themselves.
    """

    runtime: str
    reference: str
    outputs: tuple[OnRuntime, ...]
    nodes: tuple[OnRuntime, ...] = field(default=())
    looked_at: int = 0

    @property
    def agrees(self) -> bool:
        """Whether every output is what it should be, and no node was found to be otherwise."""
        return all(each.agrees for each in self.outputs) and not self.nodes

    @property
    def refused(self) -> bool:
        """Whether the runtime computed nothing at all."""
        return bool(self.outputs) and all(each.refused for each in self.outputs)
