"""From the outcome of a command to the exit code of the process; never a traceback for bad input."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Sequence

import click

from padfix.errors import EXIT_COULD_NOT_TELL, EXIT_YES, PadfixError
from padfix.reports.characters import printable

EXIT_INTERRUPTED = 130


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
        print("padfix: interrupted; nothing was written", file=sys.stderr)
        return EXIT_INTERRUPTED
    except BrokenPipeError:
        # The reader of our output went away (`padfix ... | head`): keep Python from complaining while it shuts down.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return EXIT_COULD_NOT_TELL
    except Exception as error:
        if os.environ.get("PADFIX_DEBUG"):
            traceback.print_exc()
        print(f"padfix: internal error: {printable(f'{type(error).__name__}: {error}')}", file=sys.stderr)
        print("hint: set PADFIX_DEBUG=1 to see the traceback, and please report it with the model", file=sys.stderr)
        return EXIT_COULD_NOT_TELL


def print_error(error: PadfixError, about: str = "") -> None:
    """Print an error as a sentence and a hint, on stderr; ``about`` is the file, when there are several."""
    where = f"{printable(about)}: " if about else ""
    print(f"padfix: error: {where}{printable(error.message)}", file=sys.stderr)
    if error.hint:
        print(f"hint: {printable(error.hint)}", file=sys.stderr)


def _never_fail_to_print() -> None:
    """Let characters that the terminal's encoding lacks be escaped instead of raising."""
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="backslashreplace")
