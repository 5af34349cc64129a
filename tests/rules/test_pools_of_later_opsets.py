"""Pools that say what the last opset of a target has no words for."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.rules.test_defined_forms import converted


@pytest.mark.parametrize(
    ("node", "shapes", "opset", "expected"),
    [
        ("AveragePool <kernel_shape = [2, 2], dilations = [2, 2]> (X)", ("2,3,7,8", "2,3,5,6"), 19, ["MatMul"] * 2),
        (
            "LpPool <kernel_shape = [3, 2], dilations = [1, 2]> (X)",
            ("1,3,7,9", "1,3,5,7"),
            18,
            ["Abs", "MatMul", "MatMul", "Mul", "Sqrt"],
        ),
        (
            "LpPool <kernel_shape = [2, 2], strides = [2, 2], ceil_mode = 1> (X)",
            ("1,3,7,9", "1,3,4,5"),
            18,
            ["Add", "LpPool", "Pad", "Pad"],
        ),
    ],
)
def test_a_pool_is_written_in_an_older_opset(
    node: str, shapes: tuple[str, str], opset: int, expected: list[str], tmp_path: Path
) -> None:
    text = f"(float[{shapes[0]}] X) => (float[{shapes[1]}] Y) {{ Y = {node} }}"
    assert converted(text, "onnx2tf", tmp_path, opset) == expected
