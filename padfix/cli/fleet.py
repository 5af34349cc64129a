"""Many models checked: who works on them, what is known of them already, and what of each is written at once."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import gc
import itertools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from padfix import errors
from padfix.checking.cache import Cache, Row, default_folder, row_of, settings_digest, state_of
from padfix.cli import options, pipes
from padfix.cli.exits import failure_of
from padfix.cli.progress import Progress
from padfix.config.settings import Config
from padfix.files.urls import Place, Url, matched
from padfix.process import watch
from padfix.process.executors import Executor, executor
from padfix.results import CheckReport, Identity

if TYPE_CHECKING:
    from padfix.checking.lines import Lines

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
        from padfix.checking.lines import Lines

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


@contextlib.contextmanager
def without_circles() -> Iterator[None]:
    """Keep Python from looking for circles of objects: reports and graphs have none, and stay to the end.

    It would take a sixth of the time of a run over models that did not change, and an eighth of that for a graph of a
    million nodes, without finding anything.
    """
    is_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if is_on:
            gc.enable()


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


class _Task(NamedTuple):
    model: Place
    file: Place  # what is read in its place
    expected: str | None = None  # the digest of the model as a report has it already


class _Plan(NamedTuple):
    task: _Task
    known: Row | Identity | None  # what is kept of a file that did not change, where nothing is left to be done
    state: str | None  # of the file before it is read


@dataclass(frozen=True)
class _Check:
    """The work on one model, wherever it is done; it returns what it raises."""

    config: Config
    limits: options.Limits
    draws: bool
    known: frozenset[str]  # digests of models whose reports are there
    elsewhere: bool = False  # whether on another machine

    def __call__(self, task: _Task) -> Row | Identity | errors.PadfixError:
        """Return the reports of a model, or why there are none; its identity if it is expected or known."""
        try:
            return self.work(task)
        except Exception as error:
            failure = failure_of(error)
            failure.message = failure.message.replace(str(task.file), pipes.name(task.model))
            if (
                self.elsewhere
                and isinstance(error, errors.SourceError)
                and isinstance(task.file, Path)
                and not task.file.exists()
            ):
                failure.hint = "The cluster's workers read the models: name paths that they share, or URLs."
            return failure

    def work(self, task: _Task, progress: Progress = lambda stage: None) -> Row | Identity:
        """Return the reports of a model, one for each target; its identity if it is expected or known."""
        self.limits.apply([task.file])
        found = self._found(task)
        return found or row_of(check_one(self.config, task, self.draws, progress), draws=self.draws)

    def _found(self, task: _Task) -> Identity | None:
        # The graph of one in a store would be fetched twice, where it is not the expected one.
        known = frozenset[str]() if isinstance(task.file, Url) else self.known
        if not known and task.expected is None:
            return None
        from padfix.files.skeleton import identity_of

        try:
            identity = identity_of(task.file)
        except errors.SourceError:
            return None
        return identity if identity.digest == task.expected or identity.digest in known else None


def check_one(config: Config, task: _Task, draws: bool, progress: Progress) -> list[CheckReport]:
    """Return the reports of one model, read from a file, one for each target."""
    from padfix import api

    def tell(stage: str) -> None:
        about = f"{pipes.name(task.model)}: {stage}" if stage else pipes.name(task.model)
        watch.tell(f"padfix (checking {about})")
        progress(f"Checking {about}")

    tell("")
    wanted: dict[str, Any] = {"select": config.select or None, "ignore": config.ignore}
    return api.check_for(task.file, config.targets, maps=draws, progress=tell, **wanted)


class Fleet:
    """The models of one call, and who works on them."""

    def __init__(
        self,
        config: Config,
        wanted: FleetOptions,
        limits: options.Limits,
        cache: Cache | None,
        lines: Lines | None,
        *,
        draws: bool,
    ) -> None:
        self._config = config
        self._wanted = wanted
        self._limits = limits
        self._cache = cache
        self._lines = lines
        self._draws = draws
        self.resumed = 0

    def outcomes(self, files: Mapping[Place, Place], progress: Progress) -> Iterator[tuple[Place, Outcome, bool]]:
        """Yield each of the models, which ``files`` names with the file to read, and what came of it, in order.

        The third says whether the file of JSON lines holds it already.
        """
        if self._cache is not None:
            self._cache.look_up(files.values())
        plans, ahead = itertools.tee(self._plan(model, file) for model, file in files.items())
        answers = self._answers((plan.task for plan in ahead if plan.known is None), files, progress)
        for number, plan in enumerate(plans, 1):
            model = plan.task.model
            if plan.known is None:
                progress(f"Checking {pipes.name(model)} ({number} of {len(files)})")
            answer = plan.known or next(answers)
            digest = _digest(answer)
            if digest is not None and digest == plan.task.expected:
                self.resumed += 1
                self._keep_state(plan, digest)
                yield model, self._written(model) or [], True
            else:
                yield model, self._reports(plan, answer), False

    def _reports(self, plan: _Plan, answer: Row | Identity | errors.PadfixError) -> Outcome:
        """Return the reports of a model: of the cache, or of the answer, or of checking it here and now."""
        model = plan.task.model
        row = plan.known
        if isinstance(answer, Identity):
            row = None if self._cache is None else self._cache.kept(answer.digest)
        reports = _read(row, model) if isinstance(row, Row) else None
        if reports is None:
            if isinstance(answer, Identity) or answer is plan.known:
                answer = self._check(frozenset())(plan.task._replace(expected=None))
            if isinstance(answer, errors.UsageError):
                raise answer  # the options are wrong, whatever the model
            if isinstance(answer, errors.PadfixError):
                return answer
            assert isinstance(answer, Row), "the identity of a model is told only where it is expected or known"
            reports = answer.reports(pipes.name(model))
            if self._cache is not None:
                self._cache.keep(answer)
        if plan.state is not None and reports[0].identity is not None:
            self._keep_state(plan, reports[0].identity.digest)
        return self._finished(model, reports)

    def _plan(self, model: Place, file: Place) -> _Plan:
        expected = self._expected(model)
        is_shared = self._wanted.scheduler is not None and isinstance(file, Path)
        task = _Task(model, file.absolute() if is_shared and isinstance(file, Path) else file, expected)
        if self._cache is None:
            return _Plan(task, None, None)
        known = self._cache.known(file)
        if isinstance(known, Row) or (known is not None and known.digest == expected):
            return _Plan(task, known, None)
        return _Plan(task, None, state_of(file))

    def _keep_state(self, plan: _Plan, digest: str) -> None:
        if self._cache is not None and plan.state is not None:
            self._cache.keep_state(plan.task.file, plan.state, digest)

    def _written(self, model: Place) -> list[CheckReport] | None:
        return None if self._lines is None else self._lines.reports(pipes.name(model), self._config.targets)

    def _expected(self, model: Place) -> str | None:
        written = self._written(model)
        return written[0].identity.digest if written and written[0].identity is not None else None

    def _check(self, known: frozenset[str], *, elsewhere: bool = False) -> _Check:
        return _Check(self._config, self._limits, self._draws, known, elsewhere)

    def _answers(
        self, tasks: Iterator[_Task], files: Mapping[Place, Place], progress: Progress
    ) -> Iterator[Row | Identity | errors.PadfixError]:
        """Yield what comes of each task; one model alone is checked in this process."""
        first = next(tasks, None)
        if first is None:
            return
        tasks = itertools.chain([first], tasks)
        is_here = self._wanted.scheduler is None  # workers of a cluster have other disks and other limits
        known = self._cache.digests() if is_here and self._cache is not None else frozenset()
        work = self._check(known, elsewhere=not is_here)
        if len(files) == 1 and is_here:
            yield from (self._alone(work, task, progress) for task in tasks)
            return
        if not is_here and self._limits != options.NO_LIMITS:
            raise errors.UsageError("The workers of a cluster have limits of their own.", "Leave out those of padfix.")
        if not is_here and pipes.PIPE in files:
            raise errors.UsageError("Standard input does not reach a cluster.", "Name a file that its workers see.")
        who: Executor = executor(self._wanted.jobs, self._wanted.scheduler)
        yield from who.outcomes(work, tasks, tell=lambda doing: progress(_shown(doing)))

    def _alone(self, work: _Check, task: _Task, progress: Progress) -> Row | Identity | errors.PadfixError:
        try:
            return work.work(task, progress)
        except errors.PadfixError as failure:
            return failure

    def _finished(self, model: Place, reports: list[CheckReport]) -> list[CheckReport]:
        """Return reports as the configuration wants them: without what it ignores."""
        config = self._config
        if not (config.per_file_ignores or config.per_node_ignores) and model != pipes.PIPE:
            return reports
        path = matched(model)
        return [
            dataclasses.replace(
                report,
                findings=[finding for finding in report.findings if not config.ignores(path, finding)],
                rules=_asked(report.rules, config, path),
                fix_options=None if model == pipes.PIPE else report.fix_options,  # there is no file to replace
            )
            for report in reports
        ]


def _digest(answer: Row | Identity | errors.PadfixError) -> str | None:
    if isinstance(answer, errors.PadfixError):
        return None
    return answer.digest if isinstance(answer, Identity) else answer.identity.digest


def _read(row: Row, model: Place) -> list[CheckReport] | None:
    """Return the reports that the cache holds; None where they are damaged, or somebody else's."""
    try:
        reports = row.reports(pipes.name(model))
    except Exception:
        return None
    # What was fetched was so another time.
    return [dataclasses.replace(each, fetched=None) if each.fetched else each for each in reports] or None


def _shown(doing: str) -> str:
    """Return what a worker notes that it does as a stage of the whole."""
    told = doing.removeprefix("padfix (").removesuffix(")")
    return told[:1].upper() + told[1:]


def _asked(rules: tuple[str, ...], config: Config, path: Path | str) -> tuple[str, ...]:
    """Return the codes of rules that are not ignored in a model as a whole."""
    if not config.per_file_ignores:
        return rules
    from padfix.rules.registry import RULES

    names = {rule.code: rule.name for rule in RULES}
    return tuple(code for code in rules if not config.ignores_rule(path, code, names[code]))
