"""Options that several commands share, and their types."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

import click

from padfix.cli.output import Delivery
from padfix.process import watch

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]

Shapes = dict[str, tuple[int, ...]]

REFERENCES = ("auto", "onnxruntime", "spec", "tensorflow")
REPORT_SUFFIXES = (".json", ".md", ".html")


def parse_shapes(ctx: click.Context, param: click.Parameter, values: tuple[str, ...]) -> Shapes | None:
    """Return ``NAME=1,224,224,3`` options as a dictionary, None when there are none.

    The last ``=`` separates, because names may hold one. ``NAME=`` is a scalar.
    """
    shapes: Shapes = {}
    for value in values:
        name, separator, numbers = value.rpartition("=")
        if not separator or not name:
            raise click.BadParameter(f"{value!r} is not of the form NAME=1,224,224,3", ctx, param)
        try:
            shape = tuple(int(number) for number in numbers.split(",")) if numbers.strip() else ()
        except ValueError:
            raise click.BadParameter(
                f"{numbers!r} is not a list of whole numbers such as 1,224,224,3", ctx, param
            ) from None
        if any(length < 1 for length in shape):
            raise click.BadParameter(f"{numbers!r} has a length below 1", ctx, param)
        if shapes.get(name, shape) != shape:
            raise click.BadParameter(f"two shapes for {name!r}", ctx, param)
        shapes[name] = shape
    return shapes or None


def parse_constants(ctx: click.Context, param: click.Parameter, values: tuple[str, ...]) -> dict[str, str] | None:
    """Return ``NAME=VALUE`` options as a dictionary, None when there are none; the input's type reads the value."""
    constants: dict[str, str] = {}
    for value in values:
        name, separator, text = value.rpartition("=")
        if not separator or not name or not text.strip():
            raise click.BadParameter(f"{value!r} is not of the form NAME=VALUE, such as is_training=False", ctx, param)
        if constants.get(name, text) != text:
            raise click.BadParameter(f"two values for {name!r}", ctx, param)
        constants[name] = text
    return constants or None


def report_path(ctx: click.Context, param: click.Parameter, value: Path | None) -> Path | None:
    """Return the path of a report; refuse an unknown ending and a missing folder before any work is done."""
    if value is not None and value.suffix.lower() not in REPORT_SUFFIXES:
        raise click.BadParameter(f"{str(value)!r} should end in {', '.join(REPORT_SUFFIXES)}", ctx, param)
    return in_a_folder(ctx, param, value)


def in_a_folder(ctx: click.Context, param: click.Parameter, value: Path | None) -> Path | None:
    """Return the path of a file to write; refuse one whose folder does not exist before any work is done."""
    if value is not None and not value.parent.is_dir():
        raise click.BadParameter(f"the folder {value.parent} does not exist; make it first", ctx, param)
    return value


def codes(values: tuple[str, ...]) -> list[str] | None:
    """Return the rule codes of ``--select`` or ``--ignore``, repeated or comma-separated; None when there are none."""
    found = [code.strip() for value in values for code in value.split(",") if code.strip()]
    return found or None


def complete_rules(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """Return the codes and names of rules that complete the last of a comma-separated list."""
    from padfix.rules.registry import RULES

    before, comma, word = incomplete.rpartition(",")
    names = [name for rule in RULES for name in (rule.code, rule.name)]
    return [f"{before}{comma}{name}" for name in names if name.lower().startswith(word.lower())]


def complete_targets(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """Return the targets that begin with ``incomplete``."""
    from padfix.targets import names

    return [name for name in names() if name.startswith(incomplete)]


def wants_colour(stream: TextIO) -> bool:
    """Whether to write colours to ``stream``: to a terminal, unless NO_COLOR says no or FORCE_COLOR says yes."""
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR"):
        return True
    return stream.isatty() and os.environ.get("TERM") != "dumb"


@dataclass(frozen=True)
class Limits:
    """What the user allows a command.

    Attributes:
        seconds: Processor seconds of ``--timeout``.
        gibibytes: Memory of ``--memory``.
        untrusted: Whether ``--untrusted`` was given.
    """

    seconds: float | None
    gibibytes: float | None
    untrusted: bool

    def apply(self, paths: Sequence[Path]) -> None:
        """Let the limits hold from now on, for work on ``paths``."""
        watch.restrict(paths, seconds=self.seconds, gibibytes=self.gibibytes, untrusted=self.untrusted)


def limit_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add ``--timeout``, ``--memory`` and ``--untrusted``, and hand them over as one :class:`Limits`."""

    @functools.wraps(command)
    def limited(
        *arguments: Any, seconds: float | None, gibibytes: float | None, untrusted: bool, **settings: Any
    ) -> Any:
        return command(*arguments, limits=Limits(seconds, gibibytes, untrusted), **settings)

    decorated: Callable[..., Any] = limited
    for option in reversed(_LIMIT_OPTIONS):
        decorated = option(decorated)
    return decorated


_LIMIT_OPTIONS: tuple[Decorator, ...] = (
    click.option(
        "--timeout",
        "seconds",
        type=click.FloatRange(min=0, min_open=True),
        metavar="SECONDS",
        help="Processor time that may be used. By default there is no limit.",
    ),
    click.option(
        "--memory",
        "gibibytes",
        type=click.FloatRange(min=0, min_open=True),
        metavar="GIB",
        help="Memory that may be used. By default all that the machine has.",
    ),
    click.option(
        "--untrusted",
        is_flag=True,
        help="Strict limits of time and memory, by the size of the files, for models of strangers.",
    ),
)


shape_option: Decorator = click.option(
    "--shape",
    "shapes",
    multiple=True,
    metavar="NAME=N,N,...",
    callback=parse_shapes,
    help="Fix the shape of an input. Repeatable.",
)
signature_option: Decorator = click.option(
    "--signature", metavar="NAME", help="Signature of a SavedModel or .tflite file."
)
tag_option: Decorator = click.option("--tag", metavar="NAME", help="Tag of a SavedModel.")


def source_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add ``--input --output --constant --signature --tag``, what there is to say of a source."""
    decorated = command
    for option in reversed(_SOURCE_OPTIONS):
        decorated = option(decorated)
    return decorated


_SOURCE_OPTIONS: tuple[Decorator, ...] = (
    click.option("--input", "inputs", multiple=True, metavar="NAME", help="An input of the graph. Repeatable."),
    click.option("--output", "outputs", multiple=True, metavar="NAME", help="An output of the graph. Repeatable."),
    click.option(
        "--constant",
        "constants",
        multiple=True,
        metavar="NAME=VALUE",
        callback=parse_constants,
        help="Fix an input to a value, such as is_training=False. Repeatable.",
    ),
    signature_option,
    tag_option,
)


def proof_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options of a proof, and ``--report --format --quiet -v`` as a :class:`Delivery`."""

    @functools.wraps(command)
    def delivering(
        *arguments: Any, report_file: Path | None, report_format: str, quiet: bool, verbose: bool, **settings: Any
    ) -> Any:
        return command(*arguments, delivery=Delivery(report_file, report_format, quiet, verbose), **settings)

    decorated: Callable[..., Any] = delivering
    for option in reversed(_PROOF_OPTIONS):
        decorated = option(decorated)
    return decorated


_PROOF_OPTIONS: tuple[Decorator, ...] = (
    shape_option,
    click.option(
        "--reference",
        type=click.Choice(REFERENCES),
        default="auto",
        show_default=True,
        help="Who runs the original: TensorFlow for a TensorFlow source, else ONNX Runtime; "
        "spec is the ONNX specification in NumPy.",
    ),
    click.option(
        "--probe",
        "probes",
        multiple=True,
        metavar="FILE|FOLDER",
        type=click.Path(exists=True, path_type=Path),
        help="Inputs to compare on: an .npz file with an array for each input, an .npy file or an image for a model of "
        "one input, or a folder of these. Repeatable.",
    ),
    click.option(
        "--probes-only", is_flag=True, help="Judge the whole by the data of --probe alone; nothing is generated."
    ),
    click.option("--rtol", type=click.FloatRange(min=0), help="Difference allowed, as a share of the output's range."),
    click.option("--atol", type=click.FloatRange(min=0), help="Difference allowed whatever the range."),
    click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Of the generated inputs."),
    click.option(
        "--report",
        "report_file",
        metavar="FILE.json|.md|.html",
        type=click.Path(dir_okay=False, path_type=Path),
        callback=report_path,
        help="Also write the report to a file, whatever the outcome.",
    ),
    click.option(
        "--format",
        "report_format",
        type=click.Choice(["text", "json"]),
        default="text",
        show_default=True,
        help="Format of what is printed.",
    ),
    click.option("--quiet", "-q", is_flag=True, help="Print errors only."),
    click.option(
        "--verbose",
        "-v",
        is_flag=True,
        help="Print each stage, each rewrite with its proof, and what TensorFlow and tf2onnx log.",
    ),
)
