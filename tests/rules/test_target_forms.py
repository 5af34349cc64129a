"""Forms that suit a target where nothing nearer to what stands there does: each proven, and without an objection."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnx.parser
import pytest

import padfix
from padfix.targets.fact import Fact
from padfix.targets.traits import Traits

SIZED = "float[1,2,8,9] X"


def text(operator: str, data: str = SIZED, weights: str = "", opset: int = 17) -> str:
    """Return a model of one operator that reads X, and weights W that are initializers."""
    return f'<ir_version: 8, opset_import: ["" : {opset}]>\ng ({data}) => (float Y) <{weights}> {{ {operator} }}'


WEIGHTS = ", ".join(str(each % 23 - 11) for each in range(48))
BYTES = f"float s = {{0.03}}, int8 z = {{7}}, int8[3,4,2,2] w = {{{WEIGHTS}}}"
JOINED = (
    "r = Relu (X) c = Concat <axis = 1> (X, r) q = QuantizeLinear (c, s, z) d = DequantizeLinear (q, s, z) %s"
    "k = DequantizeLinear (w, s, z) Y = Conv <kernel_shape = [2, 2], strides = [1, 1]%s> (d, k)"
)
POOLED = (
    "q = QuantizeLinear (X, s, z) d = DequantizeLinear (q, s, z) "
    "Y = AveragePool <kernel_shape = [2, 2], strides = [1, 1], pads = [0, 1, 1, 0]%s> (d)"
)

CASES = {
    "a transposed convolution that cuts off the end alone": (
        text(
            "Y = ConvTranspose <strides = [2, 2], pads = [0, 0, 1, 1]> (X, W)",
            weights=f"float[2,2,3,4] W = {{{WEIGHTS}}}",
        ),
        "portable",
        ["ConvTranspose", "Slice"],
    ),
    "a transposed convolution with dilations, cut off unevenly": (
        text(
            "Y = ConvTranspose <strides = [2, 2], dilations = [2, 2], pads = [2, 3, 3, 2]> (X, W)",
            weights=f"float[2,2,3,4] W = {{{WEIGHTS}}}",
        ),
        "portable",
        ["MatMul", "MatMul", "Conv"],
    ),
    "a maximum whose last window is left out": (
        text("Y = MaxPool <kernel_shape = [1, 2], strides = [3, 3], ceil_mode = 1> (X)"),
        "onnxruntime-webgpu",
        ["MaxPool"],
    ),
    "an average whose last window is left out": (
        text(
            "Y = AveragePool <kernel_shape = [2, 2], strides = [2, 3], pads = [1, 1, 1, 1], ceil_mode = 1> (X)",
            "float[1,2,7,7] X",
            opset=22,
        ),
        "onnxruntime-webgpu",
        ["AveragePool"],
    ),
    "an activation behind that of a convolution": (
        text("c = Conv (X, W) r = LeakyRelu (c) Y = Sigmoid (r)", weights=f"float[3,2,2,4] W = {{{WEIGHTS}}}"),
        "onnxruntime-webgpu",
        ["Conv", "LeakyRelu", "Max", "Sigmoid"],
    ),
    "a Swish behind the Relu of a convolution, moved": (
        text(
            "c = Conv (X, W) r = Relu (c) t = Transpose <perm = [0, 2, 3, 1]> (r) s = Sigmoid (t) Y = Mul (t, s)",
            weights=f"float[3,2,2,4] W = {{{WEIGHTS}}}",
        ),
        "onnxruntime-webgpu",
        ["Conv", "Max", "Mul", "Relu", "Sigmoid", "Transpose"],
    ),
    "a Relu behind a Swish of a convolution": (
        text(
            "c = Conv (X, W) s = Sigmoid (c) m = Mul (c, s) Y = Relu (m)",
            weights=f"float[3,2,2,4] W = {{{WEIGHTS}}}",
        ),
        "onnxruntime-webgpu",
        ["Conv", "Max", "Mul", "Relu", "Sigmoid"],
    ),
    "a Dropout that gives a result": (
        text("r = Relu (X) Y = Dropout (r)"),
        "onnxruntime-webgpu",
        ["Identity", "Relu"],
    ),
    "a Tanh of a convolution": (
        text("c = Conv (X, W) Y = Tanh (c)", weights=f"float[3,2,2,4] W = {{{WEIGHTS}}}"),
        "onnxruntime-webgpu",
        ["Conv", "Max", "Tanh"],
    ),
    "a transposed convolution with one filter a group": (
        text(
            "Y = ConvTranspose <group = 2, strides = [2, 2], pads = [0, 1, 1, 0]> (X, W, b)",
            "float[1,4,5,6] X",
            f"float[4,1,3,4] W = {{{WEIGHTS}}}, float[2] b = {{1, -2}}",
        ),
        "onnxruntime-webgpu",
        ["ConvTranspose"],
    ),
    "a convolution of volumes in groups": (
        text(
            'Y = Conv <group = 2, auto_pad = "SAME_LOWER", strides = [2, 1, 1]> (X, W)',
            "float[2,4,3,5,4] X",
            f"float[2,2,2,3,2] W = {{{WEIGHTS}}}",
        ),
        "onnxruntime-webgpu",
        ["Add", "Conv", "Conv", "Pad", *["Reshape"] * 3, "Slice", "Slice", "Transpose", "Transpose"],
    ),
    "a transposed convolution of volumes in groups": (
        text(
            "Y = ConvTranspose <group = 2, strides = [2, 1, 2], dilations = [1, 2, 1]> (X, W)",
            "float[1,4,3,5,4] X",
            f"float[4,1,2,3,2] W = {{{WEIGHTS}}}",
        ),
        "onnxruntime-webgpu",
        ["Conv", "MatMul", "MatMul", "MatMul", "Reshape", "Reshape"],
    ),
    "a Reshape that copies lengths behind another": (
        text(
            "z = Reshape (X, a) v = Reshape (z, b) Y = Softmax <axis = -1> (v)",
            "float[3,4,2,2] X",
            "int64[5] a = {3, 2, 2, 2, 2}, int64[3] b = {0, 0, -1}",
        ),
        "opencv@5.0.0.93",
        ["Reshape", "Reshape", "Softmax"],
    ),
    "a Reshape that copies an open length behind another": (
        text(
            "z = Reshape (X, a) v = Reshape (z, b) Y = Softmax <axis = -1> (v)",
            "float[n,4,2,2] X",
            "int64[4] a = {-1, 2, 2, 2}, int64[3] b = {0, 2, 4}",
        ),
        "opencv@5.0.0.93",
        ["Identity", "Reshape", "Reshape", "Softmax"],
    ),
    "a transform of the last axis but one": (
        text("Y = DFT (X)", "float[1,6,7,1] X", opset=20),
        "openvino",
        ["DFT", "Transpose", "Transpose"],
    ),
    "a transform of an axis that is counted from the end": (
        text("Y = DFT <axis = -2> (X)", "float[1,6,7,1] X"),
        "openvino",
        ["DFT"],
    ),
    "one side of a transform of the last axis but one": (
        text("Y = DFT <onesided = 1> (X)", "float[1,6,7,1] X", opset=20),
        "openvino",
        ["DFT", "Slice", "Transpose", "Transpose"],
    ),
    "a transform of real data": (
        text("Y = DFT <axis = 1, onesided = 1> (X, n)", "float[2,7,5,1] X", "int64 n = {6}"),
        "opencv@4.14",
        ["MatMul", "Reshape", "Reshape", "Transpose", "Transpose"],
    ),
    "the inverse of a transform, of fewer numbers": (
        text("Y = DFT <axis = 2, inverse = 1> (X, n)", "float[N,7,5,2] X", "int64 n = {8}"),
        "mnn",
        ["MatMul", "Reshape", "Reshape"],
    ),
    "a product with a list": (
        text("Y = MatMul (X, w)", "float[2,3,5] X", "float[5] w = {1, 2, 3, 4, 5}"),
        "opencv@5.0.0.93",
        ["MatMul", "Squeeze"],
    ),
    "a product of two lists": (
        text("Y = MatMul (X, w)", "float[5] X", "float[5] w = {1, 2, 3, 4, 5}"),
        "tract",
        ["MatMul", "Squeeze", "Squeeze", "Unsqueeze"],
    ),
    "slopes of the last axis": (
        text("Y = PRelu (X, w)", "float[2,3,4,3] X", "float[3] w = {1, 2, 3}"),
        "openvino",
        ["PRelu"],
    ),
    "slopes of every place": (
        text("Y = PRelu (X, w)", "float[2,3,2,2] X", "float[2,2] w = {1, 2, 3, 4}"),
        "opencv",
        ["Add", "Mul", "Neg", "Neg", "Relu", "Relu"],
    ),
    "axes that are taken out last first": (
        text("Y = Squeeze (X, a)", "float[N,6,1,1] X", "int64[2] a = {-1, 2}"),
        "tract",
        ["Squeeze"],
    ),
    "axes of an old opset that are taken out last first": (
        text("Y = Squeeze <axes = [3, 1]> (X)", "float[2,1,5,1] X", opset=11),
        "tract",
        ["Squeeze"],
    ),
    "copies that a product reads": (
        text(
            "e = Expand (X, s) t = Transpose <perm = [0, 2, 1]> (e) Y = MatMul (t, W)",
            "float[N,1,3] X",
            "int64[3] s = {1, 5, 1}, float[5,2] W = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10}",
        ),
        "tract",
        ["Expand", "MatMul", "Max", "Transpose"],
    ),
    "copies beside others that a product reads": (
        text(
            "e = Expand (X, s) c = Concat <axis = 1> (e, Z) Y = Conv (c, W)",
            "float[1,1,1] X, float[1,1,5] Z",
            "int64[3] s = {1, 1, 5}, float[2,2,1] W = {1, 2, 3, 4}",
        ),
        "tract",
        ["Concat", "Conv", "Expand", "Max"],
    ),
    "copies that a recurrent layer reads": (
        text(
            "e = Tile (X, s) Y = RNN <hidden_size = 1> (e, W, R)",
            "float[1,N,2] X",
            "int64[3] s = {4, 1, 1}, float[1,1,2] W = {1, 2}, float[1,1,1] R = {0.5}",
        ),
        "tract",
        ["Max", "RNN", "Tile"],
    ),
    "a curve that is scaled": (text("Y = Celu <alpha = 0.3> (X)"), "tract", ["Div", "Elu", "Mul"]),
    "a dense layer of what is turned": (
        text("Y = Gemm <transA = 1> (X, w)", "float[3,4] X", "float[3,2] w = {1, 2, 3, 4, 5, 6}"),
        "mnn",
        ["Gemm", "Transpose"],
    ),
    "pieces of two lengths": (
        text("A, Y = Split <axis = 1, num_outputs = 2> (X)", "float[2,5] X", opset=18),
        "mnn",
        ["Split"],
    ),
    "what is less": (
        text("b = Less (X, w) Y = Where (b, X, w)", "float[2,2] X", "float[2,2] w = {0.1, -0.2, 0.3, 0}"),
        "mnn",
        ["Greater", "Where"],
    ),
    "a maximum of bytes": (
        text("Y = ReduceMax <axes = [1], keepdims = 0> (X)", "uint8[n,4,3] X", opset=12).replace("float Y", "uint8 Y"),
        "openvino",
        ["Cast", "ReduceMax", "Cast"],
    ),
    "a minimum of bytes": (
        text("Y = ReduceMin (X, a)", "uint8[2,4,3] X", "int64[2] a = {1, 2}", 18).replace("float Y", "uint8 Y"),
        "mnn",
        ["Cast", "ReduceMin", "Cast"],
    ),
    "bounds that are computed": (
        text("m = ReduceMean <keepdims = 0> (X) n = Neg (m) Y = Clip (X, n, m)"),
        "ncnn",
        ["ReduceMean", "Neg", "Max", "Min"],
    ),
    "an equation without a written result": (
        text('Y = Einsum <equation = "ij,jk"> (X, Z)', "float[3,4] X, float[4,5] Z"),
        "mnn",
        ["Einsum"],
    ),
    "an equation of three data": (
        text(
            'Y = Einsum <equation = "ab,bcd,ad->ac"> (X, W, Z)',
            "float[n,3] X, float[n,2] Z",
            f"float[3,8,2] W = {{{WEIGHTS}}}",
        ),
        "mnn",
        ["Einsum", "Einsum"],
    ),
    "the sum of a product of three data": (
        text(
            'Y = Einsum <equation = "ab,bc,cd"> (X, W, Z)',
            "float[2,6] X, float[8,2] Z",
            f"float[6,8] W = {{{WEIGHTS}}}",
        ),
        "mnn",
        ["Einsum", "Einsum"],
    ),
    "an equation of matrices whose number is left open": (
        text('Y = Einsum <equation = "...ab,cb->...ac"> (X, W)', "float[n,3,6] X", f"float[8,6] W = {{{WEIGHTS}}}"),
        "opencv@4.14",
        ["MatMul"],
    ),
    "the sum of images whose number is left open": (
        text('Y = Einsum <equation = "abc->ca"> (X)', "float[n,3,6] X"),
        "opencv@4.14",
        ["ReduceSum", "Transpose"],
    ),
    "dots that one of two factors has": (
        text('Y = Einsum <equation = "...ab,bc->...ac"> (X, W)', "float[2,5,3,6] X", f"float[6,8] W = {{{WEIGHTS}}}"),
        "tract",
        ["Einsum"],
    ),
    "elements of each image by constant indices of several axes": (
        text("Y = GatherND <batch_dims = 1> (X, i)", "float[2,4,3] X", "int64[2,2,2] i = {1, 2, 3, 0, 0, 0, 2, 1}"),
        "mnn",
        ["Reshape", "Gather", "Reshape"],
    ),
    "elements of each image by computed indices of several axes": (
        text("Y = GatherND <batch_dims = 1> (X, i)", "float[2,4,3] X, int64[2,5,2] i"),
        "mnn",
        ["Concat", "GatherND", "Mod"],
    ),
    "rows of each image by computed indices": (
        text("Y = GatherND <batch_dims = 2> (X, i)", "float[2,4,3,5] X, int64[2,4,2,1] i"),
        "qnn",
        ["Concat", "GatherND"],
    ),
    "what is picked from the end": (
        text("Y = GatherND (X, i)", "float[4,3] X", "int64[2,2] i = {1, -1, -2, 0}"),
        "mnn",
        ["GatherND"],
    ),
    "what is replaced at the end": (
        text(
            "Y = ScatterElements <axis = -1> (X, i, u)", "float[1,4] X", "int64[1,2] i = {1, -1}, float[1,2] u = {8, 9}"
        ),
        "mnn",
        ["ScatterElements"],
    ),
    "amounts that come of the larger of two lengths": (
        text(
            "s = Shape (X) m = Max (s, t) d = Sub (m, s) z = Sub (s, s) p = Concat <axis = 0> (z, d) Y = Pad (X, p)",
            "float[1,2,5,6] X",
            "int64[4] t = {1, 2, 8, 8}",
        ),
        "qnn",
        ["Gather", "Pad"],
    ),
    "a dense layer whose weights are not turned": (
        text("Y = Gemm (X, w)", "float[3,4] X", f"float[4,12] w = {{{WEIGHTS}}}"),
        "portable",
        ["Gemm"],
    ),
    "what is joined in signed bytes": (
        text(JOINED % ("", ""), weights=BYTES),
        "openvino",
        ["Relu", "Concat", "QuantizeLinear", "DequantizeLinear", "DequantizeLinear", "Clip", "Conv"],
    ),
    "what is joined in signed bytes, and padded": (
        text(JOINED % ("", ', auto_pad = "SAME_LOWER"'), weights=BYTES),
        "openvino",
        ["Relu", "Concat", "QuantizeLinear", "DequantizeLinear", "DequantizeLinear", "Clip", "Conv"],
    ),
    "averages of bytes": (
        text(POOLED % ", count_include_pad = 1", weights=BYTES),
        "openvino",
        ["QuantizeLinear", "DequantizeLinear", "Max", "AveragePool"],
    ),
    "a scale that keeps a length": (
        text('Y = Resize <mode = "linear"> (X, , s)', "float[1,2,7,3] X", "float[4] s = {1, 1, 1.3, 1.3}"),
        "openvino",
        ["MatMul", "MatMul"],
    ),
    "a scale that is just short of a whole number": (
        text(
            'Y = Resize <mode = "linear"> (X, , s)', "float[1,2,7,123] X", "float[4] s = {1, 1, 1, 1.0406503677368164}"
        ),
        "openvino",
        ["MatMul"],
    ),
    "one element that is weighed": (
        text('Y = Resize <mode = "linear"> (X, , , z)', "float[1,2,1,1] X", "int64[4] z = {1, 2, 5, 7}"),
        "opencv@5.0",
        ["Resize"],
    ),
    "one row that is weighed, and several columns": (
        text('Y = Resize <mode = "linear"> (X, , , z)', "float[1,2,1,4] X", "int64[4] z = {1, 2, 5, 8}"),
        "opencv@5.0",
        ["MatMul", "MatMul"],
    ),
    "one element of a cubic curve": (
        text(
            'Y = Resize <coordinate_transformation_mode = "pytorch_half_pixel", mode = "cubic"> (X, , , z)',
            weights="int64[4] z = {1, 2, 5, 1}",
        ),
        "tract",
        ["MatMul", "MatMul"],
    ),
    "dilated maxima": (
        text('Y = MaxPool <kernel_shape = [3, 2], dilations = [2, 2], auto_pad = "VALID", strides = [2, 1]> (X)'),
        "opencv@4.14",
        ["Gather", "Gather", "MaxPool"],
    ),
    "dilated maxima by products": (
        text("Y = MaxPool <kernel_shape = [3, 2], dilations = [2, 2], pads = [1, 0, 0, 1]> (X)"),
        "ncnn",
        ["MatMul", "MatMul", "MaxPool"],
    ),
    "maxima in a volume": (
        text("Y = MaxPool <kernel_shape = [2, 2, 3], strides = [2, 2, 2]> (X)", "float[1,2,6,7,8] X"),
        "mnn",
        ["Reshape", "MaxPool", "Reshape", "MaxPool", "Reshape"],
    ),
    "averages in a volume, of an open batch": (
        text("Y = AveragePool <kernel_shape = [2, 2, 3], strides = [2, 2, 2]> (X)", "float[N,3,6,7,8] X"),
        "mnn",
        ["MatMul", "MatMul", "MatMul", "Reshape", "Reshape"],
    ),
    "averages in a volume of one channel": (
        text("Y = AveragePool <kernel_shape = [2, 2, 3], strides = [2, 2, 2]> (X)", "float[1,1,6,7,8] X"),
        "mnn",
        ["MatMul", "MatMul", "MatMul", "Reshape", "Reshape"],
    ),
    "dilations that say nothing": (
        text("Y = AveragePool <kernel_shape = [2, 2], dilations = [1, 1], pads = [0, 0, 1, 0]> (X)", opset=19),
        "ncnn",
        ["AveragePool", "Mul", "Pad", "Pad"],
    ),
    "pads at the end that leave a rest": (
        text("Y = MaxPool <kernel_shape = [3, 3], pads = [0, 0, 2, 0], strides = [2, 2]> (X)"),
        "ncnn",
        ["MaxPool", "Pad"],
    ),
    "one tap with strides and pads": (
        text(
            "x = Relu (X) Y = Conv <kernel_shape = [1, 1], strides = [2, 2], pads = [1, 0, 1, 0]> (x, W)",
            weights="float[1,2,1,1] W = {3, -4}",
        ),
        "openvino",
        ["Conv", "Relu"],
    ),
    "one tap of bytes with strides and pads": (
        text(
            "c = ConvInteger <strides = [2, 2], pads = [1, 0, 1, 0]> (X, W, z) Y = Cast <to = 1> (c)",
            "uint8[1,2,6,7] X",
            weights="int8[1,2,1,1] W = {3, -4}, uint8 z = {121}",
        ),
        "openvino",
        ["Cast", "Cast", "Cast", "Conv", "Sub"],
    ),
    "several maps of each channel, transposed": (
        text("Y = ConvTranspose <group = 2> (X, W)", weights="float[2,2,1,1] W = {3, -4, 1, 2}"),
        "qnn",
        ["ConvTranspose"],
    ),
    "one tap with pads": (
        text("x = Relu (X) Y = Conv <pads = [1, 0, 1, 0]> (x, W)", weights="float[1,2,1,1] W = {3, -4}"),
        "opencv@5.0",
        ["Conv", "Pad", "Relu"],
    ),
    "transposed behind a Pad": (
        text(
            "x = Pad (X, p) Y = ConvTranspose <kernel_shape = [2, 2], strides = [2, 2], pads = [1, 0, 1, 0]> (x, W)",
            weights="int64[8] p = {0, 0, 1, 0, 0, 0, 0, 2}, float[2,1,2,2] W = {3, -4, 5, 6, 1, 2, 4, -1}",
        ),
        "openvino",
        ["ConvTranspose", "Pad", "Slice"],
    ),
    "padded behind alone": (
        text("Y = Pad (X, p, v)", weights="int64[8] p = {0, 0, 1, 0, 0, 0, 0, 2}, float v = {1.5}"),
        "qnn",
        ["Gather", "Pad"],
    ),
    "padded behind alone, by attributes": (
        text("Y = Pad <pads = [0, 0, 0, 0, 0, 1], value = 2.0> (X)", "float[1,2,8] X", opset=9),
        "qnn",
        ["Gather", "Pad"],
    ),
    "maxima of bytes": (
        text("Y = MaxPool <kernel_shape = [3, 2], strides = [1, 1]> (X)", "uint8[1,2,8,9] X").replace(
            "float Y", "uint8 Y"
        ),
        "opencv@5.0",
        ["Cast", "Cast", "MaxPool"],
    ),
    "a quantized convolution": (
        text(
            "q = QuantizeLinear (X, s, z) d = DequantizeLinear (q, s, z) w = DequantizeLinear (W, s, z) "
            "Y = Conv (d, w)",
            weights="int8[1,2,1,1] W = {3, -4}, float s = {0.1}, int8 z = {2}",
        ),
        "opencv@5.0",
        ["Conv", "DequantizeLinear", "DequantizeLinear", "Identity", "QuantizeLinear"],
    ),
    "transposed with more dilation than stride": (
        text(
            "Y = ConvTranspose <kernel_shape = [3, 3], dilations = [3, 3], pads = [2, 0, 0, 0], strides = [1, 1]> "
            "(X, W)",
            weights="float[2,1,3,3] W = {1, 2, 3, 4, 5, 7, 1, 0, 2, 3, 4, 1, 2, 9, 1, 2, 1, 3}",
        ),
        "ncnn",
        ["ConvTranspose", "Slice"],
    ),
    "strides left out": (text("Y = MaxPool <kernel_shape = [2, 3]> (X)"), "mnn", ["MaxPool"]),
    "dilated averages": (
        text("Y = AveragePool <kernel_shape = [3, 2], dilations = [2, 2], pads = [1, 1, 0, 0]> (X)", opset=19),
        "opencv@4.14",
        ["MatMul", "MatMul"],
    ),
    "averages that count the pads, in ceil mode": (
        text(
            "Y = AveragePool <kernel_shape = [3, 3], pads = [1, 1, 1, 1], strides = [2, 2], ceil_mode = 1, "
            "count_include_pad = 1> (X)",
            "float[1,2,8,8] X",
        ),
        "openvino",
        ["MatMul", "MatMul"],
    ),
    "a pool in ceil mode whose lengths are open": (
        text(
            "Y = MaxPool <kernel_shape = [3, 3], pads = [1, 1, 1, 0], strides = [2, 2], ceil_mode = 1> (X)",
            "float[1,2,H,W] X",
        ),
        "mnn",
        ["MaxPool"],
    ),
    "an average in ceil mode whose lengths are open": (
        text(
            "Y = AveragePool <kernel_shape = [3, 3], pads = [0, 1, 1, 0], strides = [2, 2], ceil_mode = 1> (X)",
            "float[1,2,H,W] X",
        ),
        "mnn",
        ["AveragePool"],
    ),
    "roots of sums": (
        text("Y = LpPool <kernel_shape = [3, 2], p = 2, strides = [1, 1]> (X)"),
        "opencv",
        ["AveragePool", "Mul", "Mul", "Sqrt"],
    ),
    "roots of sums of cubes": (
        text("Y = LpPool <kernel_shape = [3, 2], p = 3, strides = [1, 1]> (X)"),
        "opencv",
        ["Abs", "AveragePool", "Mul", "Pow", "Pow"],
    ),
    "transposed along one axis": (
        text(
            "Y = ConvTranspose <kernel_shape = [3], strides = [2], pads = [1, 0]> (X, W)",
            "float[1,2,8] X",
            "float[2,1,3] W = {1, 2, 3, 4, 5, 7}",
        ),
        "opencv@4.14",
        ["ConvTranspose", "Reshape", "Reshape", "Reshape", "Slice"],
    ),
    "transposed in a volume": (
        text(
            "Y = ConvTranspose <kernel_shape = [1, 1, 2], strides = [1, 1, 2], pads = [0, 0, 1, 0, 0, 0]> (X, W)",
            "float[1,2,3,3,4] X",
            "float[2,1,1,1,2] W = {1, 2, 3, 4}",
        ),
        "opencv@4.14",
        ["Conv", "MatMul", "MatMul", "MatMul", "Reshape", "Reshape"],
    ),
    "the bias of a volume": (
        text(
            "Y = ConvTranspose <kernel_shape = [1, 1, 2], strides = [1, 1, 2]> (X, W, B)",
            "float[1,2,3,3,4] X",
            "float[2,1,1,1,2] W = {1, 2, 3, 4}, float[1] B = {3}",
        ),
        "mnn",
        ["Add", "ConvTranspose", "Reshape"],
    ),
    "dilations in a volume": (
        text(
            "Y = Conv <kernel_shape = [1, 1, 2], strides = [1, 1, 1], dilations = [1, 1, 2]> (X, W)",
            "float[1,2,3,3,5] X",
            "float[1,2,1,1,2] W = {1, 2, 3, 4}",
        ),
        "mnn",
        ["Conv"],
    ),
    "wrapped around what is left": (
        text('Y = Pad <mode = "wrap"> (X, p)', weights="int64[8] p = {0, 0, -2, 0, 0, 0, 1, 2}", opset=19),
        "openvino",
        ["Gather", "Gather"],
    ),
    "cut where a Slice is not right": (
        text("Y = Pad (X, p)", weights="int64[8] p = {0, 0, -2, 0, 0, 0, 1, 2}"),
        "ncnn",
        ["MatMul", "Pad"],
    ),
    "reflected along one axis": (
        text('Y = Pad <mode = "reflect"> (X, p)', "float[1,2,8] X", "int64[6] p = {0, 0, 2, 0, 0, 1}"),
        "opencv@4.14",
        ["Gather"],
    ),
    "a value that is an attribute": (
        text("Y = Pad <pads = [0, 0, 1, 1, 0, 0, 1, 1], value = 2.0> (X)", opset=9),
        "mnn",
        ["Pad"],
    ),
    "resized with the channels last": (
        text('Y = Resize <mode = "linear"> (X, , , z)', "float[1,5,6,3] X", "int64[4] z = {1, 10, 9, 3}"),
        "ncnn",
        ["MatMul", "MatMul", "Reshape", "Reshape"],
    ),
    "resized by what was a scale of no exact ratio": (
        text('Y = Resize <mode = "nearest"> (X, s)', "float[1,4,13,6] X", "float[4] s = {1, 1, 1.5, 4}", opset=10),
        "tvm",
        ["Resize"],
    ),
    "cropped to one element": (
        text(
            'Y = Resize <coordinate_transformation_mode = "tf_crop_and_resize", mode = "linear"> (X, r, , z)',
            weights="float[8] r = {0, 0, 0.1, 0.2, 1, 1, 0.9, 0.8}, int64[4] z = {1, 2, 7, 1}",
        ),
        "tvm",
        ["MatMul", "MatMul"],
    ),
    "coordinates left out": (
        text('Y = Resize <mode = "linear"> (X, , , z)', weights="int64[4] z = {1, 2, 16, 18}"),
        "opencv@4.14",
        ["Resize"],
    ),
    "cropped beyond the image": (
        text(
            'Y = Resize <coordinate_transformation_mode = "tf_crop_and_resize", mode = "nearest"> (X, r, , z)',
            weights="float[8] r = {0, 0, 0.1, 0.2, 1, 1, 0.9, 1.3}, int64[4] z = {1, 2, 7, 5}",
        ),
        "openvino",
        ["MatMul", "MatMul"],
    ),
    "cropped beyond the image, and filled": (
        text(
            'Y = Resize <coordinate_transformation_mode = "tf_crop_and_resize", mode = "linear", '
            "extrapolation_value = 0.5> (X, r, , z)",
            weights="float[8] r = {0, 0, 0.1, -0.2, 1, 1, 0.9, 1.3}, int64[4] z = {1, 2, 7, 5}",
        ),
        "openvino",
        ["Add", "MatMul", "MatMul"],
    ),
    "positions that single precision rounds otherwise": (
        text(
            'Y = Resize <coordinate_transformation_mode = "asymmetric", mode = "nearest", '
            'nearest_mode = "round_prefer_ceil"> (X, , , z)',
            "float[1,2,13,8] X",
            weights="int64[4] z = {1, 2, 2, 16}",
        ),
        "openvino",
        ["Resize"],
    ),
    "corners that single precision misses": (
        text(
            'Y = Resize <coordinate_transformation_mode = "align_corners", mode = "nearest", nearest_mode = "ceil"> '
            "(X, , , z)",
            "float[1,2,15,8] X",
            weights="int64[4] z = {1, 2, 27, 8}",
        ),
        "openvino",
        ["Gather"],
    ),
    "a position on the verge of an element": (
        text(
            'Y = Resize <mode = "nearest", coordinate_transformation_mode = "asymmetric", nearest_mode = "floor"> '
            "(X, , s)",
            "float[1,2,15,15] X",
            weights="float[4] s = {1, 1, 1.7, 1.7}",
        ),
        "mnn",
        ["Gather", "Gather"],
    ),
    "a position on the verge of an element, in products": (
        text(
            'Y = Resize <mode = "nearest", coordinate_transformation_mode = "asymmetric", nearest_mode = "floor"> '
            "(X, , s)",
            "float[1,2,15,15] X",
            weights="float[4] s = {1, 1, 1.7, 1.7}",
        ),
        "ncnn",
        ["MatMul", "MatMul"],
    ),
    "one element between aligned corners": (
        text(
            'Y = Resize <coordinate_transformation_mode = "align_corners", mode = "linear"> (X, , , z)',
            "float[1,2,1,2] X",
            weights="int64[4] z = {1, 2, 1, 3}",
        ),
        "opencv@5.0.0.93",
        ["Resize"],
    ),
}


@pytest.fixture(autouse=True)
def whole_traits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let nothing be asked of an operator of a form that the form does not tell: it would count as not known."""
    asked = Fact.open_traits

    def open_traits(self: Fact, traits: Traits) -> tuple[str, ...] | None:
        found = asked(self, traits)
        missing = [name for name in found or () if name not in traits]
        # A constant that nodes compute is asked about with what is made of constants alone.
        is_whole = not traits or bool(traits.get("of-constants"))
        assert not missing or is_whole, f"{self.operators} of {sorted(traits)}: {missing} is not told"
        return found

    monkeypatch.setattr(Fact, "open_traits", open_traits)


@pytest.mark.sweep(4)
@pytest.mark.parametrize("name", CASES)
def test_a_form_that_the_target_takes_is_found_and_proven(name: str, tmp_path: Path) -> None:
    written, target, operators = CASES[name]
    model = onnx.parser.parse_model(written)
    source, result = tmp_path / "model.onnx", tmp_path / "result.onnx"
    onnx.save(model, source)
    found = [
        each
        for each in padfix.check(source, target=target).findings
        if each.rule in ("PF111", "PF112", "PF205", "PF306")
    ]
    assert found
    padfix.convert(source, result, target=target)
    assert not [each for each in padfix.check(result, target=target).findings if each.rule != "PF301"]
    converted = onnx.load(result)
    kept = [node.op_type for node in converted.graph.node if node.op_type != "Constant"]
    assert sorted(kept) == sorted(operators)
    assert all(np.isfinite(onnx.numpy_helper.to_array(each)).all() for each in converted.graph.initializer)


@pytest.mark.parametrize(
    ("target", "auto_pad", "left"),
    [
        ("tract", "SAME_UPPER", True),
        ("tract", "SAME_LOWER", True),
        ("opencv@4.14", "SAME_UPPER", True),
        ("opencv@5.0", "SAME_UPPER", False),  # which takes the Pad, and gets this wrong
        ("openvino", "SAME_UPPER", False),  # which takes both
    ],
)
def test_open_sizes_stay_as_written_only_where_the_target_takes_no_computed_pad(
    target: str, auto_pad: str, left: bool, tmp_path: Path
) -> None:
    pool = f'Y = MaxPool <kernel_shape = [4, 4], strides = [3, 3], auto_pad = "{auto_pad}"> (X)'
    source, result = tmp_path / "model.onnx", tmp_path / "result.onnx"
    onnx.save(onnx.parser.parse_model(text(pool, "float[1,2,h,w] X")), source)
    assert [each.rule for each in padfix.check(source, target=target, select=["PF1"]).findings] != [] or left
    padfix.convert(source, result, target=target)
    assert ("Pad" in {node.op_type for node in onnx.load(result).graph.node}) is not left
    assert padfix.check(result, target=target).findings == []


def test_pads_at_the_end_alone_stay_where_they_leave_no_rest(tmp_path: Path) -> None:
    """As Keras has them in front of every second block: a Pad there costs ncnn a copy of the whole map."""
    written = text("Y = MaxPool <kernel_shape = [3, 3], pads = [0, 0, 1, 0], strides = [2, 2]> (X)")
    onnx.save(onnx.parser.parse_model(written), tmp_path / "model.onnx")
    assert not padfix.check(tmp_path / "model.onnx", target="ncnn", select=["PF1"]).findings


def test_axes_of_a_pad_that_only_running_tells_are_amounts_that_it_tells(tmp_path: Path) -> None:
    written = text("Y = Pad (X, P, , A)", f"{SIZED}, int64[1] A", "int64[2] P = {1, 1}", opset=18)
    onnx.save(onnx.parser.parse_model(written), tmp_path / "model.onnx")
    (found,) = padfix.check(tmp_path / "model.onnx", target="tract").findings
    assert (found.rule, "data tells" in found.message) == ("PF112", True)
