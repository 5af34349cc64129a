"""What is asked of an operator: which values it takes at a position, beside what else it reads."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from padfix.proof.executors import Array
from padfix.proof.graph_view import NodeView


@dataclass(frozen=True)
class Use:
    """One reader of an input.

    Attributes:
        node: The operator.
        position: Where among its inputs.
    """

    node: NodeView
    position: int

    @property
    def name(self) -> str:
        """The tensor that it reads."""
        return self.node.inputs[self.position]


@dataclass
class Question:
    """What one reader may be given: the array that it would read so far, and what else it reads."""

    use: Use
    array: Array
    other: Callable[[int], Array | None]
    random: np.random.Generator

    def shape(self, position: int = 0) -> tuple[int, ...] | None:
        found = self.other(position)
        return None if found is None else found.shape

    def below(self, limit: int) -> Array:
        """Return indices below a limit."""
        return np.asarray(self.random.integers(0, max(1, limit), self.array.shape))

    def filled(self, low: int, high: int) -> Array:
        return np.asarray(self.random.integers(low, high + 1, self.array.shape))


Answer = Callable[[Question], Array | None]
