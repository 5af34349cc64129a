"""Element types that tf2onnx or ONNX Runtime lacks for an operator keep TensorFlow's exact values."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from onnx import TensorProto

import padfix
from padfix.errors import UnsupportedError
from tests.support.tf_conversion import assert_same_numbers, convert, noise

pytestmark = pytest.mark.tensorflow

PADDINGS = [[0, 0], [2, 1], [1, 3], [0, 0]]
EXPLICIT = [[0, 0], [1, 2], [0, 1], [0, 0]]


def values(dtype: Any) -> np.ndarray[Any, Any]:
    """Return an image that uses the whole range of integers, where float32 would round."""
    if np.dtype(dtype).kind in "iu":
        limits = np.iinfo(dtype)
        return np.random.default_rng(1).integers(limits.min, limits.max, (2, 5, 4, 2), dtype, endpoint=True)
    return noise((2, 5, 4, 2), dtype) > 0 if dtype is np.bool_ else noise((2, 5, 4, 2), dtype)


INTEGERS = [np.uint8, np.int8, np.uint16, np.int16, np.uint32, np.int32, np.uint64, np.int64]
OTHERS = [np.float16, np.float64, ml_dtypes.bfloat16, np.bool_]


@pytest.mark.parametrize("dtype", [*INTEGERS, *OTHERS], ids=lambda dtype: np.dtype(dtype).name)
def test_pads_move_every_type(tf: Any, dtype: Any) -> None:
    def function(x: Any) -> dict[str, Any]:
        return {
            "a": tf.pad(x, PADDINGS),
            "b": tf.pad(x, PADDINGS, constant_values=tf.cast(1, x.dtype)),
            "c": tf.pad(x, PADDINGS, "REFLECT"),
            "d": tf.pad(x, PADDINGS, "SYMMETRIC"),
        }

    assert_same_numbers(tf, function, [{"x": values(dtype)}], free=False)


@pytest.mark.parametrize("dtype", [np.uint16, np.int16, np.int32, ml_dtypes.bfloat16], ids=str)
def test_pools_pick_every_type(tf: Any, dtype: Any) -> None:
    def function(x: Any) -> dict[str, Any]:
        return {"y": tf.nn.max_pool2d(x, 3, 2, "SAME")}

    assert_same_numbers(tf, function, [{"x": values(dtype)}], free=False)


def test_bfloat16_stays_bfloat16(tf: Any) -> None:
    """And not float16, whose largest number is far smaller."""

    def function(x: Any) -> dict[str, Any]:
        return {"y": tf.raw_ops.ResizeNearestNeighbor(images=x, size=[7, 3]), "z": tf.image.resize(x, [7, 3], "area")}

    image = noise((1, 4, 5, 2), ml_dtypes.bfloat16) * ml_dtypes.bfloat16(1e30)
    model = assert_same_numbers(tf, function, [{"x": image}], free=False)
    assert model.graph.input[0].type.tensor_type.elem_type == TensorProto.BFLOAT16


@pytest.mark.sweep(10)
@pytest.mark.parametrize(("bits", "narrow"), [(8, False), (8, True), (4, False), (16, True)])
@pytest.mark.parametrize(("low", "high"), [(-6.0, 6.0), (0.0, 6.0), (-3.2, 1.1), (1.0, 5.0), (-4.0, -0.5), (0.0, 0.0)])
def test_fake_quantization(tf: Any, bits: int, narrow: bool, low: float, high: float) -> None:
    def function(x: Any, low: Any, high: Any) -> dict[str, Any]:
        constant, options = float(low_value), {"num_bits": bits, "narrow_range": narrow}
        channels = [low, low - 1.0, low - 0.3], [high + 0.1, high + 1.0, high + 0.7]
        results = {
            "b": tf.quantization.fake_quant_with_min_max_vars(x, constant, high_value, **options),
            "c": tf.quantization.fake_quant_with_min_max_vars(x, low, high, **options),
            "d": tf.quantization.fake_quant_with_min_max_vars_per_channel(x, *channels, **options),
        }
        if low_value < high_value:
            results["a"] = tf.quantization.fake_quant_with_min_max_args(x, constant, high_value, **options)
        return results

    low_value, high_value = low, high
    # Steps and their halves as well, where halves to even would differ.
    data = np.concatenate([np.linspace(low - 1, high + 1, 300), np.arange(-30, 30) * 0.5]).astype(np.float32)
    feed = {"x": data.reshape(1, 8, 15, 3), "low": np.array(low, np.float32), "high": np.array(high, np.float32)}
    assert_same_numbers(tf, function, [feed], free=True, tolerance=1e-6)


def test_integers_that_are_indices_and_sizes(tf: Any, tmp_path: Path) -> None:
    """A proof needs owners of boxes below the batch's length, one for each box, and sizes above zero."""

    class Module(tf.Module):
        @tf.function(
            input_signature=[
                tf.TensorSpec([None, 6, 7, 2], tf.float32, "x"),
                tf.TensorSpec([None, 4], tf.float32, "boxes"),
                tf.TensorSpec([None], tf.int32, "owners"),
                tf.TensorSpec([2], tf.int32, "size"),
            ]
        )
        def __call__(self, x: Any, boxes: Any, owners: Any, size: Any) -> dict[str, Any]:
            return {"y": tf.image.crop_and_resize(x, boxes, owners, size)}

    module = Module()
    tf.saved_model.save(module, str(tmp_path / "m"), signatures=module.__call__.get_concrete_function())
    report = padfix.convert(tmp_path / "m", tmp_path / "m.onnx")
    assert report.verdict is not None
    assert report.verdict.equivalent
    assert len({run.probe for run in report.verdict.runs}) >= 4


@pytest.mark.parametrize("free", [False, True], ids=["static", "dynamic"])
@pytest.mark.parametrize("padding", ["SAME", "VALID"])
def test_pools_of_64_bit_integers(tf: Any, free: bool, padding: str) -> None:
    def function(x: Any) -> dict[str, Any]:
        return {
            "a": tf.nn.max_pool2d(x, [3, 2], [2, 3], padding),
            "b": tf.raw_ops.MaxPoolV2(input=x, ksize=[1, 2, 2, 1], strides=[1, 1, 2, 1], padding=padding),
        }

    random = np.random.default_rng(2)
    sizes = [(1, 7, 8, 2), *([(2, 6, 9, 2)] if free else [])]
    feeds = [{"x": random.integers(-(2**63), 2**63, size, np.int64)} for size in sizes]
    assert_same_numbers(tf, function, feeds, free)


@pytest.mark.sweep(10)
@pytest.mark.parametrize("free", [False, True], ids=["static", "dynamic"])
@pytest.mark.parametrize(
    "padding", ["SAME", "VALID", [[0, 0], [1, 2], [0, 1], [0, 0]]], ids=["SAME", "VALID", "EXPLICIT"]
)
@pytest.mark.parametrize(("kernel", "stride"), [((3, 2), 2), ((1, 2), 3)])
def test_windows_of_float64(tf: Any, free: bool, padding: Any, kernel: tuple[int, int], stride: int) -> None:
    """To the last bits that sums in another order leave, far from what float32 would give."""
    weights, depthwise = noise((*kernel, 4, 6), "float64", 3), noise((*kernel, 4, 2), "float64", 4)
    grouped, gradient = noise((*kernel, 2, 6), "float64", 5), noise((*kernel, 3, 4), "float64", 6)
    strides, explicit = [1, stride, stride, 1], not isinstance(padding, str)

    def function(x: Any) -> dict[str, Any]:
        results = {
            "convolution": tf.nn.conv2d(tf.pad(x, PADDINGS), weights, stride, padding),
            "depthwise": tf.nn.depthwise_conv2d(x, depthwise, strides, padding),
            "grouped": tf.nn.conv2d(x, grouped, stride, padding),
        }
        shape = tf.shape(x)
        lengths = [shape[1], shape[2]]
        if padding == "SAME":
            sizes = [length * stride for length in lengths]
        else:
            cut = (3, 1) if explicit else (0, 0)
            sizes = [(lengths[axis] - 1) * stride + kernel[axis] - cut[axis] for axis in (0, 1)]
        wanted = tf.stack([shape[0], *sizes, 3])
        results["transposed"] = tf.nn.conv2d_transpose(x, gradient, wanted, stride, padding)
        if not explicit:
            results["average"] = tf.nn.avg_pool2d(x, kernel, stride, padding)
        return results

    sizes = [(1, 7, 8, 4), *([(2, 6, 9, 4)] if free else [])]
    assert_same_numbers(tf, function, [{"x": noise(size, "float64")} for size in sizes], free, tolerance=1e-14)


def test_windows_of_float64_in_three_dimensions(tf: Any) -> None:
    weights, gradient = noise((2, 3, 1, 4, 6), "float64", 3), noise((2, 3, 1, 3, 4), "float64", 6)

    def function(x: Any) -> dict[str, Any]:
        return {
            "convolution": tf.nn.conv3d(x, weights, [1, 2, 1, 1, 1], "SAME"),
            "transposed": tf.nn.conv3d_transpose(x, gradient, [1, 10, 6, 4, 3], [2, 1, 1], "SAME"),
        }

    assert_same_numbers(tf, function, [{"x": noise((1, 5, 6, 4, 4), "float64")}], free=False, tolerance=1e-14)


@pytest.mark.parametrize("padding", ["SAME", "VALID"])
def test_convolutions_of_32_bit_integers(tf: Any, padding: str) -> None:
    random = np.random.default_rng(5)
    weights = random.integers(-1000, 1000, (3, 2, 3, 4), np.int32)

    def function(x: Any) -> dict[str, Any]:
        return {"y": tf.nn.conv2d(x, weights, 2, padding)}

    assert_same_numbers(tf, function, [{"x": random.integers(-(2**18), 2**18, (1, 6, 7, 3), np.int32)}], free=False)


def test_quantized_types_are_refused_with_a_reason(tf: Any) -> None:
    def function(x: Any) -> dict[str, Any]:
        values, low, high = tf.quantization.quantize(x, -3.0, 3.0, tf.quint8)
        weights = tf.bitcast(np.arange(54, dtype=np.uint8).reshape(3, 3, 3, 2), tf.quint8)
        values, low, high = tf.raw_ops.QuantizedConv2D(
            input=values,
            filter=weights,
            min_input=low,
            max_input=high,
            min_filter=-1.0,
            max_filter=1.0,
            strides=[1, 1, 1, 1],
            padding="SAME",
        )
        return {"y": tf.quantization.dequantize(values, low, high)}

    with pytest.raises(UnsupportedError, match="QuantizedConv2D") as caught:
        convert(tf, function, {"x": noise((1, 5, 5, 3), "float32")}, free=False)
    assert "before its quantization" in (caught.value.hint or "")


def test_positions_in_pools_of_integers(tf: Any) -> None:
    def function(x: Any) -> dict[str, Any]:
        values, positions = tf.nn.max_pool_with_argmax(x, 3, 2, "SAME", include_batch_in_index=True)
        return {"y": values, "z": positions}

    limits = np.iinfo(np.int32)
    image = np.random.default_rng(1).integers(limits.max - 9, limits.max, (2, 5, 4, 2), np.int32, endpoint=True)
    assert_same_numbers(tf, function, [{"x": image}], free=False)
    with pytest.raises(UnsupportedError, match="64-bit"):
        convert(tf, function, {"x": image.astype(np.int64)}, free=False)


@pytest.mark.parametrize("dtype", [*INTEGERS, np.float32], ids=lambda dtype: np.dtype(dtype).name)
def test_sums_keep_every_type(tf: Any, dtype: Any) -> None:
    def function(x: Any) -> dict[str, Any]:
        series = {"n": tf.add_n([x, x, x[::-1]]), "c": tf.cumsum(x, 2, exclusive=True)}
        return series if dtype in (np.int64, np.uint64) else series | {"s": tf.reduce_sum(x, 1)}

    assert_same_numbers(tf, function, [{"x": values(dtype)}], free=False)


@pytest.mark.parametrize("dtype", [each for each in INTEGERS if each is not np.uint64], ids=lambda each: each.__name__)
def test_comparisons_keep_every_type(tf: Any, dtype: Any) -> None:
    def function(x: Any) -> dict[str, Any]:
        extremes = {"a": tf.reduce_max(x, 1), "b": tf.reduce_min(x, [0, 2]), "c": tf.clip_by_value(x, 1, 5)}
        places = {"d": tf.argmax(x, 1), "e": tf.argmin(x, 2, output_type=tf.int32)}
        return extremes | places | {"f": tf.nn.relu(x), "g": tf.nn.relu6(x)}

    assert_same_numbers(tf, function, [{"x": values(dtype)}], free=False)
