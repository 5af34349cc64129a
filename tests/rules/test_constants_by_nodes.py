"""Constants whose axes onnx2tf moves where a node gives them, or that come first, and elements put into images."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnx.parser
import onnxruntime
import pytest

import padfix
from tests.support.proven import operators_for

HEAD = '<ir_version: 8, opset_import: ["" : 13]> m '

WHOLE = "k = Constant <value = float[1,2,3] {1, -2, 3, -4, 5, -6}> ()"
FEWER = "k = Constant <value = float[3,2,1] {1, -2, 3, -4, 5, -6}> ()"
PLACES = "p = Constant <value = int64[2,1,1,3] {0, 1, 2, 0, 0, 1}> ()"

BEHIND_RESHAPE = "(float[6] X) => (float[1,2,3] Y) <int64[3] s = {1, 2, 3}> { A = Reshape (X, s) %s }"

CASES: dict[str, tuple[str, list[str]]] = {
    "the whole shape": (BEHIND_RESHAPE % f"{WHOLE} Y = Max (A, k)", ["Max", "Reshape"]),
    "the whole shape of an image": (
        f"(float[1,2,3] X) => (float[1,2,3] Y) {{ {WHOLE} Y = Max (X, k) }}",
        ["Constant", "Max"],
    ),
    "the whole shape of a sum": (
        f"(float[1,2,3] X) => (float[1,2,3] Y) {{ A = Add (X, X) {WHOLE} Y = Max (A, k) }}",
        ["Add", "Max"],
    ),
    "what is chosen by": (
        BEHIND_RESHAPE % "k = Constant <value = bool[1,2,3] {1, 0, 1, 0, 0, 1}> () B = Neg (A) Y = Where (k, A, B)",
        ["Neg", "Reshape", "Where"],
    ),
    "fewer axes": (
        (
            f"(float[12] X) => (float[1,3,2,2] Y) <int64[4] s = {{1, 3, 2, 2}}> {{ A = Reshape (X, s) {FEWER} "
            "Y = Sub (A, k) }"
        ),
        ["Reshape", "Sub"],
    ),
    "fewer axes, first": (
        (
            "(float[12] X) => (float[1,3,2,2] Y) <int64[4] s = {1, 3, 2, 2}, float[3,2,1] k = {1, 2, 3, 4, 5, 6}> "
            "{ A = Reshape (X, s) Y = Add (k, A) }"
        ),
        ["Add", "Reshape"],
    ),
    "places": (
        (
            f"(float[6] X, float[2,1,1] U) => (float[1,2,3] Y) <int64[3] s = {{1, 2, 3}}> {{ A = Reshape (X, s) "
            f"{PLACES} Y = ScatterND (A, p, U) }}"
        ),
        ["Reshape", "ScatterND"],
    ),
    "what is put into an image": (
        (
            "(float[1,2,3] X, float[2] U) => (float[1,2,3] Y) <int64[3] s = {2, 1, 1}, int64[2,1,1,3] p = "
            "{0, 1, 2, 0, 0, 1}> { V = Reshape (U, s) Y = ScatterND (X, p, V) }"
        ),
        ["Reshape", "Reshape", "Reshape", "ScatterND"],
    ),
    "elements that are put into an image": (
        (
            "(float[1,2,3] X, float[2] U) => (float[1,2,3] Y) <int64[3] s = {1, 2, 1}, int64[1,2,1] p = {2, 0}> "
            "{ V = Reshape (U, s) Y = ScatterElements <axis = 2> (X, p, V) }"
        ),
        ["Reshape", "Reshape", "Reshape", "ScatterElements"],
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_axes_stay_where_they_are(name: str, tmp_path: Path) -> None:
    text, expected = CASES[name]
    source, result = tmp_path / "model.onnx", tmp_path / "out.onnx"
    model = onnx.parser.parse_model(HEAD + text)
    onnx.save(model, source)
    padfix.convert(source, result, target="onnx2tf")
    nodes = onnx.load(result).graph.node
    assert sorted(each.op_type for each in nodes) == expected
    if "first" in name:
        assert "k" not in nodes[-1].input[0]
    random = np.random.default_rng(0)
    feeds = {
        each.name: random.normal(size=[length.dim_value for length in each.type.tensor_type.shape.dim]).astype("f")
        for each in model.graph.input
    }
    before, after = (onnxruntime.InferenceSession(str(path)).run(None, feeds)[0] for path in (source, result))
    np.testing.assert_array_equal(after, before)


def test_a_scale_of_a_product_of_bytes_is_a_tensor_for_opencv(tmp_path: Path) -> None:
    graph = (
        "(uint8[2,2] X) => (uint8[2,1] Y) <float S = {0.5}, uint8 Z = {128}, uint8[2,1] W = {130, 120}>"
        " { T = Constant <value_float = 0.25> () Y = QLinearMatMul (X, S, Z, W, T, Z, S, Z) }"
    )
    operators_for(graph, "opencv@5.0.0.93", tmp_path, 13, 8)
    nodes = onnx.load(tmp_path / "after.onnx").graph.node
    assert not [node for node in nodes if any(attribute.name == "value_float" for attribute in node.attribute)]
