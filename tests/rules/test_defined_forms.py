"""Operators that few runtimes have, written by those that all have, and proven."""

from __future__ import annotations

from pathlib import Path

import onnx
import onnx.parser
import pytest

import padfix
from padfix.errors import RefusedError
from tests.support.proven import operators_for


def converted(text: str, target: str, folder: Path, opset: int = 21) -> list[str]:
    """Return the sorted operators that a model becomes; it is proven on the way."""
    return sorted(operators_for(text, target, folder, opset, ir_version=9).elements())


SEGNET = """(float[2,3,6,8] X) => (float[2,3,6,8] Y) {
  m, i = MaxPool <kernel_shape = [2, 2], strides = [2, 2]> (X)
  Y = MaxUnpool <kernel_shape = [2, 2], strides = [2, 2]> (m, i)
}"""


@pytest.mark.parametrize("opset", [9, 13])
@pytest.mark.parametrize("target", ["openvino", "tract"])
def test_maxima_are_scattered_over_zeros(target: str, opset: int, tmp_path: Path) -> None:
    expected = ["ConstantOfShape", "MaxPool", "Reshape", "Reshape", "Reshape", "ScatterElements"]
    assert converted(SEGNET, target, tmp_path, opset) == expected


@pytest.mark.parametrize(
    ("image", "block", "length", "attributes", "expected"),
    [
        ("{5, 6}", "{2, 2}", "12,20", "", ["ConvTranspose", "Reshape"]),
        (
            "{5, 6}",
            "{2, 3}",
            "12,9",
            "<pads = [0, 1, 2, 1], strides = [2, 2]>",
            ["ConvTranspose", "Reshape", "Slice"],
        ),
        ("{7, 9}", "{3, 2}", "12,12", "<dilations = [2, 3], strides = [2, 1]>", ["ConvTranspose", "Reshape"]),
        ("{9}", "{4}", "8,4", "<pads = [1, 0], strides = [2]>", ["ConvTranspose", "Reshape", "Slice"]),
    ],
)
def test_columns_are_joined_by_a_transposed_convolution(
    image: str, block: str, length: str, attributes: str, expected: list[str], tmp_path: Path
) -> None:
    rank = image.count(",") + 1
    constants = f"int64[{rank}] image = {image}, int64[{rank}] block = {block}"
    text = f"(float[2,{length}] X) => (float Y) <{constants}> {{ Y = Col2Im {attributes} (X, image, block) }}"
    assert converted(text, "tract", tmp_path) == expected


@pytest.mark.parametrize(("size", "theta"), [("2,3,4,5", "2,2,3"), ("1,3,2,4,5", "1,3,4")])
@pytest.mark.parametrize("aligned", [0, 1])
def test_a_grid_is_a_product_with_all_positions(size: str, theta: str, aligned: int, tmp_path: Path) -> None:
    sizes = f"int64[{size.count(',') + 1}] size = {{{size}}}"
    text = f"(float[{theta}] T) => (float Y) <{sizes}> {{ Y = AffineGrid <align_corners = {aligned}> (T, size) }}"
    assert converted(text, "mnn", tmp_path) == ["MatMul", "Reshape", "Transpose"]


@pytest.mark.parametrize(
    ("offsets", "settings", "mask", "target"),
    [
        ("2,18,6,7", "pads = [1, 1, 1, 1]", "", "mnn"),
        (
            "N,36,3,7",
            "offset_group = 2, group = 2, strides = [2, 1], pads = [1, 0, 1, 2]",
            "18",
            "tvm",
        ),
        ("1,72,6,7", "offset_group = 4, pads = [1, 1, 1, 1]", "36", "onnx2tf"),
    ],
)
def test_a_deformed_convolution_samples_what_each_tap_meets(
    offsets: str, settings: str, mask: str, target: str, tmp_path: Path
) -> None:
    batch, _, *sizes = offsets.split(",")
    group = 2 if " group" in settings else 1
    given, names = f"float[{batch},4,6,7] X, float[{offsets}] o", f'X, W, o, ""{", m" if mask else ""}'
    given += f", float[{batch},{mask},{','.join(sizes)}] m" if mask else ""
    weights = ", ".join(str(each % 7 - 3) for each in range(2 * (4 // group) * 9))
    text = f"""({given}) => (float[{batch},2,{",".join(sizes)}] Y) <float[2,{4 // group},3,3] W = {{{weights}}}> {{
        Y = DeformConv <{settings}> ({names}) }}"""
    written = converted(text, target, tmp_path)
    groups = int(offsets.split(",")[1]) // 18
    assert written.count("GridSample") == written.count("MatMul") == groups
    assert written.count("Split") == (0 if groups == 1 else 3)


@pytest.mark.parametrize("batch", ["1", "N"])
def test_a_deformed_convolution_is_tried_with_all_places_of_its_image(batch: str, tmp_path: Path) -> None:
    text = f"""(float[{batch},1,12,9] X, float[{batch},12,12,9] o) => (float[{batch},1,12,9] Y)
        <float[1,1,2,3] W = {{1, 2, 3, 4, 5, 6}}> {{ Y = DeformConv <pads = [1, 1, 0, 1]> (X, W, o) }}"""
    assert "GridSample" in converted(text, "mnn", tmp_path)


@pytest.mark.parametrize("lengths", ["1,6,H,W", "N,6,T"])
def test_a_group_norm_over_open_lengths_is_laid_out_by_its_data(lengths: str, tmp_path: Path) -> None:
    text = f"""(float[{lengths}] X, float[6] s, float[6] b) => (float Y) {{
        Y = GroupNormalization <num_groups = 3> (X, s, b) }}"""
    expected = ["Add", "InstanceNormalization", "Mul", *["Reshape"] * 4, "Shape"]
    assert converted(text, "mnn", tmp_path) == expected


def test_a_group_norm_is_the_norm_of_lines(tmp_path: Path) -> None:
    text = (
        "(float[N,6,4,5] X, float[6] s, float[6] b) => (float Y) { Y = GroupNormalization <num_groups = 3> (X, s, b) }"
    )
    operators = ["Add", "InstanceNormalization", "Mul", "Reshape", "Reshape", "Reshape", "Reshape"]
    assert converted(text, "mnn", tmp_path) == operators


def test_a_group_norm_with_a_computed_scale_for_each_group_has_it_before_its_shape(tmp_path: Path) -> None:
    text = "(float[2,6,4] X, float[3] s, float[3] b) => (float Y) { Y = GroupNormalization <num_groups = 3> (X, s, b) }"
    operators = ["Add", "InstanceNormalization", "Mul", "Reshape", "Reshape", "Reshape", "Reshape"]
    assert converted(text, "mnn", tmp_path, 18) == operators


def test_a_norm_by_the_root_is_a_quotient(tmp_path: Path) -> None:
    text = "(float[2,6,8] X) => (float Y) <float[8] s = {1, 2, 3, 4, 5, 6, 7, 8}> { Y = RMSNormalization (X, s) }"
    assert converted(text, "mnn", tmp_path, 23) == ["Add", "Div", "Mul", "Mul", "ReduceMean", "Sqrt"]


def test_a_shape_that_says_what_there_is_anyway_plays_no_part(tmp_path: Path) -> None:
    shape = "(m, i, shape)"
    text = SEGNET.replace("{\n", "<int64[4] shape = {2, 3, 6, 8}> {\n", 1).replace("(m, i)", shape)
    expected = ["ConstantOfShape", "MaxPool", "Reshape", "Reshape", "Reshape", "ScatterElements"]
    assert shape in text
    assert converted(text, "openvino", tmp_path, 13) == expected


def test_positions_beside_a_shape_of_its_own_are_declined(tmp_path: Path) -> None:
    text = """(float[1,1,2,2] X, int64[1,1,2,2] i) => (float Y) <int64[4] shape = {1, 1, 5, 5}> {
      Y = MaxUnpool <kernel_shape = [2, 2], strides = [2, 2]> (X, i, shape)
    }"""
    with pytest.raises(RefusedError, match="is not settled"):
        converted(text, "tract", tmp_path, 13)


@pytest.mark.parametrize(("data", "size"), [("float[2,7,4,3]", 4), ("float[2,7,5]", 3), ("float[1,6,3,4,2]", 2)])
def test_a_response_that_a_runtime_has_not_is_a_quotient(data: str, size: int, tmp_path: Path) -> None:
    text = f"({data} X) => (float Y) {{ Y = LRN <size = {size}, alpha = 0.5, bias = 1.5> (X) }}"
    model = onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : 17]> g {text}')
    onnx.save(model, tmp_path / "before.onnx")
    report = padfix.convert(tmp_path / "before.onnx", tmp_path / "after.onnx", target="opencv", reference="spec")
    assert "PF306" in {each.finding.rule for each in report.rewrites}
    assert "Div" in {node.op_type for node in onnx.load(tmp_path / "after.onnx").graph.node}


def test_a_deviation_over_several_images_is_declined_where_they_are_run_one_by_one(tmp_path: Path) -> None:
    text = "(float[2,3,5,4] X) => (float Y) { Y = MeanVarianceNormalization (X) }"
    with pytest.raises(RefusedError, match="each image by itself"):
        converted(text, "ncnn", tmp_path, 13)
