"""Inner tensors of a TensorFlow original can be fed and fetched, under the names that the ONNX model has."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from padfix.proof.executors import ExecutionFailed
from padfix.proof.inner import InnerExecutor, inner_of
from padfix.sources import open_source
from padfix.sources.inner_graph import InnerGraph
from tests.support.tf_conversion import convert

pytestmark = pytest.mark.tensorflow


def inner(tf: Any, function: Any, **feed: Any) -> InnerExecutor:
    source = convert(tf, function, feed, free=True)
    assert source.executor is not None
    found = inner_of(source.executor())
    assert found is not None
    return found


def values(*shape: int, seed: int = 0) -> Any:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def frozen(tf: Any, build: Any) -> InnerGraph:
    """Return a graph of TensorFlow 1 that ``build`` makes."""
    with tf.Graph().as_default() as graph:
        build()
    return InnerGraph(tf, graph.as_graph_def(), {}, {})


def test_readers_of_a_fed_tensor_read_the_value(tf: Any) -> None:
    def network(x: Any) -> Any:
        middle = tf.nn.relu(x, name="middle")
        return {"y": tf.nn.tanh(middle, name="left") * tf.nn.sigmoid(middle, name="right")}

    pieces = inner(tf, network, x=values(1, 4, 4, 3))
    fed = values(2, 4, 4, 3, seed=1)
    found = pieces.run_inner({"middle:0": fed}, ["left:0", "right:0", "y"])
    np.testing.assert_allclose(found["left:0"], np.tanh(fed), rtol=1e-6)
    np.testing.assert_array_equal(found["y"], found["left:0"] * found["right:0"])


def test_a_fed_tensor_that_is_fetched_is_computed_from_the_others(tf: Any) -> None:
    def network(x: Any) -> Any:
        first = tf.nn.relu(x, name="first")
        second = tf.multiply(first, 2.0, name="second")
        return {"y": tf.add(second, first, name="third")}

    pieces = inner(tf, network, x=values(1, 4, 4, 3))
    x, first, second = (values(1, 4, 4, 3, seed=seed) for seed in (1, 2, 3))
    found = pieces.run_inner({"x": x, "first:0": first, "second:0": second}, ["x", "first:0", "second:0", "y"])
    np.testing.assert_array_equal(found["x"], x)
    np.testing.assert_array_equal(found["first:0"], np.maximum(x, 0))
    np.testing.assert_array_equal(found["second:0"], first * 2)
    np.testing.assert_array_equal(found["y"], second + first)


def test_the_whole_graph_gives_the_original_s_numbers(tf: Any, tmp_path: Path) -> None:
    keras = tf.keras
    model = keras.Sequential(
        [
            keras.Input([9, 9, 3]),
            keras.layers.Conv2D(64, 3, strides=2, padding="same"),  # its weights are kept apart
            keras.layers.Conv2D(64, 3, padding="same", activation="relu"),
            keras.layers.GlobalAveragePooling2D(),
        ]
    )
    model.save(tmp_path / "model.keras")
    source = open_source(tmp_path / "model.keras")
    assert source.executor is not None
    original = source.executor()
    pieces = inner_of(original)
    assert pieces is not None
    feed = {original.inputs[0].name: values(2, 9, 9, 3)}
    wanted = original.run(feed)
    graph = [node for node in pieces.graph() if node.can_feed]
    found = pieces.run_inner(feed, [node.name for node in graph])
    for name, value in wanted.items():
        np.testing.assert_allclose(found[name], value, rtol=1e-6, atol=1e-6)
    again = pieces.run_inner(found, [node.name for node in graph])
    for name, value in found.items():
        np.testing.assert_array_equal(again[name], value)
    converted = {name for node in source.model.proto.graph.node for name in node.output}
    assert len(converted & {node.name for node in graph}) >= 3


def test_the_graph_stands_in_the_order_of_computation(tf: Any) -> None:
    def network(x: Any) -> Any:
        halves = tf.split(tf.nn.relu(x, name="middle"), 2, axis=1, name="halves")
        return {"y": halves[0] - halves[1]}

    pieces = inner(tf, network, x=values(1, 4, 6, 3))
    graph = pieces.graph()
    seen: set[str] = set()
    for node in graph:
        assert seen >= set(node.inputs)
        seen.add(node.name)
    by_name = {node.name: node for node in graph}
    middle = by_name["middle:0"]
    assert (middle.op_type, middle.inputs, middle.elem_type, middle.shape) == ("Relu", ("x",), 1, (None, None, None, 3))
    assert by_name["halves:1"].inputs[-1] == "middle:0"
    found = pieces.run_inner({"halves:1": np.ones([1, 2, 6, 3], np.float32), "x": values(1, 4, 6, 3)}, ["y"])
    np.testing.assert_array_equal(found["y"], np.maximum(values(1, 4, 6, 3), 0)[:, :2] - 1)


def test_loops_are_run_and_cut_around(tf: Any) -> None:
    def network(x: Any) -> Any:
        middle = tf.nn.relu(x, name="middle")
        result = tf.while_loop(lambda i, _: i < 3, lambda i, v: (i + 1, v * 2.0), [0, middle])
        return {"y": tf.identity(result[1], name="result")}

    fed = values(1, 4, 4, 3)
    found = inner(tf, network, x=fed).run_inner({"middle:0": fed}, ["y"])
    np.testing.assert_array_equal(found["y"], fed * 8)


def test_nothing_is_fed_inside_conditions_and_loops_of_tensorflow_1(tf: Any) -> None:
    def build() -> None:
        v1 = tf.compat.v1
        v1.disable_control_flow_v2()
        try:
            x = v1.placeholder(tf.float32, [2], name="x")
            loop = tf.while_loop(lambda v: tf.reduce_sum(v) < 9.0, lambda v: tf.add(v, v, name="twice"), [x])[0]
            chosen = tf.cond(x[0] > 0, lambda: tf.multiply(loop, 3.0, name="times"), lambda: loop)
            tf.negative(chosen, name="behind")
        finally:
            v1.enable_control_flow_v2()

    pieces = frozen(tf, build)
    can_feed = {node.name: node.can_feed for node in pieces.graph()}
    inside = {name for name, possible in can_feed.items() if not possible}
    assert {"while/twice:0", "cond/times:0"} <= inside
    assert {"x:0", "behind:0", "cond/Merge:0", "while/Exit:0"}.isdisjoint(inside)
    found = pieces.run_inner({"x:0": np.array([1, 1], np.float32)}, ["cond/Merge:0", "behind:0"])
    np.testing.assert_array_equal(found["behind:0"], [-24, -24])
    found = pieces.run_inner(
        {
            "x:0": np.ones(2, np.float32),
            "while/Exit:0": np.ones(2, np.float32),
            "cond/Merge:0": np.zeros(2, np.float32),
        },
        ["cond/Merge:0", "behind:0"],
    )
    np.testing.assert_array_equal(found["cond/Merge:0"], [3, 3])
    np.testing.assert_array_equal(found["behind:0"], [0, 0])


def test_control_dependencies_are_kept(tf: Any) -> None:
    def build() -> None:
        x = tf.compat.v1.placeholder(tf.float32, [], name="x")
        with tf.control_dependencies([tf.debugging.assert_greater(x, 0.0, message="too small")]):
            tf.negative(x, name="checked")

    pieces = frozen(tf, build)
    with pytest.raises(ExecutionFailed, match="too small"):
        pieces.run_inner({"x:0": np.float32(-1), "checked:0": np.float32(0)}, ["checked:0"])


def test_tables_are_filled(tf: Any) -> None:
    with tf.Graph().as_default() as graph:
        handle = tf.raw_ops.HashTableV2(key_dtype=tf.int64, value_dtype=tf.float32, shared_name="table", name="table")
        x = tf.compat.v1.placeholder(tf.int64, [2], name="x")
        tf.raw_ops.LookupTableFindV2(table_handle=handle, keys=x, default_value=-1.0, name="found")
    tables = {b"table": (np.array([3, 4]), np.array([0.5, 0.25], np.float32))}
    pieces = InnerGraph(tf, graph.as_graph_def(), {}, tables)
    found = pieces.run_inner({"x:0": np.array([4, 5])}, ["found:0"])["found:0"]
    np.testing.assert_array_equal(found, [0.25, -1.0])


def test_weights_are_fed_and_fetched_as_other_tensors_are(tf: Any) -> None:
    weights = values(80, 80)
    pieces = frozen(tf, lambda: tf.negative(tf.constant(weights, name="weights"), name="y"))
    assert {node.name: node.op_type for node in pieces.graph()} == {"weights:0": "Const", "y:0": "Neg"}
    found = pieces.run_inner({}, ["weights:0", "y:0"])
    np.testing.assert_array_equal(found["weights:0"], weights)
    np.testing.assert_array_equal(found["y:0"], -weights)
    ones = np.ones([80, 80], np.float32)
    np.testing.assert_array_equal(pieces.run_inner({"weights:0": ones}, ["y:0"])["y:0"], -ones)


def test_what_can_t_be_run_says_so(tf: Any) -> None:
    pieces = inner(tf, lambda x: {"y": tf.nn.relu(x)}, x=values(1, 4, 4, 3))
    with pytest.raises(ExecutionFailed, match="no tensor nowhere"):
        pieces.run_inner({}, ["nowhere"])
    with pytest.raises(ExecutionFailed, match="must feed"):
        pieces.run_inner({}, ["y"])
    with pytest.raises(ExecutionFailed, match="shape"):
        pieces.run_inner({"x": values(3)}, ["y"])


def test_what_has_elements_is_known_before_it_is_run(tf: Any) -> None:
    def network(x: Any) -> Any:
        return {"y": tf.reduce_sum(tf.nn.max_pool2d(tf.nn.relu(x, name="middle"), 3, 2, "VALID"))}

    pieces = inner(tf, network, x=values(1, 4, 4, 3))
    assert pieces.has_elements({"middle:0": values(1, 3, 5, 3)}, ["y"])
    assert not pieces.has_elements({"middle:0": values(1, 2, 5, 3)}, ["y"])
    assert not pieces.has_elements({"middle:0": values(0, 3, 5, 3)}, ["y"])
    assert not pieces.has_elements({"x": values(1, 5, 1, 3)}, ["y"])


def test_a_size_that_is_fed_says_what_comes_out(tf: Any) -> None:
    """Whatever the rules of shapes leave open costs a run of TensorFlow in a process of its own."""

    def network(x: Any, size: Any) -> dict[str, Any]:
        return {"y": tf.nn.conv2d_transpose(x, np.ones([3, 3, 2, 1], np.float32), size, 2, "SAME")}

    size = np.array([0, 7, 8, 2], np.int32)
    pieces = inner(tf, network, x=values(1, 4, 4, 1), size=np.array([1, 7, 8, 2], np.int32))
    assert isinstance(pieces, InnerGraph)
    assert pieces.shapes({"x": values(0, 4, 4, 1), "size": size}, ["y"]) == {"y": (0, 7, 8, 2)}
    assert not pieces.has_elements({"x": values(0, 4, 4, 1), "size": size}, ["y"])


def test_a_condition_is_what_one_of_its_branches_is(tf: Any) -> None:
    def network(x: Any) -> Any:
        return {"y": tf.cond(tf.reduce_sum(x) > 1e6, lambda: x + 1.0, lambda: x * 2.0, name="choice")}

    pieces, x = inner(tf, network, x=values(2, 3)), values(2, 3, seed=1)
    (condition,) = {node.name.split(":")[0] for node in pieces.graph() if node.op_type in ("If", "StatelessIf")}
    first, second = (pieces.with_branch(condition, f"{each}_branch") for each in ("then", "else"))
    np.testing.assert_array_equal(first.run_inner({"x": x}, ["y"])["y"], x + 1.0)
    np.testing.assert_array_equal(second.run_inner({"x": x}, ["y"])["y"], x * 2.0)
    np.testing.assert_array_equal(pieces.run_inner({"x": x}, ["y"])["y"], x * 2.0)
    with pytest.raises(ExecutionFailed, match="has no condition"):
        pieces.with_branch("nothing", "then_branch")
