"""Operators that tf2onnx gives another meaning, or none, come out with TensorFlow's numbers."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import padfix
from padfix.errors import UnsupportedError
from padfix.proof.executors import OnnxRuntimeExecutor
from tests.support.tf_conversion import assert_same_numbers, noise

pytestmark = [pytest.mark.tensorflow, pytest.mark.sweep(3)]

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


@pytest.mark.sweep(6)
@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int64"])
@pytest.mark.parametrize("operator", ["sum", "prod", "mean", "max", "min"])
def test_empty_segments(tf: Any, operator: str, dtype: str) -> None:
    rows = (ROWS * 3).astype(dtype)
    same(tf, lambda x, s: getattr(tf.math, f"segment_{operator}")(x, s), rows, np.array([1, 1, 3, 3, 3, 6], "i4"))


@pytest.mark.sweep(2)
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


def gradient(tf: Any, compute: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Return what gives the gradient of ``compute`` before it, where that behind it is not one."""

    def slope(x: Any) -> Any:
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = compute(x)
        return tape.gradient(y, x, output_gradients=x + 2.0)

    return slope


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    "name", ["relu", "relu6", "leaky_relu", "elu", "selu", "softplus", "softsign", "tanh", "sigmoid"]
)
def test_slopes_of_activations(tf: Any, name: str, dtype: str) -> None:
    values = np.array([-95.0, -3.0, -0.2, -0.0, 0.0, 0.7, 5.9, 6.0, 7.0, 90.0]).astype(dtype)
    same(tf, gradient(tf, getattr(tf.nn, name)), values)


@pytest.mark.parametrize("name", ["sqrt", "rsqrt", "reciprocal"])
def test_slopes_of_roots_and_reciprocals(tf: Any, name: str) -> None:
    same(tf, gradient(tf, getattr(tf.math, name)), np.array([0.01, 0.5, 3.0, 1e6], "f"))


def test_products_with_zero(tf: Any) -> None:
    left, right = np.array([0.0, 0.0, 2.0, 3.0], "f"), np.array([np.inf, 0.0, 0.0, 4.0], "f")
    same(tf, lambda x, y: {"n": tf.math.multiply_no_nan(y, x), "d": tf.math.xdivy(x, y + 1.0)}, left, right)
    same(tf, lambda x, y: {"l": tf.math.xlogy(x, y), "p": tf.math.xlog1py(x, y)}, left, right + 0.5)


@pytest.mark.sweep(3)
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


@pytest.mark.sweep(8)
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


@pytest.mark.sweep(4)
@pytest.mark.parametrize(("start", "step", "offset"), [(2, 1, 0), (0, 2, 0), (0, 1, 1), (5, -1, 0), (0, 1, 0)])
@pytest.mark.parametrize("known", [True, False])
def test_a_loop_may_write_in_any_order_and_end_early(tf: Any, start: int, step: int, offset: int, known: bool) -> None:
    """Eight rows, of which the loop writes some; with a single row every order is right."""

    def rows_of(x: Any) -> Any:
        rows = tf.TensorArray(tf.float32, 8, element_shape=[4] if known else [None])

        def write(index: Any, rows: Any) -> Any:
            return index + step, rows.write(index + offset if offset else index, x[index])

        return tf.while_loop(lambda i, _: (i >= 0) & (i < 6), write, [tf.constant(start), rows])[1].stack()

    same(tf, tf.function(rows_of, autograph=False), ROWS)


def test_a_list_that_grows_from_an_index_that_is_an_input(tf: Any) -> None:
    def rows_of(x: Any, start: Any) -> Any:
        rows = tf.TensorArray(tf.float32, 0, dynamic_size=True, element_shape=[4])
        loop = tf.while_loop(
            lambda i, _: i < 6, lambda i, rows: (i + 1, rows.write(i, x[i] * 2)), [start, rows], maximum_iterations=9
        )
        return loop[1].stack()

    same(tf, tf.function(rows_of, autograph=False), ROWS, np.array(3, "i4"))


def test_what_is_inside_a_loop_or_a_condition_is_converted_as_outside(tf: Any) -> None:
    """Handlers, casts to wider types and fused windows, two graphs deep."""

    def inner(x: Any) -> Any:
        kernel = tf.reshape(tf.range(9.0), [3, 3, 1, 1]) / 9
        pooled = tf.nn.max_pool2d(tf.cast(x * 100, tf.int32), 2, 1, "SAME")
        padded = tf.nn.conv2d(tf.pad(x, [[0, 0], [1, 1], [2, 0], [0, 0]]), kernel, 1, [[0, 0], [1, 0], [0, 1], [0, 0]])
        hue = tf.image.adjust_saturation(tf.concat([x, x * 2, x + 0.1], 3), 0.6)[..., :1]
        sized = tf.image.resize(padded, [5, 6], "bicubic")
        return sized + hue + tf.cast(pooled, tf.float32)

    def function(x: Any) -> Any:
        def turn(index: Any, image: Any) -> Any:
            return index + 1, tf.cond(tf.reduce_sum(image) > 1e6, lambda: image, lambda: inner(image))

        return tf.while_loop(lambda i, _: i < 2, turn, [tf.constant(0), x], [tf.TensorShape([]), x.shape])[1]

    same(tf, tf.function(function, autograph=False), np.abs(IMAGE[:, :, :, :1]))


@pytest.mark.sweep(6)
@pytest.mark.parametrize("operation", ["a-b", "b-a", "intersection", "union"])
@pytest.mark.parametrize("shape", [(1, 7), (2, 3, 5)])
def test_sets(tf: Any, operation: str, shape: tuple[int, ...]) -> None:
    random = np.random.default_rng(3)
    first, second = (random.integers(0, 6, shape).astype("i4") for _ in range(2))

    def result(x: Any, y: Any) -> dict[str, Any]:
        found = tf.raw_ops.DenseToDenseSetOperation(set1=x, set2=y, set_operation=operation)
        return dict(zip("ivs", found, strict=True))

    same(tf, result, first, second)
    same(tf, result, first, first)


def test_differences_of_lists_keep_order_and_repeats(tf: Any) -> None:
    def result(x: Any, y: Any) -> dict[str, Any]:
        return dict(zip("oi", tf.raw_ops.ListDiff(x=x, y=y), strict=True))

    same(tf, result, np.array([5, 1, 1, 9, -4], "i4"), np.array([9, 7], "i4"))
    same(tf, result, np.array([5, 1], "i4"), np.array([], "i4"))


@pytest.mark.parametrize("dtype", ["i4", "f4"])
def test_ragged_ranges_run_either_way_or_are_empty(tf: Any, dtype: str) -> None:
    def result(x: Any, y: Any, z: Any) -> dict[str, Any]:
        return dict(zip("sv", tf.raw_ops.RaggedRange(starts=x, limits=y, deltas=z), strict=True))

    start, limit, step = (np.array(each, dtype) for each in ([0, 5, 3, 2, 7], [7, -2, 3, 9, 1], [3, -2, 1, -1, -3]))
    same(tf, result, start, limit, step)
    same(tf, result, np.array(9, dtype), limit, np.array(-2, dtype))


@pytest.mark.parametrize("merge", [False, True])
@pytest.mark.parametrize("blank", [-1, 0, 2])
def test_greedy_decoding(tf: Any, merge: bool, blank: int) -> None:
    def result(x: Any, lengths: Any) -> dict[str, Any]:
        found = tf.raw_ops.CTCGreedyDecoder(inputs=x, sequence_length=lengths, merge_repeated=merge, blank_index=blank)
        return dict(zip("ivsp", found, strict=True))

    same(tf, result, noise((9, 4, 3), "float32"), np.array([9, 4, 0, 7], "i4"))


def test_stitched_rows(tf: Any) -> None:
    """The last of two rows for one place counts."""

    def result(x: Any, y: Any) -> Any:
        return tf.raw_ops.DynamicStitch(indices=[[0, 3, 1], [[2, 1], [5, 4]]], data=[x, y])

    same(tf, result, noise((3, 2), "float32"), noise((2, 2, 2), "float32"))


@pytest.mark.sweep(6)
@pytest.mark.parametrize("align", ["LEFT_RIGHT", "RIGHT_LEFT", "LEFT_LEFT", "RIGHT_RIGHT"])
@pytest.mark.parametrize("band", [(0, 0), (-1, 2), (2, 3), (-2, -1)])
def test_diagonals(tf: Any, align: str, band: tuple[int, int]) -> None:
    def result(x: Any) -> dict[str, Any]:
        part = tf.linalg.diag_part(x, k=band, padding_value=7.0, align=align)
        square = tf.linalg.diag(part, k=band, padding_value=-3.0, align=align)
        return {"p": part, "d": square, "s": tf.linalg.set_diag(x, part * 2, k=band, align=align)}

    same(tf, result, noise((2, 4, 5), "float32"))


def test_a_band_that_is_an_input(tf: Any) -> None:
    """One diagonal has an axis less than several."""

    def result(x: Any, k: Any) -> Any:
        return tf.raw_ops.MatrixDiagPartV3(input=x, k=k, padding_value=0.5, align="RIGHT_LEFT")

    for band in ([-1, 1], [1, 1]):
        same(tf, result, noise((2, 4, 5), "float32"), np.array(band, "i4"))


def test_numbers_that_meet_in_one_place(tf: Any) -> None:
    places = np.array([[1, 0], [1, 0], [2, 3], [0, 1], [2, 3]], "i4")

    def result(x: Any, y: Any, places: Any = places) -> dict[str, Any]:
        return {
            "n": tf.scatter_nd(places, y, [3, 4]),
            "a": tf.tensor_scatter_nd_add(x, places, y),
            "s": tf.tensor_scatter_nd_sub(x, places, y),
            "h": tf.tensor_scatter_nd_max(x, places, y),
            "l": tf.tensor_scatter_nd_min(x, places, y),
            "r": tf.scatter_nd(places[:, :1], tf.tile(y[:, None], [1, 2]), [3, 2]),
        }

    same(tf, result, noise((3, 4), "float32"), noise((5,), "float32"))


def test_letters_of_ascii_change_their_case(tf: Any) -> None:
    words = np.array([["a\u2660B", "\u00c4\u00e9x"], ["", "Hi There"]], object)
    same(tf, lambda x: {"l": tf.strings.lower(x), "u": tf.strings.upper(x)}, words)


def test_truth_and_whole_numbers_as_text(tf: Any) -> None:
    same(tf, tf.strings.as_string, np.array([True, False]))
    same(tf, tf.strings.as_string, np.array([-3, 2**40], "i8"))


def test_floats_as_text_are_refused_with_the_reason(tf: Any) -> None:
    with pytest.raises(UnsupportedError, match="AsString writes six digits behind the point"):
        same(tf, tf.strings.as_string, noise((3,), "float32"))


@pytest.mark.parametrize("port", [0, 1])
def test_the_statistics_of_a_normalisation_are_refused_by_name(tf: Any, port: int) -> None:
    def function(x: Any) -> Any:
        ones = tf.ones(3)
        made = tf.raw_ops.FusedBatchNormV3(x=x, scale=ones, offset=ones, mean=ones, variance=ones, is_training=False)
        return made[0] + made[port]

    with pytest.raises(UnsupportedError, match="FusedBatchNormV3") if port else contextlib.nullcontext():
        same(tf, function, IMAGE)


@pytest.mark.parametrize("step", [0.1, -0.3, 1e-3])
def test_ranges_of_floats_have_as_many_numbers(tf: Any, step: float) -> None:
    end = -1.0 if step < 0 else 1.0
    same(tf, lambda x: tf.range(0.0, end, x), np.array(step, "f"))


@pytest.mark.parametrize("exclusive", [False, True])
@pytest.mark.parametrize("reverse", [False, True])
def test_cumulative_logarithms_of_sums(tf: Any, exclusive: bool, reverse: bool) -> None:
    def result(x: Any) -> Any:
        found = tf.raw_ops.CumulativeLogsumexp(x=x, axis=1, exclusive=exclusive, reverse=reverse)
        return tf.where(tf.math.is_inf(found), 123.0, found)

    same(tf, result, noise((2, 5, 3), "float32") * 50)


def test_euclidean_norms_and_inverses(tf: Any) -> None:
    square = noise((2, 3, 3), "float32") + 4 * np.eye(3, dtype="f")
    same(tf, lambda x: {"n": tf.math.reduce_euclidean_norm(x, [0, 2]), "i": tf.linalg.inv(x)}, square)
    same(tf, lambda x: tf.linalg.inv(x, adjoint=True), square)


def test_bfloat16_is_computed_in_float32(tf: Any) -> None:
    def result(x: Any) -> Any:
        narrow = tf.cast(x, tf.bfloat16)
        return tf.cast(tf.nn.relu(narrow * narrow + tf.cast(0.3, tf.bfloat16)) - tf.exp(narrow), tf.float32)

    same(tf, result, ROWS)


@pytest.mark.parametrize("dtype", ["f8", "i1", "f4"])
def test_numbers_are_sorted_in_their_own_type(tf: Any, dtype: str) -> None:
    values = (np.arange(10)[::-1] // 2 * (1e-12 if dtype == "f8" else 1) + 1).reshape(2, 5).astype(dtype)

    def result(x: Any) -> dict[str, Any]:
        found = tf.math.top_k(x, 3)
        return {"v": found.values, "i": found.indices, "s": tf.argsort(x, stable=True)}

    same(tf, result, values)


@pytest.mark.parametrize("side", ["left", "right"])
def test_places_among_rising_numbers(tf: Any, side: str) -> None:
    rising, values = np.array([-1, 0, 0, 2.5], "f"), np.array([-2, 0, 2.5, 3, 1], "f")
    same(tf, lambda x, y: tf.searchsorted(x, y, side), rising, values)
    same(tf, lambda x: tf.raw_ops.Bucketize(input=x, boundaries=[-1.0, 0.0, 2.5]), values)


@pytest.mark.parametrize("dtype", ["float32", "int32", "uint8", "uint64"])
def test_what_occurs_where_and_how_often(tf: Any, dtype: str) -> None:
    rows = np.array([[3, 1], [2, 2], [3, 1], [0, 255]]).astype(dtype)

    def whole(x: Any) -> dict[str, Any]:
        values, places, counts = tf.unique_with_counts(tf.reshape(x, [-1]), out_idx="int64")
        return {"v": values, "p": places, "c": counts}

    def along(x: Any) -> dict[str, Any]:
        values, places, counts = tf.raw_ops.UniqueWithCountsV2(x=x, axis=[0])
        return {"v": values, "p": places, "c": counts}

    same(tf, whole, rows)
    same(tf, along, rows)


@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_shapes_of_several_at_once(tf: Any, dtype: str) -> None:
    def shapes(x0: Any, x1: Any) -> dict[str, Any]:
        one, other = tf.raw_ops.ShapeN(input=[x0, x1], out_type=dtype)
        return {"a": one, "b": tf.reshape(x1, tf.reverse(other, [0]))}

    feed = {"x0": np.ones((2, 5, 3), "f"), "x1": ROWS.reshape(1, 4, 6)}
    assert_same_numbers(tf, shapes, [feed], free=True)


@pytest.mark.parametrize("sizes", [[1, -1, 2], [2, 2, 1]])
@pytest.mark.parametrize("constant", [True, False])
def test_a_split_leaves_one_length_open(tf: Any, sizes: list[int], constant: bool) -> None:
    feed = {"x0": np.arange(30, dtype="f").reshape(2, 5, 3), "x1": np.array(sizes, "i4")}

    def pieces(x0: Any, x1: Any) -> dict[str, Any]:
        found = tf.split(x0, sizes if constant else x1, axis=1, num=3)
        return {"a": found[0], "b": found[1], "c": found[2] + tf.cast(tf.reduce_sum(x1), tf.float32)}

    assert_same_numbers(tf, pieces, [feed], free=True)


@pytest.mark.parametrize("reverse", [True, False])
@pytest.mark.parametrize("exclusive", [True, False])
@pytest.mark.parametrize("dtype", ["float32", "int32", "float64"])
def test_products_up_to_a_place(tf: Any, reverse: bool, exclusive: bool, dtype: str) -> None:
    """A zero behind what overflows in another order stays a zero."""
    numbers = np.tile(np.array([2, 0, 3, -9, 70, 80], dtype), (2, 4)).reshape(2, 24, 1).repeat(3, 2)
    numbers[1] = np.arange(72).reshape(24, 3) - 30
    same(tf, lambda x: tf.math.cumprod(x, 1, exclusive, reverse), numbers)


@pytest.mark.parametrize("reverse", [True, False])
def test_products_of_no_rows(tf: Any, reverse: bool) -> None:
    feeds = [{"x": np.full((count, 3, 2), 2, "f")} for count in (4, 0)]
    assert_same_numbers(tf, lambda x: {"y": tf.math.cumprod(x, 0, reverse=reverse)}, feeds, free=True)


@pytest.mark.parametrize("channels", [3, 40])
def test_a_normalisation_by_neighbours_forgets_nothing(tf: Any, channels: int) -> None:
    random = np.random.default_rng(2)
    image = (random.standard_normal((1, 4, 5, channels)) * 2.0 ** random.uniform(-9, 9, (1, 4, 5, channels))).astype(
        "f"
    )
    same(tf, lambda x: tf.nn.lrn(x), image)
    same(tf, lambda x: tf.nn.lrn(x, 2, 1.5, 1e-3, 0.75), image)


@pytest.mark.parametrize(
    ("equation", "shapes"),
    [
        ("btnh,bsnh->bnts", ((2, 5, 3, 4), (2, 6, 3, 4))),
        ("ij,jk->ki", ((2, 3), (3, 4))),
        ("abc,cde->abde", ((2, 3, 4), (4, 2, 3))),
        ("ab,ab->a", ((2, 3), (2, 3))),
        ("aB,cB->aBc", ((2, 3), (4, 3))),
        ("...ij,...jk->...ik", ((2, 2, 3), (2, 3, 4))),
    ],
)
def test_sums_of_products(tf: Any, equation: str, shapes: tuple[tuple[int, ...], ...]) -> None:
    feed = {f"x{number}": noise(shape, "float32", number) for number, shape in enumerate(shapes)}
    assert_same_numbers(tf, lambda x0, x1: {"y": tf.einsum(equation, x0, x1)}, [feed], free=True)


@pytest.mark.parametrize("classes", [1, 3])
@pytest.mark.parametrize(("total", "is_short", "is_clipped"), [(4, False, True), (40, False, False), (40, True, True)])
def test_the_best_boxes_of_each_class(tf: Any, classes: int, total: int, is_short: bool, is_clipped: bool) -> None:
    random = np.random.default_rng(4)
    middles, sizes = random.random((2, 12, classes, 2)), random.random((2, 12, classes, 2)) * 0.4
    boxes = np.concatenate([middles - sizes, middles + sizes], -1).astype("f")
    scores = random.random((2, 12, 3)).astype("f")

    def chosen(boxes: Any, scores: Any) -> dict[str, Any]:
        found = tf.image.combined_non_max_suppression(boxes, scores, 3, total, 0.4, 0.2, is_short, is_clipped)
        return dict(zip(("found", "best", "owners", "count"), found, strict=True))

    same(tf, chosen, boxes, scores)
    same(tf, chosen, boxes[:, :1], scores[:, :1])


def test_places_of_a_depth_that_is_open(tf: Any, tmp_path: Path) -> None:
    module = tf.Module()
    specifications = [tf.TensorSpec([None, None], tf.int32, "i"), tf.TensorSpec([None, None, None], tf.float32, "u")]
    module.call = tf.function(lambda i, u: tf.scatter_nd(i, u, [4, 3, 2]), input_signature=specifications)
    tf.saved_model.save(module, str(tmp_path / "m"), signatures=module.call)
    report = padfix.convert(tmp_path / "m", tmp_path / "m.onnx", shapes={"i": [2, 1], "u": [2, 3, 2]})
    assert report.verdict is not None and report.verdict.equivalent


def test_places_in_a_shape_of_any_rank(tf: Any) -> None:
    import onnxruntime

    from padfix.sources import SourceOptions
    from padfix.sources.saved_model import finish, freeze_function

    types = [([None, None], tf.int32), ([None], tf.float32), ([None], tf.int32)]
    specifications = [tf.TensorSpec(shape, dtype, name) for name, (shape, dtype) in zip("ius", types, strict=True)]
    function = tf.function(lambda i, u, s: {"y": tf.scatter_nd(i, u, s)}, input_signature=specifications)
    concrete = function.get_concrete_function()
    source = finish(tf, "saved_model", freeze_function(tf, lambda: (None, concrete)), SourceOptions(), "m", [])
    session = onnxruntime.InferenceSession(source.model.proto.SerializeToString())
    for places, shape in (([[0, 1], [2, 2], [2, 2]], [4, 3]), ([[4], [0], [4]], [6])):
        feed = {"i": np.array(places, "i4"), "u": np.array([1, 2, 3], "f4"), "s": np.array(shape, "i4")}
        np.testing.assert_array_equal(session.run(None, feed)[0], function(**feed)["y"].numpy())


def test_windows_over_an_image_of_unknown_rank(tf: Any) -> None:
    """TensorFlow's inference loses the rank behind a shape that is an input; each window takes one rank alone."""
    image = np.random.default_rng(5).standard_normal((1, 6, 7, 2)).astype("f")
    same(
        tf,
        lambda x, shape: tf.nn.max_pool_with_argmax(tf.broadcast_to(x, shape), 2, 2, "SAME")[0],
        image,
        np.array([2, 6, 7, 2], "i4"),
    )


@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_all_that_is_left_behind_a_place_that_is_computed(tf: Any, dtype: str) -> None:
    for place in range(4):
        same(tf, lambda x, begin: tf.slice(x, begin, [-1, 3]), ROWS, np.array([place, 1], dtype))


SLICES: dict[str, Callable[[Any, Any], Any]] = {
    "ends": lambda x, n: x[: n[0], n[1] :, ..., n[3] : n[2]],
    "one row": lambda x, n: x[n[3], :, n[0]],
    "ellipsis and new axes": lambda x, n: x[..., None, n[3], None, : n[0]],
    "steps": lambda x, n: x[::2, n[1] :: -1, ::-1],
    "a start before the first": lambda x, n: x[:, n[4] :: -2, n[4] : n[0]],
    "constants": lambda x, n: x[-9::-1, ..., None, 1:],
}


@pytest.mark.parametrize("free", [False, True], ids=["fixed", "free"])
@pytest.mark.parametrize("case", SLICES)
def test_strided_slices(tf: Any, case: str, free: bool) -> None:
    image = np.arange(120, dtype="f").reshape(2, 5, 4, 3)
    feeds = [{"n": np.array(n, "i4"), "x": image} for n in ([1, 2, 3, -1, -9], [2, 4, -1, 0, -7])]
    assert_same_numbers(tf, lambda n, x: {"y": SLICES[case](x, n)}, feeds, free)


def test_a_slice_ends_at_any_integer(tf: Any) -> None:
    """tf2onnx's ends were float32, which has no 2**24 + 1."""
    long = np.zeros((1, 2**24 + 3), "u1")
    same(tf, lambda x, n: tf.shape(x[:, : n[0]]), long, np.array([2**24 + 1], "i4"))


@pytest.mark.parametrize(("shift", "axis"), [(1, 0), ([2], [1]), ([-7, 9], [-1, 0]), ([1, 1, 2], [0, 1, 0])])
def test_rolls(tf: Any, shift: Any, axis: Any) -> None:
    same(tf, lambda x: tf.roll(x, shift, axis), ROWS)
    same(tf, lambda x, n: tf.roll(x, n, axis), ROWS, np.array(shift, "i4"))
    assert_same_numbers(tf, lambda x: {"y": tf.roll(x, shift, axis)}, [{"x": IMAGE}, {"x": IMAGE[:0]}], free=True)


BEYOND = np.array([[0.0, -1.0, 3.0, np.inf], [2.0, -4.0, 90.0, np.nan]], "f")


def test_what_is_not_chosen_leaves_no_trace(tf: Any) -> None:
    def chosen(x: Any) -> dict[str, Any]:
        return {
            "log": tf.where(x > 0, tf.math.log(x), 0.0),
            "quotient": tf.where(tf.equal(x, 0), 1.0, tf.sin(x) / x),
            "softplus": tf.where(x > 50, x, tf.math.log1p(tf.exp(x))),
            "finite": tf.where(tf.abs(x) < 1e30, x, -1.0),
        }

    same(tf, chosen, BEYOND[:, :3])
    same(tf, lambda x: tf.where(tf.math.is_finite(x), x, 0.0), BEYOND)


WHOLE = [f"{kind}{width}" for kind in ("int", "uint") for width in (8, 16, 32, 64)]


@pytest.mark.sweep(6)
@pytest.mark.parametrize("dtype", [*WHOLE, "float16", "float32", "float64", "bool", "str"])
def test_choosing_in_every_type(tf: Any, dtype: str) -> None:
    sides = [(ROWS * 3 + shift > 0).astype(dtype) for shift in (0, 1)]
    if dtype == "str":
        sides = [np.array([["a", "b"], ["c", "ä"]], object), np.array([["", "e"], ["f", "g"]], object)]
    rows = np.arange(len(sides[0])) % 2 > 0
    same(tf, lambda c, x, y: tf.where(c, x, y), np.array(sides[0]) == sides[0][0, 0], *sides)
    same(tf, lambda c, x, y: tf.raw_ops.Select(condition=c, x=x, y=y), rows, *sides)
    same(tf, lambda c, x, y: tf.where(c, x, y), rows[:, None], sides[0], sides[1][0])


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_angles_by_the_signs_of_zeros(tf: Any, dtype: str) -> None:
    sides = np.array([0.0, 1.5, 1e-4, 3e4, np.inf], dtype)
    sides = np.concatenate([sides, -sides])
    up, along = (np.ascontiguousarray(each) for each in np.meshgrid(sides, sides))
    same(tf, tf.math.atan2, up, along)


@pytest.mark.parametrize("dtype", ["float32", "int32", "int64"])
def test_products_across(tf: Any, dtype: str) -> None:
    same(tf, tf.linalg.cross, *(noise((2, 4, 3), dtype, seed) for seed in (1, 2)))


def test_a_list_of_one_element_that_a_loop_carries_on(tf: Any) -> None:
    """As ``keras.ops.scan`` does."""

    def summed(x: Any) -> Any:
        held = tf.TensorArray(tf.float32, 1, clear_after_read=False, element_shape=[4]).write(0, x[0])

        def step(i: Any, held: Any, rows: Any) -> Any:
            return i + 1, held.write(0, held.read(0) + x[i]), rows.write(i, held.read(0))

        rows = tf.TensorArray(tf.float32, len(ROWS))
        return tf.while_loop(lambda i, *_: i < len(ROWS), step, (0, held, rows))[2].stack()

    same(tf, summed, ROWS)


def test_the_last_output_of_an_lstm_is_one_operator(tf: Any) -> None:
    """Which a loop writes to the same place again and again."""
    inputs = tf.keras.Input((None, 3))
    model = tf.keras.Model(inputs, tf.keras.layers.LSTM(2)(inputs))
    proto = assert_same_numbers(tf, lambda x: {"y": model(x)}, [{"x": noise((2, 5, 3), "float32")}], free=False)
    assert [node.op_type for node in proto.graph.node if node.op_type in ("LSTM", "Loop")] == ["LSTM"]


@pytest.mark.sweep(10)
@pytest.mark.parametrize("pads", [False, True])
@pytest.mark.parametrize("lowest", [0.1, -0.5])
@pytest.mark.parametrize("sigma", [0.3, 0.9, 2.5])
def test_boxes_that_lose_part_of_their_score(tf: Any, sigma: float, lowest: float, pads: bool) -> None:
    corners = np.random.default_rng(5).random((15, 4)).astype("f")
    scores = np.random.default_rng(6).random(15).astype("f") * 1.4 - (0.6 if lowest < 0 else 0)

    def chosen(boxes: Any, scores: Any) -> Any:
        options = {"iou_threshold": 0.3, "score_threshold": lowest, "soft_nms_sigma": sigma}
        found = tf.raw_ops.NonMaxSuppressionV5(
            boxes=boxes, scores=scores, max_output_size=20 if pads else 7, pad_to_max_output_size=pads, **options
        )
        return {"places": found[0], "scores": found[1], "count": found[2]}

    same(tf, chosen, corners, scores)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_factors_and_solutions(tf: Any, dtype: str) -> None:
    rows = noise((2, 4, 4), dtype)

    def solved(x: Any) -> Any:
        whole = tf.matmul(x, x, transpose_b=True) + tf.eye(4, dtype=dtype)
        factor = tf.linalg.cholesky(whole)
        upper = tf.linalg.triangular_solve(factor + x * 0.1, x, lower=False, adjoint=True)
        return {
            "f": factor,
            "l": tf.linalg.triangular_solve(factor, x),
            "s": tf.linalg.solve(whole, x),
            "u": upper * 0.01,
        }

    same(tf, solved, rows)


def test_an_operator_of_the_runtime_in_a_branch(tf: Any) -> None:
    def chosen(x: Any) -> Any:
        whole = x + 5 * tf.eye(4)
        return tf.cond(tf.shape(x)[0] > 1, lambda: tf.linalg.solve(whole, x), lambda: x)

    same(tf, chosen, noise((2, 4, 4), "float32"))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_quantiles(tf: Any, dtype: str) -> None:
    share = np.array([-0.5, 0, 1e-40, 1e-30, 1e-9, 0.1, 0.13, 0.14, 0.5, 0.77, 0.9, 1 - 1e-6, 1, 1.5, np.nan], dtype)
    same(tf, lambda x: {"q": tf.math.ndtri(x), "e": tf.math.erfinv(x * 2 - 1)}, share)


def test_half_a_sum_of_squares_and_shapes_in_common(tf: Any) -> None:
    same(tf, lambda x: {"l": tf.nn.l2_loss(x), "s": tf.raw_ops.BroadcastArgs(s0=[3], s1=tf.shape(x)[:1])}, ROWS[:1])


@pytest.mark.parametrize("count", [3, 0])
def test_sparse_places_in_another_shape(tf: Any, count: int) -> None:
    def laid(x: Any) -> Any:
        found = tf.sparse.reshape(tf.sparse.from_dense(x), [-1, 2])
        return {"i": found.indices, "s": found.dense_shape}

    same(tf, laid, (np.arange(4 * count) % 3).astype("i8").reshape(count, 4))


@pytest.mark.parametrize("count", [5, 0])
def test_text_is_compared(tf: Any, count: int) -> None:
    words = np.array(["a", "", "caf\u00e9", "A", "12"], object)[:count]

    def compared(x0: Any, x1: Any) -> dict[str, Any]:
        kept = tf.boolean_mask(x0, x0 != "")
        return {"k": kept, "e": x0 == x1, "o": x0[:, None] == tf.constant(["a", "caf\u00e9"]), "z": tf.zeros_like(x0)}

    assert_same_numbers(tf, compared, [{"x0": words, "x1": words[::-1]}], free=False)


@pytest.mark.parametrize("rows", [(2, 0, 3), (0, 0), ()])
def test_ragged_rows_of_any_number(tf: Any, rows: tuple[int, ...]) -> None:
    lengths = np.array(rows, "i8")

    def filled(x: Any) -> Any:
        values, ids = tf.range(tf.reduce_sum(x)), tf.repeat(tf.range(tf.size(x, "int64")), x)
        by_length = tf.RaggedTensor.from_row_lengths(values, x)
        by_row = tf.RaggedTensor.from_value_rowids(values, ids, tf.size(x, "int64"))
        return {"l": by_length.to_tensor(-1), "r": by_row.to_tensor(-1), "s": by_length.to_sparse().dense_shape}

    same(tf, filled, lengths)
