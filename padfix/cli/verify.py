"""``padfix verify``: the proof alone."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from padfix import errors
from padfix.cli import options
from padfix.cli.output import Delivery
from padfix.cli.progress import stages
from padfix.cli.sections import SectionedCommand
from padfix.results import Failure, Verdict

EXAMPLES = """
padfix verify model.pb model.onnx
padfix verify original.onnx changed.onnx --locate
padfix verify a.onnx b.onnx --probe photos --probes-only --report proof.json
"""


@click.command("verify", cls=SectionedCommand, epilog=EXAMPLES)
@click.argument("original", metavar="A", type=click.Path(path_type=Path))
@click.argument("candidate", metavar="B", type=click.Path(path_type=Path))
@click.option("--locate", is_flag=True, help="On a difference, name the first tensor that differs and its node.")
@click.option("--trust", is_flag=True, help="Run code and file access that the models themselves hold.")
@options.source_options
@options.proof_options
@options.limit_options
def command(
    original: Path,
    candidate: Path,
    *,
    delivery: Delivery,
    limits: options.Limits,
    **settings: Any,
) -> int:
    """Run models A and B on the same inputs and say whether their outputs agree. A is the reference.

    What is said of inputs, outputs, constants, signature and tag is said of A; of B where A is ONNX, and of both where
    they are of one kind.
    """
    from padfix import api

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
