"""What onnx2tf guesses where all lengths behind the batch are equal, or that of the channels and another one."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx.parser
import onnxruntime
import pytest
from onnx import numpy_helper

import padfix
from padfix.errors import RefusedError

HEAD = '<ir_version: 8, opset_import: ["" : 13]> m '

AXES = "a = Constant <value_ints = [1]> ()"

CASES: dict[str, tuple[str, list[str]]] = {
    "axes that a node gives": (
        f"(float[2,4,4] X) => (float[2,4] Y) {{ {AXES} Y = ReduceSum <keepdims = 0> (X, a) }}",
        ["Conv", "ReduceSum"],
    ),
    "several axes": (
        "(float[2,4,4,4] X) => (float[2,1,1,4] Y) { Y = ReduceMax <axes = [1, 2]> (X) }",
        ["Conv", "ReduceMax", "ReduceMax"],
    ),
    "several axes of a sum": (
        "(float[2,4,4,4] X) => (float[2,1,1,4] Y) <int64[2] a = {1, 2}> { Y = ReduceSum (X, a) }",
        ["Conv", "ReduceSum", "ReduceSum"],
    ),
    "a constant as long as channels": (
        "(float[2,5,5,3] X) => (float[2,7,5,3] Y) { Y = Concat <axis = 1> (X, C) }",
        ["Concat", "Reshape", "Reshape"],
    ),
    "a constant and images of equal lengths": (
        "(float[2,4,4] X) => (float[2,6,4] Y) { Y = Concat <axis = 1> (X, C) }",
        ["Concat", "Conv", "Reshape", "Reshape"],
    ),
    "a constant of other lengths": (
        "(float[2,4,5] X) => (float[2,6,5] Y) { Y = Concat <axis = 1> (X, C) }",
        ["Concat"],
    ),
    "copies": (
        "(float[2,1,4] X) => (float[2,4,4] Y) <int64[3] s = {2, 4, 4}> { Y = Expand (X, s) }",
        ["Concat"],
    ),
    "copies of other lengths": (
        "(float[2,1,4] X) => (float[2,3,4] Y) <int64[3] s = {2, 3, 4}> { Y = Expand (X, s) }",
        ["Expand"],
    ),
    "copies with an axis more": (
        "(float[2,3,8] X) => (float[2,2,3,8] Y) <int64[4] s = {2, 1, 1, 1}> { Y = Expand (X, s) }",
        ["Concat", "Reshape", "Reshape", "Reshape", "Reshape"],
    ),
    "images joined along one of two equal axes": (
        "(float[2,4,5,5] X) => (float[2,4,10,5] Y) { A = Relu (X) B = Tanh (X) Y = Concat <axis = 2> (A, B) }",
        ["Concat", "Gather", "Relu", "Reshape", "Reshape", "Reshape", "Tanh"],
    ),
    "images joined along another axis": (
        "(float[2,4,5,6] X) => (float[2,4,10,6] Y) { A = Relu (X) B = Tanh (X) Y = Concat <axis = 2> (A, B) }",
        ["Concat", "Relu", "Tanh"],
    ),
    "images joined with a sum": (
        "(float[2,6,6,4] X) => (float[2,6,6,8] Y) { A = Add (X, X) Y = Concat <axis = 3> (X, A) }",
        ["Add", "Concat", "Conv"],
    ),
    "a sum with one number a channel": (
        "(float[1,6,5,6] X) => (float[1,6,5,6] Y) { P = GlobalAveragePool (X) Y = Add (P, X) }",
        ["GlobalAveragePool", "Neg", "Sub"],
    ),
    "a sum with one number a channel, of other lengths": (
        "(float[1,6,5,7] X) => (float[1,6,5,7] Y) { P = GlobalAveragePool (X) Y = Add (P, X) }",
        ["Add", "GlobalAveragePool"],
    ),
    "a sum with rows": (
        "(float[1,6,6,5] X) => (float[1,6,6,5] Y) { P = ReduceMax <axes = [3]> (X) Y = Add (P, X) }",
        ["Add", "ReduceMax"],
    ),
    "places along the batch": (
        "(float[2,6,6] X) => (int64[6,6] Y) { Y = ArgMax <axis = 0, keepdims = 0> (X) }",
        ["ArgMax", "Conv", "Reshape", "Reshape"],
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_nothing_is_left_to_guess(name: str, tmp_path: Path) -> None:
    text, expected = CASES[name]
    source, result = tmp_path / "model.onnx", tmp_path / "out.onnx"
    model = onnx.parser.parse_model(HEAD + text)
    shape = [each.dim_value for each in model.graph.input[0].type.tensor_type.shape.dim]
    data = np.random.default_rng(0).normal(size=shape).astype(np.float32)
    if "C)" in text:
        values = np.random.default_rng(1).normal(size=(shape[0], 2, *shape[2:])).astype(np.float32)
        model.graph.initializer.append(numpy_helper.from_array(values, "C"))
    onnx.save(model, source)
    padfix.convert(source, result, target="onnx2tf")
    assert sorted(each.op_type for each in onnx.load(result).graph.node if each.op_type != "Constant") == expected
    before, after = (onnxruntime.InferenceSession(str(path)).run(None, {"X": data})[0] for path in (source, result))
    np.testing.assert_allclose(after, before, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("nodes", "is_alike"),
    [
        ("I = Unsqueeze (T, a) Y = GatherElements <axis = 2> (X, I)", False),
        ("Y = GatherElements <axis = 2> (X, K)", True),
    ],
)
def test_elements_are_picked_in_the_order_of_the_model(nodes: str, *, is_alike: bool, tmp_path: Path) -> None:
    graph = f"""(float[2,4,6] X, int64[2,4] T, int64[2,4,1] K) => (float[2,4,1] Y, float[2,4] S, float[2,4,1] M)
    <int64[1] a = {{-1}}> {{ {nodes} S = Cast <to = 1> (T) M = Cast <to = 1> (K) }}"""
    source, result = tmp_path / "model.onnx", tmp_path / "out.onnx"
    onnx.save(onnx.parser.parse_model(HEAD + graph), source)
    padfix.convert(source, result, target="onnx2tf")
    types = [each.op_type for each in onnx.load(result).graph.node]
    assert types.count("Reshape") == (0 if is_alike else 2)
    random = np.random.default_rng(0)
    feeds = {
        "X": random.normal(size=(2, 4, 6)).astype(np.float32),
        "T": random.integers(0, 6, (2, 4)),
        "K": random.integers(0, 6, (2, 4, 1)),
    }
    before, after = (onnxruntime.InferenceSession(str(path)).run(None, feeds)[0] for path in (source, result))
    np.testing.assert_array_equal(after, before)


def test_a_sum_with_one_number_a_channel_of_lengths_that_may_all_be_equal_is_declined(tmp_path: Path) -> None:
    model = onnx.parser.parse_model(
        HEAD + "(float[2,6,h,h] X) => (float[2,6,h,h] Y) { P = GlobalAveragePool (X) Y = Add (X, P) }"
    )
    onnx.save(model, tmp_path / "model.onnx")
    with pytest.raises(RefusedError, match="lengths behind the batch are equal"):
        padfix.convert(tmp_path / "model.onnx", tmp_path / "out.onnx", target="onnx2tf")
