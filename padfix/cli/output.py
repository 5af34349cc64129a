"""Delivering a report: printed in the format asked for, and written to the file asked for."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from padfix import errors
from padfix.files import atomic_text
from padfix.reports.characters import printable
from padfix.results import ConvertReport, Verdict


def deliver(
    report: ConvertReport | Verdict,
    *,
    written: bool,
    file: Path | None,
    report_format: str,
    quiet: bool,
    verbose: bool,
    to_stderr: bool = False,
) -> None:
    """Print ``report`` unless ``quiet`` and write it to ``file`` if given; ``written``: whether a model was.

    ``to_stderr`` leaves standard output to the model. A report that does not fit into memory is left out with a note:
    it must not cost what it is about.
    """
    if file is not None:
        try:
            write(file, _render(report, file.suffix.lower().lstrip("."), written=written, verbose=True))
        except MemoryError:
            note = f"the report {printable(str(file))} was left out: there is not enough memory for it"
            print(f"padfix: note: {note}", file=sys.stderr)
    if not quiet:
        click.echo(_render(report, report_format, written=written, verbose=verbose), nl=False, err=to_stderr)


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
