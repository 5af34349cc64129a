"""Runs the work in a child process and watches over it: whatever a model does to a runtime ends in exit 2.

The child is a fork taken before anything heavy is loaded, which costs a millisecond. It shares the terminal, prints for
itself, and ends with the exit code. The parent only waits: it forwards signals, ends a child that is out of time
or takes the last memory, says what a child that crashed was doing, and removes what such a child left.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import sys
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import FrameType
from typing import NoReturn

from padfix.errors import EXIT_COULD_NOT_TELL, PadfixError
from padfix.process import watch
from padfix.process.oversight import NO_MORE_MEMORY, Oversight, volunteer_for_the_system
from padfix.process.stopped import Stopped, exit_code_of, say_stopped

GRACE = 3.0
"""Seconds that a child has to tidy up after a signal; one inside a runtime's own code can't hear it."""

_TICK = 0.25
_FORWARDED = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))

_RSS_UNITS = 2**20 if sys.platform == "darwin" else 1024
"""What a mebibyte has of the units in which the system counts the most memory that a child used."""


def supervised(work: Callable[[], int], complain: Callable[[PadfixError], None]) -> int:
    """Run ``work`` in a child process and return its exit code, or run it here where that is not possible.

    Args:
        work: Returns an exit code; prints for itself.
        complain: Prints an error that the child can't print any more.
    """
    is_alone = threading.active_count() == 1 and threading.current_thread() is threading.main_thread()
    if not hasattr(os, "fork") or not is_alone:
        return work()
    board = watch.Board()
    sys.stdout.flush()
    sys.stderr.flush()
    reading, writing = os.pipe()  # ends when the child does
    living, alive = os.pipe()  # ends when the parent does
    received: list[int] = []

    def note(number: int, frame: FrameType | None) -> None:
        received.append(number)

    heard = [number for number in _FORWARDED if signal.getsignal(number) is not signal.SIG_IGN]
    before = {number: signal.signal(number, note) for number in heard}
    child = os.fork()
    if child == 0:
        os.close(reading)
        os.close(alive)
        _work(work, board, living, before)
    os.close(writing)
    os.close(living)
    try:
        return _Supervisor(child, board, reading, received, complain).wait()
    finally:
        os.close(reading)
        os.close(alive)
        for number, handler in before.items():
            signal.signal(number, handler)


def _work(work: Callable[[], int], board: watch.Board, living: int, before: Mapping[int, object]) -> NoReturn:
    """Do the work in the child and leave the process; nothing of the parent's runs here."""
    code = EXIT_COULD_NOT_TELL
    try:
        # The default of SIGIO ends the process, even inside a runtime's own code: nobody would be left to end it.
        with contextlib.suppress(OSError, ImportError, AttributeError):
            import fcntl

            fcntl.fcntl(living, fcntl.F_SETOWN, os.getpid())
            fcntl.fcntl(living, fcntl.F_SETFL, fcntl.fcntl(living, fcntl.F_GETFL) | os.O_ASYNC)

        volunteer_for_the_system()

        def stop(number: int, frame: FrameType | None) -> None:
            for each in before:  # once is enough; the tidying up must not be interrupted
                signal.signal(each, signal.SIG_IGN)
            raise Stopped(number)

        for number in before:
            signal.signal(number, stop)
        watch.install(board)
        code = work()
        board.answered = True
    except MemoryError:
        os.abort()  # there was not enough to say so; the parent does
    except Stopped as stopped:
        say_stopped(stopped)
        code = exit_code_of(stopped)
        board.answered = True
    finally:
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(OSError, ValueError):
                stream.flush()
        os._exit(code)


@dataclass
class _Supervisor:
    child: int
    board: watch.Board
    ended: int  # a pipe that is closed when the child ends
    received: list[int]  # signals that this process was sent, in order
    complain: Callable[[PadfixError], None]
    _forwarded: int = 0
    _patience: float | None = None

    def __post_init__(self) -> None:
        self._seen = Oversight(self.child, self.board)

    def wait(self) -> int:
        """Return the exit code of the child, ended or not by itself."""
        while True:
            with contextlib.suppress(InterruptedError):
                select.select([self.ended], [], [], _TICK)
            found, status, usage = os.wait4(self.child, os.WNOHANG)
            if found:
                self._seen.most = max(self._seen.most, usage.ru_maxrss / _RSS_UNITS)
                return self._finish(os.waitstatus_to_exitcode(status))
            self._forward()
            if self._patience is not None:
                if time.monotonic() > self._patience or (len(self.received) > 1 and self._hurried()):
                    self._kill()
                    return self._say_stopped()
            elif (words := self._seen.stuck()) is not None:
                return self._end(*words)
            elif self._seen.out_of_memory():
                return self._end(f"was stopped: {self._seen.shortage()}", NO_MORE_MEMORY)

    def _forward(self) -> None:
        while self._forwarded < len(self.received):
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.child, self.received[self._forwarded])
            self._forwarded += 1
            self._patience = self._patience or time.monotonic() + GRACE

    def _hurried(self) -> bool:
        """Whether a signal came again after the child had time to react to the first."""
        return self._patience is not None and time.monotonic() > self._patience - GRACE + 1

    def _say_stopped(self) -> int:
        stopped = Stopped(self.received[0])
        say_stopped(stopped, written=self.board.written)
        return exit_code_of(stopped)

    def _finish(self, code: int) -> int:
        if not self.board.answered or self.board.read("scratch"):
            self._tidy()
        if code >= 0 and self.board.answered:
            return code
        if self.received:
            return self._say_stopped()
        self._say(*self._seen.ending(code))
        return EXIT_COULD_NOT_TELL

    def _doing(self) -> str:
        return self.board.read("doing") or "padfix"

    def _outcome(self) -> str:
        return "The output had been written before." if self.board.written else "Nothing was written."

    def _end(self, message: str, hint: str) -> int:
        """End the child, and say why."""
        self._kill()
        self._say(message, hint)
        return EXIT_COULD_NOT_TELL

    def _say(self, message: str, hint: str) -> None:
        with contextlib.suppress(OSError, ValueError):
            self.complain(PadfixError(f"{self._doing()} {message}", f"{self._outcome()} {hint}"))

    def _kill(self) -> None:
        """End the child and tidy up behind it."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.child, signal.SIGKILL)
        os.waitpid(self.child, 0)
        self._tidy()

    def _tidy(self) -> None:
        """Remove what the child can't any more, and clear the line that it kept on a terminal."""
        self._seen.tidy()
        with contextlib.suppress(OSError, ValueError):
            if sys.stderr.isatty() and os.environ.get("TERM") != "dumb":
                sys.stderr.write("\r\x1b[2K")
                sys.stderr.flush()
