"""What comes of many models, one after the other: counted, streamed as JSON lines, kept where a report needs it."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self

import click

from padfix import errors
from padfix.checking.baseline import Baseline
from padfix.checking.lines import Lines
from padfix.cli import pipes
from padfix.cli.fleet import Fleet, line_settings
from padfix.cli.progress import stages
from padfix.config import Config
from padfix.files.urls import Place
from padfix.process.stopped import Stopped
from padfix.reports import jsonl
from padfix.results import CheckReport

Failures = list[tuple[str, errors.PadfixError]]


@dataclass
class Gathered(AbstractContextManager["Gathered"]):
    """The outcomes of one call.

    Attributes:
        config: The settings.
        lines: The file of JSON lines; None for standard output.
        streams: Whether each model is written as lines when it is done.
        keeps: Whether reports are kept for other formats.
        baseline: What is known already.
        quiet: Whether nothing but errors is printed.
        reports: The reports, where they are kept.
        failures: The models that could not be read.
        found: Whether there is a finding that makes the exit code 1.
    """

    config: Config
    lines: Lines | None
    streams: bool
    keeps: bool
    baseline: Baseline | None
    quiet: bool
    reports: list[CheckReport] = field(default_factory=list)
    failures: Failures = field(default_factory=list)
    found: bool = False

    def __enter__(self) -> Self:
        """Return this."""
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """Close the file of JSON lines; whoever stopped the run is told what is in it."""
        if self.lines is not None:
            self.lines.close()
            if isinstance(error, Stopped):
                number = self.lines.number
                error.outcome = f"{self.lines.file} has {number} more models, and --resume {self.lines.file} goes on"

    def gather(self, fleet: Fleet, files: Mapping[Place, Place]) -> None:
        """Check the models that ``files`` names with the file to read."""
        settings = line_settings(self.config) if self.streams else ""
        stale = 0
        with stages(quiet=self.quiet) as progress:
            for model, outcome, is_written in fleet.outcomes(files, progress):
                name = pipes.name(model)
                if isinstance(outcome, errors.PadfixError):
                    self.failures.append((name, outcome))
                    self._stream(name, [jsonl.failure(name, outcome, settings)])
                    continue
                if self.baseline is not None and not is_written:
                    outcome, left = self.baseline.apply(outcome)
                    stale += left
                if not is_written:
                    self._stream(name, [jsonl.line(report, settings) for report in outcome] if self.streams else [])
                least = self.config.fail_on.rank
                self.found |= any(each.severity.rank >= least for report in outcome for each in report.findings)
                if self.keeps:
                    self.reports.extend(outcome)
        if stale and not self.quiet:
            print(f"padfix: {stale} entries of the baseline are fixed; write it again", file=sys.stderr)
        if fleet.resumed and not self.quiet:
            print(f"padfix: {fleet.resumed} of {len(files)} models were done before", file=sys.stderr)

    def _stream(self, source: str, lines: Sequence[str]) -> None:
        if not self.streams:
            return
        if self.lines is not None:
            self.lines.add(source, lines)
        elif not self.quiet:
            click.echo("".join(lines), nl=False)
            sys.stdout.flush()
