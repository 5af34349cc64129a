"""PF107: Pads folded into operators, against brute force in ONNX Runtime with and without its optimiser."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field

import numpy as np
import onnx
import pytest
from onnx import ModelProto, NodeProto, TensorProto, helper, numpy_helper, parser

from padfix.files.model import Model
from padfix.operators.inference import infer
from padfix.rewrite.engine import Rewriting, rewrite_model
from padfix.rules.base import Site
from padfix.rules.separate_pad import SeparatePad
from padfix.targets import Target, named
from tests.support import oracle
from tests.support.padding_models import session

NODE = dataclasses.replace(named("onnx"), pads="node")
KINDS = {"MaxPool": "max", "AveragePool": "average", "LpPool": "lp"}


def convert(model: ModelProto, target: Target | None = None) -> tuple[ModelProto, Rewriting]:
    result = ModelProto()
    result.CopyFrom(model)
    return result, rewrite_model(Model(result), target=target)


def run(model: ModelProto, *arrays: np.ndarray, optimised: bool) -> list[np.ndarray]:
    names = [value.name for value in model.graph.input]
    return session(model, optimised=optimised).run(None, dict(zip(names, arrays, strict=True)))


def operators(model: ModelProto) -> list[str]:
    return [node.op_type for node in model.graph.node]


def codes(result: Rewriting) -> list[str]:
    return [each.finding.rule for each in result.rewrites]


def text_model(text: str) -> ModelProto:
    model: ModelProto = parser.parse_model(text)
    return model


@dataclass
class Case:
    """A Pad before an operator; sizes are those of the Pad's input."""

    op_type: str
    opset: int
    size: tuple[int, ...]
    dynamic: tuple[bool, ...]
    kernel: tuple[int, ...]
    amounts: list[tuple[int, int]]
    value: float
    channels: tuple[int, int] = (0, 0)
    channels_last: bool = False
    read_elsewhere: bool = False
    axes: list[int] | None = None
    attributes: dict[str, object] = field(default_factory=dict)

    @property
    def rank(self) -> int:
        return len(self.size)


def random_case(rng: np.random.Generator) -> Case:
    op_type = str(rng.choice(["Conv", *KINDS]))
    opset = int(rng.integers(7, 23))
    rank = int(rng.choice([1, 2, 2, 2]))
    kernel = tuple(int(k) for k in rng.integers(2, 5, rank))
    size = tuple(int(k + n) for k, n in zip(kernel, rng.integers(0, 8, rank), strict=True))
    attributes: dict[str, object] = {"kernel_shape": kernel, "strides": [int(s) for s in rng.integers(1, 4, rank)]}
    if rng.random() < 0.3:
        attributes["pads"] = [int(rng.integers(0, kernel[axis % rank])) for axis in range(2 * rank)]
    if op_type in KINDS and opset >= {"LpPool": 18}.get(op_type, 10) and rng.random() < 0.5:
        attributes["ceil_mode"] = 1
    if op_type == "AveragePool" and rng.random() < 0.5:
        attributes["count_include_pad"] = 1
    right = -np.inf if op_type == "MaxPool" else 0.0
    amounts = [(int(rng.integers(0, 3)), int(rng.integers(0, 3))) for _ in range(rank)]
    case = Case(
        op_type,
        opset,
        size,
        tuple(bool(each) for each in rng.random(rank) < 0.4),
        kernel,
        amounts,
        right if rng.random() < 0.85 else float(rng.choice([1.0, -1e9])),
        channels=(1, 0) if rng.random() < 0.07 else (0, 0),
        channels_last=bool(rng.random() < 0.25),
        read_elsewhere=bool(rng.random() < 0.1),
        attributes=attributes,
    )
    if opset >= 18 and rng.random() < 0.5:
        case.axes = [int(axis) - (rank + 2) * int(rng.integers(0, 2)) for axis in rng.permutation(rank + 2)]
    return case


def model_of(case: Case, rng: np.random.Generator) -> ModelProto:
    rank = case.rank
    every = [(0, 0), case.channels, *case.amounts]
    length = ["n", 2, *(f"n{axis}" if free else n for axis, (n, free) in enumerate(zip(case.size, case.dynamic)))]  # noqa: B905
    perm = [0, rank + 1, *range(1, rank + 1)]
    if case.channels_last:
        every = [every[0], *every[2:], every[1]]
        length = [length[0], *length[2:], length[1]]
    order = list(range(rank + 2)) if case.axes is None else [axis % (rank + 2) for axis in case.axes]
    pads = [every[axis][0] for axis in order] + [every[axis][1] for axis in order]
    constants = {}
    if case.opset < 11:
        nodes = [helper.make_node("Pad", ["X"], ["P"], pads=pads, value=case.value)]
    else:
        constants = {"pads": np.array(pads, np.int64), "value": np.array(case.value, np.float32)}
        if case.axes is not None:
            constants["axes"] = np.array(case.axes, np.int64)
        nodes = [helper.make_node("Pad", ["X", *constants], ["P"])]
    if case.channels_last:
        nodes.append(helper.make_node("Transpose", ["P"], ["T"], perm=perm))
    inputs = ["T" if case.channels_last else "P"]
    if case.op_type == "Conv":
        channels = 2 + sum(case.channels)
        constants["W"] = rng.standard_normal((2, channels, *case.kernel)).astype(np.float32)
        inputs.append("W")
    extra = {"p": 2} if case.op_type == "LpPool" else {}
    nodes.append(helper.make_node(case.op_type, inputs, ["Y"], name="window", **case.attributes, **extra))
    outputs = ["Y"]
    if case.read_elsewhere:
        nodes.append(helper.make_node("Neg", ["P"], ["N"]))
        outputs.append("N")
    graph = helper.make_graph(
        nodes,
        "graph",
        [helper.make_tensor_value_info("X", TensorProto.FLOAT, length)],
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, [None] * (rank + 2)) for name in outputs],
        [numpy_helper.from_array(value, name) for name, value in constants.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", case.opset)], ir_version=8)


def meaning(case: Case, model: ModelProto, X: np.ndarray, *, folded: bool = False) -> np.ndarray:
    """Return the result for ``X`` (channels first) as written, or as if the operator had all pads itself."""
    rank = case.rank
    own = list(case.attributes.get("pads", [0] * (2 * rank)))  # type: ignore[call-overload]
    counting = {"count_include_pad": int(case.attributes.get("count_include_pad", 0))}  # type: ignore[call-overload]
    if folded:
        own = [o + a for o, a in zip(own, [*[b for b, _ in case.amounts], *[e for _, e in case.amounts]], strict=True)]
        counting["count_include_pad"] = 1
    else:
        X = np.pad(X, [(0, 0), case.channels, *case.amounts], constant_values=case.value)
    strides = case.attributes["strides"]
    if case.op_type == "Conv":
        (W,) = (numpy_helper.to_array(each) for each in model.graph.initializer if each.name == "W")
        return oracle.conv(X, W, strides=strides, pads=own)
    ceil_mode = case.attributes.get("ceil_mode", 0)
    counted = counting if case.op_type == "AveragePool" else {}
    return oracle.pool(X, KINDS[case.op_type], case.kernel, strides=strides, pads=own, ceil_mode=ceil_mode, **counted)


def same(first: np.ndarray, second: np.ndarray) -> bool:
    return first.shape == second.shape and bool(np.allclose(first, second, rtol=1e-5, atol=1e-6))


def may_fold(case: Case) -> bool:
    """Whether nothing but the windows and the counts could be in the way."""
    own = list(case.attributes.get("pads", [0] * (2 * case.rank)))  # type: ignore[call-overload]
    total = [(own[axis] + begin, own[axis + case.rank] + end) for axis, (begin, end) in enumerate(case.amounts)]
    short = case.op_type == "Conv" or all(max(pair) < taps for pair, taps in zip(total, case.kernel, strict=True))
    right = case.value == (-np.inf if case.op_type == "MaxPool" else 0)
    return short and right and not any(case.channels) and not case.read_elsewhere and any(map(any, case.amounts))


def check_case(case: Case, rng: np.random.Generator) -> bool:
    """Check that the fold is right where there is one, and that there is one where it is right."""
    model = model_of(case, rng)
    after, result = convert(model)
    assert not result.refusals and not result.contradictions, (case, result)
    folded = "PF107" in codes(result)
    assert not convert(after)[1].changed
    X = (rng.standard_normal((1, 2, *case.size)) - 2).astype(np.float32)
    if not folded:
        assert "Pad" in operators(after)
        if may_fold(case) and not any(case.dynamic):
            assert not same(meaning(case, model, X), meaning(case, model, X, folded=True)), case
        return False
    assert may_fold(case), case
    assert operators(after) == [*(["Transpose"] if case.channels_last else []), case.op_type]
    assert {tensor.name for tensor in after.graph.initializer} <= {"W"}
    onnx.checker.check_model(after, full_check=True)
    for more in range(3 if any(case.dynamic) else 1):
        size = tuple(n + more * free for n, free in zip(case.size, case.dynamic, strict=True))
        X = (rng.standard_normal((1, 2, *size)) - 2).astype(np.float32)
        wanted = meaning(case, model, X)
        given = np.moveaxis(X, 1, -1) if case.channels_last else X
        for optimised in (False, True):
            (Y,) = run(after, given, optimised=optimised)
            assert Y.shape == wanted.shape, case
            np.testing.assert_allclose(Y, wanted, rtol=1e-4, atol=1e-5, err_msg=str(case))
    return True


@pytest.mark.sweep(2)
@pytest.mark.parametrize("seed", range(60))
def test_random_pads_are_folded_where_that_is_right(seed: int) -> None:
    rng = np.random.default_rng([41, seed])
    check_case(random_case(rng), rng)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(20))
def test_random_pads_are_folded_where_that_is_right_full(seed: int) -> None:
    folded = 0
    for each in range(100):
        rng = np.random.default_rng([42, seed, each])
        folded += check_case(random_case(rng), rng)
    assert folded > 20


HEAD = '<ir_version: 8, opset_import: ["": {opset}]> g ({inputs}) => ({outputs}) '
WEIGHTS = "float[1,1,3,3] W = {1,2,3,4,5,6,7,8,9}"
PADS = "int64[8] pads = {0,0,1,0,0,0,1,2}"


def conv_model(body: str, *, opset: int = 17, inputs: str = "", outputs: str = "", constants: str = "") -> ModelProto:
    head = HEAD.format(opset=opset, inputs=f"float[1,1,6,7] X{inputs}", outputs=f"float[a,b,c,d] Y{outputs}")
    listed = ", ".join([WEIGHTS, PADS, *([constants] if constants else [])])
    return text_model(f"{head} <{listed}> {{ {body} }}")


FOLDED = {
    "no value": conv_model("P = Pad(X, pads) Y = Conv(P, W)"),
    "valid": conv_model('P = Pad(X, pads) Y = Conv<auto_pad="VALID">(P, W)'),
    "same": conv_model('P = Pad(X, pads) Y = Conv<auto_pad="SAME_LOWER", strides=[2,2]>(P, W)'),
    "own pads": conv_model("P = Pad(X, pads) Y = Conv<pads=[1,0,0,5]>(P, W)"),
    "minus zero": conv_model("P = Pad(X, pads, v) Y = Conv(P, W)", constants="float v = {-0.0}"),
    "two readers": conv_model("P = Pad(X, pads) A = Conv(P, W) B = Conv<strides=[1,1]>(P, W) Y = Add(A, B)"),
    "two pads": conv_model("P = Pad(X, pads) Q = Pad(P, pads) Y = Conv(Q, W)"),
    "constant nodes": conv_model(
        "p = Constant<value_ints=[0,0,1,0,0,0,1,2]>() v = Constant<value_float=0.0>() P = Pad(X, p, v) Y = Conv(P, W)"
    ),
    "shared constants": conv_model("P = Pad(X, pads) A = Conv(P, W) Q = Pad(A, pads) B = Relu(Q) Y = Conv(B, W)"),
    "only what the axes name": conv_model(
        "P = Pad(X, q, , ax) Y = Conv(P, W)", opset=18, constants="int64[2] q = {1, 2}, int64[1] ax = {-1}"
    ),
}  # fmt: skip

KEPT = {
    "another value": conv_model("P = Pad(X, pads, v) Y = Conv(P, W)", constants="float v = {1}"),
    "reflected": conv_model('P = Pad<mode="reflect">(X, pads) Y = Conv(P, W)'),
    "cropped": conv_model("P = Pad(X, q) Y = Conv(P, W)", constants="int64[8] q = {0,0,1,0,0,0,1,-1}"),
    "on the channels": conv_model(
        "P = Pad(X, q) S = Slice(P, z, o, o) Y = Conv(S, W)",
        constants="int64[8] q = {0,1,1,0,0,0,1,1}, int64[1] z = {0}, int64[1] o = {1}",
    ),
    "of nothing": conv_model("P = Pad(X, q) Y = Conv(P, W)", constants="int64[8] q = {0,0,0,0,0,0,0,0}"),
    "pads are an input": conv_model("P = Pad(X, q) Y = Conv(P, W)", inputs=", int64[8] q"),
    "value is an input": conv_model("P = Pad(X, pads, v) Y = Conv(P, W)", inputs=", float v"),
    "also an output": conv_model("P = Pad(X, pads) Y = Conv(P, W)", outputs=", float[a,b,e,f] P"),
    "also read by another": conv_model(
        "P = Pad(X, pads) A = Conv(P, W) N = ReduceSum(P) Y = Add(A, N)"
    ),
    "one reader can't": conv_model(
        "P = Pad(X, pads) A = Conv(P, W) M = MaxPool<kernel_shape=[3,3]>(P) Y = Add(A, M)",
    ),
    "read behind the transpose": conv_model(
        "P = Pad(X, pads) T = Transpose<perm=[0,1,3,2]>(P) A = Conv(T, W) N = ReduceSum(T) Y = Add(A, N)"
    ),
    "weights": conv_model("P = Pad(W, pads) Y = Conv(X, P)"),
    "read in a body": conv_model(
        "P = Pad(X, pads) A = Conv(P, W) I = If(c) <then_branch = t () => (float u) { u = ReduceMax<keepdims=0>(P) }, "
        "else_branch = e () => (float u) { u = ReduceMin<keepdims=0>(P) }> Y = Add(A, I)", inputs=", bool c",
    ),
    "averages with pads of its own": conv_model(
        "P = Pad(X, pads) Y = AveragePool<kernel_shape=[5,5], pads=[1,1,1,1]>(P)"
    ),
    "as long as the kernel": conv_model("P = Pad(X, pads) Y = AveragePool<kernel_shape=[2,2]>(P)"),
    "last window in the padding": conv_model(
        "P = Pad(X, q) Y = AveragePool<kernel_shape=[2,2], strides=[3,3], ceil_mode=1>(P)",
        constants="int64[8] q = {0,0,0,0,0,0,1,0}",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", FOLDED)
def test_folded(name: str) -> None:
    model = FOLDED[name]
    after, result = convert(model)
    assert "PF107" in codes(result) and not result.refusals
    if name != "shared constants":
        assert "Pad" not in operators(after) and "Constant" not in operators(after)
        assert {tensor.name for tensor in after.graph.initializer} & {"q", "v", "ax"} == set()
    else:
        assert operators(after) == ["Conv", "Pad", "Relu", "Conv"]
        assert "pads" in {tensor.name for tensor in after.graph.initializer}
    onnx.checker.check_model(after, full_check=True)
    X = np.random.default_rng(1).standard_normal((1, 1, 6, 7)).astype(np.float32)
    (wanted,) = run(model, X, optimised=False)
    for optimised in (False, True):
        np.testing.assert_allclose(run(after, X, optimised=optimised)[0], wanted, rtol=1e-5, atol=1e-5)
    assert not convert(after)[1].changed


@pytest.mark.parametrize("name", KEPT)
def test_kept(name: str) -> None:
    after, result = convert(KEPT[name])
    assert "PF107" not in codes(result)
    assert "Pad" in operators(after)


@pytest.mark.parametrize("name", FOLDED)
def test_kept_where_pads_are_to_be_nodes(name: str) -> None:
    after, result = convert(FOLDED[name], NODE)
    assert "PF107" not in codes(result)
    assert "Pad" in operators(after)
    assert not convert(after, NODE)[1].changed


def test_an_initializer_that_a_caller_may_replace_is_no_constant() -> None:
    model = FOLDED["no value"]
    overridable = ModelProto.FromString(model.SerializeToString())
    overridable.graph.input.append(helper.make_tensor_value_info("pads", TensorProto.INT64, [8]))
    assert "PF107" not in codes(convert(overridable)[1])


@pytest.mark.parametrize(
    ("value", "zero_point", "folded"),
    [("128", ", z", True), ("0", ", z", False), ("0", "", True), ("128", "", False)],
)
def test_a_quantized_convolution_takes_in_its_zero_point_only(value: str, zero_point: str, folded: bool) -> None:
    model = text_model(
        '<ir_version: 8, opset_import: ["": 13]> g (uint8[1,1,6,7] X) => (int32[a,b,c,d] Y) '
        f"<uint8[1,1,3,3] W = {{1,2,3,4,5,6,7,8,9}}, {PADS}, uint8 v = {{{value}}}, uint8 z = {{128}}> "
        f"{{ P = Pad(X, pads, v) Y = ConvInteger(P, W{zero_point}) }}"
    )
    after, result = convert(model)
    assert codes(result) == (["PF107"] if folded else [])
    X = np.random.default_rng(2).integers(0, 255, (1, 1, 6, 7)).astype(np.uint8)
    for optimised in (False, True):
        np.testing.assert_array_equal(run(after, X, optimised=optimised), run(model, X, optimised=False))


def test_a_zero_point_that_is_an_input_is_the_value_of_its_pad() -> None:
    model = text_model(
        '<ir_version: 8, opset_import: ["": 13]> g (uint8[1,1,6,7] X, uint8 z) => (int32[a,b,c,d] Y) '
        f"<uint8[1,1,3,3] W = {{1,2,3,4,5,6,7,8,9}}, {PADS}> {{ P = Pad(X, pads, z) Y = ConvInteger(P, W, z) }}"
    )
    after, result = convert(model)
    assert codes(result) == ["PF107"]
    X = np.random.default_rng(2).integers(0, 255, (1, 1, 6, 7)).astype(np.uint8)
    z = np.array(9, np.uint8)
    np.testing.assert_array_equal(run(after, X, z, optimised=True), run(model, X, z, optimised=False))


def pool_model(op_type: str, elem: str, value: str, opset: int = 13) -> ModelProto:
    return text_model(
        f'<ir_version: 8, opset_import: ["": {opset}]> g ({elem}[1,1,6,7] X) => ({elem}[a,b,c,d] Y) '
        f"<int64[8] pads = {{0,0,1,0,0,0,1,2}}, {elem} value = {{{value}}}> "
        f"{{ P = Pad(X, pads, value) Y = {op_type}<kernel_shape=[3,3]>(P) }}"
    )


@pytest.mark.parametrize(
    ("elem", "value", "expected"),
    [
        ("uint8", "0", ["PF107"]),
        ("int8", "-128", ["PF107"]),
        ("int8", "0", ["PF108"]),
        ("float", "0", ["PF108"]),
        ("float", "-3.4028234e38", []),
    ],
)
def test_a_max_pool_takes_in_the_least_value_only(elem: str, value: str, expected: list[str]) -> None:
    model = pool_model("MaxPool", elem, value)
    after, result = convert(model)
    assert codes(result) == expected
    X = (-np.random.default_rng(3).integers(1, 120, (1, 1, 6, 7))).astype(elem.replace("float", "float32"))
    for optimised in (False, True):
        np.testing.assert_array_equal(run(after, X, optimised=optimised), run(model, X, optimised=False))
    assert not convert(after)[1].changed


def test_indices_keep_their_pad() -> None:
    model = text_model(
        '<ir_version: 8, opset_import: ["": 13]> g (uint8[1,1,6,7] X) => (uint8[a,b,c,d] Y, int64[a,b,c,d] I) '
        f"<{PADS}, uint8 zero = {{0}}> {{ P = Pad(X, pads, zero) Y, I = MaxPool<kernel_shape=[3,3]>(P) }}"
    )
    assert "PF107" not in codes(convert(model)[1])


@pytest.mark.parametrize("opset", [9, 10, 13, 18])
@pytest.mark.parametrize("op_type", ["MaxPool", "AveragePool", "LpPool"])
def test_both_ways_lead_back(op_type: str, opset: int) -> None:
    node = helper.make_node(op_type, ["X"], ["Y"], kernel_shape=[3, 2], pads=[1, 0, 0, 1], strides=[2, 2])
    graph = helper.make_graph(
        [node],
        "graph",
        [helper.make_tensor_value_info("X", TensorProto.FLOAT, [1, 2, "h", 8])],
        [helper.make_tensor_value_info("Y", TensorProto.FLOAT, [None] * 4)],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)
    apart, there = convert(model, NODE)
    back, again = convert(apart)
    assert codes(there) == ["PF106"] and set(codes(again)) == {"PF107"}
    assert "Pad" in operators(apart) and "Pad" not in operators(back)
    assert not convert(back)[1].changed
    X = np.random.default_rng(4).standard_normal((1, 2, 7, 8)).astype(np.float32)
    wanted = oracle.pool(X, KINDS[op_type], (3, 2), strides=(2, 2), pads=[1, 0, 0, 1])
    for form in (apart, back):
        for optimised in (False, True):
            np.testing.assert_allclose(run(form, X, optimised=optimised)[0], wanted, rtol=1e-5, atol=1e-6)


def test_in_a_function_and_in_a_body() -> None:
    model = text_model(
        '<ir_version: 8, opset_import: ["": 17, "f": 1]> g (float[1,1,6,7] X, bool c) => (float[a,b,c,d] Y) '
        f"<{WEIGHTS}, {PADS}> {{ A = f.F(X, W) "
        "Y = If(c) <then_branch = t () => (float[a,b,c,d] u) { Q = Pad(A, pads) u = Conv(Q, W) }, "
        "else_branch = e () => (float[a,b,c,d] u) { u = Conv<pads=[1,0,1,2]>(A, W) }> } "
        '<domain: "f", opset_import: ["": 17]> F (x, w) => (y) '
        "{ p = Constant<value = int64[8] {0,0,1,0,0,0,1,2}>() q = Pad(x, p) y = Conv(q, w) }"
    )
    after, result = convert(model)
    assert codes(result) == ["PF107", "PF107"]
    assert [node.op_type for node in after.functions[0].node] == ["Conv"]
    X = np.random.default_rng(5).standard_normal((1, 1, 6, 7)).astype(np.float32)
    for flag in (True, False):
        (wanted,) = run(model, X, np.array(flag), optimised=False)
        np.testing.assert_allclose(run(after, X, np.array(flag), optimised=True)[0], wanted, rtol=1e-5, atol=1e-4)


def test_a_pad_outside_a_body_stays() -> None:
    model = text_model(
        '<ir_version: 8, opset_import: ["": 17]> g (float[1,1,6,7] X, bool c) => (float[a,b,c,d] Y) '
        f"<{WEIGHTS}, {PADS}> {{ Q = Pad(X, pads) "
        "Y = If(c) <then_branch = t () => (float[a,b,c,d] u) { u = Conv(Q, W) }, "
        "else_branch = e () => (float[a,b,c,d] u) { u = Conv(Q, W) }> }"
    )
    assert not convert(model)[1].changed


def test_the_pad_is_part_of_what_is_proven(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("padfix.rules.separate_pad._pads_alike", lambda *arguments: True)
    _, result = convert(KEPT["another value"])
    assert not result.changed
    (refused,) = result.refusals
    assert refused.finding.rule == "PF107"
    assert "could not be shown to be right" in refused.reason


def test_value_info_and_annotations_of_what_is_gone_go_too() -> None:
    model = ModelProto.FromString(FOLDED["minus zero"].SerializeToString())
    model.graph.value_info.append(helper.make_tensor_value_info("P", TensorProto.FLOAT, [1, 1, 8, 9]))
    noted = model.graph.quantization_annotation.add(tensor_name="P")
    noted.quant_parameter_tensor_names.add(key="SCALE_TENSOR", value="W")
    kept = model.graph.quantization_annotation.add(tensor_name="X")
    kept.quant_parameter_tensor_names.add(key="SCALE_TENSOR", value="v")
    after, _ = convert(model)
    assert not after.graph.value_info
    assert [each.tensor_name for each in after.graph.quantization_annotation] == ["X"]
    assert {tensor.name for tensor in after.graph.initializer} == {"W", "v"}


def test_what_check_says() -> None:
    scope = infer(Model(FOLDED["own pads"]))[0]
    node: NodeProto = scope.nodes[1]
    finding = SeparatePad().match(Site(scope, 1, node))
    assert finding is not None
    assert (finding.severity.value, finding.node, finding.op_type) == ("info", "#1", "Conv")
    assert "pads=[2, 0, 1, 7]" in finding.message
