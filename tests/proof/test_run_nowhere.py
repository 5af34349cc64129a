"""Models that ONNX Runtime loads and does not run, or runs against the specification."""

from __future__ import annotations

from pathlib import Path

import onnx
import onnx.parser
import onnxruntime
import pytest

import padfix

# ONNX Runtime normalises the responses of images alone; the specification says nothing of the kind.
LISTS = """
main (float[1,4,9] X) => (float[1,4,9] Y) {
  p = AveragePool <kernel_shape = [3], auto_pad = "SAME_UPPER"> (X)
  Y = LRN <size = 3, alpha = 0.01, bias = 1.5> (p)
}
"""

# ONNX Runtime takes the mean of squares less the square of the mean, which is below 0 where all numbers are one.
DEVIATION = "main (float[1,8,6,12] X) => (float[1,8,6,12] Y) { Y = MeanVarianceNormalization <axes = [1, 2, 3]> (X) }"


def saved(folder: Path, text: str, opset: int) -> Path:
    path = folder / "model.onnx"
    onnx.save(onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : {opset}]>\n{text}'), path)
    return path


def test_the_specification_runs_both_where_the_runtime_runs_neither(tmp_path: Path) -> None:
    source = saved(tmp_path, LISTS, 13)
    with pytest.raises(padfix.PadfixError, match="--reference spec"):
        padfix.convert(source, tmp_path / "out.onnx")
    report = padfix.convert(source, tmp_path / "out.onnx", reference="spec")
    assert report.written
    assert report.verdict is not None
    assert {run.candidate for run in report.verdict.runs} == {"spec"}
    assert any("neither the original nor the result" in note for note in report.verdict.notes)


def test_a_result_that_the_runtime_alone_refuses_is_wrong(tmp_path: Path) -> None:
    other = tmp_path / "other.onnx"
    other.write_bytes(saved(tmp_path, LISTS, 13).read_bytes())
    source = saved(tmp_path, LISTS.replace("LRN <size = 3, alpha = 0.01, bias = 1.5>", "Relu"), 13)
    assert not padfix.verify(source, other, reference="spec").equivalent


@pytest.mark.parametrize("reference", ["auto", "spec"])
def test_what_moves_to_another_opset_as_it_is_is_run_as_it_was(reference: str, tmp_path: Path) -> None:
    source = saved(tmp_path, DEVIATION, 9)
    report = padfix.convert(source, tmp_path / "out.onnx", target="tvm", reference=reference)
    assert [node.op_type for node in onnx.load(tmp_path / "out.onnx").graph.node] == ["MeanVarianceNormalization"]
    assert report.disagreements


def test_what_the_optimiser_breaks_of_the_original_is_run_without_it(tmp_path: Path) -> None:
    """ONNX Runtime 1.32 makes integers of the bias with a Round, which there is not before opset 11."""
    weights = ", ".join(str(each) for each in range(36))
    text = f"""<ir_version: 8, opset_import: ["" : 10]> g (float[2,4,1,3] X) => (float[2,3] Y)
    <float s = {{0.1}}, int8 z = {{3}}, int8[12,3] w = {{{weights}}}, float[3] b = {{0.1, 0.2, 0.3}}>
    {{
        p = AveragePool <kernel_shape = [1, 1], auto_pad = "SAME_UPPER"> (X)
        f = Flatten (p) q = QuantizeLinear (f, s, z) d = DequantizeLinear (q, s, z) k = DequantizeLinear (w, s, z)
        g = Gemm (d, k, b) o = QuantizeLinear (g, s, z) Y = DequantizeLinear (o, s, z)
    }}"""
    source = tmp_path / "model.onnx"
    onnx.save(onnx.parser.parse_model(text), source)
    try:
        onnxruntime.InferenceSession(source)
        pytest.skip("this version of ONNX Runtime runs it")
    except onnxruntime.capi.onnxruntime_pybind11_state.InvalidGraph:
        pass
    report = padfix.convert(source, tmp_path / "out.onnx")
    assert report.written
    assert report.verdict is not None
    assert any("can't run the original either" in note for note in report.verdict.notes)
    assert {run.candidate for run in report.verdict.runs} == {"onnxruntime (no optimisation)"}


def test_what_the_optimiser_breaks_of_the_original_is_not_asked_of_its_parts(tmp_path: Path) -> None:
    """ONNX Runtime 1.32 takes int8 for uint8 where it rounds once more behind a Reshape, from opset 21 on."""
    head = """<ir_version: 10, opset_import: ["" : 21]> g (float[1,2,4] X) => (float[1,2,4] Y)
    <float s = {0.05}, int8 z = {3}, int64[2] flat = {2, 4}, int64[3] back = {1, 2, 4},
     float[4,4] m = {1, 2, 3, 4, 5, 6, 7, 8, 9, 8, 7, 6, 5, 4, 3, 2}, float[4] b = {0.1, 0.2, 0.3, 0.4}>
    { q = QuantizeLinear (X, s, z) d = DequantizeLinear (q, s, z) t = MatMul (d, m) c = Add (t, b) e = Sigmoid (c)
      p = QuantizeLinear (e, s, z) n = DequantizeLinear (p, s, z) """
    bodies = (
        "Y = Sin (n) }",
        """k = QuantizeLinear (n, s, z) o = DequantizeLinear (k, s, z)
        r = Reshape (o, flat) u = Sin (r) Y = Reshape (u, back) }""",
    )
    files = [tmp_path / "original.onnx", tmp_path / "changed.onnx"]
    for file, body in zip(files, bodies, strict=True):
        onnx.save(onnx.parser.parse_model(head + body), file)
    try:
        onnxruntime.InferenceSession(files[0])
        pytest.skip("this version of ONNX Runtime runs it")
    except onnxruntime.capi.onnxruntime_pybind11_state.Fail:
        pass
    verdict = padfix.verify(*files)
    assert verdict.equivalent
    assert {run.candidate for run in verdict.runs} == {"onnxruntime (no optimisation)"}


NARROW = """
main (bfloat16[1,3,6,6] X) => (bfloat16[1,2,6,6] Y)
<float[2,3,1,1] f = {0.5, -1.0, 0.25, 1.0, 0.75, -0.5}, float zero = {0.0}> {
  w = Cast <to = 16> (f) z = Cast <to = 16> (zero) c = Conv (X, w) r = Relu (c) Y = Neg (r)
}
"""


@pytest.mark.parametrize(("operator", "is_equal"), [("Max (c, z)", True), ("Softplus (c)", False), ("Elu (c)", False)])
def test_bfloat16_is_judged_by_the_specification_in_both(operator: str, is_equal: bool, tmp_path: Path) -> None:
    """ONNX Runtime 1.32 has no Conv of it. On images, which are large numbers, all are within each other's rounding."""
    (tmp_path / "other").mkdir()
    first, second = saved(tmp_path, NARROW, 22), tmp_path / "other"
    second = saved(second, NARROW.replace("Relu (c)", operator), 22)
    with pytest.raises(padfix.PadfixError, match="can't load the original"):
        padfix.verify(first, second)
    verdict = padfix.verify(first, second, reference="spec", locate=True)
    assert verdict.equivalent is is_equal
    assert {run.candidate for run in verdict.runs} == {"spec"}
    place = verdict.first_difference
    assert is_equal or (place is not None and place.op_type == "Relu")
