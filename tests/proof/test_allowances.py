"""What is allowed beyond rounding: the original leaves it open, and nothing else is let through."""

from __future__ import annotations

from pathlib import Path
from unittest.mock import MagicMock

import numpy as np
import onnx
import onnx.parser
import pytest
from onnx import ModelProto, TensorProto, helper, numpy_helper

import padfix
from padfix.proof.allowances import angles, positions
from padfix.proof.case import Case
from padfix.proof.graph_view import NodeView
from padfix.proof.sides import Side

SCALE, W_SCALE = 0.1, 0.1
"""A sum is rounded at a tenth of itself, so that every fifth one lies on a tie, give or take a last bit."""


def quantized(*, whole: bool, bias: int = 3, w_scale: float = W_SCALE, largest: int = 1) -> ModelProto:
    """Return a convolution of 8-bit numbers between floats, as one operator or as a float one between roundings.

    What it reads and what it gives have one scale, which is one tensor.
    """
    random = np.random.default_rng(5)
    constants = {
        "scale": np.float32(SCALE),
        "ws": np.float32(w_scale),
        "bs": np.float32(SCALE * w_scale),
        "zero": np.uint8(0),
        "w zero": np.int8(0),
        "b zero": np.int32(0),
        "W": random.integers(-largest, largest + 1, (4, 2, 3, 3)).astype(np.int8),
        "B": np.full(4, bias, np.int32),
    }
    first = [helper.make_node("QuantizeLinear", ["X", "scale", "zero"], ["q"])]
    if whole:
        inputs = ["q", "scale", "zero", "W", "ws", "w zero", "scale", "zero", "B"]
        middle = [helper.make_node("QLinearConv", inputs, ["y"])]
    else:
        middle = [
            helper.make_node("DequantizeLinear", ["q", "scale", "zero"], ["x"]),
            helper.make_node("DequantizeLinear", ["W", "ws", "w zero"], ["w"]),
            helper.make_node("DequantizeLinear", ["B", "bs", "b zero"], ["b"]),
            helper.make_node("Conv", ["x", "w", "b"], ["c"]),
            helper.make_node("QuantizeLinear", ["c", "scale", "zero"], ["y"]),
        ]
    last = [helper.make_node("DequantizeLinear", ["y", "scale", "zero"], ["Y"])]
    graph = helper.make_graph(
        [*first, *middle, *last],
        "g",
        [helper.make_tensor_value_info("X", TensorProto.FLOAT, (1, 2, 16, 16))],
        [helper.make_tensor_value_info("Y", TensorProto.FLOAT, (1, 4, 14, 14))],
        [numpy_helper.from_array(np.asarray(value), name) for name, value in constants.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)


def verdict(folder: Path, first: ModelProto, second: ModelProto) -> padfix.Verdict:
    onnx.save(first, folder / "first.onnx")
    onnx.save(second, folder / "second.onnx")
    return padfix.verify(folder / "first.onnx", folder / "second.onnx")


@pytest.mark.parametrize("whole", [True, False])
def test_a_tie_is_found_where_one_scale_is_read_and_rounded_to(whole: bool, tmp_path: Path) -> None:
    found = verdict(tmp_path, quantized(whole=whole), quantized(whole=not whole))
    assert any(output.max_abs_diff for run in found.runs for output in run.outputs)
    assert found.equivalent, found.why_not


@pytest.mark.parametrize("whole", [True, False])
def test_one_step_off_a_tie_is_a_difference(whole: bool, tmp_path: Path) -> None:
    """A bias of one more moves every tenth sum to the next step, and those are not the ones on a tie."""
    assert not verdict(tmp_path, quantized(whole=whole), quantized(whole=not whole, bias=4)).equivalent
    assert not verdict(tmp_path, quantized(whole=whole), quantized(whole=not whole, w_scale=W_SCALE * 1.01)).equivalent


def test_another_byte_is_no_tie(tmp_path: Path) -> None:
    """A bias of one more moves only what lies near a tie, one step."""
    scaled = {"whole": True, "w_scale": 0.00128, "largest": 100}
    found = verdict(tmp_path, quantized(**scaled), quantized(**scaled, bias=4))
    assert not found.equivalent
    assert found.runs[0].outputs[0].max_abs_diff < 1.01 * SCALE


def centred(node: str, factor: float = 1 / 24) -> ModelProto:
    """Return the mean of what is centred already, by one operator or as a product: nothing but rounding is left."""
    text = f"""<ir_version: 8, opset_import: ["" : 17]> g (float[2,24] X) => (float[2,24] Y, float[2,1] M)
        <float[24,1] ones = {{{", ".join([str(factor)] * 24)}}}>
        {{ m = ReduceMean <axes = [1]> (X) c = Sub (X, m) s = Softsign (c) d = ReduceMean <axes = [1]> (s)
           e = Sub (s, d) {node} n = Mul (M, M) Y = Add (e, n) }}"""
    return onnx.parser.parse_model(text)


def test_a_sum_is_as_far_off_as_its_terms_are_rounded(tmp_path: Path) -> None:
    first, second = centred("M = ReduceMean <axes = [1]> (e)"), centred("M = MatMul (e, ones)")
    found = verdict(tmp_path, first, second)
    assert any(output.max_abs_diff for run in found.runs for output in run.outputs)
    assert found.equivalent, found.why_not


@pytest.mark.parametrize("factor", [1.001 / 24, 1 / 23])
def test_another_factor_of_a_sum_that_cancels_is_found_on_wide_data(factor: float, tmp_path: Path) -> None:
    found = verdict(tmp_path, centred("M = ReduceMean <axes = [1]> (e)"), centred("M = MatMul (e, ones)", factor))
    assert not found.equivalent


def test_sizes_that_a_resampling_is_fed_are_no_images() -> None:
    image = np.linspace(0, 1, 48, dtype=np.float32).reshape(1, 4, 4, 3)
    expected = np.ones((1, 4, 4, 3), np.float32)
    case = Case(
        reference=MagicMock(Side),
        feeds={"x": image},
        inner={"length": np.int32(4), "ratio": np.float32(0.5), "lengths": np.array([4, 4], np.int32)},
        name="y",
        nodes=(MagicMock(NodeView, op_type="ResizeArea"),),
        expected=expected,
        found=expected + np.float32(2.0**-23),
        magnitude=1.0,
        types=(np.dtype(np.float32),),
    )
    allowed = positions(case)
    assert allowed is not None
    assert 0 < allowed < 1e-4


@pytest.mark.parametrize(("length", "share", "is_allowed"), [(400, 2e-4, True), (400, 1e-3, False), (512, 2e-5, False)])
def test_a_transform_is_as_far_off_as_its_angles(length: int, share: float, is_allowed: bool) -> None:
    expected = np.ones((1, 3, length // 2 + 1, 2), np.float32)
    case = Case(
        reference=MagicMock(Side),
        feeds={"x": np.ones((1, 2 * length), np.float32)},
        inner={},
        name="y",
        nodes=(MagicMock(NodeView, op_type="STFT", proto=onnx.helper.make_node("STFT", ["x", "s"], ["y"])),),
        expected=expected,
        found=expected + np.float32(share),
        magnitude=1.0,
        types=(np.dtype(np.float32),),
    )
    assert (angles(case) is not None) == is_allowed


def long_mean(steps: str) -> ModelProto:
    """Return a model of a mean of 262,144 numbers, in the given steps, of which a plain loop is off by up to 2e-3."""
    model = onnx.parser.parse_model(f"""
        <ir_version: 8, opset_import: ["" : 18]>
        g (float[1,64,64,2,64] x) => (float[1,1,1,2,1] y) {{
          all = Constant<value_ints=[1,2,4]>()
          others = Constant<value_ints=[2,4]>()
          first = Constant<value_ints=[1]>()
          factor = Constant<value_floats=[1.0001]>()
          s = Sigmoid(x)
          {steps}
        }}""")
    assert isinstance(model, ModelProto)
    return model


LOOP = long_mean("y = ReduceMean<keepdims=1>(s, all)")
TWO_STEPS = "r = ReduceMean<keepdims=1>(s, others) "


def test_a_long_sum_may_be_nearer_to_the_exact_one_than_the_original_s(tmp_path: Path) -> None:
    found = verdict(tmp_path, LOOP, long_mean(TWO_STEPS + "y = ReduceMean<keepdims=1>(r, first)"))
    assert found.equivalent
    assert any("long sum" in note for note in found.notes)


@pytest.mark.parametrize(
    "last", ["m = ReduceMean<keepdims=1>(r, first) y = Mul(m, factor)", "y = ReduceMax<keepdims=1>(r, first)"]
)
def test_a_long_sum_that_is_another_is_none(last: str, tmp_path: Path) -> None:
    assert not verdict(tmp_path, LOOP, long_mean(TWO_STEPS + last)).equivalent


def test_a_long_sum_may_not_be_further_from_the_exact_one(tmp_path: Path) -> None:
    assert not verdict(tmp_path, long_mean(TWO_STEPS + "y = ReduceMean<keepdims=1>(r, first)"), LOOP).equivalent
