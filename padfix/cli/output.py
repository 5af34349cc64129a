"""Delivering a report: printed in the format asked for, and written to the file asked for."""

from __future__ import annotations

import importlib
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from padfix.cli.report_files import write
from padfix.cli.terminal import style_of
from padfix.errors import UsageError
from padfix.reports.characters import printable
from padfix.reports.text_style import PLAIN, Style
from padfix.results import ConvertReport, RuntimesReport, Verdict

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

Report = ConvertReport | Verdict | RuntimesReport
_MODULES = {"md": "markdown"}


@dataclass(frozen=True)
class Delivery:
    """Where a report goes: to a ``file``, whatever the outcome, and printed in a ``format`` unless ``quiet``.

    A proof is also written as an attestation beside the file, where there is a ``key`` to sign it with.
    """

    file: Path | None
    format: str
    quiet: bool
    verbose: bool
    key: Ed25519PrivateKey | None = None

    @classmethod
    def of(cls, file: Path | None, format: str, key_file: Path | None, *, quiet: bool, verbose: bool) -> Delivery:
        """Return a delivery, with the key read before any work is done.

        Raises:
            UsageError: There is a key but no JSON report, or the file holds no Ed25519 key.
            MissingDependencyError: The package that signs is not installed.
        """
        if key_file is None:
            return cls(file, format, quiet, verbose)
        from padfix.checking import attestation

        if file is None or file.suffix.lower() != ".json":
            raise UsageError("What is signed is a JSON report.", "Name one with --report FILE.json.")
        return cls(file, format, quiet, verbose, attestation.private_key(key_file))

    @property
    def draws(self) -> bool:
        """Whether the report has pictures, the error of each layer among them."""
        return self.file is not None and self.file.suffix.lower() in (".html", ".md")

    def deliver(self, report: Report, *, to_stderr: bool = False) -> None:
        """Print the report unless ``quiet``, and write it to the file if there is one.

        A report that does not fit into memory is left out with a note: it must not cost what it is about. Of a
        conversion that came to nothing before any rewriting there is no more to print than its error.

        Args:
            report: The report.
            to_stderr: Leave standard output to the model.
        """
        self.keep(report)
        if not self.quiet and (not isinstance(report, ConvertReport) or report.opset is not None):
            style = style_of(sys.stderr if to_stderr else sys.stdout)
            shown = _render(report, self.format, verbose=self.verbose, style=style)
            click.echo(shown, nl=False, err=to_stderr, color=style.colour)

    def keep(self, report: Report) -> None:
        """Write the report to the file, if there is one."""
        if self.file is not None:
            try:
                kept = _render(report, self.file.suffix.lower().lstrip("."), verbose=True)
                write(self.file, kept)
                self._attest(self.file, kept)
            except MemoryError:
                note = f"the report {printable(str(self.file))} was left out: there is not enough memory for it"
                print(f"padfix: note: {note}", file=sys.stderr)

    def _attest(self, file: Path, report: str) -> None:
        """Write a proof as an attestation beside its report, if there is a key; no other is left there."""
        if self.key is None:
            return
        from padfix.checking import attestation

        text, place = attestation.signed(report, self.key), attestation.place_of(file)
        if text is not None:
            write(place, text)
        else:
            place.unlink(missing_ok=True)
            print("padfix: note: nothing is signed: the report proves nothing", file=sys.stderr)


def _render(report: Report, kind: str, *, verbose: bool, style: Style = PLAIN) -> str:
    if kind == "text":
        from padfix.reports import proof_text

        return proof_text.report(report, verbose=verbose, style=style)
    return str(importlib.import_module(f"padfix.reports.{_MODULES.get(kind, kind)}").report(report))
