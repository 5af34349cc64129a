"""Every fact that a report states is checked against the data of the same run, read back from the rendered page."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jsonschema
import onnx
import pytest

import padfix
from padfix.cli.group import cli, run
from padfix.reports import html, markdown, text
from padfix.reports import json as as_json
from padfix.results import CheckReport, ConvertReport, Verdict
from tests.support.read_pages import Said, of_html, of_markdown

ROOT = Path(__file__).parents[2]
SAME_CNN = ROOT / "fixtures" / "onnx" / "same_cnn.onnx"
SCHEMA = json.loads((ROOT / "padfix" / "schemas" / "padfix-1.schema.json").read_text(encoding="utf-8"))
CERTIFIED = {"certificate": True, "layers": True}


def read_back(result: ConvertReport | Verdict) -> tuple[Said, dict[str, Any], str]:
    """Return what the page says, the data of the same result, and the text report; both pages say the same."""
    data = json.loads(as_json.report(result))
    jsonschema.validate(data, SCHEMA)
    said = of_html(html.report(result))
    assert said == of_markdown(markdown.report(result))
    return said, data, text.report(result, verbose=True)


def sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def number(value: float | None) -> str:
    return "inf" if value is None else f"{value:.3g}"


def pads_of(words: str) -> list[int] | None:
    """Return the pads that the words of a picture state, all begins and then all ends."""
    found = re.search(r"pads of ([\d, ]+) before and ([\d, ]+) behind", words)
    return [int(each) for side in found.groups() for each in side.split(",")] if found else None


def holds_pictures(said: Said, findings: Sequence[dict[str, Any]]) -> None:
    """Each picture is of what the findings in its caption say, wherever they state pads."""
    for caption, words in said.pictures:
        for place, rule in re.findall(r"(\S+) \((PF\d+)\)", caption):
            (finding,) = [
                each for each in findings if (f"{each['graph']}/{each['node']}", each["rule"]) == (place, rule)
            ]
            assert words.startswith(finding["op_type"])
            stated = re.search(r"(?:here they are|could be its own pads=) ?\[([-\d, ]+)\]", finding["message"])
            if stated:
                assert pads_of(words) == [int(each) for each in stated.group(1).split(",")], finding["message"]


def holds_rewrites(said: Said, data: dict[str, Any], title: str) -> None:
    rows = said.table(title)
    assert len(rows) == len(data["rewrites"])
    for row, rewrite in zip(rows, data["rewrites"], strict=True):
        assert row["Rule"] == f"{rewrite['rule']} {rewrite['name']}"
        assert row["Node"] == f"{rewrite['graph']}/{rewrite['node']}"
        assert (row["Operator"], row["Finding"]) == (rewrite["op_type"], rewrite["message"])
        proof = rewrite["proof"]
        own = row["Proof on its own"]
        if proof is None:
            assert own == "not proven on its own"
        else:
            witnesses = ", ".join(proof["witnesses"])
            assert own == (
                f"agrees on {proof['cases']} case{'s' * (proof['cases'] != 1)} ({witnesses}), "
                f"largest difference {number(proof['max_abs_diff'])}"
            )


def holds_certificate(said: Said, certificate: dict[str, Any], source: Path, output: Path | None) -> None:
    facts = dict(said.facts)
    assert facts["Source SHA-256"] == f"{sha256(source)} ({source.name})"
    assert facts["Result SHA-256"] == f"{certificate['output'][0]['sha256']} ({certificate['output'][0]['name']})"
    if output is not None:
        assert facts["Result SHA-256"].startswith(sha256(output))
    assert facts["Date"] == certificate["date"]
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00", facts["Date"])
    assert facts["Versions"] == ", ".join(f"{name} {version}" for name, version in certificate["versions"].items())
    assert f"padfix {padfix.__version__}" in facts["Versions"]
    assert facts["Seed"] == str(certificate["seed"])


def holds_verdict(said: Said, verdict: dict[str, Any], shown: str) -> None:
    """The numbers of the sentence and of both tables are those that the runs give when they are counted here."""
    measured = [(run, output) for run in verdict["runs"] for output in run["outputs"]]
    rows = said.table(f"All {len(verdict['runs'])} run{'s' * (len(verdict['runs']) != 1)}")
    assert [(row["Probe"], row["Run by"], row["Output"]) for row in rows] == [
        (run["probe"], run["candidate"], output["name"]) for run, output in measured
    ]
    for row, (_, output) in zip(rows, measured, strict=True):
        assert row["Equal"] == ("yes" if output["equivalent"] else "NO")
        assert row["Largest difference"] == number(output["max_abs_diff"])
        assert row["Allowed"] == number(output["tolerance"])

    def distance(output: dict[str, Any]) -> float:
        return float("inf") if output["max_abs_diff"] is None else float(output["max_abs_diff"])

    def share(output: dict[str, Any]) -> tuple[bool, float]:
        allowed, difference = output["tolerance"], distance(output)
        return (not output["equivalent"], difference / allowed if allowed else difference and float("inf"))

    (summary,) = [rows for _, head, rows in said.tables if "Closest to its limit" in head]
    for name, equal, closest, allowed, where, largest, where_largest, _ in summary:
        mine = [(run, output) for run, output in measured if output["name"] == name]
        assert equal == ("yes" if all(output["equivalent"] for _, output in mine) else "NO")
        run, output = max(mine, key=lambda each: share(each[1]))
        assert (closest, allowed) == (number(output["max_abs_diff"]), number(output["tolerance"]))
        assert where == f"{run['probe']}, {run['candidate']}"
        run, output = max(
            mine, key=lambda each: float("inf") if each[1]["max_abs_diff"] is None else each[1]["max_abs_diff"]
        )
        assert (largest, where_largest) == (number(output["max_abs_diff"]), f"{run['probe']}, {run['candidate']}")

    (sentence,) = [words for words in said.words if words.startswith(("Equal to", "NOT equal to"))]
    assert sentence in shown, "the text report says the same"
    assert sentence.startswith("Equal") is verdict["equivalent"]
    run, output = max(measured, key=lambda each: share(each[1]))
    limit = f"{number(output['max_abs_diff'])} of {number(output['tolerance'])} allowed"
    where = f"(output '{output['name']}', probe '{run['probe']}')"
    if verdict["equivalent"]:
        probes = len({run["probe"] for run in verdict["runs"]})
        assert f": {probes} probe" in sentence
        largest = max(output["max_abs_diff"] for _, output in measured)
        assert f"largest difference: {number(largest)};" in sentence
        assert not largest or f"closest to its limit: {limit} {where};" in sentence
        holds_stretches(sentence, verdict["stretches"])
    else:
        failed = sum(not all(output["equivalent"] for output in run["outputs"]) for run in verdict["runs"])
        assert f"{failed} of {len(verdict['runs'])} runs differ." in sentence
        assert f"Furthest beyond its limit: {limit} {where}" in sentence


def holds_stretches(sentence: str, stretches: dict[str, Any]) -> None:
    if stretches["same"]:
        assert f"{stretches['same']} stretch" in sentence
    if stretches["judged"] and stretches["largest"]:
        worst = stretches["worst"]["difference"]
        assert f"{number(worst['max_abs_diff'])} of {number(worst['tolerance'])} allowed" in sentence
        assert sentence.endswith(f"largest difference: {number(stretches['largest'])}.")
        assert stretches["largest"] >= worst["max_abs_diff"]


def holds_layers(said: Said, verdict: dict[str, Any]) -> None:
    ((_, words),) = [(caption, words) for caption, words in said.pictures if caption.startswith("Error by layer")]
    layers = [each["difference"] for each in verdict["layers"]]
    assert words.startswith(f"Differences of {len(layers)} inner tensors")
    assert f"; {sum(not each['equivalent'] for each in layers)} are outside their tolerance" in words


def test_a_conversion(tmp_path: Path) -> None:
    output = tmp_path / "out.onnx"
    said, data, shown = read_back(padfix.convert(SAME_CNN, output, **CERTIFIED))
    assert said.words[0] == f"Wrote {output} (opset {data['opset']})." and data["written"]
    assert onnx.load(output).opset_import[0].version == data["opset"]
    facts = dict(said.facts)
    assert facts["Source"] == f"{SAME_CNN} (ONNX)"
    assert facts["Result"] == f"{output} (opset {data['opset']})"
    assert facts["Target"] == data["target"]
    holds_certificate(said, data["certificate"], SAME_CNN, output)
    holds_rewrites(said, data, "Rewritten")
    holds_verdict(said, data["verdict"], shown)
    holds_layers(said, data["verdict"])
    assert len(said.pictures) == 5
    holds_pictures(said, data["rewrites"])
    for rule in {each["rule"] for each in data["rewrites"]}:
        (line,) = [line for line in shown.splitlines() if line.startswith(f"  rewrote  {rule} ")]
        stated = sum(int(each) for each in re.findall(r"(\d+) x", line))
        assert stated == sum(each["rule"] == rule for each in data["rewrites"])


def test_a_conversion_whose_proof_failed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from padfix.geometry import padding

    monkeypatch.setattr("padfix.rewrite.engine._Pipeline._prove", lambda self, site, rewrite: None)
    monkeypatch.setattr(padding, "split_same_padding", lambda total, *, upper: (total, 0))
    output = tmp_path / "out.onnx"
    with pytest.raises(padfix.NotEquivalent) as caught:
        padfix.convert(SAME_CNN, output, **CERTIFIED)
    assert caught.value.report is not None
    said, data, shown = read_back(caught.value.report)
    assert not output.exists() and not data["written"]
    assert said.words[:3] == [
        f"Nothing was written to {output}.",
        caught.value.message,
        f"Hint: {caught.value.hint}",
    ]
    assert data["error"] == {"message": caught.value.message, "hint": caught.value.hint, "exit_code": 1}
    holds_certificate(said, data["certificate"], SAME_CNN, None)
    assert "Rewritten" not in said.titles
    assert "rewrote" not in shown and "proven on" not in "".join(said.words)
    holds_rewrites(said, data, "Tried, and not written")
    holds_verdict(said, data["verdict"], shown)
    holds_layers(said, data["verdict"])
    place = data["verdict"]["first_difference"]
    (first,) = [line for line in said.bullets if line.startswith("First difference: ")]
    assert f"'{place['tensor']}', computed by {place['op_type']} '{place['node']}'" in first
    assert number(place["difference"]["max_abs_diff"]) in first
    for position in place["positions"]:
        assert (
            f"At {position['position']}: {position['found']:.6g} instead of {position['expected']:.6g}." in said.bullets
        )


def test_a_conversion_that_came_to_nothing(tmp_path: Path) -> None:
    source = tmp_path / "broken.onnx"
    source.write_bytes(b"\x08\x08no model")
    with pytest.raises(padfix.PadfixError) as caught:
        padfix.convert(source, tmp_path / "out.onnx", **CERTIFIED)
    assert caught.value.report is not None
    said, data, _ = read_back(caught.value.report)
    assert (data["opset"], data["written"], data["verdict"], data["rewrites"]) == (None, False, None, [])
    assert said.words[1] == caught.value.message == data["error"]["message"]


def test_reports_are_kept_whatever_the_outcome(tmp_path: Path) -> None:
    """By the command line: a source that is no model, and an original that nothing can run."""
    broken, dilated = tmp_path / "broken.onnx", SAME_CNN.with_name("dilated_same.onnx")
    broken.write_bytes(b"no model")
    for arguments in (["convert", broken, "-o", tmp_path / "out.onnx"], ["verify", dilated, SAME_CNN]):
        documents = {}
        for ending in ("json", "html", "md"):
            file = tmp_path / f"report.{ending}"
            assert run(cli, [str(each) for each in (*arguments, "--report", file, "--quiet")]) == 2
            documents[ending] = file.read_text(encoding="utf-8")
        data = json.loads(documents["json"])
        jsonschema.validate(data, SCHEMA)
        said = of_html(documents["html"])
        assert said == of_markdown(documents["md"])
        assert any(data["error"]["message"] in words for words in said.words)
        assert f"Hint: {data['error']['hint']}" in said.words
        assert data["error"]["exit_code"] == 2


def test_a_verification(tmp_path: Path) -> None:
    output = tmp_path / "out.onnx"
    padfix.convert(SAME_CNN, output)
    said, data, shown = read_back(padfix.verify(SAME_CNN, output, **CERTIFIED))
    holds_certificate(said, data["certificate"], SAME_CNN, output)
    holds_verdict(said, data, shown)
    model = onnx.load(output)
    stem = next(node for node in model.graph.node if node.name == "stem")
    next(each for each in stem.attribute if each.name == "pads").ints[:] = [1, 1, 0, 0]
    onnx.save(model, tmp_path / "moved.onnx")
    said, data, shown = read_back(padfix.verify(output, tmp_path / "moved.onnx", locate=True, **CERTIFIED))
    assert not data["equivalent"]
    holds_certificate(said, data["certificate"], output, tmp_path / "moved.onnx")
    holds_verdict(said, data, shown)


def checked(reports: Sequence[CheckReport]) -> tuple[Said, dict[str, Any], str]:
    data = json.loads(as_json.findings(reports))
    jsonschema.validate(data, SCHEMA)
    said = of_html(html.findings(reports))
    assert said == of_markdown(markdown.findings(reports))
    return said, data, text.findings(reports)


def test_a_check_with_many_findings(tmp_path: Path) -> None:
    """All models of the fixtures at once: every rule that they have findings of."""
    reports = []
    for number_, file in enumerate(sorted((ROOT / "fixtures").glob("PF*/*/before.onnxtxt"))):
        path = tmp_path / f"{number_}.onnx"
        onnx.save(onnx.parser.parse_model(file.read_text(encoding="utf-8")), path)
        reports.append(padfix.check(path))
    said, data, shown = checked(reports)
    found = data["findings"]
    assert len(found) > 40
    severities = [each["severity"] for each in found]
    parts = [f"{severities.count(each)} {each}s" for each in ("error", "warning")]
    parts.append(f"{severities.count('info')} info")
    assert said.words[0].startswith(f"{len(found)} findings ({', '.join(parts)}) in {len(reports)} models")
    assert said.words[0] in shown
    stated = re.search(r"padfix convert rewrites (\d+)", said.words[0])
    assert stated and int(stated.group(1)) == sum(report.fixable for report in reports)
    rows = [(title, *row) for title, _, rows in said.tables for row in rows]
    grouped: dict[tuple[str, str], list[tuple[str, ...]]] = {}
    for each in found:
        title = f"{each['rule']} {each['name']}"
        told = f"{each['message']} {each['hint']}".strip()
        row = (title, each["severity"], f"{each['graph']}/{each['node']}", each["op_type"], told)
        grouped.setdefault((each["source"], title), []).append(row)
    assert rows == [row for rows in grouped.values() for row in rows], "by model and rule, in the order of the graph"
    assert [title for title in said.titles if title.startswith("PF")] == [title for _, title in grouped]
    assert len(said.commands) == sum(bool(report.fixable) for report in reports)
    clean = [report.source for report in reports if not report.findings]
    assert said.bullets == clean
    drawn = 0
    for report in reports:
        alone, own, _ = checked([report])
        holds_pictures(alone, own["findings"])
        drawn += len(alone.pictures)
    assert drawn == len(said.pictures) > 20


def test_a_check_that_found_nothing() -> None:
    said, data, shown = checked([padfix.check(SAME_CNN.with_name("explicit_cnn.onnx"))])
    assert data["findings"] == [] == said.tables
    assert said.words == ["No findings in 1 model."] == shown.strip().splitlines()
    assert said.bullets == data["sources"]
