"""Inspection of TensorFlow sources: TensorFlow's own operators, names and layouts, before any conversion."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import padfix
from padfix.results import OpRecord

pytestmark = pytest.mark.tensorflow

ROOT = Path(__file__).parents[2]


def saved(build: Any, shape: list[int | None], folder: Path) -> Path:
    """Return the file of a frozen graph made by ``build(tf, x)``."""
    import tensorflow as tf

    graph = tf.Graph()
    with graph.as_default():
        build(tf, tf.compat.v1.placeholder(tf.float32, shape, name="x"))
    file = folder / "graph.pb"
    file.write_bytes(graph.as_graph_def().SerializeToString())
    return file


def weights(tf: Any, *shape: int) -> Any:
    return tf.constant(np.ones(shape, np.float32), name="w")


def test_the_quick_start_model() -> None:
    records = padfix.inspect(ROOT / "fixtures" / "quickstart" / "small_cnn.pb")
    assert records == [
        OpRecord("stem", "Conv2D", "main", (3, 3), (2, 2), (1, 1), "SAME", (None,) * 4, "NHWC"),
        OpRecord("pool", "MaxPool", "main", (3, 3), (2, 2), (1, 1), "SAME", (None,) * 4, "NHWC"),
        OpRecord("body", "Conv2D", "main", (3, 3), (1, 1), (1, 1), "SAME", (1, 1, 1, 1), "NHWC"),
        OpRecord("shortcut", "AvgPool", "main", (3, 3), (1, 1), (1, 1), "SAME", (1, 1, 1, 1), "NHWC"),
    ]


@pytest.mark.parametrize(
    ("build", "shape", "expected"),
    [
        (
            lambda tf, x: tf.nn.conv2d(x, weights(tf, 3, 2, 4, 5), [1, 1, 2, 3], "SAME", "NCHW", name="c"),
            [1, 4, 8, 9],
            OpRecord("c", "Conv2D", "main", (3, 2), (2, 3), (1, 1), "SAME", (0, 0, 1, 0), "NCHW"),
        ),
        (
            lambda tf, x: tf.nn.conv2d(x, weights(tf, 3, 3, 4, 5), 1, [[0, 0], [1, 0], [0, 2], [0, 0]], name="c"),
            [1, None, 9, 4],
            OpRecord("c", "Conv2D", "main", (3, 3), (1, 1), (1, 1), "explicit 1,0,0,2", (1, 0, 0, 2), "NHWC"),
        ),
        (
            lambda tf, x: tf.nn.conv2d(x, weights(tf, 3, 3, 4, 5), 1, "SAME", dilations=2, name="c"),
            [1, None, 9, 4],
            OpRecord("c", "Conv2D", "main", (3, 3), (1, 1), (2, 2), "SAME", (2, 2, 2, 2), "NHWC"),
        ),
        (
            lambda tf, x: tf.nn.depthwise_conv2d(x, weights(tf, 2, 2, 4, 1), [1, 1, 1, 1], "SAME", name="d"),
            [1, 7, 9, 4],
            OpRecord("d", "DepthwiseConv2dNative", "main", (2, 2), (1, 1), (1, 1), "SAME", (0, 0, 1, 1), "NHWC"),
        ),
        (
            lambda tf, x: tf.nn.conv2d_transpose(x, weights(tf, 3, 3, 2, 4), [1, 14, 17, 2], 2, "SAME", name="t"),
            [1, 7, 9, 4],
            OpRecord("t", "Conv2DBackpropInput", "main", (3, 3), (2, 2), (1, 1), "SAME", (0, 1, 1, 1), "NHWC"),
        ),
        (
            lambda tf, x: tf.nn.max_pool3d(x, [1, 2, 3], [1, 2, 2], "SAME", name="p"),
            [1, 4, 5, 6, 2],
            OpRecord("p", "MaxPool3D", "main", (1, 2, 3), (1, 2, 2), (1, 1, 1), "SAME", (0, 0, 0, 0, 1, 1), "NDHWC"),
        ),
        (
            lambda tf, x: tf.compat.v1.image.resize_bilinear(x, [8, 8], name="r"),
            [1, 4, 5, 2],
            OpRecord(
                *("r", "ResizeBilinear", "main", None, None, None, "", None, "NHWC"),
                mode="bilinear",
                coordinates="asymmetric",
                sizes=(8, 8),
            ),
        ),
    ],
    ids=["nchw", "explicit", "dilated", "depthwise", "transposed", "3d", "resize"],
)
def test_operators(build: Any, shape: list[int | None], expected: OpRecord, tmp_path: Path) -> None:
    assert padfix.inspect(saved(build, shape, tmp_path)) == [expected]


def test_function_bodies_are_listed_without_sizes(tmp_path: Path) -> None:
    def build(tf: Any, x: Any) -> None:
        @tf.function
        def pooled(image: Any) -> Any:
            return tf.nn.max_pool2d(image, 2, 2, "VALID", name="inner")

        tf.identity(pooled(x), name="y")

    (record,) = padfix.inspect(saved(build, [1, 8, 8, 1], tmp_path))
    assert record.graph.startswith("function::")
    assert (record.name, record.kernel, record.pads) == ("inner", (2, 2), (0, 0, 0, 0))


def test_a_keras_file_and_a_saved_model_agree(tmp_path: Path) -> None:
    import keras

    image = keras.Input((16, 16, 3))
    layer = keras.layers.Conv2D(4, 3, 2, "same", name="first")(image)
    model = keras.Model(image, keras.layers.MaxPool2D(name="second")(layer))
    model.save(tmp_path / "model.keras")
    model.export(tmp_path / "folder", verbose=False)
    found = [padfix.inspect(tmp_path / name) for name in ("model.keras", "folder")]
    for records in found:
        assert [(each.op, each.kernel, each.strides, each.padding, each.pads) for each in records] == [
            ("Conv2D", (3, 3), (2, 2), "SAME", (0, 0, 1, 1)),
            ("MaxPool", (2, 2), (2, 2), "VALID", (0, 0, 0, 0)),
        ]
        assert "first" in records[0].name
        assert "second" in records[1].name
