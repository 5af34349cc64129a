"""Constants that a model keeps sparse, before and behind what is written for a target."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import GraphProto, ModelProto, SparseTensorProto, TensorProto, helper, numpy_helper

import padfix
from padfix.graph.sparse import dense

WEIGHTS = np.array([[0, 2, 0], [3, 0, 0], [0, 0, -1], [0, 0.5, 0]], np.float32)


def sparse_of(array: np.ndarray, name: str, *, by_axes: bool = False) -> SparseTensorProto:
    places = np.argwhere(array) if by_axes else np.flatnonzero(array)
    sparse = SparseTensorProto(dims=array.shape)
    sparse.values.CopyFrom(numpy_helper.from_array(array[array != 0], name))
    sparse.indices.CopyFrom(numpy_helper.from_array(places.astype(np.int64), f"{name}_places"))
    return sparse


def model_of(*, by_node: bool) -> ModelProto:
    held = [helper.make_node("Constant", [], ["W"], sparse_value=sparse_of(WEIGHTS, "W"))] if by_node else []
    graph = helper.make_graph(
        [*held, helper.make_node("MatMul", ["X", "W"], ["Y"], name="product")],
        "graph",
        [helper.make_tensor_value_info("X", TensorProto.FLOAT, [2, 4])],
        [helper.make_tensor_value_info("Y", TensorProto.FLOAT, [2, 3])],
    )
    if not by_node:
        graph.sparse_initializer.append(sparse_of(WEIGHTS, "W"))
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


@pytest.mark.parametrize("by_node", [False, True])
@pytest.mark.parametrize("target", ["openvino", "mnn", "tract"])
def test_all_elements_are_written_where_a_target_reads_no_sparse_ones(
    target: str, by_node: bool, tmp_path: Path
) -> None:
    onnx.save(model_of(by_node=by_node), tmp_path / "model.onnx")
    found = padfix.check(tmp_path / "model.onnx", target=target).findings
    is_read = target == "openvino" and by_node  # of opset 13 and later
    assert [each.rule for each in found] == ["PF311"] * (not is_read)
    padfix.convert(tmp_path / "model.onnx", tmp_path / "result.onnx", target=target)
    assert not padfix.check(tmp_path / "result.onnx", target=target).findings
    written = onnx.load(tmp_path / "result.onnx").graph
    assert keeps_sparse(written) == is_read
    data = np.random.default_rng(0).standard_normal((2, 4)).astype(np.float32)
    (given,) = onnxruntime.InferenceSession(tmp_path / "result.onnx").run(None, {"X": data})
    np.testing.assert_allclose(given, data @ WEIGHTS, rtol=1e-6)


def keeps_sparse(graph: GraphProto) -> bool:
    return bool(graph.sparse_initializer) or any(
        attribute.name == "sparse_value" for node in graph.node for attribute in node.attribute
    )


@pytest.mark.parametrize("by_axes", [False, True])
def test_places_are_counted_in_rows_or_told_along_each_axis(by_axes: bool) -> None:
    found = dense(sparse_of(WEIGHTS, "W", by_axes=by_axes), numpy_helper.to_array)
    assert found is not None
    np.testing.assert_array_equal(found, WEIGHTS)


def test_places_outside_are_none() -> None:
    sparse = sparse_of(WEIGHTS, "W")
    sparse.dims[:] = [2, 3]
    assert dense(sparse, numpy_helper.to_array) is None


def test_a_sparse_constant_is_as_long_as_it_says(tmp_path: Path) -> None:
    """The inference of ONNX takes the list of what is not 0 for the constant, and loses what a product gives."""
    model = model_of(by_node=False)
    model.graph.output[0].type.tensor_type.ClearField("shape")
    onnx.save(model, tmp_path / "model.onnx")
    padfix.convert(tmp_path / "model.onnx", tmp_path / "result.onnx", target="opencv")
    (output,) = onnx.load(tmp_path / "result.onnx").graph.output
    assert [each.dim_value for each in output.type.tensor_type.shape.dim] == [2, 3]
