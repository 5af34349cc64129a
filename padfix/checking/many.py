"""Checking many models: one after the other, or by several processes."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from padfix import api
from padfix.config import Config
from padfix.errors import PadfixError, UsageError
from padfix.process import watch
from padfix.results import CheckReport


@dataclass(frozen=True)
class Outcome:
    """What became of one model: a report, or the reason why there is none."""

    source: Path
    report: CheckReport | None = None
    failure: PadfixError | None = None


def check_all(models: Sequence[Path], config: Config, *, jobs: int = 1) -> Iterator[Outcome]:
    """Yield the outcome of each model in the given order.

    Args:
        models: ONNX files.
        config: What to look for and what to leave out.
        jobs: Number of processes.

    Raises:
        UsageError: The configuration names a rule or a target that does not exist.
    """
    if jobs <= 1 or len(models) < 2:
        for model in models:
            yield _check_one(model, config)
        return
    import multiprocessing
    from concurrent.futures import ProcessPoolExecutor
    from concurrent.futures.process import BrokenProcessPool

    # Fresh interpreters: a fork of a process that has threads may hang.
    context = multiprocessing.get_context("spawn")
    done = 0
    try:
        with ProcessPoolExecutor(min(jobs, len(models)), mp_context=context) as pool:
            share = max(1, len(models) // (jobs * 4))
            for outcome in pool.map(_check_one, models, [config] * len(models), chunksize=share):
                yield outcome
                done += 1
    except BrokenProcessPool:  # one crashed: this process goes on, and is told which model it was by crashing itself
        for model in models[done:]:
            yield _check_one(model, config)


def _words(listed: Sequence[str] | None) -> list[str] | None:
    return list(listed) if listed else None


def _check_one(model: Path, config: Config) -> Outcome:
    watch.tell(f"padfix (checking {model})")
    try:
        report = api.check(model, target=config.target, select=_words(config.select), ignore=_words(config.ignore))
    except UsageError:
        raise  # The options are wrong, whatever the model.
    except PadfixError as failure:
        return Outcome(model, failure=failure)
    kept = [finding for finding in report.findings if not config.ignores(model, finding)]
    return Outcome(model, dataclasses.replace(report, findings=kept))
