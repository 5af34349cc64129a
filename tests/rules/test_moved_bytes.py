"""What moves bytes, for QNN: as the floats that they stand for, in the steps that they are made in or in steps of 1."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnx.parser
import onnxruntime
import pytest
from onnx import numpy_helper

import padfix

CALLER = "(%s[1,2,4,4] X%s) => (%s Y) <int64[1] a = {0}, int64[1] b = {1}, int64[2] c = {2, -1}> { Y = %s }"
WITHIN = """(float[1,2,4,4] Z) => (float Y) <float s = {0.05}, %s m = {5}, int64[1] a = {0}, int64[1] b = {1},
  int64[2] c = {2, -1}> {
  n = Neg (Z) X = QuantizeLinear (n, s, m) q = %s d = DequantizeLinear (q, s, m) Y = Tanh (d) }"""
STEPS = ["DequantizeLinear", "QuantizeLinear"]


def written(folder: Path, graph: str, data: np.ndarray, opset: int = 14) -> onnx.ModelProto:
    """Convert, see that nothing is found in the result and that ONNX Runtime gives the same of it."""
    source, result = folder / "model.onnx", folder / "result.onnx"
    onnx.save(onnx.parser.parse_model(f'<ir_version: 9, opset_import: ["" : {opset}]> g {graph}'), source)
    padfix.convert(source, result, target="qnn")
    assert not padfix.check(result, target="qnn").findings
    sessions = [onnxruntime.InferenceSession(each) for each in (source, result)]
    given = {each.name: data for each in sessions[0].get_inputs()}
    before, after = (session.run(None, given)[0] for session in sessions)
    np.testing.assert_array_equal(after, before)
    return onnx.load(result)


def types_of(model: onnx.ModelProto) -> list[str]:
    return [node.op_type for node in model.graph.node if node.op_type != "Constant"]


@pytest.mark.parametrize(
    ("kind", "inputs", "gives", "expression"),
    [
        *(
            ("int8", "", "int8", each)
            for each in (
                "Reshape (X, c)",
                "Unsqueeze (X, a)",
                "Flatten (X)",
                "Identity (X)",
                "Concat <axis = 1> (X, X)",
                "Slice (X, a, b, b)",
                "DepthToSpace <blocksize = 1> (X)",
                "MaxPool <kernel_shape = [2, 2]> (X)",
            )
        ),
        ("int8", ", int8[1,2,4,4] W", "int8", "Max (X, W)"),
        ("int8", ", int8[1,2,4,4] W", "bool", "Equal (X, W)"),
        ("uint8", "", "uint8", "DepthToSpace <blocksize = 1> (X)"),
        ("uint8", "", "int64", "ArgMax <axis = 1> (X)"),
    ],
)
def test_bytes_of_the_caller_are_moved_in_steps_of_one(
    kind: str, inputs: str, gives: str, expression: str, tmp_path: Path
) -> None:
    data = np.random.default_rng(1).integers(0, 256, (1, 2, 4, 4)).astype(np.uint8).view(kind)
    model = written(tmp_path, CALLER % (kind, inputs, gives, expression), data)
    found = types_of(model)
    assert found[0] == STEPS[0]
    assert (found[-1] == STEPS[1]) == gives.endswith("int8")


@pytest.mark.parametrize("kind", ["int8", "uint8"])
@pytest.mark.parametrize(
    ("expression", "op_type"),
    [
        ("Reshape (X, c)", "Reshape"),
        ("Slice (X, a, b, b)", "Slice"),
        ("Flatten (X)", "Flatten"),
        ("Concat <axis = 1> (X, X)", "Concat"),
        ("Transpose (X)", "Transpose"),
        ("Max (X, X)", "Max"),
        ("MaxPool <kernel_shape = [2, 2]> (X)", "MaxPool"),
    ],
)
def test_quantized_bytes_are_moved_in_their_steps(kind: str, expression: str, op_type: str, tmp_path: Path) -> None:
    data = np.random.default_rng(2).standard_normal((1, 2, 4, 4)).astype(np.float32)
    model = written(tmp_path, WITHIN % (kind, expression), data)
    about = [each for each in types_of(model) if each in (*STEPS, op_type)]
    assert about == [*STEPS[::-1], *STEPS[:1] * (op_type in ("Concat", "Max")), op_type, *STEPS[::-1]]
    constants = {each.name: numpy_helper.to_array(each) for each in model.graph.initializer}
    scales = {constants[node.input[1]].item() for node in model.graph.node if node.op_type in STEPS}
    assert scales == {np.float32(0.05).item()}


@pytest.mark.parametrize("kind", ["int8", "uint8"])
def test_bytes_of_the_caller_and_for_the_caller(kind: str, tmp_path: Path) -> None:
    """A result is none of bytes of the caller, and what is quantized none of its numbers, as they are."""
    data = np.random.default_rng(3).integers(0, 256, (2, 5)).astype(np.uint8).view(kind)
    graph = "(%s[2,5] X) => (float Y) <float s = {0.05}, %s m = {5}> { Y = DequantizeLinear (X, s, m) }"
    assert types_of(written(tmp_path, graph % (kind, kind), data)) == [STEPS[0], "Max"]
    graph = "(float[2,5] X) => (%s Y) <float s = {0.05}, %s m = {5}> { Y = QuantizeLinear (X, s, m) }"
    numbers = np.linspace(-9, 9, 10, dtype=np.float32).reshape(2, 5)
    assert types_of(written(tmp_path, graph % (kind, kind), numbers)) == ["Clip", STEPS[1]]


def test_steps_that_nodes_give_are_worked_out(tmp_path: Path) -> None:
    graph = """(float[2,5] X) => (float Y) <float c = {0.05}, uint8 m = {5}> {
      s = Identity (c) q = QuantizeLinear (X, s, m) Y = DequantizeLinear (q, s, m) }"""
    numbers = np.linspace(-9, 9, 10, dtype=np.float32).reshape(2, 5)
    assert "Round" in types_of(written(tmp_path, graph, numbers))


def test_sums_of_bytes_are_declined(tmp_path: Path) -> None:
    """Floats do not wrap around."""
    source = tmp_path / "model.onnx"
    graph = CALLER % ("int8", ", int8[1,2,4,4] W", "int8", "Add (X, W)")
    onnx.save(onnx.parser.parse_model(f'<ir_version: 9, opset_import: ["" : 14]> g {graph}'), source)
    with pytest.raises(padfix.PadfixError):
        padfix.convert(source, tmp_path / "result.onnx", target="qnn")


STEPPED = ["Div", "Clip", "Round", "Mul"]
VOLUMES = """(float[1,2,3,4,5] X) => (float Y) <float s = {0.05}, %s m = {5}, float[2,2,1,1,1] w = {1, 2, 3, 4},
  int64[1] a = {0}> { %s q = QuantizeLinear (n, s, m) d = DequantizeLinear (q, s, m) %s }"""


@pytest.mark.parametrize("kind", ["int8", "uint8"])
@pytest.mark.parametrize(
    ("before", "behind", "is_in_floats"),
    [
        ("n = Relu (X)", "Y = Identity (d)", True),
        ("n = Mul (X, X)", "r = Relu (d) b = QuantizeLinear (r, s, m) Y = DequantizeLinear (b, s, m)", True),
        ("n = Transpose (X)", "Y = Relu (d)", True),
        ("n = Conv (X, w)", "Y = Sigmoid (d)", True),
        ("n = Relu (X)", "Y = Conv (d, w)", False),
    ],
)
def test_volumes_of_floats_are_rounded_in_floats(
    kind: str, before: str, behind: str, *, is_in_floats: bool, tmp_path: Path
) -> None:
    """QNN rounds them down where no layer of bytes is beside them."""
    steps = np.random.default_rng(4).integers(-90, 90, (1, 2, 3, 4, 5)) + 0.2
    model = written(tmp_path, VOLUMES % (kind, before, behind), (steps * np.float32(0.05)).astype(np.float32))
    assert ("Round" in types_of(model), "QuantizeLinear" in types_of(model)) == (is_in_floats, not is_in_floats)


@pytest.mark.parametrize("behind", ["Sigmoid (d)", "Tanh (d)"])
def test_bytes_that_are_passed_on_are_among_floats(behind: str, tmp_path: Path) -> None:
    graph = """(float[1,2,4,4] X) => (float Y) <float s = {0.05}, uint8 m = {5}> { r = Relu (X)
      q = QuantizeLinear (r, s, m) i = Identity (q) d = DequantizeLinear (i, s, m) Y = %s }"""
    data = np.random.default_rng(5).standard_normal((1, 2, 4, 4)).astype(np.float32)
    found = types_of(written(tmp_path, graph % behind, data))
    assert found == ["Relu", *STEPPED, "Identity", *STEPPED, behind.split()[0]]
