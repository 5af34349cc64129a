"""What MNN computes before a Squeeze where it gives a result of the model: axes that were cut off come back."""

from __future__ import annotations

from pathlib import Path

import onnx
import onnx.parser
import pytest

import padfix

GRAPH = (
    '<ir_version: 8, opset_import: ["" : %d]> g (float[1,2,4,6] X) => (float[2,4,6] Y%s) '
    "<float two = {2}, float lo = {0}, float hi = {6}, float[1] sl = {0.1}, float[6] row = {1, 2, 3, 4, 5, 6}, "
    "int64[1] a = {0}> "
    "{ p = Sigmoid (X) v = Squeeze %s %s }"
)


def operators(nodes: str, opset: int, folder: Path) -> list[str]:
    source, result = folder / "model.onnx", folder / "result.onnx"
    more = ", float[2,4,6] Z" if " Z = " in nodes else ""
    text = GRAPH % (opset, more, "<axes = [0]> (p)" if opset < 13 else "(p, a)", nodes)
    onnx.save(onnx.parser.parse_model(text), source)
    padfix.convert(source, result, target="mnn")
    assert not padfix.check(result, target="mnn").findings
    return [node.op_type for node in onnx.load(result).graph.node][2:]


@pytest.mark.parametrize(
    ("nodes", "opset", "expected"),
    [
        ("Y = Relu (v) Z = Add (v, two)", 17, ["Relu", "Identity", "Add"]),
        ("Y = LeakyRelu (v) Z = Sigmoid (v)", 17, ["LeakyRelu", "Identity", "Sigmoid"]),
        ("Y = PRelu (v, sl)", 17, ["PRelu", "Identity"]),
        ("n = Neg (v) Y = Clip (n, lo, hi)", 17, ["Neg", "Clip", "Identity"]),
        ("u = Identity (v) Y = Relu (u) Z = Neg (v)", 17, ["Relu", "Identity", "Neg"]),
        ("Y = Add (v, row)", 11, ["Add", "Identity"]),
        ("s = Add (v, two) Y = Relu (s)", 11, ["Add", "Relu", "Identity"]),
        ("Y = Relu (v)", 17, ["Relu"]),
        ("Y = Elu (v) Z = Add (v, two)", 17, ["Elu", "Add"]),
        ("Y = Add (v, row)", 17, ["Add"]),
        ("r = Relu (v) Y = Softmax (r) Z = Neg (v)", 17, ["Relu", "Softmax", "Neg"]),
    ],
)
def test_an_identity_stands_behind_it(nodes: str, opset: int, expected: list[str], tmp_path: Path) -> None:
    assert operators(nodes, opset, tmp_path) == expected
