"""The map of a graph: its nodes in order, folded until they fit a page."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from onnx import FunctionProto, NodeProto

from padfix.files.model import Model
from padfix.graph.scopes import Scope, iterate_scopes, label, names_of, outer_names_of
from padfix.results import ConvertReport, Finding, FirstDifference, Verdict
from padfix.results.graph_map import GraphMap, MapLine

ALL_NODES = 16
"""Up to so many nodes each has a line of its own."""

MOST_LINES = 40
"""More lines than this are folded where they repeat, and then joined."""

LONGEST_PERIOD = 32

MOST_NAMES = 4

Marks = Mapping[tuple[str, str], Collection[str]]
"""What is said of a node, by its graph and name: nodes of which the same is said may be folded into one line."""


DIFFERS = "differs"
"""What is said of the node where two models part."""


@dataclass(frozen=True)
class _Stretch:
    """Places of nodes that stand one behind the other, and how often the same nodes come in it."""

    start: int
    stop: int
    times: int = 1


def conversion_with_maps(report: ConvertReport, original: Model | None) -> ConvertReport:
    """Return the report with the maps of what was converted, as far as it came to that."""
    if original is None:
        return report
    place = report.verdict.first_difference if report.verdict is not None else None
    about = [each.finding for each in report.rewrites] + [each.finding for each in report.refusals]
    return replace(report, maps=maps_of(iterate_scopes(original.proto), about, place))


def verdict_with_maps(verdict: Verdict, original: Model) -> Verdict:
    """Return the verdict with the maps of the original, where it names a place in it."""
    place = verdict.first_difference
    return verdict if place is None else replace(verdict, maps=maps_of(iterate_scopes(original.proto), (), place))


def maps_of(
    scopes: Iterable[Scope], findings: Iterable[Finding], place: FirstDifference | None = None
) -> tuple[GraphMap, ...]:
    """Return the map of the main graph, and of each body and function with something to mark; none on trouble.

    Marked are the nodes of ``findings``, and the node where two models part.
    """
    marks: dict[tuple[str, str], set[str]] = {}
    for finding in findings:
        marks.setdefault((finding.graph, finding.node), set()).add(finding.rule)
    if place is not None:
        marks.setdefault(("main", place.node), set()).add(DIFFERS)
    marked = {graph for graph, _ in marks}
    try:
        return tuple(_map(scope, marks) for scope in scopes if scope.path == "main" or scope.path in marked)
    except (ValueError, LookupError, RecursionError):  # a map is a help, and no reason for a command to fail
        return ()


def _map(scope: Scope, marks: Marks) -> GraphMap:
    nodes: list[NodeProto] = []
    names: list[str] = []
    said: list[tuple[str, ...]] = []
    for index, node in enumerate(scope.nodes):
        name = label(node, index)
        words = tuple(sorted(marks.get((scope.path, name), ())))
        if words or node.op_type != "Constant":
            nodes.append(node)
            names.append(name)
            said.append(words)
    operators = [node.op_type for node in nodes]
    stretches = _folded(operators, said)
    lines = [_line(stretch, operators, names, said) for stretch in stretches]
    return GraphMap(scope.path, len(nodes), len(scope.nodes) - len(nodes), _wired(scope, nodes, stretches, lines))


def _folded(operators: Sequence[str], said: Sequence[tuple[str, ...]]) -> list[_Stretch]:
    """Return the stretches of nodes that make up the lines."""
    single = [_Stretch(place, place + 1) for place in range(len(operators))]
    if len(single) <= ALL_NODES:
        return single
    stretches: list[_Stretch] = []
    for each in single:
        joins = stretches and not said[each.start] and not said[stretches[-1].start]
        if joins:
            stretches[-1] = _Stretch(stretches[-1].start, each.stop)
        else:
            stretches.append(each)
    if len(stretches) > MOST_LINES:
        kinds: dict[tuple[object, ...], int] = {}
        stretches = _repeated(
            stretches,
            [
                kinds.setdefault((said[each.start], *operators[each.start : each.stop]), len(kinds))
                for each in stretches
            ],
        )
    size = -(-len(stretches) // MOST_LINES) or 1
    if size == 1:
        return stretches
    groups = [stretches[start : start + size] for start in range(0, len(stretches), size)]
    return [group[0] if len(group) == 1 else _Stretch(group[0].start, group[-1].stop) for group in groups]


def _repeated(stretches: Sequence[_Stretch], kinds: Sequence[int]) -> list[_Stretch]:
    """Fold what comes several times in a row, wherever that is longest; ``kinds`` says which stretches are alike."""
    found: list[_Stretch] = []
    at = 0
    while at < len(stretches):
        period, times = 1, 1
        for length in range(1, min(LONGEST_PERIOD, (len(kinds) - at) // 2) + 1):
            once, stop = kinds[at : at + length], at + length
            while kinds[stop : stop + length] == once:
                stop += length
            if stop - at > max(length, period * times):
                period, times = length, (stop - at) // length
        last = stretches[at + period * times - 1]
        found.append(stretches[at] if times == 1 else _Stretch(stretches[at].start, last.stop, times))
        at += period * times
    return found


def _line(
    stretch: _Stretch, operators: Sequence[str], names: Sequence[str], said: Sequence[tuple[str, ...]]
) -> MapLine:
    start, stop = stretch.start, stretch.stop
    once = Counter(operators[start : start + (stop - start) // stretch.times])
    marked = tuple(names[place] for place in range(start, stop) if said[place])
    return MapLine(tuple(once.items()), names[start], names[stop - 1], stop - start, stretch.times, marked)


def _wired(
    scope: Scope, nodes: Sequence[NodeProto], stretches: Sequence[_Stretch], lines: Sequence[MapLine]
) -> tuple[MapLine, ...]:
    """Return the lines between one of the inputs and one of the outputs, each with the lines that it reads."""
    given = set() if isinstance(scope.container, FunctionProto) else {each.name for each in scope.container.initializer}
    inputs = [name for name in names_of(scope.container.input) if name not in given]
    found: list[MapLine] = [_boundary(inputs)] if inputs else []
    computed = dict.fromkeys(inputs, 0)
    for stretch, line in zip(stretches, lines, strict=True):
        own = nodes[stretch.start : stretch.stop]
        read = {name for node in own for name in (*node.input, *outer_names_of(node))}
        reads = tuple(sorted({computed[name] for name in read if name in computed}))
        computed.update((name, len(found)) for node in own for name in node.output if name)
        found.append(replace(line, reads=reads))
    if scope.outputs:
        reads = tuple(sorted({computed[name] for name in scope.outputs if name in computed}))
        found.append(replace(_boundary(scope.outputs), reads=reads))
    return tuple(found)


def _boundary(names: Sequence[str]) -> MapLine:
    more = f" and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES else ""
    words = ", ".join(names[:MOST_NAMES]) + more
    return MapLine((), words, words, 0)
