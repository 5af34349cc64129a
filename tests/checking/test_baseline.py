"""Baselines hold the findings that are known, also when other nodes are renamed, added or removed."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import onnx
import pytest

import padfix
from padfix.checking import baseline
from padfix.errors import UsageError
from padfix.results import CheckReport, Finding, Severity

FIXTURES = Path(__file__).parents[2] / "fixtures" / "onnx"


def finding(node: str, message: str = "m", fingerprint: str = "") -> Finding:
    return Finding(
        "PF101", "n", Severity.WARNING, "main", node, "Conv", message, fingerprint=fingerprint or f"print of {node}"
    )


def held(tmp_path: Path, before: list[Finding], after: list[Finding]) -> tuple[list[str], int]:
    """Return the nodes that are new after a baseline of ``before``, and the stale entries."""
    source = str(tmp_path / "m.onnx")
    file = tmp_path / "baseline.json"
    file.write_text(baseline.render([CheckReport(source, "onnx", before)], tmp_path))
    (report,), stale = baseline.Baseline(file).apply([CheckReport(source, "onnx", after)])
    assert report.baselined == len(after) - len(report.findings)
    return [each.node for each in report.findings], stale


def test_what_is_known_is_held_and_what_is_new_is_not(tmp_path: Path) -> None:
    known = [finding("a"), finding("b", "other")]
    assert held(tmp_path, known, known) == ([], 0)
    assert held(tmp_path, known, [*known, finding("c", "new")]) == (["c"], 0)
    assert held(tmp_path, known, [finding("a")]) == ([], 1)
    assert held(tmp_path, [], [finding("a")]) == (["a"], 0)


def test_an_entry_holds_one_finding_only(tmp_path: Path) -> None:
    twins = [finding("a", fingerprint="same"), finding("b", fingerprint="same")]
    assert held(tmp_path, twins[:1], twins) == (["b"], 0)
    assert held(tmp_path, twins, twins) == ([], 0)


def test_a_renamed_node_is_held_by_the_entry_whose_finding_is_gone(tmp_path: Path) -> None:
    assert held(tmp_path, [finding("a")], [finding("a2")]) == ([], 0)
    assert held(tmp_path, [finding("a")], [finding("a2", "other numbers")]) == (["a2"], 1)
    assert held(tmp_path, [finding("a")], [finding("a"), finding("a2")]) == (["a2"], 0)


def test_another_model_is_not_held(tmp_path: Path) -> None:
    file = tmp_path / "b.json"
    file.write_text(baseline.render([CheckReport(str(tmp_path / "m.onnx"), "onnx", [finding("a")])], tmp_path))
    (report,), stale = baseline.Baseline(file).apply([CheckReport(str(tmp_path / "n.onnx"), "onnx", [finding("a")])])
    assert (len(report.findings), stale) == (1, 0)


def test_the_file_moves_with_the_folder_and_reads_line_by_line(tmp_path: Path) -> None:
    text = baseline.render(
        [CheckReport(str(tmp_path / "x" / "m.onnx"), "onnx", [finding("b"), finding("a")])], tmp_path
    )
    document = json.loads(text)
    assert [entry["node"] for entry in document["findings"]] == ["a", "b"]
    assert {entry["source"] for entry in document["findings"]} == {"x/m.onnx"}
    assert len([line for line in text.splitlines() if '"rule"' in line]) == 2


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        '{"kind": "padfix-baseline", "schema": 2}',
        '{"kind": "padfix-baseline", "schema": 1}',
        '{"kind": "padfix-baseline", "schema": 1, "findings": [{"rule": "PF101"}]}',
    ],
)
def test_something_else_is_refused(tmp_path: Path, text: str) -> None:
    file = tmp_path / "b.json"
    file.write_text(text)
    with pytest.raises(UsageError):
        baseline.Baseline(file).apply([])
    with pytest.raises(UsageError, match="can't be read"):
        baseline.Baseline(tmp_path / "missing.json").apply([])


def rewritten(tmp_path: Path, change: str) -> Path:
    """Return a copy of a model whose nodes other than 'body' were renamed, or moved by one that was put first."""
    model = onnx.load(FIXTURES / "same_cnn.onnx")
    if change == "renamed":
        for node in model.graph.node:
            node.name = node.name if node.name == "body" else f"other/{node.name}"
    elif change == "unnamed":
        for node in model.graph.node:
            node.name = ""
    elif change == "unnamed and moved":
        for node in model.graph.node:
            node.name = ""
        model.graph.node.insert(0, onnx.helper.make_node("Constant", [], ["new"], value_int=1))
    path = tmp_path / f"{change}.onnx"
    onnx.save(model, path)
    return path


def prints(path: Path) -> dict[str, str]:
    return {each.node: each.fingerprint for each in padfix.check(path).findings}


def test_fingerprints_of_real_findings(tmp_path: Path) -> None:
    original = prints(FIXTURES / "same_cnn.onnx")
    assert len(set(original.values())) == len(original) == 4
    renamed = prints(rewritten(tmp_path, "renamed"))
    assert renamed["body"] == original["body"]
    assert list(prints(rewritten(tmp_path, "unnamed")).values()) == list(
        prints(rewritten(tmp_path, "unnamed and moved")).values()
    )
    assert Finding("PF1", "n", Severity.INFO, "main/If_1.body", "x", "C", "m").fingerprint == (
        Finding("PF1", "n", Severity.INFO, "main/If_2.body", "x", "C", "other").fingerprint
    )
    assert list(prints(rewritten(tmp_path, "unnamed"))) != list(prints(rewritten(tmp_path, "unnamed and moved")))


def test_a_whole_renaming_is_held_too(tmp_path: Path) -> None:
    file = tmp_path / "b.json"
    report = padfix.check(FIXTURES / "same_cnn.onnx")
    file.write_text(baseline.render([report], tmp_path))
    renamed = padfix.check(rewritten(tmp_path, "renamed"))
    (after,), stale = baseline.Baseline(file).apply([dataclasses.replace(renamed, source=report.source)])
    assert (after.findings, after.baselined, stale) == ([], 4, 0)
