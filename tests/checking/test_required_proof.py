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

from padfix.checking.certificate import digest
from padfix.checking.required_proof import Requirement, check_proof
from padfix.cli.group import cli, run
from padfix.results.certificate import checksum, digest_of

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


def convolution(path: Path, gain: float = 1.0, *, location: str = "", auto_pad: str = "NOTSET") -> Path:
    """Write a model of one convolution, with its weights in a data file where a location is given."""
    attributes = {"auto_pad": auto_pad} if auto_pad != "NOTSET" else {"pads": [1, 1, 1, 1]}
    weights = onnx.numpy_helper.from_array(np.full((1, 1, 3, 3), gain, np.float32), "W")
    node = onnx.helper.make_node("Conv", ["X", "W"], ["Y"], "conv", kernel_shape=[3, 3], **attributes)
    types = [onnx.helper.make_tensor_value_info(name, 1, [1, 1, 8, 8]) for name in "XY"]
    graph = onnx.helper.make_graph([node], "g", types[:1], types[1:], [weights])
    model = onnx.helper.make_model(graph, ir_version=8, opset_imports=[onnx.helper.make_opsetid("", 17)])
    (path.parent / (location or ".")).parent.mkdir(exist_ok=True)
    onnx.save(model, path, save_as_external_data=bool(location), location=location or None, size_threshold=0)
    return path


def test_data_that_proves_nothing_is_no_proof(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first, second = convolution(tmp_path / "a.onnx"), convolution(tmp_path / "b.onnx", 2)
    report = tmp_path / "proof.json"
    assert invoke("verify", first, second, "--report", report, "--quiet", "--range", "X=0..0") == 0
    assert "fed input 'X' the one value 0" in reason(report, second, source=str(first))
    assert reason(report, second, allow_loose=True) == ""
    assert invoke("verify", first, second, "--report", report, "--quiet", "--range", "X=0..1") == 1


def test_the_range_of_the_data_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first, second = convolution(tmp_path / "a.onnx", auto_pad="SAME_UPPER"), convolution(tmp_path / "b.onnx")
    report = tmp_path / "proof.json"
    assert invoke("verify", first, second, "--report", report, "--quiet", "--range", "X=0..255") == 0
    assert invoke("check", second, "--require-proof", report) == 0
    assert "; on data for 'X' within 0..255." in capsys.readouterr().out
    assert check_proof(Requirement(report), second).ranges == {"X": (0, 255)}


@pytest.mark.parametrize("option", ["--rtol", "--atol"])
@pytest.mark.parametrize("value", ["nan", "inf"])
def test_what_is_no_number_is_no_tolerance(
    option: str, value: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert invoke("verify", FIXTURE, FIXTURE, option, value) == 2
    assert f"{option[2:]} is {value}, which is no tolerance" in capsys.readouterr().err


def test_data_files_in_a_folder_below_are_part_of_the_proof(tmp_path: Path) -> None:
    first = convolution(tmp_path / "a.onnx", location="below/a.data", auto_pad="SAME_UPPER")
    second = convolution(tmp_path / "b.onnx", location="below/b.data")
    report = tmp_path / "proof.json"
    assert invoke("verify", first, second, "--report", report, "--quiet") == 0
    assert [each["name"] for each in json.loads(report.read_text())["certificate"]["output"]] == [
        "b.onnx",
        "below/b.data",
    ]
    assert reason(report, second, source=str(first)) == ""
    edited(report, lambda content: content["certificate"]["output"].pop())
    assert reason(report, second) == "the report does not name its data file below/b.data"
    (tmp_path / "below" / "b.data").unlink()
    assert invoke("verify", first, second, "--report", report, "--quiet") == 2


def test_what_lies_behind_a_link_in_a_folder_counts(tmp_path: Path) -> None:
    folder, elsewhere = tmp_path / "saved", tmp_path / "elsewhere"
    folder.mkdir()
    elsewhere.mkdir()
    (folder / "saved_model.pb").write_text("graph")
    (elsewhere / "weights").write_text("1")
    (folder / "variables").symlink_to(elsewhere)
    (elsewhere / "up").symlink_to(folder)
    before = digest(folder)
    (elsewhere / "weights").write_text("2")
    assert digest(folder) != before


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda content: content["certificate"]["source"][0].update(sha256="0" * 64), "another digest"),
        (lambda content: content["certificate"].update(digest="0" * 64), "another digest"),
        (lambda content: content["verdict"].pop("loosened"), "does not say whether the default tolerances were held"),
        (lambda content: content["verdict"].update(runs=[]), "nothing was run"),
        (lambda content: content["verdict"].update(runs=None), "not of every output"),
        (lambda content: content["verdict"]["runs"][0].update(outputs=5), "not of every output"),
        (lambda content: content["verdict"]["runs"][0]["outputs"][0].update(equivalent=False), "not of every output"),
    ],
)
def test_a_part_that_was_edited_does_not_fit_the_others(
    change: Callable[[dict[str, Any]], object], said: str, tmp_path: Path
) -> None:
    output, report = converted(tmp_path)
    edited(report, change)
    assert said in reason(report, output)


def test_a_report_of_another_source_does_not_fit_the_mark_in_the_model(tmp_path: Path) -> None:
    output, report = converted(tmp_path)

    def of_another_source(content: dict[str, Any]) -> None:
        content["certificate"]["source"][0]["sha256"] = "0" * 64
        content["certificate"]["digest"] = digest_of(content["certificate"])

    edited(report, of_another_source)
    assert "padfix.certificate is not the digest" in reason(report, output, source="0" * 64)


def test_a_failed_proof_that_says_equal_is_none(tmp_path: Path) -> None:
    first, second = convolution(tmp_path / "a.onnx"), convolution(tmp_path / "b.onnx", 2)
    report = tmp_path / "proof.json"
    assert invoke("verify", first, second, "--report", report, "--quiet") == 1
    edited(report, lambda content: content.update(equivalent=True))
    assert "not of every output" in reason(report, second)


def test_another_schema_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    output, report = converted(tmp_path)
    edited(report, lambda content: content.update(schema=2))
    assert invoke("check", output, "--require-proof", report) == 2
    assert "is a report of schema 2; this padfix reads schema 1" in capsys.readouterr().err


def test_a_source_that_is_named_by_nothing_is_wrong_usage(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    output, report = converted(tmp_path)
    assert invoke("check", output, "--require-proof", report, "--proof-source", "") == 2
    assert "--proof-source is empty" in capsys.readouterr().err


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


@pytest.mark.sweep(3)
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
