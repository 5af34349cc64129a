"""Lengths of inputs that weights and attributes of the operators behind them tell."""

from __future__ import annotations

import onnx
import onnx.parser
import pytest
from onnx import TensorProto

from padfix.proof.executors import TensorSpec
from padfix.proof.facts import refine


@pytest.mark.parametrize(
    ("shape", "weights", "body", "opset", "expected"),
    [
        ("a,b,c", "float[5,7] w", "Y = MatMul (X, w)", 17, ("a", "b", 5)),
        ("a,b", "float[5] w", "Y = MatMul (X, w)", 17, ("a", 5)),
        ("a,b", "float[7,5] w", "Y = Gemm <transB = 1> (X, w)", 17, ("a", 5)),
        ("a,b", "float[5,7] w", "Y = Gemm <transA = 1> (X, w)", 17, (5, "b")),
        ("a,b,c", "float[5] w", "Y = LayerNormalization (X, w)", 17, ("a", "b", 5)),
        ("a,b,c", "float[1] w", "Y = LayerNormalization (X, w)", 17, ("a", "b", "c")),
        ("a,b,c", "float[5] w", "Y = InstanceNormalization (X, w, w)", 17, ("a", 5, "c")),
        ("a,b,c", "float[1,8,5] w", "Y = RNN <hidden_size = 8> (X, w, w)", 17, ("a", "b", 5)),
        ("a,b", "float[1] w", "Y, Z = Split <axis = -1, split = [2, 3]> (X)", 11, ("a", 5)),
        (
            "a,b,c",
            "float[5,7] w",
            "t = Transpose <perm = [0, 2, 1]> (X) r = Relu (t) Y = MatMul (r, w)",
            17,
            ("a", 5, "c"),
        ),
        ("a,4,c", "float[5,7] w", "Y = MatMul (X, w)", 17, ("a", 4, 5)),
        ("a,b,c,d", "float[3,1,5,7] w", "Y = MatMul (X, w)", 17, (3, "b", "c", 5)),
        ("a,b,c", "float[4,5] w", "Y = RMSNormalization <axis = -2> (X, w)", 23, ("a", 4, 5)),
        ("a,b", "float[4,5] w", 'Y = Einsum <equation = "ij,kj->ik"> (X, w)', 17, ("a", 5)),
        ("a,b,c", "float[5,7] w", "Y = MatMul (w, X)", 17, ("a", "b", "c")),
    ],
)
def test_an_open_length_is_told_by_what_stands_behind_it(
    shape: str, weights: str, body: str, opset: int, expected: tuple[int | str, ...]
) -> None:
    header = f'<ir_version: 8, opset_import: ["" : {opset}]>'
    text = f"{header} g (float[{shape}] X) => (float Y) <{weights} = {{0}}> {{ {body} }}"
    given = tuple(int(each) if each.isdigit() else each for each in shape.split(","))
    (refined,) = refine([TensorSpec("X", TensorProto.FLOAT, given)], onnx.parser.parse_model(text).graph)
    assert refined.shape == expected
