"""Functions in a process of their own, and runs that are ended when their time is over."""

from __future__ import annotations

import functools
import gc
import os
import signal
import time
from collections.abc import Callable
from typing import Any

import pytest

from padfix.process import deadline
from padfix.process.apart import Apart, CrashedError, NotMadeError, RemoteError


def make(offset: int) -> Callable[[Any], Any]:
    def answer(question: Any) -> Any:
        if question == "crash":
            os.kill(os.getpid(), signal.SIGSEGV)
        if question == "print":
            print("no answer")
        if question == "sleep":
            time.sleep(60)
        return question + offset

    return answer


@pytest.mark.parametrize("fresh", [False, True])
def test_a_crash_there_is_an_error_here_and_the_next_call_works(fresh: bool) -> None:
    apart = Apart(functools.partial(make, 1), fresh=fresh)
    assert apart(41) == 42
    with pytest.raises(CrashedError, match="SIGSEGV"):
        apart("crash")
    with pytest.raises(RemoteError, match="str"):
        apart("print")
    assert apart(1) == 2
    apart.close()


def test_what_no_module_holds_can_not_be_made_in_a_fresh_process() -> None:
    with pytest.raises(RemoteError, match="can't be made in another interpreter"):
        Apart(functools.partial(make, lambda: 1), fresh=True)(1)


def test_a_call_ends_when_its_time_is_over() -> None:
    apart = Apart(functools.partial(make, 1))
    begun = time.monotonic()
    with deadline.each_run(0.5), pytest.raises(deadline.Overdue, match="did not end within"):
        apart("sleep")
    assert time.monotonic() - begun < 20
    with deadline.each_run(60):
        assert apart(1) == 2


def test_what_was_left_behind_is_not_collected_in_a_fork() -> None:
    """A session of ONNX Runtime, say, would wait there for its threads, which a fork does not have."""

    class LeftBehind:
        def __init__(self) -> None:
            self.itself, self.process = self, os.getpid()

        def __del__(self) -> None:
            if os.getpid() != self.process:
                time.sleep(60)

    def collect(question: Any) -> Any:
        gc.collect()
        return question

    apart = Apart(lambda: collect)
    gc.disable()
    try:
        LeftBehind()
        with deadline.each_run(10):
            assert apart(1) == 1
    finally:
        gc.enable()
        apart.close()


def test_the_shortest_limit_holds_and_only_inside() -> None:
    with deadline.each_run(5), deadline.each_run(50):
        assert deadline.seconds() == 5
    assert deadline.seconds() is None
    with deadline.stopping(lambda: None):
        deadline.require_time()  # no limit at all
    with deadline.each_run(0.01), pytest.raises(deadline.Overdue), deadline.stopping(lambda: None):
        time.sleep(0.05)
        deadline.require_time()


def test_what_can_not_be_made_is_told_apart_from_what_fails() -> None:
    def make() -> Callable[[int], int]:
        raise OSError("there is no card")

    with pytest.raises(NotMadeError, match="there is no card"):
        Apart(make)(1)
