"""How arrays are handed to TensorFlow Lite and taken from it, of what onnx2tf makes; neither is needed."""

from __future__ import annotations

import numpy as np
import onnx
import onnx.parser
import pytest

from padfix.runtimes.on_onnx2tf import _as_in_onnx, _pin


@pytest.mark.parametrize(
    ("given", "order"),
    [
        ((1, 3, 4, 5), (0, 2, 3, 1)),  # with its channels at the end
        ((1, 3, 4, 5), (0, 1, 2, 3)),  # as it is
        ((3, 4, 5), (1, 2, 0)),  # its batch taken away
        ((4, 6), (1, 0)),
        ((6, 6), (0, 1)),
        ((7,), (0,)),
    ],
)
def test_results_come_in_the_order_of_onnx(given: tuple[int, ...], order: tuple[int, ...]) -> None:
    expected = np.arange(np.prod(given)).reshape(given)
    np.testing.assert_array_equal(_as_in_onnx(expected.transpose(order), given), expected)


def test_a_shape_that_no_order_gives_stays() -> None:
    assert _as_in_onnx(np.zeros((2, 3)), (4, 5)).shape == (2, 3)


def test_open_lengths_are_those_of_the_data() -> None:
    text = '<ir_version: 8, opset_import: ["" : 13]> g (float[N,3,H,7] X) => (float[N,3,H,7] Y) { Y = Relu (X) }'
    model = onnx.parser.parse_model(text)
    _pin(model, {"X": np.zeros((2, 3, 5, 7), np.float32)})
    assert [each.dim_value for each in model.graph.input[0].type.tensor_type.shape.dim] == [2, 3, 5, 7]
