"""The proof by stretches: what must be told apart, what must not, and that it stays near linear."""

from __future__ import annotations

import time
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import ModelProto, NodeProto, TensorProto, helper

import padfix
from padfix.diagnose.place import describe
from padfix.proof import pairing
from padfix.proof.executors import OnnxRuntimeExecutor
from padfix.proof.judging import StretchJudge
from padfix.proof.probes import Probe
from padfix.proof.stretches import Judged, Stretch, Stretches
from padfix.proof.whole import verify
from padfix.results import Verdict
from tests.support.proofs import model

X = {"X": (TensorProto.FLOAT, (1, 3, 16, 16))}
RANDOM = np.random.default_rng(0)
WEIGHT = (0.3 * RANDOM.standard_normal((3, 3, 3, 3))).astype(np.float32)
CONV = helper.make_node("Conv", ["X", "W"], ["c"], pads=[1, 1, 1, 1], name="conv")


def judged(first: ModelProto, second: ModelProto, **options: object) -> Verdict:
    reference = OnnxRuntimeExecutor(first.SerializeToString(), optimised=False)
    candidates = [OnnxRuntimeExecutor(second.SerializeToString(), optimised=each) for each in (False, True)]
    return verify(reference, candidates, describe=describe, **options)  # type: ignore[arg-type]


def network(*nodes: NodeProto, opset: int = 17, **constants: object) -> ModelProto:
    floats = {name: np.asarray(value, np.float32) for name, value in constants.items()}
    return model(list(nodes), X, opset=opset, constants={"W": WEIGHT, **floats})


def node(op_type: str, inputs: str, outputs: str, **attributes: object) -> NodeProto:
    return helper.make_node(op_type, inputs.split(), outputs.split(), name=op_type.lower(), **attributes)


def scaled(factor: float, *dead: NodeProto, **constants: object) -> ModelProto:
    return network(*dead, CONV, node("Mul", "c k", "Y"), k=factor, **constants)


def test_a_dead_quantizer_in_the_candidate_loosens_nothing() -> None:
    dead = helper.make_node("QuantizeLinear", ["X", "step"], ["dead"])
    verdict = judged(scaled(10), scaled(14, dead, step=0.1))
    assert not verdict.equivalent
    assert verdict.first_difference is not None
    assert verdict.first_difference.node == "mul"
    assert judged(scaled(10), scaled(10, dead, step=0.1)).equivalent


def test_a_small_bias_counts_in_half_precision() -> None:
    """Units in the last place of the probes' large numbers are larger than the bias; those of small data are not."""

    def half(*names: str) -> ModelProto:
        nodes = [node("Mul", "X k", "m"), helper.make_node("Conv", ["m", *names], ["c"], name="conv")]
        constants = {"k": np.array(30.0), "W": WEIGHT, "B": np.full(3, 0.02)}
        return model(
            [*nodes, node("Relu", "c", "Y")],
            {"X": (TensorProto.FLOAT16, (1, 3, 16, 16))},
            constants={name: array.astype(np.float16) for name, array in constants.items()},
        )

    verdict = judged(half("W", "B"), half("W"))
    assert not verdict.equivalent
    assert verdict.first_difference is not None
    assert verdict.first_difference.node == "conv"
    assert judged(half("W", "B"), half("W", "B")).equivalent


@pytest.mark.parametrize(
    ("behind", "equal"),
    [
        ([node("Relu", "t", "r"), node("Add", "X r", "Y")], False),
        ([node("Relu", "t", "Y")], False),
        ([node("Relu", "t", "r"), helper.make_node("Transpose", ["r"], ["Y"], perm=[0, 2, 3, 1])], False),
        ([node("Relu", "t", "r"), node("ReduceSum", "r", "Y")], True),
    ],
)
def test_axes_in_another_order_count_for_what_reads_them(behind: list[NodeProto], equal: bool) -> None:
    """Where all lengths are alike, numbers alone say that a tensor is another's transpose."""

    def cubes(*nodes: NodeProto) -> ModelProto:
        return model([*nodes, *behind], {"X": (TensorProto.FLOAT, (1, 6, 6, 6))})

    turned = node("Transpose", "X", "t", perm=[0, 2, 3, 1])
    verdict = judged(cubes(turned), cubes(node("Transpose", "X", "t", perm=[0, 1, 2, 3])))
    assert verdict.equivalent == equal
    assert equal or (verdict.first_difference is not None and verdict.first_difference.tensor == "t")


def test_outputs_that_differ_where_nothing_inside_does_amplify_no_rounding(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the look inside misses, there is nothing to amplify where it finds not one bit."""
    monkeypatch.setattr(Stretches, "same", lambda self, name: True)
    assert not judged(scaled(10), scaled(11)).equivalent


def test_an_island_in_another_layout_is_equal() -> None:
    def cubes(*nodes: NodeProto) -> ModelProto:
        return model(list(nodes), {"X": (TensorProto.FLOAT, (1, 6, 6, 6))})

    inside = [
        node("Transpose", "X", "t", perm=[0, 2, 3, 1]),
        node("Sigmoid", "t", "s"),
        node("Sin", "s", "c"),
        helper.make_node("Transpose", ["c"], ["b"], perm=[0, 3, 1, 2]),
        node("Add", "b X", "Y"),
    ]
    plain = [node("Sigmoid", "X", "s"), node("Sin", "s", "c"), node("Add", "c X", "Y")]
    assert judged(cubes(*plain), cubes(*inside)).equivalent
    assert judged(cubes(*inside), cubes(*plain)).equivalent
    bent = [*inside[:3], helper.make_node("Transpose", ["c"], ["b"], perm=[0, 2, 1, 3]), inside[4]]
    assert not judged(cubes(*plain), cubes(*bent)).equivalent


def test_a_dead_cast_in_the_candidate_loosens_nothing() -> None:
    dead = helper.make_node("Cast", ["X"], ["dead"], to=TensorProto.FLOAT16)
    assert not judged(scaled(10), scaled(10 * 1.0009, dead)).equivalent


def test_a_chaotic_end_excuses_nothing() -> None:
    end = (node("Mul", "c k", "m"), node("Sin", "m", "Y"))
    pool = helper.make_node("MaxPool", ["X"], ["c"], kernel_shape=[3, 3], pads=[1, 1, 1, 1])
    assert not judged(network(CONV, *end, k=1e9), network(pool, *end, k=1e9)).equivalent


@pytest.mark.parametrize(
    ("wrong", "right"),
    [
        (node("Relu", "c", "r"), node("Clip", "c low high", "r")),
        (node("LayerNormalization", "c S", "r", epsilon=1e-10), node("LayerNormalization", "c S", "r", epsilon=1e-12)),
        (node("LayerNormalization", "c S", "r"), node("LayerNormalization", "c S B", "r")),
        (node("LeakyRelu", "c", "r", alpha=1e-3), node("Relu", "c", "r")),
    ],
    ids=["relu6", "epsilon", "bias", "leaky"],
)
def test_damage_that_no_probe_reaches_is_found_on_data_of_its_own(wrong: NodeProto, right: NodeProto) -> None:
    constants = {"low": 0, "high": 6, "S": np.ones(16), "B": np.full(16, 1e-3), "W": 0.01 * WEIGHT}
    end = helper.make_node("Conv", ["r", "W"], ["Y"], name="last")
    verdict = judged(*(network(CONV, each, end, **constants) for each in (right, wrong)))
    assert not verdict.equivalent
    assert verdict.first_difference is not None
    assert verdict.first_difference.candidate_node == wrong.name


def test_only_the_users_probes_may_be_asked_for() -> None:
    constants = {"low": 0, "high": 1000, "W": 0.01 * WEIGHT}
    pair = (
        network(
            CONV, node("Clip", "c low high", "r"), helper.make_node("Conv", ["r", "W"], ["Y"], name="last"), **constants
        ),
        network(CONV, node("Relu", "c", "r"), helper.make_node("Conv", ["r", "W"], ["Y"], name="last"), **constants),
    )
    assert not judged(*pair).equivalent
    from padfix.proof.probes import Probe

    probe = Probe("mine", {"X": RANDOM.standard_normal((1, 3, 16, 16)).astype(np.float32)})
    assert judged(*pair, probes=[probe], probes_only=True).equivalent


def test_a_mask_that_nobody_reads_is_not_compared() -> None:
    old = network(CONV, helper.make_node("Dropout", ["c"], ["Y", "mask"], ratio=0.5), opset=9)
    new = network(CONV, helper.make_node("Dropout", ["c"], ["Y", "mask"]), opset=13)
    assert judged(old, new).equivalent


def test_outputs_that_are_infinite_are_judged_inside() -> None:
    def infinite(factor: float) -> ModelProto:
        nodes = (CONV, node("Exp", "c", "e"), helper.make_node("Mul", ["e", "k"], ["b"]), node("Mul", "b k", "Y"))
        return network(*nodes, k=3e38, W=factor * WEIGHT)

    assert judged(infinite(1), infinite(1)).equivalent
    assert not judged(infinite(1), infinite(1.01)).equivalent


def residual(prefix: str, blocks: int, factor: float = 1.0) -> ModelProto:
    nodes, last = [], "X"
    for i in range(blocks):
        nodes += [
            helper.make_node("Conv", [last, "W"], [f"{prefix}c{i}"], pads=[1, 1, 1, 1], name=f"{prefix}conv{i}"),
            helper.make_node("Relu", [f"{prefix}c{i}"], [f"{prefix}r{i}"]),
            helper.make_node("Add", [f"{prefix}r{i}", last], [f"{prefix}a{i}"]),
        ]
        last = f"{prefix}a{i}"
    nodes.append(helper.make_node("Identity", [last], ["Y"]))
    return network(*nodes, W=0.01 * factor * WEIGHT)


def test_other_names_need_no_run_and_no_patience() -> None:
    start = time.process_time()
    verdict = judged(residual("a", 300), residual("b", 300))
    assert verdict.equivalent
    assert verdict.stretches is not None
    assert verdict.stretches.judged == 0
    # Without memory of what was compared, twenty residual blocks alone would take minutes.
    assert time.process_time() - start < 60


def test_that_many_nodes_read_one_tensor_takes_no_more_comparisons_for_each(monkeypatch: pytest.MonkeyPatch) -> None:
    def skipping(prefix: str, count: int) -> ModelProto:
        names = ["X", *(f"{prefix}{number}" for number in range(count))]
        adds = [helper.make_node("Add", [last, "X"], [name]) for last, name in pairwise(names)]
        return network(*adds, helper.make_node("Identity", [names[-1]], ["Y"]))

    compared = []
    likeness = pairing._Aligner._likeness
    monkeypatch.setattr(pairing._Aligner, "_likeness", lambda *given: compared.append(given) or likeness(*given))
    verdict = judged(skipping("a", 200), skipping("b", 200))
    assert verdict.equivalent
    assert len(compared) < 5 * 200


def test_a_weight_under_other_names_is_found_at_its_first_node() -> None:
    verdict = judged(residual("a", 8), residual("b", 8, 1.001))
    assert not verdict.equivalent
    assert verdict.first_difference is not None
    assert verdict.first_difference.candidate_node == "bconv0"


def test_the_one_rewritten_stretch_is_equal_to_the_bit_and_that_is_said(tmp_path: Path) -> None:
    source = network(
        helper.make_node("Conv", ["X", "W"], ["c"], auto_pad="SAME_UPPER", strides=[2, 2], name="conv"),
        node("Relu", "c", "r"),
        node("Softmax", "r", "Y", axis=1),
    )
    onnx.save(source, tmp_path / "a.onnx")
    verdict = padfix.convert(tmp_path / "a.onnx", tmp_path / "b.onnx").verdict
    assert verdict is not None
    assert verdict.stretches is not None
    assert (verdict.stretches.same, verdict.stretches.judged, verdict.stretches.unoptimised) == (2, 1, 0.0)


def test_the_scale_of_an_output_is_that_of_all_probes() -> None:
    """On one probe all that an LSTM gives is what is left of sums that cancel, and that is rounding."""
    random = np.random.default_rng(4)
    hidden, read = 8, 64
    half = random.standard_normal((1, 4 * hidden, read // 2))
    weights = np.concatenate([half, -half], 2)
    recurrent = 0.1 * random.standard_normal((1, 4 * hidden, hidden))

    def lstm(order: np.ndarray) -> ModelProto:
        nodes = [
            helper.make_node("Gather", ["X", "order"], ["x"], axis=2),
            helper.make_node("LSTM", ["x", "W", "R"], ["Y"], hidden_size=hidden, name="lstm"),
        ]
        constants = {"order": order, "W": weights[:, :, order].astype(np.float32), "R": recurrent.astype(np.float32)}
        return model(nodes, {"X": (TensorProto.FLOAT, (5, 1, read))}, opset=14, constants=constants)

    same = np.tile(random.standard_normal((5, 1, read // 2)), 2).astype(np.float32)
    first, second = lstm(np.arange(read)), lstm(random.permutation(read))
    left = OnnxRuntimeExecutor(first.SerializeToString(), optimised=False).run({"X": same})["Y"]
    assert 0 < np.abs(left).max() < 1e-6
    assert judged(first, second, probes=[Probe("cancelling", {"X": same})]).equivalent


def test_another_version_of_one_operator_is_judged_thoroughly_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A raised opset changes the version of every node; only what it means has to be seen on data of its own."""
    asked: list[str] = []
    plain = StretchJudge._on_own_data

    def counted(self: StretchJudge, group: Sequence[Stretch], probe: Probe) -> tuple[dict[str, Judged], set[str]]:
        asked.extend(each.name for each in group)
        return plain(self, group, probe)

    monkeypatch.setattr(StretchJudge, "_on_own_data", counted)
    names = ["X", *(f"t{number}" for number in range(20))]
    convs = [
        helper.make_node("Conv", [names[number], "W"], [names[number + 1]], pads=[1, 1, 1, 1], name=f"conv{number}")
        for number in range(20)
    ]

    def chain(opset: int, slope: float) -> ModelProto:
        ends = [node("LeakyRelu", "t9", "end", alpha=slope), node("Concat", "end t19", "Y", axis=1)]
        return network(*convs, *ends, opset=opset)

    verdict = judged(chain(10, 0.1), chain(17, 0.1))
    assert verdict.equivalent
    assert verdict.stretches is not None
    assert verdict.stretches.judged >= 20
    assert 0 < len(asked) <= 4
    wrong = judged(chain(10, 0.1), chain(17, 0.1001))
    assert not wrong.equivalent
    assert wrong.first_difference is not None
    assert wrong.first_difference.node == "leakyrelu"


def test_arithmetic_on_small_numbers_is_held_to_their_size() -> None:
    """On an image's probe the variance is thousands, and an epsilon of a thousandth is lost in its last bits."""

    def normalised(op_type: str) -> ModelProto:
        nodes = [
            node("Mul", "c c", "squares"),
            helper.make_node(op_type, ["squares", "epsilon"], ["s"], name="shifted"),
            node("Relu", "s", "Y"),
        ]
        return network(CONV, *nodes, epsilon=1e-3)

    verdict = judged(normalised("Add"), normalised("Sub"))
    assert not verdict.equivalent
    assert verdict.first_difference is not None
    assert verdict.first_difference.candidate_node == "shifted"


def test_a_small_sigmoid_is_off_by_parts_of_one_and_no_more() -> None:
    """ONNX Runtime's own formula is off by 3e-8 at -9, where the result is 1e-4."""
    near = node("Mul", "c k", "near")
    spelt_out = [node("Exp", "n", "e"), node("Add", "e one", "a"), node("Div", "one a", "Y")]

    def written(place: float) -> ModelProto:
        nodes = [near, node("Sub", "place near", "n"), *spelt_out]
        return network(CONV, *nodes, k=1e-5, place=place, one=1.0)

    nodes = [near, helper.make_node("Sub", ["near", "place"], ["m"], name="under"), node("Sigmoid", "m", "Y")]
    original = network(CONV, *nodes, k=1e-5, place=9.0)
    verdict = judged(original, written(9.0))
    assert verdict.equivalent
    assert any("(approximation: 'Y')" in note for note in verdict.notes)
    assert not judged(original, written(9.01)).equivalent


BYTES = """<ir_version: 9, opset_import: ["" : 17, "com.microsoft" : 1]> g (float[1,3,8,8] X) => (float[1,4,8,8] Y)
<float s = {0.05}, uint8 z = {120}, float t = {0.1}, uint8 u = {90}, float v = {0.02}, int8 o = {0},
 int8[4,3,1,1] w = {9, -40, 80, 33, 21, -76, 50, 12, -5, 64, -31, 7}> { q = QuantizeLinear (X, s, z) """
ONE_NODE = """c = QLinearConv (q, s, z, w, v, o, t, u) p = MaxPool <kernel_shape = [3, 3], pads = [1, 1, 1, 1]> (c)
    a = com.microsoft.QLinearAdd (p, t, u, c, t, u, t, u) Y = DequantizeLinear (a, t, u) }"""
SPREAD = """x = DequantizeLinear (q, s, z) f = DequantizeLinear (w, v, o) Y1 = Conv (x, f) r = Relu (Y1)
    k = QuantizeLinear (Y1, t, u) n = DequantizeLinear (k, t, u)
    m = MaxPool <kernel_shape = [3, 3], pads = [1, 1, 1, 1]> (n) l = QuantizeLinear (m, t, u)
    d = DequantizeLinear (l, t, u) e = Add (d, n) b = QuantizeLinear (e, t, u) Y = DequantizeLinear (b, t, u) }"""


@pytest.mark.parametrize("forms", [(ONE_NODE, SPREAD), (SPREAD, ONE_NODE)])
def test_the_two_forms_of_quantised_operators_are_paired_by_their_bytes(forms: tuple[str, str]) -> None:
    first, second = (onnx.parser.parse_model(BYTES + form) for form in forms)
    verdict = judged(first, second)
    assert verdict.equivalent
    assert verdict.stretches is not None
    assert verdict.stretches.judged == 3, "the convolution, the maxima and the sum, each by itself"
    for before, after, place in (("kernel_shape = [3, 3]", "kernel_shape = [3, 2]", "MaxPool"), ("76", "67", "Conv")):
        text = (BYTES + forms[1]).replace(before, after).replace("pads = [1, 1, 1, 1]", 'auto_pad = "SAME_UPPER"')
        first = onnx.parser.parse_model((BYTES + forms[0]).replace("pads = [1, 1, 1, 1]", 'auto_pad = "SAME_UPPER"'))
        wrong = judged(first, onnx.parser.parse_model(text)).first_difference
        assert wrong is not None
        assert place in {
            each.removeprefix("QLinear") for each in (wrong.op_type, wrong.candidate_op_type, *wrong.nodes)
        }


def test_a_result_that_never_runs_has_a_place_under_other_names() -> None:
    head = '<ir_version: 9, opset_import: ["" : 17]> g (float[a,b] X) => '
    first = onnx.parser.parse_model(head + "(float[a,b] Y) <float[1] k = {2}> { r = Relu (X) Y = Add (r, k) }")
    long = ", ".join(map(str, range(501)))
    text = f"(float[a,b] other) <float[501] k = {{{long}}}> {{ r = Relu (X) other = Add (r, k) }}"
    place = judged(first, onnx.parser.parse_model(head + text)).first_difference
    assert place is not None
    assert (place.op_type, place.candidate_tensor) == ("Add", "other")
