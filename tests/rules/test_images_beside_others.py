"""Images of an open number for ncnn, which takes them one by one, beside inputs that are no images."""

from __future__ import annotations

from pathlib import Path

import pytest

from padfix.errors import PadfixError
from tests.rules.test_defined_forms import converted


def _text(lengths: str, nodes: str, results: str = "float Y") -> str:
    return (
        f"(float[N,3,5,4] X, float[{lengths}] S) => ({results}) {{ C = MaxPool <kernel_shape = [2, 2]> (X) {nodes} }}"
    )


@pytest.mark.parametrize(
    ("lengths", "nodes"),
    [
        ("3", "Y = Mul (C, S)"),
        ("1,3,3,5", "Y = MatMul (C, S)"),
        ("4,1", "T = Sigmoid (S) Y = Add (C, T)"),
        ("2,3,1,1", "Y = Conv (C, S)"),
    ],
)
def test_what_is_for_all_images_is_no_objection(lengths: str, nodes: str, tmp_path: Path) -> None:
    assert "MaxPool" in converted(_text(lengths, nodes), "ncnn", tmp_path, 17)


@pytest.mark.parametrize("lengths", ["", "[1]", "[1,3,1,1]"])
def test_a_default_is_no_other_number_of_images(lengths: str, tmp_path: Path) -> None:
    values = ",".join("123" if "3" in lengths else "1")
    text = (
        f"(float[2,3,5,4] X, float{lengths} S) => (float Y) <float{lengths} S = {{{values}}}> "
        "{ C = MaxPool <kernel_shape = [2, 2]> (X) Y = Mul (C, S) }"
    )
    assert "MaxPool" in converted(text, "ncnn", tmp_path, 17)


@pytest.mark.parametrize(
    ("lengths", "nodes", "results"),
    [("3,5", "Y = MatMul (C, S)", "float Y"), ("2,3", "Y = Neg (C) Z = Relu (S)", "float Y, float Z")],
)
def test_another_number_of_images_is_declined(lengths: str, nodes: str, results: str, tmp_path: Path) -> None:
    with pytest.raises(PadfixError, match="another number of images"):
        converted(_text(lengths, nodes, results), "ncnn", tmp_path, 17)


@pytest.mark.parametrize("opset", [7, 11])
@pytest.mark.parametrize("power", [1, 2, 3])
def test_pads_of_one_side_stand_before_the_powers(power: int, opset: int, tmp_path: Path) -> None:
    pool = f"LpPool <kernel_shape = [3, 2], pads = [2, 0, 1, 1], p = {power}> (X)"
    found = converted(f"(float[N,2,6,W] X) => (float Y) {{ Y = {pool} }}", "ncnn", tmp_path, opset)
    assert found.count("AveragePool") == found.count("Pad") == 1
    assert "LpPool" not in found
