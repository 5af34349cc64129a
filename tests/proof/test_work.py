"""How much work a run is, and what the proof of heavy models leaves out."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import padfix
from padfix.files.model import Model
from padfix.operators.inference import infer
from padfix.proof import work
from padfix.proof.probes import KINDS
from padfix.proof.work import FEW_KINDS, multiplications
from tests.support.proofs import model

ROOT = Path(__file__).parents[2]


def test_multiplications_are_counted_where_shapes_are_known() -> None:
    nodes = [
        helper.make_node("Conv", ["X", "W"], ["C"], pads=[1, 1, 1, 1], group=2),
        helper.make_node("ConvTranspose", ["C", "T"], ["D"], strides=[2, 2]),
        helper.make_node("Flatten", ["D"], ["F"]),
        helper.make_node("Gemm", ["F", "G"], ["Y"], transB=1),
    ]
    constants = {
        "W": np.zeros((6, 2, 3, 3), np.float32),
        "T": np.zeros((6, 1, 2, 2), np.float32),
        "G": np.zeros((5, 160), np.float32),
    }
    built = model(nodes, {"X": (TensorProto.FLOAT, (1, 4, 8, 5))}, constants=constants)
    assert multiplications(infer(Model(built))) == 6 * 40 * 2 * 9 + 6 * 40 * 4 + 5 * 160
    dynamic = model(nodes[:1], {"X": (TensorProto.FLOAT, ("N", 4, "H", "W"))}, ["C"], constants=constants)
    assert multiplications(infer(Model(dynamic))) == 6 * 2 * 9
    batches = model(nodes[:1], {"X": (TensorProto.FLOAT, ("N", 4, 8, 5))}, ["C"], constants=constants)
    assert multiplications(infer(Model(batches))) == 6 * 40 * 2 * 9


def test_heavy_models_are_proven_on_fewer_kinds_and_the_report_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = ROOT / "fixtures" / "onnx" / "same_cnn.onnx"
    for heavy, kinds in ((1, FEW_KINDS), (10**12, KINDS)):
        monkeypatch.setattr(work, "HEAVY", heavy)
        verdict = padfix.convert(source, tmp_path / f"{heavy}.onnx").verdict
        assert verdict is not None
        assert verdict.equivalent
        assert len(verdict.runs) == 2 * len(kinds)
        assert any("run on 3 kinds of data" in note for note in verdict.notes) == (kinds == FEW_KINDS)


def test_inputs_that_no_node_of_the_result_reads_need_no_partner(tmp_path: Path) -> None:
    source = onnx.load(ROOT / "fixtures" / "onnx" / "explicit_cnn.onnx")
    onnx.save(source, tmp_path / "a.onnx")
    source.graph.input.append(helper.make_tensor_value_info("left_over", TensorProto.INT64, [2]))
    onnx.save(source, tmp_path / "b.onnx")
    assert padfix.verify(tmp_path / "a.onnx", tmp_path / "b.onnx").equivalent


def test_results_count_and_what_is_made_of_nothing_does_not() -> None:
    from padfix.proof.work import result_bytes

    text = """<ir_version: 8, opset_import: ["" : 17]>
    g (float[1,3,8,8] X, int64[4] s) => (float[1,3,8,8] Y, float[1,3,8,8] large) {
      large = ConstantOfShape <value = float[1] {0}> (s)
      middle = Relu (X)
      Y = Neg (middle)
    }"""
    parsed = onnx.parser.parse_model(text)
    assert result_bytes(infer(Model(parsed))) == 2 * 4 * 3 * 8 * 8
