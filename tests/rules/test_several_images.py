"""What ncnn gives no network of, by others; and what several images need that a runtime takes one by one."""

from __future__ import annotations

from pathlib import Path

import onnx
import onnx.parser
import pytest

import padfix
from padfix.errors import RefusedError


def written(folder: Path, graph: str, target: str = "ncnn", opset: int = 23) -> list[str]:
    model = onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["" : {opset}]> g {graph}')
    onnx.save(model, folder / "model.onnx")
    padfix.convert(folder / "model.onnx", folder / "result.onnx", target=target)
    return [node.op_type for node in onnx.load(folder / "result.onnx").graph.node]


HEADS = "(float[1,3,4,8] Q, float[1,3,6,8] K, float[1,3,6,8] V) => (float Y) { Y = Attention (Q, K, V) }"


def test_attention_is_its_products_alone(tmp_path: Path) -> None:
    assert written(tmp_path, HEADS) == ["Transpose", "Mul", "Mul", "MatMul", "Softmax", "MatMul"]


@pytest.mark.parametrize(
    ("graph", "opset", "gone"),
    [
        (
            "(float[2,6,8] X, float[8] s, float[8] b) => (float Y, float M) { Y, M = LayerNormalization (X, s, b) }",
            17,
            "",
        ),
        ("(float[1,5,6] X) => (float Y) <int64[3] n = {1, 9, 4}> { Y = CenterCropPad (X, n) }", 18, "CenterCropPad"),
        ("(float[1,3,4] X) => (float Y) { Y = Transpose (X) }", 17, ""),
        ("(float[1,4,6] X) => (float Y) <int64[2] b = {0, 1}, int64[2] e = {1, 3}> { Y = Slice (X, b, e) }", 17, ""),
        ("(float[3,7] X) => (float Y) <float[4,7] w, float[1,4] b> { Y = Gemm <transB = 1> (X, w, b) }", 17, ""),
        ("(float[1,4,4] X) => (float Y) { Y = Trilu (X) }", 17, "Trilu"),
        (
            "(float[1,3,4,5] X, float[3,4,5] W) => (float Y) { Y = RMSNormalization <axis = 1> (X, W) }",
            23,
            "RMSNormalization",
        ),
    ],
)
def test_what_ncnn_gives_no_network_of_is_written_by_others(graph: str, opset: int, gone: str, tmp_path: Path) -> None:
    if "float[4,7] w," in graph:
        graph = graph.replace("float[4,7] w,", f"float[4,7] w = {{{', '.join(['0.5'] * 28)}}},")
        graph = graph.replace("float[1,4] b", "float[1,4] b = {1, 2, 3, 4}")
    assert gone not in written(tmp_path, graph, opset=opset)
    assert not padfix.check(tmp_path / "result.onnx", target="ncnn").findings


@pytest.mark.parametrize(
    ("shape", "first"), [("{2, 4, 3, -1}", 0), ("{2, 0, 3, 8}", 0), ("{8, 3, 8}", -1), ("{2, 4, 3, 8}", 0)]
)
def test_a_reshape_of_several_images_does_not_say_how_many(shape: str, first: int, tmp_path: Path) -> None:
    rank = shape.count(",") + 1
    text = f"(float[2,4,24] X) => (float[2,4,24] Y) <int64[{rank}] s = {shape}, int64[3] t = {{2, 4, 24}}> "
    written(tmp_path, text + "{ A = Reshape (X, s) B = Relu (A) Y = Reshape (B, t) }", opset=17)
    model = onnx.load(tmp_path / "result.onnx")
    shapes = {each.name: onnx.numpy_helper.to_array(each).tolist() for each in model.graph.initializer}
    reshapes = [node for node in model.graph.node if node.op_type == "Reshape"]
    assert shapes[reshapes[0].input[1]][0] == first
    assert shapes[reshapes[-1].input[1]][0] <= 0


@pytest.mark.parametrize(
    "graph",
    [
        "(float[2,3,4] X) => (float[2,3,4] Y) { N = ReduceL2 <axes = [0]> (X) Y = Div (X, N) }",
        "(int32[1,3] X) => (int32[1,3] Y) <int32[1] k = {3}> { Y = Mod (X, k) }",
        "(float[1,3] X) => (int64[2] Y) { Y = Shape (X) }",
        "(float[4] X) => (float[N] Y) { Y = Unique (X) }",
    ],
)
def test_what_has_no_form_on_ncnn_is_declined(graph: str, tmp_path: Path) -> None:
    with pytest.raises(RefusedError):
        written(tmp_path, graph, opset=13)
