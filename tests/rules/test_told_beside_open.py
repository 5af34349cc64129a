"""Lengths that are told on one side and open on the other, which OpenCV 4.14 takes for 0 as it reads a model."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from padfix.errors import RefusedError
from tests.support.proven import operators_for

PRODUCT = "(float[%s] X, float[%s] Z) => (float Y) { Y = MatMul (X, Z) }"
PUT = "(float[%s] X, int64[%s,1] I, float[%s] U) => (float Y) { Y = ScatterND (X, I, U) }"


@pytest.mark.parametrize(
    ("graph", "is_right"),
    [
        (PRODUCT % ("3,m,5", "n,5,2"), False),
        (PRODUCT % ("2,k", "5,3"), False),
        (PRODUCT % ("3,4,5", "n,5,2"), True),
        (PRODUCT % ("n,m,5", "5,2"), True),
        (PRODUCT % ("n,m,k", "n,k,2"), True),
        (PUT % ("4,c", "2", "2,5"), False),
        (PUT % ("n,5", "k", "k,5"), True),
    ],
)
def test_told_and_open_lengths_do_not_meet(graph: str, is_right: bool, tmp_path: Path) -> None:
    if is_right:
        (only,) = operators_for(graph, "opencv@4.14.0", tmp_path, 11, 8)
        assert only in ("MatMul", "ScatterND")
        return
    with pytest.raises(RefusedError, match=r"MatMul|ScatterND"):
        operators_for(graph, "opencv@4.14.0", tmp_path, 11, 8)


@pytest.mark.parametrize(("lengths", "axis"), [("n,3,4", 0), ("2,3,n", 3), ("n", 1), ("2,n", -2)])
def test_one_row_or_one_column_of_an_open_length_is_a_reshape(lengths: str, axis: int, tmp_path: Path) -> None:
    graph = "(float[%s] X) => (float Y) { Y = Flatten <axis = %d> (X) }"
    assert operators_for(graph % (lengths, axis), "opencv@4.14.0", tmp_path, 13, 8) == Counter(Reshape=1)
    told = lengths.replace("n", "2")
    assert operators_for(graph % (told, axis), "opencv@4.14.0", tmp_path, 13, 8) == Counter(Flatten=1)
