"""A process that was asked to stop: what it raises, prints, and exits with."""

from __future__ import annotations

import contextlib
import signal
import sys

from padfix.process import watch


class Stopped(BaseException):
    """The process was asked to stop by the signal ``number``; ``outcome`` says what is there, if not all or nothing."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number
        self.outcome = ""


def exit_code_of(stopped: Stopped) -> int:
    """Return the exit code of a process that a signal stopped, as shells count: 130 for an interrupt."""
    return 128 + stopped.number


def say_stopped(stopped: Stopped, *, written: bool | None = None) -> None:
    """Print on stderr that the work was stopped, and whether the output is there (None: as this process noted)."""
    word = "interrupted" if stopped.number == signal.SIGINT else f"stopped ({signal.Signals(stopped.number).name})"
    done = watch.was_written() if written is None else written
    outcome = stopped.outcome or ("the output had been written" if done else "nothing was written")
    with contextlib.suppress(OSError, ValueError):
        print(f"padfix: {word}; {outcome}", file=sys.stderr)
