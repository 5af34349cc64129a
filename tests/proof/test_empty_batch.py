"""Without rows a result does what the original does; runs that never end are given up."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import onnx
import pytest

import padfix
from padfix.process import deadline
from padfix.proof import alone, generated
from padfix.proof.alone import Alone
from padfix.proof.empty_batch import EmptyBatch, empty_probes, hint_of
from padfix.proof.executors import ExecutionFailed, OnnxRuntimeExecutor, TensorSpec
from padfix.proof.probes import Probe
from padfix.proof.spec_executor import SpecExecutor
from padfix.proof.whole import verify


def executor(text: str, *, optimised: bool = False) -> OnnxRuntimeExecutor:
    model = onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : 18]> {text}')
    return OnnxRuntimeExecutor(model.SerializeToString(), optimised=optimised)


SUM = "g (float[N,4] x) => (float[4] y) { axes = Constant<value_ints = [0]>() y = ReduceSum<keepdims = 0>(x, axes) }"


def test_each_open_first_axis_is_empty_by_itself_and_with_the_others() -> None:
    specs = [
        TensorSpec("a", 1, ("N", 4)),
        TensorSpec("b", 1, ("N",)),
        TensorSpec("c", 1, (None, 2)),
        TensorSpec("d", 1, (3,)),
    ]
    probe = Probe("p", {"a": np.ones((2, 4)), "b": np.ones(2), "c": np.ones((5, 2)), "d": np.ones(3)})
    shapes = [tuple(each.shapes.values()) for each in empty_probes(specs, probe)]
    assert shapes == [((0, 4), (0,), (5, 2), (3,)), ((2, 4), (2,), (0, 2), (3,)), ((0, 4), (0,), (0, 2), (3,))]


def test_other_open_axes_are_empty_one_by_one() -> None:
    specs = [TensorSpec("a", 1, ("N", "T", 4)), TensorSpec("b", 1, ("T",)), TensorSpec("c", 1, (2, None))]
    probe = Probe("p", {"a": np.ones((2, 3, 4)), "b": np.ones(3), "c": np.ones((2, 5))})
    found = [(each.name, tuple(each.shapes.values())) for each in empty_probes(specs, probe)]
    assert ("empty batch", ((0, 3, 4), (3,), (2, 5))) in found
    assert ("empty batch", ((2, 0, 4), (0,), (2, 5))) in found, "it is the first axis of b"
    assert found[-1] == ("empty axis", ((2, 3, 4), (3,), (2, 0)))


@pytest.mark.parametrize("result", ["ReduceSum<keepdims = 0>(x, axes)", "ReduceMax<keepdims = 0>(x, axes)"])
def test_what_is_left_of_an_axis_of_no_length_is_compared(result: str) -> None:
    text = "g (float[2,T] x) => (float[2] y) { axes = Constant<value_ints = [1]>() y = %s }"
    original, other = executor(text % "ReduceSum<keepdims = 0>(x, axes)"), executor(text % result)
    verdict = verify(original, [other], rewritten=True)
    if "Sum" in result:
        assert verdict.equivalent
        assert "empty axis at x [2, 0]" in " ".join(verdict.notes)
    else:
        assert not verdict.equivalent


def test_a_result_that_fails_without_rows_is_not_equal() -> None:
    text = "g (float[N,4] x) => (float[N,2,2] y) { shape = Constant<value_ints = [%s]>() y = Reshape(x, shape) }"
    good, bad = executor(text % "-1,2,2"), executor(text % "0,-1,2")
    assert verify(good, [good], rewritten=True).equivalent
    verdict = verify(good, [bad], rewritten=True)
    assert not verdict.equivalent
    assert "on probe 'empty batch'" in verdict.why_not
    assert "at x [0, 4] it can't be run: Reshape" in verdict.why_not
    assert "--shape" in hint_of(verdict)
    assert verify(bad, [bad], rewritten=True).equivalent, "what the original does not take is asked of nobody"
    assert verify(good, [bad]).equivalent, "two models of their own are compared where there are rows"


def test_an_optimiser_that_breaks_what_the_rules_state_is_noted_without_asking_the_original() -> None:
    """TensorFlow takes seconds to start, and its rules say already what comes out."""
    text = "g (float[N,4] x) => (float[N,2,2] y) { shape = Constant<value_ints = [%s]>() y = Reshape(x, shape) }"
    good, bad = executor(text % "-1,2,2"), executor(text % "0,-1,2", optimised=True)
    stated = {"y": (0, 2, 2)}
    inner = SimpleNamespace(shapes=lambda feeds, fetches: stated)
    feeding = SimpleNamespace(of_candidate=lambda number, arrays: arrays)
    (probe,) = empty_probes(good.inputs, Probe("p", {"x": np.ones((2, 4), np.float32)}))
    asked: list[object] = []

    def run(feeds: object) -> None:
        asked.append(feeds)
        raise ExecutionFailed("not here")

    original = SimpleNamespace(outputs=["y"], inner=inner, run=run)
    empty = EmptyBatch(original, [good, bad], feeding, lambda *_: (), {})  # type: ignore[arg-type]
    assert empty.agrees(probe)
    assert [note for note in empty.notes if note.startswith("What ONNX Runtime's optimiser makes of the result can't")]
    assert not asked and not empty.wrong
    stated["y"] = (0, None, 2)
    assert not empty.agrees(probe)
    assert asked, "what the rules leave open, the original is asked"
    empty.close()


def test_axes_of_no_length_are_left_alone_after_a_run_that_did_not_end(monkeypatch: pytest.MonkeyPatch) -> None:
    inner = SimpleNamespace(shapes=lambda feeds, fetches: {"y": (2, 0)})
    original = SimpleNamespace(outputs=["y"], inner=inner, run=None)
    feeding = SimpleNamespace(of_candidate=lambda number, arrays: arrays)
    empty = EmptyBatch(original, [original, original], feeding, lambda *_: (), {})  # type: ignore[arg-type]
    asked: list[object] = []

    def run(alone: object, feeds: object) -> None:
        asked.append(feeds)
        raise ExecutionFailed("it did not end within 15 s", overdue=True)

    monkeypatch.setattr(Alone, "run", run)
    probes = [Probe("empty axis", {"x": np.ones((2, 0))}) for _ in range(3)]
    assert [empty.agrees(each) for each in probes] == [False] * 3
    assert len(asked) == 1


def test_what_is_left_of_no_rows_is_compared() -> None:
    zero, one = (
        executor(SUM),
        executor(
            SUM.replace("y = ReduceSum", "s = ReduceSum").replace(
                "axes) }",
                "axes) "
                """
        n = Shape(x) f = Cast<to = 1>(n) first = Constant<value_ints = [0]>() rows = Gather(f, first)
        half = Constant<value_floats = [0.5]>() few = Less(rows, half) more = Cast<to = 1>(few) y = Add(s, more) }""",
            )
        ),
    )
    assert verify(zero, [zero], rewritten=True).equivalent
    assert "on probe 'empty batch'" in verify(zero, [one], rewritten=True).why_not
    one.optimised = True
    assert "on probe 'empty batch'" in verify(zero, [zero, one], rewritten=True).why_not, "no excuse for other numbers"


LOOP = """g (float[1] x) => (float[1] y) {
    most = Constant<value_int = 9223372036854775807>() limit = Constant<value_floats = [0.5]>() start = Less(x, limit)
    none = Constant<value_ints = [0]>() go = Squeeze(start, none)
    y = Loop<body = step (int64 i, bool before, float[1] a) => (bool after, float[1] b) {
        b = Identity(a) after = Identity(before) }>(most, go, x) }"""


def test_a_run_that_never_ends_is_dropped_and_the_others_count(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("LEAST_PATIENCE", "BEHIND_ENDLESS"):
        monkeypatch.setattr(generated, name, 0.1)
    original = executor(LOOP)
    verdict = verify(original, [original], patience=0.1)
    assert verdict.equivalent
    assert any("it did not end within 0 s" in note for note in verdict.notes)
    assert {run.probe for run in verdict.runs} >= {"ones"}


def test_a_result_that_never_ends_is_waited_for_once() -> None:
    original = executor("g (float[1] x) => (float[1] y) { y = Identity(x) }")
    verdict = verify(original, [executor(LOOP)], rewritten=True, patience=0.1)
    told = [run.outputs[0].detail for run in verdict.runs]
    assert sum("it did not end within" in each for each in told) == 1
    assert any("it was not run, because another run did not end" in each for each in told)


def test_a_specification_that_never_ends_is_ended() -> None:
    model = SpecExecutor(
        onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : 18]> {LOOP}').SerializeToString()
    )
    with deadline.each_run(0.5), pytest.raises(ExecutionFailed) as caught:
        model.run({"x": np.zeros(1, np.float32)})
    assert caught.value.overdue


@pytest.mark.parametrize("ends", [True, False])
def test_what_does_not_end_in_a_fork_is_run_once_more_in_a_new_process(
    monkeypatch: pytest.MonkeyPatch, ends: bool
) -> None:
    begun: list[bool] = []

    def apart(make: Callable[[], Any], *, fresh: bool = False) -> Callable[[Any], Any]:
        def run(feeds: Any) -> Any:
            begun.append(fresh)
            if fresh and ends:
                return make()(feeds)
            raise deadline.Overdue("it did not end within 15 s")

        return run

    monkeypatch.setattr(alone, "Apart", apart)
    runner = Alone(executor(SUM))
    feeds = {"x": np.ones((2, 4), np.float32)}
    if ends:
        assert [runner.run(feeds)["y"].tolist() for _ in range(2)] == [[2.0] * 4] * 2
        assert begun == [False, True, True]
    else:
        with pytest.raises(ExecutionFailed, match="did not end"):
            runner.run(feeds)
        assert begun == [False, True]


def test_a_model_that_names_unlike_lengths_alike_is_judged(tmp_path: Path) -> None:
    """Exporters do: one name for the channels and the rows; what is fed counts."""
    graph = """(float[N,H,H,W] X) => (float Y) <float e = {2.0}> {
        C = Conv <group = 5, pads = [1, 1, 1, 1]> (X, w) P = Pow (C, e) Y = Add (P, X) }"""
    weights = onnx.numpy_helper.from_array(np.full((5, 1, 3, 3), 0.25, np.float32), "w")
    before = onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : 17]> main {graph}')
    before.graph.initializer.append(weights)
    onnx.save(before, tmp_path / "before.onnx")
    report = padfix.convert(tmp_path / "before.onnx", tmp_path / "after.onnx", target="mnn")
    assert report.verdict is not None
    assert report.verdict.equivalent
    assert {run.shapes["X"][1] for run in report.verdict.runs} == {5}
    assert any(run.shapes["X"][2] != 5 for run in report.verdict.runs)
