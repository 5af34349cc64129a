"""The page of whole models on runtimes, from what ``tests/benchmarks/measure_whole_models.py`` keeps."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from padfix import targets

DATA = Path(__file__).parents[2] / "padfix" / "docs" / "measured" / "whole_models.json"

SAME = 1e-3
"""Of an output's range: further off than this is another result."""


def page(head: str) -> str:
    """Return the page; ``head`` says where it comes from."""
    content: Mapping[str, Any] = json.loads(DATA.read_text(encoding="utf-8"))
    names = [f"{targets.named(label.partition(' ')[0]).title} {label.partition(' ')[2]}" for label in content]
    titles = list(dict.fromkeys(title for each in content.values() for title in each["results"]))
    dates = sorted({result["date"] for each in content.values() for result in each["results"].values()})
    lines = [
        "# Whole models on runtimes",
        "",
        head,
        "Networks of Keras as tf2onnx writes them, with random weights, and models out of packages: as written, and as",
        "`padfix convert --target` writes them from that file. A number is the largest difference from ONNX Runtime on",
        "the model as written, as a share of the output's range; what is above one in a thousand is bold. Behind it",
        "stands the processor time of a run by that as written (medians of runs in turns), where it runs as written.",
        f"Measured from {dates[0]} to {dates[-1]}." if len(dates) > 1 else f"Measured on {dates[0]}.",
        "",
        f"| Model | {' | '.join(names)} |",
        f"|---|{'---|' * len(names)}",
    ]
    for title in titles:
        cells = [_cell(each["results"].get(title)) for each in content.values()]
        lines.append(f"| {title} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def _cell(result: Mapping[str, Any] | None) -> str:
    if result is None:
        return "not measured"
    found = f"{_words(result['before'])} → {_words(result['after'])}"
    return found if result["time"] is None else f"{found}, {result['time']:.2f}x"


def _words(found: float | str) -> str:
    if isinstance(found, str):
        return found.partition(":")[0]
    return f"{found:.0e}" if found <= SAME else f"**{found:.0e}**"
