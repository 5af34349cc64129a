"""Lengths that others are made of, for importers that hold them as lists, as numbers and as constants."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnx.parser
import onnxruntime
import pytest

import padfix

HEAD = '<ir_version: 8, opset_import: ["" : 17]>\nmain '

CONSTANTS = """<int64[1] none = {0}, int64[1] one = {1}, int64[1] two = {2}, int32[1] narrow_three = {3},
    int64[1] three = {3}, int64 o = {0}, int64 step = {1}, int64[2] both = {0, 1},
    float half = {0.5}, int64[2] rows = {0, 1}>"""


def outcome(tmp_path: Path, nodes: str, gives: str = "float[a,b] Y") -> list[str]:
    """Return the operators that are written for TVM, which give the same numbers in ONNX Runtime."""
    text = f"{HEAD}(float[N,3] X) => ({gives}) {CONSTANTS} {{ shape = Shape (X) {nodes} }}"
    onnx.save(onnx.parser.parse_model(text), tmp_path / "model.onnx")
    padfix.convert(tmp_path / "model.onnx", tmp_path / "out.onnx", target="tvm")
    feeds = {"X": np.arange(6, dtype=np.float32).reshape(2, 3)}
    found, expected = (
        onnxruntime.InferenceSession(tmp_path / name, providers=["CPUExecutionProvider"]).run(None, feeds)
        for name in ("out.onnx", "model.onnx")
    )
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(one, other)
    nodes_left = onnx.load(tmp_path / "out.onnx").graph.node
    return [each.op_type for each in nodes_left if each.op_type not in ("Constant", "Shape")]


NARROW = "narrow = Cast <to = 6> (shape) "
JOINED = " told = Concat <axis = 0> (n, narrow_three) whole = Cast <to = 7> (told) "


@pytest.mark.parametrize("filled", ["c = ConstantOfShape (whole)", "c = Expand (half, whole)"])
def test_what_is_cut_off_behind_a_cast_is_picked(filled: str, tmp_path: Path) -> None:
    """As Keras measures the state that a recurrent layer starts from."""
    nodes = NARROW + "n = Slice (narrow, none, one)" + JOINED + filled + " Y = Add (X, c)"
    assert outcome(tmp_path, nodes)[:4] == ["Cast", "Gather", "Concat", "Cast"]


@pytest.mark.parametrize(
    ("nodes", "left"),
    [
        (
            "n = Gather (shape, both) c = ConstantOfShape (n) Y = Add (X, c)",
            ["Cast", "Gather", "ConstantOfShape", "Add"],
        ),
        (
            "n = Gather (shape, o) h = Div (n, two) t = Concat <axis = 0> (h, three) Y = ConstantOfShape (t)",
            ["Cast", "Gather", "Div", "Concat", "ConstantOfShape"],
        ),
        (
            "n = Gather (shape, o) h = Div (n, step) u = Unsqueeze (h, none) Y = Slice (X, none, u)",
            ["Gather", "Div", "Unsqueeze", "Slice"],
        ),
        (
            "n = Gather (shape, o) r = Range (o, n, step) f = Cast <to = 1> (r) u = Unsqueeze (f, one) Y = Mul (X, u)",
            ["Cast", "Gather", "Range", "Cast", "Unsqueeze", "Mul"],
        ),
        (
            "n = Gather (shape, o) f = Cast <to = 1> (n) r = Sqrt (f) Y = Mul (X, r)",
            ["Cast", "Gather", "Cast", "Sqrt", "Mul"],
        ),
        (
            "n, m = Split (shape) z = Concat <axis = 0> (m, n) Y = ConstantOfShape (z)",
            ["Cast", "Gather", "Gather", "Concat", "ConstantOfShape"],
        ),
        ("t = Sub (shape, rows) Y = Tile (X, t)", ["Cast", "Sub", "Tile"]),
        ("n = Gather (shape, none) Y, p = TopK <axis = 0> (X, n)", ["Cast", "Gather", "TopK"]),
        (
            "n = Slice (shape, none, one) z = Concat <axis = 0> (none, none, none, n) Y = Pad (X, z)",
            ["Slice", "Concat", "Cast", "Pad"],
        ),
    ],
)
def test_lengths_are_worked_out_as_constants(nodes: str, left: list[str], tmp_path: Path) -> None:
    assert outcome(tmp_path, nodes) == left


def test_a_product_of_lengths_is_one_of_what_is_picked(tmp_path: Path) -> None:
    nodes = "n = ReduceProd (shape) Y = ConstantOfShape (n)"
    assert outcome(tmp_path, nodes, "float[a] Y") == ["Cast", "Gather", "Gather", "Mul", "ConstantOfShape"]


def test_places_that_are_joined_are_a_tensor(tmp_path: Path) -> None:
    """As PyTorch writes what it puts in places."""
    nodes = "places = Concat <axis = 0> (shape, one) l = ReduceMax (places) Y = Cast <to = 1> (l)"
    assert outcome(tmp_path, nodes, "float[a] Y") == ["Concat", "Cast", "ReduceMax", "Cast"]


def test_what_is_filled_to_lengths_that_data_tells_is_declined(tmp_path: Path) -> None:
    text = f"{HEAD}(int64[2] X) => (float[a,b] Y) {{ Y = ConstantOfShape (X) }}"
    onnx.save(onnx.parser.parse_model(text), tmp_path / "model.onnx")
    with pytest.raises(padfix.PadfixError, match="ConstantOfShape"):
        padfix.convert(tmp_path / "model.onnx", tmp_path / "out.onnx", target="tvm")
