"""Stages of a long command, shown where a person is looking and nowhere else."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from padfix.cli.terminal import LiveLine, is_terminal
from padfix.process import watch
from padfix.reports.characters import printable

Progress = Callable[[str], None]


@contextmanager
def stages(about: str = "", *, quiet: bool = False, verbose: bool = False) -> Iterator[Progress]:
    """Yield a function that is told each stage.

    On a terminal it keeps the last line of stderr up to date; with ``verbose`` each stage is a line on stderr, and what
    TensorFlow and tf2onnx log comes through; in continuous integration, in a pipe, or with ``quiet`` nothing is shown.
    What the stages are ``about``, one of several sources, stands before each.
    """
    with _shown(quiet=quiet, verbose=verbose) as show:

        def progress(stage: str) -> None:
            watch.tell(f"padfix ({printable(stage)})")
            show(printable(about + stage))

        yield progress


@contextmanager
def _shown(*, quiet: bool, verbose: bool) -> Iterator[Progress]:
    if quiet:
        yield lambda stage: None
    elif verbose:
        from padfix.sources import tensorflow_runtime

        with tensorflow_runtime.talking():
            yield lambda stage: print(f"padfix: {stage}", file=sys.stderr)
    elif os.environ.get("CI") or not is_terminal(sys.stderr):
        yield lambda stage: None
    else:
        with LiveLine(sys.stderr) as line:
            yield line.show
