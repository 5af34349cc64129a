"""What onnx2tf refuses or gets wrong, and the form in which it is right, or that there is none."""

from __future__ import annotations

from pathlib import Path

import onnx
import onnx.parser
import pytest

import padfix
from padfix.errors import RefusedError

TEXT = """
<ir_version: 8, opset_import: ["" : 13]> g (float[1,2,4,4] X, float[1,2,4,4,4] V) => (%s Y)
<float[1,2,1,1] C = {1, 2}, float[4] L = {1, 2, 3, 4},
 int64[1] E = {-1}, int64[1] F = {-9}, int64[1] A = {2}> { Y = %s }
"""


def saved(node: str, folder: Path) -> Path:
    place, kind = folder / "model.onnx", "bool" if node.startswith("Less") else "float"
    onnx.save(onnx.parser.parse_model(TEXT % (kind, node)), place)
    return place


@pytest.mark.parametrize(
    ("node", "expected"),
    [
        ("Sum (X, C)", ["Add"]),
        ("Sum (X, X)", ["Sum"]),
        ("Slice (X, E, F, A, E)", ["Gather"]),
        ("Less (L, L)", ["Less"]),
        ("MaxPool <kernel_shape = [2, 2, 2]> (V)", ["MaxPool", "MaxPool"]),
    ],
)
def test_a_form_is_written(node: str, expected: list[str], tmp_path: Path) -> None:
    result = tmp_path / "result.onnx"
    padfix.convert(saved(node, tmp_path), result, target="onnx2tf")
    left_out = {"Constant", "Reshape", "Unsqueeze"}
    assert [each.op_type for each in onnx.load(result).graph.node if each.op_type not in left_out] == expected
    assert not {each.rule for each in padfix.check(result, target="onnx2tf").findings} & {"PF111", "PF306"}


@pytest.mark.parametrize("node", ["Hardmax <axis = 2> (X)", "Less (X, C)", "Erf (X)"])
def test_what_has_no_form_is_declined(node: str, tmp_path: Path) -> None:
    with pytest.raises(RefusedError, match="No equal form is known to be right on onnx2tf"):
        padfix.convert(saved(node, tmp_path), tmp_path / "result.onnx", target="onnx2tf")
