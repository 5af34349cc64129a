"""PF106: pads beside the operator, against brute force in ONNX Runtime with and without its optimiser."""

from __future__ import annotations

import dataclasses
import itertools

import numpy as np
import onnx
import pytest
from onnx import ModelProto, TensorProto, helper, numpy_helper, parser

from padfix.files.model import Model
from padfix.geometry.padding import separable_ceil_modes
from padfix.operators.inference import infer
from padfix.operators.refusal import Refusal
from padfix.rewrite.engine import Rewriting, rewrite_model
from padfix.rules.asymmetric_padding import AsymmetricPadding
from padfix.rules.base import Site
from padfix.targets import Target, named
from tests.support import oracle
from tests.support.padding_models import session

NODE = dataclasses.replace(named("onnx"), pads="node")
ASYMMETRIC = ([0, 1], [1, 0], [1, 2], [2, 0])


def convert(model: ModelProto, target: Target = NODE) -> tuple[ModelProto, Rewriting]:
    result = ModelProto()
    result.CopyFrom(model)
    return result, rewrite_model(Model(result), target=target)


def run(model: ModelProto, X: np.ndarray, *, optimised: bool) -> np.ndarray:
    (Y,) = session(model, optimised=optimised).run(None, {"X": X})
    return Y


def window_model(
    op_type: str,
    size: tuple[int | str, ...],
    elem_type: int = TensorProto.FLOAT,
    weights: np.ndarray | None = None,
    opset: int = 17,
    channels: int = 2,
    **attributes: object,
) -> ModelProto:
    constants = [] if weights is None else [numpy_helper.from_array(weights, "W")]
    node = helper.make_node(op_type, ["X", *(each.name for each in constants)], ["Y"], name="window", **attributes)
    graph = helper.make_graph(
        [node],
        "graph",
        [helper.make_tensor_value_info("X", elem_type, [1, channels, *size])],
        [helper.make_tensor_value_info("Y", elem_type, [1, None, *[None] * len(size)])],
        constants,
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)


def operators(model: ModelProto) -> list[str]:
    return [node.op_type for node in model.graph.node]


def random_window(rng: np.random.Generator) -> tuple[ModelProto, tuple[int, ...], dict[str, object], str]:
    """Return a model with explicit asymmetric pads, a size to run it on, and what the oracle needs."""
    op_type = str(rng.choice(["Conv", "MaxPool", "AveragePool", "LpPool", "ConvTranspose"]))
    opset = int(rng.integers(7, 23))
    rank = int(rng.choice([1, 2, 2]))
    kernel = tuple(int(k) for k in rng.integers(2, 5, rank))
    strides = tuple(int(s) for s in rng.integers(1, 4, rank))
    since = {"Conv": 1, "ConvTranspose": 1, "MaxPool": 10, "AveragePool": 19, "LpPool": 18}[op_type]
    dilated = opset >= since and rng.random() < 0.3
    dilations = tuple(int(d) for d in rng.integers(1, 3, rank)) if dilated else (1,) * rank
    pads = [int(rng.integers(0, kernel[axis % rank])) for axis in range(2 * rank)]
    if pads[:rank] == pads[rank:]:
        pads[0] = (pads[0] + 1) % kernel[0]
    size = tuple(int(n) + (k - 1) * d for n, k, d in zip(rng.integers(1, 9, rank), kernel, dilations, strict=True))
    attributes: dict[str, object] = {"kernel_shape": kernel, "strides": strides, "pads": pads}
    oracle_arguments: dict[str, object] = {"strides": strides, "pads": pads, "dilations": dilations}
    if dilated:
        attributes["dilations"] = dilations
    if op_type in ("MaxPool", "AveragePool", "LpPool") and opset >= {"LpPool": 18}.get(op_type, 10):
        oracle_arguments["ceil_mode"] = attributes["ceil_mode"] = int(rng.integers(0, 2))
    if op_type == "AveragePool":
        oracle_arguments["count_include_pad"] = attributes["count_include_pad"] = int(rng.integers(0, 2))
    if op_type == "LpPool":
        oracle_arguments["p"] = attributes["p"] = int(rng.integers(1, 3))
    weights = None
    if op_type in ("Conv", "ConvTranspose"):
        weights = rng.standard_normal((2, 2, *kernel)).astype(np.float32)
    declared = tuple(n if rng.random() < 0.5 else f"n{axis}" for axis, n in enumerate(size))
    model = window_model(op_type, declared, weights=weights, opset=opset, **attributes)
    return model, size, oracle_arguments, op_type


def expected(model: ModelProto, op_type: str, X: np.ndarray, arguments: dict[str, object]) -> np.ndarray:
    if op_type in ("Conv", "ConvTranspose"):
        W = numpy_helper.to_array(model.graph.initializer[0])
        return (oracle.conv if op_type == "Conv" else oracle.conv_transpose)(X, W, **arguments)
    kind = {"MaxPool": "max", "AveragePool": "average", "LpPool": "lp"}[op_type]
    (kernel,) = (list(each.ints) for each in model.graph.node[0].attribute if each.name == "kernel_shape")
    return oracle.pool(X, kind, kernel, **arguments)


def check_random(rng: np.random.Generator) -> str:
    model, size, arguments, op_type = random_window(rng)
    after, result = convert(model)
    if result.refusals:
        (refused,) = result.refusals
        assert "ceil_mode" in refused.reason, refused
        assert arguments["ceil_mode"] and not result.changed
        return "refused"
    assert "PF106" in [each.finding.rule for each in result.rewrites]
    written = [each for node in after.graph.node for each in node.attribute if node.op_type == op_type]
    assert not any(value for each in written if each.name == "pads" for value in each.ints)
    assert not convert(after)[1].changed
    onnx.checker.check_model(after, full_check=True)
    for case in range(2):
        X = (rng.standard_normal((1, 2, *size)) - 3 * case).astype(np.float32)
        wanted = expected(model, op_type, X, arguments)
        for optimised in (False, True):
            Y = run(after, X, optimised=optimised)
            assert Y.shape == wanted.shape
            np.testing.assert_allclose(Y, wanted, rtol=1e-4, atol=1e-5)
    return op_type


@pytest.mark.sweep(3)
@pytest.mark.parametrize("seed", range(60))
def test_random_operators_keep_their_meaning(seed: int) -> None:
    check_random(np.random.default_rng([31, seed]))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(20))
def test_random_operators_keep_their_meaning_full(seed: int) -> None:
    outcomes = [check_random(np.random.default_rng([32, seed, each])) for each in range(100)]
    assert outcomes.count("refused") < 10


def test_ceil_modes_of_a_pool_behind_a_pad_by_counting() -> None:
    for kernel, stride, begin, end in itertools.product(range(1, 5), range(1, 5), range(4), range(4)):
        sizes = range(1, 14)
        agreeing = {True, False}
        for size in sizes:
            if size + begin + end < kernel:
                continue
            _, _, wanted = oracle.window_axis(size, kernel, stride, 1, (begin, end), ceil_mode=1)
            same = {
                mode
                for mode in (True, False)
                if oracle.window_axis(size + begin + end, kernel, stride, ceil_mode=mode)[2] == wanted
            }
            assert separable_ceil_modes(size, kernel, stride, 1, begin, end) == same
            agreeing &= same
        assert separable_ceil_modes(None, kernel, stride, 1, begin, end) <= agreeing


@pytest.mark.parametrize("opset", [10, 13, 18])
@pytest.mark.parametrize("pads", ASYMMETRIC)
def test_the_average_of_a_known_size_is_corrected_by_a_constant(opset: int, pads: list[int]) -> None:
    model = window_model("AveragePool", (7,), kernel_shape=[3], strides=[2], pads=pads, opset=opset)
    after, _ = convert(model)
    assert "Div" not in operators(after) and "ConstantOfShape" not in operators(after)
    X = np.random.default_rng(1).standard_normal((1, 2, 7)).astype(np.float32) - 2
    for optimised in (False, True):
        wanted = oracle.pool(X, "average", (3,), strides=(2,), pads=pads)
        np.testing.assert_allclose(run(after, X, optimised=optimised), wanted, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("size", [(9, 10), ("h", "w")])
@pytest.mark.parametrize("elem_type", [TensorProto.INT8, TensorProto.UINT8, TensorProto.DOUBLE, TensorProto.FLOAT16])
def test_max_pool_pads_with_the_least_value_of_its_type(size: tuple[int | str, ...], elem_type: int) -> None:
    model = window_model("MaxPool", size, elem_type, kernel_shape=[3, 2], strides=[2, 2], pads=[0, 1, 1, 0])
    after, _ = convert(model)
    assert "Pad" in operators(after)
    dtype = helper.tensor_dtype_to_np_dtype(elem_type)
    X = np.random.default_rng(2).integers(1, 120, (1, 2, 9, 10))
    X = (X if elem_type == TensorProto.UINT8 else -X).astype(dtype)
    wanted = oracle.pool(X, "max", (3, 2), strides=(2, 2), pads=[0, 1, 1, 0])
    for optimised in (False, True):
        np.testing.assert_array_equal(run(after, X, optimised=optimised), wanted)


@pytest.mark.parametrize("opset", [10, 13])
@pytest.mark.parametrize("zero_point", ["", ", z"])
def test_an_integer_convolution_pads_with_its_zero_point(opset: int, zero_point: str) -> None:
    model: ModelProto = parser.parse_model(
        f'<ir_version: 8, opset_import: ["": {opset}]> g (uint8[1,1,7,8] X) => (int32[a,b,c,d] Y) '
        "<uint8[1,1,3,3] W = {1,2,3,4,5,6,7,8,9}, uint8[1] z = {128}> "
        f"{{ Y = ConvInteger<pads=[1,0,0,2], strides=[2,1]>(X, W{zero_point}) }}"
    )
    after, result = convert(model)
    assert [each.finding.rule for each in result.rewrites if each.finding.rule == "PF106"] == ["PF106"]
    X = np.random.default_rng(3).integers(0, 255, (1, 1, 7, 8)).astype(np.uint8)
    W = np.arange(1.0, 10.0).reshape(1, 1, 3, 3)
    wanted = oracle.conv(X - (128.0 if zero_point else 0.0), W, strides=(2, 1), pads=[1, 0, 0, 2])
    for optimised in (False, True):
        np.testing.assert_array_equal(run(after, X, optimised=optimised), wanted)


def test_a_quantized_convolution_pads_with_its_zero_point() -> None:
    model: ModelProto = parser.parse_model(
        '<ir_version: 8, opset_import: ["": 13]> g (int8[1,1,7,8] X) => (int8[a,b,c,d] Y) '
        "<int8[1,1,3,3] W = {1,-2,3,-4,5,-6,7,-8,9}, int8 xz = {37}, int8 wz = {0}, int8 yz = {-5}, "
        "float xs = {0.5}, float ws = {0.25}, float ys = {8}> "
        "{ Y = QLinearConv<pads=[1,0,0,2]>(X, xs, xz, W, ws, wz, ys, yz) }"
    )
    after, _ = convert(model)
    assert operators(after) == ["Pad", "QLinearConv"]
    X = np.random.default_rng(3).integers(-128, 127, (1, 1, 7, 8)).astype(np.int8)
    wanted = run(model, X, optimised=False)
    for optimised in (False, True):
        np.testing.assert_array_equal(run(after, X, optimised=optimised), wanted)


@pytest.mark.parametrize("opset", [7, 11, 22])
@pytest.mark.parametrize("pads", ASYMMETRIC)
def test_a_transposed_convolution_is_cropped_behind_it(opset: int, pads: list[int]) -> None:
    W = np.random.default_rng(4).standard_normal((2, 2, 4)).astype(np.float32)
    extra = {"strides": [3], "output_padding": [2]}
    model = window_model("ConvTranspose", ("n",), weights=W, opset=opset, pads=pads, kernel_shape=[4], **extra)
    after, _ = convert(model)
    assert operators(after) == ["ConvTranspose", "Slice"]
    for size in (1, 2, 5):
        X = np.random.default_rng(5).standard_normal((1, 2, size)).astype(np.float32)
        wanted = oracle.conv_transpose(X, W, pads=pads, **extra)
        for optimised in (False, True):
            np.testing.assert_allclose(run(after, X, optimised=optimised), wanted, rtol=1e-4, atol=1e-5)


def test_same_padding_goes_to_a_pad_in_the_end() -> None:
    W = np.random.default_rng(6).standard_normal((2, 2, 3, 3)).astype(np.float32)
    model = window_model("Conv", (6, 8), weights=W, auto_pad="SAME_UPPER", strides=[2, 2])
    after, result = convert(model)
    assert [each.finding.rule for each in result.rewrites] == ["PF101", "PF106"]
    assert operators(after) == ["Pad", "Conv"]
    X = np.random.default_rng(7).standard_normal((1, 2, 6, 8)).astype(np.float32)
    wanted = oracle.conv(X, W, strides=(2, 2), auto_pad="SAME_UPPER")
    np.testing.assert_allclose(run(after, X, optimised=True), wanted, rtol=1e-4, atol=1e-5)


def test_the_opset_is_raised_for_what_an_earlier_rewrite_wrote_out() -> None:
    model = window_model("AveragePool", ("n",), auto_pad="SAME_UPPER", kernel_shape=[2], opset=8)
    after, result = convert(model)
    assert {"PF101", "PF106"} <= {each.finding.rule for each in result.rewrites} and not result.refusals
    assert after.opset_import[0].version == 9
    X = np.random.default_rng(8).standard_normal((1, 2, 5)).astype(np.float32)
    wanted = oracle.pool(X, "average", (2,), auto_pad="SAME_UPPER")
    np.testing.assert_allclose(run(after, X, optimised=True), wanted, rtol=1e-5)


@pytest.mark.parametrize(
    ("op_type", "attributes", "word"),
    [
        ("MaxPool", {"pads": [-1, 0], "kernel_shape": [3]}, "negative"),
        ("MaxPool", {"pads": [0, 1, 0], "kernel_shape": [3]}, "does not fit"),
        ("MaxPool", {"pads": [0, 0, 1, 0], "kernel_shape": [3]}, "does not fit"),
        ("MaxPool", {"pads": [0, 1], "kernel_shape": [2], "strides": [3], "ceil_mode": 1}, "ceil_mode"),
        ("ConvTranspose", {"pads": [0, 1], "strides": [0]}, "strides"),
        ("ConvTranspose", {"pads": [0, 1], "output_shape": [3]}, "output_shape"),
    ],
)
def test_what_can_not_be_exact_is_refused_with_a_reason(op_type: str, attributes: dict[str, object], word: str) -> None:
    weights = np.ones((2, 2, 3), np.float32) if op_type == "ConvTranspose" else None
    model = window_model(op_type, ("n",), weights=weights, **attributes)
    scope = infer(Model(model))[0]
    outcome = AsymmetricPadding().rewrite(Site(scope, 0, scope.nodes[0], NODE))
    assert isinstance(outcome, Refusal)
    assert word in outcome.reason


@pytest.mark.parametrize("storage_order", [0, 1])
@pytest.mark.parametrize("size", [(6, 8), ("h", "w")])
@pytest.mark.parametrize("elem_type", [TensorProto.FLOAT, TensorProto.UINT8])
def test_indices_are_counted_in_the_unpadded_input(
    storage_order: int, size: tuple[int | str, ...], elem_type: int
) -> None:
    window = {"strides": [2, 1], "pads": [1, 0, 0, 2], "storage_order": storage_order}
    model = window_model("MaxPool", size, elem_type, kernel_shape=[3, 3], opset=13, **window)
    model.graph.node[0].output.append("I")
    model.graph.output.append(helper.make_tensor_value_info("I", TensorProto.INT64, [1, None, None, None]))
    after, result = convert(model)
    assert [each.finding.rule for each in result.rewrites] == ["PF106"] and not result.refusals
    X = np.random.default_rng(9).integers(0, 4, (1, 2, 6, 8)) - (0 if elem_type == TensorProto.UINT8 else 5)
    X = X.astype(helper.tensor_dtype_to_np_dtype(elem_type))
    for optimised in (False, True):
        Y, positions = session(after, optimised=optimised).run(None, {"X": X})
        np.testing.assert_array_equal(Y, oracle.pool(X, "max", (3, 3), **window))
        np.testing.assert_array_equal(positions, oracle.pool(X, "indices", (3, 3), **window))


def test_pads_that_the_callers_of_a_function_give_are_written_out_first() -> None:
    model: ModelProto = parser.parse_model(
        '<ir_version: 8, opset_import: ["": 17, "l": 1]> g (float[1,1,9,9] X) => (float[a,b,c,d] Y, float[a,b,e,f] U) '
        "{ Y = l.F<p=[0,1,1,1]>(X) U = l.F<p=[1,1,1,1]>(X) } "
        '<opset_import: ["": 17], domain: "l"> F<p>(a) => (b) '
        "{ b = MaxPool<kernel_shape=[3,3], strides=[2,2], pads: ints = @p>(a) }"
    )
    after, result = convert(model)
    assert [each.finding.rule for each in result.rewrites] == ["PF106"] and not result.refusals
    assert sorted(node.op_type for each in after.functions for node in each.node if node.op_type != "Constant") == [
        "MaxPool", "MaxPool", "Pad",
    ]  # fmt: skip
    assert not convert(after)[1].changed
    X = np.random.default_rng(10).standard_normal((1, 1, 9, 9)).astype(np.float32) - 2
    for optimised in (False, True):
        for Y, pads in zip(session(after, optimised=optimised).run(None, {"X": X}), ([0, 1], [1, 1]), strict=True):
            np.testing.assert_array_equal(Y, oracle.pool(X, "max", (3, 3), strides=(2, 2), pads=[*pads, 1, 1]))


def test_nothing_happens_unless_it_is_asked_for() -> None:
    model = window_model("MaxPool", (7,), kernel_shape=[3], pads=[0, 1])
    assert not convert(model, named("onnx"))[1].changed
    assert not convert(window_model("MaxPool", (7,), kernel_shape=[3], pads=[1, 1]))[1].changed
