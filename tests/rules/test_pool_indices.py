"""Positions of maxima where a Pad stands before the pool: counted in the unpadded input, as brute force counts them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import ModelProto, TensorProto, helper

import padfix
from padfix.errors import RefusedError
from padfix.operators.refusal import Refusal
from tests.support import oracle
from tests.support.padding_models import apply_rules, session

TYPES = (TensorProto.FLOAT, TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.INT8, TensorProto.UINT8)


def pool_model(shape: list[Any], elem_type: int, opset: int = 13, **attributes: Any) -> ModelProto:
    lengths = ["n", "c", *(f"o{axis}" for axis in range(len(shape) - 2))]
    graph = helper.make_graph(
        [helper.make_node("MaxPool", ["X"], ["Y", "I"], name="pool", **attributes)],
        "g",
        [helper.make_tensor_value_info("X", elem_type, shape)],
        [
            helper.make_tensor_value_info("Y", elem_type, lengths),
            helper.make_tensor_value_info("I", TensorProto.INT64, lengths),
        ],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)


def check(seed: int) -> None:
    rng = np.random.default_rng([21, seed])
    rank = int(rng.choice([1, 2, 2, 3]))
    kernel = [int(each) for each in rng.integers(1, 4, rank)]
    dilations = [int(each) for each in rng.integers(1, 4, rank)] if rng.random() < 0.5 else [1] * rank
    attributes: dict[str, Any] = {
        "kernel_shape": kernel,
        "strides": [int(each) for each in rng.integers(1, 4, rank)],
        "dilations": dilations,
        "auto_pad": str(rng.choice(["SAME_UPPER", "SAME_LOWER"])),
        "storage_order": int(rng.integers(2)),
    }
    elem_type = TYPES[seed % len(TYPES)]
    dtype = helper.tensor_dtype_to_np_dtype(elem_type)
    spans = [(taps - 1) * dilation + 1 for taps, dilation in zip(kernel, dilations, strict=True)]
    free = rng.random(rank) < 0.7
    own = [int(rng.integers(span, span + 6)) for span in spans]
    shape = ["n", 2, *(f"s{axis}" if free[axis] else own[axis] for axis in range(rank))]
    model = pool_model(shape, elem_type, **attributes)
    assert [refusal for _, refusal in apply_rules(model)] == [None]
    assert apply_rules(ModelProto.FromString(model.SerializeToString())) == []
    onnx.checker.check_model(model, full_check=True)
    runners = [session(model, optimised=optimised) for optimised in (False, True)]
    for batch in (1, 2):
        lengths = [int(rng.integers(s, s + 6)) if free[axis] else own[axis] for axis, s in enumerate(spans)]
        X = rng.standard_normal((batch, 2, *lengths)).astype(dtype)
        if dtype.kind in "iu":  # few values, the least one of the type among them: ties with the padding
            X = (np.iinfo(dtype).min + rng.integers(0, 2, X.shape)).astype(dtype)
        arguments = {name: value for name, value in attributes.items() if name != "kernel_shape"}
        for runner in runners:
            Y, indices = runner.run(None, {"X": X})
            np.testing.assert_array_equal(Y, oracle.pool(X, "max", kernel, **arguments))
            np.testing.assert_array_equal(indices, oracle.pool(X, "indices", kernel, **arguments), f"{attributes}")


@pytest.mark.parametrize("seed", range(40))
def test_positions_are_those_in_the_unpadded_input(seed: int) -> None:
    check(seed)


@pytest.mark.slow
def test_positions_are_those_in_the_unpadded_input_full() -> None:
    for seed in range(100, 1100):
        check(seed)


@pytest.mark.parametrize("storage_order", [0, 1])
def test_pads_longer_than_a_dilated_kernel_keep_their_positions_too(storage_order: int) -> None:
    attributes = {"kernel_shape": [2, 2], "dilations": [4, 3], "auto_pad": "SAME_LOWER", "storage_order": storage_order}
    model = pool_model([1, 2, 7, 6], TensorProto.FLOAT, opset=10, **attributes)
    assert apply_rules(model) == [("PF101", None)]
    assert [node.op_type for node in model.graph.node][:2] == ["Pad", "MaxPool"]
    assert "Shape" not in {node.op_type for node in model.graph.node}
    X = np.random.default_rng(4).standard_normal((1, 2, 7, 6)).astype(np.float32)
    arguments = {"dilations": (4, 3), "auto_pad": "SAME_LOWER", "storage_order": storage_order}
    for optimised in (False, True):
        Y, indices = session(model, optimised=optimised).run(None, {"X": X})
        np.testing.assert_array_equal(Y, oracle.pool(X, "max", (2, 2), **arguments))
        np.testing.assert_array_equal(indices, oracle.pool(X, "indices", (2, 2), **arguments))


def test_a_window_without_any_element_has_no_position() -> None:
    attributes = {"kernel_shape": [2], "dilations": [4], "auto_pad": "SAME_UPPER"}
    ((code, refusal),) = apply_rules(pool_model([1, 1, 2], TensorProto.FLOAT, **attributes))
    assert code == "PF101"
    assert isinstance(refusal, Refusal) and "has no value" in refusal.reason


@pytest.mark.parametrize("storage_order", [0, 1])
def test_a_known_length_longer_than_the_window_is_proven_at_that_length(tmp_path: Path, storage_order: int) -> None:
    model = pool_model(
        [2, 2, 9, "w"],
        TensorProto.FLOAT,
        kernel_shape=[3, 5],
        strides=[1, 2],
        auto_pad="SAME_UPPER",
        storage_order=storage_order,
    )
    onnx.save(model, tmp_path / "model.onnx")
    report = padfix.convert(tmp_path / "model.onnx", tmp_path / "out.onnx")
    assert report.refusals == []
    assert [node.op_type for node in onnx.load(tmp_path / "out.onnx").graph.node].count("Pad") == 1


@pytest.mark.parametrize(
    ("shape", "attributes"),
    [
        ([2, 3, 7, 8], {"kernel_shape": [3, 2], "strides": [2, 1], "pads": [1, 0, 0, 1]}),
        ([1, 2, 9, 9], {"kernel_shape": [3, 3], "dilations": [2, 2]}),
        ([2, 2, 8, 9], {"kernel_shape": [2, 3], "strides": [2, 2], "storage_order": 1, "ceil_mode": 1}),
        ([1, 4, 15], {"kernel_shape": [3], "strides": [2], "auto_pad": "SAME_UPPER"}),
        ([1, 2, 4, 5, 6], {"kernel_shape": [2, 3, 2], "strides": [2, 1, 2]}),
    ],
)
def test_positions_are_those_of_the_largest_tap_where_a_runtime_gives_none(
    shape: list[int], attributes: dict[str, Any], tmp_path: Path
) -> None:
    model, X = pool_model(shape, TensorProto.FLOAT, **attributes), np.random.default_rng(1).normal(size=shape)
    X[X < 0] = 0  # the first of several that are alike counts
    onnx.save(model, tmp_path / "before.onnx")
    padfix.convert(tmp_path / "before.onnx", tmp_path / "after.onnx", target="opencv@4.14")
    written = onnx.load(tmp_path / "after.onnx")
    assert {"Conv", "ReduceMax", "ArgMax"} <= {node.op_type for node in written.graph.node}
    found, meant = (session(each, optimised=True).run(None, {"X": X.astype(np.float32)}) for each in (written, model))
    for each, other in zip(found, meant, strict=True):
        np.testing.assert_array_equal(each, other)


def test_positions_among_more_than_single_precision_counts_are_declined(tmp_path: Path) -> None:
    onnx.save(pool_model([1, 2, 4096, 4096], TensorProto.FLOAT, kernel_shape=[2, 2]), tmp_path / "before.onnx")
    with pytest.raises(RefusedError, match="16777216"):
        padfix.convert(tmp_path / "before.onnx", tmp_path / "after.onnx", target="opencv@4.14")
