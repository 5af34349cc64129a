"""Options, markers and settings of the whole test suite."""

from __future__ import annotations

import collections
import importlib.util
import os
import signal
import sys
from collections.abc import Iterator

# Before any test imports TensorFlow: no graphics card is looked for, and nothing but errors is logged.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "0")
# No test takes a report from the user's cache, or leaves one there.
os.environ["XDG_CACHE_HOME"] = f"{os.devnull}/none"

# A job in the background of a script ignores Ctrl-C, and so would the commands that tests interrupt.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

import pytest
from hypothesis import HealthCheck, settings

from tests.support.warm_commands import WarmCommands

_COMMON = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}
settings.register_profile("default", max_examples=50, **_COMMON)
settings.register_profile("ci", max_examples=50, derandomize=True, **_COMMON)
settings.load_profile("ci" if os.environ.get("CI") else "default")


_SWEPT, _MANY_CASES, _ONE_IN = ("tests/rules/", "tests/sources/"), 6, 4
"""Where a test of so many cases or more is a sweep, and one in how many of them runs by default."""


def pytest_configure() -> None:
    """Keep what is compiled for the processes that tests start, which would compile the whole package anew."""
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    sys.dont_write_bytecode = False


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add ``--slow``, which runs whole sweeps where a sample runs by default."""
    parser.addoption("--slow", action="store_true", help="run the whole of every sweep, not a sample")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what is not asked for, and let the longest begin.

    Skipped are slow tests, and most of long sweeps, without ``--slow``, and TensorFlow's tests where it is not
    installed. A rule's or a source's test of many cases is a sweep, marked or not. No process is to be left with a
    long test when the others have nothing to do any more.
    """
    skip_slow = pytest.mark.skip(reason="a full sweep; run it with --slow")
    skip_tensorflow = pytest.mark.skip(reason='needs TensorFlow: pip install "padfix[tf]"')
    there = importlib.util.find_spec("tensorflow") is not None
    places: collections.Counter[str] = collections.Counter()
    cases = collections.Counter(_test_of(item) for item in items)
    for item in items:
        sweep = item.get_closest_marker("sweep")
        name = _test_of(item)
        is_of_many = name.startswith(_SWEPT) and cases[name] >= _MANY_CASES
        every = sweep.args[0] if sweep is not None else _ONE_IN if is_of_many else 1
        left_out = places[name] % every != 0
        places[name] += 1
        if (left_out or item.get_closest_marker("slow")) and not config.getoption("--slow"):
            item.add_marker(skip_slow)
        if item.get_closest_marker("tensorflow") and not there:
            item.add_marker(skip_tensorflow)
    items.sort(key=lambda item: item.get_closest_marker("long") is None)


def _test_of(item: pytest.Item) -> str:
    """Return a test's name without its case's."""
    return item.nodeid.partition("[")[0]


@pytest.fixture(scope="session")
def warm() -> Iterator[WarmCommands]:
    """Run commands with TensorFlow loaded already."""
    commands = WarmCommands()
    yield commands
    commands.close()


@pytest.fixture
def lent_interpreter(monkeypatch: pytest.MonkeyPatch) -> None:
    """Prove results without rows in one interpreter, not in a new one for each conversion."""
    from tests.support.lent_interpreter import Lent

    monkeypatch.setattr("padfix.proof.alone.Apart", Lent)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """List at the end of a run how many tests were left out for which reason, the most frequent first."""
    skipped = terminalreporter.stats.get("skipped", [])
    reasons = collections.Counter(str(report.longrepr[2]).removeprefix("Skipped: ") for report in skipped)
    if reasons:
        terminalreporter.section(f"{reasons.total()} left out, by reason")
        for reason, number in sorted(reasons.items(), key=lambda item: (-item[1], item[0])):
            terminalreporter.write_line(f"{number:6}  {reason}")


@pytest.fixture
def slow(request: pytest.FixtureRequest) -> bool:
    """Whether whole sweeps were asked for."""
    return bool(request.config.getoption("--slow"))
