"""Numbers that lie on steps: what can come there, and rounding that a model does earlier than another."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import ModelProto, numpy_helper

from padfix.files.model import Model
from padfix.proof.constants import Constants
from padfix.proof.executors import OnnxRuntimeExecutor
from padfix.proof.graph_view import onnx_view
from padfix.proof.steps import Steps, steps_of
from padfix.proof.whole import verify
from padfix.results import Verdict

RANDOM = np.random.default_rng(3)
CONSTANTS = {
    "s": np.float32(0.05),
    "s2": np.float32(0.06),
    "z": np.uint8(100),
    "signed": np.array([-28], np.int8),
    "three": np.array([0.1, 0.2, 0.3], np.float32),
    "zeros": np.zeros(3, np.int8),
    "w": RANDOM.standard_normal((3, 3, 3, 3)).astype(np.float32),
    "m": RANDOM.standard_normal((8, 5)).astype(np.float32),
    "bias": RANDOM.standard_normal(5).astype(np.float32),
    "flat": np.array([-1, 8], np.int64),
    "back": np.array([1, 3, -1, 5], np.int64),
}
POOL = "MaxPool <kernel_shape = [2, 2], strides = [2, 2]>"


def network(body: str) -> ModelProto:
    model = onnx.parser.parse_model(
        f'<ir_version: 8, opset_import: ["" : 17]> g (float[1, 3, 8, 8] X) => (float[N, M, K, L] Y) {{ {body} }}'
    )
    used = {name for node in model.graph.node for name in node.input}
    model.graph.initializer.extend(
        numpy_helper.from_array(np.asarray(array), name) for name, array in CONSTANTS.items() if name in used
    )
    return model


def judged(first: str, second: str) -> Verdict:
    reference = OnnxRuntimeExecutor(network(first).SerializeToString(), optimised=False)
    changed = network(second).SerializeToString()
    return verify(reference, [OnnxRuntimeExecutor(changed, optimised=each) for each in (False, True)])


def steps(body: str, name: str) -> Steps | None:
    model = network(body)
    return steps_of(onnx_view(model.graph), Constants(Model(model)), name)


def test_numbers_go_to_the_step_that_is_nearest_and_not_beyond_the_last() -> None:
    known = Steps(np.array([0.5], np.float32), np.array([1], np.uint8), 1)
    given = known.nearest(np.array([0.3, 0.2, -7.0, 1e9, np.nan], np.float32))
    np.testing.assert_array_equal(given, np.array([0.5, 0.0, -0.5, 127.0, 0.0], np.float32))


def test_steps_of_their_own_for_each_channel_lie_along_its_axis() -> None:
    found = steps("q = QuantizeLinear(X, three, zeros) Y = DequantizeLinear(q, three, zeros)", "Y")
    assert found is not None
    assert found.fits(np.zeros((1, 3, 2), np.float32))
    assert not found.fits(np.zeros((1, 4, 2), np.float32))
    given = found.nearest(np.full((1, 3, 1), 0.26, np.float32))
    np.testing.assert_allclose(given.ravel(), [0.3, 0.2, 0.3], rtol=1e-6)


@pytest.mark.parametrize(
    ("behind", "known"),
    [
        (f"Y = {POOL} (d)", True),
        ("t = Transpose <perm = [0, 2, 3, 1]> (d) Y = Identity (t)", True),
        ("Y = AveragePool <kernel_shape = [2, 2]> (d)", False),
        ("Y = Concat <axis = 1> (d, X)", False),
        ("Y = Relu (X)", False),
    ],
)
def test_what_picks_numbers_gives_those_that_it_reads(behind: str, known: bool) -> None:
    found = steps(f"q = QuantizeLinear(X, s, z) d = DequantizeLinear(q, s, z) {behind}", "Y")
    assert (found is not None) == known


def test_where_axes_were_moved_channels_have_no_steps_that_are_known() -> None:
    assert (
        steps("q = QuantizeLinear(X, three, zeros) d = DequantizeLinear(q, three, zeros) Y = Transpose (d)", "Y")
        is None
    )


def rounded(name: str, given: str, scale: str = "s", zero: str = "z") -> str:
    return (
        f"{given}_q = QuantizeLinear ({name}, {scale}, {zero}) {given} = DequantizeLinear ({given}_q, {scale}, {zero})"
    )


ON_STEPS = f"{rounded('X', 'd')} a = MatMul (d, m) b = Add (a, bias) Y = Sigmoid (b)"
ONCE_MORE = """
    r = Reshape (d, flat) {} g = Gemm (e, m, bias) b = Reshape (g, back) Y = Sigmoid (b)
"""


@pytest.mark.parametrize(("scale", "equal"), [("s", True), ("s2", False)])
def test_what_lies_on_steps_is_judged_on_steps(scale: str, equal: bool) -> None:
    """ONNX Runtime's optimiser rounds once more behind a Reshape what was rounded before it."""
    again = ONCE_MORE.format(rounded("r", "e", scale))
    assert judged(ON_STEPS, f"{rounded('X', 'd')} {again}").equivalent == equal


BEHIND = f"c = Conv (X, w) p = {POOL} (c) {rounded('p', 'd')} Y = Conv (d, w)"


@pytest.mark.parametrize(
    ("before", "equal"),
    [
        (f"{rounded('c', 'e')} p = {POOL} (e)", True),
        (f"{rounded('c', 'e', zero='signed')} p = {POOL} (e)", True),
        (f"{rounded('c', 'e', 's2')} p = {POOL} (e)", False),
        (f"{rounded('c', 'e')} p = MaxPool <kernel_shape = [3, 3], strides = [2, 2], pads = [0, 0, 1, 1]> (e)", False),
        (f"{rounded('c', 'e')} p = AveragePool <kernel_shape = [2, 2], strides = [2, 2]> (e)", False),
        (f"r = Relu (c) {rounded('r', 'e')} p = {POOL} (e)", False),
    ],
)
def test_numbers_may_be_rounded_before_some_are_picked_and_again_behind(before: str, equal: bool) -> None:
    assert judged(BEHIND, f"c = Conv (X, w) {before} {rounded('p', 'd')} Y = Conv (d, w)").equivalent == equal
