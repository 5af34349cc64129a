"""TopK: the places of equal numbers, which runtimes give in another order than the first of them first."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx.parser
import onnxruntime
import pytest

import padfix

COMPARED = {"openvino": ["Equal"], "mnn": ["Max", "Min", "LessOrEqual"]}


def saved(folder: Path, shape: str, count: int, opset: int = 13) -> Path:
    gives = ",".join([*shape.split(",")[:-1], str(count)])
    model = onnx.parser.parse_model(f"""<ir_version: 8, opset_import: ["" : {opset}]>
        g (float[{shape}] X) => (float[{gives}] V, int64[{gives}] P) <int64[1] k = {{{count}}}> {{
            V, P = TopK (X, k) }}""")
    onnx.save(model, folder / "model.onnx")
    return folder / "model.onnx"


@pytest.mark.parametrize("target", COMPARED)
@pytest.mark.parametrize(("shape", "opset"), [("2,3,12", 13), ("N,12", 13), ("12", 11)])
def test_places_of_equal_numbers_are_counted(shape: str, opset: int, target: str, tmp_path: Path) -> None:
    source, result = saved(tmp_path, shape, 8, opset), tmp_path / "result.onnx"
    padfix.convert(source, result, target=target)
    assert not padfix.check(result, target=target).findings
    types = [node.op_type for node in onnx.load(result).graph.node]
    assert [each for each in COMPARED["openvino"] + COMPARED["mnn"] if each in types] == COMPARED[target]
    data = np.random.default_rng(1).integers(0, 3, [4 if each == "N" else int(each) for each in shape.split(",")])
    given = {"X": data.astype(np.float32)}
    before, after = (onnxruntime.InferenceSession(each).run(None, given) for each in (source, result))
    for wanted, found in zip(before, after, strict=True):
        np.testing.assert_array_equal(found, wanted)


def test_places_of_equal_integers_are_counted(tmp_path: Path) -> None:
    model = onnx.parser.parse_model("""<ir_version: 8, opset_import: ["" : 14]>
        g (int64[3,4] X) => (int64[3,2] V, int64[3,2] P) <int64[1] k = {2}> { V, P = TopK (X, k) }""")
    onnx.save(model, tmp_path / "model.onnx")
    padfix.convert(tmp_path / "model.onnx", tmp_path / "result.onnx", target="mnn")
    assert "Equal" in [node.op_type for node in onnx.load(tmp_path / "result.onnx").graph.node]


@pytest.mark.parametrize(("shape", "count", "target"), [("2,12", 5, "openvino"), ("2,12", 8, "tract")])
def test_places_stay_where_the_first_comes_first(shape: str, count: int, target: str, tmp_path: Path) -> None:
    assert not padfix.check(saved(tmp_path, shape, count), target=target).findings


@pytest.mark.parametrize("is_sorted", [0, 1])
def test_unique_elements_of_a_matrix_are_those_of_a_list(is_sorted: int, tmp_path: Path) -> None:
    source, result = tmp_path / "model.onnx", tmp_path / "result.onnx"
    onnx.save(
        onnx.parser.parse_model(f"""<ir_version: 8, opset_import: ["" : 13]>
        g (float[2,5] X) => (float[N] Y, int64[10] P) {{ Y, F, P = Unique <sorted = {is_sorted}> (X) }}"""),
        source,
    )
    padfix.convert(source, result, target="tvm")
    assert [node.op_type for node in onnx.load(result).graph.node] == ["Reshape", "Unique"]
    given = {"X": np.array([[3, 1, 3, 2, 1], [2, 2, 3, 0, 1]], np.float32)}
    before, after = (onnxruntime.InferenceSession(each).run(None, given) for each in (source, result))
    for wanted, found in zip(before, after, strict=True):
        np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize(("attributes", "is_declined"), [("axis = 0", True), ("axis = 1, sorted = 0", False)])
def test_unique_rows_are_not_sorted_where_a_runtime_leaves_that_out(
    attributes: str, *, is_declined: bool, tmp_path: Path
) -> None:
    source = tmp_path / "model.onnx"
    graph = f"g (float[4,3] X) => (float[M,N] Y) {{ Y = Unique <{attributes}> (X) }}"
    onnx.save(onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : 13]> {graph}'), source)
    found = padfix.check(source, target="onnx2tf").findings
    assert [each.rule for each in found] == ["PF306"] * is_declined
