"""A Pad that ONNX Runtime must not fuse into the pool behind it keeps the sign of its zeros too."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import ModelProto, TensorProto, helper, numpy_helper

import padfix

FLOATS = (TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.DOUBLE)
INTEGERS = (TensorProto.INT8, TensorProto.UINT8)


def pool_of_padded(
    opset: int, elem_type: int, behind: str, channels_last: bool, pool: str = "MaxPool", **attributes: object
) -> ModelProto:
    """Return a Pad of zeros, a pool, and an operator behind it; in TensorFlow's layout between two Transposes."""
    pads = [0, 0, 1, 1, 0, 0, 1, 1]
    nodes, initializers = [], []
    source = "X"
    if channels_last:
        nodes.append(helper.make_node("Transpose", ["X"], ["first"], perm=[0, 3, 1, 2]))
        source = "first"
    if opset < 11:
        nodes.append(helper.make_node("Pad", [source], ["padded"], mode="constant", pads=pads, value=0.0))
    else:
        nodes.append(helper.make_node("Pad", [source, "pads"], ["padded"]))
        initializers.append(numpy_helper.from_array(np.array(pads, np.int64), "pads"))
    nodes.append(helper.make_node(pool, ["padded"], ["pooled"], kernel_shape=[3, 3], **attributes))
    last = "pooled"
    if channels_last:
        nodes.append(helper.make_node("Transpose", ["pooled"], ["last"], perm=[0, 2, 3, 1]))
        last = "last"
    nodes.append(helper.make_node(behind, [last], ["Y"]))
    graph = helper.make_graph(
        nodes,
        "graph",
        [helper.make_tensor_value_info("X", elem_type, [1, 6, 6, 2] if channels_last else [1, 2, 6, 6])],
        [helper.make_tensor_value_info("Y", elem_type, None)],
        initializers,
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)


def run(model: ModelProto, X: np.ndarray, level: str, kept: Path) -> tuple[np.ndarray, list[str]]:
    """Return the output and the operators that the optimiser leaves."""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = getattr(onnxruntime.GraphOptimizationLevel, level)
    options.optimized_model_filepath = str(kept)
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return session.run(None, {"X": X})[0], [node.op_type for node in onnx.load(kept).graph.node]


@pytest.mark.sweep(3)
@pytest.mark.parametrize("channels_last", [False, True], ids=["channels-first", "channels-last"])
@pytest.mark.parametrize(
    ("elem_type", "opset"),
    [(each, opset) for each in FLOATS for opset in (8, 10, 11, 13, 18, 19, 21, 22, 24)]
    + [(each, opset) for each in INTEGERS for opset in (12, 13, 18, 22, 24)],
)
def test_zeros_keep_their_sign_through_the_pool(
    tmp_path: Path, elem_type: int, opset: int, channels_last: bool
) -> None:
    behind = "Reciprocal" if elem_type in FLOATS else "Identity"
    model = pool_of_padded(opset, elem_type, behind, channels_last)
    onnx.save(model, tmp_path / "before.onnx")
    report = padfix.convert(tmp_path / "before.onnx", tmp_path / "after.onnx", reference="spec")
    X = np.random.default_rng(1).integers(1, 100, [1, 6, 6, 2] if channels_last else [1, 2, 6, 6])
    X = (X if elem_type == TensorProto.UINT8 else -X).astype(helper.tensor_dtype_to_np_dtype(elem_type))
    after = onnx.load(tmp_path / "after.onnx")
    expected, _ = run(model, X, "ORT_DISABLE_ALL", tmp_path / "unoptimised.onnx")
    found, operators = run(after, X, "ORT_ENABLE_ALL", tmp_path / "optimised.onnx")
    assert found.tobytes() == expected.tobytes()
    if elem_type == TensorProto.UINT8:  # nothing is negative, so the fusion may stay
        return
    assert [each.finding.rule for each in report.rewrites] == ["PF108"]
    assert operators.count("Pad") == 2
    if channels_last:
        pool = next(place for place, name in enumerate(operators) if name.endswith("MaxPool"))
        assert "Transpose" not in operators[: operators.index("Pad")]
        assert operators.index("Pad") < pool
    again = padfix.convert(tmp_path / "after.onnx", tmp_path / "again.onnx", reference="spec")
    assert not again.rewrites
    assert onnx.load(tmp_path / "again.onnx") == after


@pytest.mark.parametrize("opset", [13, 19])
def test_an_average_over_padding_alone_is_a_positive_zero(tmp_path: Path, opset: int) -> None:
    model = pool_of_padded(opset, TensorProto.FLOAT, "Reciprocal", False, "AveragePool", pads=[2, 2, 2, 2])
    for each in model.graph.node:
        if each.op_type == "AveragePool":
            each.attribute.append(helper.make_attribute("count_include_pad", 1))
    onnx.save(model, tmp_path / "before.onnx")
    padfix.convert(tmp_path / "before.onnx", tmp_path / "after.onnx", reference="spec")
    X = -np.ones((1, 2, 6, 6), np.float32)
    expected, _ = run(model, X, "ORT_DISABLE_ALL", tmp_path / "unoptimised.onnx")
    found, _ = run(onnx.load(tmp_path / "after.onnx"), X, "ORT_ENABLE_ALL", tmp_path / "optimised.onnx")
    assert np.isposinf(expected[0, 0, 0, 0])
    np.testing.assert_array_equal(np.isposinf(found), np.isposinf(expected))
    np.testing.assert_allclose(found, expected, rtol=1e-6)
