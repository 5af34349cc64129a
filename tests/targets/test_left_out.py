"""What MNN and ncnn take otherwise where an attribute is left out, or refuse though operators that they have say it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnx.parser
import onnxruntime
import pytest

import padfix

NORMS = {"A": "float[4] A = {1, 2, 3, 4}", "B": "float[4] B = {1, -1, 0.5, 2}"}
BATCH = "Y = BatchNormalization%s (X, A, B, B, A)"
INSTANCE = "Y = InstanceNormalization%s (X, A, B)"
OR_EQUAL = ["GreaterOrEqual", "GreaterOrEqual"]
TRUTHS = "bool[3] t = {1, 0, 1}"
LIST = "float[6] w = {1, 2, 3, 4, 5, 6}"


def converted(target: str, nodes: str, more: str, folder: Path, opset: int = 17) -> list[onnx.NodeProto]:
    """Return what is written for the target, which finds nothing more in it; it gives what it gave."""
    source, result = folder / "model.onnx", folder / "out.onnx"
    graph = f"g (float[1,4,5,6] X) => (Y) <{more}> {{ {nodes} }}"
    model = onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["" : {opset}]> {graph}')
    onnx.save(onnx.shape_inference.infer_shapes(model, data_prop=True), source)
    padfix.convert(source, result, target=target)
    assert not padfix.check(result, target=target).findings
    if opset < 24:  # ONNX Runtime has no newer operators
        random = np.random.default_rng(0)
        for scale in (1, 100):
            data = {"X": (random.integers(-3, 4, (1, 4, 5, 6)) * scale).astype(np.float32)}
            before, after = (
                onnxruntime.InferenceSession(each, providers=["CPUExecutionProvider"]).run(None, data)[0]
                for each in (source, result)
            )
            np.testing.assert_allclose(before, after, rtol=1e-5, atol=1e-6)
    return [each for each in onnx.load(result).graph.node if each.op_type != "Constant"]


@pytest.mark.parametrize("node", [BATCH, INSTANCE])
def test_an_epsilon_is_written_for_mnn(node: str, tmp_path: Path) -> None:
    (written,) = converted("mnn", node % "", ", ".join(NORMS.values()), tmp_path)
    assert [each.f for each in written.attribute if each.name == "epsilon"] == [pytest.approx(1e-5)]
    (same,) = converted("mnn", node % " <epsilon = 0.25>", ", ".join(NORMS.values()), tmp_path)
    assert [each.f for each in same.attribute if each.name == "epsilon"] == [0.25]


def test_the_axis_of_a_one_hot_is_written_for_mnn(tmp_path: Path) -> None:
    more = "int64 n = {3}, float[2] v = {0, 1}"
    nodes = converted("mnn", "p = ArgMax <axis = 1, keepdims = 0> (X) Y = OneHot (p, n, v)", more, tmp_path)
    assert [each.i for node in nodes if node.op_type == "OneHot" for each in node.attribute] == [-1]


@pytest.mark.parametrize(
    ("target", "nodes", "more", "expected"),
    [
        ("mnn", "Y = Softmax <axis = 1> (X)", "", ["ReduceMax", "Softmax", "Sub"]),
        ("mnn", "Y = Softmax <axis = -1> (X)", "", ["Softmax"]),
        ("mnn", "r = Flatten (X) Y = Softmax <axis = 1> (r)", "", ["Flatten", "Softmax"]),
        ("mnn", "Y = MatMul (X, w)", LIST, ["MatMul", "Squeeze"]),
        ("ncnn", "Y = Compress <axis = 1> (X, t)", TRUTHS, ["MatMul", "Reshape", "Reshape"]),
        ("mnn", "Y = ArgMax <axis = 1, select_last_index = 1> (X)", "", ["ArgMax", "Gather", "Sub"]),
        ("mnn", "Y = ArgMin <axis = -1, keepdims = 0, select_last_index = 1> (X)", "", ["ArgMin", "Gather", "Sub"]),
        ("mnn", "n = Neg (X) e = Equal (X, n) Y = Cast <to = 1> (e)", "", ["And", "Cast", *OR_EQUAL, "Neg"]),
        ("mnn", "e = IsNaN (X) Y = Cast <to = 1> (e)", "", ["Cast", "GreaterOrEqual", "Not"]),
        ("mnn", "e = IsInf (X) Y = Cast <to = 1> (e)", "", ["Abs", "Cast", "GreaterOrEqual"]),
        ("mnn", "e = IsInf <detect_positive = 0> (X) Y = Cast <to = 1> (e)", "", ["Cast", "GreaterOrEqual", "Neg"]),
        ("mnn", "Y = Shrink <lambd = 1.5, bias = 1.5> (X)", "", ["Clip", "Sub"]),
        ("ncnn", "Y = Shrink (X)", "", sorted([*["Mul", "Relu", "Sign", "Sub"] * 2, "Add", "Neg"])),
    ],
)
def test_a_form_is_written(target: str, nodes: str, more: str, expected: list[str], tmp_path: Path) -> None:
    assert sorted(each.op_type for each in converted(target, nodes, more, tmp_path)) == expected


@pytest.mark.parametrize(
    ("target", "told", "factors"), [("mnn", "", 1), ("mnn", "<alpha = 1.5>", 2), ("ncnn", "<alpha = 1.5>", 2)]
)
def test_a_swish_is_a_product(target: str, told: str, factors: int, tmp_path: Path) -> None:
    nodes = converted(target, f"Y = Swish {told} (X)", "", tmp_path, opset=24)
    assert sorted(each.op_type for each in nodes) == ["Mul"] * factors + ["Sigmoid"]


@pytest.mark.parametrize(
    ("equation", "shape", "expected"),
    [
        ("ij,jk", "float[3,4] X, float[4,5] Z", "ij,jk->ik"),
        ("...ij,...jk->...ik", "float[2,3,4] X, float[2,4,5] Z", "aij,ajk->aik"),
        ("...i,ij", "float[2,3,4] X, float[4,5] Z", "abi,ij->abj"),
        ("b i j, b j k -> b i k", "float[2,3,4] X, float[2,4,5] Z", None),
    ],
)
def test_an_equation_is_spelled_out_for_ncnn(equation: str, shape: str, expected: str | None, tmp_path: Path) -> None:
    graph = f'g ({shape}) => (Y) {{ Y = Einsum <equation = "{equation}"> (X, Z) }}'
    model = onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : 13]> {graph}')
    onnx.save(onnx.shape_inference.infer_shapes(model), tmp_path / "model.onnx")
    padfix.convert(tmp_path / "model.onnx", tmp_path / "out.onnx", target="ncnn")
    (node,) = onnx.load(tmp_path / "out.onnx").graph.node
    assert node.attribute[0].s.decode() == (expected or equation)


@pytest.mark.parametrize(
    ("split", "perm", "back", "is_right"),
    [
        ("{1, 2, 2, 2, 3, 4}", "0, 1, 4, 2, 5, 3", "{1, 2, 6, 8}", True),
        ("{1, 2, 2, 2, 3, 4}", "0, 3, 4, 1, 5, 2", "{1, 2, 6, 8}", False),
        ("{1, 4, 1, 2, 3, 4}", "0, 1, 4, 2, 5, 3", "{1, 4, 3, 8}", False),
        ("{1, 8, 1, 3, 2, 2}", "0, 1, 3, 5, 2, 4", "{1, 48, 1, 2}", False),
    ],
)
def test_shuffled_pixels_are_right_on_ncnn(split: str, perm: str, back: str, is_right: bool, tmp_path: Path) -> None:
    text = f"""<ir_version: 8, opset_import: ["" : 13]> g (float[1,8,3,4] X) => (float[a,b,c,d] Y)
     <int64[6] s = {split}, int64[4] b = {back}>
     {{ r = Reshape (X, s) t = Transpose <perm = [{perm}]> (r) Y = Reshape (t, b) }}"""
    onnx.save(onnx.parser.parse_model(text), tmp_path / "model.onnx")
    assert bool(padfix.check(tmp_path / "model.onnx", target="ncnn").findings) != is_right
