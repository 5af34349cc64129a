"""What differences look like, in words."""

from __future__ import annotations

import numpy as np
import pytest

from padfix.diagnose.causes import border_split, likely_cause

RANDOM = np.random.default_rng(0)
IMAGE = RANDOM.standard_normal((1, 8, 12, 12)).astype(np.float32)


def changed(change) -> np.ndarray:
    copy = IMAGE.copy()
    change(copy)
    return copy


def only_bottom(array: np.ndarray) -> None:
    array[:, :, -1] = 0


def ring(array: np.ndarray) -> None:
    inner = array[:, :, 1:-1, 1:-1].copy()
    array += 1
    array[:, :, 1:-1, 1:-1] = inner


def channel(array: np.ndarray) -> None:
    array[:, 3] *= -1


def infinity(array: np.ndarray) -> None:
    array[0, 0, 0, 0] = -np.inf


CASES = {
    "a shift of one row toward the end": np.concatenate([IMAGE[:, :, :1], IMAGE[:, :, :-1]], 2),
    "a shift of one column toward the begin": np.concatenate([IMAGE[..., 1:], IMAGE[..., :1]], 3),
    "a shift of two columns toward the begin": np.concatenate([IMAGE[..., 2:], IMAGE[..., :2]], 3),
    "the sign is the other one": -IMAGE,
    "everything is 0.5 times as large": IMAGE * 0.5,
    "everything is moved by 0.25": IMAGE + np.float32(0.25),
    "axes 2 and 3 are swapped": IMAGE.swapaxes(2, 3),
    "axis 3 is reversed": IMAGE[..., ::-1],
    "all zeros": IMAGE * 0,
    "only the last rows differ": changed(only_bottom),
    "only the border differs (1 deep)": changed(ring),
    "only channel 3 of 8 differs: the sign is the other one": changed(channel),
    "infinities or not-a-number": changed(infinity),
    "1 row missing at the begin, the rest agrees": IMAGE[:, :, 1:],
    "2 columns too many at the end, the rest agrees": np.concatenate([IMAGE, IMAGE[..., :2]], 3),
    "a transposition or another layout": IMAGE.transpose(0, 2, 3, 1),
    "another number of axes": IMAGE[0],
    "": RANDOM.standard_normal(IMAGE.shape).astype(np.float32),
}


@pytest.mark.parametrize("words", CASES)
def test_what_a_difference_looks_like(words: str) -> None:
    found = likely_cause(IMAGE, np.ascontiguousarray(CASES[words]), 1e-4)
    assert words in found
    assert bool(words) == bool(found)


def test_rounding_does_not_hide_a_shift() -> None:
    moved = np.concatenate([IMAGE[:, :, :1], IMAGE[:, :, :-1]], 2)
    assert "a shift of one row" in likely_cause(IMAGE, moved + np.float32(1e-6), 1e-4)


def test_border_and_interior_are_counted_apart() -> None:
    outside = np.zeros((1, 1, 4, 5), bool)
    outside[0, 0, 0] = True
    outside[0, 0, 1, 1] = True
    assert border_split(outside) == ((5, 14), (1, 6))
    assert border_split(outside[0, 0]) is None
