"""PF303: declarations that the graph contradicts are found, corrected, and never believed."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import ModelProto, TensorProto, helper, parser

import padfix
from padfix.errors import RefusedError
from padfix.files.model import Model
from padfix.operators.inference import infer
from padfix.proof.spec_executor import SpecExecutor
from padfix.rewrite.engine import rewrite_model
from padfix.rewrite.matches import findings
from padfix.targets import names
from tests.support.padding_models import session

STALE = """<ir_version: 8, opset_import: ["" : 13]>
g (float[1,1,9,9] X, float[1,1,3,3] W) => (float[1,1,7,7] Y) <float[1,1,6,6] A> {
  A = Conv <auto_pad = "SAME_UPPER", strides = [2, 2]> (X, W)
  Y = MaxPool <auto_pad = "SAME_UPPER", kernel_shape = [3, 3], strides = [2, 2]> (A)
}"""


def parse(text: str) -> ModelProto:
    model: ModelProto = parser.parse_model(text)
    return model


def messages(proto: ModelProto) -> list[str]:
    return [each.message for each in findings(infer(Model(proto))) if each.rule == "PF303"]


def test_a_stale_shape_is_reported_with_both_shapes_at_the_node_that_gives_the_value() -> None:
    found = [each for each in findings(infer(Model(parse(STALE)))) if each.rule == "PF303"]
    assert [(each.graph, each.op_type, each.fixable) for each in found] == [
        ("main", "Conv", True),
        ("main", "MaxPool", True),
    ]
    assert "value_info 'A' declares is [1, 1, 6, 6], but the graph gives [1, 1, 5, 5]" in found[0].message
    assert "output 'Y' declares is [1, 1, 7, 7], but the graph gives [1, 1, 3, 3]" in found[1].message


def test_pads_come_from_the_graph_and_not_from_what_it_declares() -> None:
    proto = parse(STALE)
    X, W = np.random.default_rng(0).normal(size=(1, 1, 9, 9)), np.random.default_rng(1).normal(size=(1, 1, 3, 3))
    feeds = {"X": X.astype(np.float32) - 3, "W": W.astype(np.float32)}
    wanted = SpecExecutor(proto.SerializeToString()).run(feeds)["Y"]
    model = Model(proto)
    result = rewrite_model(model)
    assert sorted(each.finding.rule for each in result.rewrites) == ["PF101", "PF101", "PF303", "PF303"]
    assert not result.refusals
    # The wrong 6x6 would have asked the pool for pads [0, 0, 1, 1]; the true 5x5 asks for 1 on every side.
    assert [list(each.ints) for each in model.proto.graph.node[1].attribute if each.name == "pads"] == [[1, 1, 1, 1]]
    assert [value.name for value in model.proto.graph.value_info] == []
    assert [each.dim_value for each in model.proto.graph.output[0].type.tensor_type.shape.dim] == [1, 1, 3, 3]
    for optimised in (False, True):
        np.testing.assert_allclose(session(model.proto, optimised=optimised).run(None, feeds)[0], wanted, rtol=1e-5)
    settled = model.proto.SerializeToString()
    assert not rewrite_model(model).changed
    assert model.proto.SerializeToString() == settled


def test_the_report_says_that_no_computation_changed(tmp_path: Path) -> None:
    onnx.save(parse(STALE), tmp_path / "stale.onnx")
    report = padfix.convert(tmp_path / "stale.onnx", tmp_path / "out.onnx", reference="spec")
    corrected = [each for each in report.rewrites if each.finding.rule == "PF303"]
    assert [each.proof and each.proof.cases for each in corrected] == [0, 0]
    assert padfix.check(tmp_path / "out.onnx").findings == []


@pytest.mark.parametrize("declared", ["float[1,1,h,w]", "float[N,1,5,5]", "float[1,1,5,5]", "float[]"])
def test_symbols_and_agreement_are_no_contradiction(declared: str) -> None:
    assert messages(parse(STALE.replace("float[1,1,6,6]", declared).replace("float[1,1,7,7]", "float[1,1,3,3]"))) == []


def test_a_value_info_of_another_rank_or_element_type_goes() -> None:
    for declared, text in (("float[1,6,6]", "[1, 6, 6]"), ("double[1,1,5,5]", "double[1, 1, 5, 5]")):
        proto = parse(STALE.replace("float[1,1,6,6]", declared).replace("float[1,1,7,7]", "float[1,1,3,3]"))
        (message,) = messages(proto)
        assert text in message
        rewrite_model(Model(proto))
        assert not proto.graph.value_info


def test_bodies_lose_the_shapes_that_their_surroundings_contradict() -> None:
    pool = helper.make_node("MaxPool", ["X"], ["T"], name="p", kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
    same = helper.make_node("Identity", ["Z"], ["E"])
    branches = {
        "then_branch": helper.make_graph([pool], "t", [], [helper.make_tensor_value_info("T", 1, [1, 1, 9, 9])]),
        "else_branch": helper.make_graph([same], "e", [], [helper.make_tensor_value_info("E", 1, [1, 1, 4, 4])]),
    }
    graph = helper.make_graph(
        [helper.make_node("If", ["C"], ["Y"], name="choose", **branches)],
        "g",
        [
            helper.make_tensor_value_info("C", TensorProto.BOOL, []),
            helper.make_tensor_value_info("X", 1, [1, 1, 7, 7]),
            helper.make_tensor_value_info("Z", 1, [1, 1, 4, 4]),
        ],
        [helper.make_tensor_value_info("Y", 1, None)],
    )
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    result = rewrite_model(Model(proto))
    assert [(each.finding.rule, each.finding.graph) for each in result.rewrites] == [
        ("PF303", "main/choose.then_branch")
    ]
    bodies = {each.name: each.g for each in proto.graph.node[0].attribute}
    assert not bodies["then_branch"].output[0].type.tensor_type.HasField("shape")
    assert len(bodies["else_branch"].output[0].type.tensor_type.shape.dim) == 4


def test_open_lengths_of_inner_values_go_where_the_target_refuses_them(tmp_path: Path) -> None:
    proto = parser.parse_model(
        '<ir_version: 8, opset_import: ["" : 17]> g (float[N,3] X) => (float[N,3] Y)'
        "{ a = Relu (X) b = Neg (a) Y = Relu (b) }"
    )
    for name, lengths in (("a", ["N", 3]), ("b", [None, 3])):
        proto.graph.value_info.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, lengths))
    onnx.save(proto, tmp_path / "model.onnx")
    assert not padfix.check(tmp_path / "model.onnx").findings
    (found,) = padfix.check(tmp_path / "model.onnx", target="tract").findings
    assert (found.rule, found.severity) == ("PF303", "error")
    assert found.message.startswith("The model leaves lengths of 2 inner values open in value_info. tract ")
    padfix.convert(tmp_path / "model.onnx", tmp_path / "out.onnx", target="tract")
    assert not onnx.load(tmp_path / "out.onnx").graph.value_info
    assert not padfix.check(tmp_path / "out.onnx", target="tract").findings


def test_an_output_gets_a_shape_where_the_target_refuses_it_without(tmp_path: Path) -> None:
    proto = parser.parse_model(
        '<ir_version: 10, opset_import: ["" : 21]> g (float[N,4,3] X, float[4] s) => (float Y)'
        "{ a = Relu (X) Y = GroupNormalization <num_groups = 2> (a, s, s) }"
    )
    proto.graph.output[0].type.tensor_type.ClearField("shape")
    onnx.save(proto, tmp_path / "model.onnx")
    assert not padfix.check(tmp_path / "model.onnx").findings
    assert not [each for each in padfix.check(tmp_path / "model.onnx", target="tract").findings if each.rule == "PF303"]
    (found,) = (
        each for each in padfix.check(tmp_path / "model.onnx", target="opencv").findings if each.rule == "PF303"
    )
    assert found.severity == "error"
    assert found.message.startswith("No shape is declared of the output 'Y'. OpenCV (4.14.0 and 5.0.0.93) ")
    padfix.convert(tmp_path / "model.onnx", tmp_path / "out.onnx", target="opencv")
    (output,) = onnx.load(tmp_path / "out.onnx").graph.output
    lengths = output.type.tensor_type.shape.dim
    assert [lengths[0].HasField("dim_value"), lengths[1].dim_value, lengths[2].dim_value] == [False, 4, 3]
    assert not padfix.check(tmp_path / "out.onnx", target="opencv").findings


def test_the_output_of_a_branch_gets_a_shape_as_well_but_not_of_a_turn_of_a_loop(tmp_path: Path) -> None:
    proto = parser.parse_model(
        """<ir_version: 10, opset_import: ["" : 21]>
        g (float[N,4,3] X, bool C) => (float[N,4,3] Y) {
          b = If (C) <
            then_branch = graph () => (float[N,4,3] t) { t = Relu (X) },
            else_branch = graph () => (float[N,4,3] e) { e = Neg (X) }
          >
          M = Constant <value_int = 2> ()
          Y = Loop (M, C, b) <body = graph (int64 i, bool c, float[N,4,3] v) => (bool d, float[N,4,3] w) {
            d = Identity (c) w = Neg (v)
          }>
        }"""
    )
    bodies = {each.name: each.g for node in proto.graph.node for each in node.attribute if each.HasField("g")}
    for body in bodies.values():
        body.output[-1].type.tensor_type.ClearField("shape")
    onnx.save(proto, tmp_path / "model.onnx")
    found = [
        each
        for each in padfix.check(tmp_path / "model.onnx", target="opencv@5.0.0.93").findings
        if each.rule == "PF303"
    ]
    assert sorted(each.message[:37] for each in found) == [
        "No shape is declared of the output 'e",
        "No shape is declared of the output 't",
    ]
    padfix.convert(tmp_path / "model.onnx", tmp_path / "out.onnx", target="opencv@5.0.0.93", partial=True)
    after = onnx.load(tmp_path / "out.onnx").graph
    declared = {
        output.name: len(output.type.tensor_type.shape.dim)
        for node in after.node
        for each in node.attribute
        for output in each.g.output
    }
    assert declared == {"t": 3, "e": 3, "d": 0, "w": 0}


def test_the_output_of_a_branch_that_declares_nothing_gets_its_type_and_shape(tmp_path: Path) -> None:
    proto = parser.parse_model(
        """<ir_version: 10, opset_import: ["" : 21]>
        g (float[N,4,3] X, bool C) => (float[N,4,3] Y) {
          Y = If (C) <then_branch = graph () => (t) { t = Relu (X) }, else_branch = graph () => (e) { e = Neg (X) }>
        }"""
    )
    onnx.save(proto, tmp_path / "model.onnx")
    padfix.convert(tmp_path / "model.onnx", tmp_path / "out.onnx", target="opencv@5.0.0.93")
    (branch,) = onnx.load(tmp_path / "out.onnx").graph.node
    types = [each.g.output[0].type.tensor_type for each in branch.attribute]
    assert [(each.elem_type, len(each.shape.dim)) for each in types] == [(TensorProto.FLOAT, 3)] * 2


def test_lengths_of_inputs_that_the_target_wants_told(tmp_path: Path) -> None:
    source = tmp_path / "model.onnx"
    onnx.save(
        parser.parse_model("""<ir_version: 8, opset_import: ["" : 17]>
        g (float[n,3] X) => (float[n,3] Y) { Y = Relu (X) }"""),
        source,
    )
    assert not padfix.check(source, target="tract").findings
    (found,) = padfix.check(source, target="qnn").findings
    assert (found.rule, found.node, found.fixable, "--shape X=" in found.hint) == ("PF303", "X", False, True)
    with pytest.raises(RefusedError):
        padfix.convert(source, tmp_path / "after.onnx", target="qnn")
    padfix.convert(source, tmp_path / "after.onnx", target="qnn", shapes={"X": (1, 3)})
    assert not padfix.check(tmp_path / "after.onnx", target="qnn").findings


@pytest.mark.parametrize(("other", "is_taken"), [("float", False), ("float[1]", True)])
def test_inputs_without_axes_beside_others(other: str, is_taken: bool, tmp_path: Path) -> None:
    text = f"g (float[1,3,4,5] X, {other} k) => (float[1,3,4,5] Y) {{ Y = Mul (X, k) }}"
    onnx.save(parser.parse_model(f'<ir_version: 8, opset_import: ["" : 17]> {text}'), tmp_path / "model.onnx")
    found = [each.rule for each in padfix.check(tmp_path / "model.onnx", target="ncnn").findings]
    assert ("PF303" not in found) == is_taken


def test_names_that_a_target_does_not_take(tmp_path: Path) -> None:
    text = "g (float[1,3] X) => (float[1,3] Y) { t = Exp (X) Y = Softmax (t) }"
    model = parser.parse_model(f'<ir_version: 8, opset_import: ["" : 13]> {text}')
    for node, name in zip(model.graph.node, ("merkmal größe", "merkmal_gr__e"), strict=True):
        node.name = name
    onnx.save(model, tmp_path / "model.onnx")
    (found,) = padfix.check(tmp_path / "model.onnx", target="onnx2tf").findings
    assert (found.rule, found.node, found.fixable) == ("PF303", "merkmal größe", True)
    padfix.convert(tmp_path / "model.onnx", tmp_path / "after.onnx", target="onnx2tf")
    after = onnx.load(tmp_path / "after.onnx").graph
    assert [(each.name, each.output[0]) for each in after.node] == [("merkmal_gr__e_0", "t"), ("merkmal_gr__e", "Y")]

    model.graph.output[0].name = model.graph.node[1].output[0] = "Ergebnis 1"
    onnx.save(model, tmp_path / "model.onnx")
    found = padfix.check(tmp_path / "model.onnx", target="onnx2tf").findings
    assert {(each.node, each.fixable) for each in found} == {("merkmal größe", True), ("Ergebnis 1", False)}
    with pytest.raises(RefusedError):
        padfix.convert(tmp_path / "model.onnx", tmp_path / "after.onnx", target="onnx2tf")


def test_an_old_file_is_written_as_a_newer_one_where_the_target_misreads_it(tmp_path: Path) -> None:
    head = '<ir_version: 3, opset_import: ["" : 11]> g (float[1,2] X, float[2] b) => (float[1,2] Y)'
    onnx.save(parse(f"{head} <float[2] b = {{1, 2}}> {{ Y = Add (X, b) }}"), tmp_path / "model.onnx")
    others = [each for each in names() if each not in ("onnx2tf", "portable")]
    found = [each for name in others for each in padfix.check(tmp_path / "model.onnx", target=name).findings]
    assert "PF303" not in {each.rule for each in found}
    found = padfix.check(tmp_path / "model.onnx", target="onnx2tf").findings
    assert [(each.rule, each.fixable) for each in found] == [("PF303", True)]
    padfix.convert(tmp_path / "model.onnx", tmp_path / "after.onnx", target="onnx2tf")
    after = onnx.load(tmp_path / "after.onnx")
    assert after.ir_version == 4
    assert [each.name for each in after.graph.input] == ["X"]
    assert [each.name for each in after.graph.initializer] == ["b"]
    assert not padfix.check(tmp_path / "after.onnx", target="onnx2tf").findings


@pytest.mark.parametrize(
    ("nodes", "is_unread"),
    [
        ("Y = Relu (X)", True),
        ("s = Shape (Z) Y = Reshape (X, s)", True),
        ("Y = Relu (X) Z_unread = Exp (X)", True),
        ("Y = Mul (X, Z)", False),
        ("Y = Relu (X) b = Exp (Z)", False),
    ],
)
def test_an_input_that_nothing_reads_gets_a_node_where_the_target_wants_one(
    nodes: str, is_unread: bool, tmp_path: Path
) -> None:
    text = f"g (float[1,6] X, float[1,6] Z) => (float[1,6] Y) {{ {nodes} }}"
    onnx.save(parse(f'<ir_version: 8, opset_import: ["" : 17]> {text}'), tmp_path / "model.onnx")
    found = [each.rule for each in padfix.check(tmp_path / "model.onnx", target="opencv@4.14").findings]
    assert ("PF303" in found) == is_unread
    padfix.convert(tmp_path / "model.onnx", tmp_path / "after.onnx", target="opencv@4.14")
    read = [name for node in onnx.load(tmp_path / "after.onnx").graph.node for name in node.input]
    assert "Z" in read
    assert not padfix.check(tmp_path / "after.onnx", target="opencv@4.14").findings


COUNTED = """<ir_version: 8, opset_import: ["" : 17]>
g (float[2,4,5] X) => (float[2,N,5] Y)
<int64[1] turns = {2}, bool yes = {1}, int64[3] bounds = {0, 1, 3}, int64[1] axis = {1}, int64 place = {1}> {
  none = SequenceEmpty <dtype = 1> ()
  pieces = Loop (turns, yes, none) <body = b
    (int64[1] turn, bool on, seq(float[?,?,?]) made) => (bool goes, seq(float[?,?,?]) more) {
    goes = Identity (on)
    one = Constant <value_int = 1> ()
    next = Add (turn, one)
    first = Gather (bounds, turn)
    last = Gather (bounds, next)
    piece = Slice (X, first, last, axis)
    more = SequenceInsert (made, piece)
  }>
  Y = SequenceAt (pieces, place)
}"""


def test_a_loop_that_takes_its_turn_as_a_list_of_one_is_given_a_number(tmp_path: Path) -> None:
    source, result = tmp_path / "before.onnx", tmp_path / "after.onnx"
    onnx.save(parse(COUNTED), source)
    padfix.convert(source, result)
    (loop,) = (each for each in onnx.load(result).graph.node if each.op_type == "Loop")
    body = loop.attribute[0].g
    assert not body.input[0].type.tensor_type.shape.dim
    assert [each.op_type for each in body.node][:1] == ["Reshape"]
    assert list(body.node[0].output) == ["turn"]
    assert not padfix.check(result).findings
    data = np.random.default_rng(0).standard_normal((2, 4, 5)).astype(np.float32)
    for path in (source, result):
        np.testing.assert_array_equal(session(onnx.load(path), optimised=True).run(None, {"X": data})[0], data[:, 1:3])
