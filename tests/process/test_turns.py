"""How many items travel to a process at once."""

from __future__ import annotations

import pytest

from padfix.process.turns import Pace, turn


@pytest.mark.parametrize(
    ("seconds", "done", "size"),
    [(0.001, 1, 60), (0.05, 50, 60), (0.2, 12, 3), (30.0, 1, 1), (0.0, 1, 1000), (0.1, 100, 60)],
)
def test_the_next_batch_fits_in_a_turn_by_what_the_last_one_took(seconds: float, done: int, size: int) -> None:
    pace = Pace(seconds=0.1, most=1000)
    assert pace.size == 1
    pace.note(seconds, done)
    assert pace.size == size


def test_a_turn_ends_behind_the_item_that_fills_it() -> None:
    assert turn(lambda item: item * 2, [1, 2, 3], seconds=60.0) == [2, 4, 6]
    assert turn(lambda item: item * 2, [1, 2, 3], seconds=0.0) == [2]
