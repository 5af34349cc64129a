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
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import NoReturn

from padfix.errors import EXIT_COULD_NOT_TELL, PadfixError, scratch_mark
from padfix.process import memory, watch
from padfix.process.stopped import Stopped, exit_code_of, say_stopped

GRACE = 3.0
"""Seconds that a child has to tidy up after a signal; one inside a runtime's own code can't hear it."""

IDLE = 20.0
"""Seconds without any work after which a child counts as hanging."""

_TICK = 0.25
_FORWARDED = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))

_RSS_UNITS = 2**20 if sys.platform == "darwin" else 1024
"""What a mebibyte has of the units in which the system counts the most memory that a child used."""

_NEAR = 0.6
"""Share of a limit of memory from which on a crash counts as one for want of memory. Stacks and reserves of libraries
count against the limit without being used."""

_NO_MORE_MEMORY = "Close other programs, or use a machine with more memory."

_CRASHES = {
    "SIGSEGV": "a segmentation fault",
    "SIGABRT": "an abort",
    "SIGBUS": "a bus error, as when a file shrinks while it is read",
    "SIGFPE": "an arithmetic error",
    "SIGILL": "an instruction that this processor lacks",
}


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

        with contextlib.suppress(OSError):  # if the system must end a process, then this one, not the user's others
            Path("/proc/self/oom_score_adj").write_text("500")

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
    _idle_since: float = field(default_factory=time.monotonic)
    _used: float = 0.0
    _memory: memory.Memory | None = field(default_factory=memory.available)
    _most: float = 0.0  # mebibytes that were seen in use

    def wait(self) -> int:
        """Return the exit code of the child, ended or not by itself."""
        while True:
            with contextlib.suppress(InterruptedError):
                select.select([self.ended], [], [], _TICK)
            found, status, usage = os.wait4(self.child, os.WNOHANG)
            if found:
                self._most = max(self._most, usage.ru_maxrss / _RSS_UNITS)
                return self._finish(os.waitstatus_to_exitcode(status))
            self._forward()
            if self._patience is not None:
                if time.monotonic() > self._patience or (len(self.received) > 1 and self._hurried()):
                    self._kill()
                    return self._say_stopped()
            elif (reason := self._out_of_time()) is not None:
                return self._end(f"{reason}, and was stopped.", "Allow more time with --timeout SECONDS.")
            elif self._out_of_memory():
                return self._end(f"was stopped: {self._shortage()}", _NO_MORE_MEMORY)

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
        name = signal.Signals(-code).name if code < 0 else ""
        crash = _CRASHES.get(name, name) or f"a library ended the process, exit code {code}"
        limit = self.board.limits.mebibytes
        if name == "SIGKILL":
            self._say("was killed, most likely by the system for want of memory.", _NO_MORE_MEMORY)
        elif limit and self._most > _NEAR * limit:
            message = f"crashed ({crash}) beside the limit of {limit / 1024:.1f} GiB of memory."
            self._say(message, "Allow more with --memory GIB.")
        elif not limit and self._memory is not None and self._memory.is_short:
            self._say(f"crashed ({crash}) for want of memory, most likely: {self._shortage()}", _NO_MORE_MEMORY)
        else:
            hint = "A newer version of the runtime may cure it; another judge (--reference) may do without it."
            if limit:
                hint = f"It may use {limit / 1024:.1f} GiB of memory; allow more with --memory GIB. {hint}"
            self._say(f"crashed: {crash}.", hint)
        return EXIT_COULD_NOT_TELL

    def _out_of_time(self) -> str | None:
        limits = self.board.limits
        if not limits.seconds:
            return None
        now = time.monotonic()
        elapsed = now - limits.since
        used = _processor_seconds(self.child)
        if used is None:
            used = limits.used + elapsed  # no way to tell: all the time counts
        if used - self._used > 0.1 or limits.since > self._idle_since:
            self._used, self._idle_since = used, now
        worked = used - limits.used
        # On a machine that is busy with other things a share of the time is enough, or a hang would seem to last.
        is_over = worked > limits.seconds or (elapsed > 1.3 * limits.seconds and worked > limits.seconds / 4)
        if is_over or elapsed > 10 * limits.seconds:
            return f"took longer than {limits.seconds:.0f} s"
        if now - self._idle_since > IDLE and not memory.children_of(self.child):
            return f"did nothing for {IDLE:.0f} s"
        return None

    def _out_of_memory(self) -> bool:
        """Whether the machine has next to nothing left, and the work holds a good part of what is gone."""
        self._memory = memory.available()
        limited = self.board.limits.mebibytes > 0
        if self._memory is None or not (limited or self._memory.is_short):
            return False
        used = memory.used_by(self.child)
        self._most = max(self._most, used)
        return self._memory.is_short and used > 2 * self._memory.left

    def _shortage(self) -> str:
        left = self._memory
        if left is None:
            return "there is no more memory."
        used = max(self._most, memory.used_by(self.child))
        return (
            f"it uses {used / 1024:.1f} GiB of memory, and of {left.total / 1024:.1f} GiB that there are "
            f"{left.left / 1024:.1f} GiB are left."
        )

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
        for scratch in self.board.read("scratch").splitlines():
            if scratch_mark(self.child) in Path(scratch).name:
                import shutil

                shutil.rmtree(scratch, ignore_errors=True)
        with contextlib.suppress(OSError, ValueError):
            if sys.stderr.isatty() and os.environ.get("TERM") != "dumb":
                sys.stderr.write("\r\x1b[2K")
                sys.stderr.flush()


def _processor_seconds(process: int) -> float | None:
    """Return the processor time that a child has used, or None where the system does not tell."""
    if not sys.platform.startswith("linux"):
        return None
    try:
        return time.clock_gettime(~process << 3 | 2)  # how Linux numbers the clock of another process
    except OSError:
        return None
