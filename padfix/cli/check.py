"""``padfix check``: a linter for models. Imports only what matching needs, because it runs in every build."""

from __future__ import annotations

import dataclasses
import os
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from padfix import errors
from padfix.checking.cache import Cache
from padfix.cli import options, pipes
from padfix.cli.exits import print_error
from padfix.cli.fleet import Fleet, FleetOptions, fleet_options, without_circles
from padfix.cli.gathering import Failures, Gathered
from padfix.cli.sections import SectionedCommand
from padfix.cli.terminal import style_of
from padfix.config.settings import Config
from padfix.files.urls import Place, Url, matched
from padfix.reports import check_formats
from padfix.results import CheckReport, Severity

if TYPE_CHECKING:
    from padfix.checking.baseline import Baseline

_DRAWN = frozenset({"github", "html", "markdown"})

LARGEST_SUMMARY = 900_000
"""GitHub drops a step's summary above 1 MiB."""


def parse_reports(ctx: click.Context, param: click.Parameter, values: tuple[str, ...]) -> tuple[tuple[str, Path], ...]:
    """Return the (format, file) pairs of ``--report FORMAT=FILE``."""
    pairs = []
    for value in values:
        report_format, separator, file = value.partition("=")
        if not separator or not file or report_format not in check_formats.FORMATS:
            known = ", ".join(check_formats.FORMATS)
            raise click.BadParameter(f"{value!r} is not of the form FORMAT=FILE with one of {known}")
        path = options.FILE.convert(file, param, ctx)
        options.in_a_folder(ctx, param, path)
        pairs.append((report_format, path))
    return tuple(pairs)


EXAMPLES = """
padfix check model.onnx
padfix check models --ignore PF103 --fail-on error
padfix check "models/**/*.onnx" --format sarif --output padfix.sarif
padfix check models --changed-since origin/main --format github
padfix check models --write-baseline padfix-baseline.json
padfix check model.onnx --require-proof proof.json --proof-source original.onnx
"""


@click.command("check", cls=SectionedCommand, epilog=EXAMPLES)
@click.argument("models", metavar="MODEL...", nargs=-1, required=True, type=options.PLACE)
@options.targets_option("What the models must suit (comma-separated, or repeated).  [default: onnx]")
@options.codes_option("--select", "Only these rules (comma-separated).")
@options.codes_option("--ignore", "All rules but these (comma-separated).")
@click.option(
    "--fail-on",
    type=click.Choice([severity.value for severity in Severity]),
    help="The least severity that makes the exit code 1.  [default: warning]",
)
@options.format_option(check_formats.FORMATS, "Of the report.")
@options.file_option(
    "--output", "report_file", callback=options.in_a_folder, help="Write the report to a file instead of printing it."
)
@options.repeated_option(
    *("--report", "more_reports"),
    metavar="FORMAT=FILE",
    callback=parse_reports,
    help="Also write a report in another format.",
)
@options.file_option("--baseline", help="Leave out the findings that this file holds.")
@options.file_option(
    "--write-baseline", callback=options.in_a_folder, help="Write all findings to a baseline file, and end with 0."
)
@options.file_option("--config", "config_file", help="A padfix.toml or pyproject.toml, instead of the nearest one.")
@fleet_options
@click.option(
    "--require-proof",
    "proof_file",
    metavar="FILE.json",
    type=options.LocalType(exists=True, dir_okay=False),
    help="A report of convert or verify; an error (PF304) unless it proves this very MODEL.",
)
@click.option(
    "--proof-source", metavar="FILE|SHA256", help="With --require-proof, what the model has to be proven against."
)
@click.option(
    "--allow-loose-proof",
    is_flag=True,
    help="With --require-proof, take looser tolerances than the defaults, --probes-only, and a single value.",
)
@options.file_option("--verify-key", help="With --require-proof, the public Ed25519 key that has to have signed it.")
@options.repeated_option(
    "--exclude", metavar="PATTERN", callback=None, help="Leave these out of what a folder brings in."
)
@click.option("--changed-since", metavar="REF", help="Only models that differ from this branch or commit of git.")
@click.option("--exit-zero", is_flag=True, help="End with 0 whatever is found; with 2 where a model can't be read.")
@click.option("--quiet", "-q", is_flag=True, help="Print errors only; the exit code tells the rest.")
@options.limit_options
def command(
    models: tuple[Place, ...],
    *,
    report_format: str,
    report_file: Path | None,
    more_reports: tuple[tuple[str, Path], ...],
    write_baseline: Path | None,
    config_file: Path | None,
    fleet: FleetOptions,
    proof_file: Path | None,
    proof_source: str | None,
    allow_loose_proof: bool,
    verify_key: Path | None,
    exclude: tuple[str, ...],
    changed_since: str | None,
    exit_zero: bool,
    quiet: bool,
    limits: options.Limits,
    **settings: Any,
) -> int:
    """Report what is implicit, legacy or unsafe in ONNX models. Needs neither TensorFlow nor the weights.

    MODEL is a file, a folder (every ONNX file below it, told by content) or a pattern such as "models/**/*.onnx", here
    or in a store (s3://, https:// and what else fsspec knows); - is standard input.
    """
    config = _config(config_file, settings)
    wanted = _Reports(report_format, report_file, more_reports, write_baseline, fleet.resumed, quiet)
    proof = _required_proof(proof_file, proof_source, verify_key, loose=allow_loose_proof)
    with fleet.cache(models, config, draws=wanted.draws) as cache:
        paths = _models(models, config, exclude, changed_since, cache)
        if changed_since is not None and not paths:
            _tell(f"no model differs from {changed_since}", quiet=quiet)
        _refuse_collisions(wanted.files, paths)
        if fleet.resumed is not None:
            _refuse_same_names(paths)
        if proof is not None and (len(paths) != 1 or wanted.streams):
            raise errors.UsageError(
                "A proof is about one model, and one report.", "Give one MODEL with --require-proof, and no JSON lines."
            )
        known = None if write_baseline is not None else _baseline(config)
        lines = fleet.lines(report_file if wanted.streams else None, config)
        with (
            without_circles(),
            pipes.received(paths) as files,
            Gathered(config, lines, wanted.streams, wanted.keeps, known, quiet) as gathered,
        ):
            gathered.gather(Fleet(config, fleet, limits, cache, lines, draws=wanted.draws), files)
            reports, failures = gathered.reports, gathered.failures
            if write_baseline is not None:
                _write_baseline(write_baseline, reports, quiet=quiet)
            if proof is not None and reports:
                reports = [_held_to_proof(reports[0], proof, files[paths[0]], failures), *reports[1:]]
            wanted.deliver(reports, failures, config)
            for name, failure in failures:
                print_error(failure, name if len(paths) > 1 else "")
    if failures:
        return errors.EXIT_COULD_NOT_TELL
    fails = (gathered.found and write_baseline is None) or any(each.proof and not each.proof.proven for each in reports)
    return errors.EXIT_NO if fails and not exit_zero else errors.EXIT_YES


@dataclass(frozen=True)
class _Reports:
    """Which reports are wanted, and where."""

    format: str
    file: Path | None
    more: tuple[tuple[str, Path], ...]
    baseline: Path | None
    resumed: Path | None
    quiet: bool

    def __post_init__(self) -> None:
        if self.resumed is not None and (self.file is not None or self.format not in ("text", "jsonl")):
            raise errors.UsageError(
                "--resume writes JSON lines to its file.", "--report FORMAT=FILE writes other reports beside it."
            )

    @property
    def streams(self) -> bool:
        """Whether each model is written when it is done."""
        return self.format == "jsonl" or self.resumed is not None

    @property
    def keeps(self) -> bool:
        """Whether something is written of all models together."""
        return not self.streams or bool(self.more) or self.baseline is not None

    @property
    def draws(self) -> bool:
        """Whether one of the reports has pictures, or a map of the graph."""
        return not _DRAWN.isdisjoint((self.format, *(each for each, _ in self.more)))

    @property
    def files(self) -> list[Path]:
        """All that is written to."""
        named = (self.resumed, self.file, self.baseline, *(file for _, file in self.more))
        return [file for file in named if file is not None]

    def deliver(self, reports: Sequence[CheckReport], failures: Failures, config: Config) -> None:
        """Print the reports or write them to a file, write them in other formats, and on the page of a GitHub step."""
        for each, file in self.more:
            _write(file, check_formats.render(each, reports, failures, fail_on=config.fail_on))
        # Whoever writes a baseline has just been told the number, and is not to read what is known from now on.
        silent = self.quiet or (self.baseline is not None and self.format == "text")
        if self.streams:
            return
        if self.file is not None:
            _write(self.file, check_formats.render(self.format, reports, failures, fail_on=config.fail_on))
        elif not silent:
            style = style_of(sys.stdout)
            shown = check_formats.render(self.format, reports, failures, fail_on=config.fail_on, style=style)
            click.echo(shown, nl=False, color=style.colour)
        if self.format == "github":
            _step_summary(reports, failures)


def _required_proof(
    file: Path | None, source: str | None, key: Path | None, *, loose: bool
) -> tuple[Path, str | None, bool, Path | None] | None:
    """Return what a proof has to hold to; None where none is required."""
    if file is None and (source or loose or key):
        raise errors.UsageError("There is no proof to hold to that.", "Name a report with --require-proof.")
    return None if file is None else (file, source, loose, key)


def _baseline(config: Config) -> Baseline | None:
    if config.baseline is None:
        return None
    from padfix.checking.baseline import Baseline

    return Baseline.read(config)


def _write_baseline(file: Path, reports: Sequence[CheckReport], *, quiet: bool) -> None:
    from padfix.checking import baseline

    _write(file, baseline.render(reports, file.resolve().parent))
    number = sum(len(report.findings) for report in reports)
    _tell(f"wrote {file} with {number} findings", quiet=quiet)


def _models(
    arguments: Sequence[Place], config: Config, excluded: Sequence[str], reference: str | None, cache: Cache | None
) -> list[Place]:
    """Return the models that the command line means; of these, where a commit is named, what differs from it."""
    from padfix.checking import discovery
    from padfix.config.settings import matches_path

    folders = [Path(pattern).resolve() for pattern in excluded]

    def is_left_out(place: Place) -> bool:
        if not excluded and not config.exclude:
            return False
        is_below = isinstance(place, Path) and any(place.resolve().is_relative_to(folder) for folder in folders)
        path = matched(place)
        return is_below or config.excludes(path) or any(matches_path(pattern, path) for pattern in excluded)

    places = discovery.onnx_files(
        arguments, excluded=is_left_out, is_known=lambda place: cache is not None and cache.known(place) is not None
    )
    if reference is None:
        return places
    from padfix.checking.changes import changed_since

    paths = [place for place in places if isinstance(place, Path)]
    if len(paths) < len(places):
        raise errors.UsageError("git knows of no changes behind URLs.", "Leave out --changed-since.")
    return list(changed_since(reference, paths))


def _held_to_proof(
    report: CheckReport, wanted: tuple[Path, str | None, bool, Path | None], model: Place, failures: Failures
) -> CheckReport:
    """Return the report with what the required proof says of the model; a proof that can't be read is a failure."""
    from padfix.checking.required_proof import Requirement, check_proof
    from padfix.rules.registry import UNPROVEN_MODEL

    if isinstance(model, Url):
        raise errors.UsageError("A proof is held against the bytes of a file.", "Fetch the model first.")
    try:
        proof = check_proof(Requirement(*wanted), model)
    except errors.UsageError:
        raise
    except errors.PadfixError as error:
        failures.append((report.source, error))
        return report
    asked = (*report.rules, UNPROVEN_MODEL.code)
    found = report.findings if proof.proven else [UNPROVEN_MODEL.unproven(proof.reason), *report.findings]
    return dataclasses.replace(report, findings=found, rules=asked, proof=proof)


def _write(file: Path, text: str) -> None:
    from padfix.cli.report_files import write

    write(file, text)


def _tell(words: str, *, quiet: bool) -> None:
    if not quiet:
        print(f"padfix: {words}", file=sys.stderr)


def _config(file: Path | None, settings: dict[str, Any]) -> Config:
    """Return the configuration file's settings with those of the command line in their place."""
    from padfix.config.settings import find, load

    path = file or find()
    found = load(path) if path is not None else Config()
    if words := found.rule_words():
        from padfix.rules.registry import require_known

        try:
            require_known(words)
        except errors.UsageError as error:
            raise errors.UsageError(f"{path}: {error.message}", error.hint) from None
    changes = {name: value for name, value in settings.items() if value is not None}
    if "fail_on" in changes:
        changes["fail_on"] = Severity(changes["fail_on"])
    if "baseline" in changes:
        changes["baseline"] = str(changes["baseline"].resolve())
    return dataclasses.replace(found, **changes)


def _refuse_collisions(files: Sequence[Path], models: Sequence[Place]) -> None:
    resolved = [file.resolve() for file in files]
    if len(set(resolved)) < len(resolved):
        raise errors.UsageError("Two reports have the same file.", "Give each a file of its own.")
    if resolved and {model.resolve() for model in models if isinstance(model, Path)} & set(resolved):
        raise errors.UsageError("--output or another report names one of the models.", "Give it a file of its own.")


def _refuse_same_names(models: Sequence[Place]) -> None:
    """Refuse models that the lines of a run could not tell apart."""
    counts = Counter(map(pipes.name, models))
    name, number = max(counts.items(), key=lambda each: each[1], default=("", 0))
    if number > 1:
        raise errors.UsageError(
            f"{number} models are called {name} in a report, where no query is told.",
            "Give each a --resume of its own.",
        )


def _step_summary(reports: Sequence[CheckReport], failures: Failures) -> None:
    """Append the Markdown report to the summary page of a GitHub step, where there is one."""
    summary = os.environ.get("GITHUB_STEP_SUMMARY")
    if summary:
        from padfix.cli.report_files import append
        from padfix.reports import markdown

        append(Path(summary), markdown.findings(reports, failures, longest=LARGEST_SUMMARY))
