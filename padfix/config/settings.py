"""Settings from ``padfix.toml``, or from ``[tool.padfix]`` in ``pyproject.toml``."""

from __future__ import annotations

import fnmatch
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from padfix.errors import UsageError, suggestion
from padfix.results import Finding, Severity

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
    import tomllib

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
