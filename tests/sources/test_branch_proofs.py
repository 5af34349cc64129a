"""Branches of TensorFlow that no probe takes are judged as the functions that they are."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import onnx
import pytest

import padfix

pytestmark = pytest.mark.tensorflow


def saved(tf: Any, folder: Path) -> Path:
    """Save a model with a branch that takes whole blocks of 40 steps, and those of long inputs alone."""

    class Model(tf.Module):  # type: ignore[misc]
        @tf.function(input_signature=[tf.TensorSpec([1, None, 8], tf.float32)])  # type: ignore[untyped-decorator]
        def __call__(self, x: Any) -> Any:
            def blocks() -> Any:
                return tf.reduce_mean(tf.reshape(x, [-1, 40, 8]), axis=1)

            return tf.cond(tf.shape(x)[1] >= 4000, blocks, lambda: tf.reduce_max(x, axis=1))

    module = Model()
    tf.saved_model.save(module, str(folder), signatures=module.__call__)
    return folder


def test_a_branch_of_sizes_that_no_probe_has_is_judged(tf: Any, tmp_path: Path) -> None:
    source, result = saved(tf, tmp_path / "model"), tmp_path / "result.onnx"
    report = padfix.convert(source, result)
    assert report.verdict is not None
    assert not any("not compared" in note for note in report.verdict.notes)
    model = onnx.load(result)
    (condition,) = (node for node in model.graph.node if node.op_type == "If")
    (branch,) = (attribute.g for attribute in condition.attribute if attribute.name == "then_branch")
    (mean,) = (node for node in branch.node if node.op_type == "ReduceMean")
    mean.op_type = "ReduceMax"
    onnx.save(model, result)
    verdict = padfix.verify(source, result)
    assert not verdict.equivalent
    assert "in the then branch of If" in verdict.why_not
