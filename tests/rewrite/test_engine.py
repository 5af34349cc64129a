"""The pipeline over whole models: scopes, upgrades, refusals, and that nothing else changes."""

from __future__ import annotations

import numpy as np
import onnx
import onnx.parser
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

from padfix.errors import UsageError
from padfix.files.model import Model
from padfix.proof.executors import OnnxRuntimeExecutor
from padfix.proof.spec_executor import SpecExecutor
from padfix.rewrite.engine import rewrite_model
from padfix.targets import named


def parse(text: str) -> Model:
    return Model(onnx.parser.parse_model(text))


def attributes(model: Model, op_type: str) -> list[dict[str, object]]:
    return [
        {attribute.name: helper.get_attribute_value(attribute) for attribute in node.attribute}
        for node in model.proto.graph.node
        if node.op_type == op_type
    ]


def same_numbers(before: bytes, after: Model, feeds: dict[str, np.ndarray]) -> None:
    expected = SpecExecutor(before).run(feeds)
    for optimised in (False, True):
        actual = OnnxRuntimeExecutor(after.proto.SerializeToString(), optimised=optimised).run(feeds)
        for name, value in expected.items():
            np.testing.assert_allclose(actual[name], value, rtol=1e-5, atol=1e-5)


SAME_POOL = """<ir_version: 8, opset_import: ["" : 13]>
g (float[1,2,6,7] X) => (float[1,2,3,4] Y) {
  Y = MaxPool <auto_pad = "SAME_UPPER", kernel_shape = [3, 3], strides = [2, 2]> (X)
}"""


def test_same_padding_becomes_explicit_and_the_second_run_changes_nothing() -> None:
    model = parse(SAME_POOL)
    before = model.proto.SerializeToString()
    result = rewrite_model(model)
    assert [rewrite.finding.rule for rewrite in result.rewrites] == ["PF101"]
    assert attributes(model, "MaxPool") == [{"kernel_shape": [3, 3], "strides": [2, 2], "pads": [0, 1, 1, 1]}]
    same_numbers(before, model, {"X": np.random.default_rng(0).normal(size=(1, 2, 6, 7)).astype(np.float32) - 3})
    settled = model.proto.SerializeToString()
    assert not rewrite_model(model).changed
    assert model.proto.SerializeToString() == settled


def test_every_rewrite_carries_its_proof() -> None:
    (rewrite,) = rewrite_model(parse(SAME_POOL)).rewrites
    assert rewrite.proof is not None
    assert rewrite.proof.cases > 0
    assert set(rewrite.proof.witnesses) >= {"spec", "onnxruntime"}


def test_without_proof_the_record_says_so() -> None:
    (rewrite,) = rewrite_model(parse(SAME_POOL), prove=False).rewrites
    assert rewrite.proof is None


def test_a_lower_opset_is_refused() -> None:
    with pytest.raises(UsageError, match="newer than the requested 11"):
        rewrite_model(parse(SAME_POOL), opset=11)


def test_bodies_and_functions_are_rewritten() -> None:
    weights = numpy_helper.from_array(np.ones((1, 1, 3, 3), np.float32), "W")
    conv = helper.make_node("Conv", ["X", "W"], ["T"], auto_pad="SAME_LOWER", name="inner", strides=[2, 2])
    relu = helper.make_node("Relu", ["X"], ["R"])
    crop = helper.make_node("MaxPool", ["R"], ["E"], kernel_shape=[2, 2], strides=[2, 2], auto_pad="VALID")
    branches = {
        "then_branch": helper.make_graph([conv], "then", [], [helper.make_tensor_value_info("T", 1, None)]),
        "else_branch": helper.make_graph([relu, crop], "else", [], [helper.make_tensor_value_info("E", 1, None)]),
    }
    branch = helper.make_node("If", ["C"], ["M"], name="choose", **branches)
    function = helper.make_function(
        "local",
        "Shrink",
        ["A"],
        ["B"],
        [helper.make_node("AveragePool", ["A"], ["B"], kernel_shape=[2, 2], auto_pad="SAME_UPPER")],
        [helper.make_opsetid("", 13)],
    )
    call = helper.make_node("Shrink", ["M"], ["Y"], domain="local")
    graph = helper.make_graph(
        [branch, call],
        "g",
        [
            helper.make_tensor_value_info("X", TensorProto.FLOAT, [1, 1, 6, 6]),
            helper.make_tensor_value_info("C", TensorProto.BOOL, []),
        ],
        [helper.make_tensor_value_info("Y", TensorProto.FLOAT, None)],
        [weights],
    )
    proto = helper.make_model(
        graph,
        opset_imports=[helper.make_opsetid("", 13), helper.make_opsetid("local", 1)],
        functions=[function],
        ir_version=8,
    )
    model = Model(proto)
    before = proto.SerializeToString()
    result = rewrite_model(model)
    places = {(rewrite.finding.graph, rewrite.finding.rule) for rewrite in result.rewrites}
    assert places == {
        ("main/choose.then_branch", "PF101"),
        ("main/choose.else_branch", "PF103"),
        ("function:local:Shrink", "PF101"),
    }
    assert b"auto_pad" not in model.proto.SerializeToString()
    data = np.random.default_rng(1).normal(size=(1, 1, 6, 6)).astype(np.float32)
    for choice in (True, False):
        same_numbers(before, model, {"X": data, "C": np.array(choice)})


def test_a_legacy_resize_takes_the_rest_of_the_model_to_the_new_opset() -> None:
    model = parse(
        """<ir_version: 4, opset_import: ["" : 9]>
        g (float[1,1,3,4] X) => (float[1,1,6,8] Y) <float[4] scales = {1.0, 1.0, 2.0, 2.0}> {
          U = Upsample <mode = "nearest"> (X, scales)
          Y = Clip <min = -1.0, max = 1.0> (U)
        }"""
    )
    before = model.proto.SerializeToString()
    result = rewrite_model(model)
    assert {rewrite.finding.rule for rewrite in result.rewrites} == {"PF201", "PF301"}
    assert model.proto.opset_import[0].version == 11
    assert "Upsample" not in {node.op_type for node in model.proto.graph.node}
    same_numbers(before, model, {"X": np.random.default_rng(2).normal(size=(1, 1, 3, 4)).astype(np.float32)})


def test_a_runtime_that_contradicts_the_specification_is_named() -> None:
    model = parse(
        """<ir_version: 8, opset_import: ["" : 13]>
        g (float[1,1,7,7] X, float[1,1,3,3] W) => (float[1,1,7,7] Y) {
          Y = Conv <auto_pad = "SAME_UPPER", kernel_shape = [3, 3], dilations = [2, 2]> (X, W)
        }"""
    )
    result = rewrite_model(model)
    assert result.changed
    (disagreement,) = result.contradictions
    assert disagreement.runtime == "onnxruntime"
    assert disagreement.version == onnxruntime.__version__
    assert disagreement.sentence.startswith("Conv '#0' in main: ONNX Runtime ")
    assert disagreement.specified is not None
    assert disagreement.specified.shape == disagreement.input_shapes[0]
    assert disagreement.found is None


def test_weights_that_others_took_the_place_of_are_left_out() -> None:
    # Before version 4 every initializer is an input as well, and ONNX Runtime loads none that nothing reads.
    model = parse(
        """<ir_version: 3, opset_import: ["" : 8]>
        g (float[1,1,7,7,7] X) => (float[1,1,5,5,5] Y) <float[1,1,2,2,2] W = {1, 2, 3, 4, 5, 6, 7, 9}> {
          Y = Conv <dilations = [2, 2, 2], kernel_shape = [2, 2, 2]> (X, W)
        }"""
    )
    result = rewrite_model(model, target=named("mnn"))
    assert [each.finding.rule for each in result.rewrites] == ["PF111"]
    assert [each.name for each in model.proto.graph.initializer] == []
    OnnxRuntimeExecutor(model.proto.SerializeToString(), optimised=False)


def test_what_is_found_again_after_the_last_pass_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    text = """<ir_version: 8, opset_import: ["" : 13]>
    g (float[2,5,2,3] X) => (float[2,5,2] Y) <float[3] w = {1, 2, 3}> { Y = MatMul (X, w) }"""
    assert not rewrite_model(parse(text), target=named("onnx2tf")).refusals
    monkeypatch.setattr("padfix.rewrite.engine.MAXIMUM_PASSES", 1)
    refusals = rewrite_model(parse(text), target=named("onnx2tf")).refusals
    assert refusals and all("found again" in each.reason for each in refusals)
    text = text.replace("Y = ", "Z = NonMaxSuppression (b, s, m, t) Y = ")
    text = text.replace("g (", "g (float[1,4,4] b, float[1,1,4] s, int64 m, float t, ")
    refusals = rewrite_model(parse(text), target=named("portable")).refusals
    places = [(each.finding.rule, each.finding.node) for each in refusals]
    assert len(set(places)) == len(places)
