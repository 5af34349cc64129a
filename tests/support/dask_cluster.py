"""A Dask scheduler and its workers, as processes of their own on this machine."""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

ROOT = Path(__file__).parents[2]


@contextlib.contextmanager
def cluster(
    folder: Path, workers: int = 2, environment: Mapping[str, str] | None = None
) -> Iterator[tuple[str, list[subprocess.Popen[bytes]]]]:
    """Yield the address of a scheduler and the processes of its workers, which have one thread each and no nanny."""
    there = {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "DASK_DISTRIBUTED__WORKER__DAEMON": "True",
        "DASK_DISTRIBUTED__WORKER__PROFILE__ENABLED": "False",  # as the page on fleets starts them
        **(environment or {}),
    }
    log = folder / "scheduler.log"
    processes = []

    def started(*words: str, error: Path) -> subprocess.Popen[bytes]:
        with error.open("wb") as stream:
            command = [sys.executable, "-m", "distributed.cli." + words[0], *words[1:]]
            processes.append(subprocess.Popen(command, stdout=stream, stderr=stream, env=there, cwd=folder))
        return processes[-1]

    try:
        scheduler = started("dask_scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard", error=log)
        address = ""
        while not address:
            found = re.search(r"Scheduler at:\s+tcp://(\S+)", log.read_text())
            address = found[1] if found else ""
            assert scheduler.poll() is None, log.read_text()
            with contextlib.suppress(subprocess.TimeoutExpired):
                scheduler.wait(0.05)
        options = (f"tcp://{address}", "--no-nanny", "--nthreads", "1", "--no-dashboard", "--host", "127.0.0.1")
        yield address, [started("dask_worker", *options, error=folder / f"{number}.log") for number in range(workers)]
    finally:
        for process in reversed(processes):
            process.kill()
            process.wait()
