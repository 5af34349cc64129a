"""Runs the command line on one file in a process of its own and says what a hostile file must never achieve.

A clean answer is: an exit code of 0, 1 or 2, in time, in little memory, without a traceback or an internal error, with
one message where the code is 2, and with nothing left behind but the output itself.
"""

from __future__ import annotations

import os
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil

SECONDS = 20.0
"""Processor seconds; on a machine that is busy with other things the clock on the wall says nothing."""

MEBIBYTES = 1024


@dataclass(frozen=True)
class Answer:
    """What the command line did: exit code (negative: the signal that ended it), texts, time, memory, files left."""

    code: int
    stdout: str
    stderr: str
    seconds: float
    mebibytes: float
    left: tuple[str, ...]

    def complaint(self) -> str | None:
        """Return what is wrong with the answer, or None."""
        if self.seconds > SECONDS:
            return f"took {self.seconds:.1f} s"
        if self.code < 0:
            return f"died of signal {-self.code}"
        if self.code not in (0, 1, 2):
            return f"exit code {self.code}"
        for word in ("Traceback", "internal error"):
            if word in self.stderr:
                return f"{word}: {self.stderr.strip()[-600:]}"
        if self.mebibytes > MEBIBYTES:
            return f"took {self.mebibytes:.0f} MiB"
        if self.code == 2 and not ("error: " in self.stderr.lower() or "usage: " in self.stderr.lower()):
            return f"exit code 2 without a message: {self.stderr!r}"
        if "\x1b" in self.stdout + self.stderr:
            return "echoed a terminal escape"
        if self.left:
            return f"left {', '.join(self.left)}"
        return None


def preload() -> None:
    """Import what the commands import, so that a fork costs milliseconds."""
    import onnxruntime  # noqa: F401


def ask(arguments: Sequence[str], folder: Path, *, output: str = "out.onnx") -> Answer:
    """Run ``padfix <arguments>`` in a fork whose current and temporary folder is ``folder``; remove what it wrote.

    Files that were there before are not counted as left behind, neither are ``output`` and its data file.
    """
    before = set(folder.rglob("*"))
    with tempfile.TemporaryFile() as stdout, tempfile.TemporaryFile() as stderr:
        code, seconds, mebibytes = _run(arguments, folder, stdout.fileno(), stderr.fileno())
        texts = []
        for file in (stdout, stderr):
            file.seek(0)
            texts.append(file.read().decode("utf-8", "backslashreplace"))
    made = [path for path in folder.rglob("*") if path not in before]
    left = tuple(str(path.relative_to(folder)) for path in made if path.name not in (output, f"{output}.data"))
    for path in made:
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)
    return Answer(code, texts[0], texts[1], seconds, mebibytes, left)


def _run(arguments: Sequence[str], folder: Path, stdout: int, stderr: int) -> tuple[int, float, float]:
    """Return exit code, processor seconds and peak mebibytes, those of its own children included.

    A fork begins with all that this process holds, which may be TensorFlow and the models of other tests.
    """
    started = time.monotonic()
    held = psutil.Process().memory_info().rss
    process = os.fork()
    if process == 0:
        _answer(arguments, folder, stdout, stderr)
    status: int | None = None
    while status is None:
        found, state, usage = os.wait4(process, os.WNOHANG)
        if found:
            status = state
        elif time.monotonic() - started > 10 * SECONDS:
            os.killpg(process, signal.SIGKILL)
            _, status, usage = os.wait4(process, 0)
        else:
            time.sleep(0.002)
    return os.waitstatus_to_exitcode(status), usage.ru_utime + usage.ru_stime, (usage.ru_maxrss * 1024 - held) / 2**20


def _answer(arguments: Sequence[str], folder: Path, stdout: int, stderr: int) -> None:
    code = 99
    try:
        os.setpgid(0, 0)
        os.dup2(stdout, 1)
        os.dup2(stderr, 2)
        # A test runner has put its own objects there.
        sys.stdout = os.fdopen(1, "w", encoding="utf-8", closefd=False)
        sys.stderr = os.fdopen(2, "w", encoding="utf-8", closefd=False)
        os.chdir(folder)
        os.environ["TMPDIR"] = tempfile.tempdir = str(folder)
        from padfix.cli import main

        main(list(arguments))
    except SystemExit as leaving:
        code = leaving.code if isinstance(leaving.code, int) else 0
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
