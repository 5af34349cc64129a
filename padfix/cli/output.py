"""Delivering a report: printed in the format asked for, and written to the file asked for."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

import click

from padfix import errors
from padfix.files import atomic_text
from padfix.reports.characters import printable
from padfix.results import ConvertReport, Verdict


@dataclass(frozen=True)
class Delivery:
    """Where a report goes: to a ``file``, whatever the outcome, and printed in a ``format`` unless ``quiet``."""

    file: Path | None
    format: str
    quiet: bool
    verbose: bool

    @property
    def draws(self) -> bool:
        """Whether the report has pictures, the error of each layer among them."""
        return self.file is not None and self.file.suffix.lower() in (".html", ".md")

    def deliver(self, report: ConvertReport | Verdict, *, written: bool, to_stderr: bool = False) -> None:
        """Print the report unless ``quiet``, and write it to the file if there is one.

        A report that does not fit into memory is left out with a note: it must not cost what it is about.

        Args:
            report: The report.
            written: Whether a model was written.
            to_stderr: Leave standard output to the model.
        """
        if self.file is not None:
            try:
                write(self.file, _render(report, self.file.suffix.lower().lstrip("."), written=written, verbose=True))
            except MemoryError:
                note = f"the report {printable(str(self.file))} was left out: there is not enough memory for it"
                print(f"padfix: note: {note}", file=sys.stderr)
        if not self.quiet:
            shown = _render(report, self.format, written=written, verbose=self.verbose)
            click.echo(shown, nl=False, err=to_stderr)


def write(file: Path, text: str) -> None:
    """Write a report to ``file`` as UTF-8.

    Raises:
        OutputError: When the file can't be written.
    """
    try:
        atomic_text.write_text(file, text)
    except OSError as error:
        raise errors.OutputError(
            f"The report can't be written to {file}: {error.strerror or error}.", "Name a file in a writable folder."
        ) from error


def append(file: Path, text: str) -> None:
    """Append a report to ``file`` as UTF-8.

    Raises:
        OutputError: When the file can't be written.
    """
    try:
        with file.open("a", encoding="utf-8") as stream:
            stream.write(text)
    except OSError as error:
        raise errors.OutputError(f"The report can't be written to {file}: {error.strerror or error}.") from error


def _render(report: ConvertReport | Verdict, kind: str, *, written: bool, verbose: bool) -> str:
    if kind == "json":
        from padfix.reports import json

        return json.report(report)
    if kind == "html":
        from padfix.reports import html

        return html.report(report, written=written)
    if kind == "md":
        from padfix.reports import markdown

        return markdown.report(report, written=written)
    from padfix.reports import text

    return text.report(report, written=written, verbose=verbose)
