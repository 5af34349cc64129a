"""Bytes, exponents and depths of other types, curves with factors of their own, and places halfway between elements."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnx.parser
import onnxruntime
import pytest

import padfix
from padfix.errors import RefusedError


def written(folder: Path, graph: str, target: str, opset: int = 17) -> list[str]:
    model = onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : {opset}]> g {graph}')
    onnx.save(model, folder / "model.onnx")
    padfix.convert(folder / "model.onnx", folder / "result.onnx", target=target)
    assert not padfix.check(folder / "result.onnx", target=target).findings
    return [node.op_type for node in onnx.load(folder / "result.onnx").graph.node]


REFLECTED = '(float[1,2,4,5] X, float[1,3,3,2] G) => (float Y) { Y = GridSample <padding_mode = "reflection"> (X, G) }'
SAMPLED = '(float[1,2,4,5] X, float[1,3,3,2] G) => (float Y) { Y = GridSample <mode = "nearest", %s> (X, G) }'


@pytest.mark.parametrize(
    ("graph", "target", "expected"),
    [
        (
            REFLECTED,
            "ncnn",
            ["Add", "Mul", "Floor", "Sub", "Mul", "Add", "Abs", "Mul", "Add", "GridSample"],
        ),
        (SAMPLED % "align_corners = 1", "ncnn", ["Add", "Mul", "Mul", "Round", "Mul", "Add", "GridSample"]),
        (SAMPLED % "align_corners = 0", "ncnn", ["Add", "Mul", "Sub", "Mul", "Round", "Mul", "Add", "GridSample"]),
        ("(float[2,3] X, int64[2,3] E) => (float Y) { Y = Pow (X, E) }", "mnn", ["Cast", "Pow"]),
        ("(float[1,3,4] X) => (float Y) { Y = Selu <alpha = 2.0, gamma = 3.0> (X) }", "ncnn", ["Elu", "Mul"]),
        (
            """(uint8[3] I) => (float Y) <float d = {4}, float[2] v = {1, 3}> {
              J = Cast <to = 7> (I) Y = OneHot <axis = 1> (J, d, v) }""",
            "mnn",
            ["Cast", "OneHot"],
        ),
        (
            "(int64[3] I) => (float Y) <float d = {4}, float[2] v = {1, 3}> { Y = OneHot <axis = 1> (I, d, v) }",
            "mnn",
            ["Unsqueeze", "Equal", "Equal", "Cast", "Cast", "Add", "Mul", "Add"],
        ),
        (
            "(float[3] I) => (float Y) <float d = {4}, float[2] v = {0, 3}> { Y = OneHot <axis = 0> (I, d, v) }",
            "mnn",
            ["Cast", "Unsqueeze", "Equal", "Equal", "Cast", "Cast", "Add", "Mul"],
        ),
        (
            "(float[2,3] X, float[3] D) => (float Y) { Y = Mod <fmod = 1> (X, D) }",
            "mnn",
            ["Abs", "Abs", "Sign", "Mod", "Mul"],
        ),
        ("(int32[2,3] X, int32[3] D) => (int32 Y) { Y = Mod <fmod = 1> (X, D) }", "mnn", ["Mod"]),
        ("(float[2,3] X) => (float Y) <float a = {1}, float b = {-1}> { Y = Clip (X, a, b) }", "mnn", ["Max", "Min"]),
    ],
)
def test_odd_data_have_a_form(graph: str, target: str, expected: list[str], tmp_path: Path) -> None:
    assert written(tmp_path, graph, target) == expected


@pytest.mark.parametrize("attributes", ["align_corners = 0", "align_corners = 1"])
@pytest.mark.parametrize("mode", ["bilinear", "nearest"])
@pytest.mark.parametrize("told", [False, True])
def test_places_far_outside_are_reflected_before_it(told: bool, mode: str, attributes: str, tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    places = random.uniform(-9, 9, (1, 7, 6, 2)).astype("f")
    feeds = {"X": random.standard_normal((1, 2, 4, 5)).astype("f")} | ({} if told else {"G": places})
    model = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["" : 17]> g (float[1,2,4,5] X, float[1,7,6,2] G) => (float[1,2,7,6] Y) '
        f'{{ Y = GridSample <mode = "{mode}", padding_mode = "reflection", {attributes}> (X, G) }}'
    )
    if told:
        model.graph.initializer.append(onnx.numpy_helper.from_array(places, "G"))
        del model.graph.input[1]
    onnx.save(model, tmp_path / "model.onnx")
    padfix.convert(tmp_path / "model.onnx", tmp_path / "result.onnx", target="ncnn")
    assert not padfix.check(tmp_path / "result.onnx", target="ncnn").findings
    (wanted,), (found,) = (
        onnxruntime.InferenceSession(tmp_path / name).run(None, feeds) for name in ("model.onnx", "result.onnx")
    )
    np.testing.assert_allclose(found, wanted, atol=1e-5)


@pytest.mark.parametrize(("places", "kept"), [("{0, 0, 0.4, 0.4}", True), ("{0, 0, 0.75, 0.4}", False)])
def test_constant_places_are_moved_where_one_is_halfway(places: str, kept: bool, tmp_path: Path) -> None:
    text = f"(float[1,2,5,5] X) => (float Y) <float[1,1,2,2] g = {places}> "
    text += '{ Y = GridSample <mode = "nearest", align_corners = 1> (X, g) }'
    assert written(tmp_path, text, "ncnn", 18) == ["GridSample"]
    result = onnx.load(tmp_path / "result.onnx")
    told = [onnx.numpy_helper.to_array(each).reshape(-1).tolist() for each in result.graph.initializer]
    assert (told[0][2] == pytest.approx(float(places.strip("{}").split(",")[2]))) is kept


@pytest.mark.parametrize(
    "graph",
    [
        *(f"(uint8[1,3] X, uint8[1,3] Z) => (uint8[1,3] Y) {{ Y = {each} (X, Z) }}" for each in ("Add", "Mul")),
        "(int64[6] X) => (int64[N] Y) { Y = Unique <sorted = 0> (X) }",
        "(int64[3,4] X) => (int64[N,4] Y) { Y = Unique <axis = 0> (X) }",
    ],
)
def test_what_mnn_gets_wrong_without_a_form_is_declined(graph: str, tmp_path: Path) -> None:
    with pytest.raises(RefusedError):
        written(tmp_path, graph, "mnn", 14)


@pytest.mark.parametrize("op_type", ["Add", "Mul"])
def test_constants_of_bytes_are_declined_for_mnn(op_type: str, tmp_path: Path) -> None:
    with pytest.raises(RefusedError):
        written(tmp_path, f"(int8[2,3] X) => (int8 Y) <int8 c = {{2}}> {{ Y = {op_type} (X, c) }}", "mnn")
    two = f"(int8[2,3] X, int8[2,3] C) => (int8 Y) {{ Y = {op_type} (X, C) }}"
    assert written(tmp_path, two, "mnn") == [op_type]


@pytest.mark.parametrize("node", ["Cast <to = 3> (X)", "CastLike (X, k)"])
@pytest.mark.parametrize("given", ["uint8", "int32"])
def test_mnn_makes_bytes_with_a_sign_of_others_by_whole_numbers(given: str, node: str, tmp_path: Path) -> None:
    graph = f"({given}[256] X) => (int8[256] Y) <int8 k = {{0}}> {{ Y = {node} }}"
    expected = ["Cast", "Cast"] if given == "uint8" else [node.split()[0]]
    assert written(tmp_path, graph, "mnn") == expected
    data = {"X": np.arange(256).astype(given)}
    session = onnxruntime.InferenceSession(tmp_path / "result.onnx", providers=["CPUExecutionProvider"])
    np.testing.assert_array_equal(session.run(None, data)[0], np.arange(256).astype("int8"))


def test_mnn_compares_bytes_with_a_constant_as_other_numbers(tmp_path: Path) -> None:
    graph = "(int8[2,3] X) => (bool Y) <int8 c = {2}> { Y = Equal (X, c) }"
    assert written(tmp_path, graph, "mnn") == ["Cast", "Equal"]
    assert written(tmp_path, "(int8[2,3] X, int8[2,3] C) => (bool Y) { Y = Equal (X, C) }", "mnn") == ["Equal"]


@pytest.mark.parametrize("op_type", ["Max", "Min"])
def test_extremes_with_constants_of_bytes_are_those_of_floats(op_type: str, tmp_path: Path) -> None:
    text = f"(int8[2,3] X) => (int8 Y) <int8 c = {{2}}> {{ Y = {op_type} (X, c) }}"
    assert op_type in written(tmp_path, text, "mnn")


@pytest.mark.parametrize(
    ("op_type", "expected"),
    [
        ("Elu <alpha = 0.5>", ["Cast", "Elu", "Cast"]),
        ("Selu", ["Cast", "Selu", "Cast"]),
        ("ThresholdedRelu", ["Sub", "Relu", "Sign", "Mul"]),
        ("Exp", ["Exp"]),
    ],
)
@pytest.mark.parametrize("numbers", ["float16", "float"])
def test_halves_become_floats_where_a_target_computes_these_alone(
    op_type: str, expected: list[str], numbers: str, tmp_path: Path
) -> None:
    text = (
        f'<ir_version: 8, opset_import: ["" : 17]> g ({numbers}[2,3] X) => ({numbers}[2,3] Y) {{ Y = {op_type} (X) }}'
    )
    onnx.save(onnx.parser.parse_model(text), tmp_path / "model.onnx")
    padfix.convert(tmp_path / "model.onnx", tmp_path / "result.onnx", target="tvm")
    found = [node.op_type for node in onnx.load(tmp_path / "result.onnx").graph.node]
    assert found == (expected if numbers == "float16" else [op_type.split()[0]])
    assert not padfix.check(tmp_path / "result.onnx", target="tvm").findings


@pytest.mark.parametrize("direction", ["LEFT", "RIGHT"])
@pytest.mark.parametrize("given", ["uint8", "uint32"])
def test_openvino_shifts_bytes_in_more_bits(given: str, direction: str, tmp_path: Path) -> None:
    graph = f"""({given}[N,3] X) => ({given} Y) <{given}[3] k = {{1, 2, 7}}> {{
      Y = BitShift <direction = "{direction}"> (X, k) }}"""
    found = written(tmp_path, graph, "openvino")
    assert found == (["Cast", "BitShift", "Cast"] if given == "uint8" else ["BitShift"])
    data = np.array([[255, 254, 129], [3, 7, 200]], given)
    session = onnxruntime.InferenceSession(tmp_path / "result.onnx", providers=["CPUExecutionProvider"])
    shift = np.left_shift if direction == "LEFT" else np.right_shift
    np.testing.assert_array_equal(session.run(None, {"X": data})[0], shift(data, np.array([1, 2, 7], given)))
