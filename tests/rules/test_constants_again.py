"""Constants that one operator takes for data and another for weights, where a runtime keeps them once."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnx.parser
import pytest

import padfix

GRAPH = (
    '<ir_version: 8, opset_import: ["" : 17]> g (float[2,4] X) => (float[2,4] Y) '
    "<float[4] s = {1, 2, 3, 4}, float[4] b = {4, 3, 2, 1}, float[4,4] w = "
    "{1, 2, 3, 4, 5, 6, 7, 8, 8, 7, 6, 5, 4, 3, 2, 1}>"
)


def written(nodes: str, folder: Path, version: int = 8) -> tuple[list[str], onnx.GraphProto]:
    """Return the rules that have a finding for OpenCV 4.14, and what is written for it."""
    source, result = folder / "model.onnx", folder / "result.onnx"
    model = onnx.parser.parse_model(f"{GRAPH} {{ {nodes} }}")
    model.ir_version = version
    if version < 4:  # constants are inputs there
        given = [onnx.helper.make_tensor_value_info(each.name, 1, each.dims) for each in model.graph.initializer]
        model.graph.input.extend(given)
    onnx.save(model, source)
    rules = [each.rule for each in padfix.check(source, target="opencv@4.14").findings]
    padfix.convert(source, result, target="opencv@4.14")
    assert not padfix.check(result, target="opencv@4.14").findings
    return rules, onnx.load(result).graph


@pytest.mark.parametrize("version", [3, 8])
@pytest.mark.parametrize(
    "nodes",
    [
        "a = Add (X, s) Y = LayerNormalization (a, s, b)",
        "a = Mul (X, s) Y = PRelu (a, s)",
        "a = Add (X, s) m = MatMul (a, w) Y = Add (m, s)",
        "a = Max (X, b) Y = Gemm (a, w, b)",
    ],
)
def test_weights_are_given_apart_from_data(nodes: str, version: int, tmp_path: Path) -> None:
    rules, graph = written(nodes, tmp_path, version)
    assert rules == ["PF306"]
    computing = [each for each in graph.node if each.op_type != "Constant"]
    first, last = computing[0], computing[-1]
    assert not set(first.input) & set(last.input)
    assert (len(computing) < len(graph.node)) == (version < 4)
    assert [each.op_type for each in computing] == [part.split(" (")[0].split()[-1] for part in nodes.split(")")[:-1]]


@pytest.mark.parametrize(
    "nodes",
    [
        "a = LayerNormalization (X, s, b) Y = Add (a, s)",
        "a = LayerNormalization (X, s, b) Y = LayerNormalization (a, s, b)",
        "a = Add (X, s) Y = LayerNormalization (a, b)",
        "a = Add (X, s) Y = Mul (a, s)",
        "a = Add (X, s) t = Transpose (X) g = MatMul (X, t) h = MatMul (g, a) Y = Add (h, s)",
    ],
)
def test_others_share_their_constants(nodes: str, tmp_path: Path) -> None:
    assert written(nodes, tmp_path)[0] == []


def test_weights_in_another_order_are_given_apart(tmp_path: Path) -> None:
    """QNN turns weights where they are: of a Conv beside a ConvTranspose, and of a Gemm beside one with transB."""
    weights = "float[2,2,1,1] w = {1, 2, 3, 4}, float[2,2] m = {1, 2, 3, 4}, float[2,2] n = {4, 3, 2, 1}"
    nodes = (
        "a = Conv (X, w) b = Conv (a, w) c = ConvTranspose (b, w) Y = ConvTranspose (c, w) "
        "d = Gemm (V, m) e = Gemm <transB = 1> (d, m) f = MatMul (e, n) W = Gemm (f, n)"
    )
    head = '<ir_version: 8, opset_import: ["" : 17]> g (float[1,2,3,3] X, float[2,2] V)'
    source, result = tmp_path / "model.onnx", tmp_path / "result.onnx"
    graph = f"{head} => (float[1,2,3,3] Y, float[2,2] W) <{weights}> {{ {nodes} }}"
    onnx.save(onnx.parser.parse_model(graph), source)
    padfix.convert(source, result, target="qnn")
    assert not padfix.check(result, target="qnn").findings
    first, second, third, fourth, turned, plain, product, last = (
        each.input[1] for each in onnx.load(result).graph.node
    )
    assert not {first, second} & {third, fourth}
    assert turned != plain
    assert product == last == "n"


@pytest.mark.parametrize(
    ("nodes", "own"),
    [
        ("k = Mul (w, w) a = MatMul (X, k) Y = Gemm (a, k)", False),
        ("k = Mul (w, w) a = Gemm (X, k) Y = Gemm <transB = 1> (a, k)", True),
        ("a = MatMul (X, w) c = Add (a, s) Y = MatMul (c, w)", False),
        ("a = MatMul (X, w) c = Add (a, s) Y = Gemm <transB = 1> (c, w)", True),
        ("a = MatMul (X, w) c = Add (a, s) d = Add (a, s) e = Mul (c, d) Y = Gemm <transB = 1> (e, w)", False),
        ("a = MatMul (X, w) d = MatMul (a, w) Y = Gemm <transB = 1> (d, w)", False),
    ],
)
def test_qnn_turns_weights_that_nothing_else_reads(nodes: str, own: bool, tmp_path: Path) -> None:
    source, result = tmp_path / "model.onnx", tmp_path / "result.onnx"
    onnx.save(onnx.parser.parse_model(f"{GRAPH} {{ {nodes} }}"), source)
    padfix.convert(source, result, target="qnn")
    products = [each.input[1] for each in onnx.load(result).graph.node if each.op_type in {"MatMul", "Gemm"}]
    assert (len(set(products)) == len(products)) == own


def test_qnn_turns_weights_that_a_gemm_does_not_add(tmp_path: Path) -> None:
    source, result = tmp_path / "model.onnx", tmp_path / "result.onnx"
    text = GRAPH.replace("[2,4]", "[4,4]") + " { Y = Gemm (X, w, w) }"
    onnx.save(onnx.parser.parse_model(text), source)
    padfix.convert(source, result, target="qnn")
    (gemm,) = onnx.load(result).graph.node
    assert gemm.input[1] != gemm.input[2]


@pytest.mark.parametrize(
    "nodes",
    [
        "k = Transpose <perm = [1, 0]> (X) a = MatMul (w, k) c = MatMul (w, a) Y = Transpose <perm = [1, 0]> (c)",
        "k = Concat <axis = 0> (X, w) a = MatMul (k, w) Y = Slice (a, o, e)",
        "k = Add (X, l) a = Concat <axis = 0> (k, l) Y = Slice (a, o, e)",
    ],
)
def test_first_factors_and_what_is_joined_are_given_apart(nodes: str, tmp_path: Path) -> None:
    told = "int64[1] o = {0}, int64[1] e = {2}, float[1,4] l = {1, 2, 3, 4}, float[4] s"
    source, result = tmp_path / "model.onnx", tmp_path / "result.onnx"
    onnx.save(onnx.parser.parse_model(GRAPH.replace("float[4] s", told) + f" {{ {nodes} }}"), source)
    padfix.convert(source, result, target="opencv@4.14")
    assert not padfix.check(result, target="opencv@4.14").findings
    graph = onnx.load(result).graph
    constants = {each.name for each in graph.initializer}
    weighing = [each for each in graph.node if each.op_type in ("Add", "Concat", "MatMul")]
    assert not constants & set(weighing[0].input) & set(weighing[1].input)


LSTM = """<ir_version: 8, opset_import: ["" : 14]> g (float[3,2,4] X%s) => (float[3,1,2,1] Y)
<float[1,4,1] r = {0.1, 0.2, 0.3, 0.4}> { k = Identity (w) Y = LSTM <hidden_size = 1> (X, k, r) }"""


@pytest.mark.parametrize("is_fed", [False, True])
def test_a_layer_of_fed_weights_is_written_in_steps(is_fed: bool, tmp_path: Path) -> None:
    model = onnx.parser.parse_model(LSTM % ", float[1,4,4] w")
    if not is_fed:
        del model.graph.input[1]
        model.graph.initializer.append(onnx.numpy_helper.from_array(np.full((1, 4, 4), 0.5, np.float32), "w"))
    onnx.save(model, tmp_path / "model.onnx")
    padfix.convert(tmp_path / "model.onnx", tmp_path / "result.onnx", target="opencv@4.14")
    found = {each.op_type for each in onnx.load(tmp_path / "result.onnx").graph.node}
    assert ("LSTM" in found) != is_fed
