"""What runtimes make of zeros, axes from the end, dots, pads and groups that few write, and its equal forms."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest

from padfix.errors import RefusedError
from tests.support.proven import operators_for

OPENCV_5 = "opencv@5.0.0.93"
FOUR = "(float[2,1,4] A, float[3,1] B, float[4] C, float[2,3,4] D) => (float[2,3,4] Y)"
BYTES = (
    "(uint8[1,4,6] X) => (uint8[1,4,%s] Y) <float s = {0.03}, uint8 z = {117}, int8[4,1,%s] W = {%s}, "
    "float t = {0.3}, int8 v = {0}> { Y = QLinearConv <group = 4, pads = [1, 1]> (X, s, z, W, s, v, t, z) }"
)
BY_GROUPS = (
    "(float[1,4,3,3] X, float[4,%d,2,2] W) => (float[A,B,C,D] Y) "
    "{ Y = ConvTranspose <group = %d, strides = [2, 2]> (X, W) }"
)
CROPPED = (
    "(float[1,2,3,3] X) => (float[A,B,C,D] Y) <float[2,1,2,2] W = {1, 2, 3, 4, 5, 6, 7, 8}> "
    "{ Y = ConvTranspose <group = 2, strides = [3, 3], pads = [%s]> (X, W) }"
)
RESIDUAL = (
    "(float[1,2,5,5] X, float[1,2,3,3] R) => (float[1,2,3,3] Y) <float[2,2,3,3] W = {%s}, float[1,2,1,1] b = {1, 2}> "
    "{ c = Conv (X, W) d = %s e = Add (R, d) Y = Relu (e) }"
)
JOINED = (
    "(float[2,3] A, float[2,3] B) => (float[C,D] Y) "
    "{ s = SequenceConstruct (A, B) Y = ConcatFromSequence <axis = %d> (s) }"
)
CROSSED = "(float[4,H,6] X, int64[3,7,6] I) => (float[3,7,6] Y) { Y = GatherElements <axis = 1> (X, I) }"
PICKED = "(float[2,4,3] X, int64[2,5,2] I) => (float[2,5] Y) { Y = GatherND <batch_dims = 1> (X, I) }"
DOTTED = "(float[2,3,3,4] X) => (float[2,3,4,3] Y) { Y = Einsum <equation = '...ij->...ji'> (X) }"
ASKED = "(float[6] X) => (bool[6] Y) { Y = IsInf <detect_negative = 0, detect_positive = 0> (X) }"
DYNAMIC = "(float[7] X) => (uint8[7] Y, float s, uint8 z) { Y, s, z = DynamicQuantizeLinear (X) }"
LIST_OF_SIX = "float[6] s = {1, 2, 3, 4, 5, 6}, float[6] b = {1, 2, 3, 4, 5, 6}"
TRANSFORMED = "(float[2,8,%s] X) => (float[A,B,2] Y) { Y = DFT <axis = 1, inverse = %d> (X%s) }"


def numbers(count: int) -> str:
    """Return so many small numbers, as ONNX's text writes them."""
    return ", ".join(str(each % 7 - 3) for each in range(count))


@pytest.mark.parametrize(
    ("target", "opset", "text", "expected"),
    [
        ("openvino", 17, "(float[4] X) => (float[4] Y) { Y = HardSigmoid <beta = 0.0> (X) }", {"Mul": 1, "Clip": 1}),
        ("openvino", 17, "(float[4] X) => (float[4] Y) { Y = HardSigmoid <beta = 0.5> (X) }", {"HardSigmoid": 1}),
        ("openvino", 17, "(float[4] X) => (float[4] Y) { Y = Selu <gamma = 0.0> (X) }", {"Elu": 1, "Mul": 1}),
        ("openvino", 17, CROSSED, {"Slice": 1, "GatherElements": 1}),
        (OPENCV_5, 17, PICKED, {"Mod": 1, "GatherND": 1}),
        ("mnn", 17, PICKED, {"Concat": 1, "Mod": 1, "GatherND": 1}),
        (OPENCV_5, 17, f"{FOUR} {{ Y = Sum (A, B, C, D) }}", {"Add": 3}),
        (OPENCV_5, 17, f"{FOUR} {{ Y = Max (A, B, C, D) }}", {"Max": 3}),
        (OPENCV_5, 17, f"{FOUR} {{ Y = Sum (A, B, C) }}", {"Sum": 1}),
        (OPENCV_5, 17, BYTES % (6, 3, numbers(12)), {"DequantizeLinear": 2, "Conv": 1, "QuantizeLinear": 1}),
        (OPENCV_5, 17, ASKED, {"Less": 1}),
        (OPENCV_5, 17, TRANSFORMED % (1, 1, ""), {"MatMul": 1}),
        (OPENCV_5, 17, TRANSFORMED % (2, 1, ""), {"DFT": 1}),
        ("mnn", 17, BY_GROUPS % (2, 4), {"ConvTranspose": 4, "Split": 2, "Concat": 1}),
        ("mnn", 17, BY_GROUPS % (1, 2), {"ConvTranspose": 2, "Split": 2, "Concat": 1}),
        ("mnn", 17, BY_GROUPS % (2, 2), {"ConvTranspose": 1}),
        ("mnn", 17, CROPPED % "3, 0, 0, 0", {"ConvTranspose": 1, "Slice": 1}),
        ("mnn", 17, CROPPED % "2, 2, 2, 2", {"ConvTranspose": 1}),
        ("mnn", 17, DOTTED, {"Einsum": 1}),
        ("mnn", 17, JOINED % -1, {"Concat": 1}),
        ("mnn", 17, JOINED % 1, {"ConcatFromSequence": 1, "SequenceConstruct": 1}),
        ("mnn", 17, DYNAMIC, {"ReduceMax": 1}),
    ],
)  # fmt: skip
def test_a_form_is_written(target: str, opset: int, text: str, expected: dict[str, int], tmp_path: Path) -> None:
    operators = operators_for(text.replace("'", '"'), target, tmp_path, opset, 8)
    assert {each: operators[each] for each in expected} == expected


@pytest.mark.parametrize("target", ["openvino", OPENCV_5, "mnn", "tract", "tvm"])
def test_a_list_is_normalised_by_a_product_and_a_sum(target: str, tmp_path: Path) -> None:
    text = (
        "(float[6] X) => (float[6] Y) <float[1] s = {1.5}, float[1] b = {2}, float[1] m = {0.5}, float[1] v = {1.25}> "
        "{ Y = BatchNormalization (X, s, b, m, v) }"
    )
    assert operators_for(text, target, tmp_path, 17, 8) == {"Mul": 1, "Add": 1}


@pytest.mark.parametrize("rank", [2, 3])
def test_groups_of_a_matrix_are_normalised_as_lines_for_opencv(rank: int, tmp_path: Path) -> None:
    shape = ",".join(["2", "6", "5"][:rank])
    text = (
        f"(float[{shape}] X) => (float[{shape}] Y) <{LIST_OF_SIX}> "
        "{ Y = GroupNormalization <num_groups = 3> (X, s, b) }"
    )
    assert (operators_for(text, OPENCV_5, tmp_path, 21, 10)["GroupNormalization"] == 1) is (rank > 2)


@pytest.mark.parametrize(
    ("joined", "expected"),
    [
        ("Add (b, c)", ["c", "b"]),
        ("Mul (b, c)", ["c", "b"]),
        ("Add (c, b)", ["c", "b"]),
    ],
)
def test_a_constant_stands_behind_what_a_layer_gives_for_mnn(joined: str, expected: list[str], tmp_path: Path) -> None:
    operators_for(RESIDUAL % (numbers(36), joined), "mnn", tmp_path, 17, 8)
    second = onnx.load(tmp_path / "after.onnx").graph.node[1]
    assert list(second.input) == expected


@pytest.mark.parametrize("axes", [1, 2])
def test_an_axis_that_is_not_resized_stays_where_it_is_for_opencv(axes: int, tmp_path: Path) -> None:
    scales = ["1", "1", "2", "2"] if axes > 1 else ["1", "1", "2", "1"]
    text = (
        f"(float[1,2,4,5] X) => (float[A,B,C,D] Y) <float[0] r = {{}}, float[4] s = {{{', '.join(scales)}}}> "
        '{ Y = Resize <mode = "linear", coordinate_transformation_mode = "tf_half_pixel_for_nn"> (X, r, s) }'
    )
    assert (operators_for(text, OPENCV_5, tmp_path, 11, 8)["Resize"] == 1) is (axes > 1)


@pytest.mark.parametrize("shape", ["N,3,4", "2,3,L"])
def test_what_is_quantized_by_the_last_axis_of_open_data_is_divided_for_openvino(shape: str, tmp_path: Path) -> None:
    text = (
        f"(float[{shape}] X) => (uint8[{shape}] Y) <float[4] s = {{0.1, 0.2, 0.3, 0.4}}, uint8[4] z = {{1, 2, 3, 4}}> "
        "{ Y = QuantizeLinear <axis = 2> (X, s, z) }"
    )
    assert operators_for(text, "openvino", tmp_path, 19, 9)["Div"] == 1


@pytest.mark.parametrize("length", [5, 12])
def test_a_transform_of_another_length_is_a_product_for_tract(length: int, tmp_path: Path) -> None:
    text = f"(float[2,8,6,1] X) => (float[A,B,C,2] Y) <int64 n = {{{length}}}> {{ Y = DFT <axis = 1> (X, n) }}"
    assert operators_for(text, "tract", tmp_path, 17, 8)["MatMul"] == 1


@pytest.mark.parametrize("target", ["openvino", "tract", "tvm"])
def test_integers_that_are_interpolated_are_declined(target: str, tmp_path: Path) -> None:
    text = (
        "(int32[1,2,4,5] X) => (int32[1,2,6,9] Y) <int64[4] s = {1, 2, 6, 9}> "
        '{ Y = Resize <mode = "linear"> (X, "", "", s) }'
    )
    with pytest.raises(RefusedError):
        operators_for(text, target, tmp_path, 18, 8)


def test_zeros_between_taps_are_tried_on_images_that_hold_the_wider_kernel(tmp_path: Path) -> None:
    text = (
        f"(float[1,2,7,8,10] X) => (float[A,B,C,D,E] Y) <float[2,1,3,1,4] W = {{{numbers(24)}}}> "
        "{ Y = Conv <group = 2, dilations = [3, 3, 3], strides = [2, 3, 1]> (X, W) }"
    )
    assert operators_for(text, "mnn", tmp_path, 17, 8)["Conv"] == 1


@pytest.mark.parametrize(
    ("constant", "values", "stays"),
    [("1,1,4,1", 4, False), ("4", 4, False), ("1,4,1,1", 4, True), ("1,1,1,2", 2, True)],
)
@pytest.mark.parametrize("between", ["Relu (c)", "Identity (c)"])
def test_constants_along_another_axis_than_the_channels_are_no_bias_for_mnn(
    constant: str, values: int, stays: bool, between: str, tmp_path: Path
) -> None:
    width = 2 if constant == "1,1,1,2" else 4
    text = (
        f"(float[1,2,6,{width + 2}] X) => (float[1,4,4,{width}] Y) <float[4,2,3,3] W = {{{numbers(72)}}}, "
        f"float[{constant}] b = {{{numbers(values)}}}> {{ c = Conv (X, W) r = {between} Y = Add (r, b) }}"
    )
    operators_for(text, "mnn", tmp_path, 17, 8)
    graph = onnx.load(tmp_path / "after.onnx").graph
    held = {each.name: list(each.dims) for each in graph.initializer}
    added = [held[name] for name in graph.node[-1].input if name in held]
    assert (added == [[int(each) for each in constant.split(",")]]) is stays


@pytest.mark.parametrize("layer", ["GlobalAveragePool (d)", "BatchNormalization (d, k, k, k, k)"])
def test_a_constant_stands_behind_what_a_pool_of_whole_images_reads_for_mnn(layer: str, tmp_path: Path) -> None:
    text = (
        "(float[1,2,5,5] X) => (float[A,B,C,D] Y) "
        "<float[2,2,3,3] W = {%s}, float[1,2,1,1] b = {1, 2}, float[2] k = {1, 2}> "
        "{ c = Conv (X, W) a = Abs (c) d = Mul (b, a) Y = %s }"
    )
    operators_for(text % (numbers(36), layer), "mnn", tmp_path, 17, 8)
    assert list(onnx.load(tmp_path / "after.onnx").graph.node[2].input)[1] == "b"


@pytest.mark.parametrize(("maps", "stays"), [(1, False), (3, True)])
def test_the_one_channel_of_a_convolution_is_taken_from_a_number_for_tract(
    maps: int, stays: bool, tmp_path: Path
) -> None:
    text = (
        f"(float[1,2,5,5] X) => (float[1,{maps},3,3] Y) "
        f"<float[{maps},2,3,3] W = {{{numbers(18 * maps)}}}, float o = {{1}}> "
        "{ c = Conv (X, W) Y = Sub (o, c) }"
    )
    assert (operators_for(text, "tract", tmp_path, 17, 8)["Sub"] == 1) is stays


@pytest.mark.parametrize("target", ["ncnn", OPENCV_5, "tract"])
def test_truths_that_are_worked_out_of_lengths_pick_what_a_gather_picks(target: str, tmp_path: Path) -> None:
    text = (
        "(float[1,3,9,4] X) => (float[1,3,8,4] Y) <int64[1] i = {2}, int64[1] o = {4}, int64[1] a = {2}, "
        "int64[1] b = {3}, bool[1] f = {0}> { s = Shape (X) n = Slice (s, a, b) "
        "t = ConstantOfShape <value = bool[1] {1}> (n) r = ScatterElements (t, o, f) Y = Compress <axis = 2> (X, r) }"
    )
    operators = operators_for(text, target, tmp_path, 17, 8)
    assert not {"Compress", "Shape", "ScatterElements"} & operators.keys()
