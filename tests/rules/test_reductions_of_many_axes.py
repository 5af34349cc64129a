"""Reductions of data of more axes than a runtime reduces."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.rules.test_defined_forms import converted


@pytest.mark.parametrize("op_type", ["ReduceSum", "ReduceMax", "ReduceMean"])
@pytest.mark.parametrize(
    ("axes", "kept", "shape"),
    [
        ("6", 1, "2,2,3,2,2,3,1"),
        ("2", 0, "2,2,2,2,3,4"),
        ("3, -3", 0, "2,2,3,3,4"),
    ],
)
def test_axes_side_by_side_are_reduced_as_one(op_type: str, axes: str, kept: int, shape: str, tmp_path: Path) -> None:
    count = len(axes.split(","))
    node = f"{op_type} <axes = [{axes}], keepdims = {kept}> (X)"
    if op_type == "ReduceSum":
        node = f"ReduceSum <keepdims = {kept}> (X, a)"
    text = f"(float[2,2,3,2,2,3,4] X) => (float[{shape}] Y) <int64[{count}] a = {{{axes}}}> {{ Y = {node} }}"
    assert converted(text, "onnx2tf", tmp_path, 13) == sorted(["Reshape", op_type, "Reshape"])


def test_axes_apart_are_pooled_one_after_the_other(tmp_path: Path) -> None:
    node = "ReduceMax <axes = [2, 5], keepdims = 1> (X)"
    text = f"(float[2,2,3,2,2,3,4] X) => (float[2,2,1,2,2,1,4] Y) {{ Y = {node} }}"
    assert converted(text, "onnx2tf", tmp_path, 13) == ["MaxPool", "MaxPool", "Reshape", "Reshape", "Reshape"]
