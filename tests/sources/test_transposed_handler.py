"""Transposed convolutions give TensorFlow's numbers for every padding, stride and way to say the size."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

import padfix
from padfix.sources import SourceOptions

pytestmark = pytest.mark.tensorflow

EXPLICIT = [[0, 0], [2, 0], [1, 0], [0, 0]]
WINDOWS = [(3, 2), (5, 2), (4, 3), (2, 3), (1, 2), (3, 1), (4, 4)]


def sizes(padding: Any, kernel: int, stride: int, lengths: list[Any], extra: int) -> list[Any]:
    """Return result sizes that TensorFlow accepts: the natural ones, or ``extra`` elements beside them."""
    if padding == "SAME":
        return [length * stride - extra for length in lengths]
    cut = [0, 0] if padding == "VALID" else [2, 1]
    return [(length - 1) * stride + kernel - less + extra for length, less in zip(lengths, cut, strict=True)]


@pytest.mark.sweep(10)
@pytest.mark.parametrize("padding", ["SAME", "VALID", EXPLICIT], ids=["SAME", "VALID", "EXPLICIT"])
@pytest.mark.parametrize(("kernel", "stride"), WINDOWS)
@pytest.mark.parametrize("free", [False, True], ids=["static", "dynamic"])
@pytest.mark.parametrize("constant", [False, True], ids=["computed size", "constant size"])
def test_against_tensorflow(padding: Any, kernel: int, stride: int, free: bool, constant: bool, tf: Any) -> None:
    import onnxruntime

    from padfix.sources.saved_model import finish, freeze_function

    extra = 1 if stride > 1 else 0
    if padding == EXPLICIT and kernel == 1:
        padding = "VALID"
    filters = np.random.default_rng(1).standard_normal((kernel, kernel, 3, 2)).astype(np.float32)

    def function(x: Any) -> dict[str, Any]:
        if constant:
            wanted: Any = [1, *sizes(padding, kernel, stride, [5, 6], extra), 3]
        else:
            shape = tf.shape(x)
            wanted = tf.stack([shape[0], *sizes(padding, kernel, stride, [shape[1], shape[2]], extra), 3])
        return {"y": tf.nn.conv2d_transpose(x, filters, wanted, stride, padding)}

    shape = [1, None, None, 2] if free else [1, 5, 6, 2]
    concrete = tf.function(function).get_concrete_function(x=tf.TensorSpec(shape, tf.float32, "x"))
    source = finish(tf, "saved_model", freeze_function(tf, lambda: (None, concrete)), SourceOptions(), "m", [])
    data = np.random.default_rng(2).standard_normal((1, 5, 6, 2)).astype(np.float32)
    assert source.executor is not None
    wanted = source.executor().run({"x": data})["y"]
    session = onnxruntime.InferenceSession(source.model.proto.SerializeToString())
    found = session.run(None, {"x": data})[0]
    assert found.shape == wanted.shape
    np.testing.assert_allclose(found, wanted, atol=1e-5)


@pytest.mark.sweep(8)
@pytest.mark.parametrize("dimensions", [1, 2, 3])
@pytest.mark.parametrize("padding", ["SAME", "VALID"])
def test_the_single_size_before_a_constant_result_is_declared(
    dimensions: int, padding: str, tf: Any, tmp_path: Path
) -> None:
    """TensorFlow takes one size; behind a Relu, a bias and a convolution it is still known.

    In one dimension, where TensorFlow computes the size, the proof looks for it.
    """
    lengths, stride, kernel = [14, 9, 7][:dimensions], 2, 3
    random = np.random.default_rng(1)
    before = random.standard_normal([kernel] * dimensions + [2, 2]).astype(np.float32)
    filters = random.standard_normal([kernel] * dimensions + [3, 2]).astype(np.float32)
    transposed = (tf.nn.conv1d_transpose, tf.nn.conv2d_transpose, tf.nn.conv3d_transpose)[dimensions - 1]
    sizes = [length * stride - 1 if padding == "SAME" else (length - 1) * stride + kernel for length in lengths]
    strides: Any = stride if dimensions == 1 else [stride] * dimensions

    class Module(tf.Module):
        @tf.function(input_signature=[tf.TensorSpec([None] * (dimensions + 1) + [2], tf.float32, "x")])
        def __call__(self, x: Any) -> dict[str, Any]:
            hidden = (
                tf.nn.relu(x) if dimensions == 1 else tf.nn.relu(tf.nn.convolution(x, before, padding="SAME") + 0.5)
            )
            wanted = tf.stack([tf.shape(x)[0], *sizes, 3])
            return {"y": transposed(hidden, filters, wanted, strides, padding)}

    module = Module()
    tf.saved_model.save(module, str(tmp_path / "m"), signatures=module.__call__.get_concrete_function())
    report = padfix.convert(tmp_path / "m", tmp_path / "m.onnx")
    assert report.verdict is not None
    assert report.verdict.equivalent
    assert len({run.probe for run in report.verdict.runs}) == 6
    (value,) = onnx.load(tmp_path / "m.onnx").graph.input
    declared = [dimension.dim_value for dimension in value.type.tensor_type.shape.dim]
    assert declared == [0, *lengths, 2]


@pytest.mark.parametrize(("rows", "wanted"), [(2, 2), (0, 2), (2, 0), (0, 0)])
def test_the_batch_of_another_input(rows: int, wanted: int, tf: Any) -> None:
    """TensorFlow's kernels, with oneDNN, take two that differ where one is empty, and give as many as are wanted."""
    import onnxruntime

    from padfix.sources.saved_model import finish, freeze_function

    filters = np.random.default_rng(1).standard_normal((3, 3, 3, 2)).astype(np.float32)
    inputs = [tf.TensorSpec([None, None, None, 2], tf.float32, "x"), tf.TensorSpec([None, None, None, 1], name="skip")]
    function = tf.function(
        lambda x, skip: {"y": tf.nn.conv2d_transpose(x, filters, tf.concat([tf.shape(skip)[:3], [3]], 0), 2)},
        input_signature=inputs,
    )
    concrete = function.get_concrete_function()
    source = finish(tf, "saved_model", freeze_function(tf, lambda: (None, concrete)), SourceOptions(), "m", [])
    data = np.random.default_rng(2).standard_normal((rows, 4, 5, 2)).astype(np.float32)
    feeds = {"x": data, "skip": np.zeros((wanted, 7, 10, 1), np.float32)}
    session = onnxruntime.InferenceSession(source.model.proto.SerializeToString())
    found = session.run(None, feeds)[0]
    assert found.shape == (wanted, 7, 10, 3)
    expected = function(**feeds)["y"].numpy() if rows == wanted else np.zeros(found.shape)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)
