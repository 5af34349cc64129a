"""From the outcome of a command to the exit code of the process; never a traceback for bad input."""

from __future__ import annotations

import contextlib
import errno
import os
import re
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

import click

from padfix.errors import EXIT_COULD_NOT_TELL, EXIT_YES, MissingDependencyError, PadfixError
from padfix.process import memory, watch
from padfix.process.stopped import Stopped, exit_code_of, say_stopped
from padfix.reports.characters import printable

EXIT_INTERRUPTED = 130

_PRINTING_FAILS = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EFBIG, errno.EBADF})

_LEFT_OUT = frozenset({"onnxruntime", "onnx_graphsurgeon"})
"""Packages that ``padfix check`` does without, and a small installation has not."""

_REPORT_IT = "set PADFIX_DEBUG=1 to see the traceback, and please report it with the model"

_LONGEST = 2000
"""Characters of a message; names from a model may be as long as a file."""


class _ShortageError(PadfixError):
    """A want of memory, explained."""


def run(command: click.Command, arguments: Sequence[str] | None = None) -> int:
    """Run ``command`` and return its exit code; everything that goes wrong becomes one or two lines on stderr.

    Commands return their exit code (None means 0).
    """
    _never_fail_to_print()
    try:
        outcome = _outcome(command, arguments)
        sys.stdout.flush()
        return outcome if isinstance(outcome, int) else EXIT_YES
    except PadfixError as error:
        shown = _explained(error)
        _print(shown)
        return shown.exit_code
    except SystemExit as leaving:  # Click leaves so behind what completes a shell's words
        return leaving.code if isinstance(leaving.code, int) else EXIT_COULD_NOT_TELL
    except click.ClickException as error:
        error.show()
        return EXIT_COULD_NOT_TELL
    except (click.Abort, KeyboardInterrupt):
        say_stopped(Stopped(signal.SIGINT))
        return EXIT_INTERRUPTED
    except Stopped as stopped:
        say_stopped(stopped)
        return exit_code_of(stopped)
    except BrokenPipeError:
        _forget_what_is_not_printed()  # the reader of our output went away (`padfix ... | head`)
        return EXIT_COULD_NOT_TELL
    except Exception as error:
        if (known := _known_failure(error)) is not None:
            _print(known)
            return EXIT_COULD_NOT_TELL
        if isinstance(error, OSError) and error.errno in _PRINTING_FAILS and error.filename is None:
            written = "The output had been written." if watch.was_written() else "Nothing was written."
            print_error(PadfixError(f"The report can't be printed: {error.strerror}.", f"{written} Make room there."))
            _forget_what_is_not_printed()
            return EXIT_COULD_NOT_TELL
        _show_traceback()
        print(f"padfix: internal error: {printable(f'{type(error).__name__}: {error}')}", file=sys.stderr)
        print(f"hint: {_REPORT_IT}", file=sys.stderr)
        return EXIT_COULD_NOT_TELL


def failure_of(error: Exception) -> PadfixError:
    """Return what to say of one of many pieces of work that raised something; the others go on."""
    if isinstance(error, PadfixError):
        return _explained(error)
    if (known := _known_failure(error)) is not None:
        return known
    _show_traceback()
    return PadfixError(f"internal error: {type(error).__name__}: {error}", _REPORT_IT)


def _show_traceback() -> None:
    if os.environ.get("PADFIX_DEBUG"):
        import traceback

        traceback.print_exc()


def _known_failure(error: Exception) -> PadfixError | None:
    """Return the error for what is no fault of padfix: a want of memory, a package that is not there."""
    if (want := _want_of_memory(error)) is not None:
        return _out_of_memory(want)
    if isinstance(error, ModuleNotFoundError) and error.name in _LEFT_OUT:
        return _without_package(error.name)
    return None


def _outcome(command: click.Command, arguments: Sequence[str] | None) -> object:
    try:
        # Outside standalone mode Click returns what the command returned, or the code of an early exit (--help).
        return command.main(arguments and list(arguments), prog_name="padfix", standalone_mode=False)
    except BaseException:
        watch.lift_memory_limit()
        raise


def _explained(error: PadfixError) -> PadfixError:
    """Return the error to show for ``error``: another one if it comes from a want of memory, whoever noticed that."""
    want = None if isinstance(error, _ShortageError) else _want_of_memory(error)
    return error if want is None else _out_of_memory(want)


def _want_of_memory(error: BaseException) -> str | None:
    left = memory.available()
    is_limited = watch.memory_limit() > 0 or (left is not None and left.is_short)
    return memory.want_behind(error, under_a_limit=is_limited)


def _out_of_memory(want: str) -> _ShortageError:
    outcome = "The output had been written." if watch.was_written() else "Nothing was written."
    said = f" ({want.strip().rstrip('.')})" if want.strip() else ""
    limit = watch.memory_limit()
    if limit:
        return _ShortageError(
            f"The work needs more memory than the {limit / 1024:.1f} GiB that it may use{said}.",
            f"{outcome} Allow more with --memory GIB.",
        )
    return _ShortageError(
        f"There is not enough memory for this work{said}.",
        f"{outcome} Close other programs, or use a machine with more memory.",
    )


def _without_package(name: str) -> PadfixError:
    return MissingDependencyError(
        f"This needs the package {name.replace('_', '-')}, which a small installation for padfix check leaves out.",
        "Install padfix with all that it requires: pip install without --no-deps.",
    )


def _forget_what_is_not_printed() -> None:
    """Keep Python from trying again, and complaining, while it shuts down."""
    with contextlib.suppress(OSError, ValueError, AttributeError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def print_error(error: PadfixError, about: str = "") -> None:
    """Print an error as a sentence and a hint, on stderr; ``about`` is the file, when there are several.

    The file is named once, as the user wrote it.
    """
    _print(_explained(error), about)


def _print(error: PadfixError, about: str = "") -> None:
    message = error.message.replace(str(Path(about).resolve()), about) if about else error.message
    is_named = re.search(rf"(?<![\w/.-]){re.escape(about)}(?![\w/-])", message) is not None
    where = f"{printable(about)}: " if about and not is_named else ""
    print(f"padfix: error: {where}{printable(_shortened(message))}", file=sys.stderr)
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
