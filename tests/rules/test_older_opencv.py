"""What OpenCV 4.14 makes part of a layer before, and constants that it takes in once."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx.parser
import pytest

import padfix
from padfix.errors import RefusedError
from tests.support.one_node import run

GROUPS = """(float[1,2,3,3] X) => (float[1,2,5,5] Y)
<float[2,1,3,3] w = {1, 2, 3, 4, 5, 6, 7, 8, 9, 9, 8, 7, 6, 5, 4, 3, 2, 1}, float[2] s = {2, 3}, float[2] v = {4, 1},
 float[1] low = {-9}> { c = ConvTranspose <group = %d> (X, w) %s }"""
NORMED = "Y = BatchNormalization (%s, s, s, s, v)"
SUM = """(float[2,2] X) => (float[1,2,2] Y)
<float[2,2] w = {1, 2, 3, 4}, float[1,%s] b = {%s}> { p = MatMul (X, w) Y = Add (p, b) }"""
JOINED = """(float[1,2] X) => (float[2,4] Y) <float[1,2] z = {0, 1}>
{ a = Concat <axis = 0> (X, z) b = Concat <axis = 0> (z, X) Y = Concat <axis = 1> (a, b) }"""

NORMALISED = """(float[2,3,4] X) => (float[2,3,4] Y) <float low = {1e-12}, float high = {1e30}>
{ n = ReduceL2 <axes = [%d]> (X) c = Clip (n, low, high) s = Shape (X) d = Expand (c, s) Y = Div (X, d) }"""
PLACE = """(float[3,4] X) => (int64%s Y)
{ n = ReduceMax <axes = [1], keepdims = 0> (X) Y = ArgMax <axis = 0, keepdims = %d> (n) }"""

ROWS = """(float[N,3] X, float[N,3] Z) => (float[N,6] Y)
<float[3,3] w = {1, 2, 3, 4, 5, 6, 7, 8, 9}, float[3] b = {1, 2, 3}>
{ %s Y = Concat <axis = 1> (a, X) }"""


@pytest.mark.parametrize(
    ("graph", "written"),
    [
        (GROUPS % (2, NORMED % "c"), ["ConvTranspose", "Mul", "Add"]),
        (GROUPS % (2, f"m = Max (c, low) {NORMED % 'm'}"), ["ConvTranspose", "Max", "BatchNormalization"]),
        (SUM % ("1,2", "5, 6"), ["MatMul", "Sum"]),
        (SUM.replace("float[1,2,2] Y", "float[2,2] Y") % ("2", "5, 6"), ["MatMul", "Add"]),
        (JOINED, ["Concat", "Concat", "Concat"]),
        (NORMALISED % 1, ["ReduceL2", "Clip", "Shape", "Expand", "Div"]),
        (NORMALISED % 2, ["ReduceL2", "Max", "Min", "Shape", "Expand", "Div"]),
        (NORMALISED % -1, ["ReduceL2", "Max", "Min", "Shape", "Expand", "Div"]),
        (NORMALISED % -2, ["ReduceL2", "Clip", "Shape", "Expand", "Div"]),
        (PLACE % ("", 0), ["ReduceMax", "Reshape", "ArgMax", "Cast", "ReduceMax", "Cast"]),
        (PLACE % ("[1]", 1), ["ReduceMax", "Reshape", "ArgMax", "Reshape"]),
        (ROWS % "a = Mul (X, Z)", ["Mul", "Reshape", "Concat"]),
        (ROWS % "m = Add (X, Z) n = Relu (m) a = MatMul (n, w)", ["Add", "Relu", "MatMul", "Reshape", "Concat"]),
        (ROWS % "m = MatMul (Z, w) a = Add (m, b)", ["MatMul", "Add", "Concat"]),
        (PLACE.replace("float[3,4]", "float[1,4]") % ("[1]", 1), ["ReduceMax", "Reshape", "ArgMax", "Reshape"]),
    ],
)
def test_it_is_kept_apart(graph: str, written: list[str], tmp_path: Path) -> None:
    model = onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : 13]> g {graph}')
    onnx.save(model, tmp_path / "model.onnx")
    padfix.convert(tmp_path / "model.onnx", tmp_path / "result.onnx", target="opencv@4.14")
    result = onnx.load(tmp_path / "result.onnx")
    assert [node.op_type for node in result.graph.node if node.op_type != "Constant"] == written
    assert not padfix.check(tmp_path / "result.onnx", target="opencv@4.14").findings
    if graph == JOINED:
        first, second, _ = (node for node in result.graph.node if node.op_type == "Concat")
        assert not set(first.input) & set(second.input) - {"X"}


QUANTIZED = """(float[1,6] X) => (%s Y) <float s = {0.5}, uint8 z = {128}, int64[2] t = {2, 3}>
{ q = QuantizeLinear (X, s, z) %s }"""


@pytest.mark.parametrize(
    ("graph", "is_kept"),
    [
        (QUANTIZED % ("uint8", "Y = Transpose (q)"), False),
        (QUANTIZED % ("uint8", "r = Reshape (q, t) Y = Concat <axis = 0> (r, r)"), False),
        (QUANTIZED % ("float", "Y = Cast <to = 1> (q)"), False),
        (QUANTIZED % ("float", "r = Reshape (q, t) Y = DequantizeLinear (r, s, z)"), True),
        (
            QUANTIZED % ("uint8[1,6] q, float", "r = Reshape (q, t) Y = DequantizeLinear (r, s, z)"),
            False,
        ),
    ],
)
def test_unsigned_bytes_are_left_to_quantizers_alone(graph: str, *, is_kept: bool, tmp_path: Path) -> None:
    written = operators(graph, tmp_path)
    assert {"QuantizeLinear", "DequantizeLinear"} & set(written) == (
        {"QuantizeLinear", "DequantizeLinear"} if is_kept else set()
    )


@pytest.mark.parametrize(
    ("graph", "written"),
    [
        ("(float X) => (float[1] Y) <int64[1] a = {0}> { Y = Unsqueeze (X, a) }", ["Mul", "Reshape"]),
        (
            "(float X) => (float Y) <int64[2] a = {0, 1}> { n = Neg (X) Y = Unsqueeze (n, a) }",
            ["Neg", "Mul", "Reshape"],
        ),
        ("(float X) => (float[1] Y) <int64[1] a = {1}, float c = {2}> { n = Min (X, c) Y = Reshape (n, a) }", None),
        (
            "(float[5] X) => (float[2] Y) <int64[2] i = {4, 1}> { Y = GatherElements (X, i) }",
            ["Reshape", "GatherElements", "Reshape"],
        ),
        (
            (
                "(float[4,3] X) => (int64 Y) { r = ReduceMin <axes = [1], keepdims = 0> (X) "
                "Y = ArgMax <axis = 0, keepdims = 0> (r) }"
            ),
            ["ReduceMin", "Reshape", "ArgMax", "Cast", "ReduceMax", "Cast"],
        ),
        ("(float[4] X) => (int64[1] Y) { Y = ArgMin (X) }", ["ArgMin"]),
        (
            """(float[1,4] X, float[2] Z) => (float[6] Y) <int64[1] f = {-1}>
            { l = Reshape (X, f) Y = Concat <axis = 0> (l, Z) }""",
            ["Reshape", "Reshape", "Reshape", "Concat", "Reshape"],
        ),
        (
            "(float[1,4] X) => (float[8] Y) <int64[1] f = {-1}> { l = Reshape (X, f) Y = Concat <axis = 0> (l, l) }",
            ["Reshape", "Concat"],
        ),
        (
            "(float[4] X, float[2] Z) => (float[6] Y) { l = Relu (X) Y = Concat <axis = 0> (l, Z) }",
            ["Relu", "Concat"],
        ),
        (
            """(float[4,3] X) => (float[4,3] Y) <int64 i = {1}>
            { s = Shape (X) j = Identity (i) n = Gather (s, j) c = Cast <to = 1> (n) Y = Div (X, c) }""",
            ["Constant", "Cast", "Div"],
        ),
        (
            '(float[2,l,3] X, float[3,4] Z) => (float[2,l,4] Y) { Y = Einsum <equation = "abc,cd->abd"> (X, Z) }',
            ["MatMul"],
        ),
    ],
)
def test_numbers_and_lists_get_the_axes_that_it_wants(graph: str, written: list[str] | None, tmp_path: Path) -> None:
    assert operators(graph, tmp_path) == (written or ["Min", "Reshape"])


@pytest.mark.parametrize(
    ("flat", "written"),
    [
        ("f = Flatten (X)", "Flatten Reshape Concat"),
        ("f = Reshape (X, rest)", "Reshape Reshape Concat"),
        ("r = Reshape (X, rest) f = Relu (r)", "Reshape Relu Reshape Concat"),
        ("f = ReduceMax <axes = [1], keepdims = 0> (X)", "ReduceMax Reshape Concat"),
        ("r = Reshape (X, same) f = Relu (r)", "Reshape Relu Concat"),
    ],
)
def test_an_open_number_of_images_is_copied_before_a_concat(flat: str, written: str, tmp_path: Path) -> None:
    graph = """(float[n,2,3] X, float[n,1] Z) => (float Y) <int64[2] rest = {-1, 6}, int64[2] same = {0, 6}> {
        %s Y = Concat <axis = 1> (f, Z) }"""
    assert " ".join(operators(graph % flat, tmp_path)) == written
    result = onnx.load(tmp_path / "result.onnx").graph
    shapes = {each.name: onnx.numpy_helper.to_array(each).tolist() for each in result.initializer}
    (last,) = (each for each in result.node if each.output[0] == result.node[-1].input[0])
    assert last.op_type != "Reshape" or shapes[last.input[1]] in ([0, 6], [0, 3])


def test_a_list_that_is_computed_is_quantized_as_a_row(tmp_path: Path) -> None:
    graph = """(float[2,3] X) => (float Y) <float s = {0.5}, uint8 z = {128}, int64[1] rest = {-1}>
    { f = Reshape (X, rest) q = QuantizeLinear (f, s, z) Y = DequantizeLinear (q, s, z) }"""
    written = operators(graph, tmp_path)
    assert written == ["Reshape", "Reshape", "QuantizeLinear", "Reshape", "Reshape", "DequantizeLinear", "Reshape"]


def test_the_lengths_of_pieces_are_written_behind_open_ones(tmp_path: Path) -> None:
    graph = "(float[1,3,l,8] X) => (float A, float B) { A, B = Split <axis = %d> (X) }"
    operators(graph % 3, tmp_path)
    (split,) = onnx.load(tmp_path / "result.onnx").graph.node
    assert len(split.input) == 2


def test_the_largest_of_an_open_axis_are_declined(tmp_path: Path) -> None:
    graph = "(float[2,l,3] X) => (float V, int64 I) <int64[1] k = {2}> { V, I = TopK <axis = %d> (X, k) }"
    assert operators(graph % 2, tmp_path) == ["TopK"]
    with pytest.raises(RefusedError, match="left open"):
        operators(graph % 1, tmp_path)


def operators(graph: str, folder: Path) -> list[str]:
    model = onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : 13]> g {graph}')
    onnx.save(model, folder / "model.onnx")
    padfix.convert(folder / "model.onnx", folder / "result.onnx", target="opencv@4.14")
    assert not padfix.check(folder / "result.onnx", target="opencv@4.14").findings
    return [node.op_type for node in onnx.load(folder / "result.onnx").graph.node]


BYTES = "(uint8[2,3] X, bool[2,3] C, int64[2] I) => (uint8 Y) "
BYTES += "<uint8[2,3] k = {200, 1, 2, 3, 130, 5}, int64[1,3] i = {0, 1, 0}>"


@pytest.mark.parametrize(
    ("nodes", "kept"),
    [
        ("Y = Mod (X, k)", "Mod"),
        ("Y = Where (C, k, X)", "Where"),
        ("Y = Gather (k, I)", "Gather"),
        ("Y = ScatterElements (k, i, X)", None),
    ],
)
def test_constants_of_unsigned_bytes_are_read_as_floats(nodes: str, kept: str | None, tmp_path: Path) -> None:
    given = BYTES if kept else BYTES.replace("uint8[2,3] X", "uint8[1,3] X")
    unread = [name for name in "XCI" if name not in nodes.replace("Scatter", "")]
    for name, kind in (("X", "uint8[2,3]"), ("C", "bool[2,3]"), ("I", "int64[2]")):
        given = given.replace(f"{kind} {name}, ", "").replace(f", {kind} {name}", "") if name in unread else given
    written = operators(f"{given} {{ {nodes} }}", tmp_path)
    result = onnx.load(tmp_path / "result.onnx").graph
    held = {each.name for each in result.initializer if each.data_type == onnx.TensorProto.UINT8}
    assert "Cast" in written
    assert all(not held & set(node.input) for node in result.node)


CONSTANTS = (
    "<int64[1] k = {0}, int64[1] one = {1}, int64[2] even = {1, 1}, int64[2,1] signed = {-1, 2}, "
    "float n = {2}, int64 i = {0}, float[1] f = {3}>"
)


@pytest.mark.parametrize(
    ("nodes", "written"),
    [
        ("g = Gather (X, k) Y = Unsqueeze (g, k)", ["Gather", "Unsqueeze"]),
        ("g = Gather (X, k) Y = Slice (g, k, one)", ["Gather", "Slice"]),
        ("g = Gather (X, even) Y = Tile (g, even)", ["Gather", "Tile"]),
        ("a = Abs (signed) c = Cast <to = 1> (a) Y = Add (X, c)", ["Add"]),
        ("a = Cos (n) Y = Add (X, a)", ["Add"]),
        ("s = Shape (X) a, b = Split (s, even) c = Cast <to = 1> (b) Y = Add (X, c)", ["Add"]),
        ("g = Gather (X, i) Y = Softmax <axis = 0> (g)", ["Gather", "Reshape", "Softmax", "Reshape"]),
        ("g = Gather (X, i) Y = Mod <fmod = 1> (g, n)", ["Gather", "Reshape", "Mod", "Reshape"]),
        (
            "g = Gather (X, i) m = Mul (g, f) t = Shape (m) Y = Reshape (m, t)",
            ["Gather", "Reshape", "Mul", "Reshape", "Reshape"],
        ),
    ],
)
def test_constants_are_its_own_or_worked_out(nodes: str, written: list[str], tmp_path: Path) -> None:
    graph = f"(float[2,6] X) => (float Y) {CONSTANTS} {{ {nodes} }}"
    model = onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : 13]> g {graph}')
    onnx.save(model, tmp_path / "model.onnx")
    report = padfix.convert(tmp_path / "model.onnx", tmp_path / "result.onnx", target="opencv@4.14")
    result = onnx.load(tmp_path / "result.onnx")
    assert report.rewrites
    made = [node for node in result.graph.node if node.op_type != "Constant"]
    assert [node.op_type for node in made if node.op_type != "Shape"] == written
    read = [name for node in made for name in node.input if name in ("k", "one", "even") or name.endswith("given")]
    assert len(set(read)) == len(read), read
    assert not padfix.check(tmp_path / "result.onnx", target="opencv@4.14").findings


CACHED = """(float[1,1,8] X, float[1,2,p,4] K) => (float Y) <int64[4] heads = {0, -1, 2, 4}>
{ r = Reshape (X, heads) t = Transpose <perm = [0, 2, 1, 3]> (r) Y = Concat <axis = 2> (K, t) }"""
BOTH_CLASSES = """(float[n,4] X) => (float Y) <float[4,1] w = {1, 2, 3, 4}, float[1] b = {5}, float[1] one = {1}>
{ m = MatMul (X, w) a = Add (m, b) s = Sigmoid (a) r = Sub (one, s) Y = Concat <axis = 1> (r, s) }"""


@pytest.mark.parametrize(
    ("graph", "told"), [(CACHED, {"X": (1, 1, 8), "K": (1, 2, 3, 4)}), (BOTH_CLASSES, {"X": (3, 4)})]
)
def test_lengths_that_are_joined_are_counted_alike(
    graph: str, told: dict[str, tuple[int, ...]], tmp_path: Path
) -> None:
    model = onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : 13]> g {graph}')
    onnx.save(model, tmp_path / "model.onnx")
    assert "PF306" in {each.rule for each in padfix.check(tmp_path / "model.onnx", target="opencv@4.14").findings}
    padfix.convert(tmp_path / "model.onnx", tmp_path / "result.onnx", target="opencv@4.14")
    result = onnx.load(tmp_path / "result.onnx")
    assert not padfix.check(tmp_path / "result.onnx", target="opencv@4.14").findings
    feeds = {name: np.random.default_rng(0).standard_normal(shape).astype(np.float32) for name, shape in told.items()}
    np.testing.assert_allclose(run(result, feeds)[0], run(model, feeds)[0], atol=1e-6)


KERNEL = "float[4,%d,2,2] w = {%s}"
OPEN_CHANNELS: dict[str, tuple[str, str, int, int]] = {
    "a convolution": (KERNEL % (3, ", ".join(["0.5"] * 48)), "Z = Identity (X) Y = Conv (Z, w)", 3, 1),
    "of twice as many": (KERNEL % (2, ", ".join(["0.5"] * 32)), "Z = Relu (X) Y = Conv <group = 2> (Z, w)", 4, 1),
    "a transposed one": (KERNEL % (1, ", ".join(["0.5"] * 16)), "Z = Relu (X) Y = ConvTranspose (Z, w)", 4, 1),
    "a norm": (
        "float[3] w = {1, 2, 3}",
        "Z = Transpose <perm = [0, 1, 3, 2]> (X) Y = InstanceNormalization (Z, w, w)",
        3,
        1,
    ),
    "counted as one": (KERNEL % (1, ", ".join(["0.5"] * 16)), "Z = Add (X, X) Y = Conv (Z, w)", 1, 0),
}


@pytest.mark.parametrize("name", OPEN_CHANNELS)
def test_open_channels_are_told(name: str, tmp_path: Path) -> None:
    weights, nodes, channels, told = OPEN_CHANNELS[name]
    head = f'<ir_version: 8, opset_import: ["" : 13]> g (float[n,c,h,v] X) => (float[a,b,d,e] Y) <{weights}> '
    model = onnx.parser.parse_model(f"{head}{{ {nodes} }}")
    onnx.save(model, tmp_path / "model.onnx")
    padfix.convert(tmp_path / "model.onnx", tmp_path / "result.onnx", target="opencv@4.14")
    result = onnx.load(tmp_path / "result.onnx")
    assert [node.op_type for node in result.graph.node].count("Gather") == told
    assert not padfix.check(tmp_path / "result.onnx", target="opencv@4.14").findings
    feeds = {"X": np.random.default_rng(0).standard_normal((2, channels, 5, 6)).astype(np.float32)}
    np.testing.assert_allclose(run(result, feeds)[0], run(model, feeds)[0], atol=1e-6)
