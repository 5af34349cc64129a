"""Numbers that are computed, lists of one element, and norms that something is divided by, for OpenCV."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import parser
from onnx.reference import ReferenceEvaluator

import padfix
from padfix.errors import RefusedError
from padfix.kernels.reference_ops import SPEC_OPS

NORM = "(float[%s] X) => (float[%s] Y) { n = ReduceL2 <%s> (X) e = Exp (X) Y = Div (%s, n) }"
AS_MATRIX = ["Reshape", "ReduceMax"]


@pytest.mark.parametrize("operator", ["Relu", "Softsign", "Swish", "Mish", "Acosh"])
@pytest.mark.parametrize("readers", [1, 2])
def test_a_number_that_is_computed_is_a_matrix_before_an_activation(
    operator: str, readers: int, tmp_path: Path
) -> None:
    body = f"s = ReduceSum <keepdims = 0> (X) Y = {operator} (s) {'Z = Neg (s)' if readers > 1 else ''}"
    given = "(float[3,4] X) => (float Y, float Z)" if readers > 1 else "(float[3,4] X) => (float Y)"
    expected = ["ReduceSum", "Reshape", operator, *AS_MATRIX]
    written = operators(f"{given} {{ {body} }}", tmp_path, opset=24 if operator == "Swish" else 18)
    assert written == expected + (["Reshape", "Neg", *AS_MATRIX] if readers > 1 else [])


@pytest.mark.parametrize("given", ["X", "r"])
def test_a_number_of_the_caller_stays(given: str, tmp_path: Path) -> None:
    body = "r = Relu (X) Y = Neg (r)" if given == "r" else "Y = Relu (X)"
    assert "Reshape" not in operators(f"(float X) => (float Y) {{ {body} }}", tmp_path)


def test_a_list_of_one_element_is_a_matrix_before_an_activation(tmp_path: Path) -> None:
    graph = "(float[1,4] X) => (float[1] Y) { s = ReduceMax <axes = [1], keepdims = 0> (X) Y = Relu (s) }"
    assert operators(graph, tmp_path) == ["ReduceMax", "Reshape", "Relu", "Reshape"]


@pytest.mark.parametrize(
    ("shape", "axes", "dividend", "older", "newer"),
    [
        ("3,4", "axes = [1]", "X", False, False),
        ("3,4", "axes = [-1]", "X", False, False),
        ("3,4", "axes = [1]", "e", True, True),
        ("3,4", "axes = [0]", "X", True, False),
        ("2,3,4", "axes = [-1]", "X", True, False),
        ("2,3,4", "axes = [1, 2]", "X", True, True),
        ("2,3,4", "keepdims = 1", "X", True, True),
        ("3,4", "keepdims = 0", "X", True, True),
        ("4,4", "axes = [1], keepdims = 0", "X", True, True),
    ],
)
def test_an_identity_stands_before_another_norm(
    shape: str, axes: str, dividend: str, older: bool, newer: bool, tmp_path: Path
) -> None:
    graph = NORM % (shape, shape, axes, dividend)
    found = {version: written_apart(graph, version, tmp_path) for version in ("4.14.0", "5.0.0.93")}
    assert found == {"4.14.0": older, "5.0.0.93": newer}


@pytest.mark.parametrize("shape", ["5", "-1", "0"])
def test_a_list_that_a_reshape_leaves_as_it_is_is_a_row_for_its_places(shape: str, tmp_path: Path) -> None:
    body = f"<int64[1] s = {{{shape}}}> {{ r = Reshape (X, s) Y = ArgMax <axis = 0, keepdims = 0> (r) }}"
    written = operators(f"(float[5] X) => (int64 Y) {body}", tmp_path)
    assert written == ["Reshape", "Reshape", "ArgMax", "Cast", "ReduceMax", "Cast"]


@pytest.mark.parametrize("length", [4, 15])
def test_a_list_is_tried_in_its_length(length: int, tmp_path: Path) -> None:
    body = "<float n = {2}> { r = ReduceSum <keepdims = 0> (X, k) m = Mul (r, n) Y = Relu (m) }"
    graph = f"(float[{length},2] X) => (float[{length}] Y) <int64[1] k = {{1}}, {body[1:]}"
    assert operators(graph, tmp_path).count("Reshape") == 4


def test_the_dividend_is_looked_at_by_opset_18_alone_without_axes(tmp_path: Path) -> None:
    graph = "(float[3,4] X) => (float[3,4] Y) <int64[1] a = {0}> { n = ReduceL2 (X%s) Y = Div (X, n) }"
    assert operators(graph % ", a", tmp_path, opset=18) == ["ReduceL2", "Div"]
    assert operators(graph % "", tmp_path, opset=18) == ["ReduceL2", "Identity", "Div"]


def test_the_softsign_of_a_number_is_one() -> None:
    model = parser.parse_model('<ir_version: 8, opset_import: ["": 18]> g (float X) => (float Y) { Y = Softsign (X) }')
    (got,) = ReferenceEvaluator(model, new_ops=SPEC_OPS).run(None, {"X": np.float32(-3)})
    assert got.shape == () and got.dtype == np.float32 and got == np.float32(-0.75)


def written_apart(graph: str, version: str, folder: Path) -> bool:
    written = operators(graph, folder, target=f"opencv@{version}")
    before = written[written.index("Div") - 1]
    assert before in ("Identity", "Reshape", "Exp", "ReduceL2")
    return before in ("Identity", "Reshape")


def operators(graph: str, folder: Path, opset: int = 13, target: str = "opencv@4.14.0") -> list[str]:
    model = parser.parse_model(f'<ir_version: 8, opset_import: ["" : {opset}]> g {graph}')
    onnx.save(model, folder / "model.onnx")
    padfix.convert(folder / "model.onnx", folder / "result.onnx", target=target)
    assert not padfix.check(folder / "result.onnx", target=target).findings
    return [node.op_type for node in onnx.load(folder / "result.onnx").graph.node]


def test_a_reshape_is_tried_on_data_that_fill_what_it_is_told(tmp_path: Path) -> None:
    """The places behind a strided convolution are counted from the lengths before it, as PyTorch's exporter does."""
    graph = """(float[1,4,H,W] X) => (float[1,2,2,L] Y)
    <float[4,1,1,1] w = {1, 2, 3, 4}, int64[3] known = {1, 2, 2}, int64 one = {1}, int64 half = {2}>
    { c = Conv <group = 4, strides = [2, 2]> (X, w)
      h = Shape <start = 2, end = 3> (X) h1 = Sub (h, one) h2 = Div (h1, half) h3 = Add (h2, one)
      v = Shape <start = 3, end = 4> (X) v1 = Sub (v, one) v2 = Div (v1, half) v3 = Add (v2, one)
      l = Mul (h3, v3) s = Concat <axis = 0> (known, l) Y = Reshape <allowzero = 1> (c, s) }"""
    assert operators(graph, tmp_path, opset=18) == ["Conv", "Reshape"]


@pytest.mark.parametrize(
    ("given", "measured", "is_kept"),
    [
        ("float[N,5,3] X", "X", True),
        ("float[N,5,3] X, float[N,2] Z", "X", True),
        ("float[N,5,3] X, float[N,2] Z", "Z", False),
        ("float[N,5,3] X, float[M,2] Z", "X", True),
    ],
)
def test_copies_to_lengths_that_are_there_already_are_the_data(
    given: str, measured: str, is_kept: bool, tmp_path: Path
) -> None:
    """PyTorch lays the variance of an open batch out so, which its own lengths tell; other inputs may be shorter."""
    more = "R = Relu (Z)" if "Z" in given else ""
    graph = f"""({given}) => (float Y{", float R" if more else ""}) <int64[2] rest = {{1, 3}}, int64[1] k = {{1}}>
    {{ m = ReduceMean (X, k) n = Shape <start = 0, end = 1> ({measured}) s = Concat <axis = 0> (n, rest)
      e = Expand (m, s) Y = Sub (X, e) {more} }}"""
    if is_kept:
        assert operators(graph, tmp_path, opset=18)[:3] == ["ReduceMean", "Identity", "Sub"]
    else:
        with pytest.raises(RefusedError, match="which may differ"):
            operators(graph, tmp_path, opset=18)
