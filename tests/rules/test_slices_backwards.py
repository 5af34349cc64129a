"""Slices that go backwards, for a runtime that goes further than they say."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnx.parser
import pytest
from onnx import numpy_helper

import padfix

HEAD = '<ir_version: 8, opset_import: ["" : 17]> g '


def slices(lengths: str, folder: Path, **amounts: list[int]) -> list[dict[str, list[int]]]:
    """Return what the Slices of the converted model take, one after another."""
    source, result = folder / "model.onnx", folder / "result.onnx"
    order = ", ".join(amounts)
    graph = f"(float[{lengths}] X) => (float[a, b, c] Y) {{ Y = Slice (X, {order}) }}"
    model = onnx.parser.parse_model(HEAD + graph)
    lists = [numpy_helper.from_array(np.array(each, np.int64), name) for name, each in amounts.items()]
    model.graph.initializer.extend(lists)
    onnx.save(model, source)
    padfix.convert(source, result, target="mnn")
    assert not padfix.check(result, target="mnn").findings
    written = onnx.load(result).graph
    constants = {each.name: numpy_helper.to_array(each).tolist() for each in written.initializer}
    names = ("starts", "ends", "axes", "steps")
    return [dict(zip(names, (constants[name] for name in node.input[1:]), strict=True)) for node in written.node]


@pytest.mark.parametrize("lengths", ["5, 7, 3", "n, 7, 3", "n, k, m"])
def test_a_late_end_is_taken_forwards_before_all_is_turned(lengths: str, tmp_path: Path) -> None:
    taken, turned = slices(lengths, tmp_path, starts=[0, -1], ends=[4, -3], axes=[0, 1], steps=[1, -1])
    assert taken == {"starts": [0, -2], "ends": [4, (1 << 63) - 1], "axes": [0, 1], "steps": [1, 1]}
    assert turned == {"starts": [-1], "ends": [-(1 << 31) + 1], "axes": [1], "steps": [-1]}


@pytest.mark.parametrize("end", [3, 0, -100])
def test_an_early_end_is_left_as_it_is(end: int, tmp_path: Path) -> None:
    (taken,) = slices("5, 7, 3", tmp_path, starts=[-1], ends=[end], axes=[1], steps=[-1])
    assert taken["ends"] == [end]
