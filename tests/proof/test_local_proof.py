"""The local proof: right rewrites are proven, every mutant is caught, ONNX Runtime's own slips are named."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

from padfix.graph.fragment import Fragment
from padfix.proof import local
from padfix.proof.local import prove
from padfix.rules.base import Rewrite, TrialInput
from tests.support.proofs import prove_node

WEIGHT = {"W": TrialInput((4, 3, 3, 3))}
EVEN_WEIGHT = {"W": TrialInput((4, 3, 2, 2))}


def test_a_right_convolution_is_proven_by_both_witnesses() -> None:
    outcome = prove_node("Conv", {"auto_pad": "SAME_UPPER"}, {"pads": [1, 1, 1, 1]}, inputs=WEIGHT)
    assert outcome.failure is None
    assert outcome.contradiction is None
    assert outcome.proof is not None
    assert outcome.proof.witnesses == ("spec", "onnxruntime")
    assert outcome.proof.cases == 4 * 5
    assert outcome.proof.max_abs_diff < 1e-3


@pytest.mark.parametrize("pads", [[1, 1, 0, 0], [0, 1, 1, 0], [1, 0, 0, 1]])
def test_a_pad_on_the_other_side_is_caught(pads: list[int]) -> None:
    right = prove_node("Conv", {"auto_pad": "SAME_UPPER"}, {"pads": [0, 0, 1, 1]}, inputs=EVEN_WEIGHT)
    assert right.failure is None
    wrong = prove_node("Conv", {"auto_pad": "SAME_UPPER"}, {"pads": pads}, inputs=EVEN_WEIGHT)
    assert wrong.proof is None
    assert wrong.failure is not None
    assert "input [2, 3, 5, 6]" in wrong.failure


def test_a_missing_row_is_said_as_a_shape() -> None:
    outcome = prove_node("Conv", {"auto_pad": "SAME_UPPER"}, {"pads": [1, 1, 1, 0]}, inputs=WEIGHT)
    assert outcome.failure is not None
    assert "shape" in outcome.failure


def test_a_pool_padded_with_the_wrong_value_is_caught() -> None:
    def padded(fill: float) -> local.LocalOutcome:
        pool = helper.make_node("MaxPool", ["P"], ["Y"], kernel_shape=[2, 2])
        pad = helper.make_node("Pad", ["X", "pads", "fill"], ["P"])
        constants = (
            numpy_helper.from_array(np.array([0, 0, 0, 0, 0, 0, 1, 1], np.int64), "pads"),
            numpy_helper.from_array(np.array(fill, np.float32), "fill"),
        )
        old = helper.make_node("MaxPool", ["X"], ["Y"], auto_pad="SAME_UPPER", kernel_shape=[2, 2])
        trials = ({"X": TrialInput((1, 2, 5, 6))},)
        return prove([old], {"": 13}, Rewrite(Fragment((pad, pool), constants, 13), trials, True), outputs=["Y"])

    assert padded(np.finfo(np.float32).min).failure is None
    assert padded(0.0).failure is not None


def test_average_that_counts_pads_is_caught() -> None:
    before = {"auto_pad": "SAME_UPPER", "kernel_shape": [3, 3]}
    right = {"pads": [1, 1, 1, 1], "kernel_shape": [3, 3]}
    assert prove_node("AveragePool", before, right).failure is None
    assert prove_node("AveragePool", before, {**right, "count_include_pad": 1}).failure is not None


def test_a_transposed_kernel_is_caught() -> None:
    transposed = helper.make_node("Transpose", ["W"], ["V"], perm=[0, 1, 3, 2])
    conv = helper.make_node("Conv", ["X", "V"], ["Y"], pads=[1, 1, 1, 1])
    old = helper.make_node("Conv", ["X", "W"], ["Y"], auto_pad="SAME_UPPER")
    trials = ({"X": TrialInput((1, 3, 6, 7)), **WEIGHT},)
    outcome = prove([old], {"": 13}, Rewrite(Fragment((transposed, conv), (), 13), trials), outputs=["Y"])
    assert outcome.failure is not None


def resize(nearest_mode: str, coordinates: str) -> local.LocalOutcome:
    scales = numpy_helper.from_array(np.array([1, 1, 1.5, 2.5], np.float32), "scales")
    node = helper.make_node(
        "Resize",
        ["X", "", "scales"],
        ["Y"],
        mode="nearest",
        nearest_mode=nearest_mode,
        coordinate_transformation_mode=coordinates,
    )
    old = helper.make_node("Upsample", ["X", "S"], ["Y"], mode="nearest")
    given = TrialInput((4,), TensorProto.FLOAT, np.array([1, 1, 1.5, 2.5], np.float32), constant=True)
    trials = ({"X": TrialInput((1, 2, 4, 6)), "S": given}, {"X": TrialInput((1, 2, 5, 7)), "S": given})
    return prove([old], {"": 9}, Rewrite(Fragment((node,), (scales,), 13), trials, True), outputs=["Y"])


def test_nearest_modes_are_told_apart() -> None:
    right = resize("floor", "asymmetric")
    assert right.failure is None
    assert right.proof is not None
    assert resize("ceil", "asymmetric").failure is not None
    assert resize("round_prefer_floor", "asymmetric").failure is not None
    assert resize("floor", "half_pixel").failure is not None


def test_a_dilated_same_convolution_contradicts_onnxruntime() -> None:
    outcome = prove_node(
        "Conv",
        {"auto_pad": "SAME_UPPER", "dilations": [2, 2]},
        {"pads": [2, 2, 2, 2], "dilations": [2, 2]},
        inputs=WEIGHT,
    )
    assert outcome.failure is None
    assert outcome.proof is not None
    assert outcome.contradiction is not None
    assert outcome.contradiction.message.startswith("ONNX Runtime ")
    assert "can't run it" in outcome.contradiction.message
    assert "Dilation not supported" in outcome.contradiction.message


def test_pads_below_zero_contradict_onnxruntime() -> None:
    outcome = prove_node(
        "Conv",
        {"auto_pad": "SAME_UPPER", "strides": [4, 4]},
        {"pads": [0, 0, 0, 0], "strides": [4, 4]},
        inputs={"W": TrialInput((4, 3, 1, 1))},
        sizes=(8, 12),
    )
    assert outcome.failure is None
    assert outcome.proof is not None
    assert outcome.contradiction is not None
    assert "against the specification" in outcome.contradiction.message
    specified, found = outcome.contradiction.specified, outcome.contradiction.found
    assert specified is not None and found is not None
    assert specified.shape == found.shape == (2, 4, 2, 3)
    assert specified.position == found.position
    assert specified.values != found.values


def test_a_type_without_a_kernel_leaves_the_specification_as_witness() -> None:
    weight = {"W": TrialInput((4, 3, 3, 3), TensorProto.DOUBLE)}
    outcome = prove_node(
        "Conv", {"auto_pad": "SAME_UPPER"}, {"pads": [1, 1, 1, 1]}, inputs=weight, elem_type=TensorProto.DOUBLE
    )
    assert outcome.failure is None
    assert outcome.proof is not None
    assert outcome.proof.witnesses == ("spec",)
    assert outcome.contradiction is not None


def test_half_precision_is_proven() -> None:
    weight = {"W": TrialInput((4, 3, 3, 3), TensorProto.FLOAT16)}
    for pads, proven in (([0, 0, 2, 2], False), ([1, 1, 1, 1], True)):
        outcome = prove_node(
            "Conv", {"auto_pad": "SAME_LOWER"}, {"pads": pads}, inputs=weight, elem_type=TensorProto.FLOAT16
        )
        assert (outcome.failure is None) is proven


def test_a_new_form_that_no_runtime_loads_is_no_proof() -> None:
    outcome = prove_node(
        "MaxPool", {"auto_pad": "VALID", "kernel_shape": [2, 2]}, {"kernel_shape": [2, 2], "pads": [1]}
    )
    assert outcome.proof is None
    assert outcome.failure is not None


def test_nothing_to_try_is_no_proof() -> None:
    outcome = prove_node("Conv", {"auto_pad": "VALID"}, {}, inputs=WEIGHT, sizes=())
    assert outcome.proof is None
    assert outcome.failure is not None


def test_an_attribute_of_the_caller_is_no_proof() -> None:
    node = helper.make_node("Conv", ["X", "W"], ["Y"], auto_pad="SAME_UPPER")
    attribute = node.attribute.add(name="group", ref_attr_name="groups")
    attribute.type = 2
    new = helper.make_node("Conv", ["X", "W"], ["Y"], pads=[1, 1, 1, 1])
    trials = ({"X": TrialInput((1, 3, 6, 7)), **WEIGHT},)
    outcome = prove([node], {"": 13}, Rewrite(Fragment((new,), (), 13), trials), outputs=["Y"])
    assert outcome.failure is not None
    assert "'groups'" in outcome.failure


def test_the_same_question_is_asked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[Any] = []
    ask = local._prove
    monkeypatch.setattr(local, "_CACHE", {})
    monkeypatch.setattr(local, "_prove", lambda case: (calls.append(case), ask(case))[1])
    before, after = {"auto_pad": "SAME_UPPER"}, {"pads": [1, 1, 1, 1]}
    first = prove_node("Conv", before, after, inputs=WEIGHT)
    again = prove_node("Conv", before, after, inputs=WEIGHT, names=("other/input", "other/output"))
    assert again == first
    assert len(calls) == 1
    prove_node("Conv", before, after, inputs=WEIGHT, sizes=(9,))
    prove_node("Conv", before, {"pads": [1, 1, 1, 0]}, inputs=WEIGHT)
    prove_node("Conv", before, after, inputs=WEIGHT, opset=11)
    assert len(calls) == 4


def test_omitted_outputs_are_skipped_and_indices_are_compared() -> None:
    old = helper.make_node("MaxPool", ["X"], ["Y", "I"], auto_pad="SAME_UPPER", kernel_shape=[2, 2])
    new = helper.make_node("MaxPool", ["X"], ["Y", "I"], pads=[0, 0, 1, 1], kernel_shape=[2, 2])
    wrong = helper.make_node("MaxPool", ["X"], ["Y", "I"], pads=[0, 0, 1, 1], kernel_shape=[2, 2], storage_order=1)
    trials = ({"X": TrialInput((1, 2, 5, 6))},)

    def ask(node: Any, outputs: list[str]) -> local.LocalOutcome:
        return prove([old], {"": 13}, Rewrite(Fragment((node,), (), 13), trials, True), outputs=outputs)

    assert ask(new, ["Y", "I"]).failure is None
    assert ask(wrong, ["Y", "I"]).failure is not None
    assert ask(wrong, ["Y", ""]).failure is None


def test_the_members_of_a_sequence_are_compared() -> None:
    old = helper.make_node("SplitToSequence", ["X"], ["Y"], axis=1)

    def ask(**given: int) -> str | None:
        new = helper.make_node("SplitToSequence", ["X"], ["Y"], **given)
        trials = ({"X": TrialInput((2, 2, 3))},)
        return prove([old], {"": 17}, Rewrite(Fragment((new,), (), 24), trials, True), outputs=["Y"]).failure

    assert ask(axis=1) is None
    assert "output 0 of the new form" in (ask(axis=0) or "")
    assert "1 of 1 values differ" in (ask(axis=2) or "")  # three parts of the one axis, two of the other


def test_the_rounding_of_a_sum_that_cancels_is_no_difference() -> None:
    """One number is the whole output, so its own size says nothing about what its terms are rounded to."""
    before = helper.make_node("Conv", ["X", "W"], ["Y"])

    def halves(shift: float) -> local.LocalOutcome:
        bounds = {"zero": [0], "half": [40], "all": [80], "axis": [1]}
        constants = [numpy_helper.from_array(np.array(value, np.int64), name) for name, value in bounds.items()]
        constants.append(numpy_helper.from_array(np.array(shift, np.float32), "shift"))
        nodes = []
        for each, start, end in (("A", "zero", "half"), ("B", "half", "all")):
            nodes.append(helper.make_node("Slice", ["X", start, end, "axis"], [f"X{each}"]))
            nodes.append(helper.make_node("Slice", ["W", start, end, "axis"], [f"W{each}"]))
            nodes.append(helper.make_node("Conv", [f"X{each}", f"W{each}"], [each]))
        nodes.append(helper.make_node("Sum", ["B", "A", "shift"], ["Y"]))
        trials = tuple({"X": TrialInput((1, 80, 1, 1)), "W": TrialInput((1, 80, 1, 1))} for _ in range(60))
        fragment = Fragment(tuple(nodes), tuple(constants), 17)
        return prove([before], {"": 17}, Rewrite(fragment, trials), outputs=["Y"])

    assert halves(0.0).failure is None
    assert halves(0.0).contradiction is None
    assert halves(1e-3).failure is not None
