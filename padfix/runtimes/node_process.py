"""ONNX Runtime Web in a process of Node, which runs one model after the other."""

from __future__ import annotations

import contextlib
import json
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from padfix.runtimes.adapter import Request

_SCRIPT = Path(__file__).with_name("run_in_node.cjs")


class _Node:
    """Node, started at once and again behind a request that failed.

    Raises:
        RuntimeError: It can't load the packages, or has no graphics card; in Node's words.
    """

    def __init__(self, arguments: Sequence[str]) -> None:
        self._arguments = arguments
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 (it lives as long as this)
        self._process: subprocess.Popen[str] | None = self._started()

    def run(self, folder: str) -> None:
        """Run the request that lies in a folder, and leave the results there.

        Raises:
            RuntimeError: In Node's words, why there are none.
        """
        process = self._process = self._process or self._started()
        assert process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            process.stdin.write(folder + "\n")
            process.stdin.flush()
        self._answered(process)

    def _answered(self, process: subprocess.Popen[str]) -> None:
        """Wait until Node has done what it was asked."""
        assert process.stdout is not None
        answer = process.stdout.readline()
        words = json.loads(answer) if answer else self._last_words(process)
        if words:
            process.kill()
            process.wait()
            self._process = None
            raise RuntimeError(words)

    def _started(self) -> subprocess.Popen[str]:
        self._errors.seek(0)
        self._errors.truncate()
        pipe = subprocess.PIPE
        words = ["node", str(_SCRIPT), *self._arguments]
        process = subprocess.Popen(words, stdin=pipe, stdout=pipe, stderr=self._errors, text=True)
        self._answered(process)
        return process

    def _last_words(self, process: subprocess.Popen[str]) -> str:
        process.wait()
        self._errors.seek(0)
        return self._errors.read().decode(errors="replace").strip() or "Node ended"


def runner(entry: Path, provider: str, graphics: Path | None = None) -> Callable[[Request], list[Any]]:
    """Return what runs a model.

    Args:
        entry: The file of ONNX Runtime Web that Node loads.
        provider: Its execution provider.
        graphics: The file of the package that gives Node a graphics card, where one is needed.
    """
    node = _Node([str(entry), provider, *([] if graphics is None else [str(graphics)])])

    def run(request: Request) -> list[Any]:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            (folder / "model.onnx").write_bytes(request.model)
            told = []
            for number, (given, array) in enumerate(request.feeds.items()):
                told.append({"name": given, "type": array.dtype.name, "dims": array.shape})
                (folder / f"feed{number}").write_bytes(np.ascontiguousarray(array).tobytes())
            (folder / "feeds.json").write_text(json.dumps(told), encoding="utf-8")
            node.run(name)
            results = json.loads((folder / "results.json").read_text(encoding="utf-8"))
            return [
                np.frombuffer((folder / f"result{number}").read_bytes(), each["type"]).reshape(each["dims"])
                for number, each in enumerate(results)
            ]

    return run
