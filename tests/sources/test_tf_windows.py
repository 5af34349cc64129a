"""Windowed operators that tf2onnx lacks or misreads come out with TensorFlow's numbers."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import padfix
from padfix.proof.executors import OnnxRuntimeExecutor
from padfix.sources import SourceOptions
from padfix.sources.saved_model import finish, freeze_function
from tests.support.tf_conversion import assert_same_numbers, convert, noise

pytestmark = pytest.mark.tensorflow


def images(free: bool, size: tuple[int, ...] = (7, 9), channels: int = 3) -> list[dict[str, Any]]:
    """Return a feed, or several of other sizes where the size is free."""
    sizes = [size, *([tuple(length + 1 for length in size), tuple(length + 2 for length in size)] if free else [])]
    return [{"x": noise((1, *lengths, channels), "float32", seed)} for seed, lengths in enumerate(sizes)]


@pytest.mark.sweep(3)
@pytest.mark.parametrize("free", [False, True], ids=["static", "dynamic"])
@pytest.mark.parametrize("padding", ["SAME", "VALID"])
@pytest.mark.parametrize(
    ("kernel", "stride", "rate"), [((3, 3), 1, 1), ((2, 2), 2, 1), ((3, 2), 2, 2), ((1, 1), 3, 1), ((4, 1), 3, 2)]
)
def test_morphology(tf: Any, free: bool, padding: str, kernel: tuple[int, int], stride: int, rate: int) -> None:
    weights = noise((*kernel, 3), "float32", 3)

    def function(x: Any) -> dict[str, Any]:
        arguments = ([1, stride, stride, 1], padding, "NHWC", [1, rate, rate, 1])
        return {"y": tf.nn.dilation2d(x, weights, *arguments), "z": tf.nn.erosion2d(x, weights, *arguments)}

    assert_same_numbers(tf, function, images(free), free)


@pytest.mark.parametrize("dtype", ["uint8", "int32", "int64", "float16", "float64"])
def test_morphology_of_every_type(tf: Any, dtype: str) -> None:
    weights = np.random.default_rng(3).integers(0, 5, (3, 3, 2)).astype(dtype)

    def function(x: Any) -> dict[str, Any]:
        return {"y": tf.nn.dilation2d(x, weights, [1, 1, 1, 1], "SAME", "NHWC", [1, 1, 1, 1])}

    assert_same_numbers(tf, function, [{"x": noise((1, 6, 7, 2), dtype)}], free=False)


@pytest.mark.sweep(3)
@pytest.mark.parametrize("free", [False, True], ids=["static", "dynamic"])
@pytest.mark.parametrize("mode", ["REFLECT", "SYMMETRIC"])
@pytest.mark.parametrize(
    ("stride", "padding", "corners"), [(1, "VALID", False), (2, "VALID", True), (2, "SAME", False)]
)
def test_fused_convolutions(tf: Any, free: bool, mode: str, stride: int, padding: str, corners: bool) -> None:
    weights, paddings = noise((3, 3, 3, 4), "float32", 5), [[0, 0], [1, 2], [2, 1], [0, 0]]

    def function(x: Any) -> dict[str, Any]:
        common = {
            "paddings": paddings,
            "filter": weights,
            "mode": mode,
            "strides": [1, stride, stride, 1],
            "padding": padding,
        }
        return {
            "y": tf.raw_ops.FusedPadConv2D(input=x, **common),
            "z": tf.raw_ops.FusedResizeAndPadConv2D(input=x, size=[9, 11], resize_align_corners=corners, **common),
        }

    assert_same_numbers(tf, function, images(free), free)


@pytest.mark.sweep(3)
@pytest.mark.parametrize("free", [False, True], ids=["static", "dynamic"])
@pytest.mark.parametrize("before", ["Pad", "PadV2", "REFLECT", "SYMMETRIC"])
@pytest.mark.parametrize(
    "explicit", [[[0, 0], [1, 2], [0, 1], [0, 0]], "VALID", "SAME"], ids=["EXPLICIT", "VALID", "SAME"]
)
def test_a_pad_before_a_convolution(tf: Any, free: bool, before: str, explicit: Any) -> None:
    """Behind an explicitly padded convolution, tf2onnx would keep only the Pad's elements."""
    weights, paddings = noise((3, 3, 3, 4), "float32", 5), [[0, 0], [2, 1], [1, 0], [0, 0]]

    def function(x: Any) -> dict[str, Any]:
        if before == "PadV2":
            padded = tf.pad(x, paddings, constant_values=1.5)
        else:
            padded = tf.pad(x, paddings, "CONSTANT" if before == "Pad" else before)
        return {"y": tf.nn.conv2d(padded, weights, 2, explicit)}

    assert_same_numbers(tf, function, images(free), free)


@pytest.mark.parametrize("free", [False, True], ids=["static", "dynamic"])
@pytest.mark.parametrize(("kernel", "stride", "padding"), [(3, 2, "SAME"), (2, 3, "SAME"), (3, 1, "VALID")])
def test_depthwise_gradients(tf: Any, free: bool, kernel: int, stride: int, padding: str) -> None:
    """The transposed depthwise convolution, with several results for each channel."""
    depthwise = noise((kernel, kernel, 4, 2), "float32", 6)

    def function(x: Any) -> dict[str, Any]:
        shape = tf.shape(x)
        sizes = [shape[axis] * stride if padding == "SAME" else (shape[axis] - 1) * stride + kernel for axis in (1, 2)]
        result = tf.raw_ops.DepthwiseConv2dNativeBackpropInput(
            input_sizes=tf.stack([shape[0], *sizes, 4]),
            filter=depthwise,
            out_backprop=x,
            strides=[1, stride, stride, 1],
            padding=padding,
        )
        return {"y": result}

    assert_same_numbers(tf, function, images(free, channels=8), free)


@pytest.mark.sweep(5)
@pytest.mark.parametrize("free", [False, True], ids=["static", "dynamic"])
@pytest.mark.parametrize(("dimensions", "kernel", "stride"), list(itertools.product((1, 2, 3), (1, 2, 3), (1, 2, 3))))
def test_transposed_of_every_rank(tf: Any, free: bool, dimensions: int, kernel: int, stride: int) -> None:
    """With results of one element less than the largest, which SAME allows where the stride exceeds one."""
    transposed = (tf.nn.conv1d_transpose, tf.nn.conv2d_transpose, tf.nn.conv3d_transpose)[dimensions - 1]
    weights = noise((*[kernel] * dimensions, 2, 3), "float32", 7)
    strides = stride if dimensions == 1 else [stride] * dimensions

    def function(x: Any) -> dict[str, Any]:
        shape = tf.shape(x)
        lengths = [shape[1 + axis] for axis in range(dimensions)]
        less = 1 if stride > 1 else 0
        same = tf.stack([shape[0], *(length * stride - less for length in lengths), 2])
        valid = tf.stack([shape[0], *((length - 1) * stride + kernel + less for length in lengths), 2])
        return {
            "y": transposed(x, weights, same, strides, "SAME"),
            "z": transposed(x, weights, valid, strides, "VALID"),
        }

    assert_same_numbers(tf, function, images(free, (4, 5, 3)[:dimensions]), free)


@pytest.mark.sweep(2)
@pytest.mark.parametrize("operator", ["conv2d", "depthwise_conv2d", "max_pool2d", "avg_pool2d"])
def test_windows_without_padding_over_images_of_any_size(tf: Any, operator: str, tmp_path: Path) -> None:
    """Over a shorter image oneDNN's convolutions hand it back as it is, and its pools end the process."""
    window = noise((3, 3, 3, 3 if operator == "conv2d" else 1), "float32", 2) if "conv" in operator else 3
    strides = [1, 2, 2, 1] if operator == "depthwise_conv2d" else 2
    model = tf.Module()
    model.run = tf.function(
        lambda x: getattr(tf.nn, operator)(x, window, strides, "VALID"),
        input_signature=[tf.TensorSpec([None, None, None, 3], name="x")],
    )
    tf.saved_model.save(model, str(tmp_path / "model"), signatures=model.run)
    report = padfix.convert(tmp_path / "model", tmp_path / "model.onnx")
    assert report.verdict is not None and report.verdict.equivalent


@pytest.mark.sweep(3)
@pytest.mark.parametrize("free", [False, True], ids=["static", "dynamic"])
@pytest.mark.parametrize("padding", ["SAME", "VALID"])
@pytest.mark.parametrize(("kernel", "stride", "rate"), [((3, 2), 2, 1), ((2, 3), 3, 2), ((1, 1), 2, 1), ((4, 5), 1, 1)])
def test_patches(tf: Any, free: bool, padding: str, kernel: tuple[int, int], stride: int, rate: int) -> None:
    def function(x: Any) -> dict[str, Any]:
        steps, rates = [1, stride, stride, 1], [1, rate, rate, 1]
        return {"y": tf.image.extract_patches(x, [1, *kernel, 1], steps, rates, padding)}

    feeds = images(free, (11, 12))
    assert_same_numbers(tf, function, [*feeds, *[{"x": feed["x"][:0]} for feed in feeds if free]], free)


@pytest.mark.parametrize("free", [False, True], ids=["static", "dynamic"])
@pytest.mark.parametrize("padding", ["SAME", "VALID"])
def test_patches_of_volumes(tf: Any, free: bool, padding: str) -> None:
    def function(x: Any) -> dict[str, Any]:
        sizes = {"ksizes": [1, 2, 3, 2, 1], "strides": [1, 2, 1, 3, 1]}
        return {"y": tf.raw_ops.ExtractVolumePatches(input=x, padding=padding, **sizes)}

    assert_same_numbers(tf, function, images(free, (5, 6, 7), 2), free)


@pytest.mark.parametrize(
    "dtype", ["uint8", "int8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "float16", "float64"]
)
def test_patches_of_every_type(tf: Any, dtype: str) -> None:
    def function(x: Any) -> dict[str, Any]:
        return {
            padding: tf.raw_ops.ExtractImagePatches(
                images=x, ksizes=[1, 3, 2, 1], strides=[1, 2, 2, 1], rates=[1, 1, 1, 1], padding=padding
            )
            for padding in ("SAME", "VALID")
        }

    assert_same_numbers(tf, function, [{"x": noise((2, 6, 7, 2), dtype)}], free=False)


@pytest.mark.sweep(3)
@pytest.mark.parametrize("method", ["bilinear", "nearest", "bicubic", "area", "lanczos3", "gaussian", "mitchellcubic"])
def test_resizes_of_no_images(tf: Any, method: str) -> None:
    def function(x: Any) -> dict[str, Any]:
        return {
            f"{antialias}": tf.image.resize(x, (5, 9), method=method, antialias=antialias)
            for antialias in (False, True)
        }

    feed = noise((2, 7, 8, 3), "float32")
    assert_same_numbers(tf, function, [{"x": feed}, {"x": feed[:0]}], free=True)


@pytest.mark.parametrize("method", ["bilinear", "nearest"])
def test_crops_of_no_boxes(tf: Any, method: str) -> None:
    def function(x: Any, boxes: Any, owners: Any) -> dict[str, Any]:
        return {"y": tf.image.crop_and_resize(x, boxes, owners, (4, 5), method=method)}

    image, box, owner = noise((2, 7, 8, 3), "float32"), np.array([[0.1, 0.2, 0.7, 1.2]], np.float32), np.zeros(1, "i4")
    source = tf.function(function, autograph=False).get_concrete_function(
        x=tf.TensorSpec([None, None, None, 3], name="x"),
        boxes=tf.TensorSpec([None, 4], name="boxes"),
        owners=tf.TensorSpec([None], tf.int32, name="owners"),
    )
    model = finish(tf, "saved_model", freeze_function(tf, lambda: (None, source)), SourceOptions(), "m", []).model
    candidate = OnnxRuntimeExecutor(model.proto.SerializeToString(), optimised=True)
    for count in (1, 0):
        feed = {"x": image, "boxes": box[:count], "owners": owner[:count]}
        wanted = function(image, box[:count], owner[:count])["y"]
        np.testing.assert_allclose(candidate.run(feed)["y"], wanted, atol=1e-5)


@pytest.mark.parametrize("dtype", ["float64", "int32"])
@pytest.mark.parametrize("groups", [1, 2])
def test_gathered_windows_over_no_images(tf: Any, dtype: str, groups: int) -> None:
    kernel = noise((3, 2, 4 // groups, 6), dtype, 5)
    depthwise = noise((3, 2, 4, 2), dtype, 6)

    def function(x: Any) -> dict[str, Any]:
        found = {"y": tf.nn.conv2d(x, kernel, 2, "SAME")}
        if groups == 1 and dtype == "float64":
            found["z"] = tf.nn.depthwise_conv2d(x, depthwise, [1, 1, 1, 1], "VALID")
            found["w"] = tf.nn.avg_pool2d(x, 3, 2, "SAME")
        return found

    source = convert(tf, function, {"x": noise((2, 7, 8, 4), dtype)}, free=True)
    candidate = OnnxRuntimeExecutor(source.model.proto.SerializeToString(), optimised=True)
    for count in (2, 0):
        found = candidate.run({"x": noise((count, 7, 8, 4), dtype)})
        assert found["y"].shape == (count, 4, 4, 6)
        assert "z" not in found or found["z"].shape == (count, 5, 7, 8)


@pytest.mark.sweep(10)
@pytest.mark.parametrize("open_sizes", [False, True])
@pytest.mark.parametrize("form", ["vector", "parts", "constant batch", "volume", "line", "depthwise"])
def test_transposed_convolutions_whose_size_is_fed(tf: Any, form: str, open_sizes: bool, tmp_path: Path) -> None:
    weights = noise((3, 3, 4, 3), "float32", 1)
    spatial = {"volume": 3, "line": 1}.get(form, 2)
    data = tf.TensorSpec([None] * (spatial + 1) + [3] if open_sizes else [2, *range(5, 5 + spatial), 3], name="x")
    size = tf.TensorSpec([spatial + 2], tf.int32, name="size")
    number = tf.TensorSpec([], tf.int32)
    functions: dict[str, tuple[Any, list[Any]]] = {
        "vector": (lambda x, size: tf.nn.conv2d_transpose(x, weights, size, 3, "VALID"), [data, size]),
        "parts": (
            lambda x, height, width: tf.nn.conv2d_transpose(x, weights, [tf.shape(x)[0], height, width, 4], 2, "SAME"),
            [data, number, number],
        ),
        "constant batch": (
            lambda x: tf.nn.conv2d_transpose(x, weights, [2, 2 * tf.shape(x)[1] - 1, 2 * tf.shape(x)[2], 4], 2, "SAME"),
            [data],
        ),
        "volume": (lambda x, size: tf.nn.conv3d_transpose(x, weights[None], size, 2, "SAME"), [data, size]),
        "line": (lambda x, size: tf.nn.conv1d_transpose(x, weights[0], size, 2, "SAME"), [data, size]),
        "depthwise": (
            lambda x, size: tf.raw_ops.DepthwiseConv2dNativeBackpropInput(
                input_sizes=size, filter=weights[..., :3, :1], out_backprop=x, strides=[1, 2, 2, 1], padding="SAME"
            ),
            [data, size],
        ),
    }
    function, signature = functions[form]
    model = tf.Module()
    model.run = tf.function(function, input_signature=signature)
    tf.saved_model.save(model, str(tmp_path / "model"), signatures=model.run)
    report = padfix.convert(tmp_path / "model", tmp_path / "model.onnx")
    assert report.verdict is not None and report.verdict.equivalent


@pytest.mark.parametrize("layout", ["NDHWC", "NCDHW"])
def test_groups_of_volumes(layout: str, tf: Any) -> None:
    """TensorFlow compiles grouped convolutions, so that data in either layout runs."""
    kernel, last = noise((3, 2, 1, 3, 4), "float32", 5), layout == "NDHWC"

    @tf.function(jit_compile=True)
    def compute(x: Any) -> Any:
        return tf.nn.conv3d(x, kernel, [1] * 5, "SAME", data_format=layout)

    shape = (2, 5, 4, 6, 6) if last else (2, 6, 5, 4, 6)
    assert_same_numbers(tf, lambda x: {"y": compute(x)}, [{"x": noise(shape, "float32")}], free=False)
