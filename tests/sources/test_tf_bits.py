"""Bits, counts, bands and blocks come out as TensorFlow has them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import ModelProto

from padfix.proof.executors import OnnxRuntimeExecutor
from tests.support.tf_conversion import assert_same_numbers

pytestmark = [pytest.mark.tensorflow, pytest.mark.sweep(2)]

RANDOM = np.random.default_rng(3)
PAIRS = [
    *[("float16", "int16"), ("float16", "uint16"), ("float32", "int32"), ("float32", "uint32"), ("float64", "int64")],
    *[("float64", "uint64"), ("int32", "uint32"), ("uint8", "int8"), ("int64", "int64")],
]


def same(tf: Any, result: Any, *values: Any) -> ModelProto:
    feed = {f"x{index}": np.asarray(value) for index, value in enumerate(values)}
    return assert_same_numbers(
        tf, lambda **given: {"y": result(*(given[name] for name in sorted(given)))}, [feed], free=False
    )


def numbers(dtype: str) -> np.ndarray[Any, Any]:
    """Every exponent, edges, and zeros of both signs; none below the least normal one, which TensorFlow may drop."""
    if np.dtype(dtype).kind != "f":
        information = np.iinfo(dtype)
        return RANDOM.integers(information.min, information.max, 99, dtype, endpoint=True)
    layout = np.finfo(dtype)
    powers = np.ldexp(np.ones(1, dtype), np.arange(layout.minexp, layout.maxexp)).astype(dtype)
    near = [np.nextafter(powers, np.zeros(1, dtype)), np.nextafter(powers, layout.max)]
    random = (powers * (1 + RANDOM.random(len(powers)))).astype(dtype)
    found = np.concatenate([powers, *near, random, [0.0, np.inf, layout.max]]).astype(dtype)
    found = found[~(np.abs(found) < layout.tiny) | (found == 0)]
    return np.concatenate([found, -found])


@pytest.mark.parametrize(("first", "second"), PAIRS)
def test_bits(tf: Any, first: str, second: str) -> None:
    values = numbers(first)
    same(tf, lambda x: tf.bitcast(x, second), values)
    model = same(tf, lambda x: tf.bitcast(x, first), values.view(second))
    back = OnnxRuntimeExecutor(model.SerializeToString(), optimised=True).run({"x0": values.view(second)})
    assert back["y"].tobytes() == values.tobytes()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_numbers_that_are_none(tf: Any, dtype: str) -> None:
    whole = f"int{np.dtype(dtype).itemsize * 8}"
    same(tf, lambda x: tf.bitcast(x, whole), np.array([np.nan, 1.0], dtype))
    same(
        tf, lambda x: tf.cast(tf.math.is_nan(tf.bitcast(x, dtype)), tf.int32), np.array([np.nan, 1], dtype).view(whole)
    )


@pytest.mark.sweep(6)
@pytest.mark.parametrize("binary", [False, True])
@pytest.mark.parametrize("dtype", ["int32", "int64", "float32", "float64"])
def test_counts(tf: Any, dtype: str, binary: bool) -> None:
    def counted(x: Any, w: Any) -> Any:
        return tf.raw_ops.DenseBincount(input=x, size=tf.constant(5, x.dtype), weights=w, binary_output=binary)

    for shape in ((7,), (3, 4), (0, 4), (0,)):
        given = RANDOM.integers(0, 8, shape)
        for index in ("int32", "int64"):
            same(tf, lambda x: counted(x, tf.zeros([0], dtype)), given.astype(index))
        if not binary:
            same(tf, counted, given, (RANDOM.random(shape) * 9).astype(dtype))
    same(tf, lambda x: tf.raw_ops.Bincount(arr=x, size=5, weights=tf.zeros([0], dtype)), given.astype("i4"))


@pytest.mark.parametrize("dtype", ["float32", "int32", "bool"])
def test_a_band_of_what_is_infinite(tf: Any, dtype: str) -> None:
    matrix = np.full((2, 4, 5), np.inf if dtype == "float32" else 1).astype(dtype)
    for lower, upper in ((1, 0), (-1, 2), (0, -1), (4, 1), (-1, -1)):
        same(tf, lambda x, low=lower, up=upper: tf.linalg.band_part(x, low, up), matrix)
    same(tf, lambda x, n: tf.linalg.band_part(x, n, 1), matrix[:0], np.int64(1))
    same(tf, lambda x, n: tf.linalg.band_part(x, n, n), matrix, np.int32(1))


@pytest.mark.parametrize("dtype", ["float32", "int32", "uint8"])
def test_a_block_is_exchanged(tf: Any, dtype: str) -> None:
    from tensorflow.compiler.tf2xla.ops import gen_xla_ops  # type: ignore[import-not-found, import-untyped, unused-ignore]

    data, block = (RANDOM.random(shape).astype(dtype) + np.ones(1, dtype) for shape in ((2, 5, 6), (2, 3, 2)))
    for starts in ((0, 1, 2), (1, 4, 5), (0, -1, 0)):
        same(
            tf,
            lambda x, b, i: gen_xla_ops.xla_dynamic_update_slice(input=x, update=b, indices=i),
            *(data, block, np.array(starts, "i4")),
        )


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int64"])
def test_histograms(tf: Any, dtype: str) -> None:
    values = (np.concatenate([np.arange(-20, 40), RANDOM.integers(-30, 50, 60)]) / 4).astype(dtype)
    ends = np.array([-3, 7], dtype)
    for bins, wanted in ((5, "int32"), (7, "int64"), (1, "int32")):
        same(tf, lambda x, n=bins, w=wanted: tf.histogram_fixed_width(x, ends, n, w), values.reshape(2, -1))
    same(tf, lambda x, e, n: tf.histogram_fixed_width(x, e, n), values[:0], ends, np.int32(3))


@pytest.mark.parametrize("dtype", ["float32", "int32"])
def test_diagonals_of_all_axes(tf: Any, dtype: str) -> None:
    for shape in ((4,), (2, 3), (0, 2)):
        same(tf, tf.linalg.tensor_diag, RANDOM.random(shape).astype(dtype) + np.ones(1, dtype))
        same(tf, tf.linalg.tensor_diag_part, RANDOM.random(shape * 2).astype(dtype) + np.ones(1, dtype))


@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_products_of_transposed_integers(tf: Any, dtype: str) -> None:
    left, right = (RANDOM.integers(-9, 9, (2, 3, 4)).astype(dtype) for _ in range(2))
    same(tf, lambda x, y: tf.matmul(x, y, adjoint_b=True), left, right)
    same(tf, lambda x, y: tf.matmul(x, y, transpose_a=True), left, right)
