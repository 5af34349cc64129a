"""What runtimes make of a model, for people and for programs."""

from __future__ import annotations

from collections.abc import Sequence

from padfix.reports.characters import printable
from padfix.reports.json import document
from padfix.reports.text_style import PLAIN, Style
from padfix.results import OnRuntime, RuntimeVerdict

MOST_NODES = 10
"""Nodes that the text names; JSON has all."""


def text(source: str, verdicts: Sequence[RuntimeVerdict], style: Style = PLAIN) -> str:
    """Return a paragraph for each runtime."""
    return "".join(f"{line}\n" for verdict in verdicts for line in _lines(source, verdict, style))


def as_json(source: str, verdicts: Sequence[RuntimeVerdict]) -> str:
    """Return one document."""
    return document({"source": source, "runtimes": [{**each.to_dict(), "agrees": each.agrees} for each in verdicts]})


def _lines(source: str, verdict: RuntimeVerdict, style: Style) -> list[str]:
    probes = len({each.probe for each in verdict.outputs})
    head = f"{printable(source)} on {verdict.runtime}:"
    if verdict.agrees:
        closest = max(verdict.outputs, key=lambda each: each.max_abs_diff / each.allowed if each.allowed else 0.0)
        words = style.paint("computes what it should", "good")
        return [f"{head} {words} ({probes} probes; {_difference(closest)})"]
    wrong = [each for each in verdict.outputs if not each.agrees] or list(verdict.outputs)
    if verdict.refused:
        lines = [f"{head} {style.paint('refuses it', 'error')}: {printable(wrong[0].refused)}"]
    else:
        computed = [each for each in wrong if not each.refused] or wrong
        worst = max(computed, key=lambda each: each.max_abs_diff)
        words = style.paint("NOT what it should compute", "error")
        lines = [f"{head} {words}: output '{printable(worst.name)}' ({_difference(worst)})"]
    if not verdict.nodes:
        lines.append(
            f"  none of its {verdict.looked_at} nodes is wrong or refused by itself: several of them together are, or "
            "rounding is amplified"
        )
    for place, node in enumerate(verdict.nodes[:MOST_NODES]):
        name = "first " if place == 0 else "also  "
        what = f"refuses it: {printable(node.refused)}" if node.refused else _difference(node)
        lines.append(f"  {name} {node.op_type} '{printable(node.node)}', by itself: {what}")
    if len(verdict.nodes) > MOST_NODES:
        lines.append(f"  and {len(verdict.nodes) - MOST_NODES} more nodes")
    return lines


def _difference(each: OnRuntime) -> str:
    if each.max_abs_diff == float("inf"):
        return f"another shape or no number, on {each.probe} data"
    return f"{each.max_abs_diff:.3g} off, {each.allowed:.3g} allowed, on {each.probe} data"
