"""What runtimes make of a model, in words."""

from __future__ import annotations

import math
from collections.abc import Iterator

from padfix.reports.characters import printable
from padfix.reports.sections import Block, Bullets, Facts, Page, Section, Table, Tone, Words
from padfix.reports.text_style import Style
from padfix.results import RuntimesReport, RuntimeVerdict

MOST_NODES = 10
"""Nodes that the text names; the other reports have all."""


def text(report: RuntimesReport, style: Style) -> list[str]:
    """Return a paragraph for each runtime."""
    return [line for verdict in report.runtimes for line in lines(printable(report.source), verdict, style)]


def lines(source: str, verdict: RuntimeVerdict, style: Style) -> Iterator[str]:
    """Yield what a runtime makes of the model called ``source``."""
    said = verdict.summary
    telling, bracket, rest = said.partition(" (") if verdict.agrees else said.partition(": ")
    painted = style.paint(printable(telling), "good" if verdict.agrees else "error")
    yield f"{source} on {verdict.runtime}: {painted}{bracket}{printable(rest)}"
    for place, words in enumerate(_nodes(verdict)):
        if place < MOST_NODES:
            yield f"  {printable(words)}"
    if len(verdict.nodes) > MOST_NODES:
        yield f"  and {len(verdict.nodes) - MOST_NODES} more nodes"
    for note in verdict.notes:
        yield f"  note: {printable(note)}"


def page(report: RuntimesReport) -> Page:
    """Return the page of what runtimes make of a model."""
    words = (
        report.error.message
        if report.error is not None
        else "Every runtime computes what it should."
        if report.agrees
        else "NOT every runtime computes what it should."
    )
    models = [("Model", report.source), *([("Original", report.original)] if report.original else [])]
    head: tuple[Block, ...] = (Words(words, Tone.of(report.agrees), strong=True), Facts(tuple(models)))
    return Page("padfix verify", head, tuple(section(verdict) for verdict in report.runtimes))


def section(verdict: RuntimeVerdict) -> Section:
    """Return what a runtime makes of a model, for a page."""
    said = verdict.summary
    blocks: list[Block] = [Words(f"{said[0].upper()}{said[1:]}.", Tone.of(verdict.agrees))]
    nodes = tuple(_nodes(verdict))
    if nodes:
        blocks.append(Bullets(nodes, Tone.BAD))
    blocks.append(
        Table(
            ("Output", "Probe", "Right", "Largest difference", "Allowed"),
            tuple(
                (
                    each.name,
                    each.probe,
                    "refused" if each.refused else "yes" if each.agrees else "NO",
                    "" if each.refused else f"{each.max_abs_diff:.3g}",
                    "" if each.refused else f"{each.allowed:.3g}",
                )
                for each in verdict.outputs
            ),
        )
    )
    if verdict.notes:
        blocks.append(Bullets(verdict.notes))
    return Section(f"On {verdict.runtime}", tuple(blocks))


def _nodes(verdict: RuntimeVerdict) -> Iterator[str]:
    if not verdict.agrees and not verdict.nodes:
        if verdict.refused:
            why = "it takes each, and not all together"
        elif any(not each.agrees and math.isinf(each.max_abs_diff) for each in verdict.outputs):
            why = "it computes each, and not all together"
        else:
            why = "rounding is amplified"
        yield f"none of its {verdict.looked_at} nodes is wrong, fed with the right values: {why}"
    for place, node in enumerate(verdict.nodes):
        yield f"{'also ' if place else 'first'}  {node.op_type} '{node.node}', {node.found}"
