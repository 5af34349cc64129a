"""What ncnn gives no network of: branches that read constants from outside, and volumes by weights that are fed."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from padfix.errors import RefusedError
from tests.support.proven import operators_for

BRANCHES = """(float[1,3,4,4] X) => (float[1,3,4,4] Y) <bool c = {%d}, float[1] w = {2}> {
  v = Constant <value = float[1] {2}> ()
  q = Exp (X)
  t = If (c) <then_branch = a () => (float[1,3,4,4] A) { %s },
              else_branch = b () => (float[1,3,4,4] B) { B = Relu (q) }>
  Y = Neg (t)
}"""
EXTREME = "(float[2,3] X) => (float[2,3] Y) { r = Exp (X) Y = %s (r) }"
FED = """(float[1,2,%s] X, float[2,2,%s] w) => (float[a,b,%s] Y) { Y = Conv <kernel_shape = [%s]> (X, w) }"""


@pytest.mark.parametrize(
    ("taken", "branch", "written"),
    [
        (1, "A = Mul (q, w)", {"Exp": 1, "Mul": 1, "Neg": 1}),
        (0, "A = Mul (q, w)", {"Exp": 1, "Relu": 1, "Neg": 1}),
        (1, "A = Mul (q, v)", {"Exp": 1, "Mul": 1, "Neg": 1}),
        (1, "A = Sigmoid (q)", {"Exp": 1, "If": 1, "Neg": 1}),
    ],
)
def test_the_branch_that_reads_constants_from_outside_is_put_in_its_place(
    taken: int, branch: str, written: dict[str, int], tmp_path: Path
) -> None:
    found = operators_for(BRANCHES % (taken, branch), "ncnn", tmp_path, 17, 8)
    assert found - Counter(Constant=found["Constant"]) == Counter(written)


def test_volumes_by_fed_weights_are_declined(tmp_path: Path) -> None:
    plane = operators_for(FED % ("4,4", "3,3", "c,d", "3, 3"), "ncnn", tmp_path, 17, 8)
    assert plane == Counter(Conv=1)
    with pytest.raises(RefusedError):
        operators_for(FED % ("4,4,4", "3,3,3", "c,d,e", "3, 3, 3"), "ncnn", tmp_path, 17, 8)


@pytest.mark.parametrize("op_type", ["Max", "Min"])
def test_the_extreme_of_one_input_is_that_input(op_type: str, tmp_path: Path) -> None:
    assert operators_for(EXTREME % op_type, "ncnn", tmp_path, 17, 8) == Counter(Exp=1, Identity=1)
