"""Many items worked on by warm processes: order, bounds, and what becomes of items that end their process."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from padfix.errors import PadfixError, scratch_mark
from padfix.process import memory, watch, workers
from padfix.process.executors import executor

OPEN: list[Any] = []


def work(item: str) -> tuple[str, int]:
    """Do what the item says, which may end the process."""
    watch.tell(f"padfix (working on {item})")
    word, _, rest = item.partition(" ")
    if word == "sleep":
        time.sleep(float(rest))
    if word == "hold":
        Path(rest).touch()
        time.sleep(60)
    if word == "crash":
        folder = Path(rest, f".{scratch_mark()}0")
        OPEN.append(watch.scratch(folder))
        OPEN[-1].__enter__()
        folder.mkdir()
        os.kill(os.getpid(), signal.SIGSEGV)
    if word == "leave":
        os._exit(3)
    if word == "once" and not Path(rest).exists():
        Path(rest).touch()
        os.kill(os.getpid(), signal.SIGKILL)
    if word == "burn":
        watch.restrict([], seconds=0.2)
        while True:
            pass
    if word == "raise":
        raise KeyError(rest)
    return item, os.getpid()


@pytest.mark.parametrize("fresh", [False, True])
def test_outcomes_keep_the_order_of_the_items_and_processes_stay(fresh: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "_may_fork", lambda: not fresh)
    items = ["sleep 0.3", *map(str, range(40))]
    found = list(executor(2).outcomes(work, items))
    assert all(isinstance(outcome, tuple) for outcome in found), found
    assert [item for item, _ in found] == items
    assert len({process for _, process in found}) <= 2
    assert os.getpid() not in {process for _, process in found}


@pytest.mark.parametrize("fresh", [False, True])
def test_an_item_that_ends_its_process_costs_no_other(
    fresh: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workers, "_may_fork", lambda: not fresh)
    items = ["a", f"crash {tmp_path}", "b", "leave", f"once {tmp_path / 'killed'}", "raise x", "c"]
    found = list(executor(2).outcomes(work, items))
    kept = [outcome[0] if isinstance(outcome, tuple) else None for outcome in found]
    assert kept == ["a", None, "b", None, items[4], None, "c"], found
    said = [str(outcome) for outcome in found if isinstance(outcome, PadfixError)]
    assert said[0].startswith(f"padfix (working on crash {tmp_path}) crashed: a segmentation fault.")
    assert "a library ended the process, exit code 3" in said[1]
    assert said[2] == "internal error: 'x'"
    assert [path.name for path in tmp_path.iterdir()] == ["killed"], "what a crash leaves is removed"


def test_of_a_batch_that_ends_its_process_each_item_is_tried_alone(tmp_path: Path) -> None:
    items = [*map(str, range(40)), f"crash {tmp_path}", "burn", *map(str, range(40, 80))]
    found = list(executor(2).outcomes(work, items))
    ended = [item for item, outcome in zip(items, found, strict=True) if isinstance(outcome, PadfixError)]
    assert ended == items[40:42]
    assert [outcome[0] for outcome in found if isinstance(outcome, tuple)] == [*items[:40], *items[42:]]


def test_what_a_turn_leaves_of_a_batch_goes_to_whoever_is_free() -> None:
    items = [*map(str, range(60)), *["sleep 0.3"] * 6]
    found = [outcome for outcome in executor(2).outcomes(work, items) if isinstance(outcome, tuple)]
    assert [item for item, _ in found] == items
    assert len({process for item, process in found if item.startswith("sleep")}) == 2


def test_no_more_items_are_taken_than_there_is_room_for() -> None:
    taken = []

    def items() -> Iterator[str]:
        for number in range(200):
            taken.append(number)
            yield str(number)

    for number, _ in enumerate(executor(2).outcomes(work, items())):
        assert len(taken) <= number + 2 * workers.AHEAD + 1
    assert len(taken) == 200
    assert list(executor(2).outcomes(work, [])) == []


def test_work_that_goes_on_for_ever_is_ended_by_its_limit() -> None:
    burnt, fine = executor(1).outcomes(work, ["burn", "fine"])
    assert isinstance(burnt, PadfixError)
    assert burnt.message == "padfix (working on burn) took longer than 0 s, and was stopped."
    assert isinstance(fine, tuple)


def test_work_that_takes_the_last_memory_is_ended_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    held = tmp_path / "held"

    def available() -> memory.Memory:
        is_short = held.exists()
        held.unlink(missing_ok=True)
        return memory.Memory(1000.0, 0.001 if is_short else 900.0)

    monkeypatch.setattr(memory, "available", available)
    slow, fine = executor(1).outcomes(work, [f"hold {held}", "fine"])
    assert isinstance(slow, PadfixError)
    assert "was stopped: it uses" in slow.message
    assert isinstance(fine, tuple)


def test_a_process_that_has_grown_is_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "LARGEST", 0.1)
    monkeypatch.setattr(workers, "_LONG", 0.1)
    found = [outcome for outcome in executor(1).outcomes(work, ["sleep 0.2", "a"]) if isinstance(outcome, tuple)]
    assert [item for item, _ in found] == ["sleep 0.2", "a"]
    assert found[0][1] != found[1][1]


def test_processes_end_with_whoever_wants_no_more() -> None:
    outcomes = executor(2).outcomes(work, ["a", "sleep 60", "sleep 60"])
    first = next(outcomes)
    assert isinstance(first, tuple)
    outcomes.close()  # type: ignore[attr-defined]
    with pytest.raises(ProcessLookupError):
        os.kill(first[1], 0)
