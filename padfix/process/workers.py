"""Many items worked on by processes of this machine that stay warm, each item an outcome, in the order of the items."""

from __future__ import annotations

import os
import selectors
import sys
import tempfile
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from typing import Generic, TypeVar

from padfix.errors import PadfixError
from padfix.process import memory, watch
from padfix.process.apart import ENDED, Process, forked, spawned
from padfix.process.oversight import NO_MORE_MEMORY, Oversight, volunteer_for_the_system
from padfix.process.turns import Pace, turn

Item = TypeVar("Item")
Outcome = TypeVar("Outcome")

AHEAD = 64
"""Items for each process that may be done or handed out beyond the first one without an outcome."""

DEPTH = 2
"""Batches that a process has at hand, the one it works on included, so that it never waits for the next."""

MOST = 16
"""Items in a batch at most: they travel together, because to wake a process costs a good part of a small item."""

TURN = 0.05
"""Seconds of work after which a process answers, whatever is left of the batch."""

ATTEMPTS = 2
"""How often an item is tried whose process ends: something else may have ended the first."""

LARGEST = 2048.0
"""Mebibytes above which a process that has done its work is replaced."""

_TICK = 0.2
_LONG = 0.5  # seconds of work behind which it is worth a look what a process holds
_OOM_SCORE = 800  # of workers: before the process that hands out the work
_HEAD_START = 1.5  # a worker is ended before whoever watches over the whole would end that
_NOT_TO_FORK = ("tensorflow", "onnxruntime")  # their threads are not there in a fork


class LocalProcesses:
    """An executor (:mod:`padfix.process.executors`) of so many processes."""

    def __init__(self, jobs: int) -> None:
        self._jobs = jobs

    def outcomes(
        self,
        work: Callable[[Item], Outcome],
        items: Iterable[Item],
        *,
        tell: Callable[[str], object] = lambda doing: None,
    ) -> Iterator[Outcome | PadfixError]:
        """See :class:`padfix.process.executors.Executor`."""
        pool: _Pool[Item, Outcome] = _Pool(work, self._jobs, tell)
        try:
            yield from pool.outcomes(iter(items))
        finally:
            pool.close()


@dataclass
class _Task(Generic[Item]):
    number: int
    item: Item
    attempts: int = 0


@dataclass
class _Worker(Generic[Item]):
    process: Process
    seen: Oversight
    given: deque[list[_Task[Item]]] = field(default_factory=deque)
    since: float = field(default_factory=time.monotonic)

    def end(self) -> int:
        """End the process, remove what it left, and return its exit code."""
        code = self.process.end()
        self.seen.tidy()
        return code


class _Pool(Generic[Item, Outcome]):
    def __init__(self, work: Callable[[Item], Outcome], jobs: int, tell: Callable[[str], object]) -> None:
        self._work = work
        self._jobs = jobs
        self._tell = tell
        self._workers: list[_Worker[Item]] = []
        self._selector = selectors.DefaultSelector()
        self._pace = Pace(TURN, MOST)
        self._left: deque[_Task[Item]] = deque()  # of batches that took longer than a turn
        self._again: deque[_Task[Item]] = deque()  # whose process ended: each alone, so that it is known which was why
        self._done: dict[int, Outcome | PadfixError] = {}
        self._looked = time.monotonic()

    def outcomes(self, items: Iterator[Item]) -> Iterator[Outcome | PadfixError]:
        """Yield the outcomes in the order of the items, of which no more are taken than there is room for."""
        tasks = (_Task(number, item) for number, item in enumerate(items))
        begun = delivered = 0
        while True:
            begun += self._give(tasks, AHEAD * self._jobs - (begun - delivered))
            if delivered == begun:
                return
            if delivered not in self._done:
                self._wait()
            while delivered in self._done:
                yield self._done.pop(delivered)
                delivered += 1

    def close(self) -> None:
        """End all processes."""
        for worker in self._workers:
            worker.end()
        self._workers.clear()
        self._selector.close()

    def _give(self, tasks: Iterator[_Task[Item]], room: int) -> int:
        """Hand out tasks, first those that have to be tried again; return how many were new."""
        begun = 0
        while self._has_room():
            batch, new = self._batch(tasks, room - begun)
            if not batch:
                break
            begun += new
            worker = self._free()
            if not worker.given:
                worker.since = time.monotonic()
            worker.given.append(batch)
            try:
                worker.process.ask([task.item for task in batch])
            except ENDED:
                self._lose(worker)
        return begun

    def _batch(self, tasks: Iterator[_Task[Item]], room: int) -> tuple[list[_Task[Item]], int]:
        """Return what to hand out next, and how many of it are new."""
        if self._again:
            return [self._again.popleft()], 0
        if self._left:
            return [self._left.popleft() for _ in range(min(self._pace.size, len(self._left)))], 0
        batch = list(islice(tasks, min(self._pace.size, room)))
        return batch, len(batch)

    def _has_room(self) -> bool:
        return len(self._workers) < self._jobs or any(len(worker.given) < DEPTH for worker in self._workers)

    def _free(self) -> _Worker[Item]:
        """Return the process for the next task: one without any, else a new one, else the one with the fewest."""
        worker = min(self._workers, key=lambda each: len(each.given), default=None)
        if worker is None or (worker.given and len(self._workers) < self._jobs):
            return self._started()
        return worker

    def _started(self) -> _Worker[Item]:
        with tempfile.TemporaryFile() as page:
            page.truncate(watch.BOARD_BYTES)
            board = watch.Board(page.fileno())
            make = partial(_prepared, page.fileno(), self._work)
            process = forked(make) if _may_fork() else spawned(make, keep=[page.fileno()])
        worker: _Worker[Item] = _Worker(process, Oversight(process.number, board))
        self._workers.append(worker)
        self._selector.register(process.answers, selectors.EVENT_READ, worker)
        return worker

    def _wait(self) -> None:
        """Wait for an outcome, or for a moment."""
        for key, _ in self._selector.select(_TICK):
            self._take(key.data)
        if time.monotonic() - self._looked > _TICK:
            self._look()
            self._looked = time.monotonic()

    def _take(self, worker: _Worker[Item]) -> None:
        try:
            succeeded, answer = worker.process.answer()
        except ENDED:
            self._lose(worker)
            return
        batch = worker.given.popleft()
        outcomes = answer if succeeded else [_internal(answer)]
        self._done.update((task.number, outcome) for task, outcome in zip(batch, outcomes, strict=False))
        self._left.extendleft(reversed(batch[len(outcomes) :]))
        now = time.monotonic()
        seconds, worker.since = now - worker.since, now
        self._pace.note(seconds, len(outcomes))
        is_grown = seconds > _LONG and memory.used_by(worker.process.number) > LARGEST
        if is_grown:
            self._lose(worker, is_fault=False)

    def _look(self) -> None:
        """End what is out of time or takes the last memory, and tell what is being done to the oldest task."""
        for worker in [each for each in self._workers if each.given]:
            if (words := worker.seen.stuck()) is not None:
                self._lose(worker, words)
            elif worker.seen.out_of_memory(_HEAD_START):
                self._lose(worker, (f"was stopped: {worker.seen.shortage()}", NO_MORE_MEMORY))
        busy = [worker for worker in self._workers if worker.given]
        oldest = min(busy, key=lambda each: each.given[0][0].number, default=None)
        if oldest is not None:
            self._tell(oldest.seen.board.read("doing"))

    def _lose(self, worker: _Worker[Item], words: tuple[str, str] | None = None, *, is_fault: bool = True) -> None:
        """End a process, and give to others what it had left to do; what it worked on has an end there, if it is why.

        Where that was more than one item, each is tried alone. Without ``words`` of who ended it, the process ended by
        itself, and its item is tried once more.
        """
        self._workers.remove(worker)
        self._selector.unregister(worker.process.answers)
        doing = worker.seen.board.read("doing") or "The work"
        code = worker.end()
        if worker.given and is_fault:
            batch = worker.given.popleft()
            batch[0].attempts += len(batch) == 1
            if len(batch) > 1 or (words is None and batch[0].attempts < ATTEMPTS):
                self._again.extend(batch)
            else:
                message, hint = words or worker.seen.ending(code)
                self._done[batch[0].number] = PadfixError(f"{doing} {message}", hint)
        for batch in worker.given:
            self._left.extend(batch)
        worker.given.clear()


def _internal(words: str) -> PadfixError:
    return PadfixError(f"internal error: {words}")


def _may_fork() -> bool:
    """Whether a fork of this process can work, which costs next to nothing; a fresh interpreter always can."""
    is_alone = threading.active_count() == 1 and not any(name in sys.modules for name in _NOT_TO_FORK)
    return is_alone and sys.platform.startswith("linux")


def _prepared(
    descriptor: int, work: Callable[[Item], Outcome]
) -> Callable[[Sequence[Item]], list[Outcome | PadfixError]]:
    """Return the work on a batch, in the process that is to do it: on its first items, as many as fill a turn."""
    os.dup2(2, 1)  # what libraries print is none of the report
    watch.install(watch.Board(descriptor))
    volunteer_for_the_system(_OOM_SCORE)

    def attempt(item: Item) -> Outcome | PadfixError:
        try:
            return work(item)
        except Exception as error:
            return _internal(str(error) or type(error).__name__)

    return lambda items: turn(attempt, items, TURN)
