"""Many models checked: who works on them, what is known of them already, and what of each is written at once."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from padfix import errors
from padfix.checking.cache import Cache, default_folder, settings_digest, state_of
from padfix.checking.lines import Lines
from padfix.cli import options, pipes
from padfix.cli.exits import failure_of
from padfix.cli.progress import Progress
from padfix.config import Config
from padfix.files.urls import Place, Url, matched
from padfix.process import watch
from padfix.process.executors import Executor, executor
from padfix.results import CheckReport, Finding, Identity

Outcome = list[CheckReport] | errors.PadfixError


@dataclass(frozen=True)
class FleetOptions:
    """What the options of :func:`fleet_options` say."""

    jobs: int
    scheduler: str | None
    resumed: Path | None
    cache_folder: Path | None
    no_cache: bool

    def __post_init__(self) -> None:
        """Raise :class:`UsageError` for options that contradict each other."""
        if self.no_cache and self.cache_folder is not None:
            raise errors.UsageError("--cache-dir and --no-cache contradict each other.", "Leave one of the two out.")
        if self.scheduler is not None and self.jobs > 1:
            raise errors.UsageError("--jobs is for this machine.", "The cluster of --scheduler has its own workers.")

    @contextlib.contextmanager
    def cache(self, models: tuple[Place, ...], config: Config, *, draws: bool) -> Iterator[Cache | None]:
        """Yield the cache for these models: the one that was asked for, or the user's for more than one file."""
        is_one = len(models) == 1 and isinstance(models[0], Path) and (models[0] == pipes.PIPE or models[0].is_file())
        folder = self.cache_folder or (None if is_one else default_folder())
        if self.no_cache or folder is None:
            yield None
            return
        with contextlib.closing(Cache(folder, _settings(config), draws=draws)) as cache:
            yield cache

    def lines(self, file: Path | None, config: Config) -> Lines | None:
        """Return the file that takes the JSON lines; None where there is none."""
        place = self.resumed or file
        if place is None:
            return None
        return Lines(place, line_settings(config), resumed=self.resumed is not None)


def fleet_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add ``--jobs --scheduler --resume --cache-dir --no-cache``, and hand them over as :class:`FleetOptions`."""

    @functools.wraps(command)
    def told(*arguments: Any, **settings: Any) -> Any:
        own = {field.name: settings.pop(field.name) for field in dataclasses.fields(FleetOptions)}
        return command(*arguments, fleet=FleetOptions(**own), **settings)

    return options.added(told, _OPTIONS)


_OPTIONS = (
    options.jobs_option,
    click.option("--scheduler", metavar="ADDRESS", help="Check on the cluster of this Dask scheduler, host:port."),
    options.file_option(
        "--resume",
        "resumed",
        callback=options.in_a_folder,
        help="Write JSON lines to this file, and check only models that it does not hold yet.",
    ),
    click.option(
        "--cache-dir",
        "cache_folder",
        metavar="DIR",
        type=options.LocalType(file_okay=False),
        help="Where reports of unchanged models are kept.  [default: the user's cache folder, for more than one file]",
    ),
    click.option("--no-cache", is_flag=True, help="Check every model, and keep nothing."),
)


def _settings(config: Config) -> str:
    return settings_digest("check", config.targets, config.select, config.ignore)


def line_settings(config: Config) -> str:
    """Return what stands for all but the model that a line of the report depends on."""
    baseline = b"" if config.baseline is None else _content((config.folder or Path()) / config.baseline)
    tables = (sorted(config.per_file_ignores.items()), sorted(config.per_node_ignores.items()))
    return settings_digest("lines", _settings(config), config.folder, tables, baseline)[:16]


def _content(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError:  # whoever applies the baseline says so
        return b""


@dataclass(frozen=True)
class _Task:
    model: Place
    file: Place  # what is read in its place
    expected: str | None = None  # the digest of the model as a report has it already


@dataclass(frozen=True)
class _Check:
    """The work on one model, wherever it is done; it returns what it raises."""

    config: Config
    limits: options.Limits
    cache_folder: Path | None = None
    draws: bool = True
    elsewhere: bool = False  # whether on another machine

    def __call__(self, task: _Task) -> Outcome | Identity:
        """Return the reports of a model, one for each target, or why there are none; its identity if it is expected."""
        try:
            self.limits.apply([task.file])
            cache = (
                None if self.cache_folder is None else _opened(self.cache_folder, _settings(self.config), self.draws)
            )
            return known(task, cache) or check_one(self.config, task.model, task.file)
        except Exception as error:
            failure = failure_of(error)
            if (
                self.elsewhere
                and isinstance(error, errors.SourceError)
                and isinstance(task.file, Path)
                and not task.file.exists()
            ):
                failure.hint = "The cluster's workers read the models: name paths that they share, or URLs."
            return failure


def known(task: _Task, cache: Cache | None) -> list[CheckReport] | Identity | None:
    """Return what need not be found out again of a model; its identity if it is what is expected."""
    if isinstance(task.file, Url):  # its graph would be fetched twice, where it is not the expected one
        cache = None
    if cache is None and task.expected is None:
        return None
    from padfix.files.skeleton import identity_of

    try:
        identity = identity_of(task.file)
    except errors.SourceError:
        return None
    if identity.digest == task.expected:
        return identity
    return None if cache is None else cache.reports(identity.digest)


@functools.cache
def _opened(folder: Path, settings: str, draws: bool) -> Cache:
    """Return the cache, opened once in a worker."""
    return Cache(folder, settings, draws=draws)


def check_one(config: Config, model: Place, file: Place, progress: Progress = lambda stage: None) -> list[CheckReport]:
    """Return the reports of one model, read from a file, one for each target."""
    from padfix import api

    def tell(stage: str) -> None:
        about = f"{pipes.name(model)}: {stage}" if stage else pipes.name(model)
        watch.tell(f"padfix (checking {about})")
        progress(f"Checking {about}")

    tell("")
    wanted: dict[str, Any] = {"select": config.select or None, "ignore": config.ignore}
    return api.check_for(file, config.targets, progress=tell, **wanted)


class Fleet:
    """The models of one call, and who works on them."""

    def __init__(
        self, config: Config, wanted: FleetOptions, limits: options.Limits, cache: Cache | None, lines: Lines | None
    ) -> None:
        self._config = config
        self._wanted = wanted
        self._limits = limits
        self._cache = cache
        self._lines = lines
        self.resumed = 0

    def outcomes(self, files: Mapping[Place, Place], progress: Progress) -> Iterator[tuple[Place, Outcome, bool]]:
        """Yield each of the models, which ``files`` names with the file to read, and what came of it, in order.

        The third says whether the file of JSON lines holds it already.
        """
        digests = {model: digest for model, file in files.items() if (digest := self._digest(model, file)) is not None}
        tasks = {model: self._task(model, file) for model, file in files.items() if model not in digests}
        states = {} if self._cache is None else {model: _state_of(task.file) for model, task in tasks.items()}
        answers = self._answers(list(tasks.values()), len(files), progress)
        answer: Outcome | Identity | None
        for number, (model, file) in enumerate(files.items(), 1):
            digest = digests.get(model)
            if digest is not None:
                answer = self._remembered(model, digest)
            else:
                progress(f"Checking {pipes.name(model)} ({number} of {len(files)})")
                answer = next(answers)
            if answer is None:
                answer = _Check(self._config, self._limits)(_Task(model, file))
            if isinstance(answer, errors.UsageError):
                raise answer  # the options are wrong, whatever the model
            if isinstance(answer, Identity):
                self.resumed += 1
                self._keep_state(file, states.get(model), answer.digest)
                yield model, self._written(model) or [], True
            else:
                if isinstance(answer, list) and digest is None and self._cache is not None:
                    self._cache.keep(answer)
                    if answer[0].identity is not None:
                        self._keep_state(file, states.get(model), answer[0].identity.digest)
                yield model, answer if isinstance(answer, errors.PadfixError) else self._finished(model, answer), False

    def _digest(self, model: Place, file: Place) -> str | None:
        """Return the digest of a file that did not change and whose reports are there; None for any other."""
        known = None if self._cache is None or isinstance(file, Url) else self._cache.known(file)
        return known[0] if known is not None and (known[1] or known[0] == self._expected(model)) else None

    def _keep_state(self, file: Place, state: str | None, digest: str) -> None:
        if self._cache is not None and state is not None and isinstance(file, Path):
            self._cache.keep_state(file, state, digest)

    def _remembered(self, model: Place, digest: str) -> list[CheckReport] | Identity | None:
        if digest == self._expected(model):
            return Identity(0, digest)
        return None if self._cache is None else self._cache.reports(digest)

    def _written(self, model: Place) -> list[CheckReport] | None:
        return None if self._lines is None else self._lines.reports(pipes.name(model), self._config.targets)

    def _expected(self, model: Place) -> str | None:
        written = self._written(model)
        return written[0].identity.digest if written and written[0].identity is not None else None

    def _task(self, model: Place, file: Place) -> _Task:
        return _Task(
            model, file.absolute() if self._wanted.scheduler and isinstance(file, Path) else file, self._expected(model)
        )

    def _answers(self, tasks: list[_Task], number: int, progress: Progress) -> Iterator[Outcome | Identity]:
        """Return what comes of each task; one model alone is checked in this process."""
        if number == 1 and self._wanted.scheduler is None:
            return (self._alone(task, progress) for task in tasks)
        if not tasks:
            return iter(())
        is_here = self._wanted.scheduler is None  # workers of a cluster have other disks and other limits
        if not is_here and self._limits != options.NO_LIMITS:
            raise errors.UsageError("The workers of a cluster have limits of their own.", "Leave out those of padfix.")
        if not is_here and any(task.model == pipes.PIPE for task in tasks):
            raise errors.UsageError("Standard input does not reach a cluster.", "Name a file that its workers see.")
        who: Executor = executor(self._wanted.jobs, self._wanted.scheduler)
        folder = self._cache.folder if is_here and self._cache is not None else None
        limits = self._limits if is_here else options.NO_LIMITS
        work = _Check(self._config, limits, folder, self._cache is None or self._cache.draws, not is_here)
        return who.outcomes(work, tasks, tell=lambda doing: progress(_shown(doing)))

    def _alone(self, task: _Task, progress: Progress) -> Outcome | Identity:
        self._limits.apply([task.file])
        try:
            return known(task, self._cache) or check_one(self._config, task.model, task.file, progress)
        except errors.PadfixError as failure:
            return failure

    def _finished(self, model: Place, reports: list[CheckReport]) -> list[CheckReport]:
        """Return reports as the configuration wants them: by the model's name, without what it ignores."""
        config, path = self._config, matched(model)
        return [
            dataclasses.replace(
                report,
                source=pipes.name(model),
                findings=_left(report.findings, config, path),
                rules=_asked(report.rules, config, path),
                fix_options=None if model == pipes.PIPE else report.fix_options,  # there is no file to replace
            )
            for report in reports
        ]


def _shown(doing: str) -> str:
    """Return what a worker notes that it does as a stage of the whole."""
    told = doing.removeprefix("padfix (").removesuffix(")")
    return told[:1].upper() + told[1:]


def _state_of(file: Place) -> str | None:
    return None if isinstance(file, Url) else state_of(file)


def _left(findings: list[Finding], config: Config, path: Path | str) -> list[Finding]:
    """Return the findings that are not ignored."""
    if not (config.per_file_ignores or config.per_node_ignores):
        return findings
    return [finding for finding in findings if not config.ignores(path, finding)]


def _asked(rules: tuple[str, ...], config: Config, path: Path | str) -> tuple[str, ...]:
    """Return the codes of rules that are not ignored in a model as a whole."""
    if not config.per_file_ignores:
        return rules
    from padfix.rules.registry import RULES

    names = {rule.code: rule.name for rule in RULES}
    return tuple(code for code in rules if not config.ignores_rule(path, code, names[code]))
