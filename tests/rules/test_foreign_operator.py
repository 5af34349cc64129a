"""PF308: operators of ONNX Runtime's own in those of ONNX, proven by running both."""

from __future__ import annotations

import math
from pathlib import Path

import onnx
import onnx.parser
import pytest

import padfix
from padfix.errors import RefusedError

HEAD = '<ir_version: 8, opset_import: ["" : 17, "com.microsoft" : 1]>\n'
IMAGE, ROWS = "float[1,2,7,8] X", "float[2,5,6] X"
WEIGHTS = f"float[3,2,3,3] W = {{{', '.join(str(each % 7 - 3) for each in range(54))}}}, float[3] b = {{1, 2, 0}}"
BYTES = "float s = {0.02}, uint8 z = {120}, float t = {0.03}, uint8 v = {99}"
SIX = "float[6] a = {1, 2, 3, 1, 2, 3}, float[6] b = {0, 1, 0, 1, 2, 1}"
PACKED = f"uint8[3,2,8] w = {{{', '.join(str(each * 37 % 256) for each in range(48))}}}"
MATRIX = f"float[4,6] M = {{{', '.join(str(each % 5 - 2) for each in range(24))}}}"


@pytest.mark.parametrize(
    ("data", "constants", "node", "target", "expected"),
    [
        (
            f"{IMAGE}, float[1,3,4,4] Z",
            WEIGHTS,
            'FusedConv <auto_pad = "SAME_LOWER", strides = [2, 2], activation = "Relu"> (X, W, b, Z)',
            "opencv",
            ["Add", "Conv", "Relu"],
        ),
        (
            IMAGE,
            WEIGHTS,
            'FusedConv <activation = "Clip", activation_params = [-1.0, 6.0]> (X, W)',
            "tract",
            ["Clip", "Conv"],
        ),
        (
            IMAGE,
            WEIGHTS,
            'FusedConv <activation = "HardSigmoid", activation_params = [0.3, 0.4]> (X, W, b)',
            "mnn",
            ["Conv", "HardSigmoid"],
        ),
        (ROWS, MATRIX, "FusedMatMul <transB = 1, alpha = 0.5> (X, M)", "tract", ["MatMul", "Mul", "Transpose"]),
        (ROWS, "", "Gelu (X)", "mnn", ["Add", "Erf", "Mul", "Mul", "Mul"]),
        (ROWS, "", "QuickGelu <alpha = 1.5> (X)", "opencv@5.0.0.93", ["Mul", "Mul", "Sigmoid"]),
        (ROWS, SIX, "FastGelu (X, b)", "mnn", ["Add", "Add", "Add", *["Mul"] * 6, "Tanh"]),
        (
            f"{ROWS}, float[2,5,6] S",
            SIX,
            "SkipLayerNormalization (X, S, a, b, a)",
            "mnn",
            ["Add", "Add", "LayerNormalization"],
        ),
        (
            "uint8[1,7,8,2] X",
            "",
            'NhwcMaxPool <kernel_shape = [3, 2], strides = [2, 2], auto_pad = "SAME_LOWER"> (X)',
            "tract",
            ["MaxPool", "Transpose", "Transpose"],
        ),
        (
            "uint8[1,2,7,8] X",
            BYTES,
            "QLinearAveragePool <kernel_shape = [3, 2], strides = [2, 2], pads = [1, 0, 0, 1]> (X, s, z, t, v)",
            "tract",
            ["AveragePool", "DequantizeLinear", "QuantizeLinear"],
        ),
        (
            "uint8[1,2,7,8] X",
            BYTES,
            "QLinearGlobalAveragePool (X, s, z, t, v)",
            "openvino",
            ["DequantizeLinear", "GlobalAveragePool", "QuantizeLinear"],
        ),
    ],
)
def test_it_becomes_what_it_is(
    data: str, constants: str, node: str, target: str, expected: list[str], tmp_path: Path
) -> None:
    kind = "uint8" if data.startswith("uint8") else "float"
    text = f"{HEAD}g ({data}) => ({kind} Y) <{constants}> {{ Y = com.microsoft.{node} }}"
    onnx.save(onnx.parser.parse_model(text), tmp_path / "before.onnx")
    found = padfix.check(tmp_path / "before.onnx", target=target).findings
    assert "PF308" in {each.rule for each in found}
    report = padfix.convert(tmp_path / "before.onnx", tmp_path / "after.onnx", target=target)
    assert report.verdict is not None
    assert report.verdict.equivalent
    after = onnx.load(tmp_path / "after.onnx").graph.node
    assert sorted(each.op_type for each in after) == expected
    assert {each.domain for each in after} == {""}


def proven(text: str, target: str, tmp_path: Path) -> list[str]:
    """Return what a model is written with, proven, and without a word against it."""
    onnx.save(onnx.parser.parse_model(text), tmp_path / "before.onnx")
    report = padfix.convert(tmp_path / "before.onnx", tmp_path / "after.onnx", target=target)
    assert report.verdict is not None
    assert report.verdict.equivalent
    return sorted(each.op_type for each in onnx.load(tmp_path / "after.onnx").graph.node)


def test_what_else_it_gives_is_not_left_out(tmp_path: Path) -> None:
    text = f"{HEAD}g ({ROWS}, float[2,5,6] S) => (float Y, float T) <{SIX}> {{"
    assert proven(text + " Y, , , T = com.microsoft.SkipLayerNormalization (X, S, a) }", "mnn", tmp_path) == [
        "Add",
        "LayerNormalization",
    ]
    onnx.save(
        onnx.parser.parse_model(text + " Y, T = com.microsoft.SkipLayerNormalization (X, S, a) }"),
        tmp_path / "before.onnx",
    )
    with pytest.raises(RefusedError, match="outputs of it are read that nothing else gives"):
        padfix.convert(tmp_path / "before.onnx", tmp_path / "after.onnx", target="mnn")


@pytest.mark.parametrize(("mask", "read"), [("int32[N,L] M", "M"), ("int32[N,L] M", "k"), ("int32[N,M,L] M", "M")])
def test_the_layers_of_a_transformer_of_open_lengths(mask: str, read: str, tmp_path: Path) -> None:
    """A mask of words, how many there are of each text, and one of pairs of words."""
    counted = "M" if read == "k" else ""
    text = f"""{HEAD}g (int32[N,L] I, int32[N,L] S, {mask}) => (float Y) <{SIX}, {numbers("we", 9, 6)},
        {numbers("pe", 10, 6)}, {numbers("se", 2, 6)}, {numbers("w", 6, 18)}> {{
        e, k = com.microsoft.EmbedLayerNormalization (I, S, we, pe, se, a, b, {counted})
        h = com.microsoft.Attention <num_heads = 2> (e, w, , {read})
        Y = com.microsoft.SkipLayerNormalization (h, e, a) }}""".replace("b, )", "b)")
    written = proven(text, "mnn", tmp_path)
    assert {"Softmax", "LayerNormalization", "Where"} < set(written)
    assert ("Range" in written) == (read == "k")


def numbers(name: str, *lengths: int) -> str:
    """Return a matrix as a constant."""
    values = ", ".join(str((each * 7 % 11 - 5) / 4) for each in range(math.prod(lengths)))
    return f"float[{','.join(map(str, lengths))}] {name} = {{{values}}}"


@pytest.mark.parametrize(
    ("data", "constants", "node", "target", "kept"),
    [
        (
            "float[2,5,6] X, float[2,4,6] K, float[2,4,6] V",
            numbers("b", 18),
            "MultiHeadAttention <num_heads = 3> (X, K, V, b)",
            "opencv",
            "Softmax",
        ),
        (ROWS, numbers("w", 6, 18), "Attention <num_heads = 2, unidirectional = 1> (X, w)", "onnx2tf", "Softmax"),
        (
            "float[2,5,8] X, int64[2,5] P",
            f"{numbers('c', 7, 2)}, {numbers('s', 7, 2)}",
            "RotaryEmbedding (X, P, c, s)",
            "tract",
            "Sub",
        ),
        (
            "float[2,2,5,6] X, int64[1] P",
            f"{numbers('c', 9, 2)}, {numbers('s', 9, 2)}",
            "RotaryEmbedding <interleaved = 1, rotary_embedding_dim = 4, num_heads = 2> (X, P, c, s)",
            "mnn",
            "Sub",
        ),
        (ROWS, SIX, "SkipSimplifiedLayerNormalization (X, X, a)", "tvm", "ReduceMean"),
        (
            "float[2,5,20] X",
            f"{PACKED}, float[6] s = {{0.1, 0.2, 0.3, 0.2, 0.1, 0.4}}, uint8[3] z = {{104, 23, 250}}",
            "MatMulNBits <K = 20, N = 3, bits = 4, block_size = 16> (X, w, s, z)",
            "openvino",
            "MatMul",
        ),
        (
            "float[4,6] X",
            f"{MATRIX}, float[4] c = {{1, 0, 2, 1}}",
            'FusedGemm <transB = 1, alpha = 0.5, activation = "LeakyRelu", activation_alpha = 0.3> (X, M, c)',
            "ncnn",
            "LeakyRelu",
        ),
        (
            "uint8[3,2] X",
            f"{BYTES}, int8[4,2] w = {{1, -2, 3, 4, 5, -6, 7, 8}}, int8 n = {{0}}, int32[4] c = {{9, 8, 7, 6}}",
            "QGemm <transB = 1> (X, s, z, w, t, n, c, t, v)",
            "tract",
            "Gemm",
        ),
        (
            "float[3,2] X",
            f"{BYTES}, int8[2,4] w = {{1, -2, 3, 4, 5, -6, 7, 8}}, float[4] c = {{9, 8, 7, 6}}",
            "DynamicQuantizeMatMul (X, w, s, , c)",
            "openvino",
            "MatMulInteger",
        ),
        ("float[4,6] X", MATRIX, 'CDist <metric = "euclidean"> (X, M)', "mnn", "Sqrt"),
        ("float[4,6] X", "int32 n = {1}", "ExpandDims (X, n)", "tract", "Unsqueeze"),
        ("float[4,6] X", "int64[4] p = {0, 1, 1, 0}", "Pad (X, p)", "tract", "Pad"),
    ],
)
def test_layers_and_products_in_operators_of_onnx(
    data: str, constants: str, node: str, target: str, kept: str, tmp_path: Path
) -> None:
    kind = "uint8" if node.startswith("QGemm") else "float"
    assert kept in proven(
        f"{HEAD}g ({data}) => ({kind} Y) <{constants}> {{ Y = com.microsoft.{node} }}", target, tmp_path
    )
    assert {each.domain for each in onnx.load(tmp_path / "after.onnx").graph.node} == {""}


@pytest.mark.parametrize(
    ("data", "constants", "node", "reason"),
    [
        (ROWS, numbers("w", 6, 18), "Attention <num_heads = 2, do_rotary = 1> (X, w)", "what came before, or turns"),
        ("float[N,L,6] X", numbers("w", 6, 18), "Attention <num_heads = 2, unidirectional = 1> (X, w)", "of words"),
        ("float[4,6] X", MATRIX, 'FusedGemm <transB = 1, activation = "Sine"> (X, M)', "no activation 'Sine'"),
        ("float[4,6] X", MATRIX, 'CDist <metric = "cosine"> (X, M)', "no distance 'cosine'"),
        (
            "float[2,16] X, uint8[3,1,8] w",
            "float[3] s = {1, 2, 3}",
            "MatMulNBits <K = 16, N = 3, bits = 4, block_size = 16> (X, w, s)",
            "weights are no constants",
        ),
        ("float[4,6] X", "", "SampleOp (X)", "No equal form"),
    ],
)
def test_what_is_none_of_these_is_declined(data: str, constants: str, node: str, reason: str, tmp_path: Path) -> None:
    text = f"{HEAD}g ({data}) => (float Y) <{constants}> {{ Y = com.microsoft.{node} }}"
    onnx.save(onnx.parser.parse_model(text), tmp_path / "before.onnx")
    with pytest.raises(RefusedError, match=reason):
        padfix.convert(tmp_path / "before.onnx", tmp_path / "after.onnx", target="mnn")


@pytest.mark.parametrize("node", ["QLinearGlobalAveragePool (X, s, z, t, v)", "QLinearAdd (X, s, z, X, s, z, t, v)"])
def test_bytes_are_floats_that_are_rounded_where_a_target_takes_no_quantizers(node: str, tmp_path: Path) -> None:
    text = f"{HEAD}g (uint8[1,2,7,8] X) => (uint8[A,B,C,D] Y) <{BYTES}> {{ Y = com.microsoft.{node} }}"
    onnx.save(onnx.parser.parse_model(text), tmp_path / "before.onnx")
    padfix.convert(tmp_path / "before.onnx", tmp_path / "after.onnx", target="mnn")
    assert not padfix.check(tmp_path / "after.onnx", target="mnn").findings
    nodes = {each.op_type for each in onnx.load(tmp_path / "after.onnx").graph.node}
    assert not [each for each in nodes if "Linear" in each]
