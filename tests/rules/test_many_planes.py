"""GatherND of planes by many tuples, as PyTorch's exporter writes an interpolation to the nearest elements."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnx.parser
import pytest
from onnx import numpy_helper

import padfix


@pytest.mark.parametrize(
    ("lengths", "indices", "is_left"),
    [
        ((7, 7, 2, 8), (14, 9, 2), False),
        ((7, 7, 2, 8), (200, 1), False),
        ((7, 7, 2, 8), (8, 8, 2), True),
        ((7, 7, 8), (14, 9, 2), True),
        ((7, 7, 2, 8), (14, 9, 3), True),
    ],
)
def test_qnn_picks_many_planes_by_rows(
    lengths: tuple[int, ...], indices: tuple[int, ...], is_left: bool, tmp_path: Path
) -> None:
    source, result = tmp_path / "model.onnx", tmp_path / "result.onnx"
    given = [*indices[:-1], *lengths[indices[-1] :]]
    text = f'<ir_version: 8, opset_import: ["" : 17]> g (float{[*lengths]} X) => (float{given} Y) '
    model = onnx.parser.parse_model(f"{text} {{ n = Neg (X) Y = GatherND (n, places) }}")
    count = int(np.prod(indices))
    places = (np.arange(count, dtype=np.int64) % 7 % min(lengths[: indices[-1]])).reshape(indices)
    model.graph.initializer.append(numpy_helper.from_array(places, "places"))
    onnx.save(model, source)
    padfix.convert(source, result, target="qnn")
    operators = [node.op_type for node in onnx.load(result).graph.node]
    assert ("GatherND" in operators) is is_left
    assert not padfix.check(result, target="qnn").findings
