"""How arrays are handed to TensorFlow Lite and taken from it, of what onnx2tf makes; neither is needed."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnx.parser
import pytest

from padfix.runtimes.on_onnx2tf import _as_in_onnx, _by_names, _pin, _run


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
    for is_moved in (True, False):
        np.testing.assert_array_equal(_as_in_onnx(expected.transpose(order), given, is_moved), expected)


def test_where_lengths_are_alike_the_model_tells_the_order() -> None:
    given = np.arange(50).reshape(2, 5, 5)
    np.testing.assert_array_equal(_as_in_onnx(given, (2, 5, 5), is_moved=True), given.transpose(0, 2, 1))
    np.testing.assert_array_equal(_as_in_onnx(given, (2, 5, 5), is_moved=False), given)


def test_a_shape_that_no_order_gives_stays() -> None:
    assert _as_in_onnx(np.zeros((2, 3)), (4, 5), is_moved=True).shape == (2, 3)


def test_open_lengths_are_those_of_the_data() -> None:
    text = '<ir_version: 8, opset_import: ["" : 13]> g (float[N,3,H,7] X) => (float[N,3,H,7] Y) { Y = Relu (X) }'
    model = onnx.parser.parse_model(text)
    _pin(model, {"X": np.zeros((2, 3, 5, 7), np.float32)})
    assert [each.dim_value for each in model.graph.input[0].type.tensor_type.shape.dim] == [2, 3, 5, 7]


class _Unsigned:
    """An interpreter of a model without a signature, which gives the sum of its inputs and their difference."""

    def __init__(self) -> None:
        self.fed: dict[int, Any] = {}

    def get_signature_list(self) -> dict[str, Any]:
        return {}

    def allocate_tensors(self) -> None:
        pass

    def get_input_details(self) -> list[dict[str, Any]]:
        return [{"name": "b_2", "index": 7, "shape": (1, 4, 3)}, {"name": "a", "index": 5, "shape": (1, 4, 3)}]

    def get_output_details(self) -> list[dict[str, Any]]:
        return [{"name": "Identity", "index": 1}, {"name": "Identity_1", "index": 2}]

    def set_tensor(self, index: int, array: Any) -> None:
        self.fed[index] = array

    def invoke(self) -> None:
        self.fed |= {1: self.fed[5] + self.fed[7], 2: self.fed[5] - self.fed[7]}

    def get_tensor(self, index: int) -> Any:
        return self.fed[index]


def test_a_model_without_a_signature_is_run_by_the_order_of_its_outputs() -> None:
    a, b = np.arange(24.0).reshape(2, 1, 3, 4)
    total, difference = _run(_Unsigned(), {"a": a, "b.2": b}, ["sum", "rest"])
    np.testing.assert_array_equal(total, np.moveaxis(a + b, 1, -1))
    np.testing.assert_array_equal(difference, np.moveaxis(a - b, 1, -1))


class _Nameless(_Unsigned):
    def get_input_details(self) -> list[dict[str, Any]]:
        first, second = super().get_input_details()
        return [{**second, "name": "Placeholder"}, {**first, "name": "Placeholder_1"}]


def test_inputs_that_have_lost_their_names_are_fed_in_the_order_of_the_model() -> None:
    a, b = np.arange(24.0).reshape(2, 1, 3, 4)
    total, difference = _run(_Nameless(), {"größe": a, "b 2": b}, ["sum", "rest"])
    np.testing.assert_array_equal(total, np.moveaxis(a + b, 1, -1))
    np.testing.assert_array_equal(difference, np.moveaxis(a - b, 1, -1))


def test_names_are_found_as_the_converter_writes_them() -> None:
    given = {"Identity__0": 1, "a_b": 2, "wa/block/Add_output_0": 3}
    assert _by_names(given, ["Identity:0", "a/b", "/block/Add_output_0"]) == {
        "Identity:0": 1,
        "a/b": 2,
        "/block/Add_output_0": 3,
    }
