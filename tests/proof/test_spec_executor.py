"""What the specification's evaluator lacks is told apart from what fails."""

from __future__ import annotations

import numpy as np
import onnx.parser
import pytest

from padfix.proof.executors import ExecutionFailed
from padfix.proof.spec_executor import SpecExecutor


def test_a_scan_that_the_evaluator_lacks_is_unsupported() -> None:
    """It says so by another error than for other operators, where a Scan joins along another axis than the first."""
    text = """<ir_version: 8, opset_import: ["" : 11]> g (float[3,2] X, float[2] H) => (float[2] Y, float[2,3] Z) {
        Y, Z = Scan <num_scan_inputs = 1, scan_output_axes = [-1],
            body = b (float[2] h, float[2] x) => (float[2] a, float[2] o) { a = Add (h, x) o = Tanh (a) }> (H, X) }"""
    executor = SpecExecutor.of(onnx.parser.parse_model(text))
    with pytest.raises(ExecutionFailed) as failed:
        executor.run({"X": np.ones((3, 2), np.float32), "H": np.ones(2, np.float32)})
    assert failed.value.unsupported
