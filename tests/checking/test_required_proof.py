"""The gate of ``check --require-proof`` under attack, and what each format says of a model that is not proven."""

from __future__ import annotations

import hashlib
import json
import shutil
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from padfix.checking.required_proof import Requirement, check_proof
from padfix.cli.group import cli, run
from padfix.reports.json import checksum

FIXTURES = Path(__file__).parents[2] / "fixtures" / "onnx"
FIXTURE = FIXTURES / "same_cnn.onnx"
REFUSED = """<ir_version: 8, opset_import: ["": 17]>
main (float[1,1,8,8] X, float[1,1,3,3] W) => (float[1,1,a,b] Z) {
  [good] Y = Conv <auto_pad = "SAME_UPPER", kernel_shape = [3, 3]> (X, W)
  [bad] Z = Conv <auto_pad = "SAME_UPPER", pads = [0, 0, 0, 0], kernel_shape = [3, 3]> (Y, W)
}"""


def invoke(*arguments: object) -> int:
    return run(cli, [str(argument) for argument in arguments])


def converted(folder: Path, *options: object, source: Path = FIXTURE) -> tuple[Path, Path]:
    """Return a converted model and its report."""
    output, report = folder / "out.onnx", folder / "proof.json"
    assert invoke("convert", source, "-o", output, "--report", report, "--quiet", *options) == 0
    return output, report


def reason(report: Path, model: Path, **wanted: Any) -> str:
    return check_proof(Requirement(report, **wanted), model).reason


def edited(report: Path, change: Callable[[dict[str, Any]], object]) -> None:
    """Change a report and compute its checksum anew, as its writer would."""
    content = json.loads(report.read_text())
    change(content)
    report.write_text(json.dumps({**content, "checksum": checksum(content)}))


def test_an_honest_proof_says_what_it_is_of(tmp_path: Path) -> None:
    output, report = converted(tmp_path)
    proof = check_proof(Requirement(report, source=str(FIXTURE)), output)
    assert proof.proven
    assert proof.source[0].sha256 == hashlib.sha256(FIXTURE.read_bytes()).hexdigest()
    assert proof.date == json.loads(report.read_text())["certificate"]["date"]


def test_a_model_against_itself_proves_nothing(tmp_path: Path) -> None:
    output, _ = converted(tmp_path)
    report = tmp_path / "self.json"
    assert invoke("verify", output, output, "--report", report, "--quiet") == 0
    assert "compared with itself" in reason(report, output)
    assert reason(report, output, source=str(output)) == "", "the user says that this is the source"


def test_a_conversion_that_found_nothing_to_rewrite_is_no_self_proof(tmp_path: Path) -> None:
    output, report = converted(tmp_path, source=FIXTURES / "explicit_cnn.onnx")
    assert output.read_bytes() == (FIXTURES / "explicit_cnn.onnx").read_bytes()
    assert reason(report, output) == ""


@pytest.mark.parametrize("options", [["--rtol", "1000"], ["--atol", "1"], ["--rtol", "1e-3"]])
def test_loose_tolerances_prove_nothing_unless_they_are_allowed(options: list[str], tmp_path: Path) -> None:
    output, report = converted(tmp_path, *options)
    assert "allowed more than the default tolerances" in reason(report, output)
    assert reason(report, output, allow_loose=True) == ""


@pytest.mark.parametrize("options", [["--rtol", "1e-4"], ["--rtol", "1e-5", "--atol", "0"]])
def test_tolerances_as_tight_as_the_defaults_prove(options: list[str], tmp_path: Path) -> None:
    output, report = converted(tmp_path, *options)
    assert reason(report, output) == ""


def test_tight_tolerances_do_not_loosen_what_is_held_inside(tmp_path: Path) -> None:
    """Inside, the defaults are a few units in the last place: 1e-5 of the range would let this through."""
    first, second = tmp_path / "a.onnx", tmp_path / "b.onnx"
    for path, gain in ((first, 1.0), (second, 1.000008)):
        weights = onnx.numpy_helper.from_array(np.full((1, 1, 3, 3), gain, np.float32), "W")
        nodes = [
            onnx.helper.make_node("Conv", ["X", "W"], ["C"], "conv"),
            onnx.helper.make_node("Sigmoid", ["C"], ["Y"], "sigmoid"),
        ]
        types = [onnx.helper.make_tensor_value_info(name, 1, [1, 1, size, size]) for name, size in (("X", 8), ("Y", 6))]
        graph = onnx.helper.make_graph(nodes, "g", types[:1], types[1:], [weights])
        model = onnx.helper.make_model(graph, ir_version=8, opset_imports=[onnx.helper.make_opsetid("", 17)])
        onnx.save(model, path)
    assert invoke("verify", first, second, "--quiet") == 1
    assert invoke("verify", first, second, "--quiet", "--rtol", "1e-4") == 1


def test_the_users_probes_alone_prove_nothing_unless_they_are_allowed(tmp_path: Path) -> None:
    np.savez(tmp_path / "probe.npz", X=np.ones((1, 3, 32, 32), np.float32))
    output, report = converted(tmp_path, "--probe", tmp_path / "probe.npz", "--probes-only")
    assert "probes alone" in reason(report, output)
    assert reason(report, output, allow_loose=True) == ""


def test_the_source_can_be_pinned(tmp_path: Path) -> None:
    output, report = converted(tmp_path)
    own = hashlib.sha256(FIXTURE.read_bytes()).hexdigest()
    assert [reason(report, output, source=each) for each in (str(FIXTURE), own, own.upper())] == ["", "", ""]
    for other in (str(FIXTURES / "explicit_cnn.onnx"), "0" * 64, str(output)):
        assert "another source (same_cnn.onnx, SHA-256" in reason(report, output, source=other)
    assert invoke("check", output, "--require-proof", report, "--proof-source", tmp_path / "missing") == 2


def test_data_files_of_the_pinned_source_count(tmp_path: Path) -> None:
    source = tmp_path / "source.onnx"
    onnx.save(onnx.load(FIXTURE), source, save_as_external_data=True, location="weights", size_threshold=0)
    output, report = converted(tmp_path, source=source)
    assert reason(report, output, source=str(source)) == ""
    (tmp_path / "weights").write_bytes(b"others")
    assert "data file weights is not the one of the proof" in reason(report, output, source=str(source))


def test_an_edited_report_is_held_to_its_own_words(tmp_path: Path) -> None:
    """What a checksum can't see, the contents may still say; what they don't say, only a signature can tell."""
    output, report = converted(tmp_path, "--rtol", "1000")
    edited(report, lambda content: content["certificate"].update(rtol=None))
    assert "allowed more" in reason(report, output)
    edited(report, lambda content: content.update(error={"message": "m", "hint": "", "exit_code": 1}))
    assert "failed" in reason(report, output)


def test_the_proof_of_another_model_and_of_another_target(tmp_path: Path) -> None:
    """Which target a model was made for is no part of being equal; ``check`` itself asks what its target wants."""
    output, report = converted(tmp_path, "--target", "portable")
    assert invoke("check", output, "--require-proof", report) == 0
    other = tmp_path / "other.onnx"
    shutil.copy(FIXTURE, other)
    assert "not the file that was proven" in reason(report, other)


def test_what_a_partial_conversion_left_is_still_found(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = tmp_path / "source.onnx"
    onnx.save(onnx.parser.parse_model(REFUSED), source)
    output, report = converted(tmp_path, "--partial", "--reference", "spec", source=source)
    assert reason(report, output) == ""
    assert invoke("check", output, "--require-proof", report) == 1
    assert "PF104" in capsys.readouterr().out


def test_options_of_a_proof_want_a_proof() -> None:
    for options in (["--proof-source", "x"], ["--allow-loose-proof"], ["--verify-key", "k"]):
        assert invoke("check", FIXTURE, *options) == 2


# What the formats say.


@pytest.fixture
def unproven(tmp_path: Path) -> tuple[Path, Path]:
    output, _ = converted(tmp_path)
    report = tmp_path / "self.json"
    assert invoke("verify", output, output, "--report", report, "--quiet") == 0
    return output, report


def shown(model: Path, report: Path, name: str, capsys: pytest.CaptureFixture[str], *options: str) -> str:
    capsys.readouterr()
    assert invoke("check", model, "--require-proof", report, "--format", name, *options) == (
        0 if "--exit-zero" in options else 1
    )
    return capsys.readouterr().out


REASON = "The model is not proven: it was compared with itself, which proves nothing."


@pytest.mark.parametrize("name", ["text", "json", "sarif", "junit", "github", "gitlab", "markdown", "html"])
@pytest.mark.parametrize("options", [[], ["--ignore", "PF304"], ["--select", "PF1"], ["--fail-on", "error"]])
def test_an_unproven_model_is_a_result_in_every_format(
    name: str, options: list[str], unproven: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    text = shown(*unproven, name, capsys, *options)
    assert REASON in text
    assert "PF304" in text


def test_each_format_says_it_in_its_own_way(unproven: tuple[Path, Path], capsys: pytest.CaptureFixture[str]) -> None:
    suites = ElementTree.fromstring(shown(*unproven, "junit", capsys))
    assert suites.get("failures") == "1"
    failed = [case.get("name") for case in suites.iter("testcase") if case.find("failure") is not None]
    assert failed == ["PF304 unproven-model"]
    (only,) = json.loads(shown(*unproven, "sarif", capsys))["runs"]
    assert [(result["ruleId"], result["level"]) for result in only["results"]] == [("PF304", "error")]
    document = json.loads(shown(*unproven, "json", capsys))
    assert [finding["rule"] for finding in document["findings"]] == ["PF304"]
    assert document["proof"]["proven"] is False
    assert document["proof"]["reason"] in REASON
    assert shown(*unproven, "github", capsys).startswith("::error ")
    assert [each["check_name"] for each in json.loads(shown(*unproven, "gitlab", capsys))] == ["PF304"]


def test_a_proven_model_is_a_passed_case(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    output, report = converted(tmp_path)
    assert invoke("check", output, "--require-proof", report, "--format", "junit") == 0
    suites = ElementTree.fromstring(capsys.readouterr().out)
    assert "PF304 unproven-model" in {case.get("name") for case in suites.iter("testcase")}
    assert invoke("check", output, "--format", "junit") == 0
    assert "PF304" not in capsys.readouterr().out, "a rule that was not asked did not pass"


def test_a_baseline_holds_no_unproven_model(unproven: tuple[Path, Path], tmp_path: Path) -> None:
    model, report = unproven
    baseline = tmp_path / "baseline.json"
    assert invoke("check", model, "--require-proof", report, "--write-baseline", baseline) == 1
    assert "PF304" not in baseline.read_text()
    assert invoke("check", model, "--require-proof", report, "--baseline", baseline) == 1


def test_a_proof_that_cannot_be_read_is_an_error_in_every_format(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "proof.json").write_text("{}")
    for name in ("json", "junit", "sarif", "html", "markdown", "github", "gitlab"):
        assert invoke("check", FIXTURE, "--require-proof", tmp_path / "proof.json", "--format", name) == 2
        assert "is not a JSON report of padfix" in capsys.readouterr().out, name
