"""Mutants of converted models: every one is caught, and located to the node that was damaged."""

from __future__ import annotations

import importlib.util
import random
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import ModelProto, TensorProto, helper

import padfix
from padfix.diagnose.place import describe
from padfix.proof.cut import part_of
from padfix.proof.executors import OnnxRuntimeExecutor
from padfix.proof.spec_executor import SpecExecutor
from padfix.proof.whole import verify
from padfix.results import FirstDifference
from tests.support.mutants import DAMAGES, Mutant, mutants, named
from tests.support.proofs import model

ROOT = Path(__file__).parents[2]
FIXTURES = ["same_cnn", "dynamic_same", "transposed_same", "legacy_upsample", "explicit_cnn"]


def right(place: FirstDifference | None, mutant: Mutant) -> bool:
    return place is not None and bool({place.candidate_node, *place.candidate_nodes} & mutant.nodes)


def hunt(source: Path, folder: Path, most: int | None = None) -> dict[str, list[bool]]:
    """Convert, damage in every way, and return for each kind of damage whether each mutant was located."""
    converted, sound, damaged = folder / "converted.onnx", folder / "sound.onnx", folder / "damaged.onnx"
    padfix.convert(source, converted)
    onnx.save(named(onnx.load(converted)), sound)
    every = list(mutants(onnx.load(sound)))
    random.Random(0).shuffle(every)
    found: dict[str, list[bool]] = {}
    for mutant in every[:most]:
        onnx.save(mutant.model, damaged)
        verdict = padfix.verify(sound, damaged, locate=True)
        assert not verdict.equivalent, (mutant.kind, sorted(mutant.nodes))
        found.setdefault(mutant.kind, []).append(right(verdict.first_difference, mutant))
    return found


@pytest.mark.sweep(2)
@pytest.mark.parametrize("name", FIXTURES)
def test_every_mutant_of_a_fixture_is_located(name: str, tmp_path: Path) -> None:
    source = ROOT / "fixtures" / "onnx" / f"{name}.onnx"
    found = hunt(source, tmp_path, 12)
    assert found
    assert all(all(located) for located in found.values()), found


@pytest.mark.slow
def test_mutants_of_basic_pitch_are_located(tmp_path: Path) -> None:
    spec = importlib.util.find_spec("basic_pitch")
    if spec is None or spec.origin is None:
        pytest.skip("basic-pitch is not installed")
    source = Path(spec.origin).parent / "saved_models" / "icassp_2022" / "nmp.onnx"
    located = [each for every in hunt(source, tmp_path, 40).values() for each in every]
    assert sum(located) >= 0.95 * len(located)


PADS = np.array([0, 0, 1, 0, 0, 0, 1, 2], np.int64)
WEIGHT = np.random.default_rng(0).standard_normal((3, 2, 3, 3)).astype(np.float32)


def padded() -> ModelProto:
    nodes = [
        helper.make_node("Relu", ["X"], ["R"], name="relu"),
        helper.make_node("Pad", ["R", "pads"], ["P"], name="pad"),
        helper.make_node("Conv", ["P", "W"], ["C"], name="conv", pads=[1, 1, 0, 1]),
        helper.make_node("Resize", ["C", "", "scales"], ["Z"], name="resize", mode="nearest", nearest_mode="floor"),
        helper.make_node("Sigmoid", ["Z"], ["Y"], name="sigmoid"),
    ]
    constants = {"pads": PADS, "W": WEIGHT, "scales": np.array([1, 1, 1.5, 2], np.float32)}
    return model(nodes, {"X": (TensorProto.FLOAT, (1, 2, 9, 8))}, constants=constants)


@pytest.mark.sweep(5)
@pytest.mark.parametrize("kind", DAMAGES)
@pytest.mark.parametrize("witness", ["onnxruntime", "spec"])
def test_each_kind_of_damage_is_located(kind: str, witness: str, tmp_path: Path) -> None:
    before, after = tmp_path / "before.onnx", tmp_path / "after.onnx"
    onnx.save(padded(), before)
    chosen = [mutant for mutant in mutants(padded()) if mutant.kind == kind]
    assert chosen
    for mutant in chosen:
        onnx.save(mutant.model, after)
        verdict = padfix.verify(before, after, reference=witness, locate=True)
        assert not verdict.equivalent
        assert right(verdict.first_difference, mutant), verdict.first_difference


def between(before: ModelProto, after: ModelProto) -> FirstDifference | None:
    sides = [OnnxRuntimeExecutor(each.SerializeToString(), optimised=False) for each in (before, after)]
    return verify(sides[0], sides[1:], describe=describe).first_difference


def test_the_report_says_what_the_graphs_say_differently() -> None:
    (moved,) = (each.model for each in mutants(padded()) if each.nodes == {"conv"} and each.kind == "pad_moved")
    place = between(padded(), moved)
    assert place is not None
    assert (place.tensor, place.node, place.op_type) == ("C", "conv", "Conv")
    assert any("pads is [0, 1, 1, 1], was [1, 1, 0, 1]" in each for each in place.graph_differences)
    assert "Conv: the padding lies on the other side." in place.graph_differences
    assert "a shift of one row toward the begin" in place.cause
    assert place.positions
    for each in place.positions:
        assert abs(each.expected - each.found) > place.difference.tolerance
    assert place.border is not None and place.interior is not None
    assert place.border[1] + place.interior[1] == 3 * 10 * 10
    assert place.complete


@pytest.mark.parametrize(
    ("second", "place"),
    [
        ("a = Relu (X) b = Sigmoid (a) c = Add (b, a) d = Tanh (c) e = Mul (d, b) Y = Neg (e)", None),
        ("a = Relu (X) b = Sigmoid (a) c = Add (b, X) d = Tanh (c) e = Mul (d, b) Y = Neg (e)", "c"),
        ("a = Relu (X) b = Sigmoid (a) c = Add (b, a) d = Tanh (X) e = Mul (d, b) Y = Neg (e)", "d"),
        ("a = Relu (X) b = Sigmoid (a) c = Add (b, a) d = Tanh (c) e = Mul (d, X) Y = Neg (e)", "e"),
    ],
)
def test_a_node_that_reads_another_tensor_is_the_place(second: str, place: str | None) -> None:
    """No wiring pairs what is behind it, and the first pair after it is the output."""
    head = '<ir_version: 8, opset_import: ["" : 17]> g (float[2, 3] X) => (float[2, 3] Y)'
    first = "a = Relu (X) b = Sigmoid (a) c = Add (b, a) d = Tanh (c) e = Mul (d, b) Y = Neg (e)"
    executors = [
        OnnxRuntimeExecutor(onnx.parser.parse_model(f"{head} {{ {body} }}").SerializeToString(), optimised=False)
        for body in (first, second)
    ]
    found = verify(executors[0], executors[1:], describe=describe).first_difference
    assert (found.tensor if found is not None else None) == place


def test_a_node_that_stands_before_what_it_reads_is_run_in_its_place() -> None:
    """ONNX forbids it, ONNX Runtime takes it, and tools for float16 write it."""
    text = """<ir_version: 8, opset_import: ["" : 17]> g (float[2, 3] X) => (float[2, 3] Y)
        {{ b = Exp (a) a = {} (X) c = Neg (b) d = Mul (c, a) Y = Add (d, a) }}"""
    executors = [
        OnnxRuntimeExecutor(onnx.parser.parse_model(text.format(each)).SerializeToString(), optimised=False)
        for each in ("Tanh", "Tanh", "Sigmoid")
    ]
    assert verify(executors[0], executors[1:2]).equivalent
    place = verify(executors[0], executors[2:], describe=describe).first_difference
    assert place is not None
    assert (place.op_type, place.candidate_op_type) == ("Tanh", "Sigmoid")


def test_a_node_that_gives_its_outputs_in_another_order_is_the_place() -> None:
    head = '<ir_version: 8, opset_import: ["" : 18]> g (float[2, 6] X) => (float[2, 2] Y)'
    body = "{} = Split <axis = 1, num_outputs = 3> (X) d = Neg (a) e = Exp (b) f = Sub (d, e) Y = Mul (f, c)"
    executors = [
        OnnxRuntimeExecutor(
            onnx.parser.parse_model(f"{head} {{ {body.format(parts)} }}").SerializeToString(), optimised=False
        )
        for parts in ("a, b, c", "b, a, c")
    ]
    place = verify(executors[0], executors[1:], describe=describe).first_difference
    assert place is not None
    assert (place.op_type, place.candidate_op_type) == ("Split", "Split")
    assert place.graph_differences == ("Split: its outputs stand in another order.",)


def test_a_node_that_puts_an_axis_elsewhere_is_the_place() -> None:
    """The same operators hand the axes on, as a converter's layout would be, up to where they stop fitting."""
    head = '<ir_version: 8, opset_import: ["" : 17]> g (float[1, 5] X, float[1, 2, 5, 5] Z) => (float[1, 2, 5, 5] Y)'
    executors = []
    for axes in ("1, 2", "1, 3"):
        body = f"a = Constant <value = int64[2] {{{axes}}}> () u = Unsqueeze (X, a) e = Exp (u) Y = Add (Z, e)"
        read = onnx.parser.parse_model(f"{head} {{ {body} }}")
        executors.append(OnnxRuntimeExecutor(read.SerializeToString(), optimised=False))
    place = verify(executors[0], executors[1:], describe=describe).first_difference
    assert place is not None
    assert place.op_type == "Unsqueeze"


def test_equal_models_have_no_first_difference() -> None:
    assert between(padded(), padded()) is None


def test_a_length_that_agrees_does_not_clear_what_it_is_the_length_of() -> None:
    def reshaped(slope: float) -> ModelProto:
        nodes = [
            helper.make_node("LeakyRelu", ["X"], ["A"], name="wrong", alpha=slope),
            helper.make_node("Shape", ["A"], ["S"], name="shape"),
            helper.make_node("Cast", ["S"], ["F"], name="cast", to=TensorProto.FLOAT),
            helper.make_node("ReduceSum", ["F"], ["T"], name="sum", keepdims=0),
            helper.make_node("Mul", ["A", "T"], ["Y"], name="mul"),
        ]
        return model(nodes, {"X": (TensorProto.FLOAT, (1, 2, 9, 8))})

    place = between(reshaped(0.1), reshaped(0.2))
    assert place is not None
    assert place.node == "wrong"
    assert place.graph_differences == ("LeakyRelu: alpha is 0.2, was 0.1.",)


def test_a_difference_deep_in_a_long_chain_is_judged_by_its_stretch_alone() -> None:
    def chain(wrong: int | None) -> ModelProto:
        nodes = [
            helper.make_node(
                "LeakyRelu",
                [f"t{i}" if i else "X"],
                [f"t{i + 1}" if i < 199 else "Y"],
                name=f"n{i}",
                alpha=0.5 if i == wrong else 0.999,
            )
            for i in range(200)
        ]
        return model(nodes, {"X": (TensorProto.FLOAT, (1, 2, 9, 8))})

    sides = [OnnxRuntimeExecutor(chain(each).SerializeToString(), optimised=False) for each in (None, 123)]
    verdict = verify(sides[0], sides[1:], describe=describe)
    assert verdict.first_difference is not None
    assert verdict.first_difference.node == "n123"
    assert verdict.stretches is not None
    assert (verdict.stretches.same, verdict.stretches.judged) == (199, 1)


def test_a_cut_model_keeps_what_its_outputs_need_and_nothing_else() -> None:
    part = part_of(padded(), ["P"])
    assert [node.name for node in part.graph.node] == ["relu", "pad"]
    assert [tensor.name for tensor in part.graph.initializer] == ["pads"]
    assert SpecExecutor.of(part).outputs == ["P"]


def test_a_failed_conversion_says_where(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from padfix.geometry import padding

    monkeypatch.setattr("padfix.rewrite.engine._Pipeline._prove", lambda self, site, rewrite: None)
    monkeypatch.setattr(padding, "split_same_padding", lambda total, *, upper: (total, 0))
    with pytest.raises(padfix.NotEquivalent) as caught:
        padfix.convert(ROOT / "fixtures" / "onnx" / "same_cnn.onnx", tmp_path / "out.onnx")
    report = caught.value.report
    assert report is not None and report.verdict is not None
    place = report.verdict.first_difference
    assert place is not None
    assert place.node == "stem"
    assert "Conv: the padding lies on the other side." in place.graph_differences


def test_a_wrong_tensor_that_can_not_even_be_computed_is_the_place(tmp_path: Path) -> None:
    before, after = tmp_path / "before.onnx", tmp_path / "after.onnx"

    def joined(pads: list[int]) -> ModelProto:
        nodes = [
            helper.make_node("MaxPool", ["X"], ["A"], name="pool", kernel_shape=[3, 3], pads=pads),
            helper.make_node("Add", ["A", "X"], ["Y"], name="add"),
        ]
        return model(nodes, {"X": (TensorProto.FLOAT, ("N", 2, "H", "W"))})

    onnx.save(joined([1, 1, 1, 1]), before)
    onnx.save(joined([1, 1, 0, 1]), after)
    verdict = padfix.verify(before, after, locate=True)
    assert not verdict.equivalent
    assert verdict.first_difference is not None
    assert verdict.first_difference.node == "pool"
    assert "1 row missing at the end" in verdict.first_difference.cause
