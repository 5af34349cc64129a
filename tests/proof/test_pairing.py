"""Tensors that are one under one name, where an optimiser reads something else of what they are made of."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.proof.test_own_data import judged, network

TABLE = np.arange(16) / 16
WEIGHT = np.eye(8) + 0.5
AT = np.int64(1)
FIRST = np.array([0])

LENGTH = "s = Shape(X) n = Gather(s, at) u = Unsqueeze(n, first) z = Concat<axis = 0>(u, any)"
ROW = "a = Add(X, q) m = Mul(a, a) Y = Reshape(m, z)"
CONSTANTS = {"T": TABLE, "at": AT, "first": FIRST, "any": np.array([-1])}


@pytest.mark.parametrize(
    ("first", "second", "same", "constants"),
    [
        (
            f"{LENGTH} r = Range(zero, n, one) q = Gather(T, r) {ROW}",
            f"{LENGTH} q = Slice(T, first, u) {ROW}",
            7,
            {**CONSTANTS, "zero": np.int64(0), "one": np.int64(1)},
        ),
        (
            "r = Relu(X) m = MatMul(r, W) s = Shape(r) q = Reshape(m, s) e = Exp(q) Y = Neg(e)",
            "r = Relu(X) m = MatMul(r, W) q = Reshape(m, lengths) e = Exp(q) Y = Neg(e)",
            4,
            {"W": WEIGHT, "lengths": np.array([1, 8])},
        ),
    ],
    ids=["the one next to it", "lengths that it knows"],
)
def test_one_name_is_one_tensor_whatever_of_its_own_a_model_reads(
    first: str, second: str, same: int, constants: dict[str, Any]
) -> None:
    verdict = judged(*(network("float[1, 8] X", body, **constants) for body in (first, second)))
    assert verdict.equivalent
    assert verdict.stretches is not None
    assert (verdict.stretches.same, verdict.stretches.judged) == (same, 1)
