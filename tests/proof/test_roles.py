"""Integers that steer a model are given values that the operators behind them take."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from padfix.proof.executors import OnnxRuntimeExecutor, TensorSpec
from padfix.proof.probes import Probe, make_probe
from padfix.proof.roles import Roles

INT64, FLOAT = TensorProto.INT64, TensorProto.FLOAT
TABLE = numpy_helper.from_array(np.arange(36, dtype=np.float32).reshape(9, 4), "table")
THREE = numpy_helper.from_array(np.array(3), "three")
ZERO = numpy_helper.from_array(np.array([0]), "zero")


def suited(nodes: Sequence[onnx.NodeProto], *specs: TensorSpec, turn: int = 0) -> dict[str, Any]:
    """Return the arrays of the only suited probe for a model of these nodes, which end in "y"."""
    graph = helper.make_graph(
        nodes,
        "roles",
        [helper.make_tensor_value_info(spec.name, spec.elem_type, spec.shape) for spec in specs],
        [helper.make_tensor_value_info("y", FLOAT, None)],
        [TABLE, THREE, ZERO],
    )
    opsets = [helper.make_opsetid("", 20), helper.make_opsetid("com.microsoft", 1)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=9)
    executor = OnnxRuntimeExecutor(model.SerializeToString(), optimised=False)
    shapes = {spec.name: tuple(int(length) for length in spec.shape or ()) for spec in specs}
    first = make_probe(list(specs), shapes, "normal")
    (probe,) = Roles([executor], specs).suited(first, turn)
    executor.run(probe.arrays)  # or it is not suited
    return dict(probe.arrays)


def test_indices_reach_the_whole_table_and_no_further() -> None:
    spec = TensorSpec("token", INT64, (200,))
    found = suited([helper.make_node("Gather", ["table", "token"], ["y"])], spec)["token"]
    assert (found.min(), found.max()) == (0, 8)


def test_indices_are_found_behind_arithmetic_and_casts() -> None:
    nodes = [
        helper.make_node("Cast", ["token"], ["whole"], to=INT64),
        helper.make_node("Sub", ["whole", "three"], ["index"]),
        helper.make_node("Gather", ["table", "index"], ["y"]),
    ]
    found = suited(nodes, TensorSpec("token", FLOAT, (200,)))["token"]
    assert (found.min(), found.max()) == (3, 11)


def test_every_reader_of_an_index_is_heard() -> None:
    nodes = [
        helper.make_node("Slice", ["table", "zero", "three1"], ["few"]),
        helper.make_node("Gather", ["few", "token"], ["a"]),
        helper.make_node("Gather", ["table", "token"], ["b"]),
        helper.make_node("Add", ["a", "b"], ["y"]),
    ]
    nodes.insert(0, helper.make_node("Unsqueeze", ["three", "zero"], ["three1"]))
    assert suited(nodes, TensorSpec("token", INT64, (200,)))["token"].max() == 2


def test_a_part_of_a_vector_is_found_through_what_puts_it_together() -> None:
    nodes = [
        helper.make_node("Concat", ["width", "height"], ["shape"], axis=0),
        helper.make_node("Reshape", ["x", "shape"], ["y"]),
    ]
    specs = [TensorSpec(name, INT64, (1,)) for name in ("height", "width")]
    found = suited(nodes, TensorSpec("x", FLOAT, (4, 6)), *specs)
    assert (found["width"].item(), found["height"].item()) == (4, 6)


@pytest.mark.parametrize("turn", range(4))
def test_lengths_counts_and_bounds_fit_the_data(turn: int) -> None:
    nodes = [
        helper.make_node("TopK", ["x", "count"], ["top", "places"], axis=1),
        helper.make_node("ReverseSequence", ["top", "lengths"], ["turned"], batch_axis=0, time_axis=1),
        helper.make_node("Slice", ["turned", "start", "end"], ["y"]),
    ]
    specs = [TensorSpec(name, INT64, (1,)) for name in ("count", "start", "end")]
    found = suited(nodes, TensorSpec("x", FLOAT, (5, 7)), *specs, TensorSpec("lengths", INT64, (5,)), turn=turn)
    assert 1 <= found["count"].item() <= 7
    assert 1 <= found["lengths"].min() <= found["lengths"].max() <= found["count"].item()
    assert found["start"].item() < found["end"].item() <= 5


def test_data_is_left_alone() -> None:
    nodes = [helper.make_node("Cast", ["x"], ["a"], to=FLOAT), helper.make_node("Relu", ["a"], ["y"])]
    spec = TensorSpec("x", INT64, (3, 4))
    graph = helper.make_graph(
        nodes,
        "data",
        [helper.make_tensor_value_info("x", INT64, (3, 4))],
        [helper.make_tensor_value_info("y", FLOAT, (3, 4))],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    executor = OnnxRuntimeExecutor(model.SerializeToString(), optimised=False)
    assert list(Roles([executor], [spec]).suited(Probe("normal", {"x": np.zeros((3, 4), np.int64)}), 0)) == []


def test_where_a_slice_begins_is_not_before_the_data_for_the_end_that_follows_from_it() -> None:
    """TensorFlow Lite reads whatever lies there."""
    nodes = [
        helper.make_node("Add", ["begin", "size"], ["end"]),
        helper.make_node("Slice", ["table", "begin", "end"], ["y"]),
    ]
    for turn in range(6):
        found = suited(nodes, TensorSpec("begin", INT64, (2,)), TensorSpec("size", INT64, (2,)), turn=turn)
        assert (found["begin"] >= 0).all()
        assert (found["begin"] + found["size"] <= [9, 4]).all()


def test_nothing_is_run_for_data_without_rows() -> None:
    graph = helper.make_graph(
        [helper.make_node("Abs", ["x"], ["a"]), helper.make_node("Reshape", ["a", "shape"], ["y"])],
        "roles",
        [helper.make_tensor_value_info("x", FLOAT, [None, 4]), helper.make_tensor_value_info("shape", INT64, [2])],
        [helper.make_tensor_value_info("y", FLOAT, None)],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    executor = OnnxRuntimeExecutor(model.SerializeToString(), optimised=False)
    specs = [TensorSpec("x", FLOAT, (None, 4)), TensorSpec("shape", INT64, (2,))]
    probe = Probe("empty", {"x": np.zeros((0, 4), np.float32), "shape": np.array([3, 4])})
    (found,) = Roles([executor], specs).suited(probe, 0, runs=False)
    assert found.arrays["shape"].tolist() == [3, 4], "what it reshapes is computed"
    (found,) = Roles([executor], specs).suited(probe, 0)
    assert found.arrays["shape"].tolist() == [0, 4]


def test_a_step_of_a_decoder_is_told_how_many_keys_there_are() -> None:
    names = ("q", "k", "v", "past", "past_values", "last", "keys")
    shapes = ((1, 3, 32), (1, 3, 16), (1, 3, 16), (1, 1, 5, 16), (1, 1, 5, 16), (1,), ())
    specs = [
        TensorSpec(name, TensorProto.INT32 if place > 4 else FLOAT, shape)
        for place, (name, shape) in enumerate(zip(names, shapes, strict=True))
    ]
    heads = {"num_heads": 2, "kv_num_heads": 1}
    nodes = [helper.make_node("GroupQueryAttention", names, ["y", "k2", "v2"], domain="com.microsoft", **heads)]
    found = suited(nodes, *specs)
    assert (found["last"].tolist(), found["keys"].tolist()) == ([7], 8)


@pytest.mark.parametrize("turn", range(4))
def test_a_suppression_chooses_something(turn: int) -> None:
    """An overlap beside 0 to 1 is refused, and a least score above all scores chooses nothing."""
    chosen = helper.make_node("NonMaxSuppression", ["boxes", "scores", "most", "overlap", "least"], ["chosen"])
    nodes = [chosen, helper.make_node("Cast", ["chosen"], ["y"], to=FLOAT)]
    shapes = {"boxes": (1, 7, 4), "scores": (1, 2, 7), "overlap": (1,), "least": (1,)}
    specs = [TensorSpec(name, FLOAT, shape) for name, shape in shapes.items()]
    found = suited(nodes, *specs, TensorSpec("most", INT64, (1,)), turn=turn)
    assert 0 <= found["overlap"].item() <= 1
    assert 0 < (found["scores"] > found["least"]).sum() < found["scores"].size
    assert found["most"].item() > 0


@pytest.mark.parametrize(
    ("text", "name", "most"),
    [
        (("(int32[2,40] i, int32[2,40] s) => (float[2,40,4] y) { y, m = com.microsoft.EmbedLayerNormalization"
         "(i, s, table, table, two, gamma, gamma) }"), "s", 1),
        ("(float[2,5,3] x, int64[2,3] t) => (float[2,3] y) { y = NegativeLogLikelihoodLoss<reduction=\"none\">(x, t) }",
         "t", 4),
        (("(float[1,6,8] x, int64[1] p) => (float[1,6,8] y) { y = com.microsoft.RotaryEmbedding<num_heads=2>"
         "(x, p, angles, angles) }"), "p", 3),
        ("(float[3,2,3] x, int64[4] s) => (float[a,b,c,d] y) { y = AffineGrid(x, s) }", "s", 6),
        ("(int64 n) => (float[m] y) { y = HannWindow(n) }", "n", 4),
    ],
)  # fmt: skip
def test_every_operator_that_picks_is_given_what_there_is(text: str, name: str, most: int) -> None:
    """ONNX Runtime 1.32 refuses a model of each where it is given any number (25 November 2026)."""
    head = '<ir_version: 9, opset_import: ["" : 20, "com.microsoft" : 1]> g '
    model = onnx.parser.parse_model(head + text)
    weights = {"table": (40, 4), "two": (2, 4), "gamma": (4,), "angles": (9, 2)}
    arrays = [numpy_helper.from_array(np.ones(shape, np.float32), each) for each, shape in weights.items()]
    model.graph.initializer.extend(each for each in arrays if f"{each.name}" in text)
    executor = OnnxRuntimeExecutor(model.SerializeToString(), optimised=False)
    shapes = {spec.name: tuple(int(length) for length in spec.shape or ()) for spec in executor.inputs}
    for turn in range(4):
        (probe,) = Roles([executor], executor.inputs).suited(make_probe(executor.inputs, shapes, "normal"), turn)
        executor.run(probe.arrays)
        assert 0 <= probe.arrays[name].min() <= probe.arrays[name].max() <= most
