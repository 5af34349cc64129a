"""Nodes in words, as a report shows them before and after."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import AttributeProto, NodeProto, TensorProto, helper, parser

from padfix.graph import node_text

CONSTANTS = {"pads": np.array([0, 0, 1, 1]), "scales": np.array([1, 1, 2, 2], np.float32), "w": np.zeros((2, 2))}


def words(node: NodeProto, opset: int = 17) -> str:
    (line,) = node_text.lines_of([node], opset, CONSTANTS.get)
    return line


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('Conv <auto_pad = "SAME_UPPER", strides = [2, 2]> (x, w)', "Conv(auto_pad=SAME_UPPER, strides=[2, 2])"),
        ("Relu (x)", "Relu()"),
        ("Pad (x, pads)", "Pad(pads=[0, 0, 1, 1])"),
        ('Resize <mode = "nearest"> (x, , scales)', "Resize(mode=nearest, scales=[1, 1, 2, 2])"),
        ("LeakyRelu <alpha = 0.1> (x)", "LeakyRelu(alpha=0.1)"),
        ("Pad (x, unknown)", "Pad()"),
        ("other.Made <a = 1> (x)", "Made(a=1)"),
    ],
)
def test_a_node_is_its_operator_and_its_settings(text: str, expected: str) -> None:
    model = parser.parse_model(
        f'<ir_version: 8, opset_import: ["" : 17, "other" : 1]> g (float[1] x) => (float[1] y) {{ y = {text} }}'
    )
    assert words(model.graph.node[0]) == expected


def test_what_has_no_words_is_named() -> None:
    graph = helper.make_graph([], "g", [], [])
    assert words(helper.make_node("If", ["c"], ["y"], then_branch=graph)) == "If(then_branch=a graph)"
    value = helper.make_tensor("v", TensorProto.FLOAT, [1], [1])
    assert words(helper.make_node("Constant", [], ["y"], value=value)) == "Constant(value=a tensor)"
    node = helper.make_node("Conv", ["x", "w"], ["y"])
    node.attribute.add(name="auto_pad", ref_attr_name="mode", type=AttributeProto.STRING)
    assert words(node) == "Conv(auto_pad=that of mode)"
    assert len(words(helper.make_node("Made", ["x"], ["y"], domain="other", a=list(range(1000))))) < 200


def test_of_very_many_the_ends_are_shown() -> None:
    nodes = [helper.make_node("Made", ["x"], ["y"], domain="other", a=place) for place in range(9)]
    shown = node_text.lines_of(nodes, 17, CONSTANTS.get)
    assert shown == ("Made(a=0)", "Made(a=1)", "4 more nodes", "Made(a=6)", "Made(a=7)", "Made(a=8)")
    assert node_text.lines_of(nodes[:6], 17, CONSTANTS.get) == tuple(f"Made(a={place})" for place in range(6))
