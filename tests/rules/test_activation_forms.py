"""Activations in other operators, over the numbers that there are."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import onnx
import onnx.parser
from onnx.reference import ReferenceEvaluator

import padfix

ERF = '<ir_version: 8, opset_import: ["" : 13]> g (float[N] X) => (float[N] Y) { Y = Erf (X) }'


def test_erf_by_tanh_is_right_to_the_last_places_of_single_precision(tmp_path: Path) -> None:
    source, result = tmp_path / "model.onnx", tmp_path / "result.onnx"
    onnx.save(onnx.parser.parse_model(ERF), source)
    padfix.convert(source, result, target="onnx2tf")
    bits = np.arange(0, int(np.float32(1e30).view(np.int32)), 20011).astype(np.int32)
    given = np.concatenate([bits.view(np.float32), -bits.view(np.float32)])
    given = given[np.abs(given) > 1e-30]
    (found,) = ReferenceEvaluator(onnx.load(result)).run(None, {"X": given})
    exact = np.array([math.erf(each) for each in given])
    assert np.max(np.abs(found - exact) / np.spacing(np.abs(exact).astype(np.float32))) <= 4
    (kept,) = ReferenceEvaluator(onnx.load(result)).run(None, {"X": np.array([0, np.inf, -np.inf], np.float32)})
    np.testing.assert_array_equal(kept, [0, 1, -1])


def test_portable_has_a_tanh_within_bounds_for_erf(tmp_path: Path) -> None:
    text = ERF.replace("float[N]", "float[3]")
    onnx.save(onnx.parser.parse_model(text), tmp_path / "model.onnx")
    padfix.convert(tmp_path / "model.onnx", tmp_path / "result.onnx", target="portable")
    nodes = [node.op_type for node in onnx.load(tmp_path / "result.onnx").graph.node]
    assert nodes[-2:] == ["Clip", "Tanh"]
