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
from padfix.reports import html, markdown, proof_text, text
from padfix.reports import json as as_json
from padfix.results import CheckReport, ConvertReport, Verdict
from tests.support.read_pages import Said, SaidItem, of_html, of_markdown

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
    return said, data, proof_text.report(result, verbose=True)


def sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def number(value: float | None) -> str:
    return "inf" if value is None else f"{value:.3g}"


def pads_of(words: str) -> list[int] | None:
    """Return the pads that the words of a picture state, all begins and then all ends."""
    found = re.search(r"pads of ([\d, ]+) before and ([\d, ]+) behind", words)
    return [int(each) for side in found.groups() for each in side.split(",")] if found else None


def place_of(finding: dict[str, Any]) -> str:
    return f"{finding['graph']}/{finding['node'].removeprefix('/')}"


def items_of(said: Said, titles: Sequence[str]) -> list[SaidItem]:
    """Return the items below some titles."""
    return [item for item in said.items if item.title in titles]


def holds_items(said: Said, findings: Sequence[dict[str, Any]], remark: str = "") -> None:
    """Each finding is told once, by rule and in the order of the graph, folded only with others that say the same."""
    titles = list(dict.fromkeys(f"{each['rule']} {each['name']}" for each in findings))
    assert [title for title in said.titles if title.startswith("PF")] == titles
    for title in titles:
        mine = [each for each in findings if f"{each['rule']} {each['name']}" == title]
        items = items_of(said, [title])
        assert sorted(place for item in items for place in item.places) == sorted(map(place_of, mine))
        firsts = [place_of(each) for each in mine if place_of(each) in [item.place for item in items]]
        assert firsts == [item.place for item in items], "in the order of the graph"
        assert f"{len(mine)} finding{'s' * (len(mine) != 1)}. " in " ".join(said.words)
        for item in items:
            for place in item.places:
                holds_item(item, [each for each in mine if place_of(each) == place], said.items)


def holds_item(item: SaidItem, findings: Sequence[dict[str, Any]], items: Sequence[SaidItem]) -> None:
    """What an item says is what one of the findings at its place says, its picture included."""
    (finding, *_) = [each for each in findings if each["message"] == item.text]
    assert (item.op_type, item.severity) == (finding["op_type"], finding["severity"])
    assert item.before == finding.get("before", [])
    assert item.after == finding.get("after", [])
    words = item.words
    found = re.fullmatch(r"The picture is that of (.*)\.", words)
    if found:
        (words,) = [each.words for each in items if each.place == found.group(1) and each.words[:3] != "The"]
    elif words:
        assert words.startswith(finding["op_type"])
    stated = re.search(r"(?:here they are|could be its own pads=) ?\[([-\d, ]+)\]", finding["message"])
    if stated and words:
        assert pads_of(words) == [int(each) for each in stated.group(1).split(",")], finding["message"]


def holds_rewrites(said: Said, data: dict[str, Any], title: str) -> None:
    rewrites = data["rewrites"]
    assert title in said.titles
    holds_items(said, rewrites)
    for item in said.items:
        proofs = [each["proof"] for each in rewrites if place_of(each) in item.places and each["message"] == item.text]
        if None in proofs:
            assert item.remark == "Not proven on its own."
            continue
        several, worst = len(item.places) > 1, max(proof["max_abs_diff"] for proof in proofs)
        cases = {
            f"{each['cases']} case{'s' * (each['cases'] != 1)} ({', '.join(each['witnesses'])})" for each in proofs
        }
        assert item.remark == (
            f"Proof on its own: {'each ' * several}agrees on {cases.pop()}, "
            f"largest difference {'of all ' * several}{number(worst)}."
        )
        assert not cases, "folded where as much was proven of each"
    explicit = [each for each in rewrites if each["rule"] == "PF101" and each["after"]]
    for each in explicit:
        (stated,) = re.findall(r"here they are (\[[-\d, ]+\])", each["message"])
        assert f"pads={stated}" in each["after"][-1] and "auto_pad" not in each["after"][-1]
        assert "auto_pad=SAME" in each["before"][-1]


def holds_map(said: Said, source: Path, findings: Sequence[dict[str, Any]], first: str = "") -> None:
    """The map has every node of the graph once, and what is marked are the nodes that something is said of."""
    every = [(node.name or f"#{index}", node) for index, node in enumerate(onnx.load(source).graph.node)]
    nodes = [name for name, node in every if node.op_type != "Constant"]
    marked = {each["node"] for each in findings if each["graph"] == "main"} | ({first} if first else set())
    marked &= set(nodes)
    ((caption, words),) = [each for each in said.pictures if each[0].startswith("main: ")]
    assert caption == f"main: {len(nodes)} node{'s' * (len(nodes) != 1)} in order, {len(marked)} marked"
    assert words.startswith(f"Map of main: {len(nodes)} nodes from top to bottom; marked: ")
    stated = re.search(r"marked: ([^.]*)\.", words)
    assert stated and sum(int(each) for each in re.findall(r"(\d+) ", stated.group(1))) == len(marked)
    counted = shown = 0
    for line in said.lines:
        if line.startswith(("Inputs: ", "Outputs: ")):
            continue
        several = re.match(r"(\d+) times |(\d+) nodes: ", line)
        many = re.search(r"\): (\d+) of (\d+) nodes marked, ", line)
        period = sum(int(n or 1) for n in re.findall(r"(?:(\d+) x )?\w+", re.sub(r"^\d+ times | \(.*", "", line)))
        size = 1 if several is None else int(several.group(2) or 0) or int(several.group(1)) * period
        assert many is None or int(many.group(2)) == size
        counted += size
        shown += int(many.group(1)) if many else (": " in line.rpartition(")")[2] and size)
    assert (counted, shown) == (len(nodes), len(marked))


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
    facts = re.split(r"; (?=closest|largest|result)|\. (?=Inside)", sentence.rstrip("."))
    assert all(fact in shown for fact in facts), "the text report says the same"
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


def holds_layers(said: Said, verdict: dict[str, Any], source: Path) -> None:
    ((_, words),) = [(caption, words) for caption, words in said.pictures if caption.startswith("Error by layer")]
    layers = [each["difference"] for each in verdict["layers"]]
    assert words.startswith(f"Differences of {len(layers)} inner tensors")
    assert f"; {sum(not each['equivalent'] for each in layers)} are outside their tolerance" in words
    order = [name for node in onnx.load(source).graph.node for name in node.output]
    assert [each["name"] for each in layers] == sorted((each["name"] for each in layers), key=order.index)


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
    holds_layers(said, data["verdict"], SAME_CNN)
    assert len([item for item in said.items if item.words]) == 4
    holds_map(said, SAME_CNN, data["rewrites"])
    assert said.counts[0] == f"{len(data['rewrites'])} rewritten"
    assert said.counts[1] == f"equal in {len(data['verdict']['runs'])} runs"
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
    assert said.words[:2] == [f"Nothing was written to {output}.", caught.value.message]
    assert caught.value.hint == "Nothing was written."
    assert said.counts == [f"{len(data['rewrites'])} tried", "NOT equal"]
    holds_map(said, SAME_CNN, data["rewrites"], data["verdict"]["first_difference"]["node"])
    assert any("first difference" in line for line in said.lines)
    assert data["error"] == {"message": caught.value.message, "hint": caught.value.hint, "exit_code": 1}
    holds_certificate(said, data["certificate"], SAME_CNN, None)
    assert "Rewritten" not in said.titles
    assert "rewrote" not in shown and "proven on" not in "".join(said.words)
    holds_rewrites(said, data, "Tried, and not written")
    holds_verdict(said, data["verdict"], shown)
    holds_layers(said, data["verdict"], SAME_CNN)
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
    holds_map(said, output, [], data["first_difference"]["node"])
    holds_layers(said, data, output)


def test_layers_stand_in_the_order_of_the_nodes(tmp_path: Path) -> None:
    """Also where one of several that only get another version is judged before the others."""
    text = """<ir_version: 8, opset_import: ["" : 9]> g (float[1,2,8,8] X) => (float[1,A,B,C] Y)
    <float[4] scales = {1, 1, 2, 2}> {
        first = MaxPool <kernel_shape = [2, 2]> (X)
        grown = Upsample <mode = "nearest"> (first, scales)
        second = MaxPool <kernel_shape = [2, 2]> (grown)
        Y = AveragePool <kernel_shape = [3, 3], auto_pad = "SAME_UPPER"> (second)
    }"""
    source, output = tmp_path / "versions.onnx", tmp_path / "out.onnx"
    onnx.save(onnx.parser.parse_model(text), source)
    said, data, _ = read_back(padfix.convert(source, output, **CERTIFIED))
    assert [each["difference"]["name"] for each in data["verdict"]["layers"]] == ["first", "grown", "second", "Y"]
    holds_layers(said, data["verdict"], source)


def checked(reports: Sequence[CheckReport]) -> tuple[Said, dict[str, Any], str]:
    data = json.loads(as_json.findings(reports))
    jsonschema.validate(data, SCHEMA)
    said = of_html(html.findings(reports))
    assert said == of_markdown(markdown.findings(reports, longest=10_000_000))
    return said, data, text.findings(reports)


def test_a_check_with_many_findings(tmp_path: Path) -> None:
    """Every other model of the fixtures at once: many rules that they have findings of."""
    reports = []
    for number_, file in enumerate(sorted((ROOT / "fixtures").glob("PF*/*/before.onnxtxt"))[::2]):
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
    totals = {row["Model"]: [int(row[name]) for name in ("Errors", "Warnings", "Info")] for row in said.table("")}
    for report in reports:
        own = [each["severity"] for each in found if each["source"] == report.source]
        assert totals.get(report.source, [0] * 3) == [own.count(each) for each in ("error", "warning", "info")]
    assert len(said.commands) == sum(bool(report.fixable) for report in reports)
    clean = [report.source for report in reports if not report.findings]
    assert said.bullets == clean
    drawn = [item.words for item in said.items]
    assert sum(map(bool, drawn)) > 20
    mapped = 0
    for report in reports[::3]:
        alone, own, _ = checked([report])
        holds_items(alone, own["findings"])
        for item in alone.items:
            (hint,) = {
                each["hint"] for each in own["findings"] if place_of(each) == item.place if each["message"] == item.text
            }
            assert item.remark == hint
        if alone.lines and all(each["graph"] == "main" for each in own["findings"]):
            holds_map(alone, Path(report.source), own["findings"])
            mapped += 1
        assert all(item.words in drawn for item in alone.items)
    assert mapped > 12


def test_a_check_that_found_nothing() -> None:
    said, data, shown = checked([padfix.check(SAME_CNN.with_name("explicit_cnn.onnx"))])
    assert data["findings"] == [] == said.tables
    assert said.words == ["No findings in 1 model."] == shown.strip().splitlines()
    assert said.bullets == data["sources"]
    assert dict(said.facts)["Rules asked"] == f"{len(data['rules_asked'])} ({', '.join(data['rules_asked'])})"
    assert said.pictures == said.items == said.counts == []
