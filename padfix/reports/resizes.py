"""The table of the frameworks' resizes as text, JSON and Markdown."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from itertools import groupby

from padfix.geometry.resize_table import INTEGERS, MEASURED, Row
from padfix.reports.json import document

_WIDTH = 118
_KEYS = ("framework", "function", "options", "when", "attributes", "lengths", "opset", "because", "instead", "slips")


def attributes(row: Row) -> str:
    """Return the attributes of ONNX's Resize as ``name=value``, or what there is instead of them."""
    if row.attributes is None:
        return f"not expressible, because {row.because}"
    return " ".join(f"{name}={value}" for name, value in row.attributes.items())


def remark(row: Row) -> str:
    """Return what else there is to know of a row, as phrases divided by semicolons."""
    phrases = [f"by {row.lengths}, opset {row.opset} or later"] if row.attributes is not None else []
    return "; ".join([*phrases, *filter(None, (row.slips, row.instead and f"write {row.instead}"))])


def measured() -> str:
    """Return what the table was measured with, as a sentence."""
    return "Measured with " + ", ".join(f"{name} {version}" for name, version in MEASURED.items()) + "."


def text(rows: Sequence[Row]) -> str:
    """Return a heading a function, and for each call what it is in ONNX and what else there is to know."""
    lines = []
    for (framework, function), calls in groupby(rows, lambda row: (row.framework, row.function)):
        lines += [f"{framework}  {function}", ""]
        for row in calls:
            lines.append(f"  {row.call}")
            for part in filter(None, (attributes(row), remark(row))):
                lines += textwrap.wrap(part, _WIDTH, initial_indent="      ", subsequent_indent="        ")
        lines.append("")
    return "\n".join([*lines, *textwrap.wrap(INTEGERS, _WIDTH), measured()]) + "\n"


def json(rows: Sequence[Row]) -> str:
    """Return ``{"schema": 1, "resizes": [...], "measured": {...}}``."""
    resizes = [
        {**{key: getattr(row, key) for key in _KEYS}, "lengths": None if row.attributes is None else row.lengths}
        for row in rows
    ]
    return document({"resizes": resizes, "integers": INTEGERS, "measured": MEASURED})


def markdown(rows: Sequence[Row]) -> str:
    """Return one Markdown table."""
    lines = ["| Framework | Call | ONNX Resize | Remarks |", "|---|---|---|---|"]
    for row in rows:
        onnx = attributes(row) if row.attributes is None else f"`{attributes(row)}`"
        lines.append(f"| {row.framework} | `{row.function}` {row.call} | {onnx} | {remark(row)} |")
    return "\n".join([*lines, "", INTEGERS, "", measured()]) + "\n"
