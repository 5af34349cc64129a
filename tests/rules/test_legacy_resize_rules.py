"""PF201 and PF202: the modern form equals the legacy arithmetic, which is written out here, and ONNX Runtime's own."""

from __future__ import annotations

import itertools
import random
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, TensorProto, helper

from padfix.operators.refusal import Refusal
from padfix.rules.base import Rewrite
from padfix.rules.legacy_resize import LegacyResize
from padfix.rules.legacy_upsample import LegacyUpsample
from tests.support.one_node import node_types, one_node, rewrite_of, run, site_of, with_fragment

RULES = {"Upsample": LegacyUpsample(), "Resize": LegacyResize()}


def expected(X: np.ndarray, scales: Sequence[float], mode: str) -> np.ndarray:
    """Sample axis after axis in float32: asymmetric; nearest down where an axis grows, up where it shrinks."""
    single = [np.float32(scale) for scale in scales]
    lengths = [int(np.float32(size) * scale) for size, scale in zip(X.shape, single, strict=True)]
    if lengths == list(X.shape):
        return X
    result = X if mode == "nearest" else X.astype(np.float64)
    for axis, (size, scale, length) in enumerate(zip(X.shape, single, lengths, strict=True)):
        if scale == 1:
            continue
        position = np.arange(length, dtype=np.float32) / scale
        if mode == "nearest":
            rounded = np.floor(position) if scale >= 1 else np.ceil(position)
            result = np.take(result, np.clip(rounded, 0, size - 1).astype(int), axis)
        else:
            position = np.clip(position, 0, size - 1)
            low = np.floor(position).astype(int)
            high = np.minimum(low + 1, size - 1)
            share = (position - low).reshape([-1 if each == axis else 1 for each in range(X.ndim)])
            result = np.take(result, low, axis) * (1 - share) + np.take(result, high, axis) * share
    return result.astype(X.dtype)


def legacy(
    op_type: str,
    shape: Sequence[int],
    scales: Sequence[float],
    mode: str,
    *,
    opset: int = 10,
    dynamic: bool | str = False,
    run_time_scales: bool = False,
    elem_type: int = TensorProto.FLOAT,
) -> ModelProto:
    declared: list[Any] = list(shape)
    if dynamic == "rank":
        declared = None  # type: ignore[assignment]
    elif dynamic:
        declared = [size if dynamic == "partly" and axis % 2 else f"n{axis}" for axis, size in enumerate(shape)]
    inputs: dict[str, Any] = {"X": declared}
    constants, attributes = {}, {"mode": mode}
    if op_type == "Upsample" and opset < 9:
        attributes["scales"] = [float(scale) for scale in scales]  # type: ignore[assignment]
    elif run_time_scales:
        inputs["scales"] = [len(scales)]
    else:
        constants["scales"] = np.array(scales, np.float32)
    types = {"scales": int(TensorProto.FLOAT)}
    return one_node(op_type, inputs, opset, constants, elem_type, types, **attributes)


def check(model: ModelProto, X: np.ndarray, scales: Sequence[float], *, runs_before: bool = True) -> Rewrite:
    node = model.graph.node[0]
    rewrite = rewrite_of(model, RULES[node.op_type])
    assert isinstance(rewrite, Rewrite), rewrite
    assert rewrite.trials
    after = with_fragment(model, rewrite.after)
    assert after.opset_import[0].version >= 11
    assert "Upsample" not in node_types(after.graph.node)
    feeds = {"X": X}
    if len(model.graph.input) == 2:
        feeds["scales"] = np.array(scales, np.float32)
    mode = helper.get_node_attr_value(node, "mode").decode()
    want = expected(X, scales, mode)
    if runs_before:
        np.testing.assert_allclose(run(model, feeds), want, rtol=1e-5, atol=1e-4)
    for optimised in (False, True):
        got = run(after, feeds, optimised=optimised)
        assert got.shape == want.shape
        if mode == "nearest":
            np.testing.assert_array_equal(got, want)
        else:
            np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-4)
            if runs_before:
                np.testing.assert_array_equal(got, run(model, feeds))
    return rewrite


UP = (1.0, 1.0001, 1.1, 1.25, 1.3333333, 1.5, 1.7, 2.0, 2.5, 3.0, 4.0)
DOWN = (0.999, 0.9999, 0.9, 0.75, 0.6, 0.5, 1 / 3, 0.3, 0.25)


def unseen(count: int, seed: int) -> list[dict[str, Any]]:
    """Return random legacy resizes of every kind."""
    generator = random.Random(seed)
    pick = generator.choice
    found = []
    while len(found) < count:
        op_type, mode = pick(("Upsample", "Resize")), pick(("nearest", "linear"))
        rank = pick((2, 3, 4, 4, 5)) if mode == "nearest" else 4
        direction = "up" if op_type == "Upsample" else pick(("up", "down", "mixed"))
        pool = {"up": UP, "down": (*DOWN, 1.0), "mixed": UP + DOWN}[direction]
        scales = [1.0] * (rank - 2) + [pick(pool), pick(pool)]
        if rank == 4 and mode == "nearest" and pick((True, False, False)):
            scales[1] = pick(pool)
        shape = [pick((1, 2, 3)) for _ in range(rank - 2)] + [pick((1, 2, 3, 5, 7, 10, 14)) for _ in range(2)]
        if any(int(np.float32(size) * np.float32(scale)) < 1 for size, scale in zip(shape, scales, strict=True)):
            continue
        opset = pick((7, 8, 9)) if op_type == "Upsample" else 10
        found.append(
            {
                "op_type": op_type,
                "shape": shape,
                "scales": scales,
                "mode": mode,
                "opset": opset,
                "dynamic": pick((False, True, "partly")),
                "run_time_scales": opset >= 9 and pick((True, False)),
            }
        )
    return found


def check_unseen(case: dict[str, Any]) -> None:
    X = np.random.default_rng(1).permutation(np.arange(np.prod(case["shape"]), dtype=np.float32))
    check(legacy(**case), X.reshape(case["shape"]), case["scales"])


@pytest.mark.parametrize("case", unseen(64, seed=2), ids=str)
def test_unseen_legacy_resizes(case: dict[str, Any]) -> None:
    check_unseen(case)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(10, 30))
def test_many_unseen_legacy_resizes(seed: int) -> None:
    for case in unseen(100, seed):
        check_unseen(case)


@pytest.mark.parametrize("dynamic", [False, True])
def test_every_pair_of_scales_of_a_mixed_resize(dynamic: bool) -> None:
    for up, down in itertools.islice(itertools.product(UP[1:], DOWN), 0, None, 4):
        shape = (3, 6)
        X = np.arange(18, dtype=np.float32).reshape(shape)
        check(legacy("Resize", shape, (up, down), "nearest", dynamic=dynamic), X, (up, down))


def test_one_rewrite_serves_every_length() -> None:
    for scales in ((1.1, 0.6), (2.0, 0.6), (0.6, 0.9999), (1.1, 1.2)):
        model = legacy("Resize", (1, 1), scales, "nearest", dynamic=True)
        rewrite = rewrite_of(model, RULES["Resize"])
        assert isinstance(rewrite, Rewrite)
        after = with_fragment(model, rewrite.after)
        for shape in itertools.product((2, 3, 5, 8), (2, 3, 7)):
            X = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
            np.testing.assert_array_equal(run(after, {"X": X}), expected(X, scales, "nearest"))


def test_the_simplest_form_is_chosen() -> None:
    def form(shape: Sequence[int], scales: Sequence[float], **options: Any) -> list[str]:
        X = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
        rewrite = check(legacy("Resize", shape, scales, "nearest", **options), X, scales)
        return node_types(rewrite.after.nodes)

    assert form((3, 4), (2, 2)) == ["Resize"]
    assert form((3, 4), (0.5, 0.5), dynamic=True) == ["Resize"]
    assert form((3, 4), (2, 0.5)) == ["Resize", "Resize"]
    assert form((3, 4), (2, 0.5), dynamic=True) == ["Resize", "Resize"]
    assert form((3, 4), (1.1, 0.5)) == ["Gather", "Gather"]
    assert "Range" in form((3, 4), (1.1, 0.5), dynamic=True)
    assert form((3, 4), (1.1, 1.1)) == ["Identity"]


def test_coordinates_are_named_and_the_name_is_kept() -> None:
    rewrite = check(
        legacy("Upsample", (1, 1, 2, 3), (1, 1, 2, 2), "linear", opset=9),
        np.ones((1, 1, 2, 3), np.float32),
        (1, 1, 2, 2),
    )
    (node,) = rewrite.after.nodes
    assert node.name == "node"
    assert helper.get_node_attr_value(node, "coordinate_transformation_mode") == b"asymmetric"
    assert node.input[2] == "scales"


def test_official_downsampling_example() -> None:
    X = np.array([[1, 2, 3, 4], [5, 6, 7, 8]], np.float32).reshape(1, 1, 2, 4)
    model = legacy("Resize", X.shape, (1, 1, 0.6, 0.6), "nearest")
    rewrite = rewrite_of(model, RULES["Resize"])
    assert isinstance(rewrite, Rewrite)
    assert run(with_fragment(model, rewrite.after), {"X": X}).tolist() == [[[[1, 3]]]]


@pytest.mark.parametrize("mode", ["nearest", "bilinear"])
def test_upsample_1(mode: str) -> None:
    model = one_node("Upsample", {"X": (1, 2, 3, 4)}, 1, mode=mode, width_scale=2.0, height_scale=3.0)
    rewrite = rewrite_of(model, RULES["Upsample"])
    assert isinstance(rewrite, Rewrite)
    X = np.arange(24, dtype=np.float32).reshape(1, 2, 3, 4)
    want = expected(X, (1, 1, 3, 2), "nearest" if mode == "nearest" else "linear")
    np.testing.assert_allclose(run(with_fragment(model, rewrite.after), {"X": X}), want, atol=1e-5)


@pytest.mark.parametrize("elem_type", [TensorProto.DOUBLE, TensorProto.INT64, TensorProto.UINT8, TensorProto.INT32])
@pytest.mark.parametrize("dynamic", [False, True])
def test_other_element_types_run(elem_type: int, dynamic: bool) -> None:
    X = np.arange(12).reshape(3, 4).astype(helper.tensor_dtype_to_np_dtype(elem_type))
    model = legacy("Resize", X.shape, (2, 1.5), "nearest", dynamic=dynamic, elem_type=elem_type)
    check(model, X, (2, 1.5), runs_before=elem_type in (TensorProto.UINT8, TensorProto.INT32))


def test_overridable_scales_are_not_a_constant() -> None:
    model = legacy("Resize", (3, 4), (2, 2), "nearest")
    model.graph.input.append(helper.make_tensor_value_info("scales", TensorProto.FLOAT, [2]))
    site = site_of(model)
    rewrite = RULES["Resize"].rewrite(site)
    assert isinstance(rewrite, Rewrite)
    after = with_fragment(model, rewrite.after)
    X = np.arange(12, dtype=np.float32).reshape(3, 4)
    np.testing.assert_array_equal(
        run(after, {"X": X, "scales": np.array([1.5, 0.6], np.float32)}), expected(X, (1.5, 0.6), "nearest")
    )


@pytest.mark.parametrize(
    ("model", "reason"),
    [
        (legacy("Upsample", (3, 4), (2, 0.5), "nearest", opset=9), "1 or more"),
        (legacy("Resize", (3, 4), (2, 0), "nearest"), "above 0"),
        (legacy("Resize", (3, 4), (2, 2, 2), "nearest"), "2 axes"),
        (legacy("Resize", (3, 4), (2, 2), "cubic"), "cubic"),
        (one_node("Upsample", {"X": (1, 1, 2, 2)}, 1), "no scales"),
    ],
)
def test_what_is_refused(model: ModelProto, reason: str) -> None:
    rule = RULES[model.graph.node[0].op_type]
    finding = rule.match(site_of(model))
    assert finding is not None
    assert not finding.fixable
    result = rewrite_of(model, rule)
    assert isinstance(result, Refusal)
    assert reason in result.reason


def test_unknown_rank_is_refused_only_where_it_matters() -> None:
    model = legacy("Resize", (3, 4), (2, 2), "nearest", dynamic="rank", run_time_scales=True)
    del model.graph.input[1].type.tensor_type.shape.dim[:]
    model.graph.input[1].type.tensor_type.ClearField("shape")
    result = rewrite_of(model, RULES["Resize"])
    assert isinstance(result, Refusal)
    assert "rank" in result.reason
    X = np.arange(12, dtype=np.float32).reshape(3, 4)
    check(legacy("Resize", (3, 4), (2, 3), "nearest", dynamic="rank"), X, (2, 3))
    check(legacy("Upsample", (3, 4), (2, 3), "nearest", opset=9, dynamic="rank", run_time_scales=True), X, (2, 3))


def test_modern_resize_is_no_finding() -> None:
    model = one_node("Resize", {"X": (1, 1, 2, 2)}, 11)
    assert RULES["Resize"].match(site_of(model)) is None
