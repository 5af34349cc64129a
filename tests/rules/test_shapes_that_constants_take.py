"""Constants, lengths and bounds that a runtime takes in the whole shape, or with each axis named."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnx.parser
import onnxruntime
import pytest

import padfix
from padfix.errors import RefusedError


def written(folder: Path, graph: str, target: str, opset: int = 17, **data: tuple[int, ...]) -> list[str]:
    """Convert, see that nothing is found in the result and that ONNX Runtime gives the same of it."""
    source, result = folder / "model.onnx", folder / "result.onnx"
    onnx.save(onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : {opset}]> g {graph}'), source)
    padfix.convert(source, result, target=target)
    assert not padfix.check(result, target=target).findings
    random = np.random.default_rng(7)
    sessions = [onnxruntime.InferenceSession(each) for each in (source, result)]
    kinds = {each.name: each.type for each in sessions[0].get_inputs()}
    feeds = {
        name: random.standard_normal(shape) > 0
        if kinds[name] == "tensor(bool)"
        else random.uniform(-0.9, 0.9, shape).astype(np.float32)
        for name, shape in data.items()
    }
    before, after = (session.run(None, feeds) for session in sessions)
    for first, second in zip(before, after, strict=True):
        np.testing.assert_allclose(second, first, rtol=0, atol=2e-6)
    return [node.op_type for node in onnx.load(result).graph.node if node.op_type != "Constant"]


NORM = """(float[2,6,7] X) => (float[2,6,7] Y) <float[%s] s = {%s}, float[%s] b = {%s}> {
  Y = LayerNormalization <axis = %d> (X, s, b) }"""


@pytest.mark.parametrize("target", ["mnn", "ncnn", "opencv", "opencv@4.14", "openvino", "qnn", "tvm"])
@pytest.mark.parametrize(("shape", "axis"), [("1", -1), ("7", -2), ("6,1", -2), ("1,7", -1)])
def test_a_norm_has_weights_of_the_whole_shape(shape: str, axis: int, target: str, tmp_path: Path) -> None:
    count = np.prod([int(each) for each in shape.split(",")])
    values = ",".join(str(1 + each) for each in range(count))
    written(tmp_path, NORM % (shape, values, shape, values, axis), target, X=(2, 6, 7))
    model = onnx.load(tmp_path / "result.onnx")
    norms = [node for node in model.graph.node if node.op_type == "LayerNormalization"]
    shapes = {each.name: list(each.dims) for each in model.graph.initializer}
    whole = [shapes[name] for node in norms for name in node.input[1:]]
    if target != "openvino" or shape == "7":
        assert all(each in ([7], [6, 7], [42]) for each in whole)


@pytest.mark.parametrize("target", ["mnn", "ncnn", "opencv"])
@pytest.mark.parametrize(("shape", "axis"), [("5", -1), ("2,7", -1), ("2,1,7", -1), ("3,7", -2)])
def test_weights_that_do_not_fit_a_norm_are_declined(shape: str, axis: int, target: str, tmp_path: Path) -> None:
    """Those along the batch as well among them, which ONNX Runtime takes."""
    values = ",".join(["1"] * int(np.prod([int(each) for each in shape.split(",")])))
    with pytest.raises(padfix.PadfixError):
        written(tmp_path, NORM % (shape, values, shape, values, axis), target)


COPIES = "(%s[%s] X, float[%s] K) => (%s Y) { s = Shape (K) Y = Expand (X, s) }"


@pytest.mark.parametrize("kind", ["float", "bool"])
def test_tvm_is_given_a_length_for_each_axis(kind: str, tmp_path: Path) -> None:
    found = written(tmp_path, COPIES % (kind, "1,2,1", "1,M", kind), "tvm", X=(1, 2, 1), K=(1, 4))
    assert found == ["Shape", "Concat", "Expand"]


@pytest.mark.parametrize(
    ("graph", "opset", "shapes", "expected"),
    [
        (COPIES % ("bool", "N,1", "N,M", "bool"), 17, {"X": (2, 1), "K": (2, 3)}, ["Shape", "Cast", "Expand", "Cast"]),
        (
            "(float[2,6,8,5] X) => (float Y) { Y = Slice <starts = [0, -5], ends = [2, 6]> (X) }",
            9,
            {"X": (2, 6, 8, 5)},
            ["Slice"],
        ),
        (
            "(float[2,3,7] X) => (float V, int64 Y) { V, Y = TopK <k = 2, axis = 2> (X) }",
            9,
            {"X": (2, 3, 7)},
            ["TopK"],
        ),
        (
            "(float[1,3,10,8] X) => (float Y) { Y = MaxPool <kernel_shape = [2, 2], storage_order = 1> (X) }",
            9,
            {"X": (1, 3, 10, 8)},
            ["MaxPool"],
        ),
        (
            "(float[2,6,4] X) => (float Y) { k = Constant <value = int32 {-4}> () Y = Gather <axis = 1> (X, k) }",
            11,
            {"X": (2, 6, 4)},
            ["Gather"],
        ),
        (
            "(float[N,3,4,5] X) => (float Y) <float[1,3,4,5] c> { Y = Sub (X, c) }",
            13,
            {"X": (3, 3, 4, 5)},
            ["Reshape", "Sub", "Reshape"],
        ),
        (
            "(float[N,3,4,5] X) => (float Y) <float[1] k = {127.5}> { Y = Mul (X, k) }",
            13,
            {"X": (3, 3, 4, 5)},
            ["Mul"],
        ),
    ],
)
def test_onnx2tf_is_told_axes_and_lengths(
    graph: str, opset: int, shapes: dict[str, tuple[int, ...]], expected: list[str], tmp_path: Path
) -> None:
    if "c>" in graph:
        values = ",".join(map(str, range(60)))
        graph = graph.replace("c>", f"c = {{{values}}}>")
    assert written(tmp_path, graph, "onnx2tf", opset, **shapes) == expected
    model = onnx.load(tmp_path / "result.onnx")
    (told,) = (
        node
        for node in model.graph.node
        if node.op_type in ("Slice", "TopK", "MaxPool", "Gather", "Mul", "Sub", "Expand")
    )
    names = {each.name for each in told.attribute}
    assert not names & {"k", "storage_order"}
    assert told.op_type != "Slice" or "axes" in names


@pytest.mark.parametrize("op_type", ["Atan", "Cosh", "Identity", "Round", "Sinh", "Softsign", "Tan"])
def test_onnx2tf_is_told_apart_axes_of_one_length(op_type: str, tmp_path: Path) -> None:
    graph = f"(float[2,5,5] X) => (float[2,5,5] Y) {{ Y = {op_type} (X) }}"
    assert len(written(tmp_path, graph, "onnx2tf", X=(2, 5, 5))) > 1


def test_onnx2tf_has_no_arc_cosine(tmp_path: Path) -> None:
    graph = "(float[2,3] X) => (float Y) { Y = Acos (X) }"
    assert "Acos" not in written(tmp_path, graph, "onnx2tf", X=(2, 3))


@pytest.mark.parametrize(
    "graph",
    [
        "(float[4,2,3] X) => (int64 Y) { Y = NonZero (X) }",
        "(float[3,9] X) => (bool Y) { o = Optional (X) Y = OptionalHasElement (o) }",
        COPIES % ("float", "N,3,1,1", "N,3,H,W", "float"),
    ],
)
def test_what_onnx2tf_gets_wrong_is_declined(graph: str, tmp_path: Path) -> None:
    with pytest.raises(RefusedError):
        written(tmp_path, graph, "onnx2tf")


@pytest.mark.parametrize("mode", ["edge", "reflect"])
def test_mnn_pads_many_axes_by_picking(mode: str, tmp_path: Path) -> None:
    amounts = "0,1,1,1,1,1,0,1,0,1,0,1"
    graph = f"""(float[1,3,4,5,3,4] X) => (float Y) <int64[12] p = {{{amounts}}}> {{
      Y = Pad <mode = "{mode}"> (X, p) }}"""
    assert set(written(tmp_path, graph, "mnn", X=(1, 3, 4, 5, 3, 4))) == {"Gather"}


@pytest.mark.parametrize("shape", ["1,2,1", "2,1,1"])
def test_onnx2tf_is_given_a_constant_length_for_each_axis(shape: str, tmp_path: Path) -> None:
    graph = f"(float[{shape}] X) => (float Y) <int64[2] l = {{1, 4}}> {{ Y = Expand (X, l) }}"
    data = tuple(int(each) for each in shape.split(","))
    found = written(tmp_path, graph, "onnx2tf", X=data)
    lengths = {each.name: list(each.dims) for each in onnx.load(tmp_path / "result.onnx").graph.initializer}
    assert found[-1] in ("Expand", "Concat")
    assert [2] not in lengths.values()


@pytest.mark.parametrize("interleaved", [0, 1])
def test_qnn_turns_by_angles_that_are_picked_beforehand(interleaved: int, tmp_path: Path) -> None:
    graph = f"""(float[1,2,3,4] X) => (float Y)
      <float[4,2] c = {{1, 2, 3, 4, 5, 6, 7, 8}}, int64[1,3] p = {{2, 0, 1}}> {{
      Y = RotaryEmbedding <interleaved = {interleaved}> (X, c, c, p) }}"""
    source, result = tmp_path / "model.onnx", tmp_path / "result.onnx"
    onnx.save(onnx.parser.parse_model(f'<ir_version: 11, opset_import: ["" : 23]> g {graph}'), source)
    padfix.convert(source, result, target="qnn")
    assert "RotaryEmbedding" not in {node.op_type for node in onnx.load(result).graph.node}
    assert padfix.check(source, target="qnn").findings
    assert not padfix.check(result, target="qnn").findings


@pytest.mark.parametrize(
    ("graph", "expected"),
    [
        (
            """(float[N,4,6] X) => (float[N,4,6] Y) <int64[2] l = {0, -1}> {
              a = Reshape (X, l) s = Shape (X) Y = Reshape (a, s) }""",
            ["Reshape", "Shape", "Reshape", "Neg", "Neg"],
        ),
        (
            "(float[1,4,6] X) => (float[1,4,6] Y) <int64 a = {0}> { Y = CumSum <reverse = 1> (X, a) }",
            ["Reshape", "Mul", "Reshape", "Neg", "Neg"],
        ),
        (
            """(float[N,4,6] X) => (float[N,4,6] Y) <int64[2] l = {0, -1}> {
              a = Reshape (X, l) b = Relu (a) s = Shape (X) Y = Reshape (b, s) }""",
            ["Reshape", "Relu", "Shape", "Reshape"],
        ),
    ],
)
def test_ncnn_sees_what_is_laid_out_and_back(graph: str, expected: list[str], tmp_path: Path) -> None:
    count = 1 if "float[1," in graph else 2
    assert written(tmp_path, graph, "ncnn", X=(count, 4, 6)) == expected


@pytest.mark.parametrize("opset", [9, 10])
def test_tract_is_told_the_axes_of_old_bounds(opset: int, tmp_path: Path) -> None:
    bounds = "starts = [0, -2], ends = [2, 3]" if opset == 9 else ""
    inputs = "X" if opset == 9 else "X, s, e"
    graph = f"""(float[2,3,4] X) => (float Y) <int64[2] s = {{0, -2}}, int64[2] e = {{2, 3}}> {{
      Y = Slice <{bounds}> ({inputs}) }}""".replace("<>", "")
    written(tmp_path, graph, "tract", opset, X=(2, 3, 4))
    (node,) = (each for each in onnx.load(tmp_path / "result.onnx").graph.node if each.op_type == "Slice")
    assert ("axes" in {each.name for each in node.attribute}) == (opset == 9)
