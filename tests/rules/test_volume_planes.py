"""A convolution of a volume with weights of the caller as convolutions of planes, which MNN has."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnx.parser
import onnxruntime
import pytest

import padfix


@pytest.mark.parametrize(
    ("data", "weights", "attributes", "convolutions"),
    [
        ((1, 4, 5, 6, 7), (6, 2, 3, 2, 3), "group = 2, pads = [1, 1, 0, 1, 0, 1]", 2),
        ((2, 3, 9, 8, 7), (4, 3, 3, 3, 3), 'auto_pad = "SAME_UPPER", strides = [2, 1, 3]', 3),
        ((1, 2, 9, "H", 7), (2, 1, 2, 3, 3), "group = 2, dilations = [2, 1, 2], strides = [2, 2, 1]", 2),
        (("N", 2, 6, 5, 5), (3, 2, 2, 1, 3), "kernel_shape = [2, 1, 3]", 1),
        ((1, 2, "D", 5, 5), (3, 2, 2, 3, 3), "pads = [1, 1, 1, 0, 1, 1]", 2),
    ],
)
def test_planes_take_the_place_of_a_volume(
    data: tuple[int | str, ...], weights: tuple[int, ...], attributes: str, convolutions: int, tmp_path: Path
) -> None:
    bias = ", ".join(map(str, range(weights[0])))
    text = f"""g (float[{",".join(map(str, data))}] X, float[{",".join(map(str, weights))}] W) => (float[a,b,c,d,e] Y)
      <float[{weights[0]}] b = {{{bias}}}> {{ Y = Conv <{attributes}> (X, W, b) }}"""
    source, result = tmp_path / "model.onnx", tmp_path / "result.onnx"
    onnx.save(onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : 17]> {text}'), source)
    padfix.convert(source, result, target="mnn")
    assert not padfix.check(result, target="mnn").findings
    assert [each.op_type for each in onnx.load(result).graph.node].count("Conv") == convolutions
    random = np.random.default_rng(1)
    for length in (6, 9):
        shape = [each if isinstance(each, int) else length for each in data]
        feeds = {"X": random.standard_normal(shape), "W": random.standard_normal(weights)}
        feeds = {name: each.astype(np.float32) for name, each in feeds.items()}
        before, after = (onnxruntime.InferenceSession(each).run(None, feeds)[0] for each in (source, result))
        np.testing.assert_allclose(before, after, rtol=1e-4, atol=1e-5)


def test_two_open_lengths_are_one_too_many(tmp_path: Path) -> None:
    text = "g (float[N,2,D,5,5] X, float[3,2,2,1,1] W) => (float[a,b,c,d,e] Y) { Y = Conv (X, W) }"
    onnx.save(onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : 17]> {text}'), tmp_path / "model.onnx")
    with pytest.raises(padfix.PadfixError, match="left open"):
        padfix.convert(tmp_path / "model.onnx", tmp_path / "result.onnx", target="mnn")
