"""What comes of many models, one after the other: counted, streamed as JSON lines, kept where a report needs it."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from types import TracebackType
from typing import TYPE_CHECKING

import click

from padfix import errors
from padfix.cli import pipes
from padfix.cli.fleet import Fleet, Outcome, line_settings
from padfix.cli.progress import stages
from padfix.config.settings import Config
from padfix.files.urls import Place
from padfix.process.stopped import Stopped
from padfix.results import CheckReport

if TYPE_CHECKING:
    from padfix.checking.baseline import Baseline
    from padfix.checking.lines import Lines

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
    _settings: str = ""

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """Close the file of JSON lines; whoever stopped the run is told what is in it."""
        if self.lines is not None:
            self.lines.close()
            if isinstance(error, Stopped):
                number = self.lines.number
                error.outcome = f"{self.lines.file} has {number} more models, and --resume {self.lines.file} goes on"

    def gather(self, fleet: Fleet, files: Mapping[Place, Place]) -> None:
        """Check the models that ``files`` names with the file to read."""
        self._settings = line_settings(self.config) if self.streams else ""
        least = self.config.fail_on.rank
        stale = 0
        with stages(quiet=self.quiet) as progress:
            for model, outcome, is_written in fleet.outcomes(files, progress):
                if isinstance(outcome, errors.PadfixError):
                    self.failures.append((pipes.name(model), outcome))
                    self._stream(pipes.name(model), outcome)
                    continue
                if self.baseline is not None and not is_written:
                    outcome, left = self.baseline.apply(outcome)
                    stale += left
                if self.streams and not is_written:
                    self._stream(pipes.name(model), outcome)
                for report in outcome:
                    self.found = self.found or any(each.severity.rank >= least for each in report.findings)
                if self.keeps:
                    self.reports.extend(outcome)
        if stale and not self.quiet:
            print(f"padfix: {stale} entries of the baseline are fixed; write it again", file=sys.stderr)
        if fleet.resumed and not self.quiet:
            print(f"padfix: {fleet.resumed} of {len(files)} models were done before", file=sys.stderr)

    def _stream(self, source: str, outcome: Outcome) -> None:
        if not self.streams:
            return
        from padfix.reports import jsonl

        if isinstance(outcome, errors.PadfixError):
            lines = [jsonl.failure(source, outcome, self._settings)]
        else:
            lines = [jsonl.line(report, self._settings) for report in outcome]
        if self.lines is not None:
            self.lines.add(source, lines)
        elif not self.quiet:
            click.echo("".join(lines), nl=False)
            sys.stdout.flush()
