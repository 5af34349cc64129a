"""A command on a terminal: what it shows there, and how it ends."""

from __future__ import annotations

import os
import pty
import select
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

LONGEST_SILENCE = 60
"""Seconds without a word after which nothing more is waited for."""


def run_on(
    command: Sequence[str], folder: Path, environment: Mapping[str, str], *, ends: tuple[int, int] | None = None
) -> tuple[int, bytes]:
    """Run a command with a terminal as its input and outputs; return its exit code and all that it wrote.

    ``ends`` are the leader and the follower of one that was opened and set up already.
    """
    leader, follower = ends or pty.openpty()
    process = subprocess.Popen(
        command, cwd=folder, env=dict(environment), stdin=follower, stdout=follower, stderr=follower
    )
    os.close(follower)
    shown = b""
    while select.select([leader], [], [], LONGEST_SILENCE)[0]:
        try:
            part = os.read(leader, 4096)
        except OSError:  # Linux says so when the other end is closed
            break
        if not part:
            break
        shown += part
    os.close(leader)
    return process.wait(), shown
