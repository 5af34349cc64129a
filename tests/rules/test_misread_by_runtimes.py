"""Nine taps in a row (three by three to OpenCV 5), sums with wide constants behind a product, and pieces untold."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np
import onnx
import onnx.parser
import pytest
from onnx import numpy_helper

import padfix

OPENCV = "opencv@5.0.0.93"


def saved(path: Path, text: str, **weights: tuple[int, ...]) -> Path:
    model = onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : 17]> main {text}')
    for name, shape in weights.items():
        values = np.random.default_rng(9).standard_normal(shape).astype(np.float32)
        model.graph.initializer.append(numpy_helper.from_array(values, name))
    onnx.save(model, path)
    return path


def converted(path: Path, target: str) -> onnx.ModelProto:
    report = padfix.convert(path, path.with_name("out.onnx"), target=target)
    assert report.verdict is not None and report.verdict.equivalent
    if importlib.util.find_spec("cv2") is not None and target == OPENCV:
        assert padfix.verify_on(path.with_name("out.onnx"), "opencv").agrees
    return onnx.load(path.with_name("out.onnx"))


@pytest.mark.parametrize("strides", [1, 3])
@pytest.mark.parametrize("channels", [2, 16])
def test_a_line_of_any_weights_gets_a_further_tap_of_zero(channels: int, strides: int, tmp_path: Path) -> None:
    conv = f"Conv <pads = [4, 4], strides = [{strides}]>"
    text = f"(float[1,{channels},40] X) => (float[1,12,N] Y) {{ Y = {conv} (X, W) }}"
    result = converted(saved(tmp_path / "m.onnx", text, W=(12, channels, 9)), OPENCV)
    (convolution,) = (node for node in result.graph.node if node.op_type == "Conv")
    told = {each.name: list(each.ints) for each in convolution.attribute}
    assert (told["kernel_shape"], told["pads"]) == ([10], [4, 5])


@pytest.mark.parametrize(("kernel", "dilations"), [((1, 9), [2, 1]), ((9, 1), [1, 2])])
def test_a_plane_is_dilated_where_it_has_one_tap(kernel: tuple[int, int], dilations: list[int], tmp_path: Path) -> None:
    text = "(float[1,4,20,21] X) => (float[1,6,N,M] Y) { Y = Conv (X, W) }"
    result = converted(saved(tmp_path / "m.onnx", text, W=(6, 4, *kernel)), OPENCV)
    assert {each.name: list(each.ints) for each in result.graph.node[0].attribute}["dilations"] == dilations


def test_all_versions_of_opencv_want_a_plane_for_a_line(tmp_path: Path) -> None:
    text = "(float[1,2,40] X) => (float[1,12,40] Y) { Y = Conv <pads = [4, 4]> (X, W) }"
    result = converted(saved(tmp_path / "m.onnx", text, W=(12, 2, 9)), "opencv")
    (convolution,) = (node for node in result.graph.node if node.op_type == "Conv")
    assert {each.name: list(each.ints) for each in convolution.attribute}["dilations"] == [2, 1]


@pytest.mark.parametrize(
    ("attributes", "shape", "channels"),
    [("dilations = [2]", (6, 4, 9), 4), ("group = 4", (4, 1, 9), 4), ("strides = [1]", (6, 4, 8), 4)],
)
def test_other_rows_stay(attributes: str, shape: tuple[int, ...], channels: int, tmp_path: Path) -> None:
    text = f"(float[1,{channels},40] X) => (float[1,{shape[0]},N] Y) {{ Y = Conv <{attributes}> (X, W) }}"
    assert not padfix.check(saved(tmp_path / "m.onnx", text, W=shape), target=OPENCV, select=["PF111"]).findings


@pytest.mark.parametrize(
    ("constant", "expected"), [((1, 1, 5), (5,)), ((1, 1, 1), (1,)), ((1, 1, 1, 5), None), ((1, 4, 5), (1, 4, 5))]
)
def test_a_wide_constant_behind_a_product_is_narrowed(
    constant: tuple[int, ...], expected: tuple[int, ...] | None, tmp_path: Path
) -> None:
    text = "(float[1,4,6] X) => (float Y) { product = MatMul (X, W) Y = Add (product, B) }"
    path = saved(tmp_path / "m.onnx", text, W=(6, 5), B=constant)
    model = onnx.load(path)
    model.graph.output[0].type.tensor_type.ClearField("shape")
    onnx.save(model, path)
    result = converted(path, OPENCV).graph
    assert [node.op_type for node in result.node if node.op_type == "Identity"] == ["Identity"] * 2 * (expected is None)
    added = next(node for node in result.node if node.op_type == "Add").input[1]
    if expected is not None:
        assert [tuple(each.dims) for each in result.initializer if each.name == added] == [expected]


@pytest.mark.parametrize("opset", [11, 13, 17])
def test_a_split_tells_its_lengths_for_ncnn(opset: int, tmp_path: Path) -> None:
    model = onnx.parser.parse_model(f"""<ir_version: 8, opset_import: ["" : {opset}]>
        main (float[1,12,40] X) => (float[1,6,40] Y) {{ a, b = Split <axis = 1> (X) Y = Sub (a, b) }}""")
    onnx.save(model, tmp_path / "m.onnx")
    (found,) = padfix.check(tmp_path / "m.onnx", target="ncnn").findings
    assert found.op_type == "Split"
    split = converted(tmp_path / "m.onnx", "ncnn").graph.node[0]
    assert (len(split.input), [each.name for each in split.attribute]) == (
        (1, ["axis", "split"]) if opset < 13 else (2, ["axis"])
    )


@pytest.mark.parametrize("axes", [("2", "6"), ("N", "6"), ("2", "1")])
def test_opencv_multiplies_by_repeated_constants_from_the_left(axes: tuple[str, str], tmp_path: Path) -> None:
    text = f"(float[{axes[0]},{axes[1]},4,3] X) => (float[A,B,4,5] Y) {{ Y = MatMul (X, W) }}"
    result = converted(saved(tmp_path / "m.onnx", text, W=(6, 3, 5)), "opencv")
    assert [each.op_type for each in result.graph.node] == ["Transpose", "MatMul", "Transpose"]


@pytest.mark.parametrize(("images", "matrices"), [(1, (6, 3, 5)), (2, (2, 6, 3, 5)), (2, (3, 5)), (2, (1, 1, 3, 5))])
def test_opencv_multiplies_by_as_many_constants_or_one(images: int, matrices: tuple[int, ...], tmp_path: Path) -> None:
    text = f"(float[{images},6,4,3] X) => (float[A,B,4,5] Y) {{ Y = MatMul (X, W) }}"
    result = converted(saved(tmp_path / "m.onnx", text, W=matrices), "opencv")
    assert [each.op_type for each in result.graph.node] == ["MatMul"]


@pytest.mark.parametrize("given", ["int64[5] I", "int64[N] I"])
def test_old_opencv_picks_by_a_list_that_a_reshape_makes(given: str, tmp_path: Path) -> None:
    text = f"({given}) => (float[A,6] Y) {{ Y = Gather (W, I) }}"
    result = converted(saved(tmp_path / "m.onnx", text, W=(7, 6)), "opencv@4.14")
    assert [each.op_type for each in result.graph.node] == ["Reshape", "Gather"]


@pytest.mark.parametrize(("taps", "expected"), [(3, [3, 4]), (4, [4, 5])])
def test_mnn_sums_whole_numbers_in_a_window_of_two_lengths(taps: int, expected: list[int], tmp_path: Path) -> None:
    path = saved(tmp_path / "m.onnx", "(float[1,16,9,9] X) => (float[1,8,N,M] Y) { x = Round (X) Y = Conv (x, V) }")
    model = onnx.load(path)
    values = np.random.default_rng(1).integers(-60, 60, (8, 16, taps, taps)).astype(np.float32)
    model.graph.initializer.append(numpy_helper.from_array(values, "V"))
    onnx.save(model, path)
    node = converted(path, "mnn").graph.node[-1]
    assert {each.name: list(each.ints) for each in node.attribute}["kernel_shape"] == expected
    model.graph.initializer[0].CopyFrom(numpy_helper.from_array(values / 7, "V"))
    onnx.save(model, path)
    assert converted(path, "mnn").graph.node[-1] == model.graph.node[-1]


@pytest.mark.parametrize("pads", [[0, 0, 0, 0], [1, 0, 1, 2]])
def test_mnn_convolves_bytes_in_a_window_of_two_lengths(pads: list[int], tmp_path: Path) -> None:
    nodes = f"Y = ConvInteger <pads = {pads}> (X, V)"
    path = saved(tmp_path / "m.onnx", f"(uint8[1,16,9,9] X) => (int32[1,8,N,M] Y) {{ {nodes} }}")
    model = onnx.load(path)
    values = np.random.default_rng(1).integers(-60, 60, (8, 16, 3, 3)).astype(np.int8)
    model.graph.initializer.append(numpy_helper.from_array(values, "V"))
    onnx.save(model, path)
    (node,) = (each for each in converted(path, "mnn").graph.node if each.op_type == "Conv")
    assert {each.name: list(each.ints) for each in node.attribute}["kernel_shape"] == [3, 4]


@pytest.mark.parametrize(("matrices", "stays"), [((64, 64), True), ((1, 64, 64), False)])
def test_onnx2tf_reads_matrices_from_initializers(matrices: tuple[int, ...], stays: bool, tmp_path: Path) -> None:
    values = np.random.default_rng(1).standard_normal(matrices).astype(np.float32)
    path = saved(tmp_path / "m.onnx", "(float[1,20,64] X) => (float[1,20,64] Y) { Y = MatMul (X, W) }")
    model = onnx.load(path)
    model.graph.node.insert(0, onnx.helper.make_node("Constant", [], ["W"], value=numpy_helper.from_array(values)))
    onnx.save(model, path)
    assert ("Constant" in [each.op_type for each in converted(path, "onnx2tf").graph.node]) == stays


def test_onnx2tf_reads_a_bias_that_is_no_more_dequantized(tmp_path: Path) -> None:
    nodes = "d = DequantizeLinear (b, s) Y = Conv (X, W, d)"
    constants = "int32[3] b = {100, -200, 7}, float s = {0.01}"
    text = f"(float[1,4,8,9] X) => (float[1,3,6,7] Y) <{constants}> {{ {nodes} }}"
    result = converted(saved(tmp_path / "m.onnx", text, W=(3, 4, 3, 3)), "onnx2tf")
    assert [each.op_type for each in result.graph.node if each.op_type != "Constant"] == ["Conv"]


@pytest.mark.parametrize(("indices", "changes"), [("1, -2, 0", True), ("1, 2, 0", False)])
def test_mnn_gets_constant_places_counted_from_the_begin(indices: str, changes: bool, tmp_path: Path) -> None:
    constants = f"int64[3] i = {{{indices}}}, int64 d = {{4}}, float[2] v = {{0.5, 2.0}}"
    text = f"(float[4] X) => (float[3,4] Y) <{constants}> {{ h = OneHot <axis = -1> (i, d, v) Y = Mul (h, X) }}"
    path = saved(tmp_path / "m.onnx", text)
    assert bool(padfix.check(path, target="mnn").findings) == changes
    assert converted(path, "mnn")
    assert not padfix.check(tmp_path / "out.onnx", target="mnn").findings


@pytest.mark.parametrize("mode", ["reflect", "edge"])
def test_a_value_that_the_mode_of_a_pad_does_not_read_is_left_out(mode: str, tmp_path: Path) -> None:
    """Which tract would pad with."""
    text = f"""(float[1,2,6,7] X) => (float[A,B,C,D] Y) <int64[8] p = {{0, 0, 1, 2, 0, 0, 0, 1}}, float v = {{1}}> {{
        Y = Pad <mode = "{mode}"> (X, p, v) }}"""
    (node,) = converted(saved(tmp_path / "m.onnx", text), "tract").graph.node
    assert list(node.input) == ["X", "p"]


@pytest.mark.parametrize(
    ("nodes", "target", "expected"),
    [
        ("m = MatMul (X, W) Y = Add (m, c)", OPENCV, "Sum"),
        ("m = MatMul (X, W) Y = Add (c, m)", "mnn", "whole"),
        ("Y = Gemm (X, W, c)", "mnn", "whole"),
        ("m = MatMul (X, W) Y = Sum (m, c)", "mnn", "whole"),
        ("m = MatMul (X, W) r = Relu (m) Y = Add (r, c)", "mnn", "c"),
        ("m = MatMul (X, W) Y = Sub (m, c)", "mnn", "c"),
    ],
)
def test_a_column_is_no_bias_of_a_product_with_as_many_columns(
    nodes: str, target: str, expected: str, tmp_path: Path
) -> None:
    text = f"(float[3,8] X) => (float[3,3] Y) <float[3,1] c = {{1, 2, 3}}> {{ {nodes} }}"
    result = converted(saved(tmp_path / "m.onnx", text, W=(8, 3)), target).graph
    given = {each.name: list(each.dims) for each in result.initializer}
    last = result.node[-1]
    if expected == "Sum":
        assert last.op_type == "Sum"
    else:
        assert [given[name] for name in last.input if name in given] == [[3, 3] if expected == "whole" else [3, 1]]


def test_slices_are_put_along_one_axis(tmp_path: Path) -> None:
    """Which MNN puts elsewhere where their places count along two of three."""
    text = """(float[4,5,6] X, float[2,6] U) => (float[4,5,6] Y) <int64[2,2] p = {3, -1, 0, 2}> {
        Y = ScatterND (X, p, U) }"""
    result = converted(saved(tmp_path / "m.onnx", text), "mnn").graph
    assert [node.op_type for node in result.node] == ["Reshape", "ScatterND", "Reshape"]
    places = next(each for each in result.initializer if each.name == result.node[1].input[1])
    assert numpy_helper.to_array(places).tolist() == [[19], [2]]
