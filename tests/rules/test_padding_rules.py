"""PF101 to PF104 and PF108 against brute force, in ONNX Runtime with and without its optimiser."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import ModelProto, TensorProto, helper, parser

from padfix.errors import SourceError
from padfix.files.model import Model
from padfix.operators.inference import infer
from padfix.operators.refusal import Refusal
from padfix.results import Severity
from padfix.rewrite.engine import rewrite_model
from padfix.rewrite.matches import findings
from padfix.rules.base import Rewrite, Site
from padfix.rules.conflicting_padding import ConflictingPadding
from padfix.rules.dynamic_same_padding import DynamicSamePadding
from padfix.rules.implicit_same_padding import ImplicitSamePadding
from padfix.rules.registry import RULES
from padfix.rules.zero_pad_before_max_pool import ZeroPadBeforeMaxPool
from padfix.targets import named
from tests.support import oracle
from tests.support.padding_models import (
    Case,
    apply_rules,
    expected,
    model_of,
    random_case,
    session,
    sizes_to_run,
)


def check_case(case: Case, rng: np.random.Generator) -> ModelProto:
    model = model_of(case, rng)
    before = ModelProto()
    before.CopyFrom(model)
    outcome = apply_rules(model)
    assert [refusal for _, refusal in outcome] == [None], outcome
    assert not any(attribute.name == "auto_pad" for node in model.graph.node for attribute in node.attribute)
    assert apply_rules(ModelProto.FromString(model.SerializeToString())) == []
    onnx.checker.check_model(model, full_check=True)
    dtype = helper.tensor_dtype_to_np_dtype(case.elem_type)
    for optimised in (False, True):
        runner = session(model, optimised=optimised)
        for size in sizes_to_run(case, rng):
            shift = rng.choice([0, 3])
            X = ((rng.standard_normal((1, 2 * case.group, *size)) - shift) * (10 if dtype.kind in "iu" else 1)).astype(
                dtype
            )
            Y = runner.run(None, {"X": X})[0]
            wanted = expected(case, before, X)
            assert Y.shape == wanted.shape, (case, size)
            np.testing.assert_allclose(Y, wanted, rtol=1e-4, atol=1e-5, err_msg=f"{case} {size}")
    return model


@pytest.mark.parametrize("seed", range(60))
def test_random_operators_keep_their_meaning(seed: int) -> None:
    rng = np.random.default_rng([7, seed])
    check_case(random_case(rng), rng)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(20))
def test_random_operators_keep_their_meaning_full(seed: int) -> None:
    for each in range(200):
        rng = np.random.default_rng([8, seed, each])
        check_case(random_case(rng), rng)


def conv_pads(auto_pad: str, size: int | None, kernel: int, stride: int, dilation: int = 1) -> list[int] | None:
    case = Case("Conv", 13, (size or 8,), (kernel,), (stride,), (dilation,), auto_pad, (size is None,))
    model = model_of(case, np.random.default_rng(0))
    apply_rules(model)
    (node,) = model.graph.node
    return next((list(each.ints) for each in node.attribute if each.name == "pads"), None)


@pytest.mark.parametrize(
    ("arguments", "pads"),
    [
        (("SAME_UPPER", 7, 2, 1), [0, 1]),
        (("SAME_LOWER", 7, 2, 1), [1, 0]),
        (("SAME_UPPER", 6, 3, 2), [0, 1]),
        (("SAME_LOWER", 6, 3, 2), [1, 0]),
        (("SAME_UPPER", 7, 3, 1, 2), [2, 2]),
        (("SAME_UPPER", 8, 1, 4), [0, 0]),
        (("SAME_LOWER", None, 4, 1), [2, 1]),
        (("SAME_UPPER", None, 1, 2), [0, 0]),
        (("VALID", 8, 3, 3), [0, 0]),
    ],
)
def test_pads_are_these_numbers(arguments: tuple, pads: list[int]) -> None:
    assert conv_pads(*arguments) == pads


def test_a_known_axis_keeps_its_numbers_beside_a_dynamic_one() -> None:
    case = Case("Conv", 18, (9, 8), (3, 3), (2, 2), (1, 1), "SAME_UPPER", (False, True))
    model = check_case(case, np.random.default_rng(1))
    (conv,) = (node for node in model.graph.node if node.op_type == "Conv")
    assert next(list(each.ints) for each in conv.attribute if each.name == "pads") == [1, 0, 1, 1]
    assert [node.op_type for node in model.graph.node] == ["Shape", "Gather", "Mod", "Concat", "Pad", "Conv"]


@pytest.mark.parametrize(
    ("kernel", "stride", "mode", "pads"),
    [((2, 2), (2, 2), "SAME_UPPER", [0, 0, 1, 1]), ((3, 3), (2, 2), "SAME_LOWER", [1, 1, 1, 1])],
)
@pytest.mark.parametrize("op_type", ["Conv", "MaxPool", "AveragePool", "LpPool"])
def test_pads_at_the_end_that_make_no_window_more_are_known_for_every_length(
    op_type: str, kernel: tuple[int, int], stride: tuple[int, int], mode: str, pads: list[int]
) -> None:
    case = Case(op_type, 18, (9, 8), kernel, stride, (1, 1), mode, (True, True))
    model = check_case(case, np.random.default_rng(2))
    (node,) = model.graph.node
    assert next(list(each.ints) for each in node.attribute if each.name == "pads") == pads


@pytest.mark.parametrize("op_type", ["Conv", "MaxPool", "AveragePool", "LpPool"])
@pytest.mark.parametrize("mode", ["SAME_UPPER", "SAME_LOWER"])
@pytest.mark.parametrize("stride", [(4, 4), (3, 5), (2, 700)])
def test_begins_are_looked_up_by_residue(op_type: str, mode: str, stride: tuple[int, int]) -> None:
    case = Case(op_type, 18, (19, 18), (7, 6), stride, (1, 1), mode, (True, True))
    check_case(case, np.random.default_rng(3))


@pytest.mark.parametrize("elem_type", [TensorProto.DOUBLE, TensorProto.INT8, TensorProto.UINT8])
@pytest.mark.parametrize("dynamic", [False, True])
def test_max_pool_pads_with_the_least_value_of_its_type(elem_type: int, dynamic: bool) -> None:
    for dilation, kernel in ((1, 3), (3, 2)):
        case = Case("MaxPool", 13, (10, 9), (kernel, 3), (2, 2), (dilation, 1), "SAME_LOWER", (dynamic, dynamic),
                    elem_type=elem_type)  # fmt: skip
        check_case(case, np.random.default_rng(2))


@pytest.mark.parametrize("opset", [10, 11, 18, 21])
def test_pads_longer_than_a_dilated_kernel_become_a_pad(opset: int) -> None:
    case = Case("MaxPool", opset, (10,), (2,), (1,), (3,), "SAME_UPPER", (False,))
    model = check_case(case, np.random.default_rng(3))
    assert [node.op_type for node in model.graph.node] == ["Pad", "MaxPool"]


@pytest.mark.parametrize("opset", [11, 13, 18])
def test_no_opset_is_raised_where_it_is_high_enough(opset: int) -> None:
    case = Case("MaxPool", opset, (8, 8), (2, 2), (3, 3), (1, 1), "SAME_UPPER", (True, True))
    model = check_case(case, np.random.default_rng(4))
    assert model.opset_import[0].version == opset


def text_model(text: str) -> ModelProto:
    model: ModelProto = parser.parse_model(text)
    return model


def only_outcome(text: str) -> tuple[str, Refusal | None]:
    (outcome,) = apply_rules(text_model(text))
    return outcome


POOL = (
    '<ir_version: 8, opset_import: ["": {opset}]> g (float[1,1,{size},7] X) => (float[a,b,c,d] Y) {{ Y = {node} (X) }}'
)
CONV = (
    '<ir_version: 8, opset_import: ["": 13]> g (float[1,1,6,7] X, float[{weights}] W) => (float[a,b,c,d] Y) '
    "{{ Y = {node} (X, W) }}"
)


@pytest.mark.parametrize(
    ("node", "opset", "word"),
    [
        ('MaxPool<auto_pad="SAME_UPPER", kernel_shape=[3,3], strides=[0,1]>', 13, "strides"),
        ('MaxPool<auto_pad="SAME_UPPER", kernel_shape=[3,3], strides=[1]>', 13, "strides"),
        ('MaxPool<auto_pad="SAME_UPPER", kernel_shape=[3,3], dilations=[-1,1]>', 13, "dilations"),
        ('AveragePool<auto_pad="VALID", kernel_shape=[3,3], dilations=[2,2]>', 11, "before opset 19"),
        ('MaxPool<auto_pad="VALID", kernel_shape=[3,3], ceil_mode=1>', 8, "before opset 10"),
        ('MaxPool<auto_pad="SAME_UPPER">', 13, "kernel_shape"),
        ('MaxPool<auto_pad="SAME_UPPER", kernel_shape=[3]>', 13, "axes"),
        ('MaxPool<auto_pad="SAME_UPPER", kernel_shape=[3,-3]>', 13, "positive"),
        ('MaxPool<auto_pad="SAME", kernel_shape=[3,3]>', 13, "'SAME'"),
    ],
)
def test_nonsense_is_refused_with_a_reason(node: str, opset: int, word: str) -> None:
    model = text_model(POOL.format(node=node, opset=opset, size=6))
    scope = infer(Model(model))[0]
    (finding,) = findings([scope], RULES, named("onnx"))
    assert not finding.fixable
    assert word in f"{finding.message} {finding.hint}"
    if opset == 13:
        assert finding.severity is Severity.ERROR
        with pytest.raises(SourceError, match=word):
            rewrite_model(Model(model))


@pytest.mark.parametrize(
    ("node", "outcome"),
    [
        ('Conv<auto_pad="VALID", pads=[0,0,0,0]>', Rewrite),
        ('Conv<auto_pad="SAME_UPPER", pads=[1,1,1,1]>', Rewrite),
        ('Conv<auto_pad="SAME_UPPER", pads=[0,0,0,0]>', Refusal),
        ('Conv<auto_pad="VALID", pads=[1,0,0,0]>', Refusal),
    ],
)
def test_a_convolution_with_both_is_rewritten_only_where_both_agree(node: str, outcome: type) -> None:
    model = text_model(CONV.format(node=node, weights="1,1,3,3"))
    scope = infer(Model(model))[0]
    site = Site(scope, 0, scope.nodes[0])
    finding = ConflictingPadding().match(site)
    assert finding is not None
    assert finding.fixable == (outcome is Rewrite)
    assert isinstance(ConflictingPadding().rewrite(site), outcome)


def test_auto_pad_wins_over_pads_of_a_pool() -> None:
    node = 'MaxPool<auto_pad="SAME_UPPER", kernel_shape=[3,3], pads=[0,0,0,0]>'
    model = text_model(POOL.format(node=node, opset=13, size=6))
    assert apply_rules(model) == [("PF104", None)]
    X = np.arange(42, dtype=np.float32).reshape(1, 1, 6, 7)
    Y = session(model, optimised=True).run(None, {"X": X})[0]
    np.testing.assert_array_equal(Y, oracle.pool(X, "max", (3, 3), auto_pad="SAME_UPPER"))


@pytest.mark.parametrize("mode", ["NOTSET", ""])
def test_auto_pad_that_says_nothing_is_removed_and_pads_stay(mode: str) -> None:
    node = f'MaxPool<auto_pad="{mode}", kernel_shape=[3,3], pads=[1,0,1,0]>'
    model = text_model(POOL.format(node=node, opset=13, size=6))
    assert apply_rules(model) == [("PF103", None)]
    (after,) = model.graph.node
    assert {each.name: list(each.ints) for each in after.attribute} == {"kernel_shape": [3, 3], "pads": [1, 0, 1, 0]}


@pytest.mark.parametrize("storage_order", [0, 1])
def test_indices_stay_with_explicit_pads(storage_order: int) -> None:
    model = text_model(
        '<ir_version: 8, opset_import: ["": 13]> g (float[1,2,6,8] X) => (float[a,b,c,d] Y, int64[a,b,c,d] I)'
        f'{{ Y, I = MaxPool<auto_pad="SAME_LOWER", kernel_shape=[3,2], strides=[2,3], storage_order={storage_order}>'
        "(X) }"
    )
    assert apply_rules(model) == [("PF101", None)]
    X = np.random.default_rng(5).standard_normal((1, 2, 6, 8)).astype(np.float32)
    Y, indices = session(model, optimised=True).run(None, {"X": X})
    arguments = {"strides": (2, 3), "auto_pad": "SAME_LOWER", "storage_order": storage_order}
    np.testing.assert_array_equal(Y, oracle.pool(X, "max", (3, 2), **arguments))
    np.testing.assert_array_equal(indices, oracle.pool(X, "indices", (3, 2), **arguments))


def test_weights_come_from_wherever_they_are() -> None:
    head = '<ir_version: 8, opset_import: ["": 13]> g (float[1,1,6,7] X) => (float[a,b,c,d] Y) '
    texts = [
        head + "<int8[1,1,3,3] Q = {1,2,3,4,5,6,7,8,9}, float S = {0.5}> { W = DequantizeLinear(Q, S) "
        'Y = Conv<auto_pad="SAME_UPPER", strides=[2,2]>(X, W) }',
        head + "{ W = Constant<value = float[1,1,3,3] {1,2,3,4,5,6,7,8,9}>() "
        'Y = Conv<auto_pad="SAME_UPPER", strides=[2,2]>(X, W) }',
        head + "<float[3,3,1,1] V = {1,2,3,4,5,6,7,8,9}> { W = Transpose<perm=[2,3,0,1]>(V) "
        'Y = Conv<auto_pad="SAME_UPPER", strides=[2,2]>(X, W) }',
    ]
    for text in texts:
        model = text_model(text)
        assert apply_rules(model) == [("PF101", None)]
        conv = next(node for node in model.graph.node if node.op_type == "Conv")
        assert list(next(each.ints for each in conv.attribute if each.name == "pads")) == [0, 1, 1, 1]


def test_a_sparse_kernel_without_kernel_shape_is_read_from_its_dims() -> None:
    model = text_model(
        '<ir_version: 8, opset_import: ["": 13]> g (float[1,1,6,7] X) => (float[a,b,c,d] Y) '
        '{ A = Conv<auto_pad="SAME_UPPER", strides=[2,2]>(X, W) '
        'Y = MaxPool<auto_pad="SAME_UPPER", kernel_shape=[2,2], strides=[2,2]>(A) }'
    )
    sparse = model.graph.sparse_initializer.add()
    sparse.values.CopyFrom(helper.make_tensor("W", TensorProto.FLOAT, [1], [2.0]))
    sparse.indices.CopyFrom(helper.make_tensor("W_indices", TensorProto.INT64, [1], [4]))
    sparse.dims.extend([1, 1, 3, 3])
    assert apply_rules(model) == [("PF101", None), ("PF101", None)]
    X = np.arange(42, dtype=np.float32).reshape(1, 1, 6, 7)
    assert session(model, optimised=True).run(None, {"X": X})[0].shape == (1, 1, 2, 2)


def test_both_spellings_of_the_default_domain() -> None:
    text = POOL.format(node='ai.onnx.MaxPool<auto_pad="SAME_UPPER", kernel_shape=[3,3]>', opset=13, size=6)
    assert only_outcome(text) == ("PF101", None)


def pad_then_pool(opset: int, pool: str, between: str = "", elem: str = "float", value: str = "0") -> ModelProto:
    if opset < 11:
        pad = f"P = Pad<pads=[0,0,1,1,0,0,1,1], value={value}.0>(X)"
        constants = ""
    else:
        pad = "P = Pad(X, pads, value)"
        constants = f"<int64[8] pads = {{0,0,1,1,0,0,1,1}}, {elem} value = {{{value}}}>"
    return text_model(
        f'<ir_version: 8, opset_import: ["": {opset}]> g ({elem}[1,1,6,7] X) => ({elem}[a,b,c,d] Y) {constants}'
        f"{{ {pad} {between} Y = {pool}({'Q' if between else 'P'}) }}"
    )


@pytest.mark.parametrize("opset", [7, 9, 10, 11, 13, 17, 18, 21])
@pytest.mark.parametrize("mode", ['auto_pad="SAME_UPPER", strides=[2,2]', 'auto_pad="VALID"', "pads=[1,1,1,1]"])
@pytest.mark.parametrize("between", ["", "Q = Identity(P)"])
def test_a_zero_pad_before_a_max_pool_is_not_fused(opset: int, mode: str, between: str) -> None:
    model = pad_then_pool(opset, f"MaxPool<kernel_shape=[3,3], {mode}>", between)
    original = ModelProto.FromString(model.SerializeToString())
    codes = [code for code, refusal in apply_rules(model) if refusal is None]
    assert "PF108" in codes
    X = -1 - np.random.default_rng(6).random((1, 1, 6, 7)).astype(np.float32)
    wanted = session(original, optimised=False).run(None, {"X": X})[0]
    for optimised in (False, True):
        np.testing.assert_array_equal(session(model, optimised=optimised).run(None, {"X": X})[0], wanted)
    assert apply_rules(model) == []


@pytest.mark.parametrize("opset", [12, 17, 18])
def test_an_integer_zero_pad_before_a_max_pool(opset: int) -> None:
    model = pad_then_pool(opset, "MaxPool<kernel_shape=[3,3]>", elem="int8")
    original = ModelProto.FromString(model.SerializeToString())
    assert apply_rules(model) == [("PF108", None)]
    X = np.random.default_rng(6).integers(-20, -10, (1, 1, 6, 7)).astype(np.int8)
    wanted = session(original, optimised=False).run(None, {"X": X})[0]
    np.testing.assert_array_equal(session(model, optimised=True).run(None, {"X": X})[0], wanted)


@pytest.mark.parametrize(
    "model",
    [
        pad_then_pool(17, "AveragePool<kernel_shape=[3,3]>"),
        pad_then_pool(17, "MaxPool<kernel_shape=[3,3]>", value="1"),
        pad_then_pool(17, "MaxPool<kernel_shape=[3,3]>", elem="uint8"),
        pad_then_pool(17, "MaxPool<kernel_shape=[3,3]>", "Q = Relu(P)"),
        text_model(
            '<ir_version: 8, opset_import: ["": 17]> g (float[1,1,6,7] X, int64[8] pads) => (float[a,b,c,d] Y) '
            "{ P = Pad(X, pads) Y = MaxPool<kernel_shape=[3,3]>(P) }"
        ),
        text_model(
            '<ir_version: 8, opset_import: ["": 10]> g (float[1,1,6,7] X) => (float[a,b,c,d] Y) '
            "{ R = Relu(X) P = Pad<pads=[0,0,1,1,0,0,1,1]>(R) Y = MaxPool<kernel_shape=[3,3], pads=[1,1,1,1]>(P) }"
        ),
    ],
)
def test_pads_that_are_not_fused_wrongly_are_left_alone(model: ModelProto) -> None:
    assert apply_rules(model, [ZeroPadBeforeMaxPool()]) == []


def test_trials_meet_every_residue_and_stay_small() -> None:
    case = Case("Conv", 13, (8, 8), (3, 3), (2, 5), (1, 1), "SAME_UPPER", (True, True))
    scope = infer(Model(model_of(case, np.random.default_rng(0))))[0]
    site = Site(scope, 0, scope.nodes[0])
    rewrite = DynamicSamePadding().rewrite(site)
    assert isinstance(rewrite, Rewrite)
    sizes = [trial["X"].shape[2:] for trial in rewrite.trials]
    assert {height % 2 for height, _ in sizes} == {0, 1}
    assert {width % 5 for _, width in sizes} == {0, 1, 2, 3, 4}
    assert len(sizes) <= 12
    assert max(max(size) for size in sizes) <= 12


def test_a_trial_of_a_known_size_has_its_residue() -> None:
    case = Case("MaxPool", 13, (224, 225), (3, 3), (2, 2), (1, 1), "SAME_UPPER", (False, False))
    scope = infer(Model(model_of(case, np.random.default_rng(0))))[0]
    rewrite = ImplicitSamePadding().rewrite(Site(scope, 0, scope.nodes[0]))
    assert isinstance(rewrite, Rewrite)
    assert rewrite.exact
    ((height, width),) = {trial["X"].shape[2:] for trial in rewrite.trials}
    assert (height % 2, width % 2) == (0, 1)
    assert max(height, width) < 16


def test_auto_pad_of_a_function_s_caller_is_refused() -> None:
    model = text_model(
        '<ir_version: 8, opset_import: ["": 13, "f": 1]> g (float[1,1,6,7] X) => (float[a,b,c,d] Y) '
        '{ Y = f.F<mode="SAME_UPPER">(X) } '
        '<domain: "f", opset_import: ["": 13]> F <mode> (x) => (y) '
        "{ y = MaxPool<kernel_shape=[3,3], auto_pad: string = @mode>(x) }"
    )
    ((code, refusal),) = apply_rules(model)
    assert code == "PF101"
    assert refusal is not None and "function:f:F" in refusal.reason


@pytest.mark.parametrize("size", ["9,10", "h,w"])
@pytest.mark.parametrize("dilation", [1, 2])
def test_integer_convolutions_pad_with_their_zero_point(size: str, dilation: int) -> None:
    model = text_model(
        f'<ir_version: 8, opset_import: ["": 13]> g (uint8[1,1,{size}] X) => (int32[a,b,c,d] Y) '
        "<uint8[1,1,3,3] W = {1,2,3,4,5,6,7,8,9}, uint8 z = {7}> "
        f'{{ Y = ConvInteger<auto_pad="SAME_LOWER", dilations=[{dilation},{dilation}], strides=[2,3]>(X, W, z) }}'
    )
    assert apply_rules(model) == [("PF101" if size == "9,10" else "PF102", None)]
    W = np.arange(1.0, 10.0).reshape(1, 1, 3, 3)
    for shape in ((9, 10),) if size == "9,10" else ((9, 10), (8, 7), (10, 6)):
        X = np.random.default_rng(9).integers(0, 255, (1, 1, *shape)).astype(np.uint8)
        wanted = oracle.conv(X - 7.0, W, strides=(2, 3), dilations=(dilation, dilation), auto_pad="SAME_LOWER")
        for optimised in (False, True):
            np.testing.assert_array_equal(session(model, optimised=optimised).run(None, {"X": X})[0], wanted)
