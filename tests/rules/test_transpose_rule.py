"""PF105: explicit padding of ConvTranspose, against arithmetic written out here."""

from __future__ import annotations

import itertools
import random
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from onnx import helper

from padfix.operators.refusal import Meaningless, Refusal
from padfix.results import Severity
from padfix.rules.base import Rewrite
from padfix.rules.implicit_transpose_padding import ImplicitTransposePadding
from tests.support.one_node import node_types, one_node, rewrite_of, run, site_of, with_fragment

RULE = ImplicitTransposePadding()


def expected(
    X: np.ndarray,
    W: np.ndarray,
    bias: np.ndarray | None,
    *,
    auto_pad: str = "NOTSET",
    strides: Sequence[int] | None = None,
    dilations: Sequence[int] | None = None,
    output_padding: Sequence[int] | None = None,
    output_shape: Sequence[int] | None = None,
    pads: Sequence[int] | None = None,
    group: int = 1,
) -> np.ndarray:
    """Scatter every product where it belongs in an endless canvas, then cut out the window of the output."""
    spatial = X.ndim - 2
    strides = strides or [1] * spatial
    dilations = dilations or [1] * spatial
    output_padding = output_padding or [0] * spatial
    pads = pads or [0] * 2 * spatial
    heads, lengths = [], []
    for axis in range(spatial):
        size, kernel = X.shape[2 + axis], W.shape[2 + axis]
        natural = (size - 1) * strides[axis] + (kernel - 1) * dilations[axis] + 1 + output_padding[axis]
        if output_shape is not None:
            length = output_shape[axis]
        elif auto_pad.startswith("SAME"):
            length = size * strides[axis]
        else:
            heads.append(pads[axis])
            lengths.append(natural - pads[axis] - pads[spatial + axis])
            continue
        total = max(0, natural - length)
        heads.append(total // 2 if auto_pad == "SAME_UPPER" else total - total // 2)
        lengths.append(length)
    margin = 64
    per_group = W.shape[1]
    canvas = np.zeros(
        (X.shape[0], per_group * group, *[margin + head + n for head, n in zip(heads, lengths, strict=True)])
    )
    channels = X.shape[1] // group
    for number in range(group):
        own = slice(number * channels, (number + 1) * channels)
        target = canvas[:, number * per_group : (number + 1) * per_group]
        for tap in itertools.product(*[range(k) for k in W.shape[2:]]):
            product = np.tensordot(X[:, own].astype(np.float64), W[(own, slice(None), *tap)], axes=(1, 0))
            product = np.moveaxis(product, -1, 1)
            where = tuple(
                slice(t * d, t * d + (n - 1) * s + 1, s)
                for t, d, s, n in zip(tap, dilations, strides, X.shape[2:], strict=True)
            )
            target[(slice(None), slice(None), *where)] += product
    if bias is not None:
        canvas += bias.reshape(1, -1, *[1] * spatial)
    return canvas[(slice(None), slice(None), *[slice(h, h + n) for h, n in zip(heads, lengths, strict=True)])]


def cases() -> list[dict[str, Any]]:
    """Every kernel, stride and dilation up to 4 on one axis, then a mixture of the rest, in a fixed order."""
    found: list[dict[str, Any]] = []
    for auto_pad, k, s, d in itertools.product(
        ("SAME_UPPER", "SAME_LOWER", "VALID", "NOTSET", ""), (1, 2, 3, 4), (1, 2, 3, 4), (1, 2, 3)
    ):
        found.append({"spatial": (4,), "kernel": (k,), "auto_pad": auto_pad, "strides": [s], "dilations": [d]})
    generator = random.Random(7)
    pick = generator.choice
    for _ in range(600):
        spatial = pick((1, 2, 2, 3))
        auto_pad = pick(("SAME_UPPER", "SAME_LOWER", "VALID", "NOTSET", "", None))
        case: dict[str, Any] = {
            "spatial": tuple(pick((1, 2, 3, 4, 5)) for _ in range(spatial)),
            "kernel": tuple(pick((1, 2, 3, 4)) for _ in range(spatial)),
            "strides": [pick((1, 2, 3)) for _ in range(spatial)],
            "dilations": [pick((1, 1, 2)) for _ in range(spatial)],
            "group": pick((1, 1, 2)),
            "bias": pick((True, False)),
        }
        if auto_pad is not None:
            case["auto_pad"] = auto_pad
        if pick((True, False)):
            case["output_padding"] = [pick(range(s)) for s in case["strides"]]
        opad = case.get("output_padding", [0] * spatial)
        if auto_pad is None or pick((True, False)):
            full = [
                (n - 1) * s + (k - 1) * d + 1 + p
                for n, s, k, d, p in zip(
                    case["spatial"], case["strides"], case["kernel"], case["dilations"], opad, strict=True
                )
            ]
            case["output_shape"] = [
                max(1, n + pick(range(-4, s - p))) for n, s, p in zip(full, case["strides"], opad, strict=True)
            ]
        case["dynamic"] = pick((True, False, "partly"))
        case["opset"] = pick((1, 11, 13, 22))
        found.append(case)
    return found


CASES = cases()


def build(case: dict[str, Any]) -> tuple[Any, dict[str, np.ndarray], dict[str, Any]]:
    random_numbers = np.random.default_rng(3)
    group = case.get("group", 1)
    X = random_numbers.standard_normal((2, 2 * group, *case["spatial"])).astype(np.float32)
    W = random_numbers.standard_normal((2 * group, 3, *case["kernel"])).astype(np.float32)
    constants = {"W": W}
    if case.get("bias"):
        constants["B"] = random_numbers.standard_normal(3 * group).astype(np.float32)
    names = ("auto_pad", "strides", "dilations", "output_padding", "output_shape", "group", "pads")
    attributes = {name: case[name] for name in names if name in case}
    dynamic = case.get("dynamic", False)
    shape: list[Any] = list(X.shape)
    if dynamic:
        shape[0] = "batch"
        for axis in range(2, len(shape)):
            if dynamic is True or axis == 2:
                shape[axis] = f"size{axis}"
    opset = max(case.get("opset", 11), 10 if dynamic and "output_shape" in attributes else 1)
    model = one_node("ConvTranspose", {"X": shape}, opset, constants, **attributes)
    return model, {"X": X}, {"W": W, "bias": constants.get("B"), **attributes}


def check(case: dict[str, Any]) -> Rewrite:
    model, feeds, rest = build(case)
    rewrite = rewrite_of(model, RULE)
    assert isinstance(rewrite, Rewrite), rewrite
    after = with_fragment(model, rewrite.after)
    for node in after.graph.node:
        assert not {"auto_pad", "output_shape"} & {each.name for each in node.attribute}
    want = expected(feeds["X"], **rest)
    for optimised in (False, True):
        got = run(after, feeds, optimised=optimised)
        assert got.shape == want.shape
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-4)
    return rewrite


@pytest.mark.parametrize("part", range(8))
def test_rewrites_equal_the_arithmetic(part: int) -> None:
    for case in CASES[part::40]:
        check(case)


@pytest.mark.slow
def test_all_rewrites_equal_the_arithmetic() -> None:
    for case in CASES:
        check(case)


@pytest.mark.parametrize(
    ("auto_pad", "pads"), [("SAME_UPPER", [0, 1]), ("SAME_LOWER", [1, 0]), ("VALID", [0, 0]), ("NOTSET", [0, 0])]
)
def test_pads_are_written_out(auto_pad: str, pads: list[int]) -> None:
    rewrite = check({"spatial": (3,), "kernel": (3,), "strides": [2], "auto_pad": auto_pad, "dynamic": True})
    (node,) = rewrite.after.nodes
    assert helper.get_node_attr_value(node, "pads") == pads
    assert node.name == "node"


def test_odd_element_of_output_shape_is_cut_from_the_begin_unless_same_upper() -> None:
    case = {"spatial": (3,), "kernel": (4,), "strides": [1], "output_shape": [5]}
    assert helper.get_node_attr_value(check(case).after.nodes[0], "pads") == [1, 0]
    upper = check({**case, "auto_pad": "SAME_UPPER"})
    assert helper.get_node_attr_value(upper.after.nodes[0], "pads") == [0, 1]


def test_kernel_shorter_than_stride_appends_the_missing_elements() -> None:
    rewrite = check({"spatial": (3,), "kernel": (2,), "strides": [3], "auto_pad": "SAME_UPPER", "bias": True})
    assert helper.get_node_attr_value(rewrite.after.nodes[0], "output_padding") == [1]


def test_output_shape_with_pads_ignores_the_pads() -> None:
    model, feeds, _ = build({"spatial": (3,), "kernel": (3,), "strides": [2], "output_shape": [6], "pads": [5, 5]})
    rewrite = rewrite_of(model, RULE)
    assert isinstance(rewrite, Rewrite)
    np.testing.assert_allclose(run(with_fragment(model, rewrite.after), feeds), run(model, feeds), atol=1e-5)


def test_output_shape_may_list_batch_and_channels() -> None:
    model, feeds, _ = build({"spatial": (3,), "kernel": (3,), "strides": [2], "output_shape": [2, 3, 6]})
    model.graph.input[0].type.tensor_type.ClearField("shape")  # a known shape meets stricter shape inference
    rewrite = rewrite_of(model, RULE)
    assert isinstance(rewrite, Rewrite)
    np.testing.assert_allclose(run(with_fragment(model, rewrite.after), feeds), run(model, feeds), atol=1e-5)


def test_one_rewrite_serves_every_run_time_length() -> None:
    case = {"spatial": (4,), "kernel": (4,), "strides": [3], "output_shape": [8], "dynamic": True, "bias": True}
    model, _, rest = build({**case, "opset": 11})
    rewrite = rewrite_of(model, RULE)
    assert isinstance(rewrite, Rewrite)
    assert node_types(rewrite.after.nodes)[-1] == "Slice"
    after = with_fragment(model, rewrite.after)
    for size in (2, 3, 4, 5):
        X = np.random.default_rng(size).standard_normal((1, 2, size)).astype(np.float32)
        want = run(model, {"X": X})
        np.testing.assert_allclose(run(after, {"X": X}), want, atol=1e-5)
        np.testing.assert_allclose(expected(X, **rest), want, atol=1e-4)


@pytest.mark.parametrize(
    ("attributes", "reason"),
    [
        ({"auto_pad": "SAME_UPPER", "strides": [2, 2]}, "strides"),
        ({"auto_pad": "SAME_UPPER", "strides": [0]}, "strides"),
        ({"auto_pad": "SAME_UPPER", "dilations": [-1]}, "dilations"),
        ({"auto_pad": "SAME_UPPER", "pads": [1, 0]}, "contradicts"),
        ({"auto_pad": "SAME"}, "no value"),
        ({"output_shape": [0]}, "output_shape"),
        ({"output_shape": [40]}, "output_padding"),
        ({"output_shape": [4], "group": 0}, "group"),
    ],
)
def test_what_is_refused(attributes: dict[str, Any], reason: str) -> None:
    model = one_node("ConvTranspose", {"X": (1, 2, 4), "W": (2, 2, 3)}, 11, **attributes)
    site = site_of(model)
    result = RULE.rewrite(site)
    assert isinstance(result, Refusal)
    assert reason in result.reason
    assert (RULE.match(site) is None) == isinstance(result, Meaningless)


def test_attribute_of_the_functions_caller_is_refused() -> None:
    model = one_node("ConvTranspose", {"X": (1, 2, 4), "W": (2, 2, 3)}, 11, auto_pad="VALID")
    attribute = model.graph.node[0].attribute[0]
    attribute.ClearField("s")
    attribute.ref_attr_name = "padding"
    result = rewrite_of(model, RULE)
    assert isinstance(result, Refusal)
    assert "caller" in result.reason


def test_explicit_node_is_no_finding_and_notset_is_only_information() -> None:
    explicit = one_node("ConvTranspose", {"X": (1, 2, 4), "W": (2, 2, 3)}, 11, pads=[1, 1])
    assert RULE.match(site_of(explicit)) is None
    notset = one_node("ConvTranspose", {"X": (1, 2, 4), "W": (2, 2, 3)}, 11, auto_pad="NOTSET", pads=[1, 1])
    finding = RULE.match(site_of(notset))
    assert finding is not None
    assert finding.severity is Severity.INFO
    assert "pads=[1, 1]" in finding.message


def test_unknown_rank_is_taken_from_the_kernel() -> None:
    model = one_node("ConvTranspose", {"X": None, "W": None}, 11, auto_pad="SAME_LOWER", kernel_shape=[3], strides=[2])
    rewrite = rewrite_of(model, RULE)
    assert isinstance(rewrite, Rewrite)
    assert helper.get_node_attr_value(rewrite.after.nodes[0], "pads") == [1, 0]
