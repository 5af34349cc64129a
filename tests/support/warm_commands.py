"""Runs commands of Python in forks of one process that has modules loaded; TensorFlow takes five seconds each time.

A fork is taken before any of them has run anything, so that each command begins as in a process of its own: with its
own folder, streams and exit code, and with nothing that another did. Left out are only the seconds of loading; what has
to be shown of these, or of a command that must not load TensorFlow, takes a process.
"""

from __future__ import annotations

import importlib
import json
import os
import runpy
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any, NoReturn

import psutil

ROOT = Path(__file__).parents[2]

TENSORFLOW = ("keras", "tensorflow", "tf2onnx", "padfix.cli")


class Finished(subprocess.CompletedProcess[str]):
    """What a command did; with processor seconds, and with the mebibytes that it took beyond the modules loaded."""

    def __init__(self, args: Sequence[str], returncode: int, out: str, err: str, seconds: float, mebibytes: float):
        super().__init__(list(args), returncode, out, err)
        self.seconds = seconds
        self.mebibytes = mebibytes


class WarmCommands:
    """The process; it is started by the first command, and ended by :meth:`close`."""

    def __init__(self, modules: Sequence[str] = TENSORFLOW) -> None:
        self._modules = modules
        self._server: subprocess.Popen[str] | None = None

    def run(self, command: Sequence[str], folder: Path, *, most_seconds: float | None = None) -> Finished:
        """Run ``-c CODE`` or ``-m MODULE ARGUMENT...`` in a folder, as Python does.

        Only code finds modules in the folder, as with Python's option ``-P``. After ``most_seconds`` by the clock it is
        killed, with the processes that it started.
        """
        if self._server is None:
            paths = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
            self._server = subprocess.Popen(
                [sys.executable, "-P", "-m", __name__, *self._modules],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                env={**os.environ, "PYTHONPATH": paths, "TF_CPP_MIN_LOG_LEVEL": "3", "KERAS_BACKEND": "tensorflow"},
            )
        assert self._server.stdin is not None and self._server.stdout is not None
        print(json.dumps([list(command), str(folder), most_seconds]), file=self._server.stdin, flush=True)
        return Finished(command, *json.loads(self._server.stdout.readline()))

    def close(self) -> None:
        """End the process."""
        if self._server is not None:
            self._server.communicate("\n")  # in words, because a fork of the tests may hold the pipe open
            self._server = None


def main() -> None:
    """Answer commands from standard input until it ends."""
    for module in sys.argv[1:]:
        importlib.import_module(module)
    for line in iter(sys.stdin.readline, ""):
        if not line.strip():
            return
        command, folder, most_seconds = json.loads(line)
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            held = psutil.Process().memory_info().rss
            child = os.fork()
            if child == 0:
                _work(command, folder, out.fileno(), err.fileno())
            status, usage = _waited(child, most_seconds)
            seconds = usage.ru_utime + usage.ru_stime
            mebibytes = (usage.ru_maxrss * 1024 - held) / 2**20
            answer = [os.waitstatus_to_exitcode(status), _text(out), _text(err), seconds, mebibytes]
            print(json.dumps(answer), flush=True)


def _waited(child: int, most_seconds: float | None) -> tuple[int, Any]:
    """Return a process's status and usage, those of its own children included; kill its group when time is over."""
    started = time.monotonic()
    while most_seconds is not None:
        found, status, usage = os.wait4(child, os.WNOHANG)
        if found:
            return status, usage
        if time.monotonic() - started > most_seconds:
            os.killpg(child, signal.SIGKILL)
            break
        time.sleep(0.002)
    _, status, usage = os.wait4(child, 0)
    return status, usage


def _work(command: Sequence[str], folder: str, out: int, err: int) -> NoReturn:
    """Run a command in this process, and leave it."""
    os.setpgid(0, 0)
    os.chdir(folder)
    for there, here in ((os.open(os.devnull, os.O_RDONLY), 0), (out, 1), (err, 2)):
        os.dup2(there, here)
    form, what, *arguments = command
    sys.argv = [form if form == "-c" else what, *arguments]
    code: Any = 0
    try:
        if form == "-c":
            sys.path.insert(0, "")
            exec(compile(what, "<string>", "exec"), {"__name__": "__main__"})
        else:
            runpy.run_module(what, run_name="__main__", alter_sys=True)
    except SystemExit as leaving:
        code = leaving.code
    except BaseException:
        traceback.print_exc()
        code = 1
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    os._exit(code if isinstance(code, int) else int(code is not None))


def _text(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read().decode("utf-8", "backslashreplace")


if __name__ == "__main__":
    main()
