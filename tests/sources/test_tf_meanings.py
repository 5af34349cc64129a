"""Operators that tf2onnx gives another meaning, or none, come out with TensorFlow's numbers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import padfix
from padfix.errors import UnsupportedError
from padfix.proof.executors import OnnxRuntimeExecutor
from tests.support.tf_conversion import assert_same_numbers, noise

pytestmark = pytest.mark.tensorflow

IMAGE = np.random.default_rng(1).random((2, 5, 6, 3)).astype("f")
ROWS = noise((6, 4), "float32")
INDICES = np.array([0, 2, -1, 5, 3, -4, 4], "i4")


def same(tf: Any, compute: Callable[..., Any], *values: Any) -> None:
    """Convert ``compute`` of as many inputs and hold it against TensorFlow on ``values``."""
    feed = {f"x{index}": np.asarray(value) for index, value in enumerate(values)}

    def function(**inputs: Any) -> dict[str, Any]:
        result = compute(*(inputs[name] for name in sorted(inputs)))
        return result if isinstance(result, dict) else {"y": result}

    assert_same_numbers(tf, function, [feed], free=False)


@pytest.mark.parametrize("scale", [0.0, 0.3, 1.7, 9.0, -1.0])
def test_saturation_is_cut_to_one(tf: Any, scale: float) -> None:
    same(tf, lambda x: tf.raw_ops.AdjustSaturation(images=x, scale=tf.constant(scale)), IMAGE * 2 - 0.5)


@pytest.mark.parametrize("delta", [-2.7, -0.7, 0.0, 0.3, 1.0, 3.4])
def test_hues_go_round(tf: Any, delta: float) -> None:
    same(tf, lambda x: tf.raw_ops.AdjustHue(images=x, delta=tf.constant(delta)), IMAGE * 2 - 0.5)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_colours_to_hues_and_back(tf: Any, dtype: str) -> None:
    image = np.concatenate([IMAGE, np.zeros_like(IMAGE), np.ones_like(IMAGE), -IMAGE]).astype(dtype)
    same(tf, lambda x: {"h": tf.image.rgb_to_hsv(x), "r": tf.image.hsv_to_rgb(x)}, image)


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int64", "uint8", "int16", "bool"])
def test_an_index_outside_the_depth_is_nowhere_on(tf: Any, dtype: str) -> None:
    if dtype != "bool":
        same(tf, lambda i: tf.one_hot(i, 4, dtype=dtype), INDICES)
    same(tf, lambda i: tf.one_hot(i, 3, on_value=tf.cast(1, dtype), off_value=tf.cast(0, dtype), axis=0), INDICES)


@pytest.mark.parametrize("axis", [-1, 0, 1])
def test_a_depth_that_is_an_input(tf: Any, axis: int) -> None:
    table = INDICES[:6].reshape(2, 3)
    same(tf, lambda i, d: tf.one_hot(i, d, on_value=2.5, off_value=-1.0, axis=axis), table, np.int32(4))


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int64"])
@pytest.mark.parametrize("operator", ["sum", "prod", "mean", "max", "min"])
def test_empty_segments(tf: Any, operator: str, dtype: str) -> None:
    rows = (ROWS * 3).astype(dtype)
    same(tf, lambda x, s: getattr(tf.math, f"segment_{operator}")(x, s), rows, np.array([1, 1, 3, 3, 3, 6], "i4"))


@pytest.mark.parametrize("dtype", ["float32", "int32", "uint8"])
@pytest.mark.parametrize("operator", ["sum", "prod", "max", "min"])
def test_negative_segments_are_left_out(tf: Any, operator: str, dtype: str) -> None:
    rows, whole = (np.abs(ROWS) * 3).astype(dtype), getattr(tf.math, f"unsorted_segment_{operator}")
    same(tf, lambda x, s: whole(x, s, 5), rows, np.array([3, 0, -1, 3, 0, -7], "i4"))
    numbers = np.array([[3, 0, -1, 3], [0, 1, 1, 1], *[[0] * 4] * 2, *[[4] * 4] * 2], "i8")
    same(tf, lambda x, s, n: whole(x, s, n), rows, numbers, np.int32(5))


@pytest.mark.parametrize("operator", ["sum", "mean", "sqrt_n"])
def test_sparse_segments(tf: Any, operator: str) -> None:
    whole, numbers = getattr(tf.sparse, f"segment_{operator}"), np.array([0, 0, 2, 2, 4], "i4")
    places = np.array([0, 3, 2, 5, 1], "i4")
    same(tf, lambda x, i, s: {"a": whole(x, i, s), "b": whole(x, i, s, num_segments=7)}, ROWS, places, numbers)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "int64", "float32", "float64"])
def test_quotients_and_remainders(tf: Any, dtype: str) -> None:
    left = np.array([7, -7, 7, -7, 6, -6, 100, 0]).astype(dtype)
    right = np.array([2, 2, -2, -2, 3, -3, 7, 5]).astype(dtype)

    def function(x: Any, y: Any) -> dict[str, Any]:
        results = {"floor": x // y, "mod": x % y}
        if dtype in ("int32", "int64", "float32", "float64"):
            results["rest"] = tf.truncatemod(x, y)
        if dtype not in ("float32", "float64"):
            results["cut"] = tf.truncatediv(x, y)
        return results

    same(tf, function, left, right)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "int64"])
def test_shifts_keep_the_sign(tf: Any, dtype: str) -> None:
    values = np.array([-128 if dtype[0] == "i" else 128, 77, 1, 0, 127]).astype(dtype)
    by = np.array([1, 3, 7, 2, 0]).astype(dtype)
    same(tf, lambda x, n: {"l": tf.bitwise.left_shift(x, n), "r": tf.bitwise.right_shift(x, n)}, values, by)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_nothing_cancels(tf: Any, dtype: str) -> None:
    small = np.array([1e-7, -3e-6, 0.0, 1e-3, -0.5]).astype(dtype) * 1e-3
    same(tf, lambda x: {"a": tf.math.log1p(x), "b": tf.math.expm1(x)}, small)
    large = np.array([-1.0, 80.0, -90.0, 3.0]).astype(dtype)
    same(tf, lambda x: {"a": tf.math.log1p(tf.abs(x)), "b": tf.math.expm1(x)}, large)


@pytest.mark.parametrize("name", ["log", "tan", "sinh", "cosh", "asinh", "atanh", "acosh"])
def test_double_stays_double(tf: Any, name: str) -> None:
    values = np.array([1e-9, 0.3, 0.95]) + (1.0 if name == "acosh" else 0.0)

    compute = getattr(tf.math, name)
    # Far less than float32 tells apart; what is left of it is the whole result.
    same(tf, lambda x: {"y": compute(x), "d": compute(x * (1 + 1e-9)) - compute(x)}, values)


def test_products_with_zero(tf: Any) -> None:
    left, right = np.array([0.0, 0.0, 2.0, 3.0], "f"), np.array([np.inf, 0.0, 0.0, 4.0], "f")
    same(tf, lambda x, y: {"n": tf.math.multiply_no_nan(y, x), "d": tf.math.xdivy(x, y + 1.0)}, left, right)
    same(tf, lambda x, y: {"l": tf.math.xlogy(x, y), "p": tf.math.xlog1py(x, y)}, left, right + 0.5)


@pytest.mark.parametrize("bits", [8, 5])
@pytest.mark.parametrize("rounding", ["HALF_TO_EVEN", "HALF_UP"])
@pytest.mark.parametrize(("signed", "narrow", "given"), [(s, n, g) for s in (0, 1) for n in (0, 1) for g in (0, 1)])
def test_quantized_and_back(tf: Any, signed: int, narrow: int, given: int, rounding: str, bits: int) -> None:
    ties = np.arange(-20, 21).astype("f") / 8
    options = {"signed_input": bool(signed), "narrow_range": bool(narrow), "range_given": bool(given)}
    low, high = (-2.0 if signed else 0.0), 2 ** (bits - signed) / 16 - 1 / 16

    def function(x: Any) -> dict[str, Any]:
        ranged = {"input": x, "input_min": low, "input_max": high, "round_mode": rounding, **options}
        return {
            "second": tf.raw_ops.QuantizeAndDequantizeV2(num_bits=bits, **ranged),
            "fourth": tf.raw_ops.QuantizeAndDequantizeV4(num_bits=bits, **ranged),
        }

    same(tf, function, ties)


def test_quantized_by_channel_and_with_bits_given_late(tf: Any) -> None:
    def function(x: Any, bits: Any) -> dict[str, Any]:
        given = {"input": x, "input_min": [-1.0, -2.0, 0.0, -4.0], "input_max": [1.0, 1.0, 3.0, 4.0]}
        return {
            "axis": tf.raw_ops.QuantizeAndDequantizeV3(axis=1, num_bits=8, range_given=True, **given),
            "free": tf.raw_ops.QuantizeAndDequantizeV4(input=x, input_min=[0.0] * 6, input_max=[0.0] * 6, axis=0),
            "bits": tf.raw_ops.QuantizeAndDequantizeV3(input=x, input_min=-1.0, input_max=2.0, num_bits=bits),
        }

    same(tf, function, ROWS, np.int32(6))


INSIDE: dict[str, Callable[[Any, Any], Any]] = {
    "pad of bytes": lambda tf, x: tf.pad(
        tf.cast(tf.clip_by_value(x * 9, 0, 9), tf.uint8), [[0, 0], [1, 2], [0, 1], [0, 0]]
    ),
    "pool of integers": lambda tf, x: tf.nn.max_pool2d(tf.cast(x * 2**27, tf.int32), 3, 2, "SAME"),
    "convolution in bfloat16": lambda tf, x: tf.nn.conv2d(
        tf.cast(tf.round(x * 8), tf.bfloat16), tf.ones([3, 3, 3, 2], tf.bfloat16), 2, "SAME"
    ),
    "pad before explicit paddings": lambda tf, x: tf.nn.conv2d(
        tf.pad(x, [[0, 0], [1, 0], [0, 2], [0, 0]]), tf.ones([3, 3, 3, 2]), 1, [[0, 0], [2, 1], [0, 1], [0, 0]]
    ),
    "fused pad": lambda tf, x: tf.raw_ops.FusedPadConv2D(
        input=x[:1],
        paddings=[[0, 0], [1, 1], [1, 1], [0, 0]],
        filter=tf.ones([3, 3, 3, 2]),
        mode="REFLECT",
        strides=[1, 1, 1, 1],
        padding="VALID",
    ),
    "hues": lambda tf, x: tf.image.rgb_to_hsv(x),
}


@pytest.mark.parametrize("lowered", [True, False], ids=["lowered", "functional"])
@pytest.mark.parametrize("where", ["condition", "loop", "call"])
@pytest.mark.parametrize("inside", INSIDE, ids=lambda name: name.replace(" ", "-"))
def test_inside_of_control_flow(tf: Any, inside: str, where: str, lowered: bool, tmp_path: Path) -> None:
    """Every handler and cast works in the bodies of conditions, loops and functions as outside of them."""
    from tensorflow.python.framework.convert_to_constants import convert_variables_to_constants_v2

    def compute(x: Any) -> Any:
        return tf.cast(INSIDE[inside](tf, x), tf.float32)

    def function(x: Any) -> Any:
        if where == "condition":
            return tf.cond(tf.reduce_sum(x) > 0, lambda: compute(x), lambda: compute(x[:, ::-1]))
        if where == "call":
            return tf.function(compute, autograph=False)(x)
        start = (tf.constant(0), tf.zeros_like(compute(x)))
        return tf.while_loop(lambda i, a: i < 2, lambda i, a: (i + 1, a + compute(x * tf.cast(i, tf.float32))), start)[
            1
        ]

    concrete = tf.function(function, autograph=False).get_concrete_function(tf.TensorSpec(IMAGE.shape, name="x"))
    frozen = convert_variables_to_constants_v2(concrete, lower_control_flow=lowered)
    (tmp_path / "m.pb").write_bytes(frozen.graph.as_graph_def().SerializeToString())
    padfix.convert(tmp_path / "m.pb", tmp_path / "m.onnx")
    image = IMAGE if "fused" not in inside else IMAGE[:1].repeat(2, 0)  # the kernel mixes the images of a batch
    (found,) = OnnxRuntimeExecutor((tmp_path / "m.onnx").read_bytes(), optimised=True).run({"x": image}).values()
    np.testing.assert_allclose(found, concrete(tf.constant(image)).numpy(), rtol=1e-5, atol=1e-5)


def test_quantized_types_inside_a_function_are_refused(tf: Any, tmp_path: Path) -> None:
    def compute(x: Any) -> Any:
        return tf.quantization.quantize(x, -1.0, 1.0, tf.quint8).output

    def function(x: Any) -> Any:
        return tf.cond(tf.reduce_sum(x) > 0, lambda: tf.cast(compute(x), tf.float32), lambda: x)

    module = tf.Module()
    module.f = tf.function(function, autograph=False)
    concrete = module.f.get_concrete_function(tf.TensorSpec([3], name="x"))
    tf.saved_model.save(module, str(tmp_path / "m"), signatures=concrete)
    with pytest.raises(UnsupportedError, match="quantized types"):
        padfix.convert(tmp_path / "m", tmp_path / "m.onnx")


@pytest.mark.parametrize(
    ("start", "step", "offset", "how"),
    [(2, 1, 0, "from index 2 on"), (0, 2, 0, "other steps"), (0, 1, 1, "another index"), (5, -1, 0, "from index 5 on")],
)
def test_a_loop_that_writes_out_of_order_is_refused(
    tf: Any, start: int, step: int, offset: int, how: str, tmp_path: Path
) -> None:
    """With a single row every order is right, and tf2onnx takes any for the first."""

    def function(x: Any) -> dict[str, Any]:
        rows = tf.TensorArray(tf.float32, 8, element_shape=[4])

        def write(index: Any, rows: Any) -> Any:
            return index + step, rows.write(index + offset if offset else index, x[index])

        return {"y": tf.while_loop(lambda i, _: (i >= 0) & (i < 6), write, [tf.constant(start), rows])[1].stack()}

    module = tf.Module()
    module.f = tf.function(function, autograph=False)
    concrete = module.f.get_concrete_function(tf.TensorSpec([6, 4], name="x"))
    tf.saved_model.save(module, str(tmp_path / "m"), signatures=concrete)
    with pytest.raises(UnsupportedError, match=f"TensorArray .*{how}.* first element"):
        padfix.convert(tmp_path / "m", tmp_path / "m.onnx")
