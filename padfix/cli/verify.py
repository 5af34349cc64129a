"""``padfix verify``: the proof alone."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from padfix import errors
from padfix.cli import options
from padfix.cli.exits import failure_of
from padfix.cli.output import Delivery
from padfix.cli.progress import stages
from padfix.cli.sections import SectionedCommand
from padfix.results import Failure, RuntimesReport, Verdict

EXAMPLES = """
padfix verify model.pb model.onnx
padfix verify original.onnx changed.onnx --locate
padfix verify a.onnx b.onnx --probe photos --probes-only --report proof.json
padfix verify model.onnx --on openvino --on opencv --keep-repro wrong
padfix verify model.pb model.onnx --on ncnn
"""


@click.command("verify", cls=SectionedCommand, epilog=EXAMPLES)
@click.argument("original", metavar="A", type=options.LOCAL)
@click.argument("candidate", metavar="[B]", required=False, type=options.LOCAL)
@options.repeated_option(
    *("--on", "runtimes"),
    metavar="RUNTIME",
    callback=None,
    shell_complete=options.complete_runtimes,
    help="Does this runtime compute what A means, given B or A itself, and which node does it get wrong?",
)
@click.option(
    "--keep-repro",
    "repro_folder",
    metavar="DIR",
    type=options.LocalType(file_okay=False),
    help="With --on, keep each node that a runtime gets wrong as a tiny model, with data and a script.",
)
@click.option("--locate", is_flag=True, help="On a difference, name the first tensor that differs and its node.")
@click.option("--trust", is_flag=True, help="Run code and file access that the models themselves hold.")
@options.source_options
@options.proof_options
@options.limit_options
def command(
    original: Path,
    candidate: Path | None,
    *,
    runtimes: tuple[str, ...],
    repro_folder: Path | None,
    delivery: Delivery,
    limits: options.Limits,
    **settings: Any,
) -> int:
    """Run models A and B on the same inputs and say whether their outputs agree. A is the reference.

    What is said of inputs, outputs, constants, signature and tag is said of A; of B where A is ONNX, and of both where
    they are of one kind.
    """
    from padfix import api

    if runtimes:
        models = [original] if candidate is None else [original, candidate]
        _require_own_file(delivery, models)
        limits.apply(models)
        return _on_runtimes(models, runtimes, repro_folder, delivery, settings)
    if candidate is None:
        raise errors.UsageError("There is no second model.", "Name B, or a runtime with --on.")
    if repro_folder is not None:
        raise errors.UsageError("--keep-repro is about a runtime.", "Name one with --on.")
    _require_own_file(delivery, [original, candidate])
    limits.apply([original, candidate])
    with stages(quiet=delivery.quiet, verbose=delivery.verbose) as progress:
        try:
            verdict = api.verify(
                original,
                candidate,
                certificate=delivery.file is not None,
                layers=delivery.draws,
                progress=progress,
                **settings,
            )
        except errors.PadfixError as error:
            delivery.keep(Verdict(False, "", error=_told(error)))
            raise
    delivery.deliver(verdict)
    if not (verdict.equivalent or settings["locate"] or delivery.quiet):
        print("hint: --locate names the first tensor that differs, and the node that computes it.", file=sys.stderr)
    return errors.EXIT_YES if verdict.equivalent else errors.EXIT_NO


def _told(error: errors.PadfixError) -> Failure:
    shown = failure_of(error)
    return Failure(shown.message, shown.hint, shown.exit_code)


def _require_own_file(delivery: Delivery, models: Sequence[Path]) -> None:
    if delivery.file is not None and delivery.file.resolve() in [model.resolve() for model in models]:
        raise errors.UsageError("--report names one of the models.", "Give the report a file of its own.")


def _on_runtimes(
    models: Sequence[Path],
    runtimes: Sequence[str],
    folder: Path | None,
    delivery: Delivery,
    settings: dict[str, Any],
) -> int:
    """Say what each runtime makes of the last of the models; return the exit code."""
    from padfix.runtimes import open_runtime
    from padfix.runtimes.verify_on import verify_on

    report = RuntimesReport(str(models[-1]), str(models[0]) if len(models) > 1 else "")
    names = tuple(dict.fromkeys(runtimes))
    try:
        for name in names:
            open_runtime(name)  # before any work is done for one that is not there
        with stages(quiet=delivery.quiet, verbose=delivery.verbose) as progress:
            for name in names:
                kept = None if folder is None else folder / name if len(names) > 1 else folder
                original = models[0] if len(models) > 1 else None
                verdict = verify_on(models[-1], name, original=original, keep_repro=kept, progress=progress, **settings)
                report = dataclasses.replace(report, runtimes=(*report.runtimes, verdict))
    except errors.PadfixError as error:
        delivery.keep(dataclasses.replace(report, error=_told(error)))
        raise
    delivery.deliver(report)
    return errors.EXIT_YES if report.agrees else errors.EXIT_NO
