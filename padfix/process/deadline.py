"""How long one run of a model may take, where data was made for it: such data may lead into a loop that never ends.

Runtimes work in their own code, where no exception reaches them. Each can be told to stop from another thread, in a way
of its own. On a machine that others use as well, the time of a clock says little of what a run took: a run is over when
it has had its seconds of the processor as well, or several times as long has passed.
"""

from __future__ import annotations

import _thread
import contextlib
import time
from collections.abc import Callable, Iterator
from contextvars import ContextVar

_allowed: ContextVar[float | None] = ContextVar("seconds that a run may take", default=None)
_running: ContextVar[_Run | None] = ContextVar("the run that is going on", default=None)

_SHARES = 4
"""Times its seconds after which a run is over, whatever it had of the processor: it may wait for what never comes."""


class _Run:
    """A run that may take so many seconds, or as many times them as it has to share the processor with others."""

    def __init__(self, seconds: float, shares: int) -> None:
        self.seconds, self._shares = seconds, shares
        self._begun = time.monotonic(), time.process_time()

    def is_over(self) -> bool:
        passed, used = time.monotonic() - self._begun[0], time.process_time() - self._begun[1]
        return passed >= self.seconds and (used >= self.seconds or passed >= self._shares * self.seconds)


class Overdue(Exception):  # noqa: N818 - it says what the run is
    """A run was stopped, because its time was over."""


@contextlib.contextmanager
def each_run(seconds: float) -> Iterator[None]:
    """Let every run inside take so many seconds; the shortest limit around a run holds."""
    outer = _allowed.get()
    token = _allowed.set(seconds if outer is None else min(seconds, outer))
    try:
        yield
    finally:
        _allowed.reset(token)


def seconds() -> float | None:
    """Return how long a run may take; None where there is no limit."""
    return _allowed.get()


@contextlib.contextmanager
def stopping(stop: Callable[[], object], *, by_the_clock: bool = False) -> Iterator[None]:
    """Run something that ``stop`` ends, called from another thread when the time is over.

    Args:
        stop: Ends it.
        by_the_clock: Whether a clock alone counts: it runs in another process, or has a limit of its own.

    Raises:
        Overdue: The time was over, and what ran ended with an error.
    """
    allowed = _allowed.get()
    if allowed is None:
        yield
        return
    run = _Run(allowed, 1 if by_the_clock else _SHARES)
    token = _running.set(run)
    over = _called_after(run, stop)
    try:
        yield
    except Exception as error:
        if not run.is_over():
            raise
        raise Overdue(f"it did not end within {allowed:.0f} s") from error
    finally:
        over.release()
        _running.reset(token)


def _called_after(run: _Run, stop: Callable[[], object]) -> _thread.LockType:
    """Call ``stop`` from another thread when the time is over, unless the lock that is returned is released before.

    ``threading.Thread`` waits until its thread says that it began, which one that finds no memory never does.
    """
    lock = _thread.allocate_lock()
    lock.acquire()

    def wait() -> None:
        while not lock.acquire(timeout=run.seconds):
            if run.is_over():
                stop()
                break

    _thread.start_new_thread(wait, ())
    return lock


def require_time() -> None:
    """Let a run that can be asked in between end where its time is over.

    Raises:
        Overdue: It is.
    """
    run = _running.get()
    if run is not None and run.is_over():
        raise Overdue("the time is over")
