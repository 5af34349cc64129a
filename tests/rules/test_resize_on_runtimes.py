"""A Resize whose lengths are open, or put positions so near to another element that a runtime takes that."""

from __future__ import annotations

from pathlib import Path

import onnx
import onnx.parser
import pytest

import padfix
from padfix.errors import RefusedError

ASYMMETRIC = 'mode = "nearest", coordinate_transformation_mode = "asymmetric", nearest_mode = "floor"'
ALIGNED = 'mode = "nearest", coordinate_transformation_mode = "align_corners", nearest_mode = "floor"'
OWN_BATCH = "own = Slice (of_data, zero, two)"


def measured(attributes: str, batch: str = OWN_BATCH) -> str:
    """Return a model that resizes to the height and width of another input."""
    return f"""<ir_version: 9, opset_import: ["" : 17]>
        main (float[N,3,H,W] X, float[N,3,A,B] Z) => (float[N,3,C,D] Y)
        <int64[1] zero = {{0}}, int64[1] two = {{2}}, int64[1] four = {{4}}, int64[1] half = {{2}}> {{
            data = Sin (X)
            of_data = Shape (data) of_other = Shape (Z)
            {batch} other = Slice (of_other, two, four)
            sizes = Concat <axis = 0> (own, other)
            Y = Resize <{attributes}> (data, , , sizes) }}"""


def scaled(scales: str) -> str:
    return f"""<ir_version: 9, opset_import: ["" : 17]>
        main (float[N,3,H,W] X) => (float[N,3,C,D] Y) <float[4] scales = {{1, 1, {scales}}}> {{
            Y = Resize <{ASYMMETRIC}> (X, , scales) }}"""


def convert(text: str, target: str, folder: Path) -> list[str]:
    onnx.save(onnx.parser.parse_model(text), folder / "before.onnx")
    padfix.convert(folder / "before.onnx", folder / "after.onnx", target=target)
    return [each.op_type for each in onnx.load(folder / "after.onnx").graph.node]


@pytest.mark.parametrize("target", ["ncnn", "opencv"])
def test_scales_in_place_of_sizes_give_them_in_double_precision_too(target: str, tmp_path: Path) -> None:
    """5 times the float32 next to 9 / 5 is 8 for ONNX's inference, and ONNX Runtime does not load what reads 9."""
    text = f"""<ir_version: 8, opset_import: ["" : 13]>
        main (float[N,2,5,6] X, float[N,2,9,11] Z) => (float[N,2,9,11] Y)
        <int64[1] nought = {{0}}, int64[1] two = {{2}}, int64[2] rest = {{9, 11}}> {{
            of_data = Shape (X) own = Slice (of_data, nought, two) sizes = Concat <axis = 0> (own, rest)
            R = Resize <{ASYMMETRIC}> (X, , , sizes) Y = Add (R, Z) }}"""
    assert convert(text, target, tmp_path) == ["Resize", "Add"]


@pytest.mark.parametrize("mode", ["nearest", "linear"])
def test_volumes_of_an_empty_batch_are_resized(mode: str, tmp_path: Path) -> None:
    text = f"""<ir_version: 8, opset_import: ["" : 18]>
        main (float[N,2,3,4,5] X) => (float[N,2,5,7,9] Y) <float[5] scales = {{1, 1, 1.7, 1.8, 1.9}}> {{
            Y = Resize <mode = "{mode}"> (X, , scales) }}"""
    assert "Resize" not in convert(text, "ncnn", tmp_path)


@pytest.mark.parametrize(
    ("text", "target"),
    [
        (measured(ASYMMETRIC), "openvino"),
        (measured('mode = "linear"'), "mnn"),
        (measured(ASYMMETRIC), "opencv@5.0.0.93"),
        (scaled("1.5, 0.7"), "openvino"),
        (scaled("1.2, 1"), "openvino"),
    ],
)
def test_what_keeps_the_batch_is_left_as_it_is(text: str, target: str, tmp_path: Path) -> None:
    assert "Resize" in convert(text, target, tmp_path)


@pytest.mark.parametrize(
    ("text", "target", "reason"),
    [
        (measured(ASYMMETRIC, "own = Slice (of_other, zero, two)"), "openvino", "along the batch"),
        (
            measured(ASYMMETRIC, "same = Slice (of_data, zero, two) own = Mul (same, half)"),
            "mnn",
            "the batch or the channels",
        ),
        (measured(ALIGNED), "openvino", "single precision rounds"),
        (measured(ASYMMETRIC.replace("floor", "ceil")), "opencv@5.0.0.93", "inverse of the scale rounds"),
        (scaled("1.2, 0.7"), "openvino", "leaves an axis as it is"),
        (scaled("1.2, 1.2"), "mnn", "change no length"),
    ],
)
def test_what_may_be_wrong_at_some_length_is_declined(text: str, target: str, reason: str, tmp_path: Path) -> None:
    with pytest.raises(RefusedError, match=reason):
        convert(text, target, tmp_path)


@pytest.mark.parametrize(("before", "after", "left"), [(26, 44, "Gather"), (6, 74, "Gather"), (26, 52, "Resize")])
def test_opencv_takes_neighbours_where_positions_round_otherwise(
    before: int, after: int, left: str, tmp_path: Path
) -> None:
    text = f"""<ir_version: 9, opset_import: ["" : 17]> main (float[1,2,{before},4] X) => (float[1,2,{after},4] Y)
        <int64[4] sizes = {{1, 2, {after}, 4}}> {{ Y = Resize <{ASYMMETRIC}> (X, , , sizes) }}"""
    assert convert(text, "opencv", tmp_path) == [left]


@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
def test_opencv_resizes_by_fed_sizes_where_batch_and_channels_are_kept(mode: str, tmp_path: Path) -> None:
    attributes = f'mode = "{mode}", coordinate_transformation_mode = "half_pixel"'
    head = '<ir_version: 9, opset_import: ["" : 17]> main (float[2,3,6,7] X, int64[%d] fed) => (float[2,3,C,D] Y) '
    kept = f"<int64[2] own = {{2, 3}}> {{ s = Concat <axis = 0> (own, fed) Y = Resize <{attributes}> (X, , , s) }}"
    target = "opencv@5.0.0.93"
    assert convert(head % 2 + kept, target, tmp_path) == ["Concat", "Resize"]
    whichever = (head % 4).replace("2,3,C,D", "N,M,C,D") + f"{{ Y = Resize <{attributes}> (X, , , fed) }}"
    with pytest.raises(RefusedError, match="only known at run time"):
        convert(whichever, target, tmp_path)
