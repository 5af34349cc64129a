"""Small files that are written whole or not at all."""

from __future__ import annotations

import contextlib
import os
import secrets
from pathlib import Path

from padfix.errors import OutputError


def write_text(file: Path, text: str) -> None:
    """Write ``text`` as UTF-8 in the place of ``file``; what was there stays until all of it is written.

    Raises:
        OSError: The file can't be written.
    """
    target = file.resolve() if file.is_symlink() else file
    if target.exists() and not target.is_file():  # a terminal, a pipe, a device
        target.write_text(text, encoding="utf-8")
        return
    beside = target.parent / f".{target.name[:100]}.padfix-{os.getpid()}-{secrets.token_hex(4)}"
    try:
        with open(beside, "x", encoding="utf-8") as stream:
            stream.write(text)
        os.replace(beside, target)
    except BaseException:
        with contextlib.suppress(OSError):
            beside.unlink()
        raise


def unwritten(file: Path, error: OSError) -> OutputError:
    """Return the error for a report that can't be written."""
    return OutputError(
        f"The report can't be written to {file}: {error.strerror or error}.", "Name a file in a writable folder."
    )
