"""Runs the command line on one file in a process of its own and says what a hostile file must never achieve.

A clean answer is: an exit code of 0, 1 or 2, in time, in little memory, without a traceback or an internal error, with
one message where the code is 2, and with nothing left behind but the output itself.
"""

from __future__ import annotations

import atexit
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tests.support.warm_commands import ROOT, WarmCommands

SECONDS = 20.0
"""Processor seconds; on a machine that is busy with other things the clock on the wall says nothing."""

MEBIBYTES = 1024

_COMMAND = """
import os, tempfile
os.environ["TMPDIR"] = tempfile.tempdir = os.getcwd()
from padfix.cli import main
main({!r})
"""


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


@cache
def _commands() -> WarmCommands:
    """Return the process that has loaded what the commands import, so that a fork costs milliseconds.

    Not the process of the tests: its other threads hold locks that a fork of it would wait for without an end.
    """
    files = sorted((ROOT / "padfix").rglob("*.py"))
    modules = [".".join(path.relative_to(ROOT).with_suffix("").parts) for path in files if path.stem[0] != "_"]
    loaded = [name for name in modules if not name.startswith("padfix.sources.")]
    commands = WarmCommands(("onnxruntime", "onnxruntime.capi", *loaded))
    atexit.register(commands.close)
    return commands


def ask(arguments: Sequence[str], folder: Path, *, output: str = "out.onnx") -> Answer:
    """Run ``padfix <arguments>`` in a process whose current and temporary folder is ``folder``; remove what it wrote.

    Files that were there before are not counted as left behind, neither are ``output`` and its data file.
    """
    before = set(folder.rglob("*"))
    command = ("-c", _COMMAND.format(list(arguments)))
    done = _commands().run(command, folder, most_seconds=10 * SECONDS)
    made = [path for path in folder.rglob("*") if path not in before]
    left = tuple(str(path.relative_to(folder)) for path in made if path.name not in (output, f"{output}.data"))
    for path in made:
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)
    return Answer(done.returncode, done.stdout, done.stderr, done.seconds, done.mebibytes, left)
