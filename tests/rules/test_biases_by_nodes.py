"""Biases that a node Constant gives, as PyTorch's older exporter writes them."""

from __future__ import annotations

from pathlib import Path

import pytest

import padfix
from tests.rules.test_unsupported_operator import saved


@pytest.mark.parametrize(
    ("op_type", "elem_type", "is_found"),
    [("Conv", "float16", True), ("ConvTranspose", "float16", True), ("Conv", "float", False)],
)
def test_a_bias_of_halves_is_an_initializer(op_type: str, elem_type: str, is_found: bool, tmp_path: Path) -> None:
    text = (
        f"({elem_type}[N,1,L] X) => ({elem_type}[N,1,M] Y) <{elem_type}[1,1,2] W = {{1, 2}}> "
        f"{{ b = Constant <value = {elem_type}[1] {{3}}> () Y = {op_type} (X, W, b) }}"
    )
    source, target = saved(tmp_path, text), tmp_path / "out.onnx"
    assert bool(padfix.check(source, target="onnx2tf").findings) is is_found
    if is_found:
        padfix.convert(source, target, target="onnx2tf")
        assert not padfix.check(target, target="onnx2tf").findings
