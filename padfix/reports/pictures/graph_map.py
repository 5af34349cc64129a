"""The map of a graph as a picture: its nodes from top to bottom, and which of them read what is not just above."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from padfix.reports.pictures.svg import Picture
from padfix.results.graph_map import GraphMap, MapLine

WIDTH = 360.0
TALL, LOW = 36.0, 22.0
"""Heights of lines with and without a mark."""
LANE = 8.0
MOST_LANES = 6
LETTER = 6.8
"""Room for a letter."""

KINDS = {
    "differs": ("≠", "first difference"),
    "refused": ("X", "refused"),
    "silent": ("S", "silently wrong"),
    "error": ("E", "error"),
    "warning": ("W", "warning"),
    "info": ("i", "info"),
    "rewritten": ("R", "rewritten"),
    "tried": ("T", "tried, and not written"),
}
"""Letters and words of marks, the worst first."""


@dataclass(frozen=True)
class Mark:
    """What stands at a node.

    Attributes:
        kind: One of :data:`KINDS`.
        words: What there is to say, for example the rules' codes.
        anchor: What the mark leads to; empty where there is nothing.
    """

    kind: str
    words: tuple[str, ...]
    anchor: str = ""

    def beside(self, other: Mark | None) -> Mark:
        """Return the mark of a node that has both, this one being drawn unless the other is worse."""
        if other is None:
            return self
        order = list(KINDS)
        worst = other if order.index(other.kind) < order.index(self.kind) else self
        return replace(worst, words=tuple(sorted({*self.words, *other.words}, key=_codes_last)))


def _codes_last(words: str) -> tuple[bool, str]:
    return words.startswith("PF"), words


def picture(graph: GraphMap, marks: Mapping[str, Mark]) -> Picture:
    """Return the map of a graph; ``marks`` are by the names of the nodes."""
    marked = [[marks[name] for name in line.marked if name in marks] for line in graph.lines]
    lanes, left_out = _lanes(graph.lines)
    result = Picture(_summary(graph, marks, left_out))
    rail = 12.0 + LANE * (1 + max(lanes.values(), default=-1))
    kinds = sorted({mark.kind for own in marked for mark in own}, key=list(KINDS).index)
    is_folded = any(line.nodes > 1 for line in graph.lines)
    middles = _heights(marked, _legend(result, kinds, is_folded=is_folded))
    _connect(result, graph.lines, lanes, middles, rail)
    for line, own, middle in zip(graph.lines, marked, middles, strict=True):
        _draw(result, line, own, rail, middle)
    return result


def _summary(graph: GraphMap, marks: Mapping[str, Mark], left_out: int) -> str:
    counted = Counter(mark.kind for mark in marks.values())
    parts = [f"{counted[kind]} {words}" for kind, (_, words) in KINDS.items() if counted[kind]]
    words = f"Map of {graph.graph}: {graph.nodes} nodes from top to bottom; marked: {', '.join(parts)}."
    if graph.constants:
        words += f" {graph.constants} nodes that only hold a constant are left out."
    if left_out:
        words += f" What {left_out} lines pass on to lines further down is not drawn."
    return words


def _heights(marked: Sequence[Sequence[Mark]], top: float) -> list[float]:
    """Return the middle of each line's mark."""
    middles = []
    for own in marked:
        middles.append(top + 11)
        top += TALL if own else LOW
    return middles


def _lanes(lines: Sequence[MapLine]) -> tuple[dict[int, int], int]:
    """Return the lane of each line that is read further down than by the next one, and how many found no lane."""
    last: dict[int, int] = {}
    for place, line in enumerate(lines):
        for source in line.reads:
            if source < place - 1:
                last[source] = place
    free = [0] * MOST_LANES
    lanes: dict[int, int] = {}
    for source, end in sorted(last.items()):
        lane = next((lane for lane in range(MOST_LANES) if free[lane] <= source), None)
        if lane is not None:
            lanes[source] = lane
            free[lane] = end
    return lanes, len(last) - len(lanes)


def _connect(
    result: Picture, lines: Sequence[MapLine], lanes: Mapping[int, int], middles: Sequence[float], rail: float
) -> None:
    for place, line in enumerate(lines):
        for source in line.reads:
            start, end = middles[source], middles[place]
            if source == place - 1:
                result.line(rail, start, rail, end, "line")
            elif source in lanes:
                x = rail - 10 - LANE * lanes[source]
                bend = f"Q{x:g} {start:g} {x:g} {start + 9:g}V{end - 9:g}Q{x:g} {end:g} {rail:g} {end:g}"
                result.path(f"M{rail:g} {start:g}{bend}", "line")


def _draw(result: Picture, line: MapLine, marks: Sequence[Mark], rail: float, middle: float) -> None:
    mark: Mark | None = None
    for each in marks:
        mark = each.beside(mark)
    title, short = _told(line, mark, len(marks))
    left = rail + 16
    with result.group(title, mark.anchor if mark else ""):
        if mark is None:
            _unmarked(result, line, rail, middle)
            result.text(left, middle + 4, _cut(short, left), "faint" if line.operators else "")
            return
        letter, _ = KINDS[mark.kind]
        if line.nodes > 1:
            result.rectangle(rail - 5, middle - 11, 16, 16, f"mark {mark.kind}")
        result.rectangle(rail - 8, middle - 8, 16, 16, f"mark {mark.kind}")
        result.text(rail, middle + 4, letter, "strong letter", "middle")
        codes = ", ".join(mark.words)
        result.text(left, middle + 4, f"{_cut(short, left, 3 + len(codes))} · {codes}", "strong")
        ends = [line.first] if line.nodes == 1 else [line.first, line.last]
        result.text(left, middle + 18, " … ".join(_clipped(name, left, len(ends)) for name in ends), "faint")


def _unmarked(result: Picture, line: MapLine, rail: float, middle: float) -> None:
    if line.nodes > 1:
        for offset in (-6, 0, 6):
            result.dot(rail, middle + offset, "start", 1.8)
    elif line.operators:
        result.dot(rail, middle, "hollow", 4)
    else:
        result.rectangle(rail - 6, middle - 4, 12, 8, "end")


def _told(line: MapLine, mark: Mark | None, number: int) -> tuple[str, str]:
    """Return all that a line is of, and the short form of it that is drawn."""
    if not line.operators:
        role = "Outputs" if line.reads else "Inputs"
        return f"{role}: {line.first}", line.first
    operators = ", ".join(name if count == 1 else f"{count} x {name}" for name, count in line.operators)
    short = operators if line.times == 1 else f"{line.times} times {operators}"
    if line.nodes > 1 and line.times == 1:
        short = f"{line.nodes} nodes: {operators}"
    names = line.first if line.nodes == 1 else f"{line.first} to {line.last}"
    if mark is None:
        return f"{short} ({names})", f"{operators} {line.first}" if line.nodes == 1 else short
    said = ", ".join(mark.words)
    many = f"{number} of {line.nodes} nodes marked, " if line.nodes > 1 else ""
    is_mixed = line.nodes > 1 and line.times == 1
    return f"{short} ({names}): {many}{said}", f"{number} of {line.nodes} nodes" if is_mixed else short


def _cut(words: str, left: float, beside: int = 0) -> str:
    """Return the beginning that fits into the width, beside so many letters."""
    most = max(8, int((WIDTH - left) / LETTER) - beside)
    return words if len(words) <= most else f"{words[: most - 1]}…"


def _clipped(words: str, left: float, parts: int = 1) -> str:
    """Return what fits into a part of the width; names begin alike, so that their ends are what is shown."""
    most = int((WIDTH - left) / LETTER / parts) - 3 * (parts - 1)
    return words if len(words) <= most else f"…{words[-most + 1 :]}"


def _legend(result: Picture, kinds: Sequence[str], *, is_folded: bool) -> float:
    """Explain the marks that there are; return where that ends."""
    x, top = 4.0, 2.0
    for kind in kinds:
        letter, words = KINDS[kind]
        result.rectangle(x, top, 16, 16, f"mark {kind}")
        result.text(x + 8, top + 12, letter, "strong letter", "middle")
        result.text(x + 21, top + 12, words)
        x += 40 + 6 * len(words)
    if is_folded:
        result.text(4, top + 34, "Two squares, three dots: nodes folded into one line.", "faint")
    return top + (46 if is_folded else 28)
