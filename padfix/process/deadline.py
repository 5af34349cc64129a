"""How long one run of a model may take, where data was made for it: such data may lead into a loop that never ends.

Runtimes work in their own code, where no exception reaches them. Each can be told to stop from another thread, in a way
of its own.
"""

from __future__ import annotations

import _thread
import contextlib
import time
from collections.abc import Callable, Iterator
from contextvars import ContextVar

_allowed: ContextVar[float | None] = ContextVar("seconds that a run may take", default=None)
_until: ContextVar[float | None] = ContextVar("when the run that is going on has to end", default=None)


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
def stopping(stop: Callable[[], object]) -> Iterator[None]:
    """Run something that ``stop`` ends, called from another thread when the time is over.

    Raises:
        Overdue: The time was over, and what ran ended with an error.
    """
    allowed = _allowed.get()
    if allowed is None:
        yield
        return
    until = time.monotonic() + allowed
    token = _until.set(until)
    over = _called_after(allowed, stop)
    try:
        yield
    except Exception as error:
        if time.monotonic() < until:
            raise
        raise Overdue(f"it did not end within {allowed:.0f} s") from error
    finally:
        over.release()
        _until.reset(token)


def _called_after(seconds: float, stop: Callable[[], object]) -> _thread.LockType:
    """Call ``stop`` from another thread when the time is over, unless the lock that is returned is released before.

    ``threading.Thread`` waits until its thread says that it began, which one that finds no memory never does.
    """
    lock = _thread.allocate_lock()
    lock.acquire()

    def wait() -> None:
        if not lock.acquire(timeout=seconds):
            stop()

    _thread.start_new_thread(wait, ())
    return lock


def require_time() -> None:
    """Let a run that can be asked in between end where its time is over.

    Raises:
        Overdue: It is.
    """
    until = _until.get()
    if until is not None and time.monotonic() > until:
        raise Overdue("the time is over")
