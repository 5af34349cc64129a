"""The error of a proof layer by layer, as a picture."""

from __future__ import annotations

import math
from collections.abc import Sequence

from padfix.reports.pictures.svg import Picture
from padfix.results import LayerDifference

ROW = 17.0
WIDTH = 420.0
LOWEST = -8.0
"""Shares of the tolerance below 1e-8 are drawn as long as this one."""
LONGEST_LABEL = 36


def picture(layers: Sequence[LayerDifference]) -> Picture:
    """Return a row for each layer: what it uses most of its tolerance, as a share of it, on a logarithmic scale."""
    shares = [_share(layer) for layer in layers]
    worst = max(range(len(layers)), key=lambda place: shares[place])
    outside = sum(not layer.difference.equivalent for layer in layers)
    result = Picture(
        f"Differences of {len(layers)} inner tensors in the order of the nodes; {outside} are outside their tolerance. "
        f"Closest to its limit is {layers[worst].difference.name!r} of {layers[worst].op_type} with "
        f"{layers[worst].difference.max_abs_diff:.3g} of {layers[worst].difference.tolerance:.3g} allowed."
    )
    labels = [_label(layer) for layer in layers]
    left = 7.0 * max(map(len, labels)) + 10
    finite = [share for share in shares if 0 < share < math.inf]
    highest = max(1.0, *(math.ceil(math.log10(share)) for share in finite)) if finite else 1.0
    step = WIDTH / (highest - LOWEST)
    result.text(0, 12, "Of each layer, the difference closest to its limit, as a share of what is allowed", "strong")
    top = 40.0
    bottom = top + ROW * len(layers)
    for power in range(int(LOWEST), int(highest) + 1, 2):
        x = left + (power - LOWEST) * step
        result.line(x, top - 4, x, bottom, "thin")
        result.text(x, top - 10, f"1e{power}" if power else "1", "faint", "middle")
    for place, (layer, label, share) in enumerate(zip(layers, labels, shares, strict=True)):
        y = top + place * ROW
        result.text(left - 6, y + 12, label, "", "end")
        good = layer.difference.equivalent
        length = WIDTH if share == math.inf else 0.0
        if 0 < share < math.inf:
            length = max(2.0, (min(max(math.log10(share), LOWEST), highest) - LOWEST) * step)
        if length:
            result.rectangle(left, y + 3, length, ROW - 6, "good" if good else "bad")
        words = "equal" if share == 0 else f"{layer.difference.max_abs_diff:.3g}"
        result.text(left + length + 5, y + 12, words if good else f"{words}, NOT equal")
    limit = left - LOWEST * step
    result.line(limit, top - 4, limit, bottom, "limit")
    result.text(limit, bottom + 13, "allowed", "", "middle")
    return result


def _label(layer: LayerDifference) -> str:
    words = f"{layer.op_type} {layer.difference.name}"
    return words if len(words) <= LONGEST_LABEL else f"{words[: LONGEST_LABEL - 1]}…"


def _share(layer: LayerDifference) -> float:
    difference = layer.difference
    if difference.max_abs_diff == 0 and difference.equivalent:
        return 0.0
    if not math.isfinite(difference.max_abs_diff):
        return math.inf
    return difference.max_abs_diff / difference.tolerance if difference.tolerance > 0 else math.inf
