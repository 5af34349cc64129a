"""Reductions for ncnn along axes that are an input, of lines and images whose lengths are open."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.rules.test_defined_forms import converted


@pytest.mark.parametrize("kept", [0, 1])
@pytest.mark.parametrize(
    ("op_type", "shape", "axes", "expected"),
    [
        ("ReduceMean", "N,T,8", "1", {"Unsqueeze", "ReduceMean"}),
        ("ReduceSum", "N,8,T", "-1", {"Unsqueeze", "ReduceSum"}),
        ("ReduceL2", "N,T,8", "1", {"Unsqueeze", "ReduceL2"}),
        ("ReduceMax", "N,T,8", "1", {"Transpose", "GlobalMaxPool"}),
        ("ReduceMin", "N,8,T", "2", {"Neg", "GlobalMaxPool"}),
        ("ReduceMax", "N,3,H,W", "2, 3", {"GlobalMaxPool"}),
        ("ReduceMax", "N,3,H,W", "1", {"Transpose", "MaxPool"}),
        ("ReduceMin", "N,3,H,5", "3", {"Neg", "MaxPool"}),
        ("ReduceMax", "N,3,4,W", "-2", {"MaxPool"}),
        ("ReduceMean", "N,3,H,5", "3", {"MatMul"}),
        ("ReduceMean", "N,3,H,W", "1", {"Conv"}),
        ("ReduceL2", "N,3,H,W", "1", {"Mul", "Conv", "Sqrt"}),
        ("ReduceL2", "1,2,3,W", "3", {"Reshape", "ReduceL2"}),
        ("ReduceMean", "1,2,3,4,5", "2", {"Reshape", "MaxPool", "ReduceMean"}),
        ("ReduceSum", "1,2,3,4,W", "4", {"Reshape", "MaxPool", "ReduceSum"}),
        ("ReduceMean", "N,3,T,H,W", "1", {"Conv"}),
    ],
)
def test_it_needs_one_length_at_most(
    op_type: str, shape: str, axes: str, expected: set[str], kept: int, tmp_path: Path
) -> None:
    number = axes.count(",") + 1
    text = (
        f"(float[{shape}] X) => (float Y) <int64[{number}] a = {{{axes}}}> "
        f"{{ Y = {op_type} <keepdims = {kept}> (X, a) }}"
    )
    found = set(converted(text, "ncnn", tmp_path, 18)) - {"Squeeze"}
    # A volume that is an input, or that remains, is told its batch by a pool.
    assert found - {"MaxPool"} == expected - {"MaxPool"}


@pytest.mark.parametrize("op_type", ["ReduceL1", "ReduceL2", "ReduceMean", "ReduceSum"])
def test_axes_without_elements_are_left_out(op_type: str, tmp_path: Path) -> None:
    text = f"(float[3,2,2] X) => (float[1,1,1] Y) <int64[0] a = {{}}> {{ Y = {op_type} (X, a) }}"
    assert converted(text, "ncnn", tmp_path, 18) == [op_type]
