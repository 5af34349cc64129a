"""Amounts that lengths tell, defaults that a runtime takes for others, and what is written where it must be."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest

from padfix.errors import RefusedError
from tests.support.proven import operators_for

PADDED = (
    "(float[1,3,H,W] X%s) => (float[1,3,P,Q] Y) <int64[4] k = {4, 4, 4, 4}, "
    "int64[4] o = {0, 0, 1, 1}, int64[4] n = {0, 0, 0, 0}> "
    '{ %s Y = Pad <mode = "%s"> (X, p) }'
)
BY_LENGTHS = "s = Shape (X) m = Mod (s, k) l = Sub (k, m) e = Mul (l, o) b = Mul (s, n) p = Concat <axis = 0> (b, e)"
RESIZED = (
    "(float[1,3,H,W] X, %s) => (float[1,3,P,Q] Y) <int64[1] z = {0}, int64[1] two = {2}, int64[1] four = {4}> { %s "
    'Y = Resize <mode = "linear", coordinate_transformation_mode = "half_pixel"> (X, , , n) }'
)
AS_ANOTHER = "s = Shape (X) a = Slice (s, z, two) r = Shape (R) b = Slice (r, two, four) n = Concat <axis = 0> (a, b)"
ALIGNED = (
    "(float[1,2,9,9] X, float[3,4] B, int64[3] I) => (float[3,2,2,2] Y) "
    "{ Y = RoiAlign <output_height = 2, output_width = 2%s> (X, B, I) }"
)
BOXES = (
    "(float[1,6,4] B, float[1,1,6] S) => (int64[n,3] Y) <int64[1] m = {4}, float[1] o = {0.3}> "
    "{ Y = NonMaxSuppression <center_point_box = 1> (B, S, m, o) }"
)
PICKED = (
    "(float[2,3,2] X) => (float[2,3,2] Y) <float[2,3,2] c = {1,2,3,4,5,6,7,8,9,10,11,12}, %s> "
    "{ g = Gather <axis = 0> (c, i) Y = Add (X, g) }"
)
IN_ORDER = (
    "(float[1,4,1,1] X) => (float[1,4,1,1] Y) <int64[1] m = {-1}, int64[1,4,1,1] i = {%s}> "
    "{ a = Sigmoid (X) l = Reshape (a, m) Y = Gather <axis = 0> (l, i) }"
)
OF_TWO_BYTES = "(int16[2,3] X) => (float[2,3] Y) <float s = {0.5}> { Y = DequantizeLinear (X, s) }"
EXTREMES = "(float[2,3,2,4,2] X) => (float[2,3,2,4,2] Y) <int64 a = {%s}> { Y = CumSum (X, a) }"


@pytest.mark.parametrize("target", ["mnn", "tract"])
@pytest.mark.parametrize("mode", ["constant", "edge"])
def test_a_pad_by_open_lengths_stays(target: str, mode: str, tmp_path: Path) -> None:
    assert operators_for(PADDED % ("", BY_LENGTHS, mode), target, tmp_path, 17, 8)["Pad"] == 1


@pytest.mark.parametrize("target", ["mnn", "tract"])
def test_a_pad_by_data_is_declined(target: str, tmp_path: Path) -> None:
    with pytest.raises(RefusedError):
        operators_for(PADDED % (", int64[8] q", "p = Identity (q)", "edge"), target, tmp_path, 17, 8)


@pytest.mark.parametrize("target", ["tract", "tvm"])
def test_a_resize_to_the_lengths_of_another_image_stays(target: str, tmp_path: Path) -> None:
    text = RESIZED % ("float[1,2,A,B] R", AS_ANOTHER)
    assert operators_for(text, target, tmp_path, 17, 8)["Resize"] == 1


@pytest.mark.parametrize("target", ["tract", "tvm"])
def test_a_resize_to_lengths_that_data_tell_is_declined(target: str, tmp_path: Path) -> None:
    with pytest.raises(RefusedError):
        operators_for(RESIZED % ("int64[4] R", "n = Identity (R)"), target, tmp_path, 17, 8)


@pytest.mark.parametrize("opset", [11, 16])
@pytest.mark.parametrize(("given", "told"), [("", 0), (", sampling_ratio = 2", 2)])
def test_openvino_is_told_how_many_samples_a_roi_align_takes(opset: int, given: str, told: int, tmp_path: Path) -> None:
    operators_for(ALIGNED % given, "openvino", tmp_path, opset, 8)
    (node,) = onnx.load(tmp_path / "after.onnx").graph.node
    assert [each.i for each in node.attribute if each.name == "sampling_ratio"] == [told]


@pytest.mark.parametrize("opset", [11, 16])
def test_mnn_is_told_the_coordinates_of_a_roi_align(opset: int, tmp_path: Path) -> None:
    operators_for(ALIGNED % ", spatial_scale = 0.5", "mnn", tmp_path, opset, 8)
    model = onnx.load(tmp_path / "after.onnx")
    (node,) = model.graph.node
    told = [each.s for each in node.attribute if each.name == "coordinate_transformation_mode"]
    assert (model.opset_import[0].version, told) == (16, [b"output_half_pixel"] if opset < 16 else [])


def test_boxes_of_lengths_below_zero_overlap_none_by_their_corners(tmp_path: Path) -> None:
    made = operators_for(BOXES, "mnn", tmp_path, 11, 8)
    assert made == {"MatMul": 2, "Relu": 1, "Add": 1, "NonMaxSuppression": 1}


@pytest.mark.parametrize(
    ("indices", "is_there"), [("int64 i = {1}", False), ("int64[2] i = {1, 0}", False), ("int64[1,2] i = {1, 0}", True)]
)
def test_what_is_picked_from_constants_of_three_axes_is_a_constant_for_opencv(
    indices: str, is_there: bool, tmp_path: Path
) -> None:
    assert ("Gather" in operators_for(PICKED % indices, "opencv@4.14", tmp_path, 13, 8)) is is_there


@pytest.mark.parametrize(("places", "there"), [("0, 1, 2, 3", "Reshape"), ("0, 1, 3, 2", "Gather")])
def test_a_gather_of_all_in_order_is_a_reshape_for_qnn(places: str, there: str, tmp_path: Path) -> None:
    made = operators_for(IN_ORDER % places, "qnn", tmp_path, 13, 8)
    assert ("Gather" in made) is (there == "Gather")


@pytest.mark.parametrize("target", ["opencv@5.0.0.93", "tract"])
def test_integers_of_two_bytes_are_dequantized_by_a_cast(target: str, tmp_path: Path) -> None:
    assert operators_for(OF_TWO_BYTES, target, tmp_path, 21, 10) == {"Cast": 1, "Mul": 1}


@pytest.mark.parametrize("axis", [0, 2, 4])
def test_five_axes_are_summed_up_along_one_as_three_for_qnn(axis: int, tmp_path: Path) -> None:
    assert "CumSum" not in operators_for(EXTREMES % axis, "qnn", tmp_path, 17, 8)


@pytest.mark.parametrize("operator", ["AveragePool", "MaxPool"])
@pytest.mark.parametrize("target", ["openvino", "opencv@4.14"])
def test_windows_are_no_longer_than_the_image(operator: str, target: str, tmp_path: Path) -> None:
    pool = "<ceil_mode = 1, kernel_shape = [9, 7], strides = [9, 7]>"
    text = f"(float[1,2,3,4] X) => (float[1,2,1,1] Y) {{ Y = {operator} {pool} (X) }}"
    operators_for(text, target, tmp_path, 12, 8)
    (node,) = onnx.load(tmp_path / "after.onnx").graph.node
    told = {each.name: list(each.ints) for each in node.attribute}
    pads = told.get("pads", [0] * 4)
    assert all(
        taps <= size + pads[axis] + pads[2 + axis]
        for axis, (taps, size) in enumerate(zip(told["kernel_shape"], (3, 4), strict=True))
    )


@pytest.mark.parametrize("target", ["mnn", "openvino", "tvm"])
def test_a_range_of_floats_that_data_bound_is_declined(target: str, tmp_path: Path) -> None:
    text = "(%s A) => (%s[n] Y) <%s l = {9}, %s d = {2}> { Y = Range (A, l, d) }"
    assert operators_for(text % (("int64",) * 4), target, tmp_path, 13, 8)["Range"] == 1
    with pytest.raises(RefusedError):
        operators_for(text % (("float",) * 4), target, tmp_path, 13, 8)
