"""Inputs and outputs of two models: by name, by position and type, and by layout where the lengths tell."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import onnx
import pytest
from onnx import ModelProto, TensorProto, helper

from padfix.diagnose.place import describe
from padfix.proof.executors import OnnxRuntimeExecutor, TensorSpec, flatten_outputs
from padfix.proof.matching import InputMatch, match_inputs, match_outputs, order_between
from padfix.proof.whole import verify
from padfix.results import Verdict
from tests.support.proofs import model

FLOAT, HALF, INT32, INT64 = TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.INT32, TensorProto.INT64
FIRST, LAST = (0, 3, 1, 2), (0, 2, 3, 1)
WEIGHT = np.random.default_rng(0).standard_normal((4, 3, 3, 3)).astype(np.float32)


@pytest.mark.parametrize(
    ("first", "second", "order"),
    [
        ((1, 32, 48, 3), (1, 3, 32, 48), FIRST),
        ((1, 3, 32, 48), (1, 32, 48, 3), LAST),
        ((1, 3, 3, 3), (1, 3, 3, 3), None),
        (("N", "H", "W", 3), ("N", 3, "H", "W"), FIRST),
        (("N", "H", "W", 3), ("N", "a", "b", "c"), None),
        ((None, None, None, 3), (1, 3, 224, 224), FIRST),
        ((1, 8, 4, 2), (1, 8, 4, 3), None),
        ((1, 5, 7), (1, 7, 5), (0, 2, 1)),
        ((1, 6, 7, 8, 2), (1, 2, 6, 7, 8), (0, 4, 1, 2, 3)),
        ((5, 7), (7, 5), None),
        (None, (1, 3, 4, 4), None),
        # Either order would do.
        ((1, 2, None, None), (1, 3, None, None), None),
    ],
)
def test_another_layout_is_taken_only_where_the_lengths_leave_no_other_way(
    first: tuple[int | str | None, ...] | None,
    second: tuple[int | str | None, ...] | None,
    order: tuple[int, ...] | None,
) -> None:
    assert order_between(first, second) == order


def pairs(found: list[InputMatch] | list[str]) -> dict[str, str]:
    assert all(isinstance(each, InputMatch) for each in found), found
    return {each.candidate.name: each.reference.name for each in found if isinstance(each, InputMatch)}


def specs(*named: tuple[str, int, Sequence[int | str | None]]) -> list[TensorSpec]:
    return [TensorSpec(name, elem_type, tuple(shape)) for name, elem_type, shape in named]


def test_names_come_before_positions_and_types_before_kinds() -> None:
    ours = specs(("a", FLOAT, (2, 3)), ("b", FLOAT, (2, 3)), ("c", INT64, (4,)))
    assert pairs(match_inputs(ours, specs(("b", FLOAT, (2, 3)), ("a", FLOAT, (2, 3))))) == {"b": "b", "a": "a"}
    assert pairs(match_inputs(ours, specs(("a:0", FLOAT, (2, 3)), ("x", INT64, (4,))))) == {"a:0": "a", "x": "c"}
    assert pairs(match_inputs(ours, specs(("x", INT32, (4,)), ("y", FLOAT, (2, 3))))) == {"x": "c", "y": "a"}
    # The first by position has another rank.
    mixed = specs(("p", FLOAT, (9,)), ("q", FLOAT, (1, 4, 4, 3)))
    assert pairs(match_inputs(mixed, specs(("x", FLOAT, (1, 3, 4, 4)), ("y", FLOAT, (9,))))) == {"x": "q", "y": "p"}


def test_what_nothing_fits_is_named() -> None:
    ours = specs(("a", FLOAT, (2, 3)))
    assert match_inputs(ours, specs(("x", INT64, (2, 3)))) == ["x"]
    assert match_inputs(ours, specs(("x", FLOAT, (2, 3)), ("y", FLOAT, (2, 3)))) == ["y"]


@pytest.mark.parametrize(
    ("second", "place"),
    [
        ("s = SequenceConstruct (X, X) Y = SequenceInsert (s, t)", None),
        ("s = SequenceConstruct (X, X) r = SequenceInsert (s, t) Y = SequenceInsert (r, X)", "SequenceInsert"),
        ("s = SequenceConstruct (X, X) Y = SequenceErase (s)", "SequenceInsert"),
        ("s = SequenceConstruct (X, t) Y = SequenceInsert (s, X)", "SequenceInsert"),
    ],
)
def test_lists_are_equal_that_hold_as_much_in_the_same_order(second: str, place: str | None) -> None:
    head = '<ir_version: 8, opset_import: ["" : 17]> g (float[2, 6] X) => (seq(float[2, 6]) Y)'
    first = "s = SequenceConstruct (X, X) Y = SequenceInsert (s, t)"
    executors = [
        OnnxRuntimeExecutor(
            onnx.parser.parse_model(f"{head} {{ t = Tanh (X) {body} }}").SerializeToString(), optimised=False
        )
        for body in (first, second)
    ]
    verdict = verify(executors[0], executors[1:], describe=describe)
    assert verdict.equivalent == (place is None)
    assert (verdict.first_difference.op_type if verdict.first_difference is not None else None) == place


def test_members_are_paired_by_their_keys() -> None:
    ours, theirs = (flatten_outputs([name], [[{0: 1.0, key: 2.0}]]) for name, key in (("a", 1), ("b", 2)))
    assert match_outputs(ours, theirs, {}) == {
        "a[]": "b[]",
        "a[0][]": "b[0][]",
        "a[0][0]": "b[0][0]",
        "a[0][1]": "b[0][1]",
    }
    assert "b[0][1]" not in theirs
    assert {name: int(array) for name, array in flatten_outputs(["a"], [None]).items()} == {"a[]": 0}


def test_outputs_are_paired_by_what_they_look_like_where_positions_contradict() -> None:
    reference = {"boxes": np.zeros((1, 7, 4), np.float32), "labels": np.zeros((1, 7), np.int64)}
    candidate = {"out0": np.zeros((1, 7), np.int64), "out1": np.zeros((1, 7, 4), np.float32)}
    assert match_outputs(reference, candidate, {}) == {"boxes": "out1", "labels": "out0"}
    assert match_outputs(reference, {"boxes:0": None, "labels:0": None}, {}) == {
        "boxes": "boxes:0",
        "labels": "labels:0",
    }
    assert match_outputs(reference, candidate, {"boxes": "out0"})["boxes"] == "out0"


def judged(first: ModelProto, second: ModelProto, **options: object) -> Verdict:
    executors = [OnnxRuntimeExecutor(each.SerializeToString(), optimised=False) for each in (first, second)]
    return verify(executors[0], executors[1:], **options)  # type: ignore[arg-type]


def network(
    shape: Sequence[int | str], pads: Sequence[int] = (1, 1, 1, 1), constants: Mapping | None = None
) -> ModelProto:
    node = helper.make_node("Conv", ["X", "W"], ["Y"], pads=list(pads))
    return model([node], {"X": (FLOAT, shape)}, constants={"W": WEIGHT})


def channels_last(shape: Sequence[int | str], pads: Sequence[int] = (1, 1, 1, 1)) -> ModelProto:
    nodes = [
        helper.make_node("Transpose", ["image"], ["x"], perm=[0, 3, 1, 2]),
        helper.make_node("Conv", ["x", "W"], ["y"], pads=list(pads)),
        helper.make_node("Transpose", ["y"], ["features"], perm=[0, 2, 3, 1]),
    ]
    return model(nodes, {"image": (FLOAT, shape)}, ["features"], constants={"W": WEIGHT})


@pytest.mark.parametrize(
    ("last", "first"),
    [((1, 9, 12, 3), (1, 3, 9, 12)), (("N", "H", "W", 3), ("N", 3, "H", "W")), ((1, 9, 12, 3), ("N", 3, "H", "W"))],
)
def test_models_in_two_layouts_are_compared(last: Sequence[int | str], first: Sequence[int | str]) -> None:
    verdict = judged(channels_last(last), network(first))
    assert verdict.equivalent
    assert any("Input 'image' has its axes in the order [0, 3, 1, 2]" in note for note in verdict.notes)
    assert any("Output 'features'" in note for note in verdict.notes)
    assert judged(network(first), channels_last(last)).equivalent
    assert not judged(channels_last(last), network(first, (0, 1, 2, 1))).equivalent


def test_a_rewritten_model_may_not_change_its_layout() -> None:
    assert not judged(network((1, 3, 9, 12)), channels_last((1, 9, 12, 3)), rewritten=True).equivalent


def test_lengths_that_only_the_candidate_fixes_are_run_and_noted() -> None:
    verdict = judged(network(("N", 3, "H", "W")), network((1, 3, 9, 12)))
    assert verdict.equivalent
    assert {run.shapes["X"] for run in verdict.runs} == {(1, 3, 9, 12)}
    assert any("only at [1, 3, 9, 12], the original at any length of axis 0, 2, 3" in note for note in verdict.notes)


def test_an_input_of_another_type_is_given_numbers_that_both_hold() -> None:
    def scaled(elem_type: int) -> ModelProto:
        nodes = [helper.make_node("Cast", ["X"], ["c"], to=FLOAT), helper.make_node("Mul", ["c", "k"], ["Y"])]
        return model(nodes, {"X": (elem_type, (4, 5))}, constants={"k": np.array(1e5, np.float32)})

    verdict = judged(scaled(FLOAT), scaled(HALF), rtol=0, atol=0)
    assert verdict.equivalent
    assert any("type float16 in the result, not float32" in note for note in verdict.notes)
    assert judged(scaled(INT64), scaled(INT32)).equivalent


@pytest.mark.parametrize(
    ("elem_type", "op_type", "attributes"),
    [
        (INT64, "Identity", {}),
        (FLOAT, "Cast", {"to": TensorProto.BOOL}),
        (FLOAT, "Cast", {"to": HALF}),
        (FLOAT, "Cast", {"to": TensorProto.STRING}),
        (TensorProto.STRING, "Identity", {}),
        (FLOAT, "Log", {}),
        (FLOAT, "Reciprocal", {}),
    ],
)
def test_outputs_of_every_type_and_not_a_number(elem_type: int, op_type: str, attributes: dict[str, int]) -> None:
    def built(axis: int) -> ModelProto:
        nodes = [
            helper.make_node("Concat", ["X", "X"], ["t"], axis=axis),
            helper.make_node("Reshape", ["t", "shape"], ["r"]),
            helper.make_node(op_type, ["r"], ["Y"], **attributes),
        ]
        return model(nodes, {"X": (elem_type, (3, 3))}, constants={"shape": np.array([18], np.int64)})

    assert judged(built(0), built(0)).equivalent
    assert not judged(built(0), built(1)).equivalent
