"""What OpenCV 4.14 and TVM get wrong of layers of images, by their pads and axes."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import onnx
import onnx.parser
import pytest

import padfix
from padfix.errors import RefusedError
from tests.support.proven import operators_for

ONE_TAP = """(float[1,2,4,5] X) => (float[1,2,a,b] Y) <float[2,2,1,1] w = {1, 2, 3, 4}>
{ Y = Conv <kernel_shape = [1, 1], pads = %s, strides = %s> (X, w) }"""
EACH = """(float[1,2,%s,5] X) => (float[1,2,a,b] Y)
<float[2,1,3,3] w = {1, 2, 3, 4, 5, 6, 7, 8, 9, 9, 8, 7, 6, 5, 4, 3, 2, 1}>
{ Y = Conv <group = 2, kernel_shape = [3, 3], pads = %s, strides = %s, dilations = %s> (X, w) }"""
PLACES = """(float[1,1,12,12] X) => (float[1,1,14,14] Y, int64[1,1,14,14] Z)
{ Y, Z = MaxPool <kernel_shape = [3, 3], pads = [2, 2, 2, 2]> (X) }"""
GROUPS = """(float[2,4] X) => (float[2,4] Y) <float[4] s = {1, 2, 3, 4}>
{ Y = GroupNormalization <num_groups = 2> (X, s, s) }"""
LIST = """(float[3] X) => (float[3] Y) <float[1] s = {2}> { Y = BatchNormalization (X, s, s, s, s) }"""

FOUR = """(float[2,3,5] A, float[2,3,%s] B) => (float[2,3,5] Y) { Y = %s (%s) }"""
PUT = """(float[%s,5] X, float[3,5] U) => (float[a,b] Y) <int64[3,5] i = {0, 1, 2, 3, 4, 4, 3, 2, 1, 0, 1, 2, 3, 4, 0}>
{ Y = ScatterElements <axis = 1> (X, i, U) }"""

SLOPES = "(float[2,3,H,W] X) => (float[2,3,H,W] Y) <float[4,1] s = {0.1, 0.2, 0.3, 0.4}> { Y = PRelu (X, s) }"
SCALES = """(float[N,3,4,5] X) => (uint8[N,3,4,5] Y) <float[2] s = {0.1, 0.2}, uint8[2] z = {3, 4}>
{ Y = QuantizeLinear <axis = 0> (X, s, z) }"""
PLACED = """(float[N,2,5,8] X, float[2,3,4,2] G) => (float[2,2,3,4] Y)
{ Y = GridSample <padding_mode = "border"> (X, G) }"""
PICKED = """(float[N,5] X, int64[3,2,1] I) => (float[3,2] Y) { Y = GatherND <batch_dims = 1> (X, I) }"""
RESTS = "(int32[4,1] X, int32[1,6] Z) => (int32[4,6] Y) { Y = Mod (X, Z) }"

SPREAD = """(float[1,2,H,W] X) => (float[a,b,c,d] Y) <float[2,1,2,2] w = {1, 2, 3, 4, 5, 6, 7, 8}>
{ Y = ConvTranspose <group = 2, dilations = [2, 3], strides = [2, 1], pads = %s> (X, w) }"""
COLUMNS = """(float[1,8,9] X) => (float[1,2,5,5] Y) <int64[2] size = {5, 5}, int64[2] block = {2, 2}>
{ Y = Col2Im <dilations = [2, 2]> (X, size, block) }"""

TUPLES = """(float[%s] X, int64[%s] I) => (float[%s] Y) { Y = GatherND <batch_dims = %d> (X, I) }"""

KEPT = {"Conv": 1}
PADDED = {"Pad": 1, "Conv": 1}


@pytest.mark.parametrize(
    ("graph", "written"),
    [
        (ONE_TAP % ("[0, 0, 0, 1]", "[1, 1]"), PADDED),
        (ONE_TAP % ("[0, 0, 0, 1]", "[1, 2]"), KEPT),
        (ONE_TAP % ("[0, 1, 0, 1]", "[1, 1]"), KEPT),
        (EACH % ("4", "[0, 0, 2, 0]", "[1, 1]", "[1, 1]"), PADDED),
        (EACH % ("4", "[0, 0, 1, 2]", "[1, 1]", "[1, 1]"), KEPT),
        (EACH % ("4", "[2, 0, 2, 0]", "[1, 1]", "[1, 1]"), KEPT),
        (EACH % ("5", "[1, 1, 2, 1]", "[2, 2]", "[1, 1]"), KEPT),
        (EACH % ("4", "[1, 1, 2, 1]", "[2, 2]", "[1, 1]"), PADDED),
        (EACH % ("7", "[0, 0, 3, 2]", "[1, 1]", "[2, 1]"), PADDED),
        (EACH % ("7", "[0, 0, 3, 2]", "[1, 2]", "[1, 2]"), KEPT),
        (EACH % ("H", "[0, 0, 2, 0]", "[1, 1]", "[1, 1]"), PADDED),
        (EACH % ("H", "[0, 0, 2, 0]", "[2, 1]", "[1, 1]"), PADDED),
    ],
)
def test_convolutions_are_padded_before_them_where_taps_lie_below(
    graph: str, written: dict[str, int], tmp_path: Path
) -> None:
    assert operators_for(graph, "opencv@4.14.0", tmp_path, 17, 8) == Counter(written)


def test_taps_multiply_no_extremes(tmp_path: Path) -> None:
    found = operators_for(PLACES, "opencv@4.14.0", tmp_path, 17, 8)
    assert (found["Pad"], found["Conv"], found["MaxPool"]) == (1, 1, 0)


def test_norms_of_one_element_each(tmp_path: Path) -> None:
    found = operators_for(GROUPS, "opencv@4.14.0", tmp_path, 21, 10)
    assert found == Counter(Reshape=2, InstanceNormalization=1, Mul=1, Add=1)
    assert operators_for(LIST, "tvm", tmp_path, 17, 8) == Counter(Mul=1, Add=1)


@pytest.mark.parametrize(
    ("graph", "written"),
    [
        (FOUR % ("1", "Sum", "A, B, A, A"), {"Add": 3}),
        (FOUR % ("1", "Max", "B, B, A, A"), {"Max": 3}),
        (FOUR % ("1", "Min", "A, A, B, A"), {"Min": 1}),
        (FOUR % ("1", "Sum", "A, B, A"), {"Sum": 1}),
        (FOUR % ("5", "Sum", "A, B, A, A"), {"Sum": 1}),
    ],
)
def test_four_data_are_joined_by_twos_where_one_has_a_column(
    graph: str, written: dict[str, int], tmp_path: Path
) -> None:
    assert operators_for(graph, "opencv@4.14.0", tmp_path, 17, 8) == Counter(written)


@pytest.mark.parametrize(
    ("reduction", "shape", "written"),
    [
        ("ReduceSumSquare <axes = [-3]>", "N,3,4", {"Mul": 1, "ReduceSum": 1}),
        ("ReduceSumSquare <axes = [-3]>", "2,3,4", {"ReduceSumSquare": 1}),
        ("ReduceLogSum <axes = [0, 1]>", "N,1,4", {"ReduceSum": 1, "Log": 1}),
        ("ReduceLogSum <axes = [0, 1]>", "N,3,4", {"ReduceLogSum": 1}),
        ("ReduceL1 <axes = [2, 3], keepdims = 0>", "2,3,H,W", {"Abs": 1, "ReduceSum": 1}),
        ("ReduceL2 <axes = [1, 2, 3]>", "2,3,H,W", {"Mul": 1, "ReduceSum": 2, "Sqrt": 1}),
    ],
)
def test_axes_that_may_have_one_element_are_summed(
    reduction: str, shape: str, written: dict[str, int], tmp_path: Path
) -> None:
    result = ",".join("abcd"[: shape.count(",") + (-1 if "keepdims" in reduction else 1)])
    graph = f"(float[{shape}] X) => (float[{result}] Y) {{ Y = {reduction} (X) }}"
    assert operators_for(graph, "opencv@4.14.0", tmp_path, 13, 8) == Counter(written)


@pytest.mark.parametrize(("opset", "shape", "is_written"), [(11, "2,6,1", 1), (11, "2,6", 0), (13, "2,6,1", 0)])
def test_the_axis_of_an_old_hardmax_is_written(opset: int, shape: str, is_written: int, tmp_path: Path) -> None:
    source, result = tmp_path / "model.onnx", tmp_path / "result.onnx"
    graph = f"g (float[{shape}] X) => (float[{shape}] Y) {{ Y = Hardmax (X) }}"
    onnx.save(onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : {opset}]> {graph}'), source)
    padfix.convert(source, result, target="opencv@5.0.0.93")
    (node,) = onnx.load(result).graph.node
    assert [(each.name, each.i) for each in node.attribute] == [("axis", 1)] * is_written


def test_images_that_indices_count_are_declined_where_data_do_not(tmp_path: Path) -> None:
    assert operators_for(PUT % "3", "opencv@4.14.0", tmp_path, 18, 8) == Counter(ScatterElements=1)
    with pytest.raises(RefusedError):
        operators_for(PUT % "N", "opencv@4.14.0", tmp_path, 18, 8)


@pytest.mark.parametrize(
    ("graph", "target", "op_type"),
    [
        (SLOPES, "opencv@4.14.0", "PRelu"),
        (SCALES, "opencv@4.14.0", "QuantizeLinear"),
        (PLACED, "opencv@4.14.0", "GridSample"),
        (PICKED, "tract", "Mod"),
        (RESTS, "tract", "Expand"),
    ],
)
def test_open_lengths_are_tried_as_long_as_others_tell(graph: str, target: str, op_type: str, tmp_path: Path) -> None:
    found = operators_for(graph, target, tmp_path, 17, 8)
    assert (op_type in found) == (target == "tract")


def test_transposed_taps_have_zeros_between_them(tmp_path: Path) -> None:
    for target in ("opencv@4.14.0", "onnx2tf"):
        assert operators_for(SPREAD % "[1, 1, 1, 1]", target, tmp_path, 17, 8) == Counter(ConvTranspose=1)
    uneven = operators_for(SPREAD % "[0, 1, 1, 1]", "opencv@4.14.0", tmp_path, 17, 8)
    assert uneven == Counter(ConvTranspose=1, Slice=1)
    assert operators_for(COLUMNS, "opencv@4.14.0", tmp_path, 18, 8) == Counter(Reshape=1, ConvTranspose=1)


@pytest.mark.parametrize(
    ("data", "indices", "result", "images", "written"),
    [
        ("3,4,5", "2,2", "2,5", 0, {"Mod": 1, "Mul": 1, "ReduceSum": 1, "Reshape": 3, "Gather": 1}),
        ("4,5", "3,2,1", "3,2,5", 0, {"Mod": 1, "Reshape": 3, "Gather": 1}),
        ("2,3,4,N", "2,3,2", "2,3,N", 1, {"Concat": 1, "Mod": 1, "Mul": 1, "ReduceSum": 1, "Reshape": 3, "Gather": 1}),
    ],
)
def test_computed_tuples_pick_rows(
    data: str, indices: str, result: str, images: int, written: dict[str, int], tmp_path: Path
) -> None:
    graph = TUPLES % (data, indices, result, images)
    assert operators_for(graph, "opencv@4.14.0", tmp_path, 17, 8) == Counter(written)
