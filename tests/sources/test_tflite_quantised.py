"""Models whose weights alone are quantised, and models of 16 bits, give the numbers that their files say."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

import padfix
from padfix.errors import PadfixError
from tests.support.lite_files import lite, weights

pytestmark = pytest.mark.tensorflow


def scaled(*shape: int) -> Any:
    return (weights(*shape) / np.sqrt(np.prod(shape[:-1]))).astype(np.float32)


def classifier(tf: Any, x: Any) -> Any:
    y = tf.nn.relu6(tf.nn.conv2d(x, scaled(3, 3, 3, 64), 2, "SAME") + 0.1)
    y = tf.nn.relu(tf.nn.depthwise_conv2d(y, scaled(3, 3, 64, 1), [1, 1, 1, 1], "SAME")) + y
    y = tf.reduce_mean(tf.nn.sigmoid(tf.nn.conv2d(y, scaled(1, 1, 64, 128), 1, "SAME")), [1, 2])
    return tf.nn.softmax(tf.matmul(y, scaled(128, 40)) + 0.05)


def painter(tf: Any, x: Any) -> Any:
    y = tf.nn.leaky_relu(tf.nn.conv2d(x, scaled(3, 3, 3, 64), 1, "SAME"), 0.2)
    y = tf.nn.avg_pool2d(tf.nn.max_pool2d(y, 2, 2, "VALID"), 3, 1, "SAME")
    return tf.nn.conv2d_transpose(y, scaled(3, 3, 8, 64), [1, 8, 8, 8], 2, "SAME")


NETWORKS: list[Callable[[Any, Any], Any]] = [classifier, painter]


def quantised(tf: Any, path: Path, network: Callable[[Any, Any], Any], **settings: Any) -> Path:
    return lite(
        *(tf, path, lambda x: network(tf, x), tf.TensorSpec([1, 9, 8, 3], tf.float32, "x")),
        optimizations=[tf.lite.Optimize.DEFAULT],
        **settings,
    )


@pytest.mark.parametrize("network", NETWORKS)
def test_weights_alone(tf: Any, network: Callable[[Any, Any], Any], tmp_path: Path) -> None:
    path = quantised(tf, tmp_path / "m.tflite", network)
    report = padfix.convert(path, tmp_path / "m.onnx")
    assert report.verdict is not None and report.verdict.equivalent
    assert report.verdict.stretches is not None
    (note,) = [note for note in report.verdict.notes if "quantised weights" in note]
    assert "of the range of" in note
    kinds = {node.op_type for node in onnx.load(tmp_path / "m.onnx").graph.node}
    assert not kinds & {"DynamicQuantizeLinear", "QuantizeLinear"}


def test_kernels_that_compute_something_else_are_found(
    tf: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Were the weights read wrongly, original and result would be wrong alike, and no comparison would show it."""
    from padfix.sources import tflite_hybrid

    path = quantised(tf, tmp_path / "m.tflite", classifier)
    written = tflite_hybrid.write_out

    def wrong(model: Any) -> Any:
        found = written(model)
        for tensor in model.subgraphs[0].tensors:
            if tensor.quantization is not None and tensor.quantization.scale is not None:
                tensor.quantization.scale = np.asarray(tensor.quantization.scale) * 2
        return found

    monkeypatch.setattr(tflite_hybrid, "write_out", wrong)
    with pytest.raises(PadfixError, match="something else than its weights say"):
        padfix.convert(path, tmp_path / "m.onnx")


@pytest.mark.sweep(2)
@pytest.mark.parametrize("whole", [False, True], ids=["float", "int16"])
@pytest.mark.parametrize("network", NETWORKS)
def test_data_of_sixteen_bits(tf: Any, network: Callable[[Any, Any], Any], whole: bool, tmp_path: Path) -> None:
    def data() -> Iterator[list[Any]]:
        random = np.random.default_rng(0)
        for _ in range(8):
            yield [random.standard_normal((1, 9, 8, 3)).astype(np.float32)]

    kinds = [tf.lite.OpsSet.EXPERIMENTAL_TFLITE_BUILTINS_ACTIVATIONS_INT16_WEIGHTS_INT8]
    settings: dict[str, Any] = {"target_spec": tf.lite.TargetSpec(supported_ops=kinds), "representative_dataset": data}
    if whole:
        settings |= {"inference_input_type": tf.int16, "inference_output_type": tf.int16}
    path = quantised(tf, tmp_path / "m.tflite", network, **settings)
    report = padfix.convert(path, tmp_path / "m.onnx")
    assert report.verdict is not None and report.verdict.equivalent
    assert not padfix.check(tmp_path / "m.onnx").findings
