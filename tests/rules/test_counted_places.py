"""Rows of a constant, as many as an open length, and axes that are added between open ones: OpenCV 4.14."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx.parser
import onnxruntime
import pytest

import padfix
from padfix.errors import RefusedError

LENGTH = "all = Shape (X) s = Gather (all, one)"
TABLE = ", ".join(str(each / 4) for each in range(24))

PLACES = {
    "a Range": f"{LENGTH} r = Range (nought, s, one) u = Unsqueeze (r, first) P = Gather (T, u)",
    "a Slice of places": f"""{LENGTH} e = Unsqueeze (s, first) u = Slice (listed, first, e, second)
        P = Gather (T, u)""",
    "a Slice of rows": f"{LENGTH} e = Unsqueeze (s, first) P = Slice (U, first, e, second)",
    "a Slice of a matrix": f"{LENGTH} e = Unsqueeze (s, first) P = Slice (T, first, e, first)",
}


def model(body: str, data: str = "float[b,s,4] X") -> onnx.ModelProto:
    return onnx.parser.parse_model(f"""<ir_version: 8, opset_import: ["" : 17]> main ({data}) => (float Y)
        <int64 nought = {{0}}, int64 one = {{1}}, int64[1] first = {{0}}, int64[1] second = {{1}},
         int64[1,6] listed = {{5, 4, 3, 0, 1, 2}}, float[6,4] T = {{{TABLE}}}, float[1,6,4] U = {{{TABLE}}}>
        {{ {body} }}""")


@pytest.mark.parametrize("places", PLACES)
@pytest.mark.parametrize("data", ["float[b,s,4] X", "float[1,s,4] X", "int64[b,s] X"])
def test_places_are_counted_along_the_data(places: str, data: str, tmp_path: Path) -> None:
    is_whole = data.startswith("int64")
    words = "V = Gather (T, X)" if is_whole else "V = Relu (X)"
    source, result = tmp_path / "model.onnx", tmp_path / "out.onnx"
    onnx.save(model(f"{words} {PLACES[places]} Y = Add (V, P)", data), source)
    padfix.convert(source, result, target="opencv@4.14")
    written = [node.op_type for node in onnx.load(result).graph.node]
    assert "CumSum" in written
    assert not {"Shape", "Range"} & set(written)
    assert not padfix.check(result, target="opencv@4.14").findings
    for images in (2, 0) if "b" in data else (1,):
        for length in (1, 5):
            odd = np.full((images, length, 4), np.nan, np.float32)
            given = np.ones((images, length), np.int64) if is_whole else odd
            before, after = (
                onnxruntime.InferenceSession(str(path)).run(None, {"X": given})[0] for path in (source, result)
            )
            np.testing.assert_array_equal(after, before)


@pytest.mark.parametrize(
    "body",
    [
        f"{LENGTH} r = Range (one, s, one) u = Unsqueeze (r, first) P = Gather (T, u)",
        f"{LENGTH} e = Unsqueeze (s, first) P = Slice (U, second, e, second)",
    ],
)
def test_rows_from_another_than_the_first_are_declined(body: str, tmp_path: Path) -> None:
    onnx.save(model(f"V = Relu (X) {body} Q = ReduceSum (P) Y = Add (V, Q)"), tmp_path / "model.onnx")
    with pytest.raises(RefusedError, match="left open"):
        padfix.convert(tmp_path / "model.onnx", tmp_path / "out.onnx", target="opencv@4.14")


@pytest.mark.parametrize(
    ("node", "data", "written"),
    [
        ("Y = Unsqueeze (X, second)", "float[b,s] X", ["Reshape", "Transpose"]),
        ("Y = Unsqueeze (X, listed)", "float[b,s,t] X", ["Reshape", "Transpose"]),
        ("Y = Squeeze (X, second)", "int64[b,1,s,t] X", ["Transpose", "Reshape"]),
        ("Y = Unsqueeze (X, second)", "float[b,4] X", ["Reshape"]),
    ],
)
def test_all_lengths_are_copied_about_axes_of_one_element(
    node: str, data: str, written: list[str], tmp_path: Path
) -> None:
    text = f"""<ir_version: 8, opset_import: ["" : 17]> main ({data}) => ({data[: data.index("[")]} Y)
        <int64[1] second = {{1}}, int64[2] listed = {{1, 2}}> {{ {node} }}"""
    source, result = tmp_path / "model.onnx", tmp_path / "out.onnx"
    onnx.save(onnx.parser.parse_model(text), source)
    padfix.convert(source, result, target="opencv@4.14")
    assert [each.op_type for each in onnx.load(result).graph.node] == written
    shape = [{"b": 0, "s": 2, "t": 3}.get(each, each) for each in data[data.index("[") + 1 : -3].split(",")]
    given = np.zeros([int(each) for each in shape], np.int64 if data.startswith("int64") else np.float32)
    before, after = (onnxruntime.InferenceSession(str(path)).run(None, {"X": given})[0] for path in (source, result))
    assert after.shape == before.shape


def test_shapes_of_a_reshape_are_told_by_a_name_that_inputs_share(tmp_path: Path) -> None:
    text = """<ir_version: 8, opset_import: ["" : 17]> main (float[b,s,8] X, float[b,s] M) => (float Y, float Z)
        <int64[1] first = {0}, int64[1] second = {1}, int64[1] third = {2}, int64[1] heads = {2}, int64[1] rest = {4}> {
            all = Shape (X) b = Slice (all, first, second) s = Slice (all, second, third)
            shape = Concat <axis = 0> (b, s, heads, rest) Y = Reshape (X, shape) Z = Relu (M) }"""
    onnx.save(onnx.parser.parse_model(text), tmp_path / "model.onnx")
    padfix.convert(tmp_path / "model.onnx", tmp_path / "out.onnx", target="opencv@4.14")
    graph = onnx.load(tmp_path / "out.onnx").graph
    assert [node.op_type for node in graph.node] == ["Reshape", "Relu"]
    assert onnx.numpy_helper.to_array(graph.initializer[0]).tolist() == [0, 0, 2, 4]
