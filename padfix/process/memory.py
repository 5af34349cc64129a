"""Memory: what the machine or its control group can still give, and how each library says that it got none.

Sources: proc(5) for ``/proc/meminfo`` and ``statm``, the kernel's documentation of control groups (cgroup-v1/memory,
cgroup-v2) for their files.
"""

from __future__ import annotations

import errno
import mmap
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

_CONTROL_GROUPS = Path("/sys/fs/cgroup")
_UNLIMITED = 1 << 60

_AT_ONCE = 1 << 20
"""Bytes that Python's allocator asks the system for at once."""

_WANT = (
    "bad_alloc",
    "bad allocation",
    "MemoryError",
    "Failed to allocate memory",
    "Unable to allocate",
    "OOM when allocating",
    "Cannot allocate memory",
    "ResourceExhausted",
    "RESOURCE_EXHAUSTED",
    "can't start new thread",
    "pthread_create",
)
"""What libraries say when memory ran out, and nothing else."""

_WANT_UNDER_A_LIMIT = (
    "EncodeError",
    "Failed to serialize proto",
    "DecodeError",
    "Error parsing message",
    "Resource temporarily unavailable",
    "Thread creation failed",
    "SystemError",
    "failed to map segment",
    "cannot map zero-fill pages",
)
"""What they also say then, and for other reasons where there is memory enough."""


class Memory(NamedTuple):
    """Mebibytes that there are in all, and that are left."""

    total: float
    left: float

    @property
    def is_short(self) -> bool:
        """Whether so little is left that the system would soon end processes."""
        return self.left < min(512.0, self.total / 40)


def available() -> Memory | None:
    """Return what the machine, or its control group, can still give; None where the system does not tell."""
    return min(_known(), key=lambda each: each.left, default=None)


def total() -> float | None:
    """Return the mebibytes that the machine, or its control group, has in all; None where the system does not tell."""
    return min((each.total for each in _known()), default=None)


def _known() -> list[Memory]:
    machine = _machine()
    return [*([] if machine is None else [machine]), *_groups()]


def used_by(process: int) -> float:
    """Return the mebibytes that a process and its descendants hold for themselves; 0 where the system does not tell."""
    try:
        words = Path(f"/proc/{process}/statm").read_text().split()
    except OSError:
        return 0.0
    own = (int(words[1]) - int(words[2])) * mmap.PAGESIZE / 2**20
    return own + sum(used_by(child) for child in children_of(process))


def is_used_up(process: int) -> bool:
    """Whether a process has all the data that its own limit lets it have, but for what allocators ask for at once."""
    if not sys.platform.startswith("linux"):
        return False
    import resource

    try:
        limit, _ = resource.prlimit(process, resource.RLIMIT_DATA)
        data = int(Path(f"/proc/{process}/statm").read_text().split()[5]) * mmap.PAGESIZE
    except (OSError, ValueError, IndexError):
        return False
    return limit != resource.RLIM_INFINITY and data > limit - _AT_ONCE


def children_of(process: int) -> list[int]:
    """Return the processes that a process has started; none where the system does not tell."""
    try:
        return [int(child) for child in Path(f"/proc/{process}/task/{process}/children").read_text().split()]
    except OSError:
        return []


def is_want_of_memory(text: str) -> bool:
    """Whether the text of an error says that memory ran out, in the words of whichever library raised it."""
    return any(word in text for word in _WANT)


def want_behind(error: BaseException, *, under_a_limit: bool = False) -> str | None:
    """Return what says that memory ran out, among an error and those that led to it; None where nothing does.

    Args:
        error: The error.
        under_a_limit: Whether memory is limited; then more errors mean a want of it.
    """
    words = (*_WANT, *_WANT_UNDER_A_LIMIT) if under_a_limit else _WANT
    for each in reversed(list(_chain(error))):
        text = f"{type(each).__name__}: {each}".removeprefix("MemoryError: ").removesuffix(": ")
        is_of_system = isinstance(each, OSError) and each.errno == errno.ENOMEM
        if isinstance(each, MemoryError) or is_of_system or any(word in text for word in words):
            return text
    return None


def _chain(error: BaseException) -> Iterator[BaseException]:
    """Yield an error and what led to it."""
    seen: set[int] = set()
    current: BaseException | None = error
    while current is not None and id(current) not in seen:
        seen.add(id(current))
        yield current
        current = current.__cause__ or (None if current.__suppress_context__ else current.__context__)


def _machine() -> Memory | None:
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
        kibibytes = {name: int(rest.split()[0]) for name, _, rest in (line.partition(":") for line in lines)}
        total = kibibytes["MemTotal"] + kibibytes.get("SwapTotal", 0)
        left = kibibytes["MemAvailable"] + kibibytes.get("SwapFree", 0)
    except (OSError, ValueError, KeyError, IndexError):
        return None
    return Memory(total / 1024, left / 1024)


def _groups() -> Iterator[Memory]:
    """Yield what each control group around this process can give, as far as it has a limit."""
    for folder in _group_folders():
        names = ("memory.max", "memory.current")
        if not (folder / names[0]).exists():
            names = ("memory.limit_in_bytes", "memory.usage_in_bytes")
        try:
            limit = int((folder / names[0]).read_text())  # "max" is no number: no limit
            used = int((folder / names[1]).read_text())
            counts = dict(line.split() for line in (folder / "memory.stat").read_text().splitlines())
        except (OSError, ValueError):
            continue
        if limit < _UNLIMITED:
            # Contents of files count as used, but the system gives them up when it needs the room.
            freed = sum(int(counts.get(name, 0)) for name in ("inactive_file", "active_file"))
            yield Memory(limit / 2**20, (limit - max(0, used - freed)) / 2**20)


@cache
def _group_folders() -> tuple[Path, ...]:
    """Return the folders of this process's control group and those around it that count memory."""
    try:
        entries = [line.split(":", 2) for line in Path("/proc/self/cgroup").read_text().splitlines()]
    except OSError:
        return ()
    folders: list[Path] = []
    for _, controllers, path in (entry for entry in entries if len(entry) == 3):
        if controllers and "memory" not in controllers.split(","):
            continue
        root = _CONTROL_GROUPS / "memory" if controllers else _CONTROL_GROUPS
        inner = root / path.lstrip("/")
        folders += [each for each in (inner, *inner.parents) if each == root or root in each.parents]
    return tuple(dict.fromkeys(folders))
