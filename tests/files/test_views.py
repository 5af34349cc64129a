"""Large payloads as arrays, mapped from where they are: what they hold, and when there is none."""

from __future__ import annotations

import os
from pathlib import Path

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from padfix.files import skeleton, views
from padfix.files.skeleton import read_model

NUMBERS = np.arange(3000, dtype=np.float32).reshape(3, 25, 40)


def saved(path: Path, *tensors: onnx.TensorProto, **options: object) -> Path:
    node = helper.make_node("Identity", [tensors[0].name], ["Y"])
    result = helper.make_tensor_value_info("Y", tensors[0].data_type, list(tensors[0].dims))
    graph = helper.make_graph([node], "g", [], [result], list(tensors))
    onnx.save(helper.make_model(graph), path, **options)
    return path


def viewed(path: Path) -> np.ndarray | None:
    model = read_model(path)
    return views.array_of(model, model.proto.graph.initializer[0])


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16, np.int8, np.uint8, np.int64, ml_dtypes.bfloat16])
@pytest.mark.parametrize("is_beside", [False, True])
def test_a_payload_is_what_was_written(dtype: type, is_beside: bool, tmp_path: Path) -> None:
    values = (NUMBERS % 100).astype(dtype)
    told = {"save_as_external_data": True, "size_threshold": 0, "location": "data"} if is_beside else {}
    found = viewed(saved(tmp_path / "m.onnx", numpy_helper.from_array(values, "w"), **told))
    assert found is not None and found.dtype == values.dtype and not found.flags.writeable
    np.testing.assert_array_equal(found, values)


@pytest.mark.parametrize("kind", [onnx.TensorProto.FLOAT, onnx.TensorProto.INT64, onnx.TensorProto.FLOAT16])
def test_a_payload_may_be_in_a_field_of_its_type(kind: int, tmp_path: Path) -> None:
    tensor = helper.make_tensor("w", kind, NUMBERS.shape, NUMBERS.ravel().tolist())
    found = viewed(saved(tmp_path / "m.onnx", tensor))
    assert found is not None
    np.testing.assert_array_equal(found, numpy_helper.to_array(tensor))


def test_there_is_none_behind_a_change_or_where_the_file_is_gone(tmp_path: Path) -> None:
    path = saved(tmp_path / "m.onnx", numpy_helper.from_array(NUMBERS, "w"))
    model = read_model(path)
    os.utime(path, (1, 1))
    assert views.array_of(model, model.proto.graph.initializer[0]) is None
    path.unlink()
    assert views.array_of(model, model.proto.graph.initializer[0]) is None


def test_there_is_none_of_data_that_are_cut(tmp_path: Path) -> None:
    told = {"save_as_external_data": True, "size_threshold": 0, "location": "data"}
    path = saved(tmp_path / "m.onnx", numpy_helper.from_array(NUMBERS, "w"), **told)
    os.truncate(tmp_path / "data", 100)
    assert viewed(path) is None


def test_half_bytes_are_loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(skeleton, "LARGE", 0)
    values = [1, 2, 3, -4, 5, 6, 7]
    found = viewed(saved(tmp_path / "m.onnx", helper.make_tensor("w", onnx.TensorProto.INT4, (7,), values)))
    assert found is not None and found.astype(int).tolist() == values


def test_there_is_none_of_very_many_elements(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = saved(tmp_path / "m.onnx", numpy_helper.from_array(NUMBERS, "w"))
    monkeypatch.setattr(views, "MOST_ELEMENTS", NUMBERS.size - 1)
    assert viewed(path) is None
