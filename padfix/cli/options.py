"""Options that several commands share, and their types."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from padfix.config import settings as config_files
from padfix.errors import UsageError
from padfix.files.urls import Place, Url, placed
from padfix.process import watch

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]

Shapes = dict[str, tuple[int, ...]]

TOPICS = ("resize",)
"""What ``padfix explain`` has a page for beside the rules."""

REFERENCES = ("auto", "onnxruntime", "spec", "tensorflow")
REPORT_SUFFIXES = (".json", ".md", ".html")


class LocalType(click.Path):
    """A path of this machine; a URL is refused without showing what is secret of it."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(path_type=Path, **settings)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return a path."""
        place = placed(value)
        if isinstance(place, Url):
            self.fail(f"{place} is a URL, and this is a file or folder of this machine", param, ctx)
        return super().convert(place, param, ctx)


LOCAL = LocalType()
FILE = LocalType(dir_okay=False)


class PlaceType(click.Path):
    """A path, or a URL of a store."""

    def __init__(self, *, file_okay: bool = True) -> None:
        super().__init__(file_okay=file_okay, path_type=Path)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return a :data:`padfix.files.urls.Place`."""
        place = placed(value)
        return place if isinstance(place, Url) else super().convert(place, param, ctx)


PLACE = PlaceType()


def _by_name(values: Sequence[str], form: str, what: str, read: Callable[[str], Any]) -> dict[str, Any] | None:
    """Return ``NAME=TEXT`` options as a dictionary of what is read from the texts, None when there are none.

    The last ``=`` separates, because names may hold one.
    """
    found: dict[str, Any] = {}
    for value in values:
        name, separator, text = value.rpartition("=")
        item = read(text) if separator and name else None
        if item is None:
            raise click.BadParameter(f"{value!r} is not of the form {form}")
        if found.get(name, item) != item:
            raise click.BadParameter(f"two {what} for {name!r}")
        found[name] = item
    return found or None


def parse_shapes(ctx: click.Context, param: click.Parameter, values: tuple[str, ...]) -> Shapes | None:
    """Return ``NAME=1,224,224,3`` options as a dictionary, None when there are none; ``NAME=`` is a scalar."""

    def read(numbers: str) -> tuple[int, ...]:
        try:
            shape = tuple(int(number) for number in numbers.split(",")) if numbers.strip() else ()
        except ValueError:
            raise click.BadParameter(f"{numbers!r} is not a list of whole numbers such as 1,224,224,3") from None
        if any(length < 1 for length in shape):
            raise click.BadParameter(f"{numbers!r} has a length below 1")
        return shape

    return _by_name(values, "NAME=1,224,224,3", "shapes", read)


def parse_places(ctx: click.Context, param: click.Parameter, values: tuple[str, ...]) -> dict[str, str] | None:
    """Return ``MODULE:NAME`` options as places by name, None when there are none."""
    found = {}
    for value in values:
        module, _, name = value.partition(":")
        if not (module and name.isidentifier()):
            raise click.BadParameter(f"{value!r} is not of the form MODULE:NAME")
        found[name] = value
    return found or None


def parse_constants(ctx: click.Context, param: click.Parameter, values: tuple[str, ...]) -> dict[str, str] | None:
    """Return ``NAME=VALUE`` options as a dictionary, None when there are none; the input's type reads the value."""
    return _by_name(
        values, "NAME=VALUE, such as is_training=False", "values", lambda text: text if text.strip() else None
    )


def parse_ranges(
    ctx: click.Context, param: click.Parameter, values: tuple[str, ...]
) -> dict[str, tuple[float, float]] | None:
    """Return ``NAME=LOW..HIGH`` options as a dictionary, None when there are none."""
    return _by_name(values, "NAME=LOW..HIGH, such as tokens=0..30521", "ranges", config_files.parse_range)


def some(ctx: click.Context, param: click.Parameter, values: tuple[Any, ...]) -> list[Any] | None:
    """Return the values of an option that can be repeated, None when there are none."""
    return list(values) or None


def listed(ctx: click.Context, param: click.Parameter, values: tuple[str, ...]) -> str | None:
    """Return the comma-separated names of an option, repeated or not, as one list; None when there are none."""
    return ",".join(values) if values else None


def parse_codes(ctx: click.Context, param: click.Parameter, values: tuple[str, ...]) -> tuple[str, ...] | None:
    """Return the rule codes of an option, repeated or comma-separated; None when there are none."""
    return tuple(code.strip() for value in values for code in value.split(",") if code.strip()) or None


def report_path(ctx: click.Context, param: click.Parameter, value: Path | None) -> Path | None:
    """Return the path of a report; refuse an unknown ending and a missing folder before any work is done."""
    if value is not None and value.suffix.lower() not in REPORT_SUFFIXES:
        raise click.BadParameter(f"{str(value)!r} should end in {', '.join(REPORT_SUFFIXES)}")
    return in_a_folder(ctx, param, value)


def in_a_folder(ctx: click.Context, param: click.Parameter, value: Path | None) -> Path | None:
    """Return the path of a file to write; refuse one whose folder does not exist before any work is done."""
    if value is not None and not value.parent.is_dir():
        raise click.BadParameter(f"the folder {value.parent} does not exist; make it first")
    return value


def _listed(names: Sequence[str], incomplete: str) -> list[str]:
    """Return the names that begin with what is typed behind the last comma, behind what stands before it."""
    before, comma, word = incomplete.rpartition(",")
    return [f"{before}{comma}{name}" for name in names if name.lower().startswith(word.lower())]


def complete_rules(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """Return the codes and names of rules that complete the last of a comma-separated list."""
    from padfix.rules.registry import RULES

    return _listed([name for rule in RULES for name in (rule.code, rule.name)], incomplete)


def complete_pages(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """Return what ``explain`` has a page for: rules by code and name, and topics."""
    topics = [topic for topic in TOPICS if topic.startswith(incomplete.lower())]
    return complete_rules(ctx, param, incomplete) + topics


def complete_runtimes(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """Return the runtimes that begin with ``incomplete``."""
    from padfix.runtimes import names

    return [name for name in names() if name.startswith(incomplete)]


def complete_listed_targets(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """Return the targets that complete the last of a comma-separated list."""
    from padfix.targets import names

    return _listed(names(), incomplete)


def complete_targets(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """Return the targets that begin with ``incomplete``."""
    from padfix.targets import names

    return [name for name in names() if name.startswith(incomplete)]


@dataclass(frozen=True)
class Limits:
    """What ``--timeout``, ``--memory`` and ``--untrusted`` allow a command."""

    seconds: float | None
    gibibytes: float | None
    untrusted: bool

    def apply(self, places: Sequence[Place]) -> None:
        """Let the limits hold from now on, for work on ``places``; those of stores count by what is fetched."""
        paths = [Path("/", place.name) if isinstance(place, Url) else place for place in places]
        watch.restrict(paths, seconds=self.seconds, gibibytes=self.gibibytes, untrusted=self.untrusted)


NO_LIMITS = Limits(None, None, False)


def limit_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add ``--timeout``, ``--memory`` and ``--untrusted``, and hand them over as one :class:`Limits`."""

    @functools.wraps(command)
    def limited(
        *arguments: Any, seconds: float | None, gibibytes: float | None, untrusted: bool, **settings: Any
    ) -> Any:
        return command(*arguments, limits=Limits(seconds, gibibytes, untrusted), **settings)

    return added(limited, _LIMIT_OPTIONS)


def added(command: Callable[..., Any], options: Sequence[Decorator]) -> Callable[..., Any]:
    """Return a command with ``options``, which its help lists in their order."""
    return functools.reduce(lambda decorated, option: option(decorated), reversed(options), command)


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


def format_option(formats: Sequence[str], help: str) -> Decorator:
    """Return ``--format``; the first is the default."""
    return click.option(
        "--format", "report_format", type=click.Choice(formats), default=formats[0], show_default=True, help=help
    )


def file_option(*names: str, help: str, metavar: str = "FILE", **settings: Any) -> Decorator:
    """Return an option that names a file."""
    return click.option(*names, metavar=metavar, type=FILE, help=help, **settings)


def repeated_option(*names: str, metavar: str, help: str, callback: Any = some, **settings: Any) -> Decorator:
    """Return an option that can be given several times."""
    help = f"{help} Repeatable."
    return click.option(*names, multiple=True, metavar=metavar, callback=callback, help=help, **settings)


def codes_option(name: str, help: str) -> Decorator:
    """Return an option that names rules."""
    return click.option(
        name, multiple=True, metavar="CODES", shell_complete=complete_rules, callback=parse_codes, help=help
    )


def targets_option(help: str) -> Decorator:
    """Return ``--target`` for several targets at once."""
    return click.option(
        "--target",
        multiple=True,
        metavar="NAMES",
        shell_complete=complete_listed_targets,
        callback=listed,
        help=help,
    )


def target_option(help: str, **settings: Any) -> Decorator:
    """Return ``--target``."""
    return click.option("--target", metavar="NAME", shell_complete=complete_targets, help=help, **settings)


jobs_option: Decorator = click.option(
    "--jobs", type=click.IntRange(min=1), default=1, show_default=True, metavar="N", help="Processes."
)
trust_option: Decorator = click.option(
    "--trust", is_flag=True, help="Run code and file access that the model itself holds."
)
shape_option: Decorator = repeated_option(
    "--shape", "shapes", metavar="NAME=N,N,...", callback=parse_shapes, help="Fix the shape of an input."
)
custom_option: Decorator = repeated_option(
    *("--custom", "custom_objects"),
    metavar="MODULE:NAME",
    callback=parse_places,
    help="Import a class or function that a Keras file names; needs --trust.",
)
signature_option: Decorator = click.option(
    "--signature", metavar="NAME", help="Signature of a SavedModel or .tflite file."
)
tag_option: Decorator = click.option("--tag", metavar="NAME", help="Tag of a SavedModel.")


def source_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add ``--input --output --constant --signature --tag``, what there is to say of a source."""
    return added(command, _SOURCE_OPTIONS)


_SOURCE_OPTIONS: tuple[Decorator, ...] = (
    repeated_option("--input", "inputs", metavar="NAME", help="An input of the graph."),
    repeated_option("--output", "outputs", metavar="NAME", help="An output of the graph."),
    repeated_option(
        *("--constant", "constants"),
        metavar="NAME=VALUE",
        callback=parse_constants,
        help="Fix an input to a value, such as is_training=False.",
    ),
    custom_option,
    signature_option,
    tag_option,
)


def proof_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options of a proof, and ``--report --format --quiet -v`` as a :class:`Delivery`.

    What the configuration file says of proofs is put beside what the command line says.
    """

    @functools.wraps(command)
    def delivering(
        *arguments: Any,
        report_file: Path | None,
        report_format: str,
        key_file: Path | None,
        quiet: bool,
        verbose: bool,
        config_file: Path | None,
        **settings: Any,
    ) -> Any:
        from padfix.cli.output import Delivery  # which ``check`` does without

        settings.update(_with_file(config_file, settings))
        delivery = Delivery.of(report_file, report_format, key_file, quiet=quiet, verbose=verbose)
        return command(*arguments, delivery=delivery, **settings)

    return added(delivering, _PROOF_OPTIONS)


def _with_file(file: Path | None, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of a proof in which the configuration file has a say.

    Raises:
        UsageError: The file is wrong, or asks for the user's probes alone where there are none.
    """
    path = file or config_files.find()
    if path is None:
        return {}
    told = config_files.load(path)
    probes = settings["probes"] or [(told.folder or Path()) / probe for probe in told.probes] or None
    if told.probes_only and not probes:
        raise UsageError(f"{path}: probes-only asks for probes, and there are none.", "Give data with --probe.")
    of_convert = {"prove_on": settings["prove_on"] or told.prove_on or None} if "prove_on" in settings else {}
    return {
        **of_convert,
        "probes": probes,
        "probes_only": settings["probes_only"] or told.probes_only,
        "usual_ranges": dict(told.ranges) or None,
    }


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
    repeated_option(
        *("--probe", "probes"),
        metavar="FILE|FOLDER",
        type=LocalType(exists=True),
        help="Inputs to compare on: an .npz file with an array for each input, an .npy file or an image for a model of "
        "one input, or a folder of these.",
    ),
    click.option(
        "--probes-only", is_flag=True, help="Judge the whole by the data of --probe alone; nothing is generated."
    ),
    repeated_option(
        *("--range", "ranges"),
        metavar="NAME=LOW..HIGH",
        callback=parse_ranges,
        help="Make data for an input between two numbers, both included.",
    ),
    file_option("--config", "config_file", help="A padfix.toml or pyproject.toml, instead of the nearest one."),
    click.option(
        "--rtol",
        type=click.FloatRange(min=0),
        metavar="X",
        help="Difference allowed, as a share of the output's range.",
    ),
    click.option("--atol", type=click.FloatRange(min=0), metavar="X", help="Difference allowed whatever the range."),
    click.option(
        "--seed", type=click.IntRange(min=0), metavar="N", default=0, show_default=True, help="Of the generated inputs."
    ),
    file_option(
        *("--report", "report_file"),
        metavar="FILE.json|.md|.html",
        callback=report_path,
        help="Also write the report to a file, whatever the outcome.",
    ),
    file_option(
        *("--sign", "key_file"),
        metavar="KEY",
        help="With --report FILE.json, also write FILE.intoto.jsonl: the proof signed with this private Ed25519 key.",
    ),
    format_option(["text", "json"], "Format of what is printed."),
    click.option("--quiet", "-q", is_flag=True, help="Print errors only."),
    click.option(
        "--verbose",
        "-v",
        is_flag=True,
        help="Print each stage, each rewrite with its proof, and what TensorFlow and tf2onnx log.",
    ),
)
