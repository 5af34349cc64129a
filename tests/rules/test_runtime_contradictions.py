"""PF109: what is said of ONNX Runtime is what the installed version does, no more and no less."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import ModelProto, TensorProto, ValueInfoProto, helper, numpy_helper

import padfix
from padfix.errors import ProofUnavailableError
from padfix.files.model import Model
from padfix.operators.inference import infer
from padfix.proof.executors import ExecutionFailed, OnnxRuntimeExecutor
from padfix.proof.spec_executor import SpecExecutor
from padfix.rewrite.engine import rewrite_model
from padfix.rewrite.matches import findings
from tests.support.padding_models import model_of, random_case, session


def contradictions(proto: ModelProto) -> list[padfix.Finding]:
    return [finding for finding in findings(infer(Model(proto))) if finding.rule == "PF109"]


def runs_as_specified(proto: ModelProto, X: np.ndarray) -> bool:
    serialized = proto.SerializeToString()
    meant = SpecExecutor(serialized).run({"X": X})["Y"]
    try:
        found = OnnxRuntimeExecutor(serialized, optimised=False, threads=1).run({"X": X})["Y"]
    except ExecutionFailed:
        return False
    return meant.shape == found.shape and bool(np.allclose(meant, found, rtol=1e-4, atol=1e-4, equal_nan=True))


def one_node(
    op_type: str, shape: tuple[int | str, ...], weights: np.ndarray | None = None, opset: int = 19, **fields: object
) -> ModelProto:
    constants = [] if weights is None else [numpy_helper.from_array(weights, "W")]
    node = helper.make_node(op_type, ["X", *(["W"] if constants else [])], ["Y"], name="node", **fields)
    value = helper.make_tensor_value_info("X", TensorProto.FLOAT, shape)
    graph = helper.make_graph([node], "g", [value], [ValueInfoProto(name="Y")], constants)
    graph.output[0].type.tensor_type.elem_type = TensorProto.FLOAT
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)


def noise(*shape: int) -> np.ndarray:
    return np.random.default_rng(shape).normal(size=shape).astype(np.float32) - 3


@pytest.mark.parametrize("seed", range(3))
def test_auto_pad_is_reported_exactly_where_the_installed_runtime_contradicts(seed: int, slow: bool) -> None:
    rng = np.random.default_rng(seed)
    told = 0
    for _ in range(2000 if slow else 120):
        case = random_case(rng)
        case = type(case)(**{**vars(case), "dynamic": (False,) * len(case.size)})
        proto = model_of(case, rng)
        X = (rng.standard_normal((1, 2 * case.group, *case.size)) - 2).astype(np.float32)
        said = [each for each in contradictions(proto) if "folds shapes" not in each.message]
        assert (not said) == runs_as_specified(proto, X), case
        told += bool(said)
    assert told > 10


@pytest.mark.parametrize("op_type", ["MaxPool", "AveragePool", "LpPool"])
def test_pads_that_are_too_long_are_reported_and_become_a_pad(op_type: str) -> None:
    # Pads of 3 beside 2 taps that span 4 elements; the other axis has pads that every runtime takes.
    proto = one_node(op_type, (1, 2, 9, "w"), kernel_shape=[2, 2], dilations=[3, 1], pads=[3, 1, 2, 0])
    (finding,) = contradictions(proto)
    assert finding.fixable
    assert "ONNX Runtime 1.31.1 refuses to load" in finding.message
    X = noise(1, 2, 9, 6)
    assert not runs_as_specified(proto, X)
    meant = SpecExecutor(proto.SerializeToString()).run({"X": X})["Y"]
    result = rewrite_model(Model(proto))
    assert [each.finding.rule for each in result.rewrites] == ["PF109"]
    for optimised in (False, True):
        (found,) = session(proto, optimised=optimised).run(None, {"X": X})
        np.testing.assert_allclose(found, meant, rtol=1e-5, atol=1e-5)
    assert list(findings(infer(Model(proto)))) == []


@pytest.mark.parametrize("count_include_pad", [0, 1])
def test_an_average_behind_a_pad_counts_as_before(count_include_pad: int) -> None:
    fields = {"kernel_shape": [2], "pads": [2, 3], "dilations": [3], "count_include_pad": count_include_pad}
    proto = one_node("AveragePool", (1, 1, "n"), **fields)
    X = noise(1, 1, 7)
    meant = SpecExecutor(proto.SerializeToString()).run({"X": X})["Y"]
    assert not rewrite_model(Model(proto)).refusals
    for optimised in (False, True):
        (found,) = session(proto, optimised=optimised).run(None, {"X": X})
        np.testing.assert_allclose(found, meant, rtol=1e-5, atol=1e-5)


def test_too_long_pads_with_a_ceiling_are_refused_where_that_adds_a_window() -> None:
    fields = {"kernel_shape": [2], "strides": [2], "dilations": [3], "pads": [2, 0], "ceil_mode": 1}
    proto = one_node("MaxPool", (1, 1, 7), **fields)
    (refusal,) = rewrite_model(Model(proto)).refusals
    assert refusal.finding.rule == "PF109"
    assert "ceil_mode" in refusal.reason

    same_length = one_node("MaxPool", (1, 1, 8), **fields)
    assert not rewrite_model(Model(same_length)).refusals

    unknown = one_node("MaxPool", (1, 1, "n"), **fields)
    (refusal,) = rewrite_model(Model(unknown)).refusals
    assert "--shape" in refusal.reason


def test_a_window_in_the_padding() -> None:
    maximum = one_node("MaxPool", (1, 1, 2), kernel_shape=[2], dilations=[3], pads=[1, 1])
    assert [each.fixable for each in contradictions(maximum)] == [True]
    assert not runs_as_specified(maximum, noise(1, 1, 2))
    rewrite_model(Model(maximum))
    (found,) = session(maximum, optimised=True).run(None, {"X": noise(1, 1, 2)})
    assert np.isneginf(found).all()

    average = one_node("AveragePool", (1, 1, 2), kernel_shape=[2], dilations=[3], pads=[1, 1])
    assert [each.fixable for each in contradictions(average)] == [False]
    assert not runs_as_specified(average, noise(1, 1, 2))


@pytest.mark.parametrize(("kernel", "stride", "extra", "told"), [(2, 3, 0, True), (2, 3, 1, False), (3, 2, 0, False)])
def test_a_transposed_convolution_that_stays_short(kernel: int, stride: int, extra: int, told: bool) -> None:
    weights = np.ones((1, 1, kernel), np.float32)
    fields = {"auto_pad": "SAME_UPPER", "strides": [stride], "output_padding": [extra]}
    proto = one_node("ConvTranspose", (1, 1, 4), weights, **fields)
    assert bool(contradictions(proto)) is told
    assert runs_as_specified(proto, noise(1, 1, 4)) is not told
    assert not rewrite_model(Model(proto)).refusals
    assert contradictions(proto) == []
    assert runs_as_specified(proto, noise(1, 1, 4))


def test_an_unknown_length_is_reported_when_one_of_its_residues_contradicts() -> None:
    weights = np.ones((1, 1, 1), np.float32)
    fields = {"auto_pad": "SAME_UPPER", "kernel_shape": [1]}
    assert contradictions(one_node("Conv", (1, 1, "n"), weights, strides=[4], **fields))
    assert not contradictions(one_node("Conv", (1, 1, 9), weights, strides=[4], **fields))
    assert not contradictions(one_node("Conv", (1, 1, "n"), weights, strides=[2], **fields))


@pytest.mark.parametrize("op_type", ["MaxPool", "AveragePool", "LpPool"])
@pytest.mark.parametrize(
    ("size", "kernel", "stride", "pads", "opset", "told"),
    [
        (9, 1, 3, [0, 0], 18, True),
        (5, 2, 3, [1, 1], 20, True),
        (9, 1, 3, [0, 0], 22, False),
        (9, 3, 3, [0, 0], 18, False),  # nothing is left over
        (7, 2, 2, [0, 0], 18, False),  # a window more, and it counts
    ],
)
def test_a_ceiling_that_adds_nothing_goes_where_shapes_are_folded_wrong(
    op_type: str, size: int, kernel: int, stride: int, pads: list[int], opset: int, told: bool
) -> None:
    proto = one_node(
        op_type, (1, 1, size), None, opset, kernel_shape=[kernel], strides=[stride], pads=pads, ceil_mode=1
    )
    proto.graph.node.append(helper.make_node("Shape", ["Y"], ["S"]))
    proto.graph.output.append(helper.make_tensor_value_info("S", TensorProto.INT64, [3]))
    feeds = {"X": noise(1, 1, size)}

    def shapes() -> list[tuple[list[int], tuple[int, ...]]]:
        runs = [session(proto, optimised=optimised).run(None, feeds) for optimised in (False, True)]
        return [(list(told_shape), result.shape) for result, told_shape in runs]

    assert any(list(actual) != folded for folded, actual in shapes()) is told
    assert bool(contradictions(proto)) is told
    meant = session(proto, optimised=False).run(["Y"], feeds)[0]
    assert bool(rewrite_model(Model(proto)).rewrites) is told
    assert all(list(actual) == folded for folded, actual in shapes())
    np.testing.assert_array_equal(session(proto, optimised=True).run(["Y"], feeds)[0], meant)
    assert contradictions(proto) == []


@pytest.mark.parametrize("is_padded", [True, False])
def test_where_the_runtime_gives_no_number_it_judges_by_all_others(is_padded: bool, tmp_path: Path) -> None:
    """ONNX Runtime's MeanVarianceNormalization divides by zero where all is alike, as in a probe of ones as it is.

    The specification is the judge then, unless ONNX Runtime was asked for.
    """
    pads = [1, 1, 1, 1] if is_padded else [0, 0, 0, 0]
    graph = helper.make_graph(
        [
            helper.make_node("Conv", ["X", "W"], ["c"], pads=pads),
            helper.make_node("MeanVarianceNormalization", ["c"], ["Y"], axes=[0, 2, 3], name="norm"),
        ],
        "g",
        [helper.make_tensor_value_info("X", TensorProto.FLOAT, [1, 2, 6, 6])],
        [helper.make_tensor_value_info("Y", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(noise(2, 2, 3, 3), "W")],
    )
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 9)], ir_version=8), tmp_path / "in.onnx")
    report = padfix.convert(tmp_path / "in.onnx", tmp_path / "out.onnx", target="ncnn")
    assert report.verdict is not None
    assert report.verdict.equivalent
    assert report.verdict.reference == ("onnxruntime" if is_padded else "spec")
    assert any("no number" in note for note in report.verdict.notes) != is_padded
    if not is_padded:
        with pytest.raises(ProofUnavailableError, match="gives nan"):
            padfix.convert(tmp_path / "in.onnx", tmp_path / "no.onnx", target="ncnn", reference="onnxruntime")
    assert [each.gives_none for each in report.disagreements] == [True]
