"""Products and reductions of an open batch: converted so that ONNX Runtime takes no rows as well."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest

import padfix

pytestmark = pytest.mark.tensorflow
RANDOM = np.random.default_rng(3)
MATRIX = RANDOM.standard_normal((3, 4)).astype(np.float32)

CASES: dict[str, tuple[Callable[[Any, Any], Any], tuple[int, ...], str]] = {
    "a matrix": (lambda tf, x: tf.matmul(MATRIX, x), (4, 5), "Einsum"),
    "under several axes": (lambda tf, x: tf.matmul(MATRIX, x), (2, 4, 5), "Einsum"),
    "on the right": (lambda tf, x: tf.matmul(x, MATRIX), (5, 3), "MatMul"),
    "a truth of all": (lambda tf, x: tf.reduce_all(x > 0, axis=-1), (5,), "ReduceSum"),
    "a truth of any": (lambda tf, x: tf.reduce_any(x > 0, axis=[-1, 1]), (5, 3), "ReduceSum"),
    "an attention": (
        lambda tf, x: tf.einsum("bnts,bsnh->btnh", tf.nn.softmax(tf.einsum("btnh,bsnh->bnts", x, x)), x),
        (5, 2, 3),
        "MatMul",
    ),
    "rows of rows": (lambda tf, x: tf.reshape(x, [tf.shape(x)[0], -1, 3]), (4, 6), "Reshape"),
    "rows of rows and columns": (
        lambda tf, x: tf.reshape(x, [tf.shape(x)[0], -1, tf.shape(x)[2]]),
        (4, 6, 2),
        "Reshape",
    ),
    "rows of another": (
        lambda tf, x: tf.reshape(tf.concat([x, x], 0), [-1, tf.shape(x)[0], 3, 2]),
        (3, 2),
        "Reshape",
    ),
    "of two data": (lambda tf, x: tf.matmul(x, x, transpose_b=True), (5, 3), "MatMul"),
}


@pytest.mark.sweep(8)
@pytest.mark.parametrize("name", CASES)
def test_no_rows_are_taken(name: str, tmp_path: Path) -> None:
    import tensorflow as tf

    product, shape, operator = CASES[name]
    function = tf.function(
        lambda x: product(tf, x), input_signature=[tf.TensorSpec([None, *shape], tf.float32, name="x")]
    )
    module = tf.Module()
    module.f = function
    tf.saved_model.save(module, str(tmp_path / "saved"), signatures=function)
    report = padfix.convert(tmp_path / "saved", tmp_path / "out.onnx")
    assert report.verdict is not None and report.verdict.equivalent
    assert operator in {node.op_type for node in onnx.load(tmp_path / "out.onnx").graph.node}
    session = onnxruntime.InferenceSession(str(tmp_path / "out.onnx"))
    for rows in (0, 1, 3):
        data = RANDOM.standard_normal((rows, *shape)).astype(np.float32)
        (found,) = session.run(None, {session.get_inputs()[0].name: data})
        np.testing.assert_allclose(found, function(data).numpy(), rtol=1e-5, atol=1e-5)


LENGTHS: dict[str, Callable[[Any, Any], Any]] = {
    "rows behind a new axis": lambda tf, x: tf.reshape(x[None] * 2.0, [tf.shape(x)[0], 2, 1, tf.shape(x)[1]]),
    "columns first": lambda tf, x: tf.reshape(x * 2.0, [tf.shape(x)[1], tf.shape(x)[0], 2]),
    "a new axis moved behind the rows": lambda tf, x: tf.transpose((x * 2.0)[None], [1, 0, 2, 3]),
    "a new axis moved to the columns": lambda tf, x: tf.transpose((x * 2.0)[None], [1, 2, 0, 3]),
    "a new axis between": lambda tf, x: tf.reshape(x * 2.0, [2, tf.shape(x)[0], 1, tf.shape(x)[1]]),
}


@pytest.mark.sweep(3)
@pytest.mark.parametrize("name", LENGTHS)
def test_no_rows_are_taken_where_columns_are_open(name: str, tmp_path: Path) -> None:
    """tf2onnx's optimiser writes a zero and an open length, and adds an axis so that the zero is in its place."""
    import tensorflow as tf

    module = tf.Module()
    module.f = tf.function(
        lambda x: LENGTHS[name](tf, x) + 1.0, input_signature=[tf.TensorSpec([None, None, 2], tf.float32, name="x")]
    )
    tf.saved_model.save(module, str(tmp_path / "saved"), signatures=module.f)
    report = padfix.convert(tmp_path / "saved", tmp_path / "out.onnx")
    assert report.verdict is not None and report.verdict.equivalent
    session = onnxruntime.InferenceSession(str(tmp_path / "out.onnx"))
    for shape in ((0, 5, 2), (1, 4, 2), (3, 5, 2)):
        data = RANDOM.standard_normal(shape).astype(np.float32)
        (found,) = session.run(None, {session.get_inputs()[0].name: data})
        np.testing.assert_array_equal(found, module.f(data).numpy())
