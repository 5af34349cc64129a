"""PF106 on ONNX Runtime's own operators: pads beside the operator, channels last included, against brute force."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, TensorProto

from padfix.files.model import Model
from padfix.proof.spec_executor import SpecExecutor
from padfix.rewrite.engine import Rewriting, rewrite_model
from padfix.targets import named
from tests.support import oracle
from tests.support.contrib_models import WITH_KERNEL, WITHOUT_KERNEL, Case, contrib_model, last
from tests.support.padding_models import session

NODE = dataclasses.replace(named("onnx"), pads="node")


def convert(model: ModelProto) -> tuple[ModelProto, Rewriting]:
    result = ModelProto.FromString(model.SerializeToString())
    return result, rewrite_model(Model(result), target=NODE)


def pads_of(model: ModelProto, op_type: str) -> list[list[int]]:
    nodes = [node for node in model.graph.node if node.op_type == op_type]
    return [list(each.ints) for node in nodes for each in node.attribute if each.name == "pads"]


def operators(model: ModelProto) -> list[str]:
    return [node.op_type for node in model.graph.node]


def check(op_type: str, seed: int, *, explicit: bool) -> str:
    """Check one random operator; return what became of it."""
    case = Case(op_type, seed, explicit=explicit)
    model = case.model()
    after, result = convert(model)
    for refused in result.refusals:
        averaged = op_type == "QLinearAveragePool" and not case.attributes["count_include_pad"]
        assert averaged or "ceil_mode" in refused.reason, (case.attributes, refused)
        assert "--shape" in refused.reason if case.free else "--pads attribute" in refused.reason
        return "refused"
    for pads in pads_of(after, op_type):
        assert pads[:2] == pads[2:], case.attributes
    assert not convert(after)[1].changed
    runners: list[Any] = [SpecExecutor.of(after).run]
    if op_type in WITH_KERNEL:
        for optimised in (False, True):
            runner = session(after, optimised=optimised)
            runners.append(lambda feeds, runner=runner: {"Y": runner.run(None, feeds)[0]})
    for size in [case.size, *([case.some_size(), case.some_size()] if case.free else [])]:
        X = case.data(size)
        wanted = case.expected(X)
        feeds = {"X": last(X) if case.channels_last else X}
        for run in runners:
            Y = run(feeds)["Y"]
            Y = np.moveaxis(Y, -1, 1) if case.channels_last else Y
            assert Y.shape == wanted.shape, case.attributes
            np.testing.assert_allclose(Y, wanted, rtol=1e-5, atol=0 if case.integer else 1e-5)
    return "kept" if not result.changed else "rewritten"


@pytest.mark.sweep(10)
@pytest.mark.parametrize("op_type", [*WITH_KERNEL, *WITHOUT_KERNEL])
@pytest.mark.parametrize("explicit", [True, False])
def test_random_operators_keep_their_meaning(op_type: str, explicit: bool) -> None:
    outcomes = [check(op_type, seed, explicit=explicit) for seed in range(12)]
    assert outcomes.count("rewritten") > 5


@pytest.mark.slow
@pytest.mark.parametrize("op_type", [*WITH_KERNEL, *WITHOUT_KERNEL])
@pytest.mark.parametrize("explicit", [True, False])
def test_random_operators_keep_their_meaning_full(op_type: str, explicit: bool) -> None:
    outcomes = [check(op_type, seed, explicit=explicit) for seed in range(100, 400)]
    assert outcomes.count("rewritten") > 120


AVERAGE = {"xs": np.float32(0.5), "xz": np.uint8(37), "ys": np.float32(0.27), "yz": np.uint8(11)}


@pytest.mark.parametrize(
    ("kernel", "stride", "pads", "ceil_mode", "size", "expected"),
    [
        (3, 1, [0, 1], 0, 8, ["QLinearAveragePool", "Slice"]),  # a window more at the begin
        (3, 1, [2, 0], 0, "n", ["QLinearAveragePool", "Slice"]),  # two more at the end, whatever the size
        (3, 2, [0, 1], 0, 8, ["QLinearAveragePool", "Slice"]),
        (2, 2, [0, 1], 0, 7, ["QLinearAveragePool"]),  # what ceil mode does without pads
        (3, 2, [1, 0], 0, 8, ["QLinearAveragePool"]),
        (4, 3, [1, 0], 1, 7, ["QLinearAveragePool"]),
    ],
)
def test_a_quantized_average_without_its_pads_gets_equal_pads_and_a_slice(
    kernel: int, stride: int, pads: list[int], ceil_mode: int, size: int | str, expected: list[str]
) -> None:
    window = {"strides": [stride], "pads": pads, "ceil_mode": ceil_mode}
    model = contrib_model(
        "QLinearAveragePool", [1, 2, size], TensorProto.UINT8, AVERAGE, kernel_shape=[kernel], **window
    )
    after, result = convert(model)
    assert not result.refusals and operators(after) == expected
    for length in [size] if isinstance(size, int) else [4, 5, 6, 7]:
        X = np.random.default_rng(1).integers(0, 256, (1, 2, length)).astype(np.uint8)
        means = oracle.pool((X.astype(np.float64) - 37) * 0.5, "average", (kernel,), **window)
        wanted = np.clip(np.rint(means.astype(np.float32) / np.float32(0.27) + 11), 0, 255).astype(np.uint8)
        for optimised in (False, True):
            Y = session(after, optimised=optimised).run(None, {"X": X})[0]
            np.testing.assert_array_equal(Y, wanted)


@pytest.mark.parametrize(
    ("size", "attributes", "words"),
    [
        (8, {"kernel_shape": [2], "strides": [1], "pads": [0, 2]}, "keep its pads"),
        ("n", {"kernel_shape": [3], "strides": [2], "pads": [0, 1]}, "--shape"),
        ("n", {"kernel_shape": [3], "strides": [2], "pads": [0, 2], "ceil_mode": 1}, "--shape"),
    ],
)
def test_a_quantized_average_that_no_equal_pads_give_is_refused(
    size: int | str, attributes: dict[str, object], words: str
) -> None:
    model = contrib_model("QLinearAveragePool", [1, 2, size], TensorProto.UINT8, AVERAGE, **attributes)
    (refused,) = (each for each in convert(model)[1].refusals if each.finding.rule == "PF106")
    assert words in refused.reason
