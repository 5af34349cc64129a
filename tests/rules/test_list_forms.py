"""What a runtime does whose arrays have two axes at least, with lists and with what it writes in place; and Hardmax."""

from __future__ import annotations

from pathlib import Path

import onnx
import onnx.parser
import pytest

import padfix

CONSTANTS = (
    "<int64[1] k = {0}, float[4] c = {1, 2, 3, 4}, float n = {2}, float[2,4] w = {1, 2, 3, 4, 5, 6, 7, 8}, "
    "float[1,4] r = {4, 3, 2, 1}>"
)
ROWS = ["Reshape", "Mul", "Reshape"]
RIGHT = {
    "a = Relu (C) Y = Mul (C, a)": "both are lists as a caller gives one",
    "Y = Pow (C, n)": "a caller's list meets a number",
    "a = Neg (C) Y = Unsqueeze (a, k)": "an axis is added to a caller's list that meets none",
    "Y = Mul (X, r)": "a matrix of one row is one",
    "b = Add (c, c) Y = Mul (X, b)": "a list of constants alone is none that is computed",
    "v = Relu (X) Y = Concat <axis = 0> (v, w)": "the input is read by another node",
    "v = Relu (X) q = Concat <axis = 0> (X, w) Y = Concat <axis = 0> (q, v)": "the input is read twice",
}


def text(nodes: str) -> str:
    total = "z = ReduceSum <keepdims = 0> (X, k) " if "(z" in nodes or ", z" in nodes else ""
    given = "float[4] C" if "(C" in nodes else "float[2,4] X"
    return f'<ir_version: 8, opset_import: ["" : 17]> g ({given}) => (float Y) {CONSTANTS} {{ {total}{nodes} }}'


@pytest.mark.parametrize(
    ("nodes", "expected"),
    [
        ("Y = Mul (z, c)", ROWS),
        ("Y = Mul (c, z)", ROWS),
        ("Y = Mul (z, X)", ROWS[:2]),
        ("Y = Mul (z, r)", ROWS[:2]),
        ("Y = Mul (z, n)", ROWS),
        ("Y = Relu (z)", ["Reshape", "Relu", "Reshape"]),
        ("a = Relu (z) Y = Mul (z, a)", ["Reshape", "Relu", "Reshape", "Reshape", "Reshape", "Mul", "Reshape"]),
        ("Y = Pow (z, n)", ["Reshape", "Pow", "Reshape"]),
        ("v = Relu (X) w1 = ReduceSum <keepdims = 0> (v, k) Y = Neg (w1)", ["Reshape", "Neg", "Reshape"]),
        ("Y = Mean (c, z)", ["Reshape", "Mean", "Reshape"]),
        ("l = Less (z, n) Y = Cast <to = 1> (l)", ["Reshape", "Less", "Reshape", "Cast"]),
        ("a = Mul (C, n) Y = Unsqueeze (a, k)", [*ROWS, "Unsqueeze"]),
        ("a = Mul (C, n) b = Neg (a) Y = Unsqueeze (b, k)", [*ROWS, "Reshape", "Neg", "Reshape", "Unsqueeze"]),
        ("Y = Softmax (z)", ["Reshape", "Softmax", "Reshape"]),
        ("Y = Softmax <axis = 0> (z)", ["Reshape", "Softmax", "Reshape"]),
        ("Y = Concat <axis = 0> (X, w)", ["Identity", "Concat"]),
        ("Y = Hardmax (X)", ["ArgMax", "Equal", "Cast"]),
        ("Y = Hardmax (z)", ["Reshape", "ArgMax", "Reshape", "Equal", "Cast"]),
    ],
)
def test_it_is_written_as_opencv_takes_it(nodes: str, expected: list[str], tmp_path: Path) -> None:
    source, result = tmp_path / "model.onnx", tmp_path / "result.onnx"
    onnx.save(onnx.parser.parse_model(text(nodes)), source)
    assert "PF306" in {each.rule for each in padfix.check(source, target="opencv@4.14").findings}
    padfix.convert(source, result, target="opencv@4.14")
    types = [node.op_type for node in onnx.load(result).graph.node]
    assert types[types.index("ReduceSum") + 1 if "ReduceSum" in types else 0 :] == expected


@pytest.mark.parametrize("nodes", RIGHT)
def test_it_is_right_as_it_is(nodes: str, tmp_path: Path) -> None:
    source = tmp_path / "model.onnx"
    onnx.save(onnx.parser.parse_model(text(nodes)), source)
    assert not [each for each in padfix.check(source, target="opencv@4.14").findings if each.rule == "PF306"]


@pytest.mark.parametrize(
    ("given", "lengths", "expected"),
    [
        ("3", "2, 3", ["Reshape", "Expand"]),
        ("3", "3, 1", ["Reshape", "Expand"]),
        ("3", "3", ["Identity"]),
        ("1", "2, 3", ["Expand"]),
        ("1", "3, 1", ["Reshape", "Expand", "Reshape"]),
        ("1,3,1", "2, 3, 1", ["Reshape", "Expand", "Reshape"]),
        ("1,1,3", "2, 1, 3", ["Expand"]),
    ],
)
def test_a_list_or_column_is_copied_as_rows(given: str, lengths: str, expected: list[str], tmp_path: Path) -> None:
    source, result = tmp_path / "model.onnx", tmp_path / "result.onnx"
    told = f"<int64[{lengths.count(',') + 1}] s = {{{lengths}}}>"
    graph = f"g (float[{given}] X) => (float Y) {told} {{ Y = Expand (X, s) }}"
    onnx.save(onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : 13]> {graph}'), source)
    padfix.convert(source, result, target="opencv@4.14")
    assert [node.op_type for node in onnx.load(result).graph.node if node.op_type != "Constant"] == expected


@pytest.mark.parametrize(("index", "expected"), [("int64[2]", ["Gather"]), ("int64", ["Gather", "ReduceMax"])])
def test_a_list_is_picked_from_along_its_first_axis(index: str, expected: list[str], tmp_path: Path) -> None:
    source, result = tmp_path / "model.onnx", tmp_path / "result.onnx"
    told = f"<{index} i = {{{'1, 0' if '2' in index else '1'}}}>"
    graph = f"g (float[3] X) => (float Y) {told} {{ Y = Gather <axis = -1> (X, i) }}"
    onnx.save(onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : 13]> {graph}'), source)
    padfix.convert(source, result, target="opencv@4.14")
    nodes = [node for node in onnx.load(result).graph.node if node.op_type != "Constant"]
    assert [node.op_type for node in nodes] == expected
    assert all(each.i == 0 for each in nodes[0].attribute)


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_a_hardmax_of_axes_taken_together(axis: int, tmp_path: Path) -> None:
    source, result = tmp_path / "model.onnx", tmp_path / "result.onnx"
    graph = f"g (float[2,3,4] X) => (float[2,3,4] Y) {{ Y = Hardmax <axis = {axis}> (X) }}"
    onnx.save(onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : 11]> {graph}'), source)
    padfix.convert(source, result, target="opencv@4.14")
    types = [node.op_type for node in onnx.load(result).graph.node]
    whole = ["ArgMax", "Equal", "Cast"]
    around = [] if axis == 2 else ["Flatten", "Shape", "Reshape"]
    assert sorted(types) == sorted([*whole, *around])


def test_the_words_of_a_resize_by_other_than_whole_factors_are_written(tmp_path: Path) -> None:
    source, result = tmp_path / "model.onnx", tmp_path / "result.onnx"
    graph = 'g (float[1,2,6,8] X) => (float Y) <int64[4] s = {1, 2, 9, 4}> { Y = Resize <mode = "nearest", '
    onnx.save(
        onnx.parser.parse_model(
            f'<ir_version: 8, opset_import: ["" : 15]> {graph}nearest_mode = "round_prefer_ceil"> (X, , , s) }}'
        ),
        source,
    )
    padfix.convert(source, result, target="opencv@4.14")
    (node,) = onnx.load(result).graph.node
    words = {each.name: each.s for each in node.attribute}
    assert words["coordinate_transformation_mode"] == b"half_pixel"


@pytest.mark.parametrize("nodes", ["b = Less (z, n)", "b = Less (X, z)", "b = Less (n, z)"])
def test_a_list_has_the_other_forms_too_where_lists_are_right(nodes: str, tmp_path: Path) -> None:
    source, result = tmp_path / "model.onnx", tmp_path / "result.onnx"
    onnx.save(onnx.parser.parse_model(text(f"{nodes} Y = Cast <to = 1> (b)")), source)
    padfix.convert(source, result, target="mnn")
    written = [each.op_type for each in onnx.load(result).graph.node if each.op_type != "Constant"]
    assert written == ["ReduceSum", "Greater", "Cast"]
