"""Lines of open length in an open batch as planes of one column, of which a Reshape copies every length."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnx.parser
import pytest

import padfix
from tests.support.one_node import run

RESIZE = """(float[n,4,l] X) => (float Y) <float[3] k = {1, 1, 2}>
{ Y = Resize <mode = "%s", coordinate_transformation_mode = "%s", nearest_mode = "floor"> (X, , k) }"""
TRANSPOSED = (
    "(float[n,2,l] X) => (float Y) <float[2,1,2] w = {1, 2, 3, 4}> { Y = ConvTranspose <strides = [2], %s> (X, w) }"
)


@pytest.mark.parametrize(
    ("graph", "target", "expected"),
    [
        (RESIZE % ("nearest", "asymmetric"), "opencv@4.14", ["Reshape", "Resize", "Gather"]),
        (RESIZE % ("nearest", "asymmetric"), "ncnn", ["Unsqueeze", "Resize", "Squeeze"]),
        (RESIZE % ("linear", "half_pixel"), "mnn", ["Unsqueeze", "Resize", "Squeeze"]),
        (TRANSPOSED % "group = 1", "opencv", ["Reshape", "ConvTranspose", "Reshape"]),
        (TRANSPOSED % "pads = [1, 0], group = 2", "opencv@4.14", None),
    ],
)
def test_lines_are_planes_of_one_column(graph: str, target: str, expected: list[str] | None, tmp_path: Path) -> None:
    model = onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : 17]> g {graph}')
    onnx.save(model, tmp_path / "model.onnx")
    padfix.convert(tmp_path / "model.onnx", tmp_path / "result.onnx", target=target)
    assert not padfix.check(tmp_path / "result.onnx", target=target).findings
    result = onnx.load(tmp_path / "result.onnx")
    assert expected is None or [node.op_type for node in result.graph.node if node.op_type != "Constant"] == expected
    channels = 4 if "Resize" in graph else 2
    for shape in ((2, channels, 7), (1, channels, 1)):
        feeds = {"X": np.random.default_rng(0).standard_normal(shape).astype(np.float32)}
        np.testing.assert_allclose(run(result, feeds)[0], run(model, feeds)[0], atol=1e-6)
