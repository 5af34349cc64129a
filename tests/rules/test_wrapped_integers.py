"""Integers that do not fit the type that a Cast gives: their low bits, where a runtime takes the nearest that does."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnx.parser
import pytest

import padfix
from tests.support.one_node import run


def converted(text: str, opset: int, target: str, folder: Path) -> tuple[onnx.ModelProto, onnx.ModelProto]:
    """Return a model, and what is written of it."""
    model = onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : {opset}]> g {text}')
    onnx.save(model, folder / "model.onnx")
    padfix.convert(folder / "model.onnx", folder / "result.onnx", target=target)
    return model, onnx.load(folder / "result.onnx")


def types(model: onnx.ModelProto) -> list[str]:
    return [node.op_type for node in model.graph.node if node.op_type != "Constant"]


LOW, SHIFTED = ["Mod"], ["Mod", "Add", "Mod", "Sub"]


@pytest.mark.parametrize("target", ["opencv@4.14", "opencv@5"])
@pytest.mark.parametrize(
    ("before", "to", "opset", "expected"),
    [
        ("int64", 2, 9, [*LOW, "Cast"]),
        ("int32", 2, 13, [*LOW, "Cast"]),
        ("int32", 3, 13, [*SHIFTED, "Cast"]),
        ("int64", 4, 13, [*LOW, "Cast"]),
        ("int32", 5, 13, [*SHIFTED, "Cast"]),
        ("int8", 2, 13, ["Cast", *LOW, "Cast"]),
        ("uint8", 3, 13, ["Cast", *SHIFTED, "Cast"]),
        ("int64", 6, 13, ["Cast"]),
    ],
)
def test_high_bits_are_dropped_before_a_cast(
    before: str, to: int, opset: int, expected: list[str], target: str, tmp_path: Path
) -> None:
    names = {2: "uint8", 3: "int8", 4: "uint16", 5: "int16", 6: "int32"}
    text = f"({before}[2,200] X) => ({names[to]}[2,200] Y) {{ Y = Cast <to = {to}> (X) }}"
    model, result = converted(text, opset, target, tmp_path)
    ends = np.iinfo(before)
    numbers = np.linspace(max(ends.min, -70000), min(ends.max, 70000), 400).astype(before).reshape(2, 200)
    np.testing.assert_array_equal(run(result, {"X": numbers})[0], run(model, {"X": numbers})[0])
    assert types(result) == expected


@pytest.mark.parametrize(
    ("nodes", "has_rest"),
    [
        ("y = ArgMax <axis = 1> (X)", False),
        ("y = ArgMax <axis = 2> (X)", True),
        ("z = Greater (X, t) y = Cast <to = 7> (z)", False),
        ("z = Clip (X, t, h) y = Cast <to = 6> (z)", False),
        ("z = Clip (X, t, m) y = Cast <to = 6> (z)", True),
        ("z = ArgMax <axis = 1> (X) y = Abs (z)", False),
        ("z = ArgMax <axis = 1> (X) y = Add (z, i)", True),
        ("z = ArgMax <axis = 1> (X) y = Where (b, z, i)", False),
        ("z = ArgMax <axis = 1> (X) y = Concat <axis = 0> (z, z)", False),
    ],
)
def test_what_fits_is_left_alone(nodes: str, has_rest: bool, tmp_path: Path) -> None:
    text = f"""(float[1,20,300] X, bool[1,1,1] b) => (uint8[a,b,c] Y)
    <float t = {{0}}, float h = {{200}}, float m = {{300}}, int64 i = {{250}}> {{ {nodes} Y = Cast <to = 2> (y) }}"""
    _, result = converted(text, 17, "opencv", tmp_path)
    assert ("Mod" in types(result)) == has_rest


SCATTER = """(float[6,5] X, int64[5,5] I, float[5,5] V) => (float[6,5] Y) { Y = Scatter <axis = %d> (X, I, V) }"""


@pytest.mark.parametrize(
    ("axis", "target", "expected"),
    [(-2, "opencv", ["Scatter"]), (0, "opencv", ["Scatter"]), (0, "qnn", ["Mod", "ScatterElements"])],
)
def test_a_scatter_is_what_its_successor_is(axis: int, target: str, expected: list[str], tmp_path: Path) -> None:
    model, result = converted(SCATTER % axis, 9, target, tmp_path)
    feeds = {
        "X": np.arange(30, dtype=np.float32).reshape(6, 5),
        "I": np.stack([np.roll(np.arange(5), each) for each in range(5)]),
        "V": -np.arange(25, dtype=np.float32).reshape(5, 5),
    }
    np.testing.assert_array_equal(run(result, feeds)[0], run(model, feeds)[0])
    assert types(result) == expected
    assert all(onnx.helper.get_node_attr_value(node, "axis") >= 0 for node in result.graph.node if node.attribute)


@pytest.mark.parametrize("target", ["tract", "tvm", "qnn"])
def test_booleans_are_compared_as_numbers(target: str, tmp_path: Path) -> None:
    text = "(bool[2,3] X, bool[2,3] Z) => (bool[2,3] Y) { Y = Equal (X, Z) }"
    model, result = converted(text, 17, target, tmp_path)
    first = np.arange(6).reshape(2, 3) % 2 == 0
    feeds = {"X": first, "Z": first[::-1].copy()}
    np.testing.assert_array_equal(run(result, feeds)[0], run(model, feeds)[0])
    assert types(result) == ["Cast", "Cast", "Equal"]


def test_a_list_of_booleans_is_compared_as_numbers_with_one_for_all(tmp_path: Path) -> None:
    text = "(bool[5] X) => (bool[5] Y) <bool t = {1}> { Y = Equal (X, t) }"
    model, result = converted(text, 16, "tract", tmp_path)
    feeds = {"X": np.arange(5) % 2 == 0}
    np.testing.assert_array_equal(run(result, feeds)[0], run(model, feeds)[0])
    assert types(result) == ["Cast", "Equal"]
