"""The page of a rule, for the terminal, for programs and for the package's docs; all of it from the rule's docstring.

A docstring holds what the rule finds (the first sentence), why and what is done about it, and then the parts that
:data:`PARTS` names: when it declines, an example before and after, and references.
"""

from __future__ import annotations

import inspect
import re
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass

from padfix.reports import catalogue
from padfix.reports.json import document
from padfix.rules.base import Rule

PARTS = ("Refused", "Before", "After", "References")

HEAD = "<!-- Generated from the rules' docstrings by `padfix rules --write-pages`; change those. -->\n"


@dataclass(frozen=True)
class Page:
    """The parts of a rule's page.

    Attributes:
        summary: What it finds, one sentence.
        text: Why that is a problem, and what padfix does about it.
        refused: When it declines.
        before: An example in ONNX's text format: the graph as it was.
        before_opset: The opset that it is written for.
        after: The nodes that the rule makes of it.
        references: Links with what they are about.
    """

    summary: str
    text: str
    refused: str
    before: str
    before_opset: int
    after: str
    references: tuple[str, ...]


def page(rule: Rule) -> Page:
    """Return the page of ``rule``; a part that its docstring lacks is empty."""
    paragraphs = _docstring(rule).split("\n\n")
    parts: dict[str, list[str]] = {}
    rest: list[str] = []
    current = rest
    for paragraph in paragraphs[1:]:
        name = re.match(r"\w*", paragraph)
        opening = name.group() if name else ""
        if opening in PARTS and re.match(r"\w+[^\n]*:", paragraph):
            current = parts.setdefault(opening, [])
        elif opening == "" and paragraph.startswith((" ", "-")):
            pass  # an indented block or a list goes with what stands above it
        elif current is not rest:
            current = rest
        current.append(paragraph)
    opset = re.search(r"opset (\d+)", parts.get("Before", [""])[0])
    return Page(
        summary=catalogue.summary(rule),
        text="\n\n".join(rest),
        refused="\n\n".join(parts.get("Refused", [])).removeprefix("Refused: "),
        before=_block(parts.get("Before", [])),
        before_opset=int(opset.group(1)) if opset else 0,
        after=_block(parts.get("After", [])),
        references=tuple(re.findall(r"^- (.*)$", "\n\n".join(parts.get("References", [])), re.MULTILINE)),
    )


def text(rule: Rule) -> str:
    """Return the page as it is printed in a terminal: the docstring as it stands, below the rule's name."""
    fixable = "padfix convert rewrites it" if rule.fixable else "report only"
    return f"{rule.code} {rule.name} ({rule.severity.value}; {fixable})\n\n{_docstring(rule)}\n"


def json(rule: Rule) -> str:
    """Return the page as one JSON document."""
    content = page(rule)
    return document(
        {
            **catalogue.entry(rule),
            "text": content.text,
            "refused": content.refused,
            "before": {"opset": content.before_opset, "graph": content.before},
            "after": content.after,
            "references": list(content.references),
        }
    )


def markdown(rule: Rule) -> str:
    """Return the page as a Markdown document."""
    docstring = _docstring(rule)
    for part in PARTS:
        docstring = re.sub(rf"^{part}([^\n:]*):", rf"**{part}**\1:", docstring, flags=re.MULTILINE)
    rewritten = "`padfix convert` rewrites it" if rule.fixable else "report only"
    title = f"# {rule.code} {rule.name}\n\n{rule.severity.value}; {rewritten}\n\n"
    return f"{HEAD}\n{title}{docstring}\n"


def files(rules: Sequence[Rule]) -> dict[str, str]:
    """Return the pages of all rules and a list of them, by file name."""
    rows = [
        line.replace(f"| {rule.code} |", f"| [{rule.code}]({rule.code}.md) |", 1)
        for rule, line in zip(rules, catalogue.markdown(rules).splitlines()[2:], strict=True)
    ]
    table = "\n".join([*catalogue.markdown(rules).splitlines()[:2], *rows])
    pages = {f"{rule.code}.md": markdown(rule) for rule in rules}
    return {"README.md": f"{HEAD}\n# Rules\n\n{table}\n", **pages}


def _docstring(rule: Rule) -> str:
    return inspect.cleandoc(type(rule).__doc__ or "No documentation.")


def _block(paragraphs: Sequence[str]) -> str:
    return textwrap.dedent("\n\n".join(each for each in paragraphs if each.startswith("    ")))
