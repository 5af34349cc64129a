"""Sizes at which a window is longer than what it reads: nothing is computed there, and nothing is proven by them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import NodeProto, TensorProto, helper

import padfix
from tests.support.proofs import model

WINDOW = {"auto_pad": "VALID", "strides": [1, 40]}
WEIGHT = np.random.default_rng(0).standard_normal((2, 2, 3, 45)).astype(np.float32)
RELU = helper.make_node("Relu", ["X"], ["R"])


@pytest.mark.parametrize(
    "nodes",
    [
        (helper.make_node("Conv", ["X", "W"], ["Y"], **WINDOW), RELU),
        (helper.make_node("MaxPool", ["X"], ["Y"], kernel_shape=[3, 45], **WINDOW), RELU),
        (
            helper.make_node("Conv", ["X", "W"], ["c"], **WINDOW),
            helper.make_node("ReduceSum", ["c"], ["s"], keepdims=0),
            RELU,
            helper.make_node("Add", ["R", "s"], ["Y"]),
        ),
    ],
    ids=["refused", "one element", "hidden"],
)
def test_sizes_that_give_nothing_are_left_out(tmp_path: Path, nodes: tuple[NodeProto, ...]) -> None:
    """The specification goes on with an empty tensor, which ONNX Runtime refuses or gives an element."""
    kind = (TensorProto.FLOAT, (1, 2, "h", "w"))
    onnx.save(model(nodes, {"X": kind}, ("Y", "R"), constants={"W": WEIGHT}), tmp_path / "before.onnx")
    report = padfix.convert(tmp_path / "before.onnx", tmp_path / "after.onnx", reference="spec")
    assert report.verdict is not None
    assert report.verdict.equivalent
    assert any("a window is longer than what it reads" in note for note in report.verdict.notes)
    assert all(run.shapes["X"][3] >= 45 for run in report.verdict.runs)
