"""MediaPipe's transposed convolution with a bias is TensorFlow Lite's own, of a size that follows from its data."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest

from padfix.errors import UnsupportedError
from padfix.sources import open_source
from tests.support.lite_files import changed, lite, made, prove, weights

pytestmark = pytest.mark.tensorflow

KERNELS = weights(2, 3, 4, 3)
BIAS = np.float32([3, -4])


def custom(
    tf: Any, path: Path, stride: tuple[int, int], *, same: bool, name: bytes = b"Convolution2DTransposeBias"
) -> Path:
    """Write a file with one custom operator that reads data, kernels and a bias."""
    whole = [1, stride[0] * 4 + 3, stride[1] * 5 + 4, 2]
    path = lite(
        *(tf, path),
        lambda x: tf.nn.conv2d_transpose(x + 1.0, KERNELS.transpose(1, 2, 0, 3), whole, stride, "VALID"),
        tf.TensorSpec([1, 5, 6, 3], tf.float32, "x"),
    )

    def write(schema: Any, model: Any) -> None:
        graph = model.subgraphs[0]
        model.buffers.append(made(schema.BufferT, data=np.frombuffer(BIAS.tobytes(), np.uint8)))
        graph.tensors.append(made(schema.TensorT, shape=[2], type=0, buffer=len(model.buffers) - 1, name=b"bias"))
        (operator,) = [item for item in graph.operators if len(item.inputs) > 2]
        operator.inputs = [operator.inputs[2], operator.inputs[1], len(graph.tensors) - 1]
        operator.builtinOptionsType, operator.builtinOptions = 0, None
        options = np.int32([1 if same else 2, stride[1], stride[0]])
        operator.customOptions = np.frombuffer(options.tobytes(), np.uint8)
        code = model.operatorCodes[operator.opcodeIndex]
        code.builtinCode, code.deprecatedBuiltinCode, code.customCode = 32, 32, name

    return changed(path, write)


def by_definition(x: Any, stride: tuple[int, int], *, same: bool) -> Any:
    """Return the result by MediaPipe's own loops: every element of the data is added where it goes."""
    (_, height, width, _), (channels, rows, columns, _) = x.shape, KERNELS.shape
    cut = [
        max(0, kernel - (size - 1) % step - 1) if same else 0
        for kernel, size, step in zip((rows, columns), (height, width), stride, strict=True)
    ]
    result = np.zeros((stride[0] * (height - 1) + rows, stride[1] * (width - 1) + columns, channels))
    for y in range(height):
        for z in range(width):
            place = np.s_[stride[0] * y : stride[0] * y + rows, stride[1] * z : stride[1] * z + columns]
            result[place] += np.einsum("c,oijc->ijo", x[0, y, z], KERNELS)
    top, left = (less // 2 for less in cut)
    end = [length - less for length, less in zip(result.shape, cut, strict=False)]
    return result[top : top + end[0], left : left + end[1]] + BIAS


@pytest.mark.sweep(6)
@pytest.mark.parametrize("same", [True, False])
@pytest.mark.parametrize("stride", [(1, 1), (2, 2), (2, 3), (4, 5)])
def test_transposed_with_a_bias(tf: Any, stride: tuple[int, int], same: bool, tmp_path: Path) -> None:
    prove(custom(tf, tmp_path / "m.tflite", stride, same=same), tmp_path)
    x = np.random.default_rng(0).standard_normal((1, 5, 6, 3)).astype(np.float32)
    (found,) = onnxruntime.InferenceSession(tmp_path / "out.onnx").run(None, {"x": x})
    np.testing.assert_allclose(found[0], by_definition(x + 1, stride, same=same), rtol=1e-5, atol=1e-5)


def test_other_operators_are_refused_by_name(tf: Any, tmp_path: Path) -> None:
    path = custom(tf, tmp_path / "m.tflite", (2, 2), same=True, name=b"Landmarks2TransformMatrix")
    with pytest.raises(UnsupportedError, match=r"no part of TensorFlow Lite.*: Landmarks2TransformMatrix"):
        open_source(path)
