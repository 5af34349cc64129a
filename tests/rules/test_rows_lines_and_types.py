"""Products of open rows, pads of one line of bytes, open images, constants without elements, and types of numbers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnx.parser
import pytest
from onnx import TensorProto, numpy_helper

import padfix
from padfix.errors import RefusedError

STEPS = "float s = {0.1}, uint8 z = {116}, uint8 o = {0}, float v = {1.5}, int64[8] p = {0, 0, 2, 0, 0, 0, 3, 0}"
BYTES = "q = QuantizeLinear (X, s, {zero}) d = DequantizeLinear (q, s, {zero})"


def _saved(folder: Path, text: str, opset: int = 19, **constants: np.ndarray) -> Path:
    model = onnx.parser.parse_model(f'<ir_version: 9, opset_import: ["" : {opset}]> g {text}')
    model.graph.initializer.extend(numpy_helper.from_array(each, name) for name, each in constants.items())
    onnx.save(model, folder / "model.onnx")
    return folder / "model.onnx"


def _converted(folder: Path, text: str, target: str, opset: int = 19, **constants: np.ndarray) -> onnx.ModelProto:
    padfix.convert(_saved(folder, text, opset, **constants), folder / "after.onnx", target=target)
    assert not padfix.check(folder / "after.onnx", target=target).findings
    return onnx.load(folder / "after.onnx")


def _operators(model: onnx.ModelProto) -> list[str]:
    return [each.op_type for each in model.graph.node if each.op_type != "Constant"]


@pytest.mark.parametrize(
    ("shape", "matrices", "expected"),
    [
        ("N,6", (3, 6, 2), ["Unsqueeze", "Unsqueeze", "MatMul", "Squeeze"]),
        ("N,4,6", (3, 6, 2), ["Unsqueeze", "MatMul", "Squeeze"]),
        ("1,N,6", (3, 6, 2), ["Unsqueeze", "MatMul", "Squeeze"]),
        ("4,6", (3, 6, 2), ["MatMul"]),
        ("N,6", (1, 6, 2), ["MatMul"]),
        ("N,6", (2, 3, 6, 2), ["MatMul"]),
        ("3,N,6", (3, 6, 2), ["MatMul"]),
    ],
)
def test_open_rows_are_multiplied_by_several_matrices_in_four_axes(
    shape: str, matrices: tuple[int, ...], expected: list[str], tmp_path: Path
) -> None:
    weights = np.random.default_rng(0).standard_normal(matrices).astype(np.float32)
    text = f"(float[{shape}] X) => (float[] Y) {{ Y = MatMul (X, w) }}"
    assert _operators(_converted(tmp_path, text, "openvino", w=weights)) == expected


@pytest.mark.parametrize(
    ("shape", "body", "zero", "expected"),
    [
        ("2,3,1,4", "Y = Pad (d, p)", "z", ["Pad", "Slice"]),
        ("N,3,1,4", "Y = Pad (d, p)", "z", ["Pad", "Slice"]),
        ("2,3,1,4", "Y = Pad (d, p, v)", "o", ["Pad", "Slice"]),
        ("2,3,1,4", "m = MaxPool <kernel_shape = [1, 2]> (d) Y = Pad (m, p)", "z", ["MaxPool", "Pad", "Slice"]),
        ("2,3,1,4", "Y = Pad (d, p)", "o", ["Pad"]),
        ("2,3,2,4", "Y = Pad (d, p)", "z", ["Pad"]),
        ("2,3,1,4", "r = Relu (d) Y = Pad (r, p)", "z", ["Relu", "Pad"]),
        ("2,3,1,4", 'Y = Pad <mode = "edge"> (d, p)', "z", ["Pad"]),
    ],
)
def test_one_line_of_bytes_is_padded_along_another_axis_as_well(
    shape: str, body: str, zero: str, expected: list[str], tmp_path: Path
) -> None:
    text = f"(float[{shape}] X) => (float[] Y) <{STEPS}> {{ {BYTES.format(zero=zero)} {body} }}"
    found = _operators(_converted(tmp_path, text, "openvino"))
    assert found == ["QuantizeLinear", "DequantizeLinear", *expected]


def test_a_list_of_one_byte_is_padded_by_constants(tmp_path: Path) -> None:
    pads = "int64[2] p = {1, 2}, float s = {0.1}, uint8 z = {116}"
    text = f"(float[1] X) => (float[4] Y) <{pads}> {{ {BYTES.format(zero='z')} Y = Pad (d, p) }}"
    assert _operators(_converted(tmp_path, text, "openvino"))[2:] == ["Concat"]


@pytest.mark.parametrize(("boxes", "is_refused"), [("N,6,4", True), ("N,M,4", False), ("2,6,4", False)])
def test_boxes_of_open_images_are_declined_where_their_number_is_told(
    boxes: str, is_refused: bool, tmp_path: Path
) -> None:
    scores = f"{boxes.split(',')[0]},3,{boxes.split(',')[1]}"
    text = (
        f"(float[{boxes}] B, float[{scores}] S) => (int64[A,3] Y) <int64[1] k = {{3}}> "
        "{ Y = NonMaxSuppression (B, S, k) }"
    )
    findings = padfix.check(_saved(tmp_path, text), target="mnn").findings
    assert any("first image alone" in each.message for each in findings) is is_refused


@pytest.mark.parametrize("by_node", [False, True])
def test_halves_without_elements_are_cast_from_floats(by_node: bool, tmp_path: Path) -> None:
    resize = 'Resize <coordinate_transformation_mode = "asymmetric", mode = "nearest", nearest_mode = "floor">'
    given = "r = Constant <value = float16[0] {}> ()" if by_node else ""
    text = f"(float16[1,2,4,4] X) => (float16[1,2,8,8] Y) {{ {given} Y = {resize} (X, r, s) }}"
    constants = {} if by_node else {"r": np.zeros(0, np.float16)}
    model = _converted(tmp_path, text, "mnn", 15, s=np.array([1, 1, 2, 2], np.float32), **constants)
    assert _operators(model) == ["Cast", "Resize"]
    held = [*model.graph.initializer, *(node.attribute[0].t for node in model.graph.node if not node.input)]
    assert {each.data_type for each in held} == {TensorProto.FLOAT}


@pytest.mark.parametrize("target", ["opencv", "mnn", "tract", "qnn", "onnx2tf"])
def test_a_cast_to_bfloat16_is_declined(target: str, tmp_path: Path) -> None:
    text = "(float[2,3] X) => (float[2,3] Y) { b = Cast <to = 16> (X) Y = Cast <to = 1> (b) }"
    saved = _saved(tmp_path, text, 17)
    assert any("bfloat16" in each.message for each in padfix.check(saved, target=target).findings)
    with pytest.raises(RefusedError):
        padfix.convert(saved, tmp_path / "after.onnx", target=target)


def test_a_transform_of_doubles_is_a_product_of_them(tmp_path: Path) -> None:
    text = "(double[1,8,1] X) => (double[1,8,2] Y) { Y = DFT (X) }"
    assert "MatMul" in _operators(_converted(tmp_path, text, "openvino", 17))


@pytest.mark.parametrize(
    ("data_zero", "weights", "is_quantized", "held"),
    [
        (96, "w, c, o", True, "int8"),
        (96, "w, c", True, "int8"),
        (0, "w, c, o", True, "uint8"),
        (96, "w, c, z", True, "uint8"),
        (96, "w, c, o", False, "uint8"),
    ],
)
def test_weights_from_zero_get_a_sign_beside_bytes_with_a_zero_point(
    data_zero: int, weights: str, is_quantized: bool, held: str, tmp_path: Path
) -> None:
    last = "Y = QuantizeLinear (r, s, z)" if is_quantized else "Y = Neg (r)"
    text = (
        f"(uint8[1,4,7,5] X) => ({'uint8' if is_quantized else 'float'}[1,2,5,3] Y) "
        f"{{ d = DequantizeLinear (X, s, a) v = DequantizeLinear ({weights}) r = Conv (d, v) {last} }}"
    )
    numbers = np.random.default_rng(0).integers(0, 255, (2, 4, 3, 3)).astype(np.uint8)
    constants = {name: np.array(each, np.uint8) for name, each in (("a", data_zero), ("o", 0), ("z", 7))}
    steps = {name: np.array(each, np.float32) for name, each in (("s", 0.05), ("c", 0.01))}
    model = _converted(tmp_path, text, "openvino", 13, w=numbers, **constants, **steps)
    (found,) = [each for each in map(numpy_helper.to_array, model.graph.initializer) if each.ndim == 4]
    assert found.dtype == held


def test_a_convolution_of_bytes_by_weights_from_zero_is_one_of_their_numbers(tmp_path: Path) -> None:
    text = "(uint8[1,4,7,5] X) => (uint8[1,2,5,3] Y) { Y = QLinearConv (X, s, z, w, s, o, s, z) }"
    numbers = np.random.default_rng(0).integers(0, 255, (2, 4, 3, 3)).astype(np.uint8)
    zeros = {"z": np.array(7, np.uint8), "o": np.array(0, np.uint8)}
    model = _converted(tmp_path, text, "openvino", 13, w=numbers, s=np.array(0.05, np.float32), **zeros)
    assert _operators(model) == ["DequantizeLinear", "DequantizeLinear", "Conv", "QuantizeLinear"]


@pytest.mark.parametrize(
    ("data", "indices", "expected"),
    [
        ("N,5", "2,4", ["Slice", "Max", "GatherElements"]),
        ("3,5", "N,M", ["Shape", "Gather", "Slice", "Max", "GatherElements"]),
        ("N,M", "K,L", ["Shape", "Gather", "Slice", "Max", "GatherElements"]),
        ("N,M", "K,M", ["GatherElements"]),
    ],
)
def test_rows_without_indices_are_cut_off_before_elements_are_picked(
    data: str, indices: str, expected: list[str], tmp_path: Path
) -> None:
    text = f"(float[{data}] X, int64[{indices}] I) => (float[A,B] Y) {{ Y = GatherElements (X, I) }}"
    assert _operators(_converted(tmp_path, text, "openvino", 17)) == expected


def test_a_norm_with_a_fed_scale_of_fewer_axes_has_ones_in_the_whole_shape(tmp_path: Path) -> None:
    text = "(float[1,8,7] X, float[7] s) => (float[1,8,7] Y) { Y = LayerNormalization <axis = 1> (X, s) }"
    model = _converted(tmp_path, text, "mnn", 17)
    assert _operators(model) == ["LayerNormalization", "Mul"]
    assert [8, 7] in [list(each.dims) for each in model.graph.initializer]


@pytest.mark.parametrize("p", [1, 2])
def test_an_open_axis_is_normed_by_a_sum_where_other_reductions_take_all_axes(p: int, tmp_path: Path) -> None:
    text = f"(float[N,7] X) => (float[N,7] Y) {{ Y = LpNormalization <axis = 0, p = {p}> (X) }}"
    found = _operators(_converted(tmp_path, text, "mnn", 18))
    assert "ReduceSum" in found
    assert "ReduceL2" not in found


@pytest.mark.parametrize("target", ["mnn", "opencv@4.14", "ncnn", "qnn"])
def test_a_reduction_of_a_number_is_none_of_no_axes(target: str, tmp_path: Path) -> None:
    saved = _saved(tmp_path, "(float X) => (float Y) { Y = ReduceSum (X) }", 17)
    assert not padfix.check(saved, target=target).findings


def test_a_layer_whose_bias_is_fed_is_written_in_steps(tmp_path: Path) -> None:
    weights = {name: np.full((1, 12, width), 0.1, np.float32) for name, width in (("w", 3), ("r", 4))}
    text = (
        "(float[2,1,3] X, float[1,24] b) => (float[2,1,1,4] Y, float[1,1,4] H) "
        "{ Y, H = GRU <hidden_size = 4, linear_before_reset = 1> (X, w, r, b) }"
    )
    assert "GRU" not in _operators(_converted(tmp_path, text, "mnn", 17, **weights))


def test_both_directions_wait_for_the_same_lengths(tmp_path: Path) -> None:
    weights = {name: np.full((2, 12, width), 0.1, np.float32) for name, width in (("w", 3), ("r", 4))}
    text = (
        "(float[3,2,3] X, int32[2] l) => (float[3,2,2,4] Y, float[2,2,4] H) "
        '{ Y, H = GRU <hidden_size = 4, direction = "bidirectional"> (X, w, r, "", l) }'
    )
    model = _converted(tmp_path, text, "tract", 17, **weights)
    written = [(each.op_type, *each.input, str(each.attribute)) for each in model.graph.node]
    assert "GRU" not in _operators(model)
    assert len(written) == len(set(written))


@pytest.mark.parametrize(("tuples", "count"), [("M,K", 1), ("M,2", 0)])
def test_tuples_of_open_length_are_found(tuples: str, count: int, tmp_path: Path) -> None:
    text = f"(float[N,5,2] X, int64[{tuples}] I) => (float[A,2] Y) {{ Y = GatherND (X, I) }}"
    assert len(padfix.check(_saved(tmp_path, text, 17), target="openvino").findings) == count
