"""What ncnn gives no network of, by others; and what several images need that a runtime takes one by one."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import onnx
import onnx.parser
import pytest

import padfix
from padfix.errors import RefusedError
from tests.support.one_node import run


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
            "(float[1,6,8] X, float[8] s, float[8] b) => (float Y, float M) { Y, M = LayerNormalization (X, s, b) }",
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


@pytest.mark.parametrize(("images", "minded"), [(2, True), (1, False)])
def test_an_einsum_of_matrices_of_their_own_for_each_image_is_minded(images: int, minded: bool, tmp_path: Path) -> None:
    numbers = ", ".join(["0.5"] * 12 * images)
    text = f"(float[{images},2,3] X) => (float[{images},2,4] Y) <float[{images},3,4] w = {{{numbers}}}> "
    text += '{ Y = Einsum <equation = "bij,bjk->bik"> (X, w) }'
    model = onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : 17]> g {text}')
    onnx.save(model, tmp_path / "model.onnx")
    assert bool(padfix.check(tmp_path / "model.onnx", target="ncnn").findings) is minded


@pytest.mark.parametrize(("images", "axis", "minded"), [(2, 0, True), (1, 0, False), (2, 1, False)])
def test_images_in_a_row_are_minded(images: int, axis: int, minded: bool, tmp_path: Path) -> None:
    text = f"""(float[{images},3,4] X) => (float[{images},3,4] Y) <int64[3] s = {{{images}, 3, 4}}>
        {{ f = Flatten <axis = {axis}> (X) r = Relu (f) Y = Reshape (r, s) }}"""
    model = onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : 17]> g {text}')
    onnx.save(model, tmp_path / "model.onnx")
    found = [each.op_type for each in padfix.check(tmp_path / "model.onnx", target="ncnn").findings]
    assert ("Flatten" in found) is minded


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


@pytest.mark.parametrize(
    "graph",
    [
        "(float[2,4] A, float[2,4] B) => (float[2,2] Y) { b = Softmax (B) Y = Gemm <transB = 1> (A, b) }",
        "(float[2,2] A, float[2,4] B) => (float[2,4] Y) { b = Softmax (B) Y = MatMul (A, b) }",
        "(float[2] X) => (float[2] Y) <float[2,2] w = {1, 2, 3, 4}> { Y = MatMul (X, w) }",
        "(float[2,4] X) => (float[2,4] Y) <float[2,2] w = {1, 2, 3, 4}> { Y = MatMul (w, X) }",
        '(float[2,4] A, float[2,4] B) => (float[2,2] Y) { Y = Einsum <equation = "ij,kj->ik"> (A, B) }',
        "(float[2,3,2] X) => (float[2,3,2] Y) { Z = Transpose <perm = [2, 1, 0]> (X) Y = Abs (Z) }",
        "(float[2,3] X) => (float[2,3] Y) { Y = LpNormalization <axis = 0> (X) }",
        """(float[2,3,2] X) => (float[2,6] Y) <int64[2] n = {2, 6}> {
          Z = Transpose <perm = [1, 0, 2]> (X) Y = Reshape (Z, n) }""",
    ],
)
def test_images_that_are_mixed_are_declined_where_each_is_taken_by_itself(graph: str, tmp_path: Path) -> None:
    with pytest.raises(RefusedError):
        written(tmp_path, graph, opset=17)


@pytest.mark.parametrize(
    "graph",
    [
        "(float[2,3,4] A, float[2,4,5] B) => (float[2,3,5] Y) { Y = MatMul (A, B) }",
        "(float[2,2] A, float[2,4] B) => (float[2,4] Y) { Y = MatMul (A, B) }",
        "(float[2,4] A, float[2,4] B) => (float[2,2] Y) { Y = Gemm <transB = 1> (A, B) }",
        '(float[2,4] A, float[2,4] B) => (float[2] Y) { Y = Einsum <equation = "ij,ij->i"> (A, B) }',
        """(float[2,3,4] X) => (float[2,3,4] Y) {
          T = Transpose <perm = [1, 0, 2]> (X) R = Relu (T) Y = Transpose <perm = [1, 0, 2]> (R) }""",
    ],
)
def test_images_that_stay_apart_are_no_matter(graph: str, tmp_path: Path) -> None:
    written(tmp_path, graph, opset=17)
    assert not padfix.check(tmp_path / "result.onnx", target="ncnn").findings


@pytest.mark.parametrize(
    "graph",
    [
        "(int64[2] N) => (float Y) { Y = ConstantOfShape (N) }",
        "(float[1,9] X, int64[2] N) => (float Y) { Y = Reshape (X, N) }",
        "(float[1,4,4] X, int64[2] N) => (float Y, float Z) { Y, Z = Split <axis = 1> (X, N) }",
        "(float A, float B, float C) => (float Y) { Y = Range (A, B, C) }",
        "(float[1,9,4] X, int64 I) => (float Y) { Y = Gather <axis = 1> (X, I) }",
    ],
)
def test_what_data_tell_is_declined(graph: str, tmp_path: Path) -> None:
    with pytest.raises(RefusedError):
        written(tmp_path, graph, opset=17)


@pytest.mark.parametrize(
    ("node", "expected"),
    [
        ("Y = Relu (X)", ["MaxPool", "Relu"]),
        ("Y = Add (X, X)", ["MaxPool", "Add"]),
        ('Y = Pad <mode = "edge"> (X, p)', ["MaxPool", "Pad"]),
        ("Y = Slice (X, a, b, b)", ["MaxPool", "Slice"]),
        ("Y = GlobalAveragePool (X)", ["GlobalAveragePool"]),
        ("Z = Relu (X) Y = MaxPool <kernel_shape = [2, 2, 2], strides = [1, 1, 1]> (Z)", ["Relu", "MaxPool"]),
    ],
)
def test_a_pool_tells_the_batch_of_a_volume(node: str, expected: list[str], tmp_path: Path) -> None:
    told = "<int64[10] p = {0, 0, 1, 0, 0, 0, 0, 0, 2, 1}, int64[1] a = {1}, int64[1] b = {2}>"
    assert written(tmp_path, f"(float[1,3,4,5,6] X) => (float Y) {told} {{ {node} }}", opset=17) == expected


@pytest.mark.parametrize(("images", "is_right"), [(1, True), (2, False)])
def test_the_norm_of_a_batch_is_of_one_image(images: int, is_right: bool, tmp_path: Path) -> None:
    shape = f"{images},2,3,4"
    graph = f"""(float[{shape}] X) => (float[{shape}] Y, float[2] M, float[2] V)
      <float[2] s = {{1, 2}}, float[2] v = {{3, 4}}> {{
      Y, M, V = BatchNormalization <training_mode = 1> (X, s, s, s, v) }}"""
    if is_right:
        assert "BatchNormalization" not in written(tmp_path, graph, opset=15)
    else:
        with pytest.raises(RefusedError):
            written(tmp_path, graph, opset=15)


PARTS = """(float[b,n,24] X) => (float[b,2,n,4] Y)
    <int64 i = {0}, int64[3] t = {3, 2, 4}, int64[1] b = {0}, int64[1] l = {1}, int64[1] m = {2}, int64[1] e = {9}> {
        A = Relu (X) B = Shape <end = 2> (A) C = Concat <axis = 0> (B, t) V = Reshape (A, C)
        W = Transpose <perm = [2, 0, 3, 1, 4]> (V) Q = Gather (W, i) K = Slice (W, l, m, b) L = Squeeze (K, b)
        M = Slice (W, m, e, b) N = Squeeze (M, b) O = Sub (Q, L) Y = Mul (O, N) }"""


def test_parts_of_a_volume_are_picked_before_it_is_made(tmp_path: Path) -> None:
    part = ["Slice", "Reshape", "Transpose"]
    assert sorted(written(tmp_path, PARTS, opset=17)) == sorted(["Relu", *part * 3, "Sub", "Mul"])
    data = np.random.default_rng(0).normal(size=(2, 5, 24)).astype(np.float32)
    before, after = (run(onnx.load(tmp_path / f"{name}.onnx"), {"X": data}) for name in ("model", "result"))
    assert np.array_equal(before[0], after[0])


MULTIHEAD = """(float[b,5,6] X) => (float[b,5,6] Y)
    <int64 zero = {0}, int64 one = {1}, int64 two = {2}, int64 heads = {3}, int64[1] first = {0}, int64[1] part = {3},
     int64[2] parts = {3, 2}, int64[1] long = {5}, int64[1] deep = {2}, int64[1] wide = {6}, int64[1] before = {-2}> {
        T = Transpose <perm = [1, 0, 2]> (X) P = Concat <axis = 2> (T, T, T) lengths = Shape (P)
        batch = Gather (lengths, one) images = Unsqueeze (batch, first)
        split = Concat <axis = 0> (long, images, part, wide) A = Reshape (P, split) B = Unsqueeze (A, first)
        C = Transpose <perm = [3, 1, 2, 0, 4]> (B) D = Squeeze (C, before)
        Q = Gather (D, zero) K = Gather (D, one) V = Gather (D, two)
        count = Mul (batch, heads) all = Unsqueeze (count, first) told = Concat <axis = 0> (long, all, deep)
        Q1 = Reshape (Q, told) Q2 = Transpose <perm = [1, 0, 2]> (Q1)
        K1 = Reshape (K, told) K2 = Transpose <perm = [1, 2, 0]> (K1)
        V1 = Reshape (V, told) V2 = Transpose <perm = [1, 0, 2]> (V1)
        S = MatMul (Q2, K2) W = Softmax <axis = -1> (S) R = MatMul (W, V2) R1 = Transpose <perm = [1, 0, 2]> (R)
        rest = Concat <axis = 0> (long, images, wide) R2 = Reshape (R1, rest) Y = Transpose <perm = [1, 0, 2]> (R2) }"""


def test_a_number_of_the_caller_is_no_image(tmp_path: Path) -> None:
    graph = (
        "(float X, float[5] V) => (float[6] Y) <int64[1] a = {0}> { x = Unsqueeze (X, a) Y = Concat <axis = 0> (x, V) }"
    )
    written(tmp_path, graph, "opencv", 13)
    assert not padfix.check(tmp_path / "result.onnx", target="opencv").findings


@pytest.mark.parametrize("target", ["ncnn", "opencv", "opencv@4.14"])
def test_attention_of_an_open_batch_as_pytorch_writes_it(target: str, tmp_path: Path) -> None:
    nodes = written(tmp_path, MULTIHEAD, target, opset=17)
    assert ("Slice" in nodes) == (target == "ncnn")
    assert ("Shape" in nodes) == (target == "ncnn")
    for images in (1, 3):
        data = np.random.default_rng(0).normal(size=(images, 5, 6)).astype(np.float32)
        before, after = (run(onnx.load(tmp_path / f"{name}.onnx"), {"X": data}) for name in ("model", "result"))
        assert np.array_equal(before[0], after[0])


@pytest.mark.parametrize(("rows", "is_declined"), [("-1, 4, 6", True), ("0, 8, 6", False)])
def test_a_layer_over_several_times_as_many_images_is_declined(rows: str, *, is_declined: bool, tmp_path: Path) -> None:
    channels = 4 if is_declined else 8
    numbers = ", ".join(["0.5"] * (2 * channels))
    graph = f"""(float[N,2,4,6] X) => (float[a,b,c] Y)
        <int64[3] rows = {{{rows}}}, float[2,{channels},1] w = {{{numbers}}}> {{
        A = Relu (X) B = Reshape (A, rows) Y = Conv (B, w) }}"""
    if is_declined:
        with pytest.raises(RefusedError, match="one image with the channels of all"):
            written(tmp_path, graph, opset=17)
    else:
        assert written(tmp_path, graph, opset=17)[-1] == "Conv"


@pytest.mark.parametrize("node", ["Y = Mod <fmod = 1> (X, c)", "t = Less (X, c) Y = Cast <to = 1> (t)"])
def test_a_constant_of_several_images_is_declined_whatever_reads_it(node: str, tmp_path: Path) -> None:
    with pytest.raises(RefusedError, match="other numbers for each of several"):
        written(
            tmp_path, f"(float[2,3] X) => (float[2,3] Y) <float[2,3] c = {{1, 2, 3, 4, 5, 6}}> {{ {node} }}", opset=17
        )


LAYER = """(float[2,9,4] X) => (float[2,9,6] Y) <float[1,6,4] w, float[1,6,6] r, float[1,12] b, int64[3] s = {%s}> {
    h = ConstantOfShape <value = float[1] {%s}> (n) T = Transpose <perm = [1, 0, 2]> (X)
    A = RNN <hidden_size = 6> (T, w, r, b, , h) B = Transpose <perm = [0, 2, 1, 3]> (A) C = Reshape (B, s)
    Y = Transpose <perm = [1, 0, 2]> (C) }"""


@pytest.mark.parametrize(("shape", "told"), [("0, 2, 6", [0, 0, 6]), ("9, 2, -1", [0, 0, 6]), ("9, -1, 6", [9, -1, 6])])
def test_a_layer_over_several_images_starts_each_alike_and_counts_none(
    shape: str, told: list[int], tmp_path: Path
) -> None:
    text = LAYER.replace("int64[3] s", "int64[3] n = {1, 2, 6}, int64[3] s") % (shape, "0")
    for name, lengths in (("w", (1, 6, 4)), ("r", (1, 6, 6)), ("b", (1, 12))):
        numbers = ", ".join(["0.5"] * math.prod(lengths))
        text = text.replace(f"] {name},", f"] {name} = {{{numbers}}},")
    written(tmp_path, text, opset=17)
    graph = onnx.load(tmp_path / "result.onnx").graph
    values = {each.name: onnx.numpy_helper.to_array(each).tolist() for each in graph.initializer}
    (layer,) = (node for node in graph.node if node.op_type == "RNN")
    assert len(layer.input) == 4
    assert [values[node.input[1]] for node in graph.node if node.op_type == "Reshape"] == [told]
    with pytest.raises(RefusedError, match="for each of several"):
        written(tmp_path, text.replace("float[1] {0}", "float[1] {1}"), opset=17)


FIRST_ALONE = """(float[2,4,6,6] X) => (float[1,4,6,6] Y) <int64[1] b = {0}, int64[1] e = {1}> {
    A = %s (X) Y = Slice (A, b, e, b) }"""
TWICE = """(float[%s] X) => (float Y) <float s = {0.5}, int64[2] r = {-1, 3}> {
    A = %s C = Identity (%s) Y = Concat <axis = 0> (C, C) }"""
TURNED = """(float[%s] X) => (float Y) {
    A = MaxPool <kernel_shape = [1, 1]> (X) B = Transpose <perm = [%s]> (A) Y = Concat <axis = %d> (B, B) }"""
SUMMED = """(float[%s,3,5] X) => (float Y) {
    A = MaxPool <kernel_shape = [1]> (X) Y = Einsum <equation = "%s"> (A) }"""
PAIRED = """(float[N,6,3,4] X) => (float Y, float A) {
    A = MaxPool <kernel_shape = [1, 1]> (X) B = Transpose <perm = [3, 2, 1, 0]> (X)
    Y = Einsum <equation = "abcd,abcd->abc"> (B, B) }"""
BESIDE = "(float[%s,3,2,2] X, float[1,3,1,1] Z) => (float Y) { A = %s (X) Y = Mul (A, Z) }"
JOINED = """(float[2,4,6,6] X) => (float Y) <int64[1] b = {0}, int64[1] e = {1}, int64[1] l = {2}> {
    A = Slice (X, e, l, b) B = Slice (X, b, e, b) C = Concat <axis = 0> (A, B) Y = %s (C) }"""
GRID = """(float[%s] X, float[2,5,3,2] G) => (float Y) <int64[4] s = {2, 3, 4, 4}> {
    A = Reshape (X, s) Y = GridSample (A, G) }"""
BY_IDS = "(int32[2,5] X) => (float[2,5,2] Y) <float[9,2] t> { Y = Gather (t, X) }".replace(
    " t>", f" t = {{{', '.join('1' * 18)}}}>"
)


@pytest.mark.parametrize(
    ("graph", "reason"),
    [
        (FIRST_ALONE % "MaxPool <kernel_shape = [1, 1]>", "another number of images"),
        (FIRST_ALONE % "Softmax", ""),
        (JOINED % "MaxPool <kernel_shape = [1, 1]>", "joins several along another axis"),
        (JOINED % "Softmax", ""),
        (GRID % "1,6,4,4", "another number of images"),
        (GRID % "2,3,4,4", ""),
        (BY_IDS, "first row for every index below 0"),
        (BY_IDS.replace("int32", "int64"), "first row for every index below 0"),
        (TWICE % ("1,3,2,1", "PRelu (X, s)", "A"), ""),
        (TURNED % ("1,3,2,2", "1, 0, 2, 3", 1), ""),
        (TURNED % ("1,3,2,2", "1, 2, 3, 0", 3), "nothing lies behind the axis of images"),
        (SUMMED % ("N", "abc->bac"), ""),
        (SUMMED % ("N", "abc->acb"), ""),
        (PAIRED, "takes several together"),
        (TWICE % ("1,3,2,2", "Softmax (X)", "A"), ""),
        (TWICE % ("1,3,2,2", "PRelu (X, s) B = Reshape (A, r)", "B"), ""),
        (BESIDE % ("N", "GlobalMaxPool"), ""),
        (BESIDE % ("1", "GlobalMaxPool"), ""),
        (BESIDE % ("N", "Exp"), ""),
    ],
)
def test_what_ncnn_takes_no_batch_or_index_of_is_declined(graph: str, reason: str, tmp_path: Path) -> None:
    if not reason:
        written(tmp_path, graph, opset=17)
        return
    with pytest.raises(RefusedError, match=reason):
        written(tmp_path, graph, opset=17)


@pytest.mark.parametrize(
    ("reduction", "expected"),
    [
        ("ReduceSumSquare", ["Mul", *["Reshape", "MatMul", "Reshape"] * 2]),
        ("ReduceMean", ["Reshape", "MatMul", "Reshape"] * 2),
        ("ReduceLogSum", [*["Reshape", "MatMul", "Reshape"] * 2, "Log"]),
    ],
)
def test_several_images_are_summed_with_other_axes_by_products(
    reduction: str, expected: list[str], tmp_path: Path
) -> None:
    graph = f"(float[2,3,4,2] X) => (float Y) <int64[2] a = {{0, 1}}> {{ Y = {reduction} (X, a) }}"
    assert written(tmp_path, graph, opset=18) == expected
    assert not padfix.check(tmp_path / "result.onnx", target="ncnn").findings


@pytest.mark.parametrize(("lengths", "minded"), [("1,2,1,2,1,3", True), ("1,2,1,2", False)])
def test_an_input_of_six_axes_is_none_of_ncnn(lengths: str, minded: bool, tmp_path: Path) -> None:
    text = f'<ir_version: 8, opset_import: ["" : 17]> g (float[{lengths}] X) => (float[{lengths}] Y) {{ Y = Relu (X) }}'
    onnx.save(onnx.parser.parse_model(text), tmp_path / "model.onnx")
    found = padfix.check(tmp_path / "model.onnx", target="ncnn").findings
    assert ["no input of six axes" in each.message for each in found] == [True] * minded


@pytest.mark.parametrize(
    ("kind", "minded"), [("bool", True), ("uint16", True), ("uint64", True), ("float", False), ("float16", False)]
)
def test_an_input_of_a_type_that_its_converter_lacks_is_none_of_ncnn(kind: str, minded: bool, tmp_path: Path) -> None:
    text = f'<ir_version: 8, opset_import: ["" : 17]> g ({kind}[2,4] X) => ({kind}[8] Y) <int64[1] s = {{8}}> {{'
    onnx.save(onnx.parser.parse_model(text + " Y = Reshape (X, s) }"), tmp_path / "model.onnx")
    found = padfix.check(tmp_path / "model.onnx", target="ncnn").findings
    assert any("its converter has no such type" in each.message for each in found) == minded


@pytest.mark.parametrize(
    ("lengths", "numbers", "is_right"), [("1,1,1,1,1,3", 3, False), ("1,1,1,1,1,1", 1, True), ("1,1,1,1,3", 3, True)]
)
def test_a_constant_of_six_axes_is_none_of_ncnn(lengths: str, numbers: int, is_right: bool, tmp_path: Path) -> None:
    told = ", ".join("123"[:numbers])
    text = f"(float[1,2,2,3] X) => (float Y) <float[{lengths}] c = {{{told}}}> {{ Y = Sub (X, c) }}"
    if is_right:
        assert written(tmp_path, text, opset=17) == ["Sub"]
        return
    with pytest.raises(RefusedError, match="a constant has six axes"):
        written(tmp_path, text, opset=17)


@pytest.mark.parametrize(
    ("node", "expected"),
    [
        ("ReduceMean <axes = [0, 2]> (X)", ["Reshape", "MatMul", "Reshape"]),
        ("ReduceMean <axes = [0, 3]> (X)", [*["Reshape", "MatMul", "Reshape"], "MatMul"]),
        ("ReduceSumSquare <axes = [0, 2]> (X)", ["Mul", "Reshape", "MatMul", "Reshape"]),
    ],
)
def test_an_axis_of_one_element_is_multiplied_by_no_matrix(node: str, expected: list[str], tmp_path: Path) -> None:
    assert written(tmp_path, f"(float[2,3,1,4] X) => (float Y) {{ Y = {node} }}", opset=17) == expected
    data = {"X": np.random.default_rng(0).normal(size=(2, 3, 1, 4)).astype(np.float32)}
    found, wanted = (run(onnx.load(tmp_path / f"{name}.onnx"), data) for name in ("result", "model"))
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("node", "lengths", "expected"),
    [
        ("Y = Concat <axis = 0> (o, X)", "4", ["Concat", "Slice"]),
        ("Y = Concat <axis = 0> (o, X, o)", "4", ["Concat", "Slice"]),
        ("Y = Concat <axis = 0> (t, X)", "4", ["Concat"]),
        ("Y = Pad (X, p)", "4", ["Concat", "Slice"]),
        ("Y = ReduceMax <axes = [0, 1, 2, 3]> (X)", "1,2,3,4", ["ReduceMax"]),
        ("Y = ReduceMin <axes = [0, 1, 2, 3], keepdims = 0> (X)", "1,2,3,4", ["ReduceMin"]),
    ],
)
def test_numbers_are_joined_and_all_axes_reduced(node: str, lengths: str, expected: list[str], tmp_path: Path) -> None:
    constants = "float[1] o = {7}, float[2] t = {7, 8}, int64[2] p = {1, 0}"
    text = f"(float[{lengths}] X) => (float Y) <{constants}> {{ {node} }}"
    assert written(tmp_path, text, opset=17) == expected
    result, source = (onnx.load(tmp_path / f"{name}.onnx") for name in ("result", "model"))
    assert not [each for each in result.graph.node[0].attribute if each.name == "axes"]
    data = {"X": np.random.default_rng(0).normal(size=[int(each) for each in lengths.split(",")]).astype(np.float32)}
    np.testing.assert_array_equal(run(result, data), run(source, data))


def test_the_axes_that_a_squeeze_takes_out_are_written(tmp_path: Path) -> None:
    assert written(tmp_path, "(float[3,1,3] X) => (float Y) { Y = Squeeze (X) }", opset=17) == ["Squeeze"]
    (node,) = (each for each in onnx.load(tmp_path / "result.onnx").graph.node if each.op_type == "Squeeze")
    assert len(node.input) == 2


@pytest.mark.parametrize(("end", "expected"), [(1 << 31, (1 << 63) - 1), ((1 << 31) - 1, (1 << 31) - 1), (6, 6)])
def test_an_end_that_32_bits_do_not_hold_is_none(end: int, expected: int, tmp_path: Path) -> None:
    text = f"""(float[1,6,4] X) => (float Y) <int64[1] b = {{-2}}, int64[1] e = {{{end}}}, int64[1] a = {{1}}> {{
        Y = Slice (X, b, e, a) }}"""
    assert written(tmp_path, text, opset=17) == ["Slice"]
    graph = onnx.load(tmp_path / "result.onnx").graph
    values = {each.name: onnx.numpy_helper.to_array(each).tolist() for each in graph.initializer}
    values |= {
        each.output[0]: onnx.numpy_helper.to_array(each.attribute[0].t).tolist()
        for each in graph.node
        if each.op_type == "Constant"
    }
    (node,) = [each for each in graph.node if each.op_type == "Slice"]
    assert values[node.input[2]] == [expected]


@pytest.mark.parametrize(
    ("graph", "results"),
    [
        (TWICE % ("1,3,2,2", "MaxPool <kernel_shape = [1, 1]> (X)", "A"), "float Y"),
        (TWICE % ("1,3,2,2", "MaxPool <kernel_shape = [1, 1]> (X)", "X"), "float A, float Y"),
        (TURNED % ("1,3,2,2", "1, 2, 0, 3", 2), "float Y"),
    ],
)
def test_single_images_are_joined_as_matrices_for_ncnn(graph: str, results: str, tmp_path: Path) -> None:
    types = written(tmp_path, graph.replace("float Y", results, 1), opset=17)
    assert types[-4:] == ["Reshape", "Reshape", "Concat", "Reshape"]
