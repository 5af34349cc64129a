"""Every error that a user can meet: a sentence that says what is wrong, a hint what to do, and an exit code.

Exit codes: 0 yes, 1 no (findings, not equal, something refused), 2 could not tell (usage, unreadable or unsupported
input, the proof could not run). Only :class:`NotEquivalent` and :class:`RefusedError` mean "no"; every other error
means "could not tell".
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from padfix.results import ConvertReport

EXIT_YES = 0
EXIT_NO = 1
EXIT_COULD_NOT_TELL = 2


_SCRATCH = re.compile(r"(?<=/)\.[^/'\"]+?\.padfix-\d+-[0-9a-f]{8}-\w+/|(?:/[^\s'\"]*)?/padfix-\d+-\w{8}/")
"""A folder beside the place of what is staged in it, and a temporary one."""


def scratch_mark(process: int | None = None) -> str:
    """Return what marks the names of the temporary folders of a process, this one by default."""
    return f"padfix-{os.getpid() if process is None else process}-"


def without_scratch(text: str) -> str:
    """Return a text without the names of padfix's own temporary folders, which mean nothing to a user.

    What is staged in a folder beside its place is called as it will be there.
    """
    return _SCRATCH.sub("", text)


class PadfixError(Exception):
    """Base of all errors that padfix raises on purpose.

    Attributes:
        message: One sentence: what is wrong.
        hint: What the user can do about it; empty when there is nothing to add.
        exit_code: The process exit code that the command line ends with.
        report: The conversion's report, as far as it got; None outside a conversion.
    """

    exit_code: int = EXIT_COULD_NOT_TELL
    report: ConvertReport | None = None

    def __init__(self, message: str, hint: str = "") -> None:
        message = without_scratch(message)
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message} {self.hint}".strip()


class UsageError(PadfixError):
    """The options contradict each other or name something that the model does not have."""


class SourceError(PadfixError):
    """The input is missing, empty, truncated, or not a model."""


class UnsupportedError(PadfixError):
    """The input is a model, but of a kind or with a part that padfix can't convert exactly."""


class MissingDependencyError(PadfixError):
    """An optional package is not installed; the hint is the one command that installs it."""


class ProofUnavailableError(PadfixError):
    """The proof could not run: a witness can't execute the original, or executes it against the specification."""


class UnusableResultError(ProofUnavailableError):
    """A witness can't load the result, so that it could not be compared."""


class NowhereRunError(ProofUnavailableError):
    """ONNX Runtime can run neither the original nor the result on the data of the proof."""


class OutputError(PadfixError):
    """The output can't be written (permission, disk, or it is the input itself)."""


class NotEquivalent(PadfixError):  # noqa: N818 - a name of the public contract
    """The proof ran and the numbers differ; nothing was written. The report's ``verdict`` names outputs and probe."""

    exit_code = EXIT_NO


class RefusedError(PadfixError):
    """Something could not be rewritten exactly, so the result would not be what was asked for; nothing was written.

    The report's ``refusals`` say what and why.
    """

    exit_code = EXIT_NO


def suggestion(word: str, known: Sequence[str], title: str = "Known") -> str:
    """Return ``"Did you mean 'x'?"`` for the nearest of ``known``, or the list of them after ``title``."""
    import difflib

    near = difflib.get_close_matches(word, known, n=1, cutoff=0.6)
    return f"Did you mean {near[0]!r}?" if near else f"{title}: {', '.join(known)}."
