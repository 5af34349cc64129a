"""Omitted inputs and outputs that a node lists behind all others, which some runtimes take for further ones."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import NodeProto, TensorProto, helper, numpy_helper

import padfix

WEIGHTS = {"w": np.linspace(0.5, 2, 6, dtype=np.float32), "s": np.array([1, 1, 2, 2], np.float32)}
NODES = {
    "Dropout": helper.make_node("Dropout", ["X", "", ""], ["Y", ""]),
    "LayerNormalization": helper.make_node("LayerNormalization", ["X", "w"], ["Y", "", ""]),
    "MaxPool": helper.make_node("MaxPool", ["X"], ["Y", ""], kernel_shape=[2, 2]),
    "Resize": helper.make_node("Resize", ["X", "", "s", ""], ["Y"], mode="linear"),
}


def listed(node: NodeProto, target: str, folder: Path) -> list[tuple[list[str], list[str]]]:
    """Return what the nodes of the converted model list, its result by its last."""
    graph = helper.make_graph(
        [node],
        "g",
        [helper.make_tensor_value_info("X", TensorProto.FLOAT, [1, 3, 4, 6])],
        [helper.make_tensor_value_info("Y", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(each, name) for name, each in WEIGHTS.items() if name in node.input],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    onnx.save(model, folder / "model.onnx")
    padfix.convert(folder / "model.onnx", folder / "result.onnx", target=target)
    return [(list(each.input), list(each.output)) for each in onnx.load(folder / "result.onnx").graph.node]


@pytest.mark.parametrize(
    ("op_type", "target"),
    [(each, "onnx2tf") for each in NODES]
    + [("LayerNormalization", "ncnn"), ("LayerNormalization", "qnn"), ("MaxPool", "qnn")]
    + [("Dropout", "tract"), ("MaxPool", "tract"), ("MaxPool", "tvm")],
)
def test_what_is_omitted_at_the_end_is_not_listed(op_type: str, target: str, tmp_path: Path) -> None:
    found = listed(NODES[op_type], target, tmp_path)
    assert all(names[-1] for pair in found for names in pair)


def test_it_stays_listed_where_nobody_minds(tmp_path: Path) -> None:
    assert listed(NODES["MaxPool"], "openvino", tmp_path) == [(["X"], ["Y", ""])]
