"""An Einsum of which lengths are left open, as products of matrices: OpenCV 4.14 wants to know them all."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper

import padfix
from padfix.errors import RefusedError

OPEN = {"N": (3, 1, 2), "T": (5, 1, 2), "S": (4, 2, 6)}
"""No batch is empty: ONNX Runtime ends the process where an Einsum of four axes has no elements."""


def model(equation: str, *shapes: str) -> onnx.ModelProto:
    given = [[int(each) if each.isdigit() else each for each in shape.split(",")] for shape in shapes]
    inputs = [helper.make_tensor_value_info(f"x{i}", TensorProto.FLOAT, shape) for i, shape in enumerate(given)]
    gives = helper.make_tensor_value_info("Y", TensorProto.FLOAT, [None] * len(equation.split("->")[1]))
    node = helper.make_node("Einsum", [each.name for each in inputs], ["Y"], equation=equation)
    opset = [helper.make_opsetid("", 17)]
    return helper.make_model(helper.make_graph([node], "g", inputs, [gives]), opset_imports=opset, ir_version=8)


@pytest.mark.parametrize(
    ("equation", "shapes"),
    [
        ("bkdl,kcd->bkcl", ("N,4,4,6", "4,3,4")),
        ("bhwc,wkc->bhwk", ("N,4,3,5", "3,6,5")),
        ("bid,iod->bo", ("N,6,5", "6,3,5")),
        ("bildk,biokl->bold", ("N,3,4,5,2", "N,3,6,2,4")),
        ("ij,bjk->bik", ("2,3", "N,3,4")),
        ("b,bc->bc", ("N", "N,4")),
        ("bthd,bshd->bhts", ("N,T,2,4", "N,S,2,4")),
        ("bhts,bshd->bthd", ("N,2,T,S", "N,S,2,4")),
        ("cb,bd->cd", ("3,N", "N,4")),
        ("bij,bjk,bkl->bil", ("N,2,3", "N,3,4", "N,4,5")),
    ],
)
def test_open_lengths_come_first_or_are_not_reshaped(equation: str, shapes: tuple[str, ...], tmp_path: Path) -> None:
    source, result = tmp_path / "model.onnx", tmp_path / "out.onnx"
    onnx.save(model(equation, *shapes), source)
    padfix.convert(source, result, target="opencv@4.14")
    assert "Einsum" not in {node.op_type for node in onnx.load(result).graph.node}
    draw = np.random.default_rng(0)
    for place in range(3):
        lengths = [[OPEN[each][place] if each in OPEN else int(each) for each in shape.split(",")] for shape in shapes]
        feeds = {f"x{i}": draw.standard_normal(each, np.float32) for i, each in enumerate(lengths)}
        before, after = (onnxruntime.InferenceSession(str(path)).run(None, feeds)[0] for path in (source, result))
        np.testing.assert_allclose(after, before, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("equation", "shapes"), [("bct,bt->bc", ("N,3,T", "N,T")), ("abc,abd->cd", ("N,T,3", "N,T,4"))]
)
def test_others_are_declined(equation: str, shapes: tuple[str, ...], tmp_path: Path) -> None:
    onnx.save(model(equation, *shapes), tmp_path / "model.onnx")
    with pytest.raises(RefusedError, match="needs the lengths"):
        padfix.convert(tmp_path / "model.onnx", tmp_path / "out.onnx", target="opencv@4.14")


@pytest.mark.parametrize(
    ("equation", "shapes", "is_taken"),
    [
        ("bij,bkj->bki", ("2,3,4", "2,5,4"), False),
        ("...ji,...jk->...ki", ("2,4,3", "2,4,5"), False),
        ("bij,bjk->bik", ("2,3,4", "2,4,5"), True),
        ("bij,bkj->ikb", ("2,3,4", "2,5,4"), True),
        ("bcij,bjck->bcik", ("2,3,4,5", "2,5,3,6"), False),
        ("ijbc,bcjk->ibck", ("4,5,2,3", "2,3,5,6"), False),
        ("bcij,bckj->bcik", ("2,3,4,5", "2,3,6,5"), True),
        ("bihd,bkhd->bhik", ("2,4,3,5", "2,6,3,5"), True),
    ],
)
def test_products_that_mnn_turns_or_refuses(
    equation: str, shapes: tuple[str, ...], is_taken: bool, tmp_path: Path
) -> None:
    source, result = tmp_path / "model.onnx", tmp_path / "out.onnx"
    onnx.save(model(equation, *shapes), source)
    padfix.convert(source, result, target="mnn")
    assert ("Einsum" in {node.op_type for node in onnx.load(result).graph.node}) == is_taken
    draw = np.random.default_rng(0)
    feeds = {
        f"x{i}": draw.standard_normal([int(n) for n in each.split(",")], np.float32) for i, each in enumerate(shapes)
    }
    before, after = (onnxruntime.InferenceSession(str(path)).run(None, feeds)[0] for path in (source, result))
    np.testing.assert_allclose(after, before, rtol=1e-4, atol=1e-5)
