"""Open lengths that an operator takes only together are chosen together, so that models of such inputs are proven."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest

import padfix
from padfix.sources import tensorflow_runtime

pytestmark = [
    pytest.mark.tensorflow,
    pytest.mark.usefixtures("lent_interpreter"),
    pytest.mark.skipif(importlib.util.find_spec("tensorflow") is None, reason="needs padfix[tf]"),
]


@pytest.fixture(scope="module")
def tf() -> Any:
    return tensorflow_runtime.load("a test")


def convert(tf: Any, compute: Callable[..., Any], specs: dict[str, Any], folder: Path) -> onnxruntime.InferenceSession:
    """Write a SavedModel of ``compute`` and return what padfix makes of it."""
    module = tf.Module()
    module.f = tf.function(lambda **inputs: {"y": compute(**inputs)}, autograph=False)
    named = {name: tf.TensorSpec(shape, dtype, name) for name, (shape, dtype) in specs.items()}
    tf.saved_model.save(module, str(folder / "m"), signatures=module.f.get_concrete_function(**named))
    padfix.convert(folder / "m", folder / "m.onnx")
    return onnxruntime.InferenceSession(folder / "m.onnx")


@pytest.mark.parametrize("padding", ["SAME", pytest.param("VALID", marks=pytest.mark.slow)])
def test_a_transposed_convolution_of_open_filters(tf: Any, padding: str, tmp_path: Path) -> None:
    """Neither the filter's size nor the result's is known before it runs."""

    def compute(size: Any, kernel: Any, data: Any) -> Any:
        return tf.nn.conv2d_transpose(data, kernel, size, [2, 3], padding)

    specs = {"size": ([4], "int32"), "kernel": ([None] * 4, "float32"), "data": ([None] * 4, "float32")}
    session = convert(tf, compute, specs, tmp_path)
    random = np.random.default_rng(0)
    for taps, height, width in ((1, 6, 7), (4, 7, 9)):
        kernel = random.standard_normal((taps, taps, 2, 5)).astype("f")
        rows = -(-height // 2) if padding == "SAME" else (height - taps) // 2 + 1
        columns = -(-width // 3) if padding == "SAME" else (width - taps) // 3 + 1
        data = random.standard_normal((2, rows, columns, 5)).astype("f")
        size = np.array([2, height, width, 2], "i4")
        wanted = compute(size, kernel, data).numpy()
        (found,) = session.run(None, {"size": size, "kernel": kernel, "data": data})
        np.testing.assert_allclose(found, wanted, atol=1e-4)


@pytest.mark.slow
def test_a_transposed_convolution_as_large_as_another_input(tf: Any, tmp_path: Path) -> None:
    def compute(data: Any, like: Any) -> Any:
        shape, kernel = tf.shape(like), np.ones((5, 2, 3, 2), "f")
        return tf.nn.conv2d_transpose(data, kernel, [shape[0], shape[1], shape[2] - 1, 3], [3, 2], "VALID")

    session = convert(
        tf, compute, {"data": ([None, None, None, 2], "float32"), "like": ([None] * 4, "float32")}, tmp_path
    )
    data, like = np.ones((2, 4, 3, 2), "f"), np.zeros((2, 15, 7, 1), "f")
    (found,) = session.run(None, {"data": data, "like": like})
    np.testing.assert_allclose(found, compute(data, like).numpy(), atol=1e-4)


def test_a_filter_that_is_an_input_has_the_channels_of_its_data(tf: Any, tmp_path: Path) -> None:
    def compute(data: Any, kernel: Any, pads: Any) -> Any:
        return tf.nn.conv1d(tf.pad(data, pads), kernel, 2, "VALID")

    specs = {"data": ([None] * 3, "float32"), "kernel": ([None] * 3, "float32"), "pads": ([None, None], "int64")}
    session = convert(tf, compute, specs, tmp_path)
    data, kernel = np.ones((2, 9, 3), "f"), np.ones((4, 3, 5), "f")
    pads = np.array([[0, 0], [1, 2], [0, 0]])
    (found,) = session.run(None, {"data": data, "kernel": kernel, "pads": pads})
    np.testing.assert_allclose(found, compute(data, kernel, pads).numpy(), atol=1e-4)


@pytest.mark.slow
def test_lengths_that_follow_from_constants(tf: Any, tmp_path: Path) -> None:
    """Of what is joined with one, reshaped by one, and where one is scattered; each input by itself.

    TensorFlow's optimiser makes a square of the power, which it runs at any length.
    """

    def compute(base: Any, boxes: Any, scores: Any, rows: Any, places: Any) -> Any:
        power = tf.nn.relu(base) ** tf.constant([2.0, 2, 2, 2])
        shaped = tf.reshape(boxes, [-1, 10, 4]) * tf.reshape(scores, [-1, 10, 1])
        added = tf.reshape(tf.reduce_sum(tf.reshape(rows, [-1, 3, 2]), 0), [6])[:4]
        scattered = tf.tensor_scatter_nd_update(rows, places, tf.constant([5.0, 6]))
        return shaped + added + power + scattered[:1]

    specs = dict.fromkeys(("base", "scores", "rows"), ([None], "float32"))
    specs |= {"boxes": ([None, None], "float32"), "places": ([None, None], "int64")}
    session = convert(tf, compute, specs, tmp_path)
    random = np.random.default_rng(0)
    shapes = {"base": 4, "boxes": (10, 4), "scores": 10, "rows": 6}
    feeds = {name: random.standard_normal(shape).astype("f") for name, shape in shapes.items()}
    feeds["places"] = np.array([[2], [0]])
    (found,) = session.run(None, feeds)
    np.testing.assert_allclose(found, compute(**feeds).numpy(), rtol=1e-5)


@pytest.mark.slow
def test_channels_that_come_first_are_not_the_width(tf: Any, tmp_path: Path) -> None:
    """There is a number for each channel, and a window wider than there are channels; nor rows columns, transposed."""

    def compute(data: Any, rows: Any) -> Any:
        shifted = tf.nn.bias_add(data, tf.constant([1.0, 2, 3]), data_format="NCHW")
        factor = tf.constant(np.arange(18, dtype="f").reshape(3, 6))
        pooled = tf.nn.max_pool2d(tf.transpose(shifted, [0, 2, 3, 1]), 5, 1, "VALID")
        return pooled + tf.matmul(rows, factor, transpose_b=True)[0]

    specs = {"data": ([None, 3, None, None], "float32"), "rows": ([None, None], "float32")}
    session = convert(tf, compute, specs, tmp_path)
    random = np.random.default_rng(0)
    feeds = {"data": random.standard_normal((1, 3, 6, 7)).astype("f"), "rows": random.random((2, 6)).astype("f")}
    (found,) = session.run(None, feeds)
    np.testing.assert_allclose(found, compute(**feeds).numpy(), rtol=1e-5)


@pytest.mark.slow
def test_rows_of_ragged_values_by_number(tf: Any, tmp_path: Path) -> None:
    """As many numbers as values, rising, each of a row that there is; and as many of those as outer rows have."""

    def compute(values: Any, outer: Any, inner: Any) -> Any:
        return tf.RaggedTensor.from_nested_value_rowids(values, [outer, inner], [4, 5]).to_tensor(7.0)

    specs = {"values": ([None, 2], "float32"), "outer": ([None], "int32"), "inner": ([None], "int32")}
    session = convert(tf, compute, specs, tmp_path)
    feeds = {"values": np.arange(6, dtype="f").reshape(3, 2), "outer": np.array([0, 0, 1, 3, 3], "i4")}
    feeds["inner"] = np.array([0, 2, 2], "i4")
    (found,) = session.run(None, feeds)
    np.testing.assert_array_equal(found, compute(**feeds).numpy())


@pytest.mark.slow
def test_scores_that_are_moved_are_as_many_as_the_boxes(tf: Any, tmp_path: Path) -> None:
    def compute(boxes: Any, scores: Any) -> Any:
        return tf.image.non_max_suppression_with_scores(boxes, scores - 0.6, 8, 0.5, -0.35, 0.3)[1]

    session = convert(tf, compute, {"boxes": ([None, 4], "float32"), "scores": ([None], "float32")}, tmp_path)
    random = np.random.default_rng(0)
    boxes, scores = random.random((12, 4)).astype("f"), random.random(12).astype("f")
    (found,) = session.run(None, {"boxes": boxes, "scores": scores})
    np.testing.assert_allclose(found, compute(boxes, scores).numpy(), rtol=1e-5)


@pytest.mark.slow
def test_places_that_are_chosen_of_an_input(tf: Any, tmp_path: Path) -> None:
    table = np.arange(12, dtype="f").reshape(6, 2)

    def compute(x: Any) -> Any:
        return tf.ragged.map_flat_values(lambda each: tf.gather(table, each), tf.RaggedTensor.from_tensor(x, padding=0))

    session = convert(tf, lambda x: compute(x).to_tensor(), {"x": ([None, 4], "int32")}, tmp_path)
    places = np.array([[5, 0, 3, 0], [1, 2, 0, 0]], "i4")
    (found,) = session.run(None, {"x": places})
    np.testing.assert_array_equal(found, compute(places).to_tensor().numpy())


@pytest.mark.parametrize("padding", ["SAME", "VALID"])
def test_a_transposed_line_is_run_at_other_lengths_than_one(tf: Any, padding: str, tmp_path: Path) -> None:
    """TensorFlow makes a plane of one row of it, whose height is no length of the input."""
    kernel = np.ones((3, 4, 5), np.float32)

    def compute(data: Any) -> Any:
        shape = tf.shape(data)
        length = shape[1] * 2 + (0 if padding == "SAME" else 1)
        return tf.nn.conv1d_transpose(data, kernel, [shape[0], length, 4], 2, padding)

    module = tf.Module()
    module.f = tf.function(lambda data: {"y": compute(data)}, autograph=False)
    spec = tf.TensorSpec([None, None, 5], "float32", "data")
    tf.saved_model.save(module, str(tmp_path / "m"), signatures=module.f.get_concrete_function(data=spec))
    report = padfix.convert(tmp_path / "m", tmp_path / "m.onnx")
    assert report.verdict is not None
    lengths = {run.shapes["data"][1] for run in report.verdict.runs if run.shapes["data"][0]}
    assert len(lengths) > 2
    assert min(lengths) > 1
