"""ONNX's own cases of every operator that the kernels replace: inputs and the outputs that ONNX publishes for them."""

from __future__ import annotations

import warnings

import numpy as np
import onnx
import pytest
from onnx.backend.test.case.node import collect_testcases

from padfix.kernels.reference_ops import SPEC_OPS, SpecEvaluator

REPLACED = {each.__name__ for each in SPEC_OPS if each.op_domain == ""}
DEPARTING = {
    # ONNX 1.23 makes these with onnx.reference, which measures align_corners by the fractional length (4 * 0.6). The
    # text says length_resized, which is an integer, and ONNX Runtime follows the text.
    "test_resize_downsample_scales_linear_align_corners",
    "test_resize_downsample_scales_cubic_align_corners",
}


def cases():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = [
            case
            for case in collect_testcases(None)
            if REPLACED & {node.op_type for node in case.model.graph.node if node.domain in ("", "ai.onnx")}
        ]
    return sorted(found, key=lambda case: case.name)


def outcome(case):
    """Return why the evaluator departs from the published outputs, or None."""
    names = [value.name for value in case.model.graph.input]
    for inputs, outputs in case.data_sets:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            results = SpecEvaluator(case.model).run(None, dict(zip(names, inputs, strict=True)))
        for got, want in zip(results, outputs, strict=True):
            if isinstance(want, list):
                got, want = np.concatenate(got), np.concatenate(want)
            got, want = np.asarray(got), np.asarray(want)
            if got.shape != want.shape or got.dtype != want.dtype:
                return f"{got.dtype}{got.shape} is not {want.dtype}{want.shape}"
            close = np.allclose(got, want, rtol=case.rtol, atol=1e-6) if want.dtype.kind == "f" else None
            if close is False or (close is None and not np.array_equal(got, want)):
                return f"{got} is not {want}"
    return None


@pytest.fixture(scope="module")
def outcomes():
    results = {}
    for case in cases():
        if "test_loop" in case.name and "_seq" in case.name:
            continue  # sequences of several lengths have no array to compare
        if "test_attention" in case.name and "16_expanded" in case.name:
            continue  # their softmax was taken in half precision; ours is taken in float64
        try:
            results[case.name] = outcome(case)
        except Exception as error:
            results[case.name] = f"{type(error).__name__}: {error}"
    return results


@pytest.mark.long
def test_every_case_agrees_but_those_named(outcomes):
    assert len(outcomes) > 250, "onnx moved its cases"
    departing = {name: reason for name, reason in outcomes.items() if reason}
    assert departing.keys() == DEPARTING, (onnx.__version__, departing)
