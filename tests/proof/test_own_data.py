"""Data of their own for stretches: what they decide by, what no probe brings there, and what can never come."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import ModelProto, numpy_helper

from padfix.diagnose.place import describe
from padfix.proof.executors import OnnxRuntimeExecutor
from padfix.proof.whole import verify
from padfix.results import Verdict

RANDOM = np.random.default_rng(0)
WEIGHT = RANDOM.standard_normal((4, 3, 3, 3)).astype(np.float32)
NEXT_WEIGHT = RANDOM.standard_normal((5, 4, 3, 3)).astype(np.float32)
TABLE = RANDOM.standard_normal((1000, 4)).astype(np.float32)
TABLE_DAMAGED = TABLE.copy()
TABLE_DAMAGED[777] *= -1

IMAGE = "float[1, 3, 8, 8] X"
LARGE_IMAGE = "float[1, 3, 24, 24] X"
HALF_IMAGE = "float16[1, 3, 8, 8] X"
LARGE_HALF_IMAGE = "float16[1, 3, 24, 24] X"
HALF = (WEIGHT * np.array([1, 1, 1, 0.2]).reshape(4, 1, 1, 1)).astype(np.float16)
HALF_DAMAGED = HALF.copy()
HALF_DAMAGED[3] *= np.float16(1.01)
MANY = RANDOM.uniform(-1, 1, (4, 3, 7, 7)).astype(np.float16)
MANY_DAMAGED = MANY.copy()
MANY_DAMAGED.flat[np.abs(MANY).argmax()] *= np.float16(1.01)
NORMALISED = "m = Mul(X, k) Y = InstanceNormalization(m, f, b)"
HALF_NORMS = {"k": np.float16(30), "f": np.full(3, 4, np.float16)}
SHIFTS = np.array([-0.3826, 0.5, 0.25], np.float16)
SHIFTS_DAMAGED = np.array([-0.3901, 0.5, 0.25], np.float16)
FACTORS = np.array([0.1539, 1.787, -0.9272, 0.744], np.float16).reshape(4, 1, 1)
FACTORS_DAMAGED = FACTORS.copy()
FACTORS_DAMAGED[2] = -0.9365
LIMIT = np.float16(60000)
GELU = "d = Div(X, r) e = Erf(d) p = Add(e, one) m = Mul(X, p) Y = Mul(m, half)"
NEARLY_GELU = """
    s = Mul(X, X) c = Mul(s, X) k = Mul(c, third) a = Add(X, k) b = Mul(a, r)
    t = Tanh(b) p = Add(t, one) m = Mul(X, p) Y = Mul(m, half)
"""
WORDS = "int64[1, 8] X"
ROW = "float[1, 8] X"


def network(inputs: str, body: str, output: str = "float", **constants: object) -> ModelProto:
    parsed = onnx.parser.parse_model(
        f'<ir_version: 8, opset_import: ["" : 17]> g ({inputs}) => ({output}[1] Y) {{ {body} }}'
    )
    parsed.graph.output[0].type.tensor_type.ClearField("shape")
    for name, value in constants.items():
        array = np.asarray(value)
        array = array.astype(np.float32) if array.dtype == np.float64 else array
        parsed.graph.initializer.append(numpy_helper.from_array(array, name))
    return parsed


def judged(first: ModelProto, second: ModelProto) -> Verdict:
    reference = OnnxRuntimeExecutor(first.SerializeToString(), optimised=False)
    candidates = [OnnxRuntimeExecutor(second.SerializeToString(), optimised=each) for each in (False, True)]
    return verify(reference, candidates, describe=describe)


BRANCHES = """
    s = ReduceSum<keepdims = 0>(X)
    c = Greater(s, limit)
    Y = If<then_branch = t () => (float[1, 8] a) { a = Mul(X, k) }, else_branch = e () => (float[1, 8] b) { b = Neg(X) }
    >(c)
"""


def words(text: str = "w300", value: int = 777) -> ModelProto:
    """Return what looks words and whole numbers up in tables of which usual data meets little."""
    keys = ", ".join(f'"w{each}"' for each in range(900))
    values = ", ".join(str(value if each == 700 else 7 * each) for each in range(900))
    return onnx.parser.parse_model(f"""<ir_version: 9, opset_import: ["": 17, "ai.onnx.ml": 3]>
        g (string[n] X, int64[n] I) => (int64[n] Y, string[n] T) {{
            Y = ai.onnx.ml.LabelEncoder<keys_strings = [{keys}], values_int64s = [{values}], default_int64 = -1>(X)
            T = ai.onnx.ml.LabelEncoder<
                keys_int64s = [0, 1, 1234], values_strings = ["a", "b", "{text}"], default_string = "?">(I) }}""")


def suppression(overlap: float, score: float = 0.55, most: int = 40, centred: int = 0) -> ModelProto:
    return network(
        "float[1, 64, 4] X, float[1, 1, 64] S",
        f"Y = NonMaxSuppression<center_point_box = {centred}>(X, S, most, overlap, score)",
        "int64",
        most=np.array([most]),
        overlap=np.array([overlap]),
        score=np.array([score]),
    )


DIFFERENT: dict[str, tuple[ModelProto, ModelProto]] = {
    "a word among many": (words(), words(value=778)),
    "what a whole number stands for": (words(), words("w301")),
    "an overlap": (suppression(0.45), suppression(0.452)),
    "an overlap of boxes by their centres": (suppression(0.45, centred=1), suppression(0.452, centred=1)),
    "a least score": (suppression(0.45), suppression(0.45, score=0.5503)),
    "a number of boxes that are kept": (suppression(0.45), suppression(0.45, most=41)),
    "a limit far beyond all data": (
        network(IMAGE, "c = Conv(X, W) Y = Clip(c, low, high)", W=WEIGHT, low=0.0, high=20000.0),
        network(IMAGE, "c = Conv(X, W) Y = Clip(c, low, high)", W=WEIGHT, low=0.0, high=30000.0),
    ),
    "a bias under numbers that are larger by far": (
        network(HALF_IMAGE, NORMALISED, "float16", **HALF_NORMS, b=SHIFTS),
        network(HALF_IMAGE, NORMALISED, "float16", **HALF_NORMS, b=SHIFTS_DAMAGED),
    ),
    "one weight among many": (
        network(
            LARGE_HALF_IMAGE, "m = Mul(X, k) Y = Conv<pads = [3, 3, 3, 3]>(m, W)", "float16", W=MANY, k=np.float16(30)
        ),
        network(
            LARGE_HALF_IMAGE,
            "m = Mul(X, k) Y = Conv<pads = [3, 3, 3, 3]>(m, W)",
            "float16",
            W=MANY_DAMAGED,
            k=np.float16(30),
        ),
    ),
    "a limit of whole numbers": (
        network(WORDS, "Y = Min(X, k)", "int64", k=50),
        network(WORDS, "Y = Min(X, k)", "int64", k=60),
    ),
    "negative whole numbers": (
        network(WORDS, "a = Abs(X) Y = Cast<to = 1>(a)"),
        network(WORDS, "Y = Cast<to = 1>(X)"),
    ),
    "a row that nobody picks": (
        network(WORDS, "Y = Gather(T, X)", T=TABLE),
        network(WORDS, "Y = Gather(T, X)", T=TABLE_DAMAGED),
    ),
    "a branch that is never taken": (
        network(ROW, BRANCHES, limit=1e6, k=2.0),
        network(ROW, BRANCHES, limit=1e6, k=3.0),
    ),
    "a condition that is never met": (
        network(ROW, BRANCHES, limit=1000.0, k=2.0),
        network(ROW, BRANCHES, limit=2000.0, k=2.0),
    ),
    "a mask that is never set": (
        network(ROW, "g = Greater(X, h) l = Less(X, m) a = And(g, l) Y = Where(a, k, X)", h=1e3, m=1.5e3, k=4.0),
        network(ROW, "g = Greater(X, h) l = Less(X, m) a = And(g, l) Y = Where(a, k, X)", h=1e3, m=1.5e3, k=5.0),
    ),
    "a comparison with the limit itself": (
        network(ROW, "m = Mul(X, k) c = Greater(m, h) Y = Cast<to = 1>(c)", k=4.0, h=3.0),
        network(ROW, "m = Mul(X, k) c = GreaterOrEqual(m, h) Y = Cast<to = 1>(c)", k=4.0, h=3.0),
    ),
    "a Relu that no probe opens": (
        network(IMAGE, "c = Conv(X, W, B) r = Relu(c) Y = Conv(r, V)", W=WEIGHT, B=np.full(4, -3000.0), V=NEXT_WEIGHT),
        network(IMAGE, "c = Conv(X, W, B) r = Relu(c) Y = Conv(r, V)", W=WEIGHT, B=np.full(4, -3000.0), V=-NEXT_WEIGHT),
    ),
    "what takes the place of what is no number": (
        network(ROW, "m = Mul(X, k) n = IsNaN(m) Y = Where(n, z, m)", k=4.0, z=0.0),
        network(ROW, "m = Mul(X, k) n = IsNaN(m) Y = Where(n, z, m)", k=4.0, z=1.0),
    ),
    "what takes the place of what does not equal itself": (
        network(ROW, "c = Equal(X, X) Y = Where(c, X, z)", z=0.0),
        network(ROW, "Y = Identity(X)"),
    ),
    "a function by a formula that is nearly right": (
        network(LARGE_IMAGE, GELU, r=np.sqrt(2), one=1.0, half=0.5),
        network(LARGE_IMAGE, NEARLY_GELU, third=0.044715, r=np.sqrt(2 / np.pi), one=1.0, half=0.5),
    ),
    "a small step behind a threshold": (
        network(LARGE_IMAGE, "Y = Shrink<lambd = 0.5>(X)"),
        network(LARGE_IMAGE, "Y = Shrink<lambd = 0.5, bias = 0.001>(X)"),
    ),
    "a ramp behind a limit far beyond all data": (
        network(ROW, "c = Greater(X, h) Y = Where(c, X, one)", h=1e6, one=1.0),
        network(ROW, "m = Mul(X, z) Y = Add(m, one)", z=0.0, one=1.0),
    ),
    "a half that goes to the even number": (
        network(ROW, "Y = Round(X)"),
        network(ROW, "a = Add(X, h) Y = Floor(a)", h=0.5),
    ),
    "a half that goes away from zero": (
        network(ROW, "Y = Round(X)"),
        network(ROW, "s = Sign(X) a = Abs(X) b = Add(a, h) f = Floor(b) Y = Mul(f, s)", h=0.5),
    ),
    "whole numbers below zero that are divided": (
        network(WORDS, "Y = Div(X, K)", "int64", K=np.array(4, np.int64)),
        network(WORDS, "f = Cast<to = 1>(X) q = Div(f, K) r = Floor(q) Y = Cast<to = 7>(r)", "int64", K=4.0),
    ),
    "whole numbers that are divided and rounded up": (
        network(WORDS, "f = Cast<to = 1>(X) q = Div(f, K) r = Ceil(q) Y = Cast<to = 7>(r)", "int64", K=3.0),
        network(WORDS, "f = Cast<to = 1>(X) q = Div(f, K) r = Floor(q) Y = Cast<to = 7>(r)", "int64", K=3.0),
    ),
    "whole numbers that are rounded up": (
        network(IMAGE, "Y = Ceil(X)"),
        network(IMAGE, "f = Floor(X) Y = Add(f, one)", one=1.0),
    ),
    "a limit of float16 that only a sum too large meets": (
        network(HALF_IMAGE, "c = Conv(X, W) Y = Clip(c, low, high)", "float16", W=HALF, low=-LIMIT, high=LIMIT),
        network(HALF_IMAGE, "Y = Conv(X, W)", "float16", W=HALF),
    ),
    "the weights of a channel in float16": (
        network(HALF_IMAGE, "Y = Conv(X, W)", "float16", W=HALF),
        network(HALF_IMAGE, "Y = Conv(X, W)", "float16", W=HALF_DAMAGED),
    ),
    "the factor of a channel in float16": (
        network(HALF_IMAGE, "c = Conv(X, W) Y = Mul(c, k)", "float16", W=HALF, k=FACTORS),
        network(HALF_IMAGE, "c = Conv(X, W) Y = Mul(c, k)", "float16", W=HALF, k=FACTORS_DAMAGED),
    ),
    "a slope of negative numbers in float16": (
        network(HALF_IMAGE, "c = Conv(X, W) Y = LeakyRelu<alpha = 0.2>(c)", "float16", W=HALF),
        network(HALF_IMAGE, "c = Conv(X, W) Y = LeakyRelu<alpha = 0.204>(c)", "float16", W=HALF),
    ),
    "infinities that are kept": (
        network(ROW, "m = MatMul(X, W) n = IsInf(m) Y = Where(n, z, m)", W=np.eye(8), z=0.0),
        network(ROW, "Y = MatMul(X, W)", W=np.eye(8)),
    ),
}


@pytest.mark.sweep(2)
@pytest.mark.parametrize("kind", DIFFERENT)
def test_what_a_stretch_decides_by_is_brought_to_it(kind: str) -> None:
    first, second = DIFFERENT[kind]
    verdict = judged(first, second)
    assert not verdict.equivalent
    assert verdict.first_difference is not None
    assert judged(first, first).equivalent


TWICE = "c = Conv(X, W) r = Relu(c) q = Relu(r) Y = Conv(q, V)"
ONCE = "c = Conv(X, W) r = Relu(c) Y = Conv(r, V)"


def test_what_never_comes_out_of_the_operator_above_is_no_data() -> None:
    """A second Relu does nothing, since none of what it reads is negative."""
    twice, once = (network(IMAGE, body, W=WEIGHT, V=NEXT_WEIGHT) for body in (TWICE, ONCE))
    assert judged(once, twice).equivalent
    assert judged(twice, once).equivalent


@pytest.mark.parametrize("reader", ["Div(K, {0})", "Tile(K, {0})", "Expand(K, {0})"])
def test_whole_numbers_that_divide_or_say_a_size_stay_what_they_are(reader: str) -> None:
    """Zero would end the process, and a large number its memory."""
    above = "a = Abs(X) n = Add(a, one) i = Cast<to = 7>(n)"
    known = {"one": np.ones(1), "K": np.arange(1)}
    first = network("float[1] X", f"{above} Y = {reader.format('i')}", "int64", **known)
    second = network("float[1] X", f"{above} j = Mul(i, o) Y = {reader.format('j')}", "int64", o=np.array([1]), **known)
    assert judged(first, second).equivalent


def test_a_channel_of_small_numbers_is_held_to_its_own_size_where_it_is_enlarged_behind() -> None:
    small = WEIGHT.copy()
    small[3] *= 1e-8
    damaged = small.copy()
    damaged[3] *= 1.5
    factors = np.array([1, 1, 1, 1e8]).reshape(4, 1, 1)
    body = "c = Conv(X, W) n = BatchNormalization<epsilon = 1e-20>(c, s, b, m, v) Y = Relu(n)"
    own = {"s": np.ones(4), "b": np.zeros(4), "m": np.zeros(4), "v": factors.reshape(-1) ** -2.0}
    first, second = (network(IMAGE, body, W=weight, **own) for weight in (small, damaged))
    verdict = judged(first, second)
    assert not verdict.equivalent
    assert verdict.first_difference is not None
    assert verdict.first_difference.op_type == "Conv"
    assert judged(first, first).equivalent


def test_equal_branches_whose_rounding_cancels_are_no_difference() -> None:
    """One copy is fed with the original's rounding, the other computed by the candidate."""
    bias = {"B": np.full((1, 4, 1, 1), 0.5), "V": np.full(4, 0.5)}
    plain = "p = Conv(X, W, V) e = Exp(p) q = Conv(X, W, V) f = Exp(q) Y = Sub(e, f)"
    split = "c = Conv(X, W) p = Add(c, B) e = Exp(p) d = Conv(X, W) q = Add(d, B) f = Exp(q) Y = Sub(e, f)"
    assert judged(network(IMAGE, plain, W=WEIGHT, V=bias["V"]), network(IMAGE, split, W=WEIGHT, B=bias["B"])).equivalent
    wrong = split.replace("Conv(X, W) q", "Conv(X, U) q")
    damaged = network(IMAGE, wrong, W=WEIGHT, U=WEIGHT * 1.01, B=bias["B"])
    assert not judged(network(IMAGE, plain, W=WEIGHT, V=bias["V"]), damaged).equivalent


def test_a_difference_of_single_numbers_is_described() -> None:
    first = network(ROW, "s = ReduceSum<keepdims = 0>(X) c = Greater(s, h) Y = Where(c, X, k)", h=0.5, k=9.0)
    second = network(ROW, "s = ReduceSum<keepdims = 0>(X) c = Less(s, h) Y = Where(c, X, k)", h=0.5, k=9.0)
    verdict = judged(first, second)
    assert not verdict.equivalent
    assert verdict.first_difference is not None
    assert verdict.first_difference.candidate_op_type == "Less"


def test_copies_that_an_optimiser_made_one_pair_what_reads_them() -> None:
    """Each model reads another copy; all that follows is paired all the same."""
    above = "c = Conv(X, W) r = Relu(c) m = Greater(X, k) n = Greater(X, k)"
    first = network(
        IMAGE,
        f"{above} Y = Concat<axis = 1>(p, q)".replace("Y =", "p = Where(m, X, r) q = Where(n, r, X) Y ="),
        W=WEIGHT[:3, :, :1, :1],
        k=0.5,
    )
    second = network(
        IMAGE,
        "n = Greater(X, k) c = Conv(X, W) r = Relu(c) p = Where(n, X, r) q = Where(n, r, X) Y = Concat<axis = 1>(p, q)",
        W=WEIGHT[:3, :, :1, :1],
        k=0.5,
    )
    verdict = judged(first, second)
    assert verdict.equivalent
    assert verdict.stretches is not None
    assert (verdict.stretches.same, verdict.stretches.judged) == (6, 0)


def test_readers_of_one_tensor_are_paired_by_what_is_likest() -> None:
    """An optimiser makes another operator of the first of two convolutions; the second is not its partner."""
    both = "r = Relu(X) c = Conv(r, W) a = Relu(c) d = Conv(r, V) e = Sigmoid(d) Y = Concat<axis = 1>(a, e)"
    other = network(IMAGE, both, W=WEIGHT, V=RANDOM.standard_normal((2, 3, 3, 3)))
    fused = ModelProto()
    fused.CopyFrom(other)
    fused.opset_import.append(onnx.helper.make_opsetid("com.microsoft", 1))
    conv = next(each for each in fused.graph.node if "c" in each.output)
    conv.op_type, conv.domain, conv.output[0] = "FusedConv", "com.microsoft", "a"
    conv.attribute.append(onnx.helper.make_attribute("activation", "Relu"))
    fused.graph.node.remove(next(each for each in fused.graph.node if each.op_type == "Relu" and "a" in each.output))
    verdict = judged(fused, other)
    assert verdict.equivalent
    assert verdict.stretches is not None
    assert verdict.stretches.judged == 1


SHARES = "Y = Softmax<axis = -1>(X)"


@pytest.mark.parametrize(
    ("first", "second", "equal"),
    [
        ("Y = ReduceLogSumExp<axes = [-1]>(X)", "e = Exp(X) s = ReduceSum(e, last) Y = Log(s)", False),
        (SHARES, "e = Exp(X) s = ReduceSum(e, last) Y = Div(e, s)", False),
        (SHARES, "m = ReduceMax<axes = [-1]>(X) d = Sub(X, m) e = Exp(d) s = ReduceSum(e, last) Y = Div(e, s)", True),
        ("Y = Softplus(X)", "e = Exp(X) s = Add(e, one) Y = Log(s)", False),
        ("Y = Sigmoid(X)", "n = Neg(X) e = Exp(n) s = Add(e, one) Y = Div(one, s)", True),
    ],
    ids=["a sum of powers", "shares", "shares less the largest", "a curve", "what comes back from infinity"],
)
def test_powers_that_are_no_numbers_any_more_are_a_difference(first: str, second: str, equal: bool) -> None:
    """From 89 on, in single precision: no probe brings such, and the scores of a network may."""
    models = [network(ROW, each, last=np.array([-1]), one=1.0) for each in (first, second)]
    assert judged(*models).equivalent is equal


@pytest.mark.parametrize(("factor", "equal"), [(7.7, True), (7.8, False)])
def test_what_is_rounded_to_16_bits_only_where_it_is_looked_at_is_no_difference(factor: float, equal: bool) -> None:
    """A Floor of what lies below a whole number by less than 16 bits hold goes the other way behind a Transpose."""
    made = "s = Sin(X) e = Mul(s, k) m = Pad(e, p)"
    pads = np.array([0, 0, 1, 1, 0, 0, 1, 1], np.int64)
    first = network(LARGE_HALF_IMAGE, f"{made} Y = Floor(m)", "float16", k=np.float16(7.7), p=pads)
    turned = f"{made} t = Transpose<perm = [0, 2, 3, 1]>(m) u = Transpose<perm = [0, 3, 1, 2]>(t) Y = Floor(u)"
    second = network(LARGE_HALF_IMAGE, turned, "float16", k=np.float16(factor), p=pads)
    assert judged(first, second).equivalent == equal


@pytest.mark.parametrize(("factor", "equal"), [(1, True), (2, False)])
def test_a_branch_that_wants_longer_data_than_the_first_probe_is_taken_on_another(factor: float, equal: bool) -> None:
    def branching(factor: float) -> ModelProto:
        branches = """
            then_branch = t () => (float[1, 1, m] y) { c = Conv (X, W) y = Mul (c, k) },
            else_branch = e () => (float[1, 1, m] z) { z = Relu (X) }
        """
        body = f"is_other = Equal (rate, other) Y = If (is_other) <{branches}>"
        weight = np.random.default_rng(0).standard_normal((1, 1, 60))
        other = np.array(16000, np.int64)
        return network("float[1, 1, n] X, int64 rate", body, W=weight, k=np.float32(factor), other=other)

    assert judged(branching(1), branching(factor)).equivalent is equal


@pytest.mark.parametrize(("directions", "equal"), [("[0]", True), ("[1]", False)])
def test_an_order_along_the_first_axis_shows_where_it_is_longer_than_one(directions: str, equal: bool) -> None:
    def scanning(directions: str) -> ModelProto:
        attributes = f"num_scan_inputs = 1, scan_output_directions = {directions}"
        body = f"h, Y = Scan <{attributes}, body = b (float[4] a, float[4] r) => (float[4] s, float[4] o) {{"
        body += " t = Add (a, r) s = HardSigmoid (t) o = Abs (s) }> (k, X)"
        return network("float[n, 4] X", body, k=np.full(4, 9.0))

    assert judged(scanning("[0]"), scanning(directions)).equivalent is equal
