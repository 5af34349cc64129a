"""Putting files where they belong so that whoever looks, whenever, finds each whole and a model with its own data.

Every step is a rename or a link, so that a process that is killed between two of them leaves what was there before or
what is there after. Signals wait until all steps are done, and two processes that put files into one folder wait for
each other.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import signal
import threading
from collections.abc import Iterator
from pathlib import Path

from padfix.errors import scratch_mark
from padfix.process import watch

_HELD = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))


def scratch_name(name: str, token: str) -> str:
    """Return the name of a hidden folder for what becomes the file ``name``."""
    return f".{_short(name)}.{scratch_mark()}{_place()}-{token}"


def remove_stale(target: Path) -> None:
    """Remove the scratch folders for ``target`` of processes of this machine that are gone."""
    start = f".{_short(target.name)}.padfix-"
    with contextlib.suppress(OSError), os.scandir(target.parent) as entries:
        for entry in entries:
            if not entry.name.startswith(start):
                continue
            process, _, rest = entry.name[len(start) :].partition("-")
            is_of_here = process.isdigit() and rest.startswith(f"{_place()}-")
            if is_of_here and not _lives(int(process)) and entry.is_dir(follow_symlinks=False):
                shutil.rmtree(entry.path, ignore_errors=True)


def _short(name: str) -> str:
    return name[:100]


def _place() -> str:
    """Return what tells this machine, and this container on it, from others that see the same folder."""
    parts = [os.uname().nodename if hasattr(os, "uname") else os.environ.get("COMPUTERNAME", "")]
    with contextlib.suppress(OSError, AttributeError):
        parts.append(os.readlink("/proc/self/ns/pid"))
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:8]


def _lives(process: int) -> bool:
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except OSError:
        return True  # it is another user's
    return True


@contextlib.contextmanager
def undisturbed(folder: Path) -> Iterator[None]:
    """Hold back signals, and other processes that put files into ``folder``, until the end."""
    can_block = hasattr(signal, "pthread_sigmask") and threading.current_thread() is threading.main_thread()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _HELD) if can_block else None
    descriptor = None
    try:
        with contextlib.suppress(OSError, ImportError):  # not every file system can
            import fcntl

            descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        if descriptor is not None:
            os.close(descriptor)
        if before is not None:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)


def put(model: Path, target: Path) -> None:
    """Put a model without data in the place of ``target``."""
    os.replace(model, target)
    watch.note_written()


def put_with_data(model: Path, data: Path, interim: Path, interim_data: str, target: Path) -> None:
    """Put a model and its data in place.

    Where a data file is there already, another model may need it until the new model is there. So the new data first
    get a name of their own, with an interim model that asks for them under it; nobody needs the old file any more then.

    Args:
        model: The staged model; it asks for its data under the name of ``data``.
        data: The staged data.
        interim: The same model, which asks for its data under ``interim_data``.
        interim_data: A name that is free in the folder of ``target``.
        target: Where the model goes.
    """
    final = target.parent / data.name
    if not os.path.lexists(final):
        os.replace(data, final)
        put(model, target)
        return
    other = target.parent / interim_data
    os.replace(data, other)
    try:
        put(interim, target)
    except OSError:
        other.unlink()
        raise
    # From here on the output is whole; what fails only leaves its data under the other name. The data are copied, not
    # linked: readers refuse data that have a second name, lest it be a secret of somebody's.
    with contextlib.suppress(OSError):
        second = model.parent / interim_data
        with open(other, "rb") as source, open(second, "xb") as copy:
            shutil.copyfileobj(source, copy, 1 << 20)
            os.fsync(copy.fileno())
        os.replace(second, final)
        os.replace(model, target)
        other.unlink()
