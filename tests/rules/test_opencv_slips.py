"""What OpenCV takes for something else by what stands about it: a list's last axis, a Gelu, bytes, slopes, scores."""

from __future__ import annotations

import itertools
from pathlib import Path

import onnx
import onnx.parser
import pytest

import padfix
from padfix.errors import RefusedError

CONSTANTS = (
    "<int64[1] k = {2}, int64[1] one = {1}, int64[1] flat = {-1}, int64[2] places = {0, 2}, float half = {0.5}, "
    "float[4,1] col = {1, 2, 3, 4}, float[1,2,1] each = {5, 6}, float n = {1}, float q = {0.79788}, "
    "float c = {0.044715}, float three = {3}, float two = {2}, float s = {0.1}, int8 z = {3}, "
    "float[4] slopes = {1, 2, 3, 4}, float[2,1,1,1] each_map = {3, -4}>"
)
CUBE = "a = Mul (c, X) b = Mul (X, a) d = Mul (X, b) "
GELU = "e = Add (X, d) f = Mul (q, e) g = Tanh (f) h = Add (n, g) "
POOLED = (
    "a = QuantizeLinear (X, s, z) b = DequantizeLinear (a, s, z) "
    "c1 = MaxPool <kernel_shape = [2, 3], strides = [2, 1], pads = [0, 1, 0, 1]> (b) "
)
NORM = (
    "m = ReduceMean <axes = [-1]> (%s) d = Sub (%s, m) p = Pow (d, two) v = ReduceMean <axes = [-1]> (p) "
    "u = Add (v, s) r = Sqrt (u) n1 = Div (d, r) %s"
)
FIRST, SECOND = "o = Mul (slopes, n1) Y = Add (o, slopes)", "o = Mul (n1, slopes) Y = Add (o, slopes)"
BYTES = "a = DequantizeLinear (X, s, z) b = LeakyRelu (a) "


def findings(nodes: str, given: str, target: str, folder: Path) -> tuple[list[str], Path]:
    """Return what ``check`` has against a model of these nodes, and where that is."""
    source = folder / "model.onnx"
    gives = (
        "int8[2,4]"
        if "QuantizeLinear (b" in nodes or "QuantizeLinear (r" in nodes
        else "int64[N,3]"
        if "NonMax" in nodes
        else "float"
    )
    body = f'<ir_version: 8, opset_import: ["" : 17]> g ({given}) => ({gives} Y) {CONSTANTS} {{ {nodes} }}'
    onnx.save(onnx.parser.parse_model(body), source)
    return [each.rule for each in padfix.check(source, target=target).findings], source


@pytest.mark.parametrize(
    ("nodes", "given", "target", "expected"),
    [
        ("l = Reshape (X, flat) Y, i = TopK (l, k)", "float[2,4] X", "4.14", ["Reshape", "TopK"]),
        ("Y, i = TopK <sorted = 0> (X, one)", "float[2,4] X", "4.14", ["TopK"]),
        ("Y = Unsqueeze (X, places)", "float[2,4] X", "4.14", ["Reshape"]),
        ("r = Relu (X) Y = Squeeze (r, one)", "float[N,1,M] X", "4.14", ["ReduceMax"]),
        ("t = Transpose (X) Y = Unsqueeze (t, one)", "float[N,4] X", "4.14", ["Reshape"]),
        ("t = Transpose <perm = [2, 1, 0]> (X) Y = Squeeze (t, one)", "float[N,1,4] X", "4.14", ["Reshape"]),
        (f"{CUBE}{GELU} j = Mul (half, h) Y = Mul (X, j)", "float[2,4] X", "4.14", ["Identity", "Tanh"]),
        (f"{CUBE}{GELU} j = Mul (X, h) Y = Mul (half, j)", "float[2,4] X", "5.0.0.93", ["Clip", "Tanh"]),
        (f"{BYTES} Y = QuantizeLinear (b, s, z)", "int8[2,4] X", "5.0.0.93", ["Identity", "LeakyRelu"]),
        (
            (
                "b = DequantizeLinear (X, s, z) c1 = DequantizeLinear (X, two, z) a = Mul (b, c1) r = Relu (a) "
                "Y = QuantizeLinear (r, s, z)"
            ),
            "int8[2,4] X",
            "5.0.0.93",
            ["Mul", "Identity", "Relu"],
        ),
        ("Y = PRelu (X, slopes)", "float[4,1] X", "5.0.0.93", ["Relu", "Neg", "Mul"]),
        ("p = MatMul (X, col) Y = Add (each, p)", "float[3,2,4] X", "4.14", ["MatMul", "Sum"]),
        (NORM % ("X", "X", FIRST), "float[2,4] X", "4.14", ["Div", "Mul", "Sum"]),
        (f"t = Neg (X) {NORM % ('t', 't', FIRST)}", "float[2,4] X", "5.0.0.93", ["Div", "Mul", "Sum"]),
        ("d = Div (X, two) e = Elu (d) Y = Mul (e, two)", "float[2,4] X", "4.14", ["Div", "Identity", "Elu", "Mul"]),
        (
            "d = Div (X, X) e = Elu (d) Y = Mul (three, e)",
            "float[2,4] X",
            "5.0.0.93",
            ["Div", "Identity", "Elu", "Mul"],
        ),
        ("e = Exp (X) r = ReduceSum (e, flat) l = Log (r) Y = Sub (X, l)", "float[2,4] X", "4.14", ["Neg", "Add"]),
        ("e = Exp (X) r = ReduceSum (e) Y = Div (e, r)", "float[2,4] X", "4.14", ["Reciprocal", "Mul"]),
        (
            "e = Exp (X) t = ReduceSum (e, flat) r = ReduceSum (t, one) Y = Div (e, r)",
            "float[2,4,3] X",
            "5.0.0.93",
            ["Reciprocal", "Mul"],
        ),
        (
            "n1 = Shape <end = 1> (X) t = Concat <axis = 0> (n1, flat) Y = Reshape (X, t)",
            "float[2,4] X",
            "4.14",
            ["Reshape"],
        ),
        ("e = Exp (X) r = Abs (X) l = Add (r, e) Y = Log (l)", "float[2,4] X", "4.14", ["Identity", "Add"]),
        ("e = Exp (X) l = Add (e, two) Y = Log (l)", "float[2,4] X", "5.0.0.93", ["Identity", "Add"]),
    ],
)
def test_it_is_written_as_it_is_meant(nodes: str, given: str, target: str, expected: list[str], tmp_path: Path) -> None:
    rules, source = findings(nodes, given, f"opencv@{target}", tmp_path)
    assert "PF306" in rules
    result = tmp_path / "result.onnx"
    padfix.convert(source, result, target=f"opencv@{target}")
    assert set(expected) <= {node.op_type for node in onnx.load(result).graph.node}
    assert not padfix.check(result, target=f"opencv@{target}").findings


@pytest.mark.parametrize(
    ("nodes", "given", "target"),
    [
        ("Y, i = TopK (X, k)", "float[2,4] X", "4.14"),
        (f"b = Pow (X, three) d = Mul (c, b) {GELU} j = Mul (half, h) Y = Mul (X, j)", "float[2,4] X", "4.14"),
        (f"{CUBE}{GELU} j = Mul (X, half) Y = Mul (j, h)", "float[2,4] X", "4.14"),
        (f"{BYTES} c1 = QuantizeLinear (b, s, z) Y = DequantizeLinear (c1, s, z)", "int8[2,4] X", "5.0.0.93"),
        ("p = MatMul (X, col) Y = Add (each, p)", "float[1,2,4] X", "4.14"),
        (NORM % ("X", "X", SECOND), "float[2,4] X", "4.14"),
        (f"t = Neg (X) {NORM % ('t', 't', FIRST)}", "float[2,4] X", "4.14"),
        (f"t = Neg (X) {NORM % ('t', 't', FIRST)}".replace("-1", "1"), "float[2,4] X", "5.0.0.93"),
        ("p = MatMul (X, col) Y = Add (each, p)", "float[3,2,4] X", "5.0.0.93"),
        ("Y = Conv <pads = [1, 0, 1, 0], group = 2> (X, each_map)", "float[1,2,4,4] X", "5.0.0.93"),
        ("p = Sigmoid (S) Y = NonMaxSuppression (X, p, k)", "float[1,4,4] X, float[1,2,4] S", "5.0.0.93"),
        (
            "p = Sigmoid (S) q = Mul (p, p) r = Concat <axis = 1> (p, q) Y = NonMaxSuppression (X, r, k)",
            "float[1,4,4] X, float[1,2,4] S",
            "5.0.0.93",
        ),
        ("d = Mul (X, two) e = Elu (d) Y = Mul (e, two)", "float[2,4] X", "4.14"),
        ("e = Exp (X) r = ReduceSum (e, one) Y = Div (e, r)", "float[2,4,3] X", "4.14"),
        ("e = Exp (X) r = ReduceSum (e, flat) l = Log (r) Y = Sub (e, l)", "float[2,4] X", "4.14"),
        ("n1 = Shape <end = 1> (X) t = Concat <axis = 0> (n1, flat) Y = Reshape (X, t)", "float[2,4] X", "5.0.0.93"),
        ("e = Exp (X) l = Add (n, e) Y = Log (l)", "float[2,4] X", "5.0.0.93"),
    ],
)
def test_others_are_right_as_they_are(nodes: str, given: str, target: str, tmp_path: Path) -> None:
    assert "PF306" not in findings(nodes, given, f"opencv@{target}", tmp_path)[0]


@pytest.mark.parametrize(
    ("behind", "is_found"),
    [("Y = Sigmoid (c1)", True), ("d = QuantizeLinear (c1, s, z) Y = DequantizeLinear (d, s, z)", False)],
)
def test_maxima_of_what_was_quantized_are_the_largest_of_slices(behind: str, is_found: bool, tmp_path: Path) -> None:
    rules, source = findings(f"{POOLED}{behind}", "float[1,2,6,5] X", "opencv@5.0.0.93", tmp_path)
    assert ("PF111" in rules) == is_found
    padfix.convert(source, tmp_path / "result.onnx", target="opencv@5.0.0.93")
    made = [node.op_type for node in onnx.load(tmp_path / "result.onnx").graph.node]
    assert [made.count(each) for each in ("MaxPool", "Pad", "Slice", "Max")] == (
        [0, 1, 5, 3] if is_found else [1, 0, 0, 0]
    )


@pytest.mark.parametrize(
    ("nodes", "given", "target"),
    [
        ("Y, i = TopK <sorted = 0> (X, k)", "float[2,4] X", "4.14"),
        ("Y = NonMaxSuppression (X, S, k)", "float[1,4,4] X, float[1,2,4] S", "5.0.0.93"),
    ],
)
def test_what_has_no_equal_form_is_refused(nodes: str, given: str, target: str, tmp_path: Path) -> None:
    source = findings(nodes, given, f"opencv@{target}", tmp_path)[1]
    with pytest.raises(RefusedError):
        padfix.convert(source, tmp_path / "result.onnx", target=f"opencv@{target}")


OPEN_SOUND = """(float[1,2,n] X) => (float[1,3,m] Y) <float[2,3,4] w> {
    A = Relu (X) Y = ConvTranspose <strides = [2], kernel_shape = [4], pads = [1, 1]> (A, w) }"""
OPEN_SCORES = """(float[b,s,4] X) => (float[b,s,4] Y) <float h = {0.5}> {
    A = Relu (X) K = Transpose <perm = [0, 2, 1]> (A)
    S = MatMul (A, K) T = %s (S, h) P = Softmax (T) Y = MatMul (P, A) }"""


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("float[1,2,n]", [[1, 2, 1, -1], [1, 3, -1]]),
        ("float[n,2,5]", [[0, 2, 1, 5], [2, 3, 1, 4], [0, 3, 10]]),
        ("float[1,2,5]", [[0, 0, 1, -1], [0, 0, 1, -1], [0, 0, -1]]),
    ],
)
def test_opencv_4_14_is_told_what_is_known_beside_open_lengths(
    given: str, expected: list[list[int]], tmp_path: Path
) -> None:
    text = OPEN_SOUND.replace("4] w>", f"4] w = {{{', '.join(['0.5'] * 24)}}}>").replace("float[1,2,n]", given)
    text = text.replace("float[1,3,m]", "float[a,3,m]")
    model = onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : 17]> g {text}')
    onnx.save(model, tmp_path / "m.onnx")
    padfix.convert(tmp_path / "m.onnx", tmp_path / "out.onnx", target="opencv@4.14")
    graph = onnx.load(tmp_path / "out.onnx").graph
    values = {each.name: onnx.numpy_helper.to_array(each).tolist() for each in graph.initializer}
    shapes = [values[node.input[1]] for node in graph.node if node.op_type == "Reshape"]
    assert shapes == expected


OPEN_KEYS = """(float[N,T,4] X) => (float Y) <float c = {0.5}> {
    k = Transpose <perm = [0, 2, 1]> (X) d = %s s = MatMul (X, d) p = Softmax <axis = -1> (s) Y = MatMul (p, X) }"""
OPEN_MASK = """(float[b,s,4] X, float[b,1,s] M) => (float[b,s,4] Y) {
    A = Relu (X) K = Transpose <perm = [0, 2, 1]> (A) S = MatMul (A, K) %s P = Softmax (T) Y = MatMul (P, A) }"""


@pytest.mark.parametrize(
    ("graph", "ends"),
    [
        (OPEN_SCORES % "Mul", "MatMul Mul Softmax Reshape MatMul"),
        (OPEN_SCORES % "Div", "MatMul Div Softmax Reshape MatMul"),
        (OPEN_SCORES % "Add", "MatMul Add Softmax Reshape MatMul"),
        (OPEN_KEYS % "Mul (k, c)", "Mul MatMul Softmax Reshape MatMul"),
        (OPEN_KEYS % "Div (k, c)", "Div MatMul Softmax Reshape MatMul"),
        (OPEN_MASK % "T = Add (S, M)", "Add Softmax Reshape MatMul"),
        (OPEN_MASK % "T = Identity (S)", "Transpose MatMul Softmax MatMul"),
        (OPEN_MASK.replace("(P, A)", "(P, B)") % "T = Add (S, M) B = Add (X, X)", "Add Add Softmax MatMul"),
    ],
)
def test_opencv_4_14_counts_open_lengths_of_products_alike(graph: str, ends: str, tmp_path: Path) -> None:
    onnx.save(onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : 17]> g {graph}'), tmp_path / "m.onnx")
    padfix.convert(tmp_path / "m.onnx", tmp_path / "out.onnx", target="opencv@4.14")
    found = [node.op_type for node in onnx.load(tmp_path / "out.onnx").graph.node]
    assert [each for each in found if each not in ("Constant", "Identity")][-len(ends.split()) :] == ends.split()
    assert not padfix.check(tmp_path / "out.onnx", target="opencv@4.14").findings


@pytest.mark.parametrize(
    ("nodes", "data", "written"),
    [
        ("a = Add (X, X) Y = Concat <axis = 1> (a, X)", "float[b,3,h,w] X", "Add Reshape Concat"),
        (
            "a = Sigmoid (X) b = Mul (a, X) Y = Concat <axis = 1> (b, X)",
            "float[1,3,h,5] X",
            "Sigmoid Mul Reshape Concat",
        ),
        ("a = Relu (X) Y = Concat <axis = 1> (a, X)", "float[b,3,h,w] X", "Relu Concat"),
        ("a = Add (X, X) Y = Concat <axis = 2> (a, X)", "float[1,3,h,4] X", "Add Concat"),
        ("a = Add (X, X) Y = Concat <axis = 2> (a, X)", "float[b,3,h,4] X", "Add Reshape Concat"),
        ("a = Add (X, X) b = Mul (X, X) Y = Concat <axis = 1> (a, b)", "float[b,3,h,w] X", "Add Mul Concat"),
        ("a = Add (X, X) Y = MatMul (a, Z)", "float[b,5,s] X, float[b,7,3] Z", "Add Reshape MatMul"),
        ("a = Add (X, X) Y = Gemm (a, Z)", "float[5,s] X, float[s,3] Z", "Add Reshape Gemm"),
    ],
)
def test_opencv_4_14_copies_lengths_that_it_counts_otherwise(
    nodes: str, data: str, written: str, tmp_path: Path
) -> None:
    rules, source = findings(nodes, data, "opencv@4.14", tmp_path)
    assert ("PF306" in rules) == ("Reshape" in written)
    padfix.convert(source, tmp_path / "result.onnx", target="opencv@4.14")
    found = [node.op_type for node in onnx.load(tmp_path / "result.onnx").graph.node]
    assert " ".join(each for each in found if each != "Constant") == written


@pytest.mark.parametrize(
    ("data", "nodes", "is_found"),
    [
        ("float[2,3,L] X", "a = GlobalMaxPool (X) Y = Squeeze (a, k)", True),
        ("float[2,3,H,W] X", "a = GlobalAveragePool (X) b = Relu (a) Y = Squeeze (b, k)", True),
        ("float[2,3,5] X", "a = GlobalMaxPool (X) Y = Squeeze (a, k)", False),
        ("float[2,3,L] X", "a = ReduceMax <axes = [2]> (X) Y = Squeeze (a, k)", False),
        ("float[2,3,L] X", "a = GlobalMaxPool (X) Y = Flatten (a)", False),
    ],
)
def test_axes_of_a_pool_over_an_open_length_are_taken_by_a_reshape(
    data: str, nodes: str, *, is_found: bool, tmp_path: Path
) -> None:
    rules, source = findings(nodes, data, "opencv@4.14", tmp_path)
    assert ("PF306" in rules) == is_found
    padfix.convert(source, tmp_path / "result.onnx", target="opencv@4.14")
    assert ("Reshape" in [node.op_type for node in onnx.load(tmp_path / "result.onnx").graph.node]) == is_found


@pytest.mark.parametrize(
    ("shape", "numbers", "is_found"),
    [("2,4,6", "4,1", True), ("2,4,6", "1", True), ("2,4,3,2", "4,1,1", False), ("2,4,3,2", "1", True)],
)
def test_a_norm_of_groups_is_scaled_apart(shape: str, numbers: str, *, is_found: bool, tmp_path: Path) -> None:
    """OpenCV 5 makes a GroupNormalization of it, which it has for planes with one number a channel."""
    values = "1, 2, 3, 4" if numbers.startswith("4") else "2"
    text = f"""<ir_version: 8, opset_import: ["" : 17]> g (float[{shape}] X) => (float[{shape}] Y)
        <float[2] s = {{1, 1}}, float[2] b = {{0, 0}}, int64[3] groups = {{0, 2, -1}},
         int64[{shape.count(",") + 1}] back = {{{shape}}}, float[{numbers}] c = {{{values}}}> {{
            g = Reshape (X, groups) n = InstanceNormalization (g, s, b) l = Reshape (n, back)
            m = Mul (l, c) Y = Add (m, c) }}"""
    onnx.save(onnx.parser.parse_model(text), tmp_path / "model.onnx")
    padfix.convert(tmp_path / "model.onnx", tmp_path / "result.onnx", target="opencv@5.0.0.93")
    assert ("Max" in [node.op_type for node in onnx.load(tmp_path / "result.onnx").graph.node]) == is_found


FLATTENED = """(float[N,2,8,5] X) => (float[N,2,8,5] Y) <int64[1] rest = {-1}, int64[1] two = {2}, int64[1] four = {4},
    int64[1] zero = {0}, int64[1] parts = {2}> {
        a = Relu (X) lengths = Shape (a) inner = Slice (lengths, two, four, zero)
        flat = Concat <axis = 0> (rest, inner) b = Reshape (a, flat) c = Neg (b)
        first = Slice (lengths, zero, parts, zero) all = Concat <axis = 0> (first, inner) Y = Reshape (c, all) }"""


@pytest.mark.parametrize("target", ["opencv@4.14", "opencv@5.0.0.93", "opencv"])
def test_lengths_that_are_picked_beside_an_open_batch_are_written(target: str, tmp_path: Path) -> None:
    onnx.save(onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : 17]> g {FLATTENED}'), tmp_path / "m.onnx")
    padfix.convert(tmp_path / "m.onnx", tmp_path / "out.onnx", target=target)
    graph = onnx.load(tmp_path / "out.onnx").graph
    assert ("Shape" in [node.op_type for node in graph.node]) == (target == "opencv@5.0.0.93")


def _with_constants(nodes: str, tmp_path: Path, *, is_found: bool) -> tuple[onnx.GraphProto, set[str]]:
    """Return what is written for OpenCV 5, and what nodes give as constants in it; something is found in it, or not."""
    rules, source = findings(nodes, "float[4,3,5] X", "opencv@5.0.0.93", tmp_path)
    assert ("PF306" in rules) == is_found
    padfix.convert(source, tmp_path / "result.onnx", target="opencv@5.0.0.93")
    graph = onnx.load(tmp_path / "result.onnx").graph
    return graph, {name for node in graph.node if node.op_type == "Constant" for name in node.output}


INDEX = "i = Constant <value_ints = [2]> () "


@pytest.mark.parametrize(
    ("nodes", "is_found"),
    [
        (f"{INDEX}g = Gather <axis = 1> (X, i) o = Cast <to = 6> (g) Y = Cast <to = 1> (o)", True),
        (f"len = Shape (X) {INDEX}g = Gather (len, i) o = Cast <to = 1> (g) Y = Div (X, o)", True),
        ("g = Gather <axis = 1> (X, k) o = Cast <to = 6> (g) Y = Cast <to = 1> (o)", False),
        (f"{INDEX}g = Gather <axis = 1> (X, i) h = Identity (g) o = Cast <to = 6> (h) Y = Cast <to = 1> (o)", False),
        (f"{INDEX}g = Gather <axis = 1> (X, i) o = Cast <to = 6> (g) u = Cast <to = 1> (o) Y = Add (u, g)", False),
    ],
)
def test_indices_before_a_cast_are_initializers(nodes: str, *, is_found: bool, tmp_path: Path) -> None:
    graph, given = _with_constants(nodes, tmp_path, is_found=is_found)
    alone = [each for each in graph.node if each.op_type == "Gather" and "Cast" in _readers(graph, each.output[0])]
    assert all(each.input[1] not in given for each in alone)


EIGHT = "i = Constant <value = float {8}> () "


@pytest.mark.parametrize(
    ("nodes", "is_found"),
    [
        (f"{EIGHT}p = Mul (X, i) o = Cast <to = 7> (p) Y = Cast <to = 1> (o)", True),
        (f"{EIGHT}p = Mul (i, X) o = Cast <to = 7> (p) m = Add (o, o) l = Cast <to = 1> (m) Y = Sub (l, p)", True),
        (f"{EIGHT}j = Identity (i) p = Mul (X, j) o = Cast <to = 7> (p) Y = Cast <to = 1> (o)", False),
        (f"{EIGHT}p = Div (X, i) o = Cast <to = 7> (p) Y = Cast <to = 1> (o)", False),
        (f"{EIGHT}p = Mul (X, i) f = Floor (p) o = Cast <to = 7> (f) Y = Cast <to = 1> (o)", False),
    ],
)
def test_factors_before_a_cast_are_initializers(nodes: str, *, is_found: bool, tmp_path: Path) -> None:
    graph, given = _with_constants(nodes, tmp_path, is_found=is_found)
    casts = {node.input[0] for node in graph.node if node.op_type == "Cast"}
    assert not any(node.op_type == "Mul" and casts & {*node.output} and given & {*node.input} for node in graph.node)


@pytest.mark.parametrize(
    ("nodes", "is_found"),
    [
        ("c = Conv (X, w) p = GlobalAveragePool (c) q = Relu (p) d = Conv (c, u) Y = Add (d, q)", True),
        ("c = Conv (X, w) p = GlobalAveragePool (X) q = Conv (p, w) r = Relu (q) d = Conv (c, u) Y = Sum (r, d)", True),
        ("c = Conv (X, w) p = Conv <strides = [8, 8]> (X, w) Y = Add (p, c)", True),
        ("c = Conv (X, w) p = Conv (X, w) Y = Add (p, c)", False),
        ("c = Conv (X, w) p = GlobalAveragePool (X) q = Conv (p, w) Y = Mul (c, q)", False),
        ("c = Conv (X, w) p = GlobalAveragePool (c) Y = Add (c, p)", False),
        ("z = ReduceMean <axes = [1]> (X) d = Conv (X, w) Y = Add (d, z)", True),
    ],
)
def test_a_sum_is_apart_from_a_convolution_of_another_shape(nodes: str, *, is_found: bool, tmp_path: Path) -> None:
    """OpenCV 5 makes a sum part of the convolution before it, as in a network that adds a context to its images."""
    weights = "<float[2,2,1,1] w = {1, 2, 3, -4}, float[2,2,1,1] u = {2, 0, -1, 1}>"
    body = (
        f'<ir_version: 8, opset_import: ["" : 17]> g (float[N,2,8,8] X) => (float[N,2,8,8] Y) {weights} {{ {nodes} }}'
    )
    onnx.save(onnx.parser.parse_model(body), tmp_path / "model.onnx")
    rules = [each.rule for each in padfix.check(tmp_path / "model.onnx", target="opencv@5.0.0.93").findings]
    assert ("PF306" in rules) == is_found
    padfix.convert(tmp_path / "model.onnx", tmp_path / "result.onnx", target="opencv@5.0.0.93")
    found = [node.op_type for node in onnx.load(tmp_path / "result.onnx").graph.node]
    assert ("Identity" in found) == is_found


@pytest.mark.parametrize("layer", ["Conv (p, w)", "MaxPool <kernel_shape = [1, 1]> (p)"])
def test_what_many_nodes_compute_of_constants_is_a_constant_for_a_layer(layer: str, tmp_path: Path) -> None:
    """As positions are that a convolution projects; OpenCV 5 takes no constant for its data, however it is computed."""
    nodes = " ".join(f"{name} = Sin ({before})" for before, name in itertools.pairwise("cdefghijklmnop"))
    body = f"""<ir_version: 8, opset_import: ["" : 17]> g (float[1,2,2,2] X) => (float[1,2,2,2] Y)
      <float[2,2,1,1] w = {{1, 2, 3, -4}}, float[1,2,2,2] c = {{1, 2, 3, 4, 5, 6, 7, 8}}>
      {{ {nodes} z = {layer} Y = Add (X, z) }}"""
    onnx.save(onnx.parser.parse_model(body), tmp_path / "model.onnx")
    padfix.convert(tmp_path / "model.onnx", tmp_path / "result.onnx", target="opencv@5.0.0.93")
    found = [node.op_type for node in onnx.load(tmp_path / "result.onnx").graph.node]
    assert [each for each in found if each != "Constant"] == ["Add"]


def _readers(graph: onnx.GraphProto, name: str) -> list[str]:
    found = [each.op_type for each in graph.node if name in each.input]
    return found if len(found) == 1 else []


ADDED = """p2 = Constant <value = float {2}> () e = Constant <value = float {0.5}> () p = Pow (X, p2)
    r = ReduceSum <axes = [1]> (p) q = Sqrt (r) d = Add (e, q)"""
CUT_OFF = "r = ReduceL2 <axes = [1]> (X) q = Clip <min = 0.5> (r) s = Shape (X) d = Expand (q, s)"


@pytest.mark.parametrize("version", ["4.14", "5.0.0.93"])
@pytest.mark.parametrize("norm", [ADDED, CUT_OFF])
def test_a_norm_is_apart_from_what_it_divides_where_a_number_is_added_to_it(
    norm: str, version: str, tmp_path: Path
) -> None:
    body = f'<ir_version: 5, opset_import: ["" : 10]> g (float[2,4] X) => (float[2,4] Y) {{ {norm} Y = Div (X, d) }}'
    onnx.save(onnx.parser.parse_model(body), tmp_path / "model.onnx")
    result = tmp_path / "result.onnx"
    padfix.convert(tmp_path / "model.onnx", result, target=f"opencv@{version}")
    behind = {node.output[0]: node.op_type for node in onnx.load(result).graph.node}
    quotient = next(node for node in onnx.load(result).graph.node if node.op_type == "Div")
    assert behind[quotient.input[1]] == "Identity"
    assert not padfix.check(result, target=f"opencv@{version}").findings
