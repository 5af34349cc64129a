"""Sparse tensors are reordered, multiplied and summed as TensorFlow does."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.support.tf_conversion import assert_same_numbers

pytestmark = pytest.mark.tensorflow

RANDOM = np.random.default_rng(8)
DENSE = np.where(RANDOM.random((2, 4, 5)) < 0.4, RANDOM.standard_normal((2, 4, 5)), 0).astype("f")


def same(tf: Any, compute: Any) -> None:
    """Hold ``compute`` of a sparse tensor of three axes against TensorFlow, with numbers and without."""
    feeds = [{"x": DENSE}, {"x": np.zeros_like(DENSE)}]
    assert_same_numbers(tf, lambda x: {"y": compute(tf.sparse.from_dense(x))}, feeds, free=True)


def test_places_row_by_row(tf: Any) -> None:
    same(tf, lambda x: tf.sparse.to_dense(tf.sparse.transpose(x, [2, 0, 1])))
    same(tf, lambda x: tf.sparse.transpose(x, [1, 2, 0]).indices)


@pytest.mark.parametrize("keepdims", [False, True])
@pytest.mark.parametrize("axis", [0, -1, [0, 2], [0, 1, 2], None])
def test_sums(tf: Any, axis: Any, keepdims: bool) -> None:
    same(tf, lambda x: tf.sparse.reduce_sum(x, axis, keepdims))


@pytest.mark.parametrize("adjoint_b", [False, True])
@pytest.mark.parametrize("adjoint_a", [False, True])
def test_products_with_a_matrix(tf: Any, adjoint_a: bool, adjoint_b: bool) -> None:
    weights = tf.constant(RANDOM.standard_normal((8 if adjoint_a else 5, 3)).astype("f"))
    weights = tf.transpose(weights) if adjoint_b else weights

    def compute(x: Any) -> Any:
        matrix = tf.sparse.reshape(x, [8, 5])
        return tf.sparse.sparse_dense_matmul(matrix, weights, adjoint_a, adjoint_b)

    same(tf, compute)
