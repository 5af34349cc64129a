"""The map of a graph in a report: which of its nodes are marked, with what, and where that leads."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from padfix.reports import sentences
from padfix.reports.pictures import graph_map
from padfix.reports.pictures.graph_map import Mark
from padfix.reports.sections import Pictures, Section
from padfix.results import Finding, FirstDifference
from padfix.results.graph_map import GraphMap

Marks = Mapping[tuple[str, str], Mark]
"""By graph and node."""


def marks(told: Iterable[tuple[Finding, str]], anchors: Mapping[tuple[str, str, str], str]) -> Marks:
    """Return the mark of each node, the worst where there are several, from findings with the kind of their marks."""
    marked: dict[tuple[str, str], Mark] = {}
    for finding, kind in told:
        place = (finding.graph, finding.node)
        mark = Mark(kind, (finding.rule,), anchors.get((*place, finding.rule), ""))
        marked[place] = mark.beside(marked.get(place))
    return marked


def of_maps(maps: Sequence[GraphMap], marked: Marks, place: FirstDifference | None = None) -> tuple[Section, ...]:
    """Return the section with the maps of all graphs that hold a marked node; none where there is nothing to mark."""
    if place is not None:
        here = ("main", place.node)
        marked = {**marked, here: Mark("differs", ("first difference",), "first").beside(marked.get(here))}
    pictures = []
    for each in maps:
        names = [name for line in each.lines for name in line.marked]
        own = {name: marked[each.graph, name] for name in names if (each.graph, name) in marked}
        if own:
            caption = f"{each.graph}: {sentences.count(each.nodes, 'node')} in order, {len(own)} marked"
            pictures.append((caption, graph_map.picture(each, own)))
    return (Section("Map of the graph", (Pictures(tuple(pictures)),)),) if pictures else ()
