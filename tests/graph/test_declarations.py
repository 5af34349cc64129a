"""Where a rewrite reads a size at run time, a declaration that nothing confirms must not be read in its place."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import ModelProto, TensorProto, helper, numpy_helper

import padfix
from padfix.proof.spec_executor import SpecExecutor
from tests.support.padding_models import session

OPEN = [1, 2, None, None]


def declared(name: str, shape: list[int | str | None] | None) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)


def stale_model(place: str) -> ModelProto:
    """Return a window on an open size, behind a value of which 8 x 8 is declared without a reason."""
    window = helper.make_node(
        "MaxPool", ["b"], ["Y"], name="pool", kernel_shape=[4, 4], strides=[2, 2], auto_pad="SAME_LOWER"
    )
    nodes = [helper.make_node("Relu", ["X"], ["a"]), helper.make_node("Abs", ["a"], ["b"]), window]
    inputs = [declared("X", [1, 2, "h", "w"])]
    outputs = [declared("Y", OPEN)]
    initializers = []
    values = []
    if place in ("a", "b"):
        values.append(declared(place, [1, 2, 8, 8]))
    elif place == "output":
        outputs.append(declared("b", [1, 2, 8, 8]))
    elif place == "branch":
        branches = {
            f"{name}_branch": helper.make_graph(
                [helper.make_node("Relu", ["X"], [f"{name}_a"])], name, [], [declared(f"{name}_a", [1, 2, 8, 8])]
            )
            for name in ("then", "else")
        }
        nodes[0] = helper.make_node("If", ["c"], ["a"], **branches)
        initializers.append(numpy_helper.from_array(np.array(True), "c"))
    elif place == "around":
        values.append(declared("a", [1, 2, 8, 8]))
        inner = [helper.make_node("Abs", ["a"], ["b"]), window]
        inner[1].output[0] = "then_y"
        then = helper.make_graph(inner, "then", [], [declared("then_y", OPEN)])
        other = helper.make_graph(
            [helper.make_node("Identity", ["a"], ["else_y"])], "else", [], [declared("else_y", OPEN)]
        )
        nodes[1:] = [helper.make_node("If", ["c"], ["Y"], then_branch=then, else_branch=other)]
        inputs.append(helper.make_tensor_value_info("c", TensorProto.BOOL, []))
    graph = helper.make_graph(nodes, "g", inputs, outputs, initializers, value_info=values)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


@pytest.mark.parametrize("place", ["a", "b", "output", "branch", "around"])
def test_a_stale_declaration_is_not_read_as_a_size(place: str, tmp_path: Path) -> None:
    model = stale_model(place)
    onnx.save(model, tmp_path / "in.onnx")
    report = padfix.convert(tmp_path / "in.onnx", tmp_path / "out.onnx")
    assert report.verdict is not None and report.verdict.equivalent
    result = onnx.load(tmp_path / "out.onnx")
    onnx.checker.check_model(result, full_check=True)
    assert "PF102" in [each.finding.rule for each in report.rewrites]
    specification = SpecExecutor(model.SerializeToString())
    for height, width in ((5, 8), (8, 8), (9, 6)):
        feeds = {"X": np.random.default_rng(height).normal(size=(1, 2, height, width)).astype(np.float32)}
        if place == "around":
            feeds["c"] = np.array(True)
        wanted = specification.run(feeds)["Y"]
        for optimised in (False, True):
            np.testing.assert_array_equal(session(result, optimised=optimised).run(["Y"], feeds)[0], wanted)


def test_a_confirmed_declaration_stays(tmp_path: Path) -> None:
    model = stale_model("none")
    model.graph.value_info.append(declared("a", [1, 2, "h", "w"]))
    model.graph.value_info.append(declared("b", [1, 2, None, None]))
    onnx.save(model, tmp_path / "in.onnx")
    padfix.convert(tmp_path / "in.onnx", tmp_path / "out.onnx")
    values = {value.name: value for value in onnx.load(tmp_path / "out.onnx").graph.value_info}
    assert [values[name] for name in ("a", "b")] == list(model.graph.value_info)
