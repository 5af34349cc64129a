"""What OpenCV counts, lists or sums otherwise: axes, elements by indices, booleans, grids, equations and bytes."""

from __future__ import annotations

from pathlib import Path

import onnx
import onnx.parser
import pytest
from onnx import helper

import padfix
from tests.support.outcomes import operators_written

OLD, NEW = "opencv@4.14", "opencv@5"
CONSTANTS = (
    "<int64[3] all = {0, 1, 2}, int64[2] ends = {1, 2}, int64[1] two = {2}, int64 n = {2}, int64 k = {-1}, "
    "float half = {0.5}, float zero = {0}, bool no = {0}, bool[4] mask = {1, 0, 1, 0}, bool[5] rows = {1, 0, 1, 1, 0}, "
    "int64[2] lengths = {2, 3}, int64[1,3,4] i = {0, 1, 2, 0, 2, 0, 1, 1, 1, 2, 0, 2}, "
    "int64[3] three = {1, 3, 4}, int64[1] first = {0}, int64[1] rest = {-1}, float[2,1] column = {7, 8}, "
    "int64[2,3] places = {0, 1, 2, 1, 0, 3}, int64[2,1] each = {2, -1}, float[2] few = {5, 6}, "
    "int64 count = {4}, int64 one_less = {3}, float[2] off_on = {0, 1}, "
    "float[1,2,2,2] grid = {-1, 0.3, 0.5, 1.2, 0.1, -0.4, 1, -0.9}, float[4] list = {1, 2, 3, 4}, "
    "float scale = {0.1}, float least = {-inf}, int64[2] whole = {3, 0}, int64[2] last = {0, 3}, "
    "uint8 middle = {120}, float[3] bias = {1, 2, 3}, "
    "int8[4,2] weights = {1, 2, 3, 4, 5, 6, 7, 8}>"
)
TRUTHS = (
    "g = Greater (X, zero) h = Cast <to = 7> (g) m = ReduceMax <axes = [1], keepdims = 0> (h) "
    "b = Cast <to = 9> (m) Y = Cast <to = 1> (b)"
)
FLOATS, IMAGE = "float[2,3,4] X", "float[1,2,5,6] X"


def outcome(nodes: str, given: str, target: str, folder: Path, gives: str = "float", opset: int = 17) -> list[str]:
    """Return the operators of what is written for ``target``, which computes the same and in which nothing is found."""
    text = f"({given}) => ({gives} Y) {CONSTANTS} {{ {nodes} }}"
    return operators_written(text, target, folder, opset, least=-2)


@pytest.mark.parametrize(
    ("nodes", "given", "target", "expected"),
    [
        ("Y = ReduceMax <axes = [0, 1, 2], keepdims = 0> (X)", FLOATS, OLD, {"ReduceMax"}),
        ("Y = ReduceLogSumExp (X)", "float[5] X", OLD, {"Reshape", "ReduceMax", "Log"}),
        ("Y = LogSoftmax <axis = 0> (X)", "float[5] X", OLD, {"Reshape", "ReduceMax", "Log"}),
        ("Y = ReduceLogSumExp <keepdims = 0> (X)", FLOATS, OLD, {"ReduceMax", "ReduceSum", "Log"}),
        ("Y = ScatterElements <axis = -1> (X, i, U)", f"{FLOATS}, float[1,3,4] U", NEW, {"ScatterElements"}),
        ("Y = ScatterND (X, places, few)", FLOATS, OLD, {"Reshape", "ScatterND"}),
        ("Y = GatherElements <axis = 1> (X, i)", FLOATS, NEW, {"Slice", "GatherElements"}),
        ("Y = GatherND <batch_dims = 1> (X, each)", FLOATS, OLD, {"Gather"}),
        ("Y = Where (mask, X, zero)", FLOATS, OLD, {"Greater", "Where"}),
        ("m = Not (mask) Y = Where (m, X, zero)", FLOATS, OLD, {"Greater", "Where"}),
        ("m = Constant <value = bool[4] {1, 0, 1, 0}> () Y = Where (m, X, zero)", FLOATS, NEW, {"Where"}),
        ("Y = Trilu (X, k)", FLOATS, OLD, {"Greater", "Where"}),
        ("e = EyeLike <k = 1> (X) Y = Add (X, e)", "float[3,4] X", OLD, {"Add"}),
        ("Y = CastLike (X, half)", "int64[3,4] X", OLD, {"Cast"}),
        ("Y = Compress <axis = 0> (X, rows)", "float[5,3] X", NEW, {"Gather"}),
        ("Y = ReverseSequence <batch_axis = 0, time_axis = 1> (X, lengths)", FLOATS, NEW, {"Gather"}),
        ("c = Conv <pads = [1, 1, 1, 1]> (X, W) Y = Relu (c)", f"{IMAGE}, float[3,2,3,3] W", OLD, {"Conv"}),
        ("c = Conv (X, W, bias) Y = Relu (c)", f"{IMAGE}, float[3,2,3,3] W", OLD, {"Conv", "Add"}),
        ("t = Tile (X, two) Y = Neg (t)", "float[4] X", OLD, {"Concat", "Neg"}),
        ("u = Unsqueeze (X, first) Y = Transpose (u)", "float[N,3] X", OLD, {"Reshape", "Transpose"}),
        ("u = Squeeze (X, rest) Y = Transpose (u)", "float[N,3,1] X", OLD, {"Reshape", "Transpose"}),
    ],
)
def test_it_is_written_as_it_is_right(nodes: str, given: str, target: str, expected: set[str], tmp_path: Path) -> None:
    assert expected <= set(outcome(nodes, given, target, tmp_path))


@pytest.mark.parametrize("outside", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("mode", ["bilinear", "nearest"])
def test_a_grid_is_a_product(mode: str, outside: str, tmp_path: Path) -> None:
    told = f'<mode = "{mode}", padding_mode = "{outside}", align_corners = {int(mode == "nearest")}>'
    given = f"{IMAGE}, float[1,3,2,2] G"
    assert "GridSample" not in outcome(f"Y = GridSample {told} (X, G)", given, OLD, tmp_path)


def test_what_puts_elements_does_not_say_that_it_joins_none(tmp_path: Path) -> None:
    """MNN takes another axis where that is said before the axis."""
    nodes = 'Y = ScatterElements <reduction = "none", axis = 1> (X, i, U)'
    assert outcome(nodes, f"{FLOATS}, float[1,3,4] U", "mnn", tmp_path, opset=18) == ["ScatterElements"]
    (node,) = onnx.load(tmp_path / "result.onnx").graph.node
    assert [each.name for each in node.attribute] == ["axis"]


def test_a_constant_grid_is_one_matrix(tmp_path: Path) -> None:
    found = outcome("Y = GridSample (X, grid)", IMAGE, OLD, tmp_path)
    assert set(found) == {"MatMul", "Reshape"}


@pytest.mark.parametrize("outside", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("target", [OLD, "openvino"])
def test_a_grid_of_a_volume_is_a_product(target: str, outside: str, tmp_path: Path) -> None:
    told = f'<mode = "linear", padding_mode = "{outside}", align_corners = {int(outside == "border")}>'
    given = "float[1,2,3,4,5] X, float[1,2,3,2,3] G"
    assert "GridSample" not in outcome(f"Y = GridSample {told} (X, G)", given, target, tmp_path, opset=20)


@pytest.mark.parametrize("aligned", [0, 1])
@pytest.mark.parametrize("outside", ["zeros", "border", "reflection"])
def test_a_cubic_grid_is_a_product(outside: str, aligned: int, tmp_path: Path) -> None:
    told = f'<mode = "bicubic", padding_mode = "{outside}", align_corners = {aligned}>'
    found = outcome(f"Y = GridSample {told} (X, G)", f"{IMAGE}, float[1,3,2,2] G", NEW, tmp_path)
    assert "Min" in found
    assert "GridSample" not in found


def test_a_cubic_grid_of_one_row_is_a_product(tmp_path: Path) -> None:
    nodes = 'Y = GridSample <mode = "bicubic", padding_mode = "reflection"> (X, G)'
    assert "Min" in outcome(nodes, "float[1,2,1,2] X, float[1,3,2,2] G", NEW, tmp_path)


@pytest.mark.parametrize(
    ("equation", "given", "target"),
    [
        ("BIJ,BKJ->BIK", "float[2,3,4] X, float[2,5,4] Z", NEW),
        ("ij,jk", "float[3,4] X, float[4,2] Z", OLD),
        ("ij,ij->", "float[3,4] X, float[3,4] Z", OLD),
        ("i,j->ij", "float[3] X, float[4] Z", OLD),
    ],
)
def test_an_equation_is_spelled_out(equation: str, given: str, target: str, tmp_path: Path) -> None:
    assert "Einsum" in outcome(f'Y = Einsum <equation = "{equation}"> (X, Z)', given, target, tmp_path)


@pytest.mark.parametrize(
    ("equation", "given", "target", "reads_equations"),
    [
        ("ij->", "float[3,4] X, float[1] Z", "tract", True),
        ("ij,jk->k", "float[3,4] X, float[4,2] Z", NEW, False),
        ("i,ij->j", "float[3] X, float[3,4] Z", OLD, False),
        ("ij->i", "float[3,4] X, float[1] Z", OLD, False),
        ("ij,kj->ik", "float[3,4] X, float[2,4] Z", OLD, True),
    ],
)
def test_an_equation_with_an_axis_to_sum_alone(
    equation: str, given: str, target: str, reads_equations: bool, tmp_path: Path
) -> None:
    factors = "u, Z" if "," in equation else "u"
    made = outcome(f'u = Neg (X) Y = Einsum <equation = "{equation}"> ({factors})', given, target, tmp_path)
    assert ("Einsum" in made) == reads_equations


@pytest.mark.parametrize(
    ("equation", "given", "target", "expected"),
    [
        ("bii->bi", "float[3,4,4] X, float[1] Z", "mnn", ["Neg", "Reshape", "Slice"]),
        ("...ii->...i", "float[3,4,4] X, float[1] Z", NEW, ["Neg", "Reshape", "Slice"]),
        ("ibi->ib", "float[4,3,4] X, float[1] Z", OLD, ["Neg", "Transpose", "Reshape", "Slice", "Transpose"]),
        ("ii->i", "float[3,3] X, float[1] Z", "qnn", ["Neg", "Reshape", "Slice"]),
        ("iii->i", "float[3,3,3] X, float[1] Z", "mnn", ["Neg", "Reshape", "Slice"]),
        ("ii->", "float[3,3] X, float[1] Z", "openvino", ["Neg", "Reshape", "Einsum", "ReduceMax"]),
        ("iji,jk->ik", "float[4,3,4] X, float[3,2] Z", "tract", ["MatMul", "Neg", "Gather"]),
        ("iji->ij", "float[4,3,4] X, float[1] Z", "tract", ["Einsum", "Neg"]),
    ],
)
def test_the_diagonal_of_an_axis_that_is_written_twice(
    equation: str, given: str, target: str, expected: list[str], tmp_path: Path
) -> None:
    factors = "u, Z" if "," in equation else "u"
    made = outcome(f'u = Neg (X) Y = Einsum <equation = "{equation}"> ({factors})', given, target, tmp_path)
    assert set(expected) <= set(made)
    assert ("Einsum" in made) == ("Einsum" in expected)


@pytest.mark.parametrize("target", [NEW, "tract"])
@pytest.mark.parametrize(
    ("nodes", "is_right"),
    [
        ("u = Cast <to = 7> (X) Y = OneHot (u, count, off_on)", False),
        ("u = ArgMax <axis = 2, keepdims = 0> (X) Y = OneHot (u, count, off_on)", True),
        ("u = ArgMax <axis = 0, keepdims = 0> (X) Y = OneHot (u, count, off_on)", True),
        ("u = ArgMax <axis = 2, keepdims = 0> (X) Y = OneHot (u, one_less, off_on)", False),
    ],
)
def test_an_index_may_be_none_of_the_places(nodes: str, is_right: bool, target: str, tmp_path: Path) -> None:
    assert ("OneHot" in outcome(nodes, FLOATS, target, tmp_path)) == is_right


@pytest.mark.parametrize(
    ("nodes", "given", "gives", "target", "expected"),
    [
        ("Y = Clip (X, k, n)", "int64[2,5] X", "int64", OLD, {"Max", "Min"}),
        ("Y = Clip (X, k)", "int64[2,5] X", "int64", NEW, {"Max"}),
        ("Y = MatMulInteger (X, weights, middle)", "uint8[3,4] X", "int32", NEW, {"Cast", "MatMul", "Sub"}),
        ("Y = DequantizeLinear (X, scale, middle)", "uint8[3,4] X", "float", OLD, {"Cast", "Sub", "Mul"}),
        ("Y = QuantizeLinear (X, scale, middle)", "float[3,4] X", "uint8", OLD, {"Div", "Round", "Clip", "Cast"}),
        (
            "q, s, z = DynamicQuantizeLinear (X) Y = DequantizeLinear (q, s, z)",
            "float[3,4] X",
            "float",
            NEW,
            {"ReduceMax", "ReduceMin", "Round"},
        ),
    ],
)
def test_whole_numbers_are_held_by_floats(
    nodes: str, given: str, gives: str, target: str, expected: set[str], tmp_path: Path
) -> None:
    assert expected <= set(outcome(nodes, given, target, tmp_path, gives))


@pytest.mark.parametrize(
    ("nodes", "given", "gives", "target", "expected"),
    [
        ("Y = ReduceSum (X, three)", "float[2,3,2,2,2] X", "float", NEW, ["ReduceSum", "ReduceSum"]),
        ("s = ReduceSum <keepdims = 0> (X, all) Y = Mul (X, s)", FLOATS, "float", NEW, ["ReduceSum", "Mul"]),
        ("m = ReduceMean <keepdims = 1> (X) Y = Squeeze (m)", FLOATS, "float", OLD, ["ReduceMean", "ReduceMax"]),
        (
            TRUTHS,
            FLOATS,
            "float",
            OLD,
            ["Greater", "Cast", "ReduceMax", "Cast", "Cast"],
        ),
        ("d = Dropout (X, half, no) Y = Relu (d)", FLOATS, "float", OLD, ["Identity", "Relu"]),
        (
            "g = Gather (X, n) Y = Neg (g)",
            "float[5] X",
            "float",
            OLD,
            ["Gather", "ReduceMax", "Reshape", "Neg", "Reshape", "ReduceMax"],
        ),
        ("Y = Sign (X)", "int32[3,4] X", "int32", NEW, ["Max", "Min"]),
        ("Y = Concat <axis = 1> (column, X, column)", "float[2,3] X", "float", OLD, ["Identity", "Concat"]),
        ("Y = Reshape (X, lengths)", "float[3,2] X", "float", OLD, ["Reshape"]),
        (
            "s = Shape (X) f = Gather (s, first) c = Concat <axis = 0> (f, rest) Y = Reshape (X, c)",
            "float[N,2,3] X",
            "float",
            OLD,
            ["Reshape"],
        ),
    ],
)
def test_it_says_what_the_runtime_counts_on(
    nodes: str, given: str, gives: str, target: str, expected: list[str], tmp_path: Path
) -> None:
    assert outcome(nodes, given, target, tmp_path, gives) == expected


@pytest.mark.parametrize("target", [NEW, "portable"])
def test_a_split_says_its_axis(target: str, tmp_path: Path) -> None:
    assert outcome("a, b = Split (X) Y = Sub (a, b)", "float[2,3] X", target, tmp_path) == ["Split", "Sub"]
    (split,) = [each for each in onnx.load(tmp_path / "result.onnx").graph.node if each.op_type == "Split"]
    assert [each.i for each in split.attribute if each.name == "axis"] == [0]


@pytest.mark.parametrize(
    ("nodes", "gives", "target", "expected"),
    [
        ("Y = QuantizeLinear (X, s, middle)", "uint8", "tract", ["Div", "Round", "Add", "Clip", "Cast"]),
        (
            "Y = QuantizeLinear (X, s)",
            "uint8",
            "mnn",
            ["Div", "Clip", "Add", "Abs", "Sub", "Clip", "Add", "Cast"],
        ),
        (
            "q = QuantizeLinear (X, s, middle) Y = DequantizeLinear (q, s, middle)",
            "float",
            "tract",
            ["Div", "Round", "Add", "Clip", "Cast", "Cast", "Sub", "Mul"],
        ),
        (
            "t = ReduceMax <axes = [0, 2], keepdims = 0> (a) u = Mul (t, scale) Y = QuantizeLinear <axis = 1> (X, u)",
            "uint8",
            "tract",
            ["ReduceMax", "Mul", "Reshape", "Div", "Round", "Add", "Clip", "Cast"],
        ),
    ],
)
def test_a_scale_may_be_computed(nodes: str, gives: str, target: str, expected: list[str], tmp_path: Path) -> None:
    nodes = f"a = Abs (X) m = ReduceMax <axes = [0, 1, 2], keepdims = 0> (a) s = Mul (m, scale) {nodes}"
    types = outcome(nodes, FLOATS, target, tmp_path, gives)
    assert types[-len(expected) :] == expected


@pytest.mark.parametrize("target", ["openvino", "tract"])
def test_an_infinity_may_be_of_another_type_first(target: str, tmp_path: Path) -> None:
    nodes = (
        "w = Cast <to = 11> (least) r = ReduceMax <axes = [2], keepdims = 1> (X) j = CastLike (w, r) "
        "e = Equal (r, j) Y = Cast <to = 1> (e)"
    )
    assert "ReduceMin" in outcome(nodes, FLOATS, target, tmp_path)


@pytest.mark.parametrize("target", ["mnn", OLD])
@pytest.mark.parametrize("pieces", ["a, b = Split <axis = 1> (X, whole)", "b, a = Split <axis = 1> (X, last)"])
def test_a_piece_without_elements_is_left_out(pieces: str, target: str, tmp_path: Path) -> None:
    nodes = f"{pieces} r = Relu (a) Y = Concat <axis = 1> (r, b)"
    assert "Split" not in outcome(nodes, FLOATS, target, tmp_path)


@pytest.mark.parametrize("target", ["mnn", "tract"])
def test_zeros_are_written_as_zeros(target: str, tmp_path: Path) -> None:
    nodes = "s = Shape (X) c = ConstantOfShape (s) a = Concat <axis = 2> (c, X) Y = Relu (a)"
    outcome(nodes, "float[N,3,4] X", target, tmp_path)
    (filled,) = [each for each in onnx.load(tmp_path / "result.onnx").graph.node if each.op_type == "ConstantOfShape"]
    assert [each.name for each in filled.attribute] == ["value"]


def test_tract_is_told_the_types_of_what_a_scan_goes_over(tmp_path: Path) -> None:
    body = helper.make_graph(
        [helper.make_node("Add", ["s", "x"], ["t"]), helper.make_node("Neg", ["t"], ["y"])],
        "body",
        [onnx.ValueInfoProto(name=each) for each in ("s", "x")],
        [onnx.ValueInfoProto(name=each) for each in ("t", "y")],
    )
    shapes = {"S": [2, 3], "X": [4, 2, 3], "T": [2, 3], "Y": [4, 2, 3]}
    values = {
        name: helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, shape) for name, shape in shapes.items()
    }
    scan = helper.make_node("Scan", ["S", "X"], ["T", "Y"], body=body, num_scan_inputs=1)
    graph = helper.make_graph([scan], "g", [values["S"], values["X"]], [values["T"], values["Y"]])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), tmp_path / "m.onnx")
    report = padfix.convert(tmp_path / "m.onnx", tmp_path / "out.onnx", target="tract")
    assert [each.finding.rule for each in report.rewrites] == ["PF309"]
    assert "Scan" not in {each.op_type for each in onnx.load(tmp_path / "out.onnx").graph.node}


@pytest.mark.parametrize(
    ("nodes", "given", "expected"),
    [
        ("s = Slice (X, first, two, two) Y = GatherElements <axis = 1> (s, j)", "float[2,3,5] X", ["Slice", "Max"]),
        ("s = Slice (X, first, two, two) Y = GatherElements <axis = 1> (s, j)", "float[N,3,L] X", ["Slice", "Max"]),
        ("s = Slice (X, first, two, one) Y = GatherElements <axis = 1> (s, j)", "float[2,3,2] X", ["Slice"]),
        ("s = Slice (X, first, two, one) i = Neg (j) Y = GatherElements <axis = 1> (s, i)", "float[2,3,2] X", None),
        ("s = Slice (X, one, two, two) Y = GatherElements <axis = 1> (s, k)", "float[2,3,5] X", ["Slice"]),
        ("Y = GatherElements <axis = 1> (X, k)", "float[3,3,4] X", ["Slice", "Max"]),
    ],
)
def test_openvino_takes_elements_apart_from_a_slice(
    nodes: str, given: str, expected: list[str] | None, tmp_path: Path
) -> None:
    constants = (
        "<int64[1] first = {0}, int64[1] one = {1}, int64[1] two = {2}, int64[2,2,2] j = {0, 1, 1, 0, 1, 1, 0, 0}, "
        "int64[2,2,1] k = {0, 2, 1, 1}>"
    )
    model = onnx.parser.parse_model(
        f'<ir_version: 8, opset_import: ["" : 13]> g ({given}) => (float[A,B,C] Y) {constants} {{ {nodes} }}'
    )
    onnx.save(model, tmp_path / "before.onnx")
    padfix.convert(tmp_path / "before.onnx", tmp_path / "after.onnx", target="openvino")
    assert not padfix.check(tmp_path / "after.onnx", target="openvino").findings
    found = [each.op_type for each in onnx.load(tmp_path / "after.onnx").graph.node if each.op_type != "Constant"]
    assert "Max" in found if expected is None else found == [*expected, "GatherElements"]


@pytest.mark.parametrize(
    ("index", "axis", "expected"),
    [
        ("2,2,2", 0, ["Split", "Split", "ScatterElements", "Concat", "Concat"]),
        ("4,2,6", 2, ["Split", "ScatterElements", "Concat"]),
        ("4,5,2", 2, ["ScatterElements"]),
    ],
)
@pytest.mark.parametrize("reduction", ["none", "add", "max"])
def test_rows_without_indices_are_joined_to_what_is_scattered(
    index: str, axis: int, expected: list[str], reduction: str, tmp_path: Path
) -> None:
    given = f"float[4,5,6] X, int64[{index}] I, float[{index}] U"
    nodes = f'Y = ScatterElements <axis = {axis}, reduction = "{reduction}"> (X, I, U)'
    assert outcome(nodes, given, "tvm", tmp_path, opset=18) == expected
