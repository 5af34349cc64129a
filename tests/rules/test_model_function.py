"""PF307: functions of a model's own, for targets that read none."""

from __future__ import annotations

from pathlib import Path

import onnx
import onnx.parser
import pytest

import padfix
from padfix.errors import RefusedError

CALLED_TWICE = """<ir_version: 8, opset_import: ["" : 17, "own" : 1, "inner" : 1]>
g (float[1,2,5,6] X) => (float[1,2,14,14] Y) <float[4] a = {1, 1, 1.5, 2}, float[4] b = {1, 1, 2, 1.2}> {
  large = own.Larger (X, a)
  Y = own.Larger (large, b)
}
<domain: "own", opset_import: ["" : %d, "inner" : 1]>
Larger (data, scales) => (result) { nothing = inner.Same (data) result = Resize <mode = "linear"> (nothing, , scales) }
<domain: "inner", opset_import: ["" : %d]>
Same (data) => (result) { result = Identity (data) }"""


def save(text: str, folder: Path) -> Path:
    onnx.save(onnx.parser.parse_model(text), folder / "before.onnx")
    return folder / "before.onnx"


def test_what_calls_hand_over_is_known_where_the_target_reads_no_functions(tmp_path: Path) -> None:
    source = save(CALLED_TWICE % (17, 17), tmp_path)
    found = [each for each in padfix.check(source, target="opencv").findings if each.rule == "PF307"]
    assert [(each.node, each.fixable) for each in found] == [("Larger", True), ("Same", True)]
    assert "PF307" in {each.rule for each in padfix.check(source, target="onnx2tf").findings}
    padfix.convert(source, tmp_path / "after.onnx", target="opencv")
    after = onnx.load(tmp_path / "after.onnx")
    assert not after.functions
    assert [each.domain for each in after.opset_import] == [""]
    assert [each.op_type for each in after.graph.node].count("MatMul") == 4  # OpenCV computes inexact scales again
    assert not padfix.check(tmp_path / "after.onnx", target="opencv").findings


def test_functions_stay_where_nothing_is_known_against_them(tmp_path: Path) -> None:
    source = save(CALLED_TWICE % (17, 17), tmp_path)
    padfix.convert(source, tmp_path / "after.onnx")
    assert len(onnx.load(tmp_path / "after.onnx").functions) == 2


def test_a_function_of_another_opset_is_declined(tmp_path: Path) -> None:
    source = save(CALLED_TWICE % (13, 17), tmp_path)
    with pytest.raises(RefusedError, match="another opset than the model"):
        padfix.convert(source, tmp_path / "after.onnx", target="openvino")


def test_what_stands_in_a_function_that_nothing_calls_goes_with_it(tmp_path: Path) -> None:
    source = save(
        """<ir_version: 8, opset_import: ["" : 17, "own" : 1]>
        g (float[1,2,5,6] X) => (float Y) { Y = Relu (X) }
        <domain: "own", opset_import: ["" : 17]>
        Pooled <p> (data) => (result) { result = MaxPool <kernel_shape = [2, 2], auto_pad: string = @p> (data) }""",
        tmp_path,
    )
    assert {each.fixable for each in padfix.check(source).findings if each.rule == "PF101"} == {False}
    assert {each.fixable for each in padfix.check(source, target="portable").findings} == {True}
    padfix.convert(source, tmp_path / "after.onnx", target="portable")
    assert not onnx.load(tmp_path / "after.onnx").functions
