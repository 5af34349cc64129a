"""Inner tensors: what outputs hide is still compared."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import ModelProto, TensorProto, helper

from padfix.diagnose.place import describe
from padfix.proof.executors import OnnxRuntimeExecutor
from padfix.proof.whole import verify
from padfix.results import Verdict
from tests.support.proofs import model

WEIGHT = np.random.default_rng(0).standard_normal((2, 1, 3, 3)).astype(np.float32)
X = {"X": (TensorProto.FLOAT, (1, 1, 9, 8))}


def judged(first: ModelProto, second: ModelProto, **options: object) -> Verdict:
    executors = [OnnxRuntimeExecutor(each.SerializeToString(), optimised=False) for each in (first, second)]
    return verify(executors[0], executors[1:], describe=describe, **options)  # type: ignore[arg-type]


def saturated(pads: list[int], weight: np.ndarray = WEIGHT) -> ModelProto:
    """A network whose softmax says one thing whatever comes in; without pads, they are SAME."""
    padding = {"pads": pads} if pads else {"auto_pad": "SAME_UPPER"}
    nodes = [
        helper.make_node("Conv", ["X", "W"], ["C"], name="conv", **padding),
        helper.make_node("GlobalAveragePool", ["C"], ["P"], name="pool"),
        helper.make_node("Clip", ["P", "low", "high"], ["L"], name="clip"),
        helper.make_node("Softmax", ["L"], ["Y"], name="softmax", axis=1),
    ]
    constants = {"W": weight, "low": np.float32(7), "high": np.float32(7)}
    return model(nodes, X, constants={key: np.asarray(value) for key, value in constants.items()})


def hidden(pads: list[int]) -> ModelProto:
    """A convolution of which the output shows nothing, beside data that it shows."""
    nodes = [
        helper.make_node("Conv", ["X", "W"], ["C"], name="conv", pads=pads),
        helper.make_node("Mul", ["C", "zero"], ["Z"], name="nothing"),
        helper.make_node("Add", ["X", "Z"], ["Y"], name="add"),
    ]
    return model(nodes, X, constants={"W": WEIGHT[:1], "zero": np.zeros((), np.float32)})


def test_an_output_that_never_varies_hides_nothing() -> None:
    verdict = judged(saturated([1, 1, 1, 1]), saturated([0, 1, 2, 1]))
    assert not verdict.equivalent
    assert verdict.first_difference is not None
    assert verdict.first_difference.tensor == "C"
    assert "an inner tensor that the outputs hide" in verdict.runs[-1].outputs[0].detail


def test_equal_models_whose_output_never_varies_are_equal_and_that_is_said() -> None:
    verdict = judged(saturated([1, 1, 1, 1]), saturated([1, 1, 1, 1]))
    assert verdict.equivalent
    assert any("4 stretches are the same node by node and weight by weight" in note for note in verdict.notes)
    # As many numbers, in another spelling.
    verdict = judged(saturated([1, 1, 1, 1]), saturated([]))
    assert verdict.equivalent
    assert any("3 stretches are the same" in note and "1 other was fed" in note for note in verdict.notes)


def test_what_is_made_up_for_is_no_difference() -> None:
    # A scale that the next operator takes out again, as optimisers move factors about.
    def rescaled(factor: float, spare: float = 1.0) -> ModelProto:
        nodes = [
            helper.make_node("Conv", ["X", "W"], ["C"], name="conv"),
            helper.make_node("Relu", ["C"], ["R"], name="relu"),
            helper.make_node("Mul", ["R", "back"], ["B"], name="back"),
            helper.make_node("Mul", ["B", "spare"], ["S"], name="spare"),
            helper.make_node("Clip", ["S", "limit", "limit"], ["Y"], name="clip"),
        ]
        constants = {"W": WEIGHT * np.float32(factor), "back": np.float32(1 / factor), "limit": np.float32(7)}
        constants["spare"] = np.float32(spare)
        return model(nodes, X, constants={key: np.asarray(value) for key, value in constants.items()})

    assert judged(rescaled(1.0), rescaled(4.0)).equivalent
    verdict = judged(rescaled(1.0), rescaled(4.0, spare=2.0))
    assert not verdict.equivalent
    assert verdict.first_difference is not None
    assert verdict.first_difference.node == "spare"


@pytest.mark.parametrize(("last", "equal"), [([2, 0, 1], True), ([0, 1, 2], False)])
def test_what_is_behind_a_difference_may_make_up_for_it(last: list[int], equal: bool) -> None:
    # Channels in another order, as tools leave them that prune or rearrange: two layers on, they stand as before.
    def network(channels: list[int], turned: bool) -> ModelProto:
        random = np.random.default_rng(0)
        weights = {f"W{at}": random.standard_normal((3, 3, 1, 1)).astype(np.float32) for at in range(3)}
        factors = {f"k{at}": np.float32([1, 2, 3]).reshape(3, 1, 1) for at in range(2)}
        if turned:
            order = [2, 0, 1]
            weights["W0"], weights["W1"] = weights["W0"][order], weights["W1"][order][:, order]
            weights["W2"] = weights["W2"][:, channels]
            factors = {name: factor[order] for name, factor in factors.items()}
        nodes = []
        for at, source in enumerate(("X", "s0", "s1")):
            nodes.append(helper.make_node("Conv", [source, f"W{at}"], [f"c{at}"], name=f"conv{at}"))
            if at < 2:
                nodes.append(helper.make_node("Mul", [f"c{at}", f"k{at}"], [f"m{at}"]))
                nodes.append(helper.make_node("Relu", [f"m{at}"], [f"s{at}"]))
        nodes.append(helper.make_node("Exp", ["c2"], ["Y"]))
        return model(nodes, {"X": (TensorProto.FLOAT, (1, 3, 5, 4))}, constants=weights | factors)

    assert judged(network([], turned=False), network(last, turned=True)).equivalent is equal


@pytest.mark.parametrize(("last", "place"), [(1, None), (2, "m13")])
def test_a_row_that_differs_throughout_is_taken_apart_where_it_is_made_up_for(last: float, place: str | None) -> None:
    # As onnxsim writes a network of factors beside convolutions: three make up for each other, then two each.
    numbers = [2, 3, 1 / 6, *(factor for base in (5, 7, 3, 9, 11, 13) for factor in (base, 1 / base))]
    body, source = "", "X"
    for number in range(len(numbers)):
        body += f"m{number} = Mul ({source}, k{number}) r{number} = Relu (m{number}) "
        source = f"r{number}" if number >= 2 and number % 2 == 0 else f"m{number}"
    parsed = onnx.parser.parse_graph(
        f"g (float[1, 1, 9, 8] X) => (float[1, 1, 9, 8] Y) {{ {body} Y = Exp ({source}) }}"
    )
    plain = {f"k{number}": np.float32(1) for number in range(len(numbers))}
    moved = {f"k{number}": np.float32(factor) for number, factor in enumerate(numbers)}
    moved["k13"] *= np.float32(last)
    pair = [model(parsed.node, X, constants={k: np.asarray(v) for k, v in each.items()}) for each in (plain, moved)]
    found = judged(*pair).first_difference
    assert (found.tensor if found is not None else None) == place


@pytest.mark.parametrize("factor", [1, 2])
def test_what_is_made_up_for_is_not_the_place_of_another_difference(factor: float) -> None:
    def network(moved: float, factor: float) -> ModelProto:
        body = "c = Conv (X, W) r = Relu (c) b = Mul (r, back) f = Mul (b, k) t = Tanh (f) o = Mul (t, l) Y = Exp (o)"
        parsed = onnx.parser.parse_graph(f"g (float[1, 1, 9, 8] X) => (float[1, 2, 7, 6] Y) {{ {body} }}")
        numbers = {"back": 1 / moved, "k": factor, "l": factor}
        constants = {name: np.asarray(value, np.float32) for name, value in numbers.items()}
        return model(parsed.node, X, constants={"W": WEIGHT * np.float32(moved), **constants})

    place = judged(network(1, 1), network(4, factor)).first_difference
    assert (place.tensor if place is not None else None) == (None if factor == 1 else "f")


@pytest.mark.parametrize(("bias", "place"), [(0, None), (1, "e")])
def test_tensors_that_keep_their_names_and_lose_an_axis_are_no_difference(bias: float, place: str | None) -> None:
    # As onnxsim writes a product of rows: as a Gemm on two axes, with what is computed of each number between two.
    random = np.random.default_rng(0)
    constants = {name: random.standard_normal((4, 4)).astype(np.float32) for name in ("V", "W")}
    constants |= {name: random.standard_normal(4).astype(np.float32) for name in ("b", "d")}
    constants |= {"flat": np.array([-1, 4]), "whole": np.array([1, 3, 4])}
    rows = "v = MatMul (X, V) a = Add (v, b) {} w = MatMul (n, W) e = Add (w, d) Y = Exp (e)"
    flat = "f = Reshape (X, flat) a = Gemm (f, V, b) {} w = Gemm (n, W, d) e = Reshape (w, whole) Y = Exp (e)"
    pair = []
    for text, product in ((rows, "a"), (flat, "g")):
        last = constants | {"d": constants["d"] + np.float32(bias if text == flat else 0)}
        between = f"t = Tanh ({product}) m = Mul ({product}, t) n = Neg (m)"
        body = text.replace("a = ", f"{product} = ").format(between)
        parsed = onnx.parser.parse_graph(f"g (float[1, 3, 4] X) => (float[1, 3, 4] Y) {{ {body} }}")
        pair.append(model(parsed.node, {"X": (TensorProto.FLOAT, (1, 3, 4))}, constants=last))
    found = judged(*pair).first_difference
    assert (found.tensor if found is not None else None) == place


def test_what_an_output_hides_is_a_difference() -> None:
    pair = hidden([1, 1, 1, 1]), hidden([0, 1, 2, 1])
    for rewritten in (False, True):
        verdict = judged(*pair, rewritten=rewritten)
        assert not verdict.equivalent
        assert verdict.first_difference is not None
        assert verdict.first_difference.candidate_node == "conv"
        assert judged(pair[0], pair[0], rewritten=rewritten).equivalent


def test_numbers_that_two_exporters_gave_to_other_tensors_are_no_difference() -> None:
    # The second has one operator more, and every name after it stands for something else.
    def exported(first: int, *, extra: bool) -> ModelProto:
        names = [str(number) for number in range(first, first + 4)]
        nodes = [helper.make_node("Identity", ["X"], ["1"])] if extra else []
        nodes += [
            helper.make_node("Conv", ["1" if extra else "X", "W"], [names[0]], pads=[1, 1, 1, 1]),
            helper.make_node("Relu", [names[0]], [names[1]]),
            helper.make_node("Neg", [names[1]], [names[2]]),
            helper.make_node("Exp", [names[2]], ["Y"]),
        ]
        return model(nodes, X, constants={"W": WEIGHT})

    assert judged(exported(1, extra=False), exported(2, extra=True)).equivalent
    assert judged(exported(2, extra=True), exported(1, extra=False)).equivalent


def test_a_weight_that_the_arithmetic_ignores_is_no_difference() -> None:
    other = WEIGHT.copy()
    other[1, 0, 2, 0] = 1e-9
    changed = other.copy()
    changed[1, 0, 2, 0] = -1e-9
    assert judged(saturated([1, 1, 1, 1], other), saturated([1, 1, 1, 1], changed)).equivalent


def test_a_sign_among_many_weights_is_found_where_the_output_hides_it() -> None:
    changed = WEIGHT.copy()
    changed[1, 0, 2, 0] *= -1
    verdict = judged(saturated([1, 1, 1, 1], WEIGHT), saturated([1, 1, 1, 1], changed))
    assert not verdict.equivalent
    assert verdict.first_difference is not None
    assert verdict.first_difference.node == "conv"
    # A tolerance that the user gives has the last word.
    assert judged(saturated([1, 1, 1, 1], WEIGHT), saturated([1, 1, 1, 1], changed), rtol=10.0).equivalent


def test_rounding_inside_a_chaotic_network_is_no_difference() -> None:
    def chaotic(steps: tuple[float, ...]) -> ModelProto:
        nodes, last = [], "X"
        for number, _ in enumerate(steps):
            nodes.append(helper.make_node("Mul", [last, f"k{number}"], [f"m{number}/{len(steps)}"]))
            last = f"m{number}/{len(steps)}"
        nodes += [
            helper.make_node("Sin", [last], ["S"], name="sine"),
            helper.make_node("Mul", ["S", "small"], ["T"], name="small"),
            helper.make_node("Add", ["T", "X"], ["Y"], name="add"),
        ]
        constants = {f"k{number}": np.array(step, np.float32) for number, step in enumerate(steps)}
        return model(nodes, X, constants={**constants, "small": np.array(1e-7, np.float32)})

    assert judged(chaotic((1e3,)), chaotic((40.0, 25.0))).equivalent
    assert not judged(chaotic((1e0,)), chaotic((1e1, 1.01e-1))).equivalent
