"""What whoever watches over a process sees of it: that its time is over, that memory is short, how it ended."""

from __future__ import annotations

import contextlib
import signal
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

from padfix.errors import scratch_mark
from padfix.process import memory, watch

IDLE = 20.0
"""Seconds without any work after which a process with a limit of time counts as hanging."""

NO_MORE_MEMORY = "Close other programs, or use a machine with more memory."

_MORE_TIME = "Allow more time with --timeout SECONDS."
_MORE_MEMORY = "Allow more with --memory GIB."

_NEAR = 0.6
"""Share of a limit of memory from which on a crash counts as one for want of memory. Stacks and reserves of libraries
count against the limit without being used."""

_CRASHES = {
    "SIGSEGV": "a segmentation fault",
    "SIGABRT": "an abort",
    "SIGBUS": "a bus error, as when a file shrinks while it is read",
    "SIGFPE": "an arithmetic error",
    "SIGILL": "an instruction that this processor lacks",
}


@dataclass
class Oversight:
    """Looks at a process by its number, and at the board that it tells what it does."""

    process: int
    board: watch.Board
    most: float = 0.0  # mebibytes that were seen in use
    _idle_since: float = field(default_factory=time.monotonic)
    _room_since: float = field(default_factory=time.monotonic)
    _used: float = 0.0
    _memory: memory.Memory | None = field(default_factory=memory.available)

    def stuck(self) -> tuple[str, str] | None:
        """Return the words for a process that is over its limit of time or hangs, and what to do; None for any other.

        One that is limited hangs when it does nothing; with a limit of memory alone, when that is near as well: threads
        and locks of libraries wait for ever for what found none. Where nothing at all is left, Python may go round for
        ever between an exception and its handler, which needs a few bytes.
        """
        limits = self.board.limits
        is_near = self._is_near()
        now = time.monotonic()
        if not limits.mebibytes or not memory.is_used_up(self.process):
            self._room_since = now
        elif now - self._room_since > IDLE:
            beside = f"the limit of {limits.mebibytes / 1024:.1f} GiB of memory"
            return f"found no memory for {IDLE:.0f} s beside {beside}, and was stopped.", _MORE_MEMORY
        if not (limits.seconds or is_near):
            return None
        elapsed = now - limits.since
        used = _processor_seconds(self.process)
        if used is None:
            used = limits.used + elapsed  # no way to tell: all the time counts
        if used - self._used > 0.1 or limits.since > self._idle_since:
            self._used, self._idle_since = used, now
        worked = used - limits.used
        # On a machine that is busy with other things a share of the time is enough, or a hang would seem to last.
        is_over = worked > limits.seconds or (elapsed > 1.3 * limits.seconds and worked > limits.seconds / 4)
        if limits.seconds and (is_over or elapsed > 10 * limits.seconds):
            return f"took longer than {limits.seconds:.0f} s, and was stopped.", _MORE_TIME
        if now - self._idle_since > IDLE and not memory.children_of(self.process):
            beside = f" beside the limit of {limits.mebibytes / 1024:.1f} GiB of memory" if is_near else ""
            return f"did nothing for {IDLE:.0f} s{beside}, and was stopped.", _MORE_MEMORY if is_near else _MORE_TIME
        return None

    def _is_near(self) -> bool:
        """Whether the limit of memory explains what goes wrong."""
        limit = self.board.limits.mebibytes
        return bool(limit) and self.most > _NEAR * limit

    def out_of_memory(self, head_start: float = 1.0) -> bool:
        """Whether the machine has next to nothing left, and the process holds a good part of what is gone.

        With a ``head_start`` above 1 that is so while a little more is left.
        """
        self._memory = memory.available()
        limited = self.board.limits.mebibytes > 0
        if self._memory is None:
            return False
        is_short = self._memory._replace(left=self._memory.left / head_start).is_short
        if not (limited or is_short):
            return False
        used = memory.used_by(self.process)
        self.most = max(self.most, used)
        return is_short and used > 2 * self._memory.left

    def shortage(self) -> str:
        """Return how much memory the process takes, and how little is left."""
        left = self._memory
        if left is None:
            return "there is no more memory."
        used = max(self.most, memory.used_by(self.process))
        return (
            f"it uses {used / 1024:.1f} GiB of memory, and of {left.total / 1024:.1f} GiB that there are "
            f"{left.left / 1024:.1f} GiB are left."
        )

    def ending(self, code: int) -> tuple[str, str]:
        """Return the words for a process that ended with an exit code before it had an answer, and what to do."""
        name = signal.Signals(-code).name if code < 0 else ""
        crash = _CRASHES.get(name, name) or f"a library ended the process, exit code {code}"
        limit = self.board.limits.mebibytes
        if name == "SIGKILL":
            return "was killed, most likely by the system for want of memory.", NO_MORE_MEMORY
        if self._is_near():
            beside = f"crashed ({crash}) beside the limit of {limit / 1024:.1f} GiB of memory."
            return beside, _MORE_MEMORY
        if not limit and self._memory is not None and self._memory.is_short:
            return f"crashed ({crash}) for want of memory, most likely: {self.shortage()}", NO_MORE_MEMORY
        hint = "A newer version of the runtime may cure it; another judge (--reference) may do without it."
        if limit:
            hint = f"It may use {limit / 1024:.1f} GiB of memory; allow more with --memory GIB. {hint}"
        return f"crashed: {crash}.", hint

    def tidy(self) -> None:
        """Remove what the process noted as its own to remove, and can't any more."""
        for scratch in self.board.read("scratch").splitlines():
            if scratch_mark(self.process) in Path(scratch).name:
                import shutil

                shutil.rmtree(scratch, ignore_errors=True)


def volunteer_for_the_system(score: int = 500) -> None:
    """Let the system, if it must end a process for want of memory, end this one and none of the user's others.

    Of several that do the one with the higher ``score`` goes first.
    """
    with contextlib.suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text(str(score))


def _processor_seconds(process: int) -> float | None:
    """Return the processor time that a child has used, or None where the system does not tell."""
    if not sys.platform.startswith("linux"):
        return None
    try:
        return time.clock_gettime(~process << 3 | 2)  # how Linux numbers the clock of another process
    except OSError:
        return None
