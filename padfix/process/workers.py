"""One thing done to many: one after the other, or by several processes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

Item = TypeVar("Item")
Outcome = TypeVar("Outcome")


def in_order(work: Callable[[Item], Outcome], items: Sequence[Item], *, jobs: int = 1) -> Iterator[Outcome]:
    """Yield what ``work`` makes of each item, in the given order.

    Args:
        work: Can be sent to another process, as its items and outcomes can. Whatever it raises is raised here.
        items: What to work on.
        jobs: Number of processes.
    """
    if jobs <= 1 or len(items) < 2:
        yield from map(work, items)
        return
    import multiprocessing
    from concurrent.futures import ProcessPoolExecutor
    from concurrent.futures.process import BrokenProcessPool

    # Fresh interpreters: a fork of a process that has threads may hang.
    context = multiprocessing.get_context("spawn")
    done = 0
    try:
        with ProcessPoolExecutor(min(jobs, len(items)), mp_context=context) as pool:
            for outcome in pool.map(work, items, chunksize=max(1, len(items) // (jobs * 4))):
                yield outcome
                done += 1
    except BrokenProcessPool:  # one crashed: this process goes on, and is told which item it was by crashing itself
        yield from map(work, items[done:])
