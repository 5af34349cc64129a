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
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any, NoReturn

ROOT = Path(__file__).parents[2]


TENSORFLOW = ("keras", "tensorflow", "tf2onnx", "padfix.cli")


class WarmCommands:
    """The process; it is started by the first command, and ended by :meth:`close`."""

    def __init__(self, modules: Sequence[str] = TENSORFLOW) -> None:
        self._modules = modules
        self._server: subprocess.Popen[str] | None = None

    def run(self, command: Sequence[str], folder: Path) -> subprocess.CompletedProcess[str]:
        """Run ``-c CODE`` or ``-m MODULE ARGUMENT...`` in a folder, as Python does.

        Only code finds modules in the folder, as with Python's option ``-P``.
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
        print(json.dumps([*command, str(folder)]), file=self._server.stdin, flush=True)
        code, out, err = json.loads(self._server.stdout.readline())
        return subprocess.CompletedProcess(list(command), code, out, err)

    def close(self) -> None:
        """End the process."""
        if self._server is not None:
            self._server.communicate()
            self._server = None


def main() -> None:
    """Answer commands from standard input until it ends."""
    for module in sys.argv[1:]:
        importlib.import_module(module)
    for line in sys.stdin:
        *command, folder = json.loads(line)
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            child = os.fork()
            if child == 0:
                _work(command, folder, out.fileno(), err.fileno())
            code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
            print(json.dumps([code, _text(out), _text(err)]), flush=True)


def _work(command: Sequence[str], folder: str, out: int, err: int) -> NoReturn:
    """Run a command in this process, and leave it."""
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
    return file.read().decode()


if __name__ == "__main__":
    main()
