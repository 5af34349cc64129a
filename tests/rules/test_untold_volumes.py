"""Volumes of which no layer tells ncnn the batch, and reductions of them along the batch, or into no batch."""

from __future__ import annotations

from pathlib import Path

import pytest

from padfix.errors import RefusedError
from tests.rules.test_defined_forms import converted


@pytest.mark.parametrize("batch", ["1", "N"])
@pytest.mark.parametrize("op_type", ["Acos", "Asinh", "Celu", "Cosh", "ReduceL1", "ReduceL2", "ReduceProd", "Tan"])
def test_a_pool_before_it_tells_the_batch(op_type: str, batch: str, tmp_path: Path) -> None:
    axes = " <axes = [1, 3, 4]>" if op_type.startswith("Reduce") else ""
    text = f"(float[{batch},2,3,4,5] X) => (float Y) {{ Y = {op_type}{axes} (X) }}"
    assert converted(text, "ncnn", tmp_path, 12) == sorted(["MaxPool", op_type])


@pytest.mark.parametrize(
    ("node", "expected"),
    [
        ("ReduceMean <axes = [0], keepdims = 0>", ["ReduceMean", "Reshape"]),
        ("ReduceMax <axes = [0, 1], keepdims = 0>", ["ReduceMax", "ReduceMax", "Reshape"]),
        ("ReduceMax <axes = [1, 2, 3, 4], keepdims = 1>", ["ReduceMax"] * 4),
    ],
)
def test_one_volume_is_reduced_with_its_axes_kept(node: str, expected: list[str], tmp_path: Path) -> None:
    text = f"(float[1,2,3,4,5] X) => (float Y) {{ Y = {node} (X) }}"
    assert converted(text, "ncnn", tmp_path, 12) == ["MaxPool", *expected]


@pytest.mark.parametrize(
    "nodes",
    [
        "Y = ReduceL1 <axes = [0, 1, 2, 4]> (X)",
        "Y = ReduceMax <axes = [0], keepdims = 0> (X)",
        "Y = Flatten <axis = 3> (X)",
        "p = MaxPool <kernel_shape = [2, 2, 2]> (X) Y = Flatten <axis = 0> (p)",
    ],
)
def test_an_open_number_is_not_put_together(nodes: str, tmp_path: Path) -> None:
    with pytest.raises(RefusedError):
        converted(f"(float[N,2,3,4,5] X) => (float Y) {{ {nodes} }}", "ncnn", tmp_path, 12)


def test_flattened_rows_are_each_of_one_image(tmp_path: Path) -> None:
    text = """(float[N,2,3,4] X) => (float[N,24] Y) {
      p = GlobalMaxPool (X) q = Add (p, X) r = Flatten (q) Y = Relu (r) }"""
    assert converted(text, "ncnn", tmp_path, 12) == ["Add", "Flatten", "GlobalMaxPool", "Relu"]


@pytest.mark.parametrize("node", ["Add (X, far)", "Max (far, X)", "Mul (X, far)"])
def test_one_infinite_number_is_declined(node: str, tmp_path: Path) -> None:
    text = f"(float[1,3,4,4] X) => (float[1,3,4,4] Y) {{ far = Constant <value_float = -inf> () Y = {node} }}"
    with pytest.raises(RefusedError):
        converted(text, "ncnn", tmp_path, 13)


def test_a_hardmax_of_old_is_written_with_the_sign_of_later(tmp_path: Path) -> None:
    text = "(float[2,5] X) => (float[2,5] Y) { Y = Hardmax <axis = 1> (X) }"
    assert "Sign" in converted(text, "ncnn", tmp_path, 7)
