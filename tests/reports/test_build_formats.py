"""SARIF, JUnit, HTML and JSON of `padfix check`: valid by the schema of each, and complete."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import jsonschema
import pytest

import padfix
from padfix.checking import baseline
from padfix.cli.exits import run
from padfix.cli.group import cli
from padfix.errors import SourceError
from padfix.reports import catalogue, check_formats, github, gitlab, html, junit, sarif
from padfix.reports import json as as_json
from padfix.results import CheckReport, Finding, Severity
from padfix.rules.registry import RULES

ROOT = Path(__file__).parents[2]
EVIL = "a|b<script>alert(1)</script>&\n\r\x1b[31m\u202e\udcff\uffff]]>::error::"
OFFICIAL = json.loads((ROOT / "tests" / "data" / "sarif-schema-2.1.0.json").read_text(encoding="utf-8"))
OWN = json.loads((ROOT / "padfix" / "schemas" / "padfix-1.schema.json").read_text(encoding="utf-8"))


def finding(node: str = "conv", severity: Severity = Severity.WARNING, rule: str = "PF101") -> Finding:
    return Finding(rule, "implicit-same-padding", severity, "main", node, "Conv", f"m {node}", True, "h", f"f {node}")


REPORTS = [
    CheckReport("models/a b.onnx", "onnx", [finding("x"), finding("x"), finding("y", Severity.INFO)]),
    CheckReport("clean.onnx", "onnx"),
    CheckReport(EVIL, "onnx", [finding(EVIL, Severity.ERROR, "PF999")]),
]
FAILURES = [("broken.onnx", SourceError("It is truncated.", "Fetch it.")), (EVIL, SourceError(EVIL))]


def official_run(text: str) -> Any:
    document = json.loads(text)
    jsonschema.Draft7Validator(OFFICIAL, format_checker=jsonschema.FormatChecker()).validate(document)
    (only,) = document["runs"]
    return only


def test_the_official_schema_refuses_what_is_wrong() -> None:
    document = json.loads(sarif.findings(REPORTS))
    document["runs"][0]["results"][0]["level"] = "fatal"
    with pytest.raises(jsonschema.ValidationError):
        official_run(json.dumps(document))


def test_sarif_is_valid_and_complete() -> None:
    shown = official_run(sarif.findings(REPORTS, FAILURES))
    rules = shown["tool"]["driver"]["rules"]
    assert [rule["id"] for rule in rules] == [rule.code for rule in RULES] + ["PF999"]
    for described, rule in zip(rules, RULES, strict=False):
        assert described["help"]["markdown"].split("\n\n")[0].replace("\n", " ") == catalogue.summary(rule)
        assert len(described["help"]["text"]) > len(described["shortDescription"]["text"]) > 20
    results = shown["results"]
    assert [rules[result["ruleIndex"]]["id"] for result in results] == ["PF101", "PF101", "PF101", "PF999"]
    assert [result["level"] for result in results] == ["warning", "warning", "note", "error"]
    first = results[0]["locations"][0]
    assert first["physicalLocation"] == {"artifactLocation": {"uri": "models/a%20b.onnx"}, "region": {"startLine": 1}}
    assert first["logicalLocations"][0] == {"name": "x", "fullyQualifiedName": "main/x", "kind": "element"}
    prints = [result["partialFingerprints"]["padfix/v1"] for result in results]
    assert prints[:3] == ["f x:1", "f x:2", "f y:1"]
    invocation = shown["invocations"][0]
    assert not invocation["executionSuccessful"]
    assert invocation["toolExecutionNotifications"][0]["message"]["text"] == "It is truncated. Fetch it."
    assert official_run(sarif.findings([]))["results"] == []


def test_sarif_has_what_public_viewers_ask_for() -> None:
    """Code scanning at GitHub needs these; its limits are 5,000 shown results and 1,000 characters of a description."""
    shown = official_run(sarif.findings(REPORTS))
    for rule in shown["tool"]["driver"]["rules"][:-1]:
        assert {"id", "shortDescription", "fullDescription", "help", "defaultConfiguration"} <= set(rule)
        assert len(rule["shortDescription"]["text"]) < 1024
        assert rule["properties"]["problem.severity"] in ("error", "warning", "recommendation")
    for result in shown["results"]:
        assert result["message"]["text"]
        assert result["partialFingerprints"]["primaryLocationLineHash"]
        location = result["locations"][0]["physicalLocation"]
        assert not location["artifactLocation"]["uri"].startswith("/")
        assert location["region"]["startLine"] >= 1


def test_paths_are_relative_to_the_checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)

    def uri(source: object) -> str:
        shown = official_run(sarif.findings([CheckReport(str(source), "onnx", [finding()])]))
        found = shown["results"][0]["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]
        assert isinstance(found, str)
        return found

    assert uri(tmp_path / "m" / "x.onnx") == "m/x.onnx"
    assert uri("./m/x.onnx") == "m/x.onnx"
    assert uri("/elsewhere/x.onnx") == "file:///elsewhere/x.onnx"
    assert uri("c:x.onnx") == "c%3Ax.onnx"


def test_junit_is_read_by_a_stock_parser() -> None:
    root = ElementTree.fromstring(junit.findings(REPORTS, FAILURES))
    assert root.tag == "testsuites"
    suites = root.findall("testsuite")
    assert [suite.get("name") for suite in suites][:2] == ["models/a b.onnx", "clean.onnx"]
    for suite in suites:
        cases = suite.findall("testcase")
        assert len(cases) == int(suite.get("tests", ""))
        assert len(suite.findall("testcase/failure")) == int(suite.get("failures", ""))
        assert len(suite.findall("testcase/error")) == int(suite.get("errors", ""))
        assert len({case.get("name") for case in cases}) == len(cases)
    for total in ("tests", "failures", "errors"):
        assert int(root.get(total, "")) == sum(int(suite.get(total, "")) for suite in suites)
    case = suites[0].find("testcase[@name='PF101 implicit-same-padding']")
    assert case is not None
    failure = case.find("failure")
    assert failure is not None
    assert failure.get("message") == "2 findings: main/x (Conv): m x"
    assert "warning: main/x (Conv): m x\n  hint: h" in (failure.text or "")
    assert "info: main/y" in (case.findtext("system-out") or "")
    assert suites[1].get("failures") == "0"


@pytest.mark.parametrize(("fail_on", "failures"), [("info", 2), ("warning", 2), ("error", 1)])
def test_junit_fails_from_the_severity_on_that_the_command_fails_from(fail_on: str, failures: int) -> None:
    root = ElementTree.fromstring(junit.findings(REPORTS, fail_on=Severity(fail_on)))
    assert root.get("failures") == str(failures)


class _Page(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.links: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.links.extend(value or "" for name, value in attrs if name in ("href", "src"))


def test_html_is_one_page_of_its_own() -> None:
    shown = html.findings(REPORTS, FAILURES)
    page = _Page()
    page.feed(shown)
    assert "script" not in page.tags
    assert {link[:1] for link in page.links} == {"#"}
    targets = re.findall(r'id="([^"]+)"', shown)
    assert len(set(targets)) == len(targets)
    assert {link[1:] for link in page.links} <= set(targets)
    assert "url(" not in shown
    assert page.tags.count("h2") == 4, "two models with findings, those without, and those not read"
    assert "<p>m x</p>" in shown and ">h</p>" in shown
    assert "It is truncated. Fetch it." in shown


def test_json_documents_follow_the_schema_that_is_shipped(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    jsonschema.Draft202012Validator.check_schema(OWN)
    model = ROOT / "fixtures" / "onnx" / "same_cnn.onnx"
    out = tmp_path / "out.onnx"
    report = padfix.check(model)
    documents = [as_json.findings(REPORTS, FAILURES), as_json.findings([report]), as_json.findings([])]
    documents.append(baseline.render(REPORTS[:2], tmp_path))
    for arguments in (
        ["convert", model, "-o", out, "--format", "json"],
        ["verify", model, out, "--format", "json"],
        ["inspect", model, "--format", "json"],
        ["rules", "--format", "json"],
    ):
        assert run(cli, [str(argument) for argument in arguments]) == 0
        documents.append(capsys.readouterr().out)
    kinds = ["check", "check", "check", "baseline", "convert", "verify", "inspect", "rules"]
    for text, kind in zip(documents, kinds, strict=True):
        jsonschema.validate(json.loads(text), OWN)
        jsonschema.validate(json.loads(text), {**OWN, "oneOf": [{"$ref": f"#/$defs/{kind}"}]})
    broken = json.loads(documents[1])
    del broken["findings"][0]["hint"]
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(broken, OWN)


def test_gitlab_reads_what_code_quality_wants() -> None:
    """The fields and severities of GitLab's documentation, and fingerprints that tell all entries apart."""
    entries = json.loads(gitlab.findings(REPORTS, FAILURES))
    schema = {
        "type": "array",
        "items": {
            "type": "object",
            "required": ["description", "check_name", "fingerprint", "severity", "location"],
            "properties": {
                "description": {"type": "string", "minLength": 1},
                "check_name": {"type": "string", "minLength": 1},
                "fingerprint": {"type": "string", "pattern": "^[0-9a-f]{64}$"},
                "severity": {"enum": ["info", "minor", "major", "critical", "blocker"]},
                "location": {
                    "type": "object",
                    "required": ["path", "lines"],
                    "properties": {
                        "path": {"type": "string", "pattern": "^[^.\\x00-\\x1f][^\\x00-\\x1f]*$"},
                        "lines": {"type": "object", "required": ["begin"]},
                    },
                },
            },
        },
    }
    jsonschema.validate(entries, schema)
    assert len({each["fingerprint"] for each in entries}) == len(entries) == 6
    assert [each["severity"] for each in entries] == ["major", "major", "info", "critical", "blocker", "blocker"]
    assert entries[0]["location"] == {"path": "models/a b.onnx", "lines": {"begin": 1}}
    assert json.loads(gitlab.findings([])) == []


@pytest.mark.parametrize(("number", "lines"), [(10, 10), (11, 10), (500, 10)])
def test_annotations_that_the_site_would_drop_are_summed_up(number: int, lines: int) -> None:
    report = CheckReport("m.onnx", "onnx", [finding(f"n{place}") for place in range(number)])
    shown = github.findings([report, CheckReport("e.onnx", "onnx", [finding("x", Severity.ERROR)])]).splitlines()
    warnings = [line for line in shown if line.startswith("::warning ")]
    assert len(warnings) == lines
    assert len(shown) == lines + 1
    if number > 10:
        assert warnings[-1].endswith(f"::{number - 9} warnings more: see the summary of this step.")


def test_rules_that_were_not_asked_did_not_pass() -> None:
    model = ROOT / "fixtures" / "onnx" / "same_cnn.onnx"
    report = padfix.check(model, select=["PF1"], ignore=["PF103"])
    suites = ElementTree.fromstring(junit.findings([report]))
    cases = [str(case.get("name")).split()[0] for case in suites.iter("testcase")]
    without_a_say = ("PF103", "PF106", "PF111", "PF112")
    assert cases == [rule.code for rule in RULES if rule.code.startswith("PF1") and rule.code not in without_a_say]
    run_ = official_run(sarif.findings([report]))
    overrides = {each["descriptor"]["id"] for each in run_["invocations"][0]["ruleConfigurationOverrides"]}
    assert overrides == {rule.code for rule in RULES} - set(cases)
    assert json.loads(as_json.findings([report]))["rules_asked"] == cases
    assert "PF106" in padfix.check(model, select=["PF106"]).rules
    assert "PF301" in padfix.check(model, target="portable").rules


@pytest.mark.parametrize("report_format", check_formats.FORMATS)
def test_a_report_of_many_models_goes_through_them_as_often_as_one_of_few(report_format: str) -> None:
    class Counted(list[CheckReport]):
        times = 0

        def __iter__(self) -> Iterator[CheckReport]:
            self.times += 1
            return super().__iter__()

    few, many = (Counted(CheckReport(f"{place}.onnx", "onnx", [finding("x")]) for place in range(n)) for n in (30, 300))
    for reports in (few, many):
        check_formats.render(report_format, reports)
    assert few.times == many.times < 30
