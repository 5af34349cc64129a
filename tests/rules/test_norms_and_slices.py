"""Norms that are spelled out, which MNN takes for others, its LayerNormalization, and slices from before the start."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx.parser
import onnxruntime
import pytest

import padfix

MEAN = "m = ReduceMean <axes = [%s]> (X) d = Sub (X, m)"
ROOT = "v = ReduceMean <axes = [%s]> (q) w = Add (v, e) s = Sqrt (w)"
POWER, PRODUCT, SCALED = "q = Pow (d, two)", "q = Mul (d, d)", "n = Div (d, s) Y = Mul (n, g)"
AS_TENSORFLOW_WRITES = "r = Reciprocal (s) k = Mul (r, g) a = Mul (X, k) b = Mul (m, k) Y = Sub (a, b)"
OF_SQUARES = "n = Div (X, s) Y = Mul (n, g)"


def saved(folder: Path, nodes: str, shape: str = "2,4,5", scale: str = "5", opset: int = 13) -> Path:
    numbers = ", ".join(str(each) for each in np.linspace(0.5, 2, int(np.prod([int(n) for n in scale.split(",")]))))
    model = onnx.parser.parse_model(f"""<ir_version: 8, opset_import: ["" : {opset}]>
        g (float[{shape}] X) => (float[{shape}] Y)
        <float[{scale}] g = {{{numbers}}}, float e = {{0.001}}, float two = {{2}}> {{ {nodes} }}""")
    onnx.save(model, folder / "model.onnx")
    return folder / "model.onnx"


def same(source: Path, result: Path, shape: tuple[int, ...]) -> None:
    data = {"X": np.random.default_rng(0).standard_normal(shape).astype(np.float32)}
    (wanted,), (found,) = (onnxruntime.InferenceSession(each).run(None, data) for each in (source, result))
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("axes", "scale", "square", "rest", "written"),
    [
        ("1", "5", POWER, SCALED, "Mul"),
        ("2", "4,1", POWER, SCALED, "Mul"),
        ("2", "5", POWER, SCALED, "Pow"),
        ("1", "5", PRODUCT, SCALED, "Mul"),
        ("1", "5", PRODUCT, AS_TENSORFLOW_WRITES, "Pow"),
        ("1,2", "5", PRODUCT, AS_TENSORFLOW_WRITES, "Pow"),
        ("2", "5", PRODUCT, AS_TENSORFLOW_WRITES, "Mul"),
        ("1", "5", POWER, AS_TENSORFLOW_WRITES, "Pow"),
        ("1", "5", "q = Mul (X, X)", OF_SQUARES, "Abs"),
        ("2", "1", "q = Pow (X, two)", OF_SQUARES, "Abs"),
        ("2", "5", "q = Pow (X, two)", OF_SQUARES, "Pow"),
    ],
)
def test_a_norm_of_other_axes_than_rows_is_squared_otherwise(
    axes: str, scale: str, square: str, rest: str, written: str, tmp_path: Path
) -> None:
    mean = "" if rest == OF_SQUARES else MEAN % axes
    source = saved(tmp_path, f"{mean} {square} {ROOT % axes} {rest}", scale=scale)
    padfix.convert(source, tmp_path / "result.onnx", target="mnn")
    assert not padfix.check(tmp_path / "result.onnx", target="mnn").findings
    nodes = onnx.load(tmp_path / "result.onnx").graph.node
    squares = [each.op_type for each in nodes if len(set(each.input)) < len(each.input) or each.op_type == "Pow"]
    assert squares == ["Mul" if written == "Abs" else written]
    assert ("Abs" in [each.op_type for each in nodes]) is (written == "Abs")
    same(source, tmp_path / "result.onnx", (2, 4, 5))


@pytest.mark.parametrize(("axis", "written"), [(0, -3), (-3, -3), (1, 1)])
def test_a_norm_of_all_axes_counts_from_the_end(axis: int, written: int, tmp_path: Path) -> None:
    scale = {0: "2,4,5", -3: "2,4,5", 1: "4,5"}[axis]
    source = saved(tmp_path, f"Y = LayerNormalization <axis = {axis}> (X, g)", scale=scale, opset=17)
    padfix.convert(source, tmp_path / "result.onnx", target="mnn")
    (node,) = onnx.load(tmp_path / "result.onnx").graph.node
    assert node.attribute[0].i == written


@pytest.mark.parametrize(("target", "opset"), [("mnn", 9), ("mnn", 13), ("ncnn", 13), ("tract", 9)])
@pytest.mark.parametrize(("start", "length", "cut"), [(-9, "5", 0), (-5, "5", -5), (-(1 << 31), "L", 0), (-9, "L", -9)])
def test_a_slice_starts_with_the_first_element(
    start: int, length: str, cut: int, target: str, opset: int, tmp_path: Path
) -> None:
    if (target, cut) == ("mnn", -9):
        pytest.skip("counted at run time")
    told = f"Slice <starts = [{start}], ends = [3], axes = [2]> (X)"
    constants = f"<int64[1] s = {{{start}}}, int64[1] e = {{3}}, int64[1] a = {{2}}>"
    text = f"""<ir_version: 8, opset_import: ["" : {opset}]>
        g (float[1,4,{length}] X) => (float[1,4,M] Y) {constants if opset > 9 else ""} {{
            Y = {told if opset == 9 else "Slice (X, s, e, a)"} }}"""
    onnx.save(onnx.parser.parse_model(text), tmp_path / "model.onnx")
    padfix.convert(tmp_path / "model.onnx", tmp_path / "result.onnx", target=target)
    graph = onnx.load(tmp_path / "result.onnx").graph
    (node,) = (each for each in graph.node if each.op_type == "Slice")
    found = {each.name: list(each.ints) for each in node.attribute}
    values = {each.name: onnx.numpy_helper.to_array(each).tolist() for each in graph.initializer}
    values |= {each.output[0]: onnx.numpy_helper.to_array(each.attribute[0].t).tolist() for each in graph.node[:-1]}
    assert (found["starts"] if "starts" in found else values[node.input[1]]) == [cut]


@pytest.mark.parametrize("opset", [9, 13])
@pytest.mark.parametrize(("start", "is_counted"), [(-6, True), (-2, False), (1, False)])
def test_a_start_before_the_end_of_an_open_axis_is_counted_at_run_time(
    start: int, is_counted: bool, opset: int, tmp_path: Path
) -> None:
    told = f"Slice <starts = [{start}, 0], ends = [99, -1], axes = [2, 1]> (X)"
    constants = f"<int64[2] s = {{{start}, 0}}, int64[2] e = {{99, -1}}, int64[2] a = {{2, 1}}>"
    text = f"""<ir_version: 8, opset_import: ["" : {opset}]>
        g (float[1,4,L] X) => (float[1,3,M] Y) {constants if opset > 9 else ""} {{
            Y = {told if opset == 9 else "Slice (X, s, e, a)"} }}"""
    onnx.save(onnx.parser.parse_model(text), tmp_path / "model.onnx")
    padfix.convert(tmp_path / "model.onnx", tmp_path / "result.onnx", target="mnn")
    assert not padfix.check(tmp_path / "result.onnx", target="mnn").findings
    nodes = onnx.load(tmp_path / "result.onnx").graph.node
    assert ("Max" in [each.op_type for each in nodes]) is is_counted
    for length in (1, 4, 6, 9):
        same(tmp_path / "model.onnx", tmp_path / "result.onnx", (1, 4, length))
