"""Regions of interest that are resized with an aspect ratio to keep, where a runtime goes by the scale."""

from __future__ import annotations

from pathlib import Path

import onnx
import onnx.parser
import pytest

import padfix

GRAPH = (
    '<ir_version: 8, opset_import: ["" : 18]> g (float[1,2,3,4] X) => (float[1,2,h,w] Y) '
    "<float[4] roi = {{0.05, 0.1, 0.9, 1.1}}, int64[2] sizes = {{4, 7}}> "
    '{{ Y = Resize <axes = [2, 3], mode = "linear", coordinate_transformation_mode = "{}", '
    'keep_aspect_ratio_policy = "{}"> (X, roi, , sizes) }}'
)


@pytest.mark.parametrize(
    ("coordinates", "policy", "found"),
    [
        ("tf_crop_and_resize", "not_smaller", True),
        ("tf_crop_and_resize", "not_larger", True),
        ("tf_crop_and_resize", "stretch", False),
        ("half_pixel", "not_larger", False),
    ],
)
def test_tract_goes_by_the_scale(coordinates: str, policy: str, found: bool, tmp_path: Path) -> None:
    source, result = tmp_path / "model.onnx", tmp_path / "result.onnx"
    onnx.save(onnx.parser.parse_model(GRAPH.format(coordinates, policy)), source)
    assert any(each.rule == "PF205" for each in padfix.check(source, target="tract").findings) is found
    padfix.convert(source, result, target="tract")
    assert not padfix.check(result, target="tract").findings
    assert ("Resize" in [node.op_type for node in onnx.load(result).graph.node]) is not found
