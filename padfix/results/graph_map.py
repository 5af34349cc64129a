"""A graph as a list of lines that a report can draw: every node in its order, long stretches folded into one line."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class MapLine:
    """Nodes that stand one behind the other, drawn as one.

    Attributes:
        operators: The nodes' operators with how many of each, in their order; of a line that repeats, of one time.
            Empty for the line of the graph's inputs and that of its outputs.
        first: Name of the first node; of inputs and outputs, all their names.
        last: Name of the last one.
        nodes: How many nodes the line holds.
        times: How often the operators come one behind the other.
        marked: Names of its nodes that a report has something to say of.
        reads: Places of the lines that compute what this one reads, itself left out.
    """

    operators: tuple[tuple[str, int], ...]
    first: str
    last: str
    nodes: int
    times: int = 1
    marked: tuple[str, ...] = ()
    reads: tuple[int, ...] = ()


@dataclass(frozen=True)
class GraphMap:
    """One graph, body or function of a model.

    Attributes:
        graph: Path of scopes.
        nodes: How many nodes all lines hold together.
        constants: How many nodes are left out because they only hold a constant.
        lines: What is drawn, in the order of the nodes.
    """

    graph: str
    nodes: int
    constants: int
    lines: tuple[MapLine, ...]
