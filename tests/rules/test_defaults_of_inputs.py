"""Defaults of inputs, which OpenCV takes for constants, and no rewrite for what can be worked out."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnx.parser
import pytest
from onnx import numpy_helper

import padfix

HEAD = '<ir_version: 8, opset_import: ["" : 17]> g '


def operators(graph: str, folder: Path, target: str, **constants: np.ndarray) -> list[str]:
    source, result = folder / "model.onnx", folder / "result.onnx"
    model = onnx.parser.parse_model(HEAD + graph)
    model.graph.initializer.extend(numpy_helper.from_array(array, name) for name, array in constants.items())
    onnx.save(model, source)
    padfix.convert(source, result, target=target)
    assert not padfix.check(result, target=target).findings
    return [node.op_type for node in onnx.load(result).graph.node]


@pytest.mark.parametrize("computed", ["p = Mul (O, W)", "p = Identity (W)", "m = Add (O, W) p = Sqrt (m)"])
def test_opencv_copies_data_that_are_joined_with_what_is_computed_of_a_default(computed: str, tmp_path: Path) -> None:
    graph = f"(float[2,3,4] X, float[1,3,4] W) => (float[3,3,4] Y) {{ {computed} Y = Concat <axis = 0> (X, p) }}"
    ones = np.ones((1, 3, 4), np.float32)
    found = operators(graph, tmp_path, "opencv@4.14", W=ones, **({"O": ones} if "O" in computed else {}))
    assert found[-2:] == ["Identity", "Concat"]


@pytest.mark.parametrize("before", ["", "v = Identity (W) "])
def test_opencv_cuts_a_default_by_slices(before: str, tmp_path: Path) -> None:
    cut = f"a, b = Split <axis = 1> ({'v' if before else 'W'}, L) p = Add (X, a) Y = Sub (p, b)"
    graph = f"(float[1,4] X, float[1,8] W) => (float[1,4] Y) {{ {before}{cut} }}"
    found = operators(graph, tmp_path, "opencv@4.14", W=np.ones((1, 8), np.float32), L=np.array([4, 4]))
    assert "Split" not in found and found.count("Slice") == 2


def test_what_else_is_fed_is_no_constant(tmp_path: Path) -> None:
    cut = "a, b = Split <axis = 1> (m, L) p = Add (X, a) Y = Sub (p, b)"
    graph = f"(float[1,4] X, float[1,8] W, float[1,8] V) => (float[1,4] Y) {{ m = Mul (W, V) {cut} }}"
    found = operators(graph, tmp_path, "opencv@4.14", W=np.ones((1, 8), np.float32), L=np.array([4, 4]))
    assert found == ["Mul", "Split", "Add", "Sub"]
