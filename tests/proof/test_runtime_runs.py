"""How far what a runtime gives may be off, by what gives it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest
from onnx import parser

from padfix.proof.probes import Probe
from padfix.proof.runtime_runs import NODE, judged

MODEL = '<ir_version: 8, opset_import: ["" : 17]> g (float[2] X) => (float[2] Y) { Y = Identity (X) }'


class Closed:
    """A runtime that lets a little through a gate that is closed."""

    label = "closed 1.0"
    rounding = 1.0

    def __init__(self) -> None:
        self.ended = 0

    def close(self) -> None:
        self.ended += 1

    def run(self, model: bytes, feeds: Mapping[str, Any], shapes: Sequence[tuple[int, ...]]) -> list[np.ndarray]:
        return [np.full(2, 2e-6, np.float32)]


@pytest.mark.parametrize(("op_type", "agrees"), [("GRU", True), ("LSTM", True), ("Relu", False), ("Sigmoid", False)])
def test_what_gates_let_through_is_judged_as_numbers_up_to_1(op_type: str, agrees: bool) -> None:
    zeros = np.zeros(2, np.float32)
    probe = Probe("ramp", {"X": zeros})
    runtime = Closed()
    (found,) = judged(runtime, parser.parse_model(MODEL), probe, {"Y": zeros}, [("node", op_type)], NODE)
    assert found.agrees is agrees
    assert runtime.ended == (not agrees), "what writes beyond its memory would spoil what runs next"
