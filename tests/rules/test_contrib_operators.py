"""ONNX Runtime's own convolutions and pools (com.microsoft), channels last among them, against brute force."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import ModelProto, NodeProto, TensorProto, helper

import padfix
from padfix.operators.refusal import Refusal
from padfix.proof.spec_executor import SpecExecutor
from tests.support import oracle
from tests.support.contrib_models import CONTRIB, WITH_KERNEL, WITHOUT_KERNEL, Case, contrib_model, last
from tests.support.padding_models import apply_rules, session


def check(op_type: str, seed: int) -> None:
    case = Case(op_type, seed)
    model = case.model()
    before = ModelProto.FromString(model.SerializeToString())
    ((_, refusal),) = apply_rules(model)
    if refusal is not None:
        assert op_type == "QLinearAveragePool" and case.free and not case.attributes["count_include_pad"]
        assert "count_include_pad=1" in refusal.reason
        return
    assert not any(attribute.name == "auto_pad" for node in model.graph.node for attribute in node.attribute)
    assert apply_rules(ModelProto.FromString(model.SerializeToString())) == []
    runners: list[Any] = [SpecExecutor.of(before).run, SpecExecutor.of(model).run]
    if op_type in WITH_KERNEL:
        for optimised in (False, True):
            runner = session(model, optimised=optimised)
            runners.append(lambda feeds, runner=runner: {"Y": runner.run(None, feeds)[0]})
    for size in [case.size, *([case.some_size(), case.some_size()] if case.free else [])]:
        X = case.data(size)
        wanted = case.expected(X)
        feeds = {"X": last(X) if case.channels_last else X}
        for run in runners:
            Y = run(feeds)["Y"]
            Y = np.moveaxis(Y, -1, 1) if case.channels_last else Y
            assert Y.shape == wanted.shape
            np.testing.assert_allclose(Y, wanted, rtol=1e-5, atol=0 if case.integer else 1e-5)


@pytest.mark.parametrize("op_type", [*WITH_KERNEL, *WITHOUT_KERNEL])
def test_random_operators_keep_their_meaning(op_type: str) -> None:
    for seed in range(12):
        check(op_type, seed)


@pytest.mark.slow
@pytest.mark.parametrize("op_type", [*WITH_KERNEL, *WITHOUT_KERNEL])
def test_random_operators_keep_their_meaning_full(op_type: str) -> None:
    for seed in range(100, 500):
        check(op_type, seed)


@pytest.mark.parametrize("op_type", ["Conv", "MaxPool", "NhwcMaxPool", "FusedConv", "QLinearAveragePool"])
@pytest.mark.parametrize("domain", ["mydomain", "ai.onnx.ml", "COM.MICROSOFT"])
def test_an_operator_of_an_unknown_domain_is_never_touched(op_type: str, domain: str) -> None:
    model = contrib_model(
        op_type,
        [1, 3, "h", 8],
        TensorProto.FLOAT,
        {"W": np.ones((2, 3, 3, 3), np.float32)},
        domain,
        auto_pad="SAME_UPPER",
        kernel_shape=[3, 3],
        strides=[2, 2],
    )
    before = model.SerializeToString()
    assert apply_rules(model) == []
    assert model.SerializeToString() == before


@pytest.mark.parametrize("op_type", ["Conv", "MaxPool"])
@pytest.mark.parametrize("domain", ["com.microsoft.nchwc", "com.ms.internal.nhwc"])
@pytest.mark.parametrize("mode", ["SAME_UPPER", "VALID"])
def test_what_onnx_runtime_wrote_for_its_own_layout_is_reported_and_left(op_type: str, domain: str, mode: str) -> None:
    weights = {"W": np.ones((2, 3, 3, 3), np.float32)} if op_type == "Conv" else {}
    model = contrib_model(
        op_type, [1, 3, "h", 8], TensorProto.FLOAT, weights, domain, auto_pad=mode, kernel_shape=[3, 3], strides=[2, 2]
    )
    before = model.SerializeToString()
    ((code, reason),) = apply_rules(model)
    assert code in ("PF101", "PF103")
    assert isinstance(reason, Refusal) and "its own layout of memory" in reason.reason
    assert model.SerializeToString() == before


@pytest.mark.parametrize("op_type", ["Relu", "Conv", "MaxPool", "NhwcDepthToSpace", "QLinearGlobalAveragePool"])
def test_an_operator_that_the_known_domain_lacks_is_never_touched(op_type: str) -> None:
    model = contrib_model(op_type, [1, 3, 8, 8], TensorProto.FLOAT, {}, auto_pad="SAME_UPPER", kernel_shape=[3, 3])
    assert apply_rules(model) == []


def test_a_model_local_function_of_the_same_name_is_never_touched() -> None:
    model = contrib_model("MaxPool", [1, 3, 8, 8], TensorProto.FLOAT, {}, "mine", auto_pad="SAME_UPPER")
    body = [helper.make_node("Relu", ["x"], ["y"])]
    model.functions.append(
        helper.make_function("mine", "MaxPool", ["x"], ["y"], body, [helper.make_opsetid("", 17)], ["auto_pad"])
    )
    assert apply_rules(model) == []


def test_an_addend_of_the_output_s_shape_stays() -> None:
    rng = np.random.default_rng(32)
    W, B = rng.standard_normal((4, 2, 3, 3)).astype(np.float32), rng.standard_normal(4).astype(np.float32)
    Z = rng.standard_normal((1, 4, 4, 3)).astype(np.float32)
    model = contrib_model(
        "FusedConv", [1, 2, 7, 6], TensorProto.FLOAT, {"W": W, "B": B, "Z": Z},
        auto_pad="SAME_LOWER", strides=[2, 2], activation="LeakyRelu", activation_params=[0.5],
    )  # fmt: skip
    assert apply_rules(model) == [("PF101", None)]
    X = rng.standard_normal((1, 2, 7, 6)).astype(np.float32)
    total = oracle.conv(X, W, B, strides=(2, 2), auto_pad="SAME_LOWER") + Z
    for optimised in (False, True):
        Y = session(model, optimised=optimised).run(None, {"X": X})[0]
        np.testing.assert_allclose(Y, np.where(total < 0, total / 2, total), rtol=1e-5, atol=1e-5)


def converted(model: ModelProto, folder: Path, reference: str = "auto") -> tuple[padfix.ConvertReport, ModelProto]:
    source, result = folder / "before.onnx", folder / "after.onnx"
    onnx.save(model, source)
    report = padfix.convert(source, result, reference=reference)
    return report, onnx.load(result)


def test_integers_padded_apart_need_opset_11(tmp_path: Path) -> None:
    model = contrib_model(
        "NhwcMaxPool", [1, 8, 8, 2], TensorProto.UINT8, {}, opset=10,
        auto_pad="SAME_UPPER", kernel_shape=[2, 2], dilations=[4, 1],
    )  # fmt: skip
    report, after = converted(model, tmp_path, "spec")
    assert not report.refusals
    assert after.opset_import[0].version == 11
    X = np.random.default_rng(33).integers(0, 256, (1, 2, 8, 8)).astype(np.uint8)
    Y = session(after, optimised=True).run(None, {"X": last(X)})[0]
    wanted = oracle.pool(X, "max", (2, 2), dilations=(4, 1), auto_pad="SAME_UPPER")
    np.testing.assert_array_equal(np.moveaxis(Y, -1, 1), wanted)


@pytest.mark.sweep(10)
@pytest.mark.parametrize("op_type", [*WITH_KERNEL, *WITHOUT_KERNEL])
@pytest.mark.parametrize("seed", [3, 4, 5])
def test_conversion_is_proven_as_a_whole(op_type: str, seed: int, tmp_path: Path) -> None:
    reference = "spec" if op_type in WITHOUT_KERNEL else "auto"
    case = Case(op_type, seed)
    if op_type == "QLinearAveragePool":
        case.attributes["count_include_pad"] = 1
    report, after = converted(case.model(), tmp_path, reference)
    assert report.verdict is not None and report.verdict.equivalent
    assert not report.refusals
    (rewritten,) = report.rewrites
    assert rewritten.proof is not None
    assert ("onnxruntime" in rewritten.proof.witnesses) == (op_type in WITH_KERNEL)
    assert "spec" in rewritten.proof.witnesses
    assert padfix.check(tmp_path / "after.onnx").findings == []
    again, _ = converted(after, tmp_path, reference)
    assert not again.rewrites


def test_shapes_flow_through_operators_without_a_schema() -> None:
    nodes: list[NodeProto] = [
        helper.make_node("NhwcMaxPool", ["X"], ["A"], domain=CONTRIB, auto_pad="SAME_UPPER", kernel_shape=[3, 3],
                         strides=[2, 2]),
        helper.make_node("NhwcMaxPool", ["A"], ["Y"], domain=CONTRIB, auto_pad="SAME_LOWER", kernel_shape=[2, 2],
                         strides=[2, 2]),
    ]  # fmt: skip
    model = contrib_model("NhwcMaxPool", [1, 9, 6, 2], TensorProto.UINT8, {})
    del model.graph.node[:]
    model.graph.node.extend(nodes)
    assert apply_rules(model) == [("PF101", None), ("PF101", None)]
    pads = [next(list(each.ints) for each in node.attribute if each.name == "pads") for node in model.graph.node]
    assert pads == [[1, 0, 1, 1], [1, 1, 0, 0]]


def test_a_quantized_average_over_its_own_elements_can_t_be_padded_apart() -> None:
    tensors = {"xs": np.float32(1), "xz": np.uint8(3), "ys": np.float32(1), "yz": np.uint8(0)}
    model = contrib_model(
        "QLinearAveragePool", [1, 2, "h", "w"], TensorProto.UINT8, tensors,
        auto_pad="SAME_UPPER", kernel_shape=[3, 3], strides=[2, 2],
    )  # fmt: skip
    ((code, refusal),) = apply_rules(model)
    assert code == "PF102"
    assert isinstance(refusal, Refusal) and "--shape" in refusal.reason
