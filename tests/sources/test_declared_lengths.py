"""Lengths that a constant of the graph decides are declared where the model left them open."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

import padfix

pytestmark = pytest.mark.tensorflow
FILTER = np.random.default_rng(0).standard_normal((3, 3, 1, 4)).astype("f")


def through(tf: Any, x: Any) -> Any:
    x = tf.pad(tf.nn.relu(x) + 1.0, [[0, 0], [1, 1], [1, 1], [0, 0]])
    return tf.nn.conv2d(tf.nn.max_pool2d(x, 2, 2, "VALID"), FILTER, 1, "SAME")


CASES: dict[str, tuple[Callable[[Any, Any], Any], list[int]]] = {
    "a filter": (lambda tf, x: tf.nn.conv2d(x, FILTER, 2, "SAME"), [0, 0, 0, 1]),
    "behind others": (through, [0, 0, 0, 1]),
    "an order of axes": (
        lambda tf, x: tf.nn.conv2d(tf.transpose(x, [0, 2, 3, 1]), FILTER, 1, "SAME"),
        [0, 1, 0, 0],
    ),
    "groups": (
        lambda tf, x: (
            tf.nn.conv2d(x, FILTER, 1, "SAME") + tf.nn.conv2d(x, FILTER.reshape(3, 3, 2, 2)[..., :1], 1, "SAME")
        ),
        [0, 0, 0, 2],
    ),
    "a normalisation": (
        lambda tf, x: tf.raw_ops.FusedBatchNormV3(
            x=x, scale=[1.0, 2.0], offset=[0.0, 1.0], mean=[0.5, 0.0], variance=[1.0, 3.0], is_training=False
        )[0],
        [0, 0, 0, 2],
    ),
    "a batch of a depthwise gradient": (
        lambda tf, x: tf.nn.depthwise_conv2d_backprop_input(
            tf.stack([2, tf.shape(x)[1] * 2, tf.shape(x)[2] * 2, 4]),
            FILTER.reshape(3, 3, 4, 1),
            x,
            [1, 2, 2, 1],
            "SAME",
        ),
        [2, 0, 0, 4],
    ),
}


@pytest.mark.sweep(4)
@pytest.mark.parametrize("name", CASES)
def test_what_a_constant_demands_of_the_input_is_declared(name: str, tf: Any, tmp_path: Path) -> None:
    compute, lengths = CASES[name]
    module = tf.Module()
    module.run = tf.function(lambda x: compute(tf, x), input_signature=[tf.TensorSpec([None] * 4, tf.float32, "x")])
    tf.saved_model.save(module, str(tmp_path / "m"), signatures=module.run)
    report = padfix.convert(tmp_path / "m", tmp_path / "m.onnx")
    assert report.verdict is not None and report.verdict.equivalent
    (value,) = onnx.load(tmp_path / "m.onnx").graph.input
    assert [dimension.dim_value for dimension in value.type.tensor_type.shape.dim] == lengths


def test_a_batch_behind_lists_that_are_put_together(tf: Any, tmp_path: Path) -> None:
    """A one-dimensional convolution is one of two dimensions, with lists to which a length was added."""
    module = tf.Module()
    module.run = tf.function(
        lambda x: tf.nn.conv1d_transpose(x, FILTER.reshape(3, 3, 4), tf.stack([2, tf.shape(x)[1] * 2, 3]), 2, "SAME"),
        input_signature=[tf.TensorSpec([None, None, 4], tf.float32, "x")],
    )
    tf.saved_model.save(module, str(tmp_path / "m"), signatures=module.run)
    report = padfix.convert(tmp_path / "m", tmp_path / "m.onnx")
    assert report.verdict is not None and report.verdict.equivalent
    (value,) = onnx.load(tmp_path / "m.onnx").graph.input
    assert [dimension.dim_value for dimension in value.type.tensor_type.shape.dim] == [2, 0, 4]


def test_lists_that_an_operator_takes_at_one_length(tf: Any, tmp_path: Path) -> None:
    """The filters' and the lists' own lengths follow from what the operator is."""
    names = ["image", "pads", "boxes", "begin", "crops", "rows"]
    types = ["float32", "int32", "float32", "int32", "int32", "float32"]
    specs = [
        tf.TensorSpec([None] * rank, kind, name)
        for name, kind, rank in zip(names, types, [3, 2, 2, 1, 2, 2], strict=True)
    ]

    def compute(image: Any, pads: Any, boxes: Any, begin: Any, crops: Any, rows: Any) -> dict[str, Any]:
        return {
            "padded": tf.pad(image, pads),
            "kept": tf.image.non_max_suppression(boxes, boxes[:, 0], 3),
            "cut": tf.strided_slice(image, begin, [2, 2, 3]),
            "spread": tf.raw_ops.BatchToSpaceND(input=image, block_shape=[2, 3], crops=crops),
            "turned": tf.reverse_sequence(rows, [2, 3, 1, 1], 1, 0),
        }

    module = tf.Module()
    module.run = tf.function(compute, input_signature=specs)
    tf.saved_model.save(module, str(tmp_path / "m"), signatures=module.run)
    padfix.convert(tmp_path / "m", tmp_path / "m.onnx")
    graph = onnx.load(tmp_path / "m.onnx").graph
    declared = {value.name: [each.dim_value for each in value.type.tensor_type.shape.dim] for value in graph.input}
    assert declared == {
        "image": [0, 0, 0],
        "pads": [0, 2],
        "boxes": [0, 4],
        "begin": [3],
        "crops": [2, 2],
        "rows": [4, 0],
    }


def test_data_suits_what_assertions_demand(tf: Any, tmp_path: Path) -> None:
    """What a reader takes is looked up behind the assertions that refuse other data."""

    def dense(splits: Any, values: Any, order: Any) -> dict[str, Any]:
        rows = tf.RaggedTensor.from_row_splits(values, splits, validate=True)
        return {"y": rows.to_tensor(), "i": tf.math.invert_permutation(order)}

    specs = [tf.TensorSpec([None], kind, name) for name, kind in (("s", "int64"), ("v", "float32"), ("o", "int32"))]
    module = tf.Module()
    module.run = tf.function(dense, input_signature=specs)
    tf.saved_model.save(module, str(tmp_path / "m"), signatures=module.run)
    report = padfix.convert(tmp_path / "m", tmp_path / "m.onnx")
    assert report.verdict is not None and report.verdict.equivalent
