"""The work sent to a real Dask scheduler and two workers, as separate processes on the loopback."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import onnx
import pytest

import padfix
from padfix.errors import PadfixError
from padfix.process.executors import executor
from tests.support.bucket import s3_bucket
from tests.support.dask_cluster import cluster
from tests.support.store_server import serving

pytest.importorskip("distributed")
pytestmark = pytest.mark.long

ROOT = Path(__file__).parents[2]
FIXTURES = ROOT / "fixtures" / "onnx"


def work(item: str) -> tuple[str, int]:
    """Do what the item says, which may end the worker."""
    word, _, rest = item.partition(" ")
    if word == "sleep":
        time.sleep(float(rest))
    if word == "kill" and not Path(rest).exists():
        Path(rest).touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return item, os.getpid()


Cluster = tuple[str, list[subprocess.Popen[bytes]]]


@pytest.fixture(scope="module")
def bucket() -> Iterator[Any]:
    with s3_bucket() as found:
        yield found


@pytest.fixture(scope="module")
def started(bucket: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Yield a cluster of three, two of which are killed by tests; its workers know of the bucket."""
    with cluster(tmp_path_factory.mktemp("cluster"), 3) as found:
        yield found


@pytest.fixture
def address(started: Cluster) -> str:
    return started[0]


def test_no_outcome_is_lost_or_doubled_when_a_worker_is_killed(address: str, tmp_path: Path) -> None:
    items = [f"kill {tmp_path / 'killed'}" if number == 30 else f"sleep 0.0{number % 3}" for number in range(90)]
    found = list(executor(1, address).outcomes(work, items))
    assert all(isinstance(outcome, tuple) for outcome in found), found
    assert [outcome[0] for outcome in found if isinstance(outcome, tuple)] == items
    assert (tmp_path / "killed").exists()


def test_models_are_checked_as_on_this_machine(address: str, tmp_path: Path) -> None:
    for number in range(6):
        for name in ("same_cnn", "explicit_cnn"):
            shutil.copy(FIXTURES / f"{name}.onnx", tmp_path / f"{name}_{number}.onnx")
    (tmp_path / "broken.onnx").write_bytes(b"\x08\x07\x3a\xff")

    with serving() as server:
        server.files = {"same.onnx": FIXTURES / "same_cnn.onnx"}
        _compare(tmp_path, address, server.url("parts", "same.onnx"))


def _compare(tmp_path: Path, address: str, url: str) -> None:
    def check(*options: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "padfix", "check", ".", url, "--format", "json", "--no-cache", *options]
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        return subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path, env=environment)

    here, there = check(), check("--scheduler", address)
    assert (there.returncode, there.stdout) == (here.returncode, here.stdout) and here.returncode == 2
    assert there.stderr == here.stderr
    assert len(json.loads(here.stdout)["sources"]) == 13
    refused = check("--scheduler", address, "--memory", "2")
    assert (refused.returncode, "limits of their own" in refused.stderr) == (2, True)


def test_models_of_a_bucket_while_a_worker_is_killed_and_the_run_is_cut_off(
    bucket: Any, started: Cluster, tmp_path: Path
) -> None:
    number, lines = 40, tmp_path / "lines.jsonl"
    address, workers = started
    command = [
        sys.executable,
        "-m",
        "padfix",
        "check",
        "s3://zoo/models",
        "-q",
        "--scheduler",
        address,
        "--resume",
        str(lines),
    ]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    model = onnx.load(FIXTURES / "same_cnn.onnx")
    for each in range(number):
        model.graph.name = f"number {each}"
        bucket.pipe(f"zoo/models/{each}.onnx", model.SerializeToString())
    first = subprocess.Popen(command, stderr=subprocess.DEVNULL, env=environment)
    _wait_for(lines, 2)
    first.send_signal(signal.SIGINT)
    assert first.wait(60) == 130
    before = lines.read_bytes().count(b"\n")
    assert 2 <= before < number

    second = subprocess.Popen(command, env=environment)
    _wait_for(lines, before + 3)
    next(worker for worker in workers if worker.poll() is None).kill()
    assert second.wait(120) == 1
    told = [json.loads(line) for line in lines.read_text().splitlines()]
    assert sorted(each["source"] for each in told) == sorted(f"s3://zoo/models/{each}.onnx" for each in range(number))
    expected = padfix.check(FIXTURES / "same_cnn.onnx").to_dict()["findings"]
    assert all(each["findings"] == expected for each in told)


def _wait_for(file: Path, number: int) -> None:
    """Wait until a file has so many lines."""
    over = time.monotonic() + 60
    while not file.exists() or file.read_bytes().count(b"\n") < number:
        assert time.monotonic() < over
        time.sleep(0.01)


def test_a_scheduler_that_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("padfix.process.dask_cluster.PATIENCE", 0.5)
    with pytest.raises(PadfixError, match=r"The scheduler at 127\.0\.0\.1:9 can't be reached"):
        next(executor(1, "127.0.0.1:9").outcomes(work, ["a"]))


def test_without_the_package_the_command_that_installs_it_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(PadfixError, match=r'pip install "padfix\[dask\]"'):
        next(executor(1, "127.0.0.1:9").outcomes(work, ["a"]))


@pytest.mark.parametrize(
    ("content", "has"),
    [("__version__ = '0.0.1'", "padfix 0.0.1"), pytest.param("raise ImportError", "no padfix", marks=pytest.mark.slow)],
)
def test_a_worker_with_another_padfix_is_named(content: str, has: str, tmp_path: Path) -> None:
    (tmp_path / "padfix").mkdir()
    (tmp_path / "padfix" / "__init__.py").write_text(content)
    with (
        cluster(tmp_path, 1, {"PYTHONPATH": str(tmp_path)}) as (found, _),
        pytest.raises(PadfixError, match=f"has {has}, and this is padfix"),
    ):
        next(executor(1, found).outcomes(work, ["a"]))
