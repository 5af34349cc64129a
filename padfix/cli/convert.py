"""``padfix convert``: the main job, for one source, for many, in place, or through a pipe."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from padfix import errors
from padfix.cli import options, pipes
from padfix.cli.exits import failure_of, print_error
from padfix.cli.output import Delivery
from padfix.cli.progress import Progress, stages
from padfix.cli.sections import SectionedCommand
from padfix.files.urls import Place, Url
from padfix.process import watch
from padfix.results import ConvertReport

EXAMPLES = """
padfix convert model.pb -o model.onnx
padfix convert saved_model/ --signature serving_default -o model.onnx --report report.html
padfix convert old.onnx -o new.onnx --target portable --opset 17
padfix convert old.onnx -o new.onnx --target opencv --prove-on opencv
padfix convert --in-place models/*.onnx
padfix convert a.keras b.tflite --output-dir converted --jobs 2
padfix convert model.onnx -o out.onnx --shape image=1,224,224,3 --probe photos --range tokens=0..30521
"""


@click.command("convert", cls=SectionedCommand, epilog=EXAMPLES)
@click.argument("sources", metavar="SOURCE...", nargs=-1, required=True, type=options.PLACE)
@click.option(
    "-o", "destination", metavar="OUT", type=options.PLACE, help="The ONNX file to write; - is standard output."
)
@click.option(
    "--output-dir",
    metavar="DIR",
    type=options.PlaceType(file_okay=False),
    help="Write NAME.onnx for each source to this folder, which is made where it is missing.",
)
@click.option("--in-place", is_flag=True, help="Replace each ONNX file, and keep the original as NAME.bak.")
@click.option("--no-backup", is_flag=True, help="With --in-place, keep no original.")
@click.option("--opset", type=click.IntRange(min=1), metavar="N", help="Operator set of the result.")
@options.target_option("What the result must suit.", default="onnx", show_default=True)
@click.option(
    "--pads",
    type=click.Choice(["attribute", "node"]),
    help="Where pads go: the operator's attribute, or a Pad node before it.  [default: as the target wants]",
)
@options.source_options
@click.option("--partial", is_flag=True, help="Write what could be rewritten, and list what could not.")
@click.option("--no-verify", is_flag=True, help="Write without any proof; the report says so.")
@click.option("--external-data", is_flag=True, help="Write the weights to a file beside the model.")
@options.repeated_option(
    "--prove-on",
    metavar="RUNTIME",
    shell_complete=options.complete_runtimes,
    help="Run the result on this runtime too, and write it only where it computes what it should.",
)
@options.trust_option
@options.proof_options
@options.jobs_option
@options.limit_options
def command(
    sources: tuple[Place, ...],
    *,
    destination: Place | None,
    output_dir: Place | None,
    in_place: bool,
    no_backup: bool,
    no_verify: bool,
    jobs: int,
    delivery: Delivery,
    limits: options.Limits,
    **settings: Any,
) -> int:
    """Convert each SOURCE to ONNX in which every pad and every resize is explicit.

    SOURCE is a SavedModel directory, a frozen GraphDef (.pb, .pbtxt), a Keras file (.keras, .h5), a TensorFlow Lite
    file (.tflite) or an ONNX file; what it holds decides, not its name; - is ONNX on standard input. SOURCE and OUT may
    be URLs (s3://, gs:// and what else fsspec knows). The result is compared with the original, and written only when
    they agree and nothing was left implicit.
    """
    plan = _plan(sources, destination, output_dir, in_place)
    _check_options(plan, delivery.file, no_backup=no_backup, in_place=in_place)
    several = len(plan) > 1
    as_one = several and delivery.format == "json"
    settings.update(
        verify=not no_verify,
        certificate=delivery.file is not None or as_one,
        layers=delivery.draws,
    )
    if in_place:
        settings.update(in_place=True, backup=not no_backup)
    reports: list[ConvertReport] = []
    failures: list[tuple[str, errors.PadfixError]] = []
    outcomes = _by_workers(plan, settings, limits, delivery, jobs) if several and jobs > 1 else None
    for number, (source, output) in enumerate(plan, 1):
        if outcomes is None:
            limits.apply([source])
            about = f"{number} of {len(plan)}: {source.name}: " if several else ""
            report, failure = _attempt(source, output, settings, delivery, about)
        else:
            report, failure = next(outcomes)
        if report is not None and failure is None:
            reports.append(report)
        if report is not None and not as_one:
            delivery.deliver(report, to_stderr=output == pipes.PIPE)
        if failure is not None:
            if not several:
                raise failure
            failures.append((str(source), failure))
            print_error(failure, str(source))
    if as_one and not delivery.quiet:
        from padfix.reports import json

        click.echo(json.conversions(reports, failures), nl=False)
    return max((failure.exit_code for _, failure in failures), default=errors.EXIT_YES)


Outcome = tuple[ConvertReport | None, errors.PadfixError | None]


@dataclass(frozen=True)
class _Convert:
    """The work on one of many sources, in a process that keeps TensorFlow for the next."""

    settings: dict[str, Any]
    limits: options.Limits

    def __call__(self, task: tuple[Place, Place]) -> Outcome:
        """Convert a source; return the report, as far as there is one, and what went wrong."""
        source, output = task

        def tell(stage: str) -> None:
            watch.tell(f"padfix ({source.name}: {stage})")

        tell("starting")
        try:
            self.limits.apply([source])
            return _convert(source, output, self.settings, tell), None
        except Exception as error:
            return getattr(error, "report", None), failure_of(error)


def _by_workers(
    plan: Sequence[tuple[Place, Place]], settings: dict[str, Any], limits: options.Limits, delivery: Delivery, jobs: int
) -> Iterator[Outcome]:
    """Yield what comes of each source, in order; the end of a worker is the failure of the source that it worked on."""
    from padfix.process.executors import executor

    with stages(quiet=delivery.quiet or delivery.verbose) as progress:
        for outcome in executor(jobs).outcomes(_Convert(settings, limits), plan, tell=progress):
            yield (None, outcome) if isinstance(outcome, errors.PadfixError) else outcome


def _attempt(
    source: Place, output: Place, settings: dict[str, Any], delivery: Delivery, about: str
) -> tuple[ConvertReport | None, errors.PadfixError | None]:
    """Convert one source; return the report, as far as there is one, and what went wrong."""
    try:
        with stages(about, quiet=delivery.quiet, verbose=delivery.verbose) as progress:
            return _convert(source, output, settings, progress), None
    except Exception as error:
        if not about and not isinstance(error, errors.PadfixError):
            raise
        return getattr(error, "report", None), failure_of(error)


def _convert(source: Place, output: Place, settings: dict[str, Any], progress: Progress) -> ConvertReport:
    from padfix import api

    def named(report: ConvertReport) -> ConvertReport:
        return dataclasses.replace(report, source=pipes.name(source), output=pipes.name(output, output=True))

    with pipes.files(source, output) as (read, written):
        try:
            return named(api.convert(read, written, progress=progress, **settings))
        except errors.PadfixError as error:
            error.report = error.report and named(error.report)
            raise


def _plan(
    sources: Sequence[Place], destination: Place | None, output_dir: Place | None, in_place: bool
) -> list[tuple[Place, Place]]:
    """Return (source, output) pairs.

    Raises:
        UsageError: It is not said where to write, said twice, or two results would have one name.
        OutputError: The folder for the results can't be made.
    """
    ways = [destination is not None, output_dir is not None, in_place]
    if sum(ways) != 1:
        raise errors.UsageError(
            "Say where to write, in one way.", "-o OUT for one source, --output-dir DIR for many, or --in-place."
        )
    if destination is not None:
        if len(sources) > 1:
            raise errors.UsageError(f"-o names one file for {len(sources)} sources.", "Use --output-dir DIR.")
        return [(sources[0], destination)]
    if pipes.PIPE in sources:
        raise errors.UsageError("Standard input has no name of its own.", "Use -o OUT.")
    if in_place:
        return [(source, source) for source in dict.fromkeys(sources)]
    assert output_dir is not None
    outputs: dict[Place, Place] = {}
    for source in sources:
        is_folder = source.is_dir() if isinstance(source, Path) else not source.suffix
        name = f"{source.name if is_folder else source.stem}.onnx"
        output = output_dir.below(name) if isinstance(output_dir, Url) else output_dir / name
        if output in outputs:
            raise errors.UsageError(f"{outputs[output]} and {source} would both be {output}.", "Convert them apart.")
        outputs[output] = source
    try:
        if isinstance(output_dir, Path):
            output_dir.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise errors.OutputError(
            f"The folder {output_dir} can't be made: {error.strerror or error}.", "Choose another one."
        ) from error
    return [(source, output) for output, source in outputs.items()]


def _check_options(
    plan: Sequence[tuple[Place, Place]], report_file: Path | None, *, no_backup: bool, in_place: bool
) -> None:
    if no_backup and not in_place:
        raise errors.UsageError("--no-backup belongs to --in-place.", "Without it, nothing is replaced.")
    if report_file is not None:
        if len(plan) > 1:
            raise errors.UsageError("--report is for one source.", "Use --format json for several.")
        if report_file.resolve() in {path.resolve() for path in plan[0] if isinstance(path, Path)}:
            raise errors.UsageError("--report names the source or the output.", "Give the report a file of its own.")
