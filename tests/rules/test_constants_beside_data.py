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


@pytest.mark.parametrize(
    ("nodes", "expected"),
    [
        ("c = ConstantOfShape <value: tensor = float[1] {2}> (empty) Y = Add (X, c)", ["Add"]),
        ("l = Shape (X) n = Gather (l, first) f = Cast <to = 1> (n) Y = Div (X, f)", ["Reciprocal", "Mul"]),
        (
            "l = Shape (X) n = Gather (l, first) f = Cast <to = 1> (n) r = Sqrt (f) Y = Div (X, r)",
            ["Reciprocal", "Mul"],
        ),
        ("l = Shape (X) n = Gather (l, first) f = Cast <to = 1> (n) Y = Mul (X, f)", ["Mul"]),
        ("p = GlobalAveragePool (V) s = Flatten (p) Y = Sub (one, s)", ["Sub", "Neg"]),
    ],
)
def test_lengths_and_numbers_are_written_as_they_are_read(nodes: str, expected: list[str], tmp_path: Path) -> None:
    data = "float[2,3,4,4] V" if "(V)" in nodes else "float[N,3] X"
    text = (
        f"""({data}) => (float Y) <int64[0] empty = {{}}, int64 first = {{0}}, float[1,1] one = {{1}}> {{ {nodes} }}"""
    )
    written = operators_written(text, "mnn", tmp_path, 17, -3.0)
    assert written[-len(expected) :] == expected
    assert "ConstantOfShape" not in written
