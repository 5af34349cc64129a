"""Files that reports are written to."""

from __future__ import annotations

from pathlib import Path

from padfix.files import atomic_text


def write(file: Path, text: str) -> None:
    """Write a report to ``file`` as UTF-8.

    Raises:
        OutputError: When the file can't be written.
    """
    try:
        atomic_text.write_text(file, text)
    except OSError as error:
        raise atomic_text.unwritten(file, error) from error


def append(file: Path, text: str) -> None:
    """Append a report to ``file`` as UTF-8.

    Raises:
        OutputError: When the file can't be written.
    """
    try:
        with file.open("a", encoding="utf-8") as stream:
            stream.write(text)
    except OSError as error:
        raise atomic_text.unwritten(file, error) from error
