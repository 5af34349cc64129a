"""What a Range lists, where a runtime counts otherwise how long that is."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.rules.test_defined_forms import converted

OPEN = "h = Shape (X) n = Gather (h, i) "


@pytest.mark.parametrize(
    ("numbers", "nodes", "expected"),
    [
        ("float a = {0}, float b = {2.5}, float c = {0.5}", "r = Range (a, b, c) ", []),
        ("float a = {5}, float b = {0}, float c = {-1}", "r = Range (a, b, c) ", []),
        ("float a = {0}, float c = {2}", f"{OPEN} b = Cast <to = 1> (n) r = Range (a, b, c) ", ["Range"]),
        (
            "float a = {0}, float c = {0.5}",
            f"{OPEN} b = Cast <to = 1> (n) r = Range (a, b, c) ",
            ["Ceil", "Div", "Mul", "Range", "Sub"],
        ),
        (
            "int64 a = {0}, int64 c = {-2}",
            f"{OPEN} q = Range (n, a, c) r = Cast <to = 1> (q) ",
            ["Neg", "Range", "Sub"],
        ),
    ],
)
def test_it_counts_up_by_whole_numbers(numbers: str, nodes: str, expected: list[str], tmp_path: Path) -> None:
    text = (
        f"(float[N,3] X) => (float[N,3] Y) <int64 i = {{0}}, {numbers}> "
        f"{{ {nodes} s = ReduceSum <keepdims = 0> (r) Y = Add (X, s) }}"
    )
    always = {"Add", "Cast", "Constant", "Gather", "ReduceSum", "Shape"}
    assert sorted(set(converted(text, "tract", tmp_path, 17)) - always) == sorted(expected)
