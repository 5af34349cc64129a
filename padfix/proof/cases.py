"""What stretches are judged by, and what was seen of them: shared by the probes, by data of their own and by sweeps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from padfix.proof.allowances import is_quantised
from padfix.proof.case import Case
from padfix.proof.constants import Constants
from padfix.proof.executors import Array
from padfix.proof.probes import Ranges
from padfix.proof.stretches import Stretch, Stretches

_CASTS: dict[int, np.dtype[np.generic]] = {1: np.dtype(np.float32), 10: np.dtype(np.float16), 11: np.dtype(np.float64)}


@dataclass
class Cases:
    """The stretches of two models with all that judging one of them takes.

    Attributes:
        stretches: The stretches.
        constants: The constants of both models, where they are ONNX.
        levels: Whether to optimise the candidate's parts, for each way to run them.
        ranges: What the data that is made for an input lies within, by its name in the original.
        types: What the original computes a stretch in, by its name.
        switched: Names of those that the original ran with every switch that they read turned over.
        magnitudes: The largest number that was seen of a stretch on the probes, by its name.
    """

    stretches: Stretches
    constants: tuple[Constants | None, Constants | None]
    levels: Sequence[bool]
    ranges: Ranges
    types: dict[str, tuple[np.dtype[np.generic], ...]] = field(default_factory=dict)
    switched: set[str] = field(default_factory=set)
    magnitudes: dict[str, float] = field(default_factory=dict)

    def types_of(self, stretch: Stretch, values: Mapping[str, Array]) -> tuple[np.dtype[np.generic], ...]:
        """Return what the original computes a stretch in: the types that come in, go out, and are cast to between."""
        if stretch.name not in self.types:
            types: set[np.dtype[np.generic]] = {values[name].dtype for name in (stretch.name, *stretch.above)}
            for node in stretch.nodes:
                if node.proto is not None and node.op_type == "Cast":
                    target = next((each.i for each in node.proto.attribute if each.name == "to"), 0)
                    types |= {known for number, known in _CASTS.items() if number == target}
            self.types[stretch.name] = tuple(types)
        return self.types[stretch.name]

    def case(
        self,
        stretch: Stretch,
        feeds: Mapping[str, Array],
        values: Mapping[str, Array],
        found: Array,
        magnitude: float,
    ) -> Case:
        """Return what an allowance is asked about: a stretch that gave ``found`` for these values."""
        inner = {name: values[name] for name in stretch.above if name not in feeds}
        types = self.types[stretch.name]
        return Case(
            self.stretches.sides[0],
            feeds,
            inner,
            stretch.name,
            stretch.nodes,
            values[stretch.name],
            found,
            magnitude,
            types,
            self._holds_other_bytes(stretch),
        )

    def _holds_other_bytes(self, stretch: Stretch) -> bool:
        """Whether the same operators on quantised numbers read constants of other whole numbers in the candidate."""
        first, second = self.constants
        nodes, twins = stretch.nodes, stretch.candidate_nodes
        if first is None or second is None or [each.op_type for each in nodes] != [each.op_type for each in twins]:
            return False
        return any(
            first.digest(ours) != second.digest(theirs)
            for node, twin in zip(nodes, twins, strict=True)
            if is_quantised(node)
            for ours, theirs in zip(node.inputs, twin.inputs, strict=False)
            if ours in first and theirs in second and first.is_whole(ours) and second.is_whole(theirs)
        )
