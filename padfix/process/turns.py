"""How many items travel to a process at once: as many as fill a turn of its work."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

Item = TypeVar("Item")
Outcome = TypeVar("Outcome")


@dataclass
class Pace:
    """The size of the next batch, found by trying.

    Attributes:
        seconds: How long a turn is meant to last.
        most: Items in a batch at most.
        size: Items in the next batch.
    """

    seconds: float
    most: int
    size: int = 1

    def note(self, seconds: float, done: int) -> None:
        """Learn from a turn, which took so long for so many items."""
        if seconds > self.seconds:
            self.size = max(1, done // 2)
        elif done == self.size:
            self.size = min(self.most, 2 * self.size)


def turn(work: Callable[[Item], Outcome], items: Sequence[Item], seconds: float) -> list[Outcome]:
    """Return what comes of the first item, and of those behind it that begin within so many seconds."""
    over = time.monotonic() + seconds
    outcomes: list[Outcome] = []
    for item in items:
        outcomes.append(work(item))
        if time.monotonic() > over:
            break
    return outcomes
