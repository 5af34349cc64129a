"""Reports: every format says what happened, and nothing from a model can break out of it."""

from __future__ import annotations

import dataclasses
import json
import math
import re
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from padfix.errors import SourceError
from padfix.reports import catalogue, github, html, markdown, operators, proof_text, sentences, text
from padfix.reports import json as as_json
from padfix.reports.characters import printable
from padfix.reports.columns import aligned
from padfix.reports.text_style import Style
from padfix.results import (
    CheckReport,
    ConvertReport,
    Finding,
    LocalProof,
    OpRecord,
    OutputDifference,
    ProofRun,
    Refused,
    Rewritten,
    Severity,
    Verdict,
)
from padfix.rules.registry import RULES

EVIL = "a|b<script>alert(1)</script>`x`\n\r\x1b[31m\u202e&amp;::error::"


def finding(node: str = "conv", op_type: str = "Conv", rule: str = "PF101") -> Finding:
    return Finding(
        rule, "implicit-same-padding", Severity.WARNING, "main", node, op_type, f"message of {node}", True, "h"
    )


def run(probe: str, difference: float, tolerance: float = 1e-4, name: str = "Y") -> ProofRun:
    return ProofRun(
        probe,
        "onnxruntime",
        {"X": (1, 3)},
        (OutputDifference(name, difference, 0.0, tolerance, difference <= tolerance),),
    )


def conversion(verdict: Verdict | None, name: str = "conv") -> ConvertReport:
    return ConvertReport(
        f"{name}.onnx",
        f"{name}-out.onnx",
        "onnx",
        17,
        rewrites=[
            Rewritten(finding(name), LocalProof(3, 0.0, ("spec",))),
            Rewritten(finding(name, "MaxPool"), None),
            Rewritten(finding(name), None),
        ],
        refusals=[Refused(finding(name), f"reason {name}")],
        verdict=verdict,
        notes=[f"note {name}"],
    )


@given(st.text())
def test_printable_leaves_only_visible_characters(words: str) -> None:
    shown = printable(words)
    assert shown.isprintable() or not shown
    if words.isprintable():
        assert shown == words


def test_the_verdict_names_the_output_nearest_to_its_tolerance() -> None:
    verdict = Verdict(True, "tensorflow", (run("a", 1e-3, 1.0, "loose"), run("b", 9e-5, 1e-4, "tight")))
    assert sentences.verdict(verdict) == (
        "Equal to the original as run by TensorFlow: 2 probes; closest to its limit: 9e-05 of 0.0001 allowed "
        "(output 'tight', probe 'b'); largest difference: 0.001; result run by onnxruntime."
    )


@pytest.mark.parametrize("difference", [0.5, math.inf, math.nan])
def test_a_failed_verdict_names_probe_and_output(difference: float) -> None:
    bad = ProofRun("ramp", "onnxruntime", {}, (OutputDifference("Y", difference, 0.0, 1e-4, False, "shapes differ"),))
    verdict = Verdict(False, "spec", (run("normal", 0.0), bad))
    assert sentences.verdict(verdict).startswith(
        "NOT equal to the original as run by the ONNX specification (NumPy): 1 of 2"
    )
    shown = proof_text.report(verdict)
    assert "probe ramp on onnxruntime: output 'Y' differs by" in shown
    assert "shapes differ" in shown
    json.loads(as_json.report(verdict), parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))
    assert "NO" in markdown.report(verdict)
    assert "NO" in html.report(verdict)


def test_rewrites_are_grouped() -> None:
    shown = proof_text.report(dataclasses.replace(conversion(None), written=True))
    assert "  rewrote  PF101 implicit-same-padding: 2 x Conv, 1 x MaxPool\n" in shown
    assert "  refused  PF101 implicit-same-padding: main/conv (Conv): reason conv\n" in shown
    assert "  note     note conv\n" in shown
    assert "WITHOUT PROOF" in shown
    assert "Nothing was written to conv-out.onnx." in proof_text.report(conversion(None))


def test_findings_are_grouped_by_model_and_rule_and_hints_printed_once_in_each() -> None:
    report = CheckReport("m n.onnx", "onnx", [finding("a"), finding("bb"), finding("c", rule="PF102")])
    shown = text.findings([report, CheckReport("clean.onnx", "onnx")])
    assert shown.splitlines()[:7] == [
        "m n.onnx",
        "  PF101 implicit-same-padding: 2 warnings",
        "    main/a   Conv  message of a",
        "    main/bb  Conv  message of bb",
        "    hint: h",
        "  PF102 implicit-same-padding: 1 warning",
        "    main/c  Conv  message of c",
    ]
    assert "  fix: padfix convert --in-place 'm n.onnx'\n" in shown
    assert shown.endswith("3 findings (3 warnings) in 2 models; padfix convert rewrites 3.\n")


def test_colours_change_nothing_but_colour() -> None:
    report = CheckReport("m.onnx", "onnx", [finding("a"), finding("b", rule="PF102")])
    coloured = text.findings([report], style=Style(colour=True))
    assert "\x1b[33mPF101\x1b[0m" in coloured
    assert re.sub(r"\x1b\[[0-9;]*m", "", coloured) == text.findings([report])


def test_the_worst_rules_come_first_and_the_end_says_whether_it_is_good() -> None:
    bad = dataclasses.replace(finding("d", rule="PF110"), severity=Severity.ERROR)
    note = dataclasses.replace(finding("e", rule="PF100"), severity=Severity.INFO)
    report = CheckReport("m.onnx", "onnx", [note, finding("a"), bad])
    style = Style(marks=True)
    shown = text.findings([report], style=style)
    assert re.findall(r"^  (PF\d+)", shown, re.MULTILINE) == ["PF110", "PF101", "PF100"]
    assert "\n\u2717 3 findings (1 error, 1 warning, 1 info) in 1 model" in shown
    assert "\u2713 1 finding (1 info)" in text.findings([CheckReport("m.onnx", "onnx", [note])], style=style)
    lenient = text.findings([CheckReport("m.onnx", "onnx", [finding("a")])], style=style, fail_on=Severity.ERROR)
    assert "\u2713 1 finding (1 warning)" in lenient


def test_the_summary_counts_what_the_baseline_holds() -> None:
    assert sentences.summary([CheckReport("m", "onnx", [], 3)]) == "No new findings in 1 model; 3 more in the baseline."
    assert sentences.summary([CheckReport("m", "onnx", [finding()], 2)]).endswith("rewrites 1; 2 more in the baseline.")


def test_json_of_check_lists_findings_of_all_models() -> None:
    reports = [CheckReport("a.onnx", "onnx", [finding()]), CheckReport("b.onnx", "onnx", [finding()])]
    document = json.loads(as_json.findings(reports, [("c.onnx", SourceError("broken", "fetch"))]))
    assert next(iter(document)) == "schema"
    assert [each["source"] for each in document["findings"]] == ["a.onnx", "b.onnx"]
    assert document["errors"][0]["source"] == "c.onnx"
    single = json.loads(as_json.findings(reports[:1]))
    assert single["source"] == "a.onnx"
    keys = {"rule", "name", "severity", "graph", "node", "op_type", "message", "fixable", "hint"}
    assert keys <= set(single["findings"][0])


class _Page(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)


def test_nothing_from_a_model_becomes_markup() -> None:
    verdict = Verdict(False, "spec", (run(EVIL, 1.0, 1e-4, EVIL),), (EVIL,))
    page = _Page()
    page.feed(html.report(conversion(verdict, EVIL)))
    assert "script" not in page.tags
    report = CheckReport(EVIL, "onnx", [finding(EVIL)])
    for shown in (
        proof_text.report(conversion(verdict, EVIL)),
        markdown.report(conversion(verdict, EVIL)),
        markdown.findings([report], [(EVIL, SourceError(EVIL))]),
        github.findings([report], [(EVIL, SourceError(EVIL))]),
    ):
        assert all(each.isprintable() or each == "\n" for each in shown)
    rows = [line for line in markdown.findings([report]).splitlines() if line.startswith("|")]
    assert {line.replace("\\|", "").count("|") for line in rows} == {6}
    assert "<script>" not in markdown.report(conversion(verdict, EVIL)).replace("\\<", "")


def test_github_annotations() -> None:
    shown = github.findings([CheckReport("a,b.onnx", "onnx", [finding("50%")])])
    assert shown == (
        "::warning file=a%2Cb.onnx,line=1,title=PF101 implicit-same-padding::main/50%25 (Conv): message of 50%25 "
        "Hint: h\n"
    )


def test_columns() -> None:
    assert aligned([("a", "bb", ""), ("ccc", "d", "e")]) == "a    bb\nccc  d   e\n"
    assert aligned([]) == ""


def test_operator_table_and_configuration() -> None:
    records = [
        OpRecord("c\x1b", "Conv", "main", (3, None), (1, 2), (1, 1), "SAME", (1, None, 1, None), "NHWC"),
        OpRecord("p", "AvgPool", "main", (2, 3), (2, 1), (1, 1), "VALID", (0, 0, 0, 0), "NHWC"),
        OpRecord("q", "MaxPool", "main/if.then_branch", (5,), (2,), (1,), "SAME_UPPER", (None, None), "NCW"),
        OpRecord("r", "Resize", "main", None, None, None, "", None, ""),
        OpRecord("s", "MaxPool3D", "main", (1, 2, 3), (4, 5, 6), (1, 1, 1), "SAME", (0,) * 6, "NDHWC"),
    ]
    lines = operators.table(records).splitlines()
    assert lines[0].split() == list(operators.HEAD)
    assert lines[1].split() == ["c\\x1b", "Conv", "3x?", "1,2", "1,1", "SAME", "1,?,1,?", "NHWC"]
    assert lines[3].startswith("main/if.then_branch/q ")
    assert lines[4].split() == ["r", "Resize", "-", "-", "-", "-", "-", "-"]
    blocks = operators.config(records).split("\n\n")
    assert (
        blocks[0] == "type: AvgPool\nkernel_h: 2\nkernel_w: 3\npadding: VALID\nstride_h: 2\nstride_w: 1\nlayout: NHWC"
    )
    assert blocks[1].splitlines()[1:3] == ["kernel_h: 1", "kernel_w: 5"]
    assert blocks[2].splitlines()[1:4] == ["kernel_d: 1", "kernel_h: 2", "kernel_w: 3"]
    assert len(blocks) == 3
    assert operators.table([]) == "No windowed or resampling operators.\n"
    assert operators.config([]) == ""


def test_catalogue_lists_every_rule() -> None:
    table = catalogue.markdown(RULES).splitlines()
    assert len(table) == len(RULES) + 2
    for rule, line in zip(RULES, table[2:], strict=True):
        assert line.startswith(f"| {rule.code} | {rule.name} | {rule.severity.value} |")
        assert catalogue.summary(rule) in line.replace("\\|", "|")
    assert len(catalogue.text(RULES).splitlines()) == len(RULES)
