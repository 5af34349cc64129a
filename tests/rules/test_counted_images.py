"""What is computed of the number of images, which ncnn takes one by one, and what it leaves out or wants for itself."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnx.parser
import pytest

import padfix
from padfix.errors import RefusedError
from tests.support.one_node import run

CONSTANTS = "<int64 first = {0}, int64 second = {1}, int64[1] zero = {0}, int64[1] one = {1}, int64[1] two = {2}, "
CONSTANTS += "int64[1] four = {4}, int64[1] last = {-1}, int64[1] far = {9}, float[1] w = {0.5}, float[1] v = {2}, "
CONSTANTS += "int64 both = {2}, int64[1] far64 = {9223372036854775807}>"


def written(folder: Path, nodes: str, shape: str) -> list[str]:
    """Return the operators of what is written for ncnn, after a comparison of what both models give."""
    graph = f"(float[{shape}] X) => (float Y) {CONSTANTS} {{ {nodes} }}"
    model = onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : 17]> g {graph}')
    onnx.save(model, folder / "model.onnx")
    padfix.convert(folder / "model.onnx", folder / "result.onnx", target="ncnn")
    assert not padfix.check(folder / "result.onnx", target="ncnn").findings
    data = np.random.default_rng(0).standard_normal([int(each) if each.isdigit() else 3 for each in shape.split(",")])
    result, feeds = onnx.load(folder / "result.onnx"), {"X": data.astype(np.float32)}
    np.testing.assert_allclose(run(result, feeds)[0], run(model, feeds)[0], atol=1e-6)
    return [node.op_type for node in result.graph.node]


COUNT = "s = Shape (X) n = Gather (s, {}) c = Cast <to = 1> (n) "


@pytest.mark.parametrize("op_type", ["Add", "Div", "Mul"])
def test_the_number_of_images_is_a_constant(op_type: str, tmp_path: Path) -> None:
    nodes = COUNT + f"Y = {op_type} (X, c)"
    assert written(tmp_path, nodes.format("first"), "2,6,3") == ["Constant", op_type]
    assert written(tmp_path, nodes.format("second"), "n,6,3")[-2:] == ["Cast", op_type]
    with pytest.raises(RefusedError, match="No equal form"):
        written(tmp_path, nodes.format("first"), "n,6,3")


@pytest.mark.parametrize(
    ("nodes", "shape", "gives"),
    [
        (COUNT.format("second") + "Y = Mul (X, c)", "n,1,3", ["Neg", "Neg"]),
        (COUNT.format("second") + "Y = Div (X, c)", "n,3,1", ["Shape", "Gather", "Cast", "Div"]),
        (COUNT.format("second") + "d = Sqrt (c) r = Relu (X) Y = Div (r, d)", "n,1,3", []),
        ("s = Shape (X) n = Gather (s, one) h = Div (n, two) Y = Slice (X, h, far64, one)", "n,1,1", ["Neg", "Neg"]),
        ("Y = Slice (X, zero, far64, one)", "n,l,3", ["Neg", "Neg"]),
    ],
)
def test_a_length_of_one_changes_nothing(nodes: str, shape: str, gives: list[str], tmp_path: Path) -> None:
    found = written(tmp_path, nodes, shape)
    assert found == gives if gives else "Neg" not in found


def test_bounds_of_a_slice_are_constants(tmp_path: Path) -> None:
    nodes = "s = Shape (X) n = Gather (s, zero) e = Sub (n, one) Y = Slice (X, zero, e, two)"
    assert written(tmp_path, nodes, "4,2,6") == ["Constant", "Slice"]
    with pytest.raises(RefusedError):
        written(tmp_path, nodes, "n,2,6")


@pytest.mark.parametrize(("axis", "listed"), [("last", 2), ("two", 2)])
def test_an_axis_is_listed_as_it_was_before(axis: str, listed: int, tmp_path: Path) -> None:
    nodes = f"a = Slice (X, zero, four, two) Y = Slice (a, one, far, {axis})"
    assert written(tmp_path, nodes, "1,2,6") == ["Slice", "Slice"]
    graph = onnx.load(tmp_path / "result.onnx").graph
    axes = next(each for each in graph.initializer if each.name == graph.node[1].input[3])
    assert onnx.numpy_helper.to_array(axes).tolist() == [listed]


def test_an_open_number_of_images_is_not_cut(tmp_path: Path) -> None:
    with pytest.raises(RefusedError, match="one by one"):
        written(tmp_path, "Y = Slice (X, zero, one, zero)", "n,3,12")


@pytest.mark.parametrize("shape", ["s = Shape (X)", "s = Constant <value_ints = [-1, 3, 4]> ()"])
def test_images_that_were_moved_are_not_put_first(shape: str, tmp_path: Path) -> None:
    with pytest.raises(RefusedError, match="puts their open number first"):
        written(tmp_path, f"t = Transpose <perm = [1, 0, 2]> (X) {shape} Y = Reshape (t, s)", "n,3,4")
    assert "Reshape" in written(tmp_path, f"t = Transpose <perm = [0, 2, 1]> (X) {shape} Y = Reshape (t, s)", "n,3,4")


@pytest.mark.parametrize(
    "layer", ["PRelu (a, w)", "BatchNormalization (a, v, w, v, v)", "InstanceNormalization (a, v, w)"]
)
def test_a_weight_of_one_element_is_no_number_of_a_sum_before(layer: str, tmp_path: Path) -> None:
    written(tmp_path, f"a = Add (X, w) Y = {layer}", "1,1,5,4")
    graph = onnx.load(tmp_path / "result.onnx").graph
    (total, weighed) = graph.node
    assert not set(total.input) & set(weighed.input[1:])


@pytest.mark.parametrize(
    "norm", ["s = ReduceMax <axes = [0]> (X) Y = Sub (X, s)", "Y = LpNormalization <axis = 0> (X)"]
)
def test_an_open_number_of_images_is_not_reduced(norm: str, tmp_path: Path) -> None:
    with pytest.raises(RefusedError):
        written(tmp_path, norm, "n,3")
    assert written(tmp_path, "Y = ReduceMax <axes = [1]> (X)", "n,3,2") == ["ReduceMax"]


@pytest.mark.parametrize("between", ["", "t1 = Identity (t)"])
def test_one_query_is_scaled_from_the_left(between: str, tmp_path: Path) -> None:
    number = ", ".join(["0.5"] * 16)
    text = f"""<ir_version: 8, opset_import: ["" : 17]> g (float[1,3,4] X) => (float Y)
    <float[4,4] w = {{{number}}}, float[4] b = {{1, 2, 3, 4}}, int64 z = {{0}}, int64[4] r = {{1, 1, 2, 2}},
     int64[4] rk = {{1, 3, 2, 2}}, float c = {{0.7}}> {{
        g = Gather <axis = 1> (X, z) q = Gemm <transB = 1> (g, w, b) v = Reshape (q, r)
        t = Transpose <perm = [0, 2, 1, 3]> (v) {between} k0 = Reshape (X, rk) k = Transpose <perm = [0, 2, 3, 1]> (k0)
        m = Mul ({"t1" if between else "t"}, c) s = MatMul (m, k) p = Softmax (s)
        o = Transpose <perm = [0, 2, 1, 3]> (k0) Y = MatMul (p, o) }}"""
    onnx.save(onnx.parser.parse_model(text), tmp_path / "model.onnx")
    padfix.convert(tmp_path / "model.onnx", tmp_path / "result.onnx", target="ncnn")
    (scaled,) = (node for node in onnx.load(tmp_path / "result.onnx").graph.node if node.op_type == "Mul")
    assert scaled.input[0] == "c"


def test_an_if_that_asks_for_the_number_of_images_is_decided(tmp_path: Path) -> None:
    body = (
        "<then_branch = t () => (float[2,3] A) { A = Relu (X) }, else_branch = e () => (float[2,3] B) { B = Neg (X) }>"
    )
    nodes = f"s = Shape (X) n = Gather (s, first) q = Equal (n, both) Y = If (q) {body}"
    assert written(tmp_path, nodes, "2,3") == ["Relu"]
    with pytest.raises(RefusedError, match="No equal form"):
        written(tmp_path, nodes.replace("[2,3]", "[n,3]"), "n,3")  # it is taken as one, and two are asked for


@pytest.mark.parametrize(
    ("nodes", "shape"),
    [
        ("a = Slice (X, zero, one, zero) Y = MaxPool <kernel_shape = [2]> (a)", "3,3,4"),
        ("a = ReduceMax <axes = [0]> (X) r = Relu (a) Y = MaxPool <kernel_shape = [2]> (r)", "3,3,4"),
        (
            'a = Einsum <equation = "abc->cba"> (X) s = ReduceMax <axes = [2]> (a) Y = GlobalMaxPool (s)',
            "3,3,1",
        ),
    ],
)
def test_one_image_of_several_is_left_to_no_layer(nodes: str, shape: str, tmp_path: Path) -> None:
    with pytest.raises(RefusedError, match="another number of images"):
        written(tmp_path, nodes, shape)


def test_one_image_that_a_number_picks_is_an_image(tmp_path: Path) -> None:
    nodes = "a = Gather (X, second) u = Unsqueeze (a, zero) Y = MaxPool <kernel_shape = [2]> (u)"
    assert written(tmp_path, nodes, "3,3,4") == ["Gather", "Unsqueeze", "MaxPool"]


@pytest.mark.parametrize("number", ["inf", "nan", "1e30"])
def test_a_number_that_no_images_are_of_is_asked_for_by_none(number: str, tmp_path: Path) -> None:
    text = """(float[n,6,3] X) => (float Y) <int64 first = {0}> {
        s = Shape (X) g = Gather (s, first) c = Cast <to = 1> (g) m = Min (c, far) Y = Mul (X, m) }"""
    model = onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : 17]> g {text}')
    model.graph.initializer.append(onnx.numpy_helper.from_array(np.array(float(number), np.float32), "far"))
    onnx.save(model, tmp_path / "model.onnx")
    findings = padfix.check(tmp_path / "model.onnx", target="ncnn").findings
    assert any("counts but one" in each.message for each in findings)


@pytest.mark.parametrize("number", [64, 1 << 62, (1 << 63) - 1])
def test_more_images_than_a_chain_is_worked_out_for_are_those_that_others_count(number: int, tmp_path: Path) -> None:
    text = f"""(float[n,6,3] X) => (float Y) <int64 first = {{0}}, int64 far = {{{number}}}> {{
        s = Shape (X) g = Gather (s, first) m = Min (g, far) c = Cast <to = 1> (m) Y = Mul (X, c) }}"""
    onnx.save(onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : 17]> g {text}'), tmp_path / "model.onnx")
    findings = padfix.check(tmp_path / "model.onnx", target="ncnn").findings
    assert any("counts but one" in each.message for each in findings)
