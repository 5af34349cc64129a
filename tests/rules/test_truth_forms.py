"""What truths decide, written for ncnn, which has none: as sums and products of 0 and 1."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnx.parser
import onnxruntime
import pytest

import padfix
from padfix.errors import RefusedError

MORE = """float z = {0}, float h = {0.5}, float low = {-1e9}, float[1] w = {-inf}, float i = {inf},
 bool[2,3] T = {1, 0, 1, 0, 0, 1}"""


def saved(nodes: str, folder: Path) -> Path:
    graph = f"g (float[1,2,3] X, float[1,2,3] Z) => (float[1,2,3] Y) <{MORE}> {{ {nodes} }}"
    onnx.save(onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : 17]> {graph}'), folder / "model.onnx")
    return folder / "model.onnx"


@pytest.mark.parametrize(
    ("nodes", "expected"),
    [
        ("c = Greater (X, z) Y = Cast <to = 1> (c)", ["Relu", "Sign", "Sub"]),
        ("c = Less (X, Z) Y = Cast <to = 1> (c)", ["Relu", "Sign", "Sub"]),
        ("c = Equal (X, Z) Y = Cast <to = 1> (c)", ["Abs", "Sign", "Sub", "Sub"]),
        ("c = Equal (X, Z) n = Not (c) Y = Cast <to = 1> (n)", ["Abs", "Sign", "Sub", "Sub", "Sub"]),
        ("c = LessOrEqual (X, h) Y = Where (c, X, low)", ["Add", "Mul", "Mul", "Relu", "Sign", *["Sub"] * 4]),
        ("Y = Where (T, X, low)", ["Add", "Mul"]),
        ("Y = Where (T, w, X)", ["Add", "Mul"]),
    ],
)
def test_truths_are_numbers(nodes: str, expected: list[str], tmp_path: Path) -> None:
    source, result = saved(nodes, tmp_path), tmp_path / "out.onnx"
    padfix.convert(source, result, target="ncnn")
    assert not padfix.check(result, target="ncnn").findings
    assert sorted(each.op_type for each in onnx.load(result).graph.node) == expected
    random = np.random.default_rng(0)
    data = {name: random.integers(-2, 3, (1, 2, 3)).astype(np.float32) for name in "XZ"}
    before, after = (
        onnxruntime.InferenceSession(each, providers=["CPUExecutionProvider"]).run(None, data)[0]
        for each in (source, result)
    )
    np.testing.assert_array_equal(before, after)


@pytest.mark.parametrize(
    "joint",
    ["a = And (c, d)", "a = Or (c, d)", "a = Xor (c, d)", "e = And (c, T) a = Or (e, d)"],
)
def test_truths_are_joined(joint: str, tmp_path: Path) -> None:
    nodes = f"c = Greater (X, z) d = GreaterOrEqual (Z, X) {joint} Y = Where (a, X, Z)"
    padfix.convert(saved(nodes, tmp_path), tmp_path / "out.onnx", target="ncnn")
    assert not padfix.check(tmp_path / "out.onnx", target="ncnn").findings


@pytest.mark.parametrize(
    ("nodes", "says"),
    [
        ("c = Greater (X, z) l = Log (X) Y = Where (c, l, z)", "may be infinite"),
        ("c = Greater (X, z) Y = Where (c, X, w)", "infinite or not a number"),
        ("c = Less (X, i) Y = Cast <to = 1> (c)", "compares with what is infinite"),
        ("a = ArgMax <axis = 2> (X) b = ArgMax <axis = 2> (Z) c = Equal (a, b) Y = Where (c, X, Z)", "of one type"),
    ],
)
def test_what_may_be_no_number_is_declined(nodes: str, says: str, tmp_path: Path) -> None:
    findings = padfix.check(saved(nodes, tmp_path), target="ncnn").findings
    assert any(says in each.hint for each in findings)
    with pytest.raises(RefusedError, match="can't be rewritten"):
        padfix.convert(tmp_path / "model.onnx", tmp_path / "out.onnx", target="ncnn")


@pytest.mark.parametrize("infinity", ["i", "X"])
def test_what_is_infinite_lies_beyond_the_largest_number(infinity: str, tmp_path: Path) -> None:
    other = "X" if infinity == "i" else "i"
    source = saved(f"c = Equal ({infinity}, {other}) Y = Cast <to = 1> (c)", tmp_path)
    padfix.convert(source, tmp_path / "out.onnx", target="ncnn")
    nodes = onnx.load(tmp_path / "out.onnx").graph.node
    assert [node.op_type for node in nodes if node.op_type != "Constant"] == ["Sub", "Relu", "Sign"]
