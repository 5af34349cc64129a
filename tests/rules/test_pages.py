"""The page of every rule is complete, and its example is what padfix really makes of it."""

from __future__ import annotations

import json
import re
from pathlib import Path

import jsonschema
import onnx
import pytest
from onnx import numpy_helper, parser, printer

import padfix
from padfix.reports import pages
from padfix.rules.base import Rule
from padfix.rules.registry import RULES
from tests.rules.test_sparse_constants import sparse_of

SCHEMA = json.loads((Path(padfix.__file__).parent / "schemas" / "padfix-1.schema.json").read_text(encoding="utf-8"))

by_code = pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.code)

QUOTE = ' "'
"""What stands around the name of an input; nothing else is left of one that is left out."""


def operators(text: str) -> list[str]:
    """Return operator, attributes and number of given inputs of each node; names are free, attributes without types."""
    text = re.sub(r":\s*(ints?|floats?|strings?)\s*=", " =", " ".join(text.split()))
    return [
        f"{name} {''.join(attributes.split())} {len([each for each in inputs.split(',') if each.strip(QUOTE)])}"
        for name, attributes, inputs in re.findall(r"= (\w+)\s*((?:<[^>]*>)?)\s*\(([^)]*)\)", text)
    ]


@by_code
def test_the_page_has_every_part(rule: Rule) -> None:
    page = pages.page(rule)
    assert page.summary.endswith(".")
    assert "padfix" in page.text, "what padfix does about it"
    assert page.references, "References, a list of links"
    assert all(re.search(r"<https://[^> ]+>$", link) for link in page.references)
    if rule.fixable:
        assert page.refused, "Refused: when it declines"
        assert page.before, "Before, opset N: an example in ONNX's text format"
        assert page.after, "After: the nodes that it becomes"


@pytest.mark.parametrize("rule", [rule for rule in RULES if rule.fixable], ids=lambda rule: rule.code)
def test_the_example_is_true(rule: Rule, tmp_path: Path) -> None:
    page = pages.page(rule)
    before = parser.parse_model(
        f'<ir_version: 8, opset_import: ["" : {page.before_opset}, "local" : 1, "com.microsoft" : 1], '
        f'producer_name: "pytorch">\n{page.before}'
    )
    keep_sparse(before.graph)
    onnx.checker.check_model(before)
    onnx.save(before, tmp_path / "before.onnx")
    found = padfix.check(tmp_path / "before.onnx", select=[rule.code], target=rule.example_target).findings
    assert rule.code in {finding.rule for finding in found}
    target = "portable" if "minimum_opset" in rule.opt_in else rule.example_target
    wanted = {"reference": "spec", "target": target, "pads": rule.opt_in.get("pads")}
    padfix.convert(tmp_path / "before.onnx", tmp_path / "after.onnx", **wanted)
    after = printer.to_text(onnx.load(tmp_path / "after.onnx").graph)
    assert operators(page.after) == operators(after)
    if rule.code not in (
        "PF303",
        "PF310",
        "PF311",
    ):  # of what is said of values and of the model
        assert operators(page.after) != operators(page.before)


def keep_sparse(graph: onnx.GraphProto) -> None:
    """Keep sparse what a page calls so, for which the text of a graph has no words."""
    for tensor in [each for each in graph.initializer if each.name == "sparse"]:
        graph.sparse_initializer.append(sparse_of(numpy_helper.to_array(tensor), tensor.name))
        graph.initializer.remove(tensor)


@by_code
@pytest.mark.sweep(4)
def test_formats_hold_the_same(rule: Rule) -> None:
    document = json.loads(pages.json(rule))
    jsonschema.validate(document, SCHEMA)
    for shown in (pages.text(rule), pages.markdown(rule)):
        assert f"{rule.code} {rule.name}" in shown
        for part in (document["summary"], document["text"], *document["after"].splitlines()[:1]):
            assert part in shown or part.replace("\n", " ") in shown.replace("\n", " ")
        assert all(link in shown for link in document["references"])
