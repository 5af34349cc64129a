"""What is joined of unlike many axes, and lists that are compared before the model runs."""

from __future__ import annotations

from pathlib import Path

import onnx
import onnx.parser
import pytest

import padfix


def types_of(folder: Path, graph: str, target: str, opset: int = 13) -> list[str]:
    source, result = folder / "model.onnx", folder / "result.onnx"
    onnx.save(onnx.parser.parse_model(f'<ir_version: 9, opset_import: ["" : {opset}]> g {graph}'), source)
    padfix.convert(source, result, target=target)
    assert not padfix.check(result, target=target).findings
    return [node.op_type for node in onnx.load(result).graph.node]


@pytest.mark.parametrize(("inputs", "expected"), [("Z, X", ["Add", "Div"]), ("X, Z", ["Mean"])])
def test_a_mean_for_tract_begins_with_what_has_most_axes(inputs: str, expected: list[str], tmp_path: Path) -> None:
    graph = f"(float[1,3,4,6] X, float[4,6] Z) => (float Y) {{ Y = Mean ({inputs}) }}"
    assert types_of(tmp_path, graph, "tract") == expected


@pytest.mark.parametrize("target", ["tract", "opencv", "opencv@4.14"])
def test_the_factor_of_a_swish_is_written(target: str, tmp_path: Path) -> None:
    graph = "(float[1,3,4,6] X) => (float Y) { Y = Swish <alpha = 1.7> (X) }"
    assert types_of(tmp_path, graph, target, 24) == ["Mul", "Sigmoid", "Mul"]


@pytest.mark.parametrize(("lengths", "stays"), [("4", False), ("1,4", True)])
def test_a_list_that_is_compared_beforehand_is_a_constant(lengths: str, *, stays: bool, tmp_path: Path) -> None:
    graph = f"""(float[3,4] X) => (float Y) <float[{lengths}] w = {{0.5, 1.4, 0.7, 1.1}}, float v = {{1.0}}>
    {{ B = Less (w, v) Y = Where (B, X, w) }}"""
    assert ("Less" in types_of(tmp_path, graph, "opencv@4.14")) == stays
