"""Where TensorFlow runs a node against its own documentation, a failed proof says exactly that."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import padfix
from padfix.errors import NotEquivalent
from padfix.sources.kernel_faults import delegate_faults, faults
from padfix.sources.tflite_schema import parsed
from tests.support.lite_files import lite, prove, weights
from tests.support.tf_conversion import noise

pytestmark = [pytest.mark.tensorflow, pytest.mark.sweep(2)]


def save_fused(tf: Any, folder: Path) -> Path:
    weights = noise((3, 3, 2, 3), "float32")

    class Module(tf.Module):
        @tf.function(input_signature=[tf.TensorSpec([None, 6, 5, 2], tf.float32, "x")])
        def __call__(self, x: Any) -> dict[str, Any]:
            result = tf.raw_ops.FusedPadConv2D(
                input=x,
                paddings=[[0, 0], [1, 2], [2, 1], [0, 0]],
                filter=weights,
                mode="REFLECT",
                strides=[1, 1, 1, 1],
                padding="VALID",
            )
            return {"y": result}

    module = Module()
    tf.saved_model.save(module, str(folder), signatures=module.__call__.get_concrete_function())
    return folder


def test_a_kernel_that_mixes_the_images_of_a_batch(tf: Any, tmp_path: Path) -> None:
    """The conversion is proven on single images, and the report says why."""
    folder, output = save_fused(tf, tmp_path / "m"), tmp_path / "m.onnx"
    report = padfix.convert(folder, output)
    assert report.verdict is not None
    assert {run.shapes["x"][0] for run in report.verdict.runs} == {1}
    told = " ".join(report.notes)
    assert "contradicts TensorFlow's documentation at FusedPadConv2D" in told
    assert "first image's result for every image" in told
    assert "one image at a time" in told


def test_a_difference_where_the_kernel_is_at_fault(tf: Any, tmp_path: Path) -> None:
    """A batch that the user fixes, or gives, is compared as it is."""
    folder, output = save_fused(tf, tmp_path / "m"), tmp_path / "m.onnx"
    with pytest.raises(NotEquivalent, match="contradicts TensorFlow's documentation at FusedPadConv2D") as caught:
        padfix.convert(folder, output, shapes={"x": (2, 6, 5, 2)})
    assert "--reference spec" in (caught.value.hint or "")
    assert any("first image's result" in note for note in caught.value.report.notes)
    assert not output.exists()
    assert padfix.convert(folder, output, reference="spec", shapes={"x": (2, 6, 5, 2)}).verdict.equivalent


def test_an_ordinary_difference_is_not_blamed_on_tensorflow(tf: Any) -> None:
    with tf.Graph().as_default() as graph:
        x = tf.compat.v1.placeholder(tf.float32, [1, 4, 4, 4, 1])
        tf.nn.max_pool3d(tf.nn.max_pool3d(x, 3, 2, "SAME"), 1, 2, "VALID")
        tf.nn.conv2d(x[0], np.ones([1, 1, 1, 1], np.float32), 2, "SAME")
    assert faults(tf, graph.as_graph_def()) == []


SHORT_WINDOWS = """
import numpy as np
import tensorflow as tf
from padfix.sources.kernel_faults import faults

line = np.arange(6, dtype=np.float32).reshape(1, 6, 1, 1, 1)
for pool, name in ((tf.nn.max_pool3d, "MaxPool3D"), (tf.nn.avg_pool3d, "AvgPool3D")):
    with tf.Graph().as_default() as graph:
        pool(tf.compat.v1.placeholder(tf.float32, line.shape), 1, [3, 1, 1], "SAME")
    documented = bool((pool(line, 1, [3, 1, 1], "SAME").numpy().ravel() == [0, 3]).all())
    found = faults(tf, graph.as_graph_def())
    assert (found == []) == documented, (name, found)
    assert documented or ("contradicts" in found[0] and name in found[0] and "moves by 3" in found[0])
with tf.Graph().as_default() as graph:
    data = tf.compat.v1.placeholder(tf.float32, line.shape)
    tf.nn.conv3d(data, np.ones([1, 1, 1, 1, 1], np.float32), [1, 3, 1, 1, 1], "SAME")
result = tf.nn.conv3d(line, np.ones([1, 1, 1, 1, 1], np.float32), [1, 3, 1, 1, 1], "SAME")
documented = bool((result.numpy().ravel() == [0, 3]).all())
assert (faults(tf, graph.as_graph_def()) == []) == documented
"""


@pytest.mark.parametrize("onednn", [pytest.param("0", marks=pytest.mark.slow), "1"])
def test_short_windows_in_three_dimensions(onednn: str) -> None:
    """Which kernel runs, and so whether the fault is there, depends on the build: it is blamed only where it is."""
    environment = os.environ | {"TF_ENABLE_ONEDNN_OPTS": onednn, "TF_CPP_MIN_LOG_LEVEL": "3"}
    done = subprocess.run(
        [sys.executable, "-c", SHORT_WINDOWS], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.sweep(2)
@pytest.mark.parametrize("kind", ["plain", "depthwise"])
@pytest.mark.parametrize("size", [(9, 8), (None, None)], ids=["fixed", "open"])
def test_a_convolution_that_xnnpack_gives_zeros_for(
    tf: Any, kind: str, size: tuple[int | None, ...], tmp_path: Path
) -> None:
    def function(x: Any) -> Any:
        if kind == "depthwise":
            return tf.nn.depthwise_conv2d(x, weights(3, 1, 3, 1), [1, 2, 2, 1], "SAME")
        return tf.nn.conv2d(x, weights(3, 1, 3, 4), [1, 2], "SAME")

    path = lite(tf, tmp_path / "m.tflite", function, tf.TensorSpec([1, *size, 3], tf.float32, "x"))
    slips = delegate_faults(tf, parsed(path.read_bytes()))
    report = prove(path, tmp_path)
    assert [note for note in report.notes if "XNNPACK" in note] == slips
    if not slips:
        pytest.skip("this TensorFlow's XNNPACK is right")
    assert "gives zeros" in slips[0]


@pytest.mark.parametrize("size", [(9, 9), (8, 8)])
def test_a_convolution_of_points_is_run_as_usual(tf: Any, size: tuple[int, int], tmp_path: Path) -> None:
    path = lite(
        tf,
        tmp_path / "m.tflite",
        lambda x: tf.nn.conv2d(x, weights(1, 1, 3, 4), 2, "SAME"),
        tf.TensorSpec([1, *size, 3], tf.float32, "x"),
    )
    assert delegate_faults(tf, parsed(path.read_bytes())) == []
    prove(path, tmp_path)
