"""How many items travel to a process at once: as many as fill a turn of its work."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

Item = TypeVar("Item")
Outcome = TypeVar("Outcome")

_FILLED = 0.6  # of a turn: what does not fit in has to travel again


@dataclass
class Pace:
    """The size of the next batch, by what the last one took.

    Attributes:
        seconds: How long a turn lasts at most.
        most: Items in a batch at most.
        size: Items in the next batch.
    """

    seconds: float
    most: int
    size: int = 1

    def note(self, seconds: float, done: int) -> None:
        """Learn from a turn, which took so long for so many items: the next is to fill most of one, and to fit in."""
        fitting = _FILLED * self.seconds * done / max(seconds, 1e-6)
        self.size = max(1, min(self.most, int(fitting)))


def turn(work: Callable[[Item], Outcome], items: Sequence[Item], seconds: float) -> list[Outcome]:
    """Return what comes of the first item, and of those behind it that begin within so many seconds."""
    over = time.monotonic() + seconds
    outcomes: list[Outcome] = []
    for item in items:
        outcomes.append(work(item))
        if time.monotonic() > over:
            break
    return outcomes
