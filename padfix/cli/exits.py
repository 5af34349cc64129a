"""From the outcome of a command to the exit code of the process; never a traceback for bad input."""

from __future__ import annotations

import contextlib
import errno
import os
import signal
import sys
import traceback
from collections.abc import Sequence

import click

from padfix.errors import EXIT_COULD_NOT_TELL, EXIT_YES, PadfixError
from padfix.process import watch
from padfix.reports.characters import printable

EXIT_INTERRUPTED = 130

_PRINTING_FAILS = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EFBIG, errno.EBADF})

_LONGEST = 2000
"""Characters of a message; names from a model may be as long as a file."""


class Stopped(BaseException):
    """The process was asked to stop by the signal ``number``."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


def exit_code_of(stopped: Stopped) -> int:
    """Return the exit code of a process that a signal stopped, as shells count: 130 for an interrupt."""
    return 128 + stopped.number


def say_stopped(stopped: Stopped, *, written: bool | None = None) -> None:
    """Print on stderr that the work was stopped, and whether the output is there (None: as this process noted)."""
    word = "interrupted" if stopped.number == signal.SIGINT else f"stopped ({signal.Signals(stopped.number).name})"
    done = watch.was_written() if written is None else written
    with contextlib.suppress(OSError, ValueError):
        print(f"padfix: {word}; {'the output had been written' if done else 'nothing was written'}", file=sys.stderr)


def run(command: click.Command, arguments: Sequence[str] | None = None) -> int:
    """Run ``command`` and return its exit code; everything that goes wrong becomes one or two lines on stderr.

    Commands return their exit code (None means 0).
    """
    _never_fail_to_print()
    try:
        # Outside standalone mode Click returns what the command returned, or the code of an early exit (--help).
        outcome = command.main(arguments and list(arguments), prog_name="padfix", standalone_mode=False)
        sys.stdout.flush()
        return outcome if isinstance(outcome, int) else EXIT_YES
    except PadfixError as error:
        print_error(error)
        return error.exit_code
    except click.ClickException as error:
        error.show()
        return EXIT_COULD_NOT_TELL
    except (click.Abort, KeyboardInterrupt):
        say_stopped(Stopped(signal.SIGINT))
        return EXIT_INTERRUPTED
    except Stopped as stopped:
        say_stopped(stopped)
        return exit_code_of(stopped)
    except MemoryError:
        print_error(_out_of_memory())
        return EXIT_COULD_NOT_TELL
    except BrokenPipeError:
        _forget_what_is_not_printed()  # the reader of our output went away (`padfix ... | head`)
        return EXIT_COULD_NOT_TELL
    except Exception as error:
        if isinstance(error, OSError) and error.errno in _PRINTING_FAILS and error.filename is None:
            written = "The output had been written." if watch.was_written() else "Nothing was written."
            print_error(PadfixError(f"The report can't be printed: {error.strerror}.", f"{written} Make room there."))
            _forget_what_is_not_printed()
            return EXIT_COULD_NOT_TELL
        if os.environ.get("PADFIX_DEBUG"):
            traceback.print_exc()
        print(f"padfix: internal error: {printable(f'{type(error).__name__}: {error}')}", file=sys.stderr)
        print("hint: set PADFIX_DEBUG=1 to see the traceback, and please report it with the model", file=sys.stderr)
        return EXIT_COULD_NOT_TELL


def _out_of_memory() -> PadfixError:
    limit = watch.memory_limit()
    if limit:
        return PadfixError(
            f"The work needs more memory than the {limit / 1024:.1f} GiB that it may use.",
            "Nothing was written. Allow more with --memory GIB.",
        )
    return PadfixError(
        "There is not enough memory.", "Nothing was written. Close other programs, or use a machine with more memory."
    )


def _forget_what_is_not_printed() -> None:
    """Keep Python from trying again, and complaining, while it shuts down."""
    with contextlib.suppress(OSError, ValueError, AttributeError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def print_error(error: PadfixError, about: str = "") -> None:
    """Print an error as a sentence and a hint, on stderr; ``about`` is the file, when there are several."""
    where = f"{printable(about)}: " if about else ""
    print(f"padfix: error: {where}{printable(_shortened(error.message))}", file=sys.stderr)
    if error.hint:
        print(f"hint: {printable(_shortened(error.hint))}", file=sys.stderr)


def _shortened(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST // 2]} ... {text[-_LONGEST // 2 :]}"


def _never_fail_to_print() -> None:
    """Let characters that the terminal's encoding lacks be escaped instead of raising."""
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="backslashreplace")
