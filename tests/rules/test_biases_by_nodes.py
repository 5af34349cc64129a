"""Biases and other constants that a node Constant gives, as PyTorch's older exporter writes them."""

from __future__ import annotations

from pathlib import Path

import onnx
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


@pytest.mark.parametrize(
    ("nodes", "elem_type", "is_found"),
    [
        ("c = Constant <value = float16 {15360}> () Y = Less (X, c)", "float16", True),
        ("c = Constant <value = float16 {15360}> () Y = Pow (c, X)", "float16", True),
        ("c = Constant <value = float16[1,3] {0, 0, 0}> () Y = Concat <axis = 0> (X, c)", "float16", True),
        ("b = Greater (X, X) c = Constant <value = float16 {0}> () Y = Where (b, X, c)", "float16", True),
        ("c = Constant <value = float16[3,1] {0, 1, 2}> () Y = MatMul (X, c)", "float16", True),
        ("c = Constant <value = float16 {15360}> () Y = Mul (X, c)", "float16", False),
        ("c = Constant <value = float {1}> () Y = Less (X, c)", "float", False),
    ],
)
def test_constants_of_halves_are_initializers(nodes: str, elem_type: str, is_found: bool, tmp_path: Path) -> None:
    given = "bool" if "Less" in nodes else elem_type
    source, target = saved(tmp_path, f"({elem_type}[2,3] X) => ({given}[A,B] Y) {{ {nodes} }}"), tmp_path / "out.onnx"
    assert bool(padfix.check(source, target="onnx2tf").findings) is is_found
    if is_found:
        padfix.convert(source, target, target="onnx2tf")
        assert not padfix.check(target, target="onnx2tf").findings
        assert "Constant" not in [node.op_type for node in onnx.load(target).graph.node]
