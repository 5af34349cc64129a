"""Who works on many items: this process, others on this machine, or a cluster. Nothing else knows which."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Protocol, TypeVar

from padfix.errors import PadfixError

Item = TypeVar("Item")
Outcome = TypeVar("Outcome")


class Executor(Protocol):
    """Does one thing to many items.

    Items are taken one by one and no more than a few ahead, so that neither they nor their outcomes pile up.
    """

    def outcomes(
        self,
        work: Callable[[Item], Outcome],
        items: Iterable[Item],
        *,
        tell: Callable[[str], object] = lambda doing: None,
    ) -> Iterator[Outcome | PadfixError]:
        """Yield what ``work`` makes of each item, in the order of the items.

        Args:
            work: Can be sent to another process, as its items and outcomes can. It is not to raise.
            items: What to work on.
            tell: Called now and then with what is being done, as :func:`padfix.process.watch.tell` says it.

        Returns:
            Where the work on an item ended the process that did it, an error that says so in its place.
        """


def executor(jobs: int, scheduler: str | None = None) -> Executor:
    """Return the executor for a number of processes, or for the cluster of a scheduler.

    Raises:
        MissingDependencyError: The package for clusters is not installed.
        PadfixError: The scheduler can't be reached, or its workers can't do the work.
    """
    if scheduler is not None:
        from padfix.process.dask_cluster import DaskCluster

        return DaskCluster(scheduler)
    from padfix.process.workers import LocalProcesses

    return LocalProcesses(jobs)
