"""Axes added to images for ncnn, which makes volumes only where a layer tells which of their axes is the batch."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.rules.test_defined_forms import converted


@pytest.mark.parametrize("axis", [1, 2, 3, 4])
@pytest.mark.parametrize("shape", ["1,2,3,4", "N,2,3,4", "N,2,3,W"])
def test_a_pool_behind_it_tells_the_batch(shape: str, axis: int, tmp_path: Path) -> None:
    text = f"(float[{shape}] X) => (float Y) <int64[1] a = {{{axis}}}> {{ V = Unsqueeze (X, a) Y = Neg (V) }}"
    assert converted(text, "ncnn", tmp_path, 17) == ["MaxPool", "Neg", "Unsqueeze"]


def test_rows_are_repeated(tmp_path: Path) -> None:
    text = """(float[N,2,3,4] X) => (float[N,6,3,4] Y)
    <int64[1] a = {2}, int64[5] by = {1, 1, 3, 1, 1}, int64[4] lengths = {0, 6, 3, 4}>
    { V = Unsqueeze (X, a) W = Tile (V, by) Y = Reshape (W, lengths) }"""
    assert converted(text, "ncnn", tmp_path, 17) == ["Concat", "MaxPool", "Reshape", "Unsqueeze"]
