"""``padfix verify``: the proof alone."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from padfix import errors
from padfix.cli import options
from padfix.cli.output import Delivery, write
from padfix.cli.progress import stages
from padfix.cli.sections import SectionedCommand
from padfix.cli.terminal import style_of
from padfix.results import Failure, Verdict

EXAMPLES = """
padfix verify model.pb model.onnx
padfix verify original.onnx changed.onnx --locate
padfix verify a.onnx b.onnx --probe photos --probes-only --report proof.json
padfix verify model.onnx --on openvino --on opencv --keep-repro wrong
"""


@click.command("verify", cls=SectionedCommand, epilog=EXAMPLES)
@click.argument("original", metavar="A", type=click.Path(path_type=Path))
@click.argument("candidate", metavar="[B]", required=False, type=click.Path(path_type=Path))
@click.option(
    "--on",
    "runtimes",
    multiple=True,
    metavar="RUNTIME",
    shell_complete=options.complete_runtimes,
    help="Instead of B: does this runtime compute what A means, and which node does it get wrong? Repeatable.",
)
@click.option(
    "--keep-repro",
    "repro_folder",
    metavar="DIR",
    type=click.Path(path_type=Path, file_okay=False),
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
        if candidate is not None:
            raise errors.UsageError("--on takes one model.", "Leave B out: the runtime stands in its place.")
        limits.apply([original])
        return _on_runtimes(original, runtimes, repro_folder, delivery, settings)
    if candidate is None:
        raise errors.UsageError("There is no second model.", "Name B, or a runtime with --on.")
    if repro_folder is not None:
        raise errors.UsageError("--keep-repro is about a runtime.", "Name one with --on.")
    if delivery.file is not None and delivery.file.resolve() in (original.resolve(), candidate.resolve()):
        raise errors.UsageError("--report names one of the models.", "Give the report a file of its own.")
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
            delivery.keep(Verdict(False, "", error=Failure(error.message, error.hint, error.exit_code)))
            raise
    delivery.deliver(verdict)
    if not (verdict.equivalent or settings["locate"] or delivery.quiet):
        print("hint: --locate names the first tensor that differs, and the node that computes it.", file=sys.stderr)
    return errors.EXIT_YES if verdict.equivalent else errors.EXIT_NO


def _on_runtimes(
    model: Path, runtimes: tuple[str, ...], folder: Path | None, delivery: Delivery, settings: dict[str, Any]
) -> int:
    """Say what each runtime makes of the model; return the exit code."""
    from padfix.reports import runtime_verdicts
    from padfix.runtimes.verify_on import verify_on

    if delivery.file is not None and delivery.file.suffix.lower() != ".json":
        raise errors.UsageError("What runtimes compute is reported as JSON.", "Name a FILE.json with --report.")
    reference = "onnxruntime" if settings["reference"] in (None, "auto") else settings["reference"]
    if reference == "tensorflow":
        raise errors.UsageError("--on is about ONNX files.", "Leave --reference tensorflow out.")
    verdicts = []
    with stages(quiet=delivery.quiet, verbose=delivery.verbose) as progress:
        for name in runtimes:
            kept = None if folder is None else folder / name if len(runtimes) > 1 else folder
            given = {"shapes": settings["shapes"], "probes": settings["probes"] or (), "seed": settings["seed"]}
            verdicts.append(verify_on(model, name, reference=reference, keep_repro=kept, progress=progress, **given))
    if delivery.file is not None:
        write(delivery.file, runtime_verdicts.as_json(str(model), verdicts))
    if not delivery.quiet:
        style = style_of(sys.stdout)
        if delivery.format == "json":
            shown = runtime_verdicts.as_json(str(model), verdicts)
        else:
            shown = runtime_verdicts.text(str(model), verdicts, style)
        click.echo(shown, nl=False, color=style.colour)
    return errors.EXIT_YES if all(verdict.agrees for verdict in verdicts) else errors.EXIT_NO
