"""Options of a conversion, and settings from ``padfix.toml``, or from ``[tool.padfix]`` in ``pyproject.toml``."""

from __future__ import annotations

import dataclasses
import fnmatch
import math
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from padfix.errors import UsageError, suggestion
from padfix.results import Finding, Severity

if TYPE_CHECKING:
    from padfix.targets import Target

PathArgument = str | PathLike[str]

FILE = "padfix.toml"
PYPROJECT = "pyproject.toml"
KEYS = (
    *("select", "ignore", "fail-on", "target", "exclude", "baseline", "per-file-ignores", "per-node-ignores"),
    *("probe", "probes-only", "range", "prove-on"),
)


@dataclass(frozen=True)
class Config:
    """What a configuration file says; every default is what happens without a file.

    Attributes:
        select: Rule codes, families or names to keep; None keeps all.
        ignore: Rule codes, families or names to leave out.
        fail_on: The least severity that makes the exit code 1.
        target: The runtimes to judge by, separated by commas.
        exclude: Patterns of files that a folder or a pattern on the command line does not bring in.
        baseline: The baseline file, relative to :attr:`folder`; None for none.
        per_file_ignores: Rule words by pattern of the model's path relative to :attr:`folder`, or of its name alone.
        per_node_ignores: Rule words by pattern of ``graph/node``, or of the node's name alone.
        probes: Data to prove on, relative to :attr:`folder`. This and the next two are of ``convert`` and ``verify``,
            all before of ``check``.
        probes_only: Whether a proof is judged by the given data alone.
        ranges: The lowest and the highest number of an input's data by its name.
        prove_on: The runtimes that a result is run on before it is written, which is of ``convert`` alone.
        folder: Where the file lies, which its paths are relative to; None for the current folder.
        path: The file; None when there is none.
    """

    select: tuple[str, ...] | None = None
    ignore: tuple[str, ...] = ()
    fail_on: Severity = Severity.WARNING
    target: str = "onnx"
    exclude: tuple[str, ...] = ()
    baseline: str | None = None
    per_file_ignores: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    per_node_ignores: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    probes: tuple[str, ...] = ()
    probes_only: bool = False
    ranges: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    prove_on: tuple[str, ...] = ()
    folder: Path | None = None
    path: Path | None = None

    @property
    def targets(self) -> tuple[str, ...]:
        """The names in :attr:`target`, each once."""
        return tuple(dict.fromkeys(each.strip() for each in self.target.split(",") if each.strip())) or ("onnx",)

    def rule_words(self) -> tuple[str, ...]:
        """Return every word that should name a rule, to be checked against the rules that there are."""
        listed = [*(self.select or ()), *self.ignore]
        for table in (self.per_file_ignores, self.per_node_ignores):
            listed.extend(word for words in table.values() for word in words)
        return tuple(dict.fromkeys(listed))

    def excludes(self, path: Path | str) -> bool:
        """Whether a model that was not named itself is left out."""
        return any(matches_path(pattern, path, self.folder) for pattern in self.exclude)

    def ignores_rule(self, source: Path | str, code: str, name: str) -> bool:
        """Whether a per-file entry leaves all that a rule finds in a model out."""
        return any(
            any(is_named(code, name, word) for word in words) and matches_path(pattern, source, self.folder)
            for pattern, words in self.per_file_ignores.items()
        )

    def ignores(self, source: Path | str, finding: Finding) -> bool:
        """Whether a per-file or per-node entry leaves this finding out."""
        if self.ignores_rule(source, finding.rule, finding.name):
            return True
        place = f"{finding.graph}/{finding.node}"
        for pattern, words in self.per_node_ignores.items():
            if names_rule(finding, words) and (_fits(pattern, place) or _fits(pattern, finding.node)):
                return True
        return False


def names_rule(finding: Finding, words: Sequence[str]) -> bool:
    """Whether one of ``words`` is the code, the family (a prefix of the code) or the name of the finding's rule."""
    return any(is_named(finding.rule, finding.name, word) for word in words)


def is_chosen(code: str, name: str, select: Sequence[str] | None, ignore: Sequence[str] | None) -> bool:
    """Whether ``select`` (None for all rules) names a rule and ``ignore`` does not."""
    selected = select is None or any(is_named(code, name, word) for word in select)
    return selected and not any(is_named(code, name, word) for word in ignore or ())


def is_named(code: str, name: str, word: str) -> bool:
    """Whether ``word`` is the code, the family or the name of a rule, in capitals or not."""
    return bool(word) and (code.startswith(word.upper()) or name == word.lower())


def find(start: Path | None = None) -> Path | None:
    """Return the nearest configuration file: in ``start`` (default: the current folder) or the nearest parent.

    ``padfix.toml`` comes before a ``pyproject.toml``; a ``pyproject.toml`` without ``[tool.padfix]`` is passed over.
    """
    folder = (start or Path.cwd()).resolve()
    for each in (folder, *folder.parents):
        if (each / FILE).is_file():
            return each / FILE
        project = each / PYPROJECT
        if project.is_file() and _section(project, _read(project)) is not None:
            return project
    return None


def load(path: Path) -> Config:
    """Return what ``path`` says.

    Raises:
        UsageError: The file can't be read, is not TOML, has an unknown key or a value of the wrong type.
    """
    section = _section(path, _read(path))
    if section is None:
        raise UsageError(f"{path} has no [tool.padfix].", "Add the section, or name a padfix.toml.")
    return _parse(section, path)


def _read(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(f"{path} can't be read: {error.strerror or error}.") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(
            f"{path} is not valid TOML: {error}.", "Correct it, or name another file with --config."
        ) from error


def _section(path: Path, document: Mapping[str, Any]) -> Mapping[str, Any] | None:
    if path.name != PYPROJECT:
        return document
    tool = document.get("tool")
    section = tool.get("padfix") if isinstance(tool, dict) else None
    if section is not None and not isinstance(section, dict):
        raise UsageError(f"{path}: tool.padfix is not a table.")
    return section


def _parse(section: Mapping[str, Any], path: Path) -> Config:
    for key in section:
        if key not in KEYS:
            raise UsageError(f"{path}: there is no setting {key!r}.", suggestion(key, KEYS))
    severities = [severity.value for severity in Severity]
    fail_on = _text(section, "fail-on", path) or Severity.WARNING.value
    if fail_on not in severities:
        raise UsageError(f"{path}: fail-on is {fail_on!r}.", suggestion(fail_on, severities))
    probes_only = section.get("probes-only", False)
    if not isinstance(probes_only, bool):
        raise UsageError(f"{path}: probes-only should be true or false, not {probes_only!r}.")
    return Config(
        select=_words(section["select"], "select", path) if "select" in section else None,
        ignore=_words(section.get("ignore", []), "ignore", path),
        fail_on=Severity(fail_on),
        target=_text(section, "target", path) or "onnx",
        exclude=_words(section.get("exclude", []), "exclude", path),
        baseline=_text(section, "baseline", path),
        per_file_ignores=_table(section, "per-file-ignores", path),
        per_node_ignores=_table(section, "per-node-ignores", path),
        probes=_words(section.get("probe", []), "probe", path),
        probes_only=probes_only,
        ranges=_ranges(section.get("range", {}), path),
        prove_on=_words(section.get("prove-on", []), "prove-on", path),
        folder=path.resolve().parent,
        path=path,
    )


def _text(section: Mapping[str, Any], key: str, path: Path) -> str | None:
    value = section.get(key)
    if value is not None and not isinstance(value, str):
        raise UsageError(f"{path}: {key} should be a string, not {value!r}.")
    return value


def _words(value: Any, key: str, path: Path) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(word, str) and word for word in value):
        raise UsageError(
            f"{path}: {key} should be a list of strings, not {value!r}.", f'For example {key} = ["PF101"].'
        )
    return tuple(value)


def _table(section: Mapping[str, Any], key: str, path: Path) -> dict[str, tuple[str, ...]]:
    value = section.get(key, {})
    if not isinstance(value, dict):
        raise UsageError(f"{path}: {key} should be a table.", f'For example [tool.padfix.{key}] "old/*" = ["PF2"].')
    return {pattern: _words(words, f"{key}.{pattern!r}", path) for pattern, words in value.items()}


def _ranges(value: Any, path: Path) -> dict[str, tuple[float, float]]:
    found = {}
    for name, text in value.items() if isinstance(value, dict) else ():
        found[name] = parse_range(text) if isinstance(text, str) else None
    if not isinstance(value, dict) or None in found.values():
        raise UsageError(f"{path}: range should say LOW..HIGH by input.", 'For example [range] tokens = "0..30521".')
    return {name: bounds for name, bounds in found.items() if bounds is not None}


def parse_range(text: str) -> tuple[float, float] | None:
    """Return the two numbers of ``LOW..HIGH``, whole ones as integers; None for any other text."""
    low, separator, high = text.partition("..")
    try:
        return (_number(low), _number(high)) if separator else None
    except ValueError:
        return None


def _number(text: str) -> float:
    try:
        return int(text)
    except ValueError:
        return float(text)


def _fits(pattern: str, text: str) -> bool:
    # "**/" stands for any number of folders, none included; a plain * of fnmatch crosses slashes already.
    return any(fnmatch.fnmatchcase(text, form) for form in (pattern, pattern.replace("**/", "")))


def matches_path(pattern: str, path: Path | str, folder: Path | None = None) -> bool:
    """Whether ``pattern`` fits a path relative to ``folder`` (None for the current one), or the name of the file.

    A URL comes as text, and is matched as it stands.
    """
    if isinstance(path, str):
        return _fits(pattern, path) or ("/" not in pattern and _fits(pattern, path.rpartition("/")[2]))
    resolved = Path(path).resolve()
    base = (folder or Path.cwd()).resolve()
    relative = resolved.relative_to(base).as_posix() if resolved.is_relative_to(base) else resolved.as_posix()
    return _fits(pattern, relative) or ("/" not in pattern and _fits(pattern, resolved.name))


REFERENCES = ("auto", "onnxruntime", "spec", "tensorflow")


@dataclass(frozen=True, kw_only=True)
class VerifyOptions:
    """How to prove: the keyword arguments of :func:`verify`, and of :func:`convert` beside its own.

    Attributes:
        reference: Who runs the original: ``"onnxruntime"``, ``"spec"``, ``"tensorflow"``, or ``"auto"`` for
            TensorFlow when the source is TensorFlow's and ONNX Runtime when it is ONNX.
        probes: ``.npz`` and ``.npy`` files, images, and folders of these to prove on, beside the generated data.
        rtol: Allowed difference as a fraction of the output's range; None for the documented defaults.
        atol: Allowed absolute difference, added to it.
        seed: Seed of the generated inputs.
        shapes: Input shapes to fix, by input name.
        locate: Whether to look for the first tensor that differs, which the verdict then names as
            ``first_difference``; :func:`convert` always does.
        certificate: Whether the verdict is to name the files by their SHA-256, which means reading them whole. The
            output's metadata then bears the certificate's digest, unless it is equal to the source.
        layers: Whether the verdict is to say how far inner tensors are, which means running the models again.
        trust: Whether code that the source itself holds may run (Lambda layers), and files that it names be read and
            written. Only for sources that you would run as a program.
        custom_objects: Classes and functions that a Keras file names and does not hold, by name there; or where to
            import each from, ``"module:name"``, which needs ``trust``.
        probes_only: Whether the whole is judged by the data of ``probes`` alone.
        ranges: The lowest and the highest number, both included, of the data that is made for an input, by its name.
        usual_ranges: The same, for models that have such an input; what a configuration file says.
        inputs: Names of the inputs of a frozen graph, when those found are not the right ones. This and the next four
            are of the source; for :func:`verify`, of the first model, of the second where the first is ONNX, and of
            both where they are of one kind.
        outputs: Names of the outputs of a frozen graph.
        constants: Values to fix inputs of a TensorFlow source to, by name: ``{"is_training": False}``. They are no
            inputs of the result.
        signature: Signature of a SavedModel or a TensorFlow Lite file.
        tag: Tag set of a SavedModel.
    """

    reference: str = "auto"
    probes: Sequence[PathArgument] | None = None
    rtol: float | None = None
    atol: float | None = None
    seed: int = 0
    shapes: Mapping[str, Sequence[int]] | None = None
    locate: bool = False
    certificate: bool = False
    layers: bool = False
    trust: bool = False
    custom_objects: Mapping[str, object] | None = None
    probes_only: bool = False
    ranges: Mapping[str, Sequence[float]] | None = None
    usual_ranges: Mapping[str, Sequence[float]] | None = None
    inputs: Sequence[str] | None = None
    outputs: Sequence[str] | None = None
    constants: Mapping[str, object] | None = None
    signature: str | None = None
    tag: str | Sequence[str] | None = None

    def __post_init__(self) -> None:
        """Raise :class:`UsageError` for what does not exist, and for probes alone where there are none."""
        if self.probes_only and not self.probes:
            raise UsageError("There are no probes to judge by alone.", "Give data with --probe beside --probes-only.")
        if self.reference not in REFERENCES:
            raise UsageError(f"There is no reference {self.reference!r}.", f"References: {', '.join(REFERENCES)}.")
        for name, told in (("rtol", self.rtol), ("atol", self.atol)):
            if told is not None and not 0 <= told < math.inf:
                raise UsageError(f"{name} is {told}, which is no tolerance.", "It is a number from 0 on, such as 1e-4.")
        for name, bounds in {**(self.usual_ranges or {}), **(self.ranges or {})}.items():
            if len(bounds) != 2 or not -math.inf < bounds[0] <= bounds[1] < math.inf:
                raise UsageError(
                    f"The range of input {name!r} is not two numbers, the lower one first.", "For example 0..255."
                )

    @property
    def pinned(self) -> dict[str, tuple[int, ...]]:
        """The shapes to fix, by input name."""
        return {name: tuple(shape) for name, shape in (self.shapes or {}).items()}


@dataclass(frozen=True, kw_only=True)
class ConvertOptions(VerifyOptions):
    """What to make and how to prove it: the keyword arguments of :func:`convert`.

    Attributes:
        opset: Lowest default-domain opset of the result.
        target: What the result has to suit, by name.
        pads: ``"attribute"`` writes pads into the operators; ``"node"`` writes those that differ between the two
            sides of an axis as a Pad before the operator (a Slice behind ConvTranspose); None as the target wants it.
        verify: False writes without the whole proof, and the report says so.
        partial: Whether to write what could be rewritten when something else could not.
        external_data: Write the weights beside the model even when it is small.
        in_place: ``output`` is the source itself, an ONNX file, which is replaced; not touched when nothing changes.
        backup: With ``in_place``, keep the original beside it as ``<name>.bak`` (``.bak.1`` when that is taken).
        prove_on: Runtimes that the result is run on as well before it is written; names of
            :func:`padfix.runtimes.names`.
    """

    opset: int | None = None
    target: str = "onnx"
    pads: str | None = None
    verify: bool = True
    partial: bool = False
    external_data: bool = False
    in_place: bool = False
    backup: bool = True
    prove_on: Sequence[str] | None = None

    def __post_init__(self) -> None:
        """Raise :class:`UsageError` for what does not exist, and for a proof that is not to be one."""
        super().__post_init__()
        self.wanted()
        if self.prove_on and not self.verify:
            raise UsageError("A result that is to be proven on a runtime is not written without proof.")

    def wanted(self) -> Target:
        """Return the target, with the style of pads that was asked for."""
        from padfix.targets import named

        target = named(self.target)
        return target if self.pads is None else dataclasses.replace(target, pads=self.pads)
