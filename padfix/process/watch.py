"""What the process that does the work tells the one that watches over it, and what it may use.

The command line works in a child process (:mod:`padfix.process.supervisor`): a runtime that crashes, hangs or eats the
memory then ends that process and nothing else. The two share one page of memory, the *board*. Everything here does
nothing where nobody watches, as in a program that imports padfix.
"""

from __future__ import annotations

import contextlib
import mmap
import os
import struct
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from padfix.errors import scratch_mark
from padfix.process import memory

SECONDS = 15.0
"""Processor seconds for a command on a small file of a stranger (``--untrusted``)."""

SECONDS_PER_MEBIBYTE = 20.0
"""More for each mebibyte of the files that are read."""

TENSORFLOW_SECONDS = 120.0
"""More for a source that TensorFlow has to load and tf2onnx to convert."""

MEBIBYTES = 896
"""Memory for a command on such a file, everything that the runtimes themselves take included."""

MEBIBYTES_PER_MEBIBYTE = 24
"""More for each mebibyte of the files that are read: weights are held several times, and activations come with them."""

SECONDS_PER_MULTIPLICATION = 3e-9
"""More for each multiplication of a run: a proof is a dozen runs, at some ten thousand million a second."""

MEBIBYTES_PER_RESULT = 10
"""More for each mebibyte of a run's results, which several sessions hold without planning ahead."""

_MOST_EXTRA_SECONDS = 300.0
_MEBIBYTES_PER_PROCESSOR = 48  # stacks and buffers of the threads that libraries start for each, mostly never touched
_COUNTED_FILES = 20_000

BOARD_BYTES = 4096

_HEADER = struct.Struct("<dddd")
_TEXT = struct.Struct("<H")
_PLACES = {"doing": (64, 1024), "scratch": (1200, 2800)}
_WRITTEN, _ANSWERED = 48, 49


class Limits(NamedTuple):
    """What the work may take; zeros mean that there is no limit.

    Attributes:
        seconds: Processor seconds.
        mebibytes: Memory.
        used: Processor seconds that were used when the limit was set.
        since: When that was, by the clock of ``time.monotonic``.
    """

    seconds: float
    mebibytes: float
    used: float
    since: float


class Board:
    """One page that both processes see: this one and its forks, or whoever has the file with this descriptor."""

    def __init__(self, descriptor: int = -1) -> None:
        self._page = mmap.mmap(descriptor, BOARD_BYTES)

    @property
    def limits(self) -> Limits:
        """What the work may take."""
        return Limits(*_HEADER.unpack_from(self._page, 0))

    @limits.setter
    def limits(self, limits: Limits) -> None:
        _HEADER.pack_into(self._page, 0, *limits)

    @property
    def written(self) -> bool:
        """Whether the output is in its place."""
        return self._page[_WRITTEN] == 1

    @written.setter
    def written(self, value: bool) -> None:
        self._page[_WRITTEN] = int(value)

    @property
    def answered(self) -> bool:
        """Whether the work came to its own end: a library that ends the process says nothing to the user."""
        return self._page[_ANSWERED] == 1

    @answered.setter
    def answered(self, value: bool) -> None:
        self._page[_ANSWERED] = int(value)

    def read(self, place: str) -> str:
        """Return the text at ``"doing"`` (what is being done) or ``"scratch"`` (folders to remove, one a line)."""
        start, size = _PLACES[place]
        (length,) = _TEXT.unpack_from(self._page, start)
        begin = start + _TEXT.size
        return self._page[begin : begin + min(length, size)].decode("utf-8", "surrogateescape")

    def write(self, place: str, text: str) -> None:
        """Put a text there; one that does not fit is left out if it is a folder, else cut."""
        start, size = _PLACES[place]
        data = text.encode("utf-8", "surrogateescape")
        if len(data) > size:
            data = b"" if place == "scratch" else data[:size].decode("utf-8", "ignore").encode()
        _TEXT.pack_into(self._page, start, 0)
        self._page[start + _TEXT.size : start + _TEXT.size + len(data)] = data
        _TEXT.pack_into(self._page, start, len(data))


_board: Board | None = None
_by_size = (False, False)  # whether the seconds and the mebibytes go by the size of what is read


def install(board: Board) -> None:
    """Tell ``board`` from now on; called in the process that does the work."""
    global _board
    _board = board


def doing(what: str) -> contextlib.AbstractContextManager[None]:
    """Note what is being done, a few words that can begin a sentence: ``"ONNX Runtime, loading the model"``."""
    return _noted("doing", lambda before: what)


def scratch(folder: Path) -> contextlib.AbstractContextManager[None]:
    """Note a folder that has to go when the work is ended from outside; it removes itself otherwise.

    Its name must hold :func:`scratch_mark`, so that nothing else is ever removed.
    """
    # Where memory is short, it may not come to remove itself, and says nothing of that.
    return _noted("scratch", lambda before: f"{before}{os.fspath(folder)}\n", lambda: not os.path.lexists(folder))


@contextlib.contextmanager
def scratch_folder() -> Iterator[Path]:
    """Yield a temporary folder that goes even when the process does not come to it."""
    import tempfile

    with tempfile.TemporaryDirectory(prefix=scratch_mark(), ignore_cleanup_errors=True) as name, scratch(Path(name)):
        yield Path(name)


@contextlib.contextmanager
def _noted(place: str, change: Callable[[str], str], is_over: Callable[[], bool] = lambda: True) -> Iterator[None]:
    board = _board
    if board is None:
        yield
        return
    before = board.read(place)
    board.write(place, change(before))
    try:
        yield
    finally:
        if is_over():
            board.write(place, before)


def tell(what: str) -> None:
    """Note what is being done from now on, as :func:`doing` does for a while."""
    if _board is not None:
        _board.write("doing", what)


def note_written() -> None:
    """Note that the output is in its place."""
    if _board is not None:
        _board.written = True


def was_written() -> bool:
    """Whether the output was noted to be in its place."""
    return _board is not None and _board.written


def restrict(
    paths: Sequence[Path], *, seconds: float | None = None, gibibytes: float | None = None, untrusted: bool = False
) -> None:
    """Limit what the work on ``paths`` may take: not at all, to what the user said, or strictly by their size.

    Args:
        paths: The files and folders that are read.
        seconds: Processor seconds; None for no limit, or by the size if ``untrusted``.
        gibibytes: Memory; None for no limit, or by the size if ``untrusted``.
        untrusted: Whether the files are of strangers, and may ask for no more than their size and work explain.
    """
    global _by_size
    if _board is None:
        return
    _by_size = (untrusted and seconds is None, untrusted and gibibytes is None)
    used, since = time.process_time(), time.monotonic()
    if _by_size[0]:
        seconds = SECONDS * max(1, len(paths))
        seconds += TENSORFLOW_SECONDS * sum(_may_need_tensorflow(path) for path in paths)
    mebibytes = MEBIBYTES if _by_size[1] else (gibibytes or 0.0) * 1024
    _board.limits = Limits(seconds or 0.0, mebibytes, used, since)
    _limit_memory()
    if untrusted:
        allow_for(sum(_size(path) for path in paths))


def allow_for(size: int) -> None:
    """Allow more for ``size`` bytes that are read, where the limits go by the size."""
    mebibytes = size / 2**20
    _allow(SECONDS_PER_MEBIBYTE * mebibytes, MEBIBYTES_PER_MEBIBYTE * mebibytes)


def allow_work(multiplications: int, result_bytes: int) -> None:
    """Allow more for a model that is small as a file and large as a computation, where the limits go by the size.

    Args:
        multiplications: Of one run.
        result_bytes: Of all results of one run.
    """
    extra = min((memory.total() or 8192.0) / 2, MEBIBYTES_PER_RESULT * result_bytes / 2**20)
    _allow(min(_MOST_EXTRA_SECONDS, SECONDS_PER_MULTIPLICATION * multiplications), extra)


def _allow(seconds: float, mebibytes: float) -> None:
    if _board is None or not any(_by_size):
        return
    limits = _board.limits
    _board.limits = limits._replace(
        seconds=limits.seconds + seconds * _by_size[0], mebibytes=limits.mebibytes + mebibytes * _by_size[1]
    )
    _limit_memory()


def is_timed() -> bool:
    """Whether the time is limited."""
    return _board is not None and _board.limits.seconds > 0


def time_is_short() -> bool:
    """Whether half of the time is spent: what can be left out should be."""
    if _board is None:
        return False
    limits = _board.limits
    return limits.seconds > 0 and time.process_time() - limits.used > limits.seconds / 2


def memory_limit() -> float:
    """Return the mebibytes that the work may take; 0 where there is no limit."""
    return 0.0 if _board is None else _board.limits.mebibytes


def memory_hint() -> str:
    """Return what to do where memory ran out."""
    limit = memory_limit()
    return f"It may use {limit / 1024:.1f} GiB; allow more with --memory GIB." if limit else "Close other programs."


def lift_memory_limit() -> None:
    """Let the work take memory again where it is over, so that it can say what happened."""
    if not memory_limit() or not sys.platform.startswith("linux"):
        return
    import resource

    _, hard = resource.getrlimit(resource.RLIMIT_DATA)
    with contextlib.suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_DATA, (hard, hard))


def _may_need_tensorflow(path: Path) -> bool:
    try:
        return path.is_dir() or path.suffix.lower() != ".onnx"
    except OSError:
        return False


def _size(path: Path) -> int:
    """Return the bytes of a file, or of all files in a folder."""
    try:
        if not path.is_dir():
            return path.stat().st_size
        files = islice(path.rglob("*"), _COUNTED_FILES)
        return sum(each.stat().st_size for each in files if each.is_file())
    except (OSError, ValueError):
        return 0


@cache
def _at_first() -> int:
    """Return the bytes of data that the process had when it was first limited: a program's that runs padfix inside."""
    with contextlib.suppress(OSError, ValueError, IndexError):
        return int(Path("/proc/self/statm").read_text().split()[5]) * mmap.PAGESIZE
    return 0


def _limit_memory() -> None:
    """Let allocations beyond the limit fail, which libraries report, instead of the system killing what it likes."""
    mebibytes = memory_limit()
    if not mebibytes or not sys.platform.startswith("linux"):
        return  # elsewhere this limit does not count what is mapped
    import resource

    mebibytes += _MEBIBYTES_PER_PROCESSOR * max(0, (os.cpu_count() or 1) - 2)
    wanted = int(mebibytes * 2**20) + _at_first()
    _, hard = resource.getrlimit(resource.RLIMIT_DATA)
    if hard != resource.RLIM_INFINITY:
        wanted = min(wanted, hard)
    with contextlib.suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_DATA, (wanted, hard))
