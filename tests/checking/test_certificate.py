"""The certificate: which files a proof was about, and whether this file is the one."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import onnx
import pytest

import padfix
from padfix.checking.certificate import METADATA, digest
from padfix.checking.required_proof import Requirement, check_proof
from padfix.cli.group import cli, run

FIXTURE = Path(__file__).parents[2] / "fixtures" / "onnx" / "same_cnn.onnx"


@pytest.fixture
def converted(tmp_path: Path) -> tuple[Path, Path]:
    """A converted model and its report."""
    output, report = tmp_path / "out.onnx", tmp_path / "proof.json"
    assert (
        run(cli, ["convert", str(FIXTURE), "-o", str(output), "--report", str(report), "--quiet", "--seed", "7"]) == 0
    )
    return output, report


def require(report: Path, model: Path) -> int:
    return run(cli, ["check", "--require-proof", str(report), str(model)])


def certificate_of(report: Path) -> dict[str, Any]:
    content = json.loads(report.read_text())
    found: dict[str, Any] = content["certificate"]
    return found


def why_not_proven(report: Path, model: Path) -> str:
    return check_proof(Requirement(report), model).reason


def test_a_report_names_both_files_by_their_digest(converted: tuple[Path, Path]) -> None:
    output, report = converted
    certificate = certificate_of(report)
    assert certificate["source"] == [{"name": FIXTURE.name, "sha256": hashlib.sha256(FIXTURE.read_bytes()).hexdigest()}]
    assert certificate["output"] == [{"name": "out.onnx", "sha256": hashlib.sha256(output.read_bytes()).hexdigest()}]
    assert certificate["seed"] == 7
    assert certificate["versions"]["padfix"] == padfix.__version__
    assert {"onnx", "onnxruntime", "numpy", "python"} <= set(certificate["versions"])


def test_the_proven_file_is_recognised_whatever_its_name(converted: tuple[Path, Path], tmp_path: Path) -> None:
    output, report = converted
    assert require(report, output) == 0
    renamed = tmp_path / "renamed.onnx"
    shutil.copy(output, renamed)
    assert require(report, renamed) == 0


def test_another_file_is_not_proven(
    converted: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output, report = converted
    touched = onnx.load(output)
    touched.doc_string += "!"
    onnx.save(touched, tmp_path / "touched.onnx")
    assert require(report, tmp_path / "touched.onnx") == 1
    assert "not the file that was proven" in capsys.readouterr().out


def test_a_report_written_without_proof_proves_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    output, report = tmp_path / "out.onnx", tmp_path / "proof.json"
    assert run(cli, ["convert", str(FIXTURE), "-o", str(output), "--report", str(report), "-q", "--no-verify"]) == 0
    assert require(report, output) == 1
    assert "without proof" in capsys.readouterr().out


def test_verify_certifies_too(converted: tuple[Path, Path], tmp_path: Path) -> None:
    output, _ = converted
    report = tmp_path / "verify.json"
    assert run(cli, ["verify", str(FIXTURE), str(output), "--report", str(report), "--quiet"]) == 0
    assert require(report, output) == 0
    assert require(report, FIXTURE) == 1


def test_a_failed_verification_proves_nothing(converted: tuple[Path, Path], tmp_path: Path) -> None:
    output, _ = converted
    model = onnx.load(output)
    next(each for each in model.graph.node if each.op_type == "Conv").attribute.append(
        onnx.helper.make_attribute("dilations", [1, 1])
    )
    conv = next(each for each in model.graph.node if each.name == "stem")
    next(each for each in conv.attribute if each.name == "pads").ints[:] = [1, 1, 0, 0]
    onnx.save(model, tmp_path / "moved.onnx")
    report = tmp_path / "verify.json"
    assert run(cli, ["verify", str(output), str(tmp_path / "moved.onnx"), "--report", str(report), "--quiet"]) == 1
    assert why_not_proven(report, tmp_path / "moved.onnx") == "the report says that the proof failed"


def test_data_files_are_part_of_it(tmp_path: Path) -> None:
    output, report = tmp_path / "out.onnx", tmp_path / "proof.json"
    arguments = ["convert", str(FIXTURE), "-o", str(output), "--external-data", "--report", str(report), "--quiet"]
    assert run(cli, arguments) == 0
    data = tmp_path / "out.onnx.data"
    assert [each["name"] for each in certificate_of(report)["output"]] == ["out.onnx", "out.onnx.data"]
    assert require(report, output) == 0
    damaged = bytearray(data.read_bytes())
    damaged[-1] ^= 1
    data.write_bytes(damaged)
    assert require(report, output) == 1
    data.unlink()
    assert "not beside it" in str(why_not_proven(report, output))


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"schema": 99}', "no json"])
def test_what_is_no_report_is_refused(text: str, tmp_path: Path) -> None:
    report = tmp_path / "proof.json"
    report.write_text(text)
    assert require(report, FIXTURE) == 2


def test_a_report_without_certificate_proves_nothing(tmp_path: Path) -> None:
    report = tmp_path / "proof.json"
    report.write_text('{"schema": 1, "verdict": {"equivalent": true}}')
    assert require(report, FIXTURE) == 1


def test_a_name_that_leads_elsewhere_is_refused(tmp_path: Path) -> None:
    report = tmp_path / "proof.json"
    files = [{"name": "out.onnx", "sha256": digest(FIXTURE)}, {"name": "../secret", "sha256": ""}]
    certificate = {"source": files, "output": files}
    report.write_text(json.dumps({"schema": 1, "equivalent": True, "certificate": certificate}))
    assert require(report, FIXTURE) == 2


def test_a_folder_has_a_digest_of_names_and_contents(tmp_path: Path) -> None:
    (tmp_path / "a" / "variables").mkdir(parents=True)
    (tmp_path / "a" / "saved_model.pb").write_bytes(b"graph")
    (tmp_path / "a" / "variables" / "data").write_bytes(b"weights")
    shutil.copytree(tmp_path / "a", tmp_path / "b")
    assert digest(tmp_path / "a") == digest(tmp_path / "b")
    (tmp_path / "b" / "variables" / "data").rename(tmp_path / "b" / "data")
    assert digest(tmp_path / "a") != digest(tmp_path / "b")


def test_the_output_bears_the_digest_of_its_certificate_and_is_the_same_otherwise(
    converted: tuple[Path, Path], tmp_path: Path
) -> None:
    output, report = converted
    padfix.convert(FIXTURE, tmp_path / "plain.onnx")
    marked = onnx.load(output)
    assert {each.key: each.value for each in marked.metadata_props} == {METADATA: certificate_of(report)["digest"]}
    del marked.metadata_props[:]
    assert marked == onnx.load(tmp_path / "plain.onnx")


def test_a_second_conversion_changes_nothing(converted: tuple[Path, Path], tmp_path: Path) -> None:
    output, _ = converted
    again, report = tmp_path / "again.onnx", tmp_path / "again.json"
    assert run(cli, ["convert", str(output), "-o", str(again), "--report", str(report), "--quiet"]) == 0
    assert again.read_bytes() == output.read_bytes()
    assert require(report, again) == 0


@pytest.mark.parametrize(
    "change",
    [
        lambda content: content["certificate"].update(seed=8),
        lambda content: content["certificate"]["source"][0].update(sha256="0" * 64),
        lambda content: content["verdict"].update(notes=["all is well"]),
        lambda content: content["rewrites"].pop(),
        lambda content: content.update(checksum="0" * 64),
        lambda content: content.pop("checksum"),
    ],
)
def test_a_report_that_was_changed_proves_nothing(
    change: Callable[[dict[str, Any]], object], converted: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    output, report = converted
    content = json.loads(report.read_text())
    change(content)
    report.write_text(json.dumps(content))
    assert require(report, output) == 1
    assert "the report was changed after it was written" in capsys.readouterr().out


def test_another_spacing_or_order_is_no_change(converted: tuple[Path, Path]) -> None:
    output, report = converted
    report.write_text(json.dumps(json.loads(report.read_text()), sort_keys=True))
    assert require(report, output) == 0


def test_a_failed_proof_that_is_said_to_have_passed_proves_nothing(
    converted: tuple[Path, Path], tmp_path: Path
) -> None:
    output, _ = converted
    model = onnx.load(output)
    conv = next(each for each in model.graph.node if each.name == "stem")
    next(each for each in conv.attribute if each.name == "pads").ints[:] = [1, 1, 0, 0]
    onnx.save(model, tmp_path / "moved.onnx")
    report = tmp_path / "verify.json"
    assert run(cli, ["verify", str(output), str(tmp_path / "moved.onnx"), "--report", str(report), "--quiet"]) == 1
    report.write_text(report.read_text().replace('"equivalent": false', '"equivalent": true'))
    assert "was changed" in str(why_not_proven(report, tmp_path / "moved.onnx"))


def test_a_report_of_several_conversions_proves_each(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sources = [FIXTURE, FIXTURE.with_name("legacy_upsample.onnx")]
    folder, report = tmp_path / "out", tmp_path / "proof.json"
    folder.mkdir()
    assert run(cli, ["convert", *map(str, sources), "--output-dir", str(folder), "--format", "json"]) == 0
    report.write_text(capsys.readouterr().out)
    outputs = sorted(folder.glob("*.onnx"))
    assert len(outputs) == 2
    for output in outputs:
        assert not why_not_proven(report, output)
    assert "none of the conversions" in str(why_not_proven(report, FIXTURE))
