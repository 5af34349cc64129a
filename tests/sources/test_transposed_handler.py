"""Transposed convolutions give TensorFlow's numbers for every padding, stride and way to say the size."""

from __future__ import annotations

import importlib.util
from typing import Any

import numpy as np
import pytest

from padfix.sources import SourceOptions, tensorflow_runtime

pytestmark = [
    pytest.mark.tensorflow,
    pytest.mark.skipif(importlib.util.find_spec("tensorflow") is None, reason="needs padfix[tf]"),
]

EXPLICIT = [[0, 0], [2, 0], [1, 0], [0, 0]]
WINDOWS = [(3, 2), (5, 2), (4, 3), (2, 3), (1, 2), (3, 1), (4, 4)]


def sizes(padding: Any, kernel: int, stride: int, lengths: list[Any], extra: int) -> list[Any]:
    """Return result sizes that TensorFlow accepts: the natural ones, or ``extra`` elements beside them."""
    if padding == "SAME":
        return [length * stride - extra for length in lengths]
    cut = [0, 0] if padding == "VALID" else [2, 1]
    return [(length - 1) * stride + kernel - less + extra for length, less in zip(lengths, cut, strict=True)]


@pytest.mark.parametrize("padding", ["SAME", "VALID", EXPLICIT], ids=["SAME", "VALID", "EXPLICIT"])
@pytest.mark.parametrize(("kernel", "stride"), WINDOWS)
@pytest.mark.parametrize("free", [False, True], ids=["static", "dynamic"])
@pytest.mark.parametrize("constant", [False, True], ids=["computed size", "constant size"])
def test_against_tensorflow(padding: Any, kernel: int, stride: int, free: bool, constant: bool) -> None:
    import onnxruntime

    from padfix.sources.saved_model import finish, freeze_function

    tf = tensorflow_runtime.load("a test")
    extra = 1 if stride > 1 else 0
    if padding == EXPLICIT and kernel == 1:
        padding = "VALID"
    filters = np.random.default_rng(1).standard_normal((kernel, kernel, 3, 2)).astype(np.float32)

    def function(x: Any) -> dict[str, Any]:
        if constant:
            wanted: Any = [1, *sizes(padding, kernel, stride, [5, 6], extra), 3]
        else:
            shape = tf.shape(x)
            wanted = tf.stack([shape[0], *sizes(padding, kernel, stride, [shape[1], shape[2]], extra), 3])
        return {"y": tf.nn.conv2d_transpose(x, filters, wanted, stride, padding)}

    shape = [1, None, None, 2] if free else [1, 5, 6, 2]
    concrete = tf.function(function).get_concrete_function(x=tf.TensorSpec(shape, tf.float32, "x"))
    source = finish(tf, "saved_model", freeze_function(tf, lambda: (None, concrete)), SourceOptions(), "m", [])
    data = np.random.default_rng(2).standard_normal((1, 5, 6, 2)).astype(np.float32)
    assert source.executor is not None
    wanted = source.executor().run({"x": data})["y"]
    session = onnxruntime.InferenceSession(source.model.proto.SerializeToString())
    found = session.run(None, {"x": data})[0]
    assert found.shape == wanted.shape
    np.testing.assert_allclose(found, wanted, atol=1e-5)
