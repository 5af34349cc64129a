"""The error of a proof layer by layer, as a picture."""

from __future__ import annotations

import math
from collections.abc import Sequence

from padfix.reports.pictures.svg import Picture
from padfix.results import LayerDifference

ROW = 17.0
WIDTH = 300.0
LOWEST = -8.0
"""Shares of the tolerance below 1e-8 are drawn as long as this one."""
LONGEST_LABEL = 30
MOST_LAYERS = 40
"""Where there are more, runs of neighbours that are all equal, or all not, are folded."""
SHOWN_OF_A_RUN = 3
MOST_ROWS = 60
"""Where there are more even so, as many layers as need be share a row."""
TICK = 34.0
"""Room for the number at a tick."""


def picture(layers: Sequence[LayerDifference]) -> Picture:
    """Return a row for each layer: what it uses most of its tolerance, as a share of it, on a logarithmic scale."""
    worst = max(layers, key=_share)
    outside = sum(not layer.difference.equivalent for layer in layers)
    result = Picture(
        f"Differences of {len(layers)} inner tensors in the order of the nodes; {outside} are outside their tolerance. "
        f"Closest to its limit is {worst.difference.name!r} of {worst.op_type} with "
        f"{worst.difference.max_abs_diff:.3g} of {worst.difference.tolerance:.3g} allowed."
    )
    rows = _rows(layers)
    labels = [f"{len(run)} layers" if len(run) > 1 else _label(run[0]) for run in rows]
    left = 6.6 * max(map(len, labels)) + 10
    finite = [share for share in map(_share, layers) if 0 < share < math.inf]
    highest = max(1.0, *(math.ceil(math.log10(share)) for share in finite)) if finite else 1.0
    step = WIDTH / (highest - LOWEST)
    result.text(0, 12, "How much each layer uses of the difference that is allowed", "strong")
    top = 40.0
    bottom = top + ROW * len(rows)
    _scale(result, left, step, highest, top, bottom)
    limit = left - LOWEST * step
    result.line(limit, top - 4, limit, bottom, "limit")
    result.text(limit, bottom + 13, "allowed", "", "middle")
    for place, (run, label) in enumerate(zip(rows, labels, strict=True)):
        y = top + place * ROW
        result.text(left - 6, y + 12, label, "", "end")
        _bar(result, run, left, y, step, highest)
    return result


def _scale(result: Picture, left: float, step: float, highest: float, top: float, bottom: float) -> None:
    every = 2 * max(1, math.ceil(TICK / (2 * step)))
    first = int(LOWEST) + int(-LOWEST) % every  # so that 1, all that is allowed, has a tick
    for power in range(first, int(highest) + 1, every):
        x = left + (power - LOWEST) * step
        result.line(x, top - 4, x, bottom, "thin")
        result.text(x, top - 10, f"1e{power}" if power else "1", "faint", "middle")


def _bar(result: Picture, run: Sequence[LayerDifference], left: float, y: float, step: float, highest: float) -> None:
    layer = max(run, key=_share)
    share = _share(layer)
    bad = sum(not each.difference.equivalent for each in run)
    length = WIDTH if share == math.inf else 0.0
    if 0 < share < math.inf:
        length = max(2.0, (min(max(math.log10(share), LOWEST), highest) - LOWEST) * step)
    if length:
        result.rectangle(left, y + 3, length, ROW - 6, "bad" if bad else "good")
    words = ["equal" if share == 0 else f"{layer.difference.max_abs_diff:.3g}"]
    if len(run) > 1 and share > 0:
        words.append("closest of them")
    if bad:
        words.append("NOT equal" if bad == len(run) else f"{bad} NOT equal")
    result.text(left + length + 5, y + 12, ", ".join(words), "value")


def _rows(layers: Sequence[LayerDifference]) -> list[Sequence[LayerDifference]]:
    """Return the layers that have a row each, and those that share one."""
    if len(layers) <= MOST_LAYERS:
        return [[layer] for layer in layers]
    runs: list[list[LayerDifference]] = []
    for layer in layers:
        if runs and runs[-1][-1].difference.equivalent == layer.difference.equivalent:
            runs[-1].append(layer)
        else:
            runs.append([layer])
    rows: list[Sequence[LayerDifference]] = []
    for run in runs:
        alone = run if len(run) <= SHOWN_OF_A_RUN + 1 else run[:SHOWN_OF_A_RUN]
        rows += [[layer] for layer in alone]
        rows += [run[len(alone) :]] if len(run) > len(alone) else []
    if len(rows) <= MOST_ROWS:
        return rows
    size = -(-len(layers) // MOST_ROWS)
    return [layers[start : start + size] for start in range(0, len(layers), size)]


def _label(layer: LayerDifference) -> str:
    """Return the operator and the tensor's name, of which the end tells more than the beginning."""
    name, most = layer.difference.name, LONGEST_LABEL - len(layer.op_type) - 1
    return f"{layer.op_type} {name if len(name) <= most else f'…{name[-most + 1 :]}'}"


def _share(layer: LayerDifference) -> float:
    difference = layer.difference
    if difference.max_abs_diff == 0 and difference.equivalent:
        return 0.0
    if not math.isfinite(difference.max_abs_diff):
        return math.inf
    return difference.max_abs_diff / difference.tolerance if difference.tolerance > 0 else math.inf
