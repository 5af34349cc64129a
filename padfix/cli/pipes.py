"""ONNX bytes on standard input and output: ``-`` in the place of a file."""

from __future__ import annotations

import contextlib
import shutil
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from padfix.errors import OutputError, SourceError
from padfix.files.urls import Place
from padfix.process import watch

PIPE = Path("-")


def name(path: Place, *, output: bool = False) -> str:
    """Return a path as a report names it."""
    text = str(path)
    if text != str(PIPE):
        return text
    return "standard output" if output else "standard input"


@contextlib.contextmanager
def files(source: Place, output: Place) -> Iterator[tuple[Place, Place]]:
    """Yield files in the place of ``-``: standard input read whole before, standard output written after a success.

    Raises:
        SourceError: Nothing comes from standard input.
        OutputError: The result has a data file, which can't go through a pipe.
    """
    if PIPE not in (source, output):
        yield source, output
        return
    with watch.scratch_folder() as folder:
        sent = folder / "result" / "model.onnx"
        sent.parent.mkdir()
        yield (_received(folder) if source == PIPE else source), (sent if output == PIPE else output)
        if output == PIPE:
            _send(sent)


@contextlib.contextmanager
def received(paths: Sequence[Place]) -> Iterator[dict[Place, Place]]:
    """Yield the file to read in the place of each of ``paths``: itself, or what came from standard input for ``-``.

    Raises:
        SourceError: Nothing comes from standard input.
    """
    files: dict[Place, Place] = {path: path for path in paths}
    if PIPE not in files:
        yield files
        return
    with watch.scratch_folder() as folder:
        yield {**files, PIPE: _received(folder)}


def _received(folder: Path) -> Path:
    read = folder / "standard input"
    with read.open("xb") as file:
        shutil.copyfileobj(sys.stdin.buffer, file, 1 << 20)
    if not read.stat().st_size:
        raise SourceError("Nothing came from standard input.", "Pipe the bytes of an ONNX file into padfix.")
    return read


def _send(written: Path) -> None:
    if len(list(written.parent.iterdir())) > 1:
        raise OutputError(
            "The result has a data file, which can't go to standard output.",
            "Use -o FILE.",
        )
    with written.open("rb") as file:
        shutil.copyfileobj(file, sys.stdout.buffer, 1 << 20)
    sys.stdout.buffer.flush()
