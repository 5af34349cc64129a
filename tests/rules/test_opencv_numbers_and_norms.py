"""Constants that OpenCV holds otherwise than ONNX, and the inverse of a norm that it makes a layer of."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import onnx
import onnx.parser
import pytest
from onnx import numpy_helper

import padfix

NEWER, OLDER = "opencv@5.0.0.93", "opencv@4.14.0"


def written(graph: str, folder: Path, target: str = NEWER, opset: int = 17, **constants: np.ndarray) -> onnx.GraphProto:
    source, result = folder / "model.onnx", folder / "result.onnx"
    model = onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : {opset}]> g {graph}')
    model.graph.initializer.extend(numpy_helper.from_array(array, name) for name, array in constants.items())
    onnx.save(model, source)
    padfix.convert(source, result, target=target)
    assert not padfix.check(result, target=target).findings
    return onnx.load(result).graph


def held(graph: onnx.GraphProto) -> list[str]:
    return [attribute.name for node in graph.node if node.op_type == "Constant" for attribute in node.attribute]


@pytest.mark.parametrize(
    ("nodes", "expected"),
    [
        ("m = Constant <value_ints = [3, 2, 1]> () Y = Add (X, m)", "value"),
        ("m = Constant <value_ints = [3, 2, 1]> () Y = Concat <axis = 0> (X, m)", "value"),
        ("m = Constant <value_int = 3> () i = Unsqueeze (m, z) Y = ScatterElements (X, z, i)", "value"),
        ("m = Constant <value_ints = [3, 2, 1]> () i = Identity (m) Y = Where (k, X, i)", "value"),
        ("m = Constant <value_ints = [0, 2]> () Y = Gather (X, m)", "value_ints"),
        ("m = Constant <value_ints = [3, 1]> () Y = Reshape (X, m)", "value_ints"),
        ("m = Constant <value_ints = [1]> () e = Concat <axis = 0> (m, m, m) Y = Tile (X, m)", "value_ints"),
    ],
)
def test_integers_that_meet_others_are_tensors(nodes: str, expected: str, tmp_path: Path) -> None:
    graph = f"(int64[3] X) => (int64[a] Y) {{ {nodes} }}".replace("[a]", "[a, b]" if "Reshape" in nodes else "[a]")
    constants = {"z": np.array([0]), "k": np.array([True, False, True])}
    read = {name: array for name, array in constants.items() if name in re.findall(r"\w+", nodes)}
    assert held(written(graph, tmp_path, **read)) == [expected]


@pytest.mark.parametrize(
    ("nodes", "expected"),
    [
        ("c = Constant <value_int = 1> () g = Gather <axis = 1> (X, c) Y = Softmax <axis = 1> (g)", "value"),
        (
            "c = Constant <value_float = 3.0> () u = Unsqueeze (c, z) e = Expand (u, s) Y = Concat <axis = 1> (X, e)",
            "value",
        ),
        ("c = Constant <value_float = 3.0> () Y = Mul (X, c)", "value_float"),
    ],
)
def test_a_number_whose_axes_count_is_a_tensor(nodes: str, expected: str, tmp_path: Path) -> None:
    graph = f"(float[2,2,4,6] X) => (float[{'a,b,c' if 'Gather' in nodes else 'a,b,c,d'}] Y) {{ {nodes} }}"
    constants = {"z": np.array([0]), "s": np.array([2, 1, 4, 6])} if "Expand" in nodes else {}
    assert held(written(graph, tmp_path, **constants))[0] == expected


def test_a_scale_beside_a_zero_point_is_a_tensor(tmp_path: Path) -> None:
    nodes = "c = Constant <value_float = 0.5> () Y = QuantizeLinear (X, c, zero)"
    graph = f"(float[2,3,4] X) => (uint8[2,3,4] Y) {{ {nodes} }}"
    assert held(written(graph, tmp_path, zero=np.array(120, np.uint8))) == ["value"]


@pytest.mark.parametrize("shift", [np.array(2, np.uint8), np.array([2], np.uint8)])
def test_one_number_to_shift_by_stays(shift: np.ndarray, tmp_path: Path) -> None:
    graph = '(uint8[4,7] X) => (uint8[4,7] Y) { Y = BitShift <direction = "LEFT"> (X, by) }'
    assert [node.op_type for node in written(graph, tmp_path, by=shift).node] == ["BitShift"]


def test_a_constant_without_elements_is_not_joined(tmp_path: Path) -> None:
    graph = "(int64[3] X) => (int64[a] Y) { Y = Concat <axis = 0> (X, e, X) }"
    (node,) = written(graph, tmp_path, e=np.zeros(0, np.int64)).node
    assert [*node.input] == ["X", "X"]


@pytest.mark.parametrize("target", [NEWER, OLDER])
@pytest.mark.parametrize(
    ("axes", "last"),
    [("[1]", "Y = Mul (X, i)"), ("[1, 3]", "Y = Mul (X, i)"), ("[3]", "j = Mul (i, k) Y = Mul (X, j)")],
)
def test_the_inverse_of_a_norm_is_apart_from_the_product(axes: str, last: str, target: str, tmp_path: Path) -> None:
    nodes = f"q = Mul (X, X) s = ReduceSum <axes = {axes}> (q) m = Max (s, e) r = Sqrt (m) i = Reciprocal (r) {last}"
    graph = f"(float[2,3,4,6] X) => (float[2,3,4,6] Y) {{ {nodes} }}"
    scale = {"k": np.array(0.37, np.float32)} if "k" in last else {}
    nodes_written = written(graph, tmp_path, target, 11, e=np.array(1e-12, np.float32), **scale).node
    assert "Identity" in [node.op_type for node in nodes_written]


def test_axes_that_are_an_input_make_no_layer_of_a_norm(tmp_path: Path) -> None:
    nodes = "q = Mul (X, X) s = ReduceSum (q, a) m = Max (s, e) r = Sqrt (m) i = Reciprocal (r) Y = Mul (X, i)"
    graph = f"(float[2,3,4,6] X) => (float[2,3,4,6] Y) {{ {nodes} }}"
    kept = written(graph, tmp_path, OLDER, 13, a=np.array([3]), e=np.array(1e-12, np.float32))
    assert "Identity" not in [node.op_type for node in kept.node]


@pytest.mark.parametrize(
    ("lengths", "pads", "expected"),
    [
        ("H,W", [0, 0, 0, 0, 0, 0, 0, 1], "Conv"),
        ("H,W", [0, 0, 0, 1, 0, 0, 0, 1], "SpaceToDepth"),
        ("4,7", [0, 0, 0, 0, 0, 0, 0, 1], "SpaceToDepth"),
    ],
)
def test_blocks_of_a_padded_open_length(lengths: str, pads: list[int], expected: str, tmp_path: Path) -> None:
    nodes = "p = Pad (X, a) r = Relu (p) Y = SpaceToDepth <blocksize = 2> (r)"
    graph = written(f"(float[1,2,{lengths}] X) => (float[1,8,h,w] Y) {{ {nodes} }}", tmp_path, OLDER, a=np.array(pads))
    assert graph.node[-1].op_type == expected


@pytest.mark.parametrize("operator", ["Add", "Sub", "Mul", "Div", "Max", "Min"])
def test_arithmetic_with_nothing_is_with_a_part_of_a_constant(operator: str, tmp_path: Path) -> None:
    nodes = f"m = {operator} (e, X) r = Reshape (m, n) Y = Concat <axis = 0> (X, r)"
    graph = f"(float[3] X) => (float[a] Y) {{ {nodes} }}"
    nodes_written = written(graph, tmp_path, e=np.zeros((0, 1), np.float32), n=np.array([-1])).node
    assert [node.op_type for node in nodes_written][:2] == ["Slice", operator]


@pytest.mark.parametrize("target", [NEWER, OLDER])
@pytest.mark.parametrize("operator", ["Abs", "Neg", "Identity", "Relu"])
def test_what_is_computed_of_nothing_is_left_out(operator: str, target: str, tmp_path: Path) -> None:
    graph = f"(float[3] X) => (float[a] Y) {{ m = {operator} (e) Y = Concat <axis = 0> (X, m, X) }}"
    nodes_written = written(graph, tmp_path, target, e=np.zeros(0, np.float32)).node
    assert operator not in [node.op_type for node in nodes_written]
