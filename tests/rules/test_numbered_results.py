"""Results whose names are numbers, as PyTorch's exporter gives them, for a runtime that counts what it computes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnx.parser
import pytest
from onnx import numpy_helper

import padfix

HEAD = '<ir_version: 8, opset_import: ["" : 17]> g '


def operators(graph: str, folder: Path, **constants: np.ndarray) -> list[str]:
    source, result = folder / "model.onnx", folder / "result.onnx"
    model = onnx.parser.parse_model(HEAD + graph)
    model.graph.initializer.extend(numpy_helper.from_array(array, name) for name, array in constants.items())
    onnx.save(model, source)
    padfix.convert(source, result, target="mnn")
    assert not padfix.check(result, target="mnn").findings
    return [node.op_type for node in onnx.load(result).graph.node]


@pytest.mark.parametrize(
    ("operator", "weights", "length", "taken", "given", "expected"),
    [
        ("Conv", (4, 3, 3), 7, "X", "4", ["Reshape", "Reshape", "Conv", "Reshape", "Celu"]),
        ("Conv", (4, 3, 3), 7, "12", "Y", ["Reshape", "Reshape", "Conv", "Reshape", "Celu"]),
        ("ConvTranspose", (3, 4, 3), 11, "X", "4", ["Reshape", "Reshape", "ConvTranspose", "Reshape", "Celu"]),
        ("Conv", (4, 3, 3), 7, "X", "Y4", ["Conv", "Celu"]),
    ],
)
def test_windows_of_one_axis_are_written_for_a_plane(
    operator: str, weights: tuple[int, ...], length: int, taken: str, given: str, expected: list[str], tmp_path: Path
) -> None:
    nodes = f'c = {operator} ("{taken}", W) "{given}" = Celu (c)'
    graph = f'(float[1,3,9] "{taken}") => (float[1,4,{length}] "{given}") {{ {nodes} }}'
    weight = np.linspace(-1, 1, int(np.prod(weights)), dtype=np.float32).reshape(weights)
    assert operators(graph, tmp_path, W=weight) == expected


@pytest.mark.parametrize("scale", [np.float32(1.5), np.full(1, 1.5, np.float32)], ids=["number", "list of one"])
def test_a_norm_scaled_by_one_number_is_not_one_by_a_row(scale: np.ndarray, tmp_path: Path) -> None:
    graph = (
        "(float[1,4,9,8] X) => (float[1,4,9,8] Y) { s = Pow (X, two) m = ReduceMean <axes = [-1]> (s) "
        "e = Add (m, tiny) r = Sqrt (e) d = Div (X, r) Y = Mul (d, scale) }"
    )
    two, tiny = np.float32(2), np.float32(1e-6)
    written = operators(graph, tmp_path, two=np.array(two), tiny=np.array(tiny), scale=np.array(scale))
    assert "Pow" not in written
