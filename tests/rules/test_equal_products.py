"""Products and pools in place of what targets do not take: Gemm, Softsign, ThresholdedRelu, extremes; and grids."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnx.parser
import pytest
from onnx import helper, numpy_helper

import padfix
from padfix.errors import RefusedError

PLANES = "(float[1,3,4,5] X) => (float[1,A,B,C] Y)"
GRID = "int64[5] s = {1, 2, 3, 4, 5}, int64[3] t = {1, -1, 3}"


def saved(folder: Path, model: onnx.ModelProto | str, opset: int = 18) -> Path:
    parsed = (
        onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : {opset}]> g {model}')
        if isinstance(model, str)
        else model
    )
    onnx.save(parsed, folder / "model.onnx")
    return folder / "model.onnx"


def converted(folder: Path, model: onnx.ModelProto | str, target: str = "ncnn", opset: int = 18) -> list[str]:
    """Return the operators of the converted model, which has no finding left."""
    padfix.convert(saved(folder, model, opset), folder / "result.onnx", target=target)
    assert not padfix.check(folder / "result.onnx", target=target).findings
    return [each.op_type for each in onnx.load(folder / "result.onnx").graph.node if each.op_type != "Constant"]


@pytest.mark.parametrize(
    ("node", "expected"),
    [
        ("Y = ReduceMax (X, last)", ["Reshape", "MaxPool", "Reshape"]),
        ("Y = ReduceMax (X, planes)", ["Reshape", "MaxPool", "Reshape"]),
        ("Y = ReduceMin (X, apart)", ["Neg", "Reshape", "MaxPool", "Reshape", "MaxPool", "Neg", "Reshape"]),
    ],
)
def test_an_extreme_is_a_pool(node: str, expected: list[str], tmp_path: Path) -> None:
    constants = "int64[1] last = {-1}, int64[2] planes = {2, 3}, int64[2] apart = {1, 3}"
    assert converted(tmp_path, f"{PLANES} <{constants}> {{ {node} }}") == expected


def test_an_extreme_that_takes_out_axes_is_a_pool(tmp_path: Path) -> None:
    text = "(float[1,3,4] X) => (float[1,A] Y) <int64[1] a = {1}> { n = Neg (X) Y = ReduceMax <keepdims = 0> (n, a) }"
    assert converted(tmp_path, text) == ["Neg", "Reshape", "MaxPool", "Reshape"]


def test_an_extreme_of_open_lengths_is_refused(tmp_path: Path) -> None:
    text = "(float[1,3,M,N] X) => (float[1,3,M,1] Y) <int64[1] a = {3}> { Y = ReduceMax (X, a) }"
    with pytest.raises(padfix.PadfixError, match="it needs the lengths of its input"):
        converted(tmp_path, text)


@pytest.mark.parametrize("given", [{"alpha": 0.5}, {"beta": 2.0}, {}, {"alpha": 0.5, "transB": 1}])
def test_a_gemm_of_long_weights_has_them_as_the_target_reads_them(given: dict[str, float], tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    weights = random.standard_normal((30, 40) if given.get("transB") else (40, 30)).astype(np.float32)
    graph = helper.make_graph(
        [helper.make_node("Gemm", ["X", "W", "b"], ["Y"], **given)],
        "g",
        [helper.make_tensor_value_info("X", 1, [1, 40])],
        [helper.make_tensor_value_info("Y", 1, [1, 30])],
        [
            numpy_helper.from_array(weights, "W"),
            numpy_helper.from_array(random.standard_normal(30).astype(np.float32), "b"),
        ],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    assert converted(tmp_path, model) == ["Gemm"]
    (gemm,) = onnx.load(tmp_path / "result.onnx").graph.node
    told = {each.name: helper.get_attribute_value(each) for each in gemm.attribute}
    assert told.get("alpha", 1) == told.get("beta", 1) == told["transB"] == 1
    assert converted(tmp_path, model, "portable") == ["Gemm"]


@pytest.mark.parametrize(
    ("bias", "target", "written"),
    [
        ("[3]", "opencv@4.14", ["MatMul", "Reshape", "Add"]),
        ("[1,3]", "opencv@4.14", ["MatMul", "Add"]),
        ("[2,1]", "opencv@4.14", ["MatMul", "Add"]),
        ("[2,3]", "opencv@4.14", ["Gemm"]),
        ("[3]", "ncnn", ["MatMul", "Add"]),
    ],
)
def test_a_bias_that_is_no_constant_is_added_behind_the_product(
    bias: str, target: str, written: list[str], tmp_path: Path
) -> None:
    weights = "float[4,3] w = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}"
    text = f"(float[2,4] X, float{bias} c) => (float[2,3] Y) <{weights}> {{ Y = Gemm (X, w, c) }}"
    assert converted(tmp_path, text, target) == written


@pytest.mark.parametrize("target", ["opencv@4.14", "ncnn"])
def test_a_bias_that_counts_for_nothing_goes(target: str, tmp_path: Path) -> None:
    constants = "float[4,3] w = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}, float[2,1] c = {5, 7}"
    text = f"(float[2,4] X) => (float[2,3] Y) <{constants}> {{ Y = Gemm <beta = 0.0> (X, w, c) }}"
    assert converted(tmp_path, text, target) == ["Gemm"]


def test_a_layer_norm_of_a_long_scale_gets_a_bias(tmp_path: Path) -> None:
    scale = numpy_helper.from_array(np.linspace(-1, 2, 600, dtype=np.float32), "s")
    graph = helper.make_graph(
        [helper.make_node("LayerNormalization", ["X", "s"], ["Y"])],
        "g",
        [helper.make_tensor_value_info("X", 1, [1, 4, 600])],
        [helper.make_tensor_value_info("Y", 1, [1, 4, 600])],
        [scale],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    assert converted(tmp_path, model) == ["LayerNormalization"]


@pytest.mark.parametrize(
    ("node", "expected"),
    [
        ("Y = Softsign (X)", ["Abs", "Add", "Reciprocal", "Mul"]),
        ("Y = ThresholdedRelu <alpha = 0.5> (X)", ["Sub", "Relu", "Sign", "Mul"]),
    ],
)
def test_activations_are_written_out(node: str, expected: list[str], tmp_path: Path) -> None:
    assert converted(tmp_path, f"{PLANES} {{ {node} }}") == expected


def test_a_grid_behind_a_layer_of_images_stays(tmp_path: Path) -> None:
    grid = "g = Reshape (%s, s) u = Transpose <perm = [0, 1, 3, 4, 2]> (g) Y = Reshape (u, t) }"
    text = f"(float[1,6,4,5] X) => (float[1,N,3] Y) <{GRID}> {{ p = GlobalMaxPool (X) m = Mul (X, p) {grid % 'm'}"
    assert not padfix.check(saved(tmp_path, text), target="ncnn").findings
    text = f"(float[1,6,4,5] X) => (float[1,N,3] Y) <{GRID}> {{ m = Neg (X) {grid % 'm'}"
    assert {each.op_type for each in padfix.check(saved(tmp_path, text), target="ncnn").findings} == {
        "Reshape",
        "Transpose",
    }


def test_a_row_of_ones_has_as_many_axes_as_the_data(tmp_path: Path) -> None:
    text = "(float[1,3,4,5] X) => (float[1,3,1,5] Y) <int64[1] a = {2}> { Y = ReduceMean (X, a) }"
    assert converted(tmp_path, text) == ["MatMul"]
    stored = onnx.load(tmp_path / "result.onnx").graph.initializer
    assert [1, 1, 1, 4] in [list(each.dims) for each in stored]


def test_a_product_of_data_with_themselves_is_declined_where_both_are_moved_as_one(tmp_path: Path) -> None:
    source = tmp_path / "model.onnx"
    graph = "g (float[2,3,2,2] X) => (float[2,3,2,2] Y) { p = Relu (X) Y = MatMul (p, p) }"
    onnx.save(onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : 13]> {graph}'), source)
    with pytest.raises(RefusedError, match="where they are the same"):
        padfix.convert(source, tmp_path / "result.onnx", target="onnx2tf")
