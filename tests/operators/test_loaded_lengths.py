"""How open lengths are counted while a model is read: 0, and 1 where two tensors meet."""

from __future__ import annotations

import onnx.parser
import pytest

from padfix.files.model import Model
from padfix.operators.inference import infer
from padfix.operators.loaded_lengths import counted_length

HEAD = """<ir_version: 8, opset_import: ["" : 17]> g (float[b,4,5] B, float[b,4,h,w] X, float[n,8] R, float[t,b,4] T,
 float[4,4,3,3] W) => (float Y)
<float k = {2}, float[3] v = {1, 2, 3},
 float[8,3] M = {%s}, int64[4] same = {0, 0, 0, 0}, int64[2] rest = {-1, 8},
 int64[2] one = {1, 1}, int64[2] last = {999999999999, 999999999999}, int64[2] axes = {2, 3}, int64[2] none = {0, 0},
 int64[1] second = {1}, int64[8] pads = {0, 0, 1, 1, 0, 0, 1, 1}> { A = Add (X, X) """


@pytest.mark.parametrize(
    ("nodes", "axis", "counted"),
    [
        ("Y = Relu (X)", 2, 0),
        ("Y = Relu (X)", 0, 0),
        ("Y = Relu (B)", 0, 1),
        ("Y = Relu (X)", 1, 4),
        ("Y = Relu (R)", 0, 0),
        ("Y = Transpose <perm = [1, 0, 2]> (T)", 0, 0),
        ("Y = Transpose <perm = [1, 0, 2]> (T)", 1, 0),
        ("Y = Mul (X, k)", 3, 1),
        ("Y = Sigmoid (A)", 3, 1),
        ("Y = Reshape (A, same)", 2, 0),
        ("Y = Reshape (A, same)", 0, 0),
        ("Y = Reshape (R, rest)", 0, "0 of Y"),
        ("Y = Conv <pads = [1, 1, 1, 1]> (A, W)", 2, 1),
        ("Y = Conv <pads = [1, 1, 1, 1], strides = [2, 2]> (X, W)", 2, 0),
        ("Y = Conv (X, W)", 2, "2 of Y"),
        ("Y = Conv (A, W)", 0, 1),
        ("Y = MaxPool <kernel_shape = [2, 2], strides = [2, 2]> (A)", 2, 1),
        ("Y = ConvTranspose <strides = [2, 2]> (A, W)", 2, "2 of Y"),
        ("Y = Slice (X, one, last, axes)", 2, 0),
        ("Y = Slice (A, one, last, axes)", 2, "2 of Y"),
        ("Y = Slice (A, none, last, axes)", 2, 1),
        ("Y = Pad (X, pads)", 2, "2 of Y"),
        ("Y = MatMul (R, M)", 0, 0),
        ("p = MatMul (R, M) Y = Add (p, v)", 0, 0),
        ("p = MatMul (R, M) Y = Add (k, p)", 0, 0),
        ("p = MatMul (R, M) Y = Mul (p, v)", 0, 1),
        ("Y = Unsqueeze (A, second)", 3, 1),
        ("Y = ReduceMean <axes = [1], keepdims = 0> (A)", 1, 1),
        ("Y = ReduceMean <axes = [-1]> (X)", 2, 0),
        ("Y = Concat <axis = 2> (X, X)", 3, 0),
        ("g = GlobalAveragePool (X) Y = Mul (X, g)", 3, 1),
    ],
)
def test_open_lengths_are_counted(nodes: str, axis: int, counted: int | str) -> None:
    proto = onnx.parser.parse_model(HEAD % ", ".join(["1"] * 24) + nodes + "}")
    main, *_ = infer(Model(proto))
    assert counted_length(main, "Y", axis) == counted
