"""The public functions, from a file to a file."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnx.parser
import pytest

import padfix

MODEL = """<ir_version: 8, opset_import: ["" : 13]>
g (float[1,2,"h",7] X) => (float[1,2,"a","b"] Y) {
  M = MaxPool <auto_pad = "SAME_UPPER", kernel_shape = [3, 3], strides = [1, 2]> (X)
  Y = Relu (M)
}"""

DILATED = """<ir_version: 8, opset_import: ["" : 13]>
g (float[1,1,7,7] X) => (float[1,1,7,7] Y) {
  Y = MaxPool <auto_pad = "SAME_UPPER", kernel_shape = [3, 3], dilations = [2, 2]> (X)
}"""

DOUBLE = """<ir_version: 9, opset_import: ["" : 22]>
g (double[1,1,7,7] X, double[1,1,3,3] W) => (double[1,1,4,4] Y) {
  Y = Conv <auto_pad = "SAME_UPPER", kernel_shape = [3, 3], strides = [2, 2]> (X, W)
}"""


def write(folder: Path, text: str, name: str = "model.onnx") -> Path:
    path = folder / name
    onnx.save(onnx.parser.parse_model(text), path)
    return path


def test_convert_writes_a_proven_model_and_check_is_clean_after_it(tmp_path: Path) -> None:
    source, output = write(tmp_path, MODEL), tmp_path / "out.onnx"
    before = source.read_bytes()
    assert [finding.rule for finding in padfix.check(source).findings] == ["PF101"]
    report = padfix.convert(source, output)
    assert report.verdict is not None
    assert report.verdict.equivalent
    assert report.verdict.reference == "onnxruntime"
    assert len({tuple(run.shapes["X"]) for run in report.verdict.runs}) > 1
    assert padfix.check(output).findings == []
    assert source.read_bytes() == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["model.onnx", "out.onnx"]


def test_converting_twice_is_converting_once(tmp_path: Path) -> None:
    source, once, twice = write(tmp_path, MODEL), tmp_path / "once.onnx", tmp_path / "twice.onnx"
    padfix.convert(source, once)
    report = padfix.convert(once, twice)
    assert report.rewrites == []
    assert once.read_bytes() == twice.read_bytes()


def test_a_node_that_the_runtime_runs_against_the_specification_asks_for_the_specification(tmp_path: Path) -> None:
    source, output = write(tmp_path, DILATED), tmp_path / "out.onnx"
    with pytest.raises(padfix.ProofUnavailableError, match="--reference spec") as caught:
        padfix.convert(source, output)
    assert caught.value.exit_code == 2
    assert not output.exists()
    report = padfix.convert(source, output, reference="spec")
    assert report.verdict is not None
    assert report.verdict.reference == "spec"
    assert any("ONNX Runtime" in note for note in report.notes)


def test_a_failed_proof_writes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from padfix.geometry import padding

    source, output = write(tmp_path, MODEL), tmp_path / "out.onnx"
    # The wrong side everywhere, and no local proof to stop it: only the whole proof is left.
    monkeypatch.setattr("padfix.rewrite.engine._Pipeline._prove", lambda self, site, rewrite: None)
    monkeypatch.setattr(padding, "split_same_padding", lambda total, *, upper: (total, 0))
    with pytest.raises(padfix.NotEquivalent, match=r"probe .* Y") as caught:
        padfix.convert(source, output)
    assert caught.value.exit_code == 1
    assert caught.value.report is not None
    assert not output.exists()
    assert [path.name for path in tmp_path.iterdir()] == ["model.onnx"]


def test_no_verify_says_so(tmp_path: Path) -> None:
    source, output = write(tmp_path, DILATED), tmp_path / "out.onnx"
    report = padfix.convert(source, output, verify=False)
    assert report.verdict is None
    assert any("without proof" in note for note in report.notes)
    assert output.exists()


def test_shapes_can_be_fixed(tmp_path: Path) -> None:
    source, output = write(tmp_path, MODEL), tmp_path / "out.onnx"
    padfix.convert(source, output, shapes={"X": (1, 2, 9, 7)})
    (value,) = onnx.load(output).graph.input
    assert [dimension.dim_value for dimension in value.type.tensor_type.shape.dim] == [1, 2, 9, 7]
    with pytest.raises(padfix.UsageError, match="Z"):
        padfix.convert(source, output, shapes={"Z": (1, 2, 9, 7)})


def test_verify_tells_equal_from_different(tmp_path: Path) -> None:
    source = write(tmp_path, MODEL)
    output = tmp_path / "out.onnx"
    padfix.convert(source, output)
    assert padfix.verify(source, output).equivalent
    moved = onnx.load(output)
    (pool,) = (node for node in moved.graph.node if node.op_type == "MaxPool")
    (pads,) = (attribute for attribute in pool.attribute if attribute.name == "pads")
    pads.ints[:] = [pads.ints[2], pads.ints[3] + pads.ints[1], pads.ints[0], 0]
    onnx.save(moved, tmp_path / "moved.onnx")
    verdict = padfix.verify(source, tmp_path / "moved.onnx")
    assert not verdict.equivalent
    assert [output.name for output in verdict.outputs if not output.equivalent] == ["Y"]


def test_user_probes_take_part(tmp_path: Path) -> None:
    source, output, probe = write(tmp_path, MODEL), tmp_path / "out.onnx", tmp_path / "mine.npz"
    np.savez(probe, X=np.full((1, 2, 11, 7), -5, np.float32))
    report = padfix.convert(source, output, probes=[probe])
    assert report.verdict is not None
    assert any(run.shapes["X"] == (1, 2, 11, 7) for run in report.verdict.runs)


@pytest.mark.parametrize("content", [b"", b"\x00\x01random", b"<html></html>", b"\x08"])
def test_what_is_no_model_is_refused(tmp_path: Path, content: bytes) -> None:
    source = tmp_path / "model.onnx"
    source.write_bytes(content)
    for action in (padfix.check, padfix.inspect, lambda path: padfix.convert(path, tmp_path / "out.onnx")):
        with pytest.raises(padfix.PadfixError) as caught:
            action(source)
        assert caught.value.exit_code == 2
    assert not (tmp_path / "out.onnx").exists()


def test_unknown_words_are_usage_errors(tmp_path: Path) -> None:
    source = write(tmp_path, MODEL)
    with pytest.raises(padfix.UsageError, match="PF999"):
        padfix.check(source, select=["PF999"])
    with pytest.raises(padfix.UsageError, match="moon"):
        padfix.check(source, target="moon")
    with pytest.raises(padfix.UsageError, match="oracle"):
        padfix.convert(source, tmp_path / "out.onnx", reference="oracle")
    with pytest.raises(padfix.UsageError, match="TensorFlow"):
        padfix.convert(source, tmp_path / "out.onnx", reference="tensorflow")


def test_select_and_ignore(tmp_path: Path) -> None:
    source = write(tmp_path, MODEL)
    assert padfix.check(source, ignore=["PF101"]).findings == []
    assert len(padfix.check(source, select=["PF1"]).findings) == 1
    assert padfix.check(source, select=["legacy-resize"]).findings == []


def test_a_type_that_the_runtime_lacks_can_be_proven_by_the_specification(tmp_path: Path) -> None:
    source, output = write(tmp_path, DOUBLE), tmp_path / "out.onnx"
    with pytest.raises(padfix.ProofUnavailableError, match="implementation for Conv"):
        padfix.convert(source, output)
    assert not output.exists()
    report = padfix.convert(source, output, reference="spec")
    assert report.verdict is not None
    assert {run.candidate for run in report.verdict.runs} == {"spec"}
    assert any("specification ran both" in note for note in report.verdict.notes)
