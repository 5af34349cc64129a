"""The spread of the original under last-bit changes, and what it lets pass."""

from __future__ import annotations

import numpy as np
import onnx.parser
import pytest

from padfix.proof.executors import OnnxRuntimeExecutor
from padfix.proof.rounding import spread
from padfix.proof.spec_executor import SpecExecutor
from padfix.proof.whole import verify


def model(body: str) -> bytes:
    text = f'<ir_version: 8, opset_import: ["" : 13]> g (float[1,1,8,8] X) => (float[1,1,8,8] Y) {{ {body} }}'
    return bytes(onnx.parser.parse_model(text).SerializeToString())


# The last bit of the input turns the sine by a visible angle.
CHAOTIC = """
    scale = Constant<value = float {1000.0}>()
    angle = Mul(X, scale)
    Y = Sin(angle)
"""
# The same product in two steps, each with a rounding of its own.
CHAOTIC_TOO = """
    scale = Constant<value = float {31.622776}>()
    part = Mul(X, scale)
    angle = Mul(part, scale)
    Y = Sin(angle)
"""
CALM = "Y = MaxPool<kernel_shape = [3, 3], pads = [1, 1, 1, 1]>(X)"
SHIFTED = "Y = MaxPool<kernel_shape = [3, 3], pads = [0, 0, 2, 2]>(X)"


def test_a_calm_model_has_a_spread_of_its_last_bits() -> None:
    executor = SpecExecutor(model(CALM))
    arrays = {"X": np.random.default_rng(0).normal(size=(1, 1, 8, 8)).astype(np.float32)}
    (found,) = spread(executor.run, arrays, executor.run(arrays)).values()
    assert 0 < found.max() < 1e-6


def test_a_chaotic_model_has_a_large_one() -> None:
    executor = SpecExecutor(model(CHAOTIC))
    arrays = {"X": np.random.default_rng(0).normal(size=(1, 1, 8, 8)).astype(np.float32)}
    (found,) = spread(executor.run, arrays, executor.run(arrays)).values()
    assert found.max() > 1e-5


def test_whole_numbers_are_not_moved() -> None:
    text = '<ir_version: 8, opset_import: ["" : 13]> g (int32[4] X) => (float[4] Y) { Y = Cast<to = 1>(X) }'
    executor = SpecExecutor(onnx.parser.parse_model(text).SerializeToString())
    arrays = {"X": np.arange(4, dtype=np.int32)}
    assert spread(executor.run, arrays, executor.run(arrays)) == {}


@pytest.mark.parametrize("optimised", [False, True])
def test_a_shifted_window_is_not_excused(optimised: bool) -> None:
    candidate = OnnxRuntimeExecutor(model(SHIFTED), optimised=optimised)
    assert not verify(SpecExecutor(model(CALM)), [candidate]).equivalent


def test_a_users_tolerance_is_the_last_word() -> None:
    pair = SpecExecutor(model(CHAOTIC)), [SpecExecutor(model(CHAOTIC_TOO))]
    assert verify(*pair).equivalent
    assert not verify(*pair, rtol=1e-6).equivalent
