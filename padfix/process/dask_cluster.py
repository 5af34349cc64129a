"""Many items worked on by a Dask cluster, as other executors do; retries, lost workers and stragglers are its own.

The workers run the same version of padfix and read the models themselves: from stores, or from paths that all machines
share. Small items travel several at once, because each message to the scheduler costs as much as a small model.
"""

from __future__ import annotations

import logging
import pickle
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any, Generic, TypeVar

from padfix.errors import MissingDependencyError, PadfixError
from padfix.process.turns import Pace, turn
from padfix.process.version import __version__

Item = TypeVar("Item")
Outcome = TypeVar("Outcome")

PATIENCE = 15.0
"""Seconds in which the scheduler has to answer, and a first worker to be there."""

BATCHES = 3
"""Batches for each thread of the cluster that are on their way at a time."""

MOST = 256
"""Items in a batch at most."""

TURN = 0.2
"""Seconds of work after which a worker answers, whatever is left of the batch."""

ASKED_EVERY = 5.0
"""Seconds between questions for the number of threads."""

_PROBE = """
def probe():
    try:
        import padfix
    except ImportError:
        return None
    return padfix.__version__
"""
_GO_ON = "What is done is kept with --resume FILE, which goes on behind it."


class DaskCluster:
    """An executor (:mod:`padfix.process.executors`): the workers of the scheduler at an address."""

    def __init__(self, address: str) -> None:
        self._address = address

    def outcomes(
        self,
        work: Callable[[Item], Outcome],
        items: Iterable[Item],
        *,
        tell: Callable[[str], object] = lambda doing: None,
    ) -> Iterator[Outcome | PadfixError]:
        """See :class:`padfix.process.executors.Executor`.

        Raises:
            MissingDependencyError: The package distributed is not installed.
            PadfixError: The scheduler can't be reached, or its workers can't do this work.
        """
        client = _connected(self._address)
        try:
            _require_workers(client, self._address)
            run: _Run[Item, Outcome] = _Run(client, self._address, work)
            yield from run.outcomes(iter(items))
        finally:
            client.close(timeout=2)


def _connected(address: str) -> Any:
    try:
        from distributed import Client
    except ImportError as error:
        raise MissingDependencyError(
            "A cluster needs the package distributed.", 'Install it: pip install "padfix[dask]"'
        ) from error
    for name in ("distributed", "asyncio", "tornado"):  # what is to be said is said in a sentence of ours
        logging.getLogger(name).setLevel(logging.CRITICAL + 1)
    try:
        return Client(address, timeout=PATIENCE, set_as_default=False)
    except (OSError, ValueError, TypeError) as error:
        raise PadfixError(
            f"The scheduler at {address} can't be reached: {_first_line(error)}.", "It is host:port of dask scheduler."
        ) from error


def _require_workers(client: Any, address: str) -> None:
    """Make sure that there are workers, and that each has this version of padfix."""
    try:
        client.wait_for_workers(1, timeout=PATIENCE)
    except TimeoutError as error:
        raise PadfixError(
            f"The scheduler at {address} has no workers.", f"Start some: dask worker {address}"
        ) from error
    names: dict[str, Any] = {"__name__": "__main__"}  # so that it is sent as it is, and not by the name of a module
    exec(_PROBE, names)
    for worker, version in sorted(client.run(names["probe"]).items()):
        if version != __version__:
            has = "no padfix" if version is None else f"padfix {version}"
            raise PadfixError(
                f"The worker {worker} has {has}, and this is padfix {__version__}.",
                "Install the same version of padfix wherever a worker runs.",
            )


@dataclass
class _Batch(Generic[Item]):
    items: list[Item]
    future: Any


class _Run(Generic[Item, Outcome]):
    def __init__(self, client: Any, address: str, work: Callable[[Item], Outcome]) -> None:
        self._client = client
        self._address = address
        self._work = work
        self._pace = Pace(TURN, MOST)
        self._threads = 0
        self._asked = -ASKED_EVERY

    def outcomes(self, items: Iterator[Item]) -> Iterator[Outcome | PadfixError]:
        """Yield the outcomes in order, with a few batches on their way at any time."""
        waiting: deque[_Batch[Item]] = deque()
        while True:
            while len(waiting) < self._room() and (some := list(islice(items, self._pace.size))):
                waiting.append(self._sent(some))
            if not waiting:
                return
            batch = waiting.popleft()
            outcomes = self._outcomes(batch)
            yield from outcomes
            left = batch.items[len(outcomes) :]
            size = self._pace.size
            rest = [self._sent(left[start : start + size], is_left=True) for start in range(0, len(left), size)]
            waiting.extendleft(reversed(rest))

    def _room(self) -> int:
        """Return how many batches may be on their way; the scheduler is asked now and then, as workers come and go."""
        if time.monotonic() - self._asked > ASKED_EVERY:
            self._threads = sum(self._client.ncores().values())
            self._asked = time.monotonic()
        return max(4, BATCHES * self._threads)

    def _sent(self, items: list[Item], *, is_left: bool = False) -> _Batch[Item]:
        """Send a batch; what is left of another goes before what was sent since, as its outcomes are next."""
        sent = pickle.dumps((self._work, items))  # as they are, Dask would look for tasks of its own in each item
        future = self._client.submit(_work, __version__, sent, pure=False, priority=int(is_left))
        return _Batch(items, future)

    def _outcomes(self, batch: _Batch[Item]) -> list[Outcome | PadfixError]:
        """Return what came of the first items of a batch: none where it ended the workers that took it."""
        from distributed import CancelledError, KilledWorker

        try:
            seconds, outcomes = pickle.loads(batch.future.result())
        except KilledWorker:
            self._pace.size = 1  # each is tried alone
            if len(batch.items) > 1:
                return []
            return [PadfixError("Each worker of the cluster that worked on it ended.", "Its log may say why.")]
        except (CancelledError, OSError, TimeoutError) as error:
            raise PadfixError(f"The scheduler at {self._address} went away.", _GO_ON) from error
        except Exception as error:  # what a worker without padfix, or with another one, makes of the work
            raise PadfixError(
                f"A worker of the cluster can't do the work: {_first_line(error)}.",
                f"Install padfix {__version__} wherever a worker runs. {_GO_ON}",
            ) from error
        finally:
            batch.future.release()
        self._pace.note(seconds, len(outcomes))
        found: list[Outcome | PadfixError] = outcomes
        return found


def _work(version: str, sent: bytes) -> bytes:
    """Do the work on the first of the items that were sent, in a worker; return its seconds and outcomes, to send."""
    if version != __version__:
        raise ValueError(f"it has padfix {__version__}, and was asked by padfix {version}")
    work, items = pickle.loads(sent)
    begun = time.monotonic()
    outcomes = turn(work, items, TURN)
    return pickle.dumps((time.monotonic() - begun, outcomes))


def _first_line(error: BaseException) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0].rstrip(".")
