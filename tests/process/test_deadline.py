"""Runs that are stopped when their time is over."""

from __future__ import annotations

import threading
import time

import pytest

from padfix.process import deadline


def test_what_takes_too_long_is_stopped() -> None:
    stopped = threading.Event()
    with pytest.raises(deadline.Overdue), deadline.each_run(0.05), deadline.stopping(stopped.set):
        assert stopped.wait(10)
        raise RuntimeError("it was stopped")


@pytest.mark.parametrize(("by_the_clock", "stops"), [(False, False), (True, True)])
def test_a_run_that_waits_for_the_processor_has_not_had_its_time(by_the_clock: bool, stops: bool) -> None:
    """On a machine that is busy a short run takes long; what runs in another process shows by a clock alone."""
    stopped = threading.Event()
    with deadline.each_run(0.3), deadline.stopping(stopped.set, by_the_clock=by_the_clock):
        stopped.wait(0.5)
    assert stopped.is_set() == stops


def test_what_ends_in_time_is_not_stopped() -> None:
    stopped = threading.Event()
    with deadline.each_run(0.05), deadline.stopping(stopped.set):
        pass
    time.sleep(0.1)
    assert not stopped.is_set()


def test_no_run_waits_for_a_thread_that_never_begins(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without memory for its first steps a thread ends before it says that it began."""
    monkeypatch.setattr(threading.Thread, "_bootstrap", lambda self: None)
    with deadline.each_run(60), deadline.stopping(lambda: None):
        pass
