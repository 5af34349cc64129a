"""Constants that MNN reads in another order, or behind their end, beside what a convolution gives."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.outcomes import operators_written

WEIGHTS = "float[4,2,1,1] w = {1, -2, 3, 0.5, 2, 1, -1, 2}"
CONSTANTS = f"<{WEIGHTS}, float[3] k = {{0, 1, -2}}, float[4,1,1] c = {{0, 1, -2, 3}}, float[1,1,1,1,1] n = {{0.5}}>"


@pytest.mark.parametrize(
    ("nodes", "expected"),
    [
        ("Y = Greater (k, d)", ["Conv", "Neg", "Greater"]),
        ("Y = LessOrEqual (c, d)", ["Conv", "Neg", "LessOrEqual"]),
        ("f = Floor (d) Y = GreaterOrEqual (c, f)", ["Conv", "Floor", "Neg", "GreaterOrEqual"]),
        ("Y = Greater (d, k)", ["Conv", "Greater"]),
        ("Y = Add (d, n)", ["Conv", "Add", "Unsqueeze"]),
        ("Y = Min (n, d)", ["Conv", "Min", "Unsqueeze"]),
        ("Y = Sub (k, d)", ["Conv", "Sub"]),
    ],
)
def test_constants_are_written_as_they_are_read(nodes: str, expected: list[str], tmp_path: Path) -> None:
    kind = "float" if {"Add", "Min", "Sub"} & set(expected) else "bool"
    text = f"(float[2,2,3,3] X) => ({kind} Y) {CONSTANTS} {{ d = Conv <kernel_shape = [1, 1]> (X, w) {nodes} }}"
    assert operators_written(text, "mnn", tmp_path, 17, -3.0) == expected
